"""Objects that the tests of clients send."""

from __future__ import annotations

from typing import Any

from syncline.kube.objects import Obj

__all__ = ["budget", "config", "deployment", "service", "widget", "widgets"]


def deployment(name: str = "web", replicas: int = 2, image: str = "shop:1", **container: Any) -> Obj:
    """A Deployment of one container whose Pods are labelled ``app=<name>``."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "main", "image": image, **container}],
                },
            },
        },
    }


def config(name: str, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def service(name: str) -> Obj:
    spec = {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def budget(name: str, available: int) -> Obj:
    spec = {"minAvailable": available, "selector": {"matchLabels": {"app": name}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def widgets(group: str) -> Obj:
    """A definition with a default, an enumeration, a rule over two fields, columns, status and scale."""
    spec = {
        "type": "object",
        "description": "What is wanted.",
        "required": ["size"],
        "x-kubernetes-validations": [{"rule": "self.size % 2 == 0", "message": "size must be even"}],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "description": "How large it is."},
            "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
            "replicas": {"type": "integer"},
        },
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": "A widget of the shop.",
                "properties": {"spec": spec, "status": status},
            }
        },
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def widget(group: str, name: str, **spec: Any) -> Obj:
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
