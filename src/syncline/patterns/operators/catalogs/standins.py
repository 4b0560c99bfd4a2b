"""Manifests for a bundle of which the catalogue has only ``olm.csv.metadata``, as ``opm`` writes since OpenShift 4.15:
the image with the manifests cannot be pulled here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from syncline.kube.objects import Obj
from syncline.patterns.operators.catalogs.model import Property
from syncline.patterns.operators.resolver.versions import Version

STAND_IN: Final = "syncline.dev/stand-in"
SCOPES: Final = "syncline.dev/cluster-scoped"
"""Annotation in ``olm.csv.metadata``: kinds, by comma, whose objects have no namespace."""
_MODES: Final = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")


def stand_in(
    name: str, image: str, version: Version | None, metadata: Mapping[str, Any], properties: Sequence[Property]
) -> tuple[Obj, ...]:
    """Return a ClusterServiceVersion with one Deployment of the bundle's image, and the definitions that it owns."""
    annotations = {str(key): str(value) for key, value in (metadata.get("annotations") or {}).items()}
    kinds: Mapping[str, Any] = metadata.get("crdDescriptions") or metadata.get("customResourceDefinitions") or {}
    short = name.split(".")[0][:50]
    labels = {"name": short}
    container = {"name": "manager", "image": image or f"{short}:{version or 'latest'}"}
    template = {"metadata": {"labels": labels}, "spec": {"serviceAccountName": short, "containers": [container]}}
    deployment = {"name": short, "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}}
    cluster = {part.strip() for part in annotations.get(SCOPES, "").split(",")}
    owned = [{**one, "cluster": str(one.get("kind") or "") in cluster} for one in kinds.get("owned") or ()]
    definitions = definitions_of(owned)
    groups = sorted({one["spec"]["group"] for one in definitions})
    rules = [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}] if groups else []
    permission = {"serviceAccountName": short, "rules": rules}
    strategy: Obj = {"deployments": [deployment], "clusterPermissions": [permission]}
    spec: Obj = {
        "displayName": str(metadata.get("displayName") or name),
        "version": str(version or ""),
        "install": {"strategy": "deployment", "spec": strategy},
        "installModes": metadata.get("installModes") or [{"type": mode, "supported": True} for mode in _MODES],
        "customresourcedefinitions": dict(kinds),
        **{
            key: metadata[key]
            for key in ("description", "keywords", "maturity", "minKubeVersion", "provider")
            if metadata.get(key)
        },
    }
    csv: Obj = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "annotations": {**annotations, STAND_IN: "true"}},
        "spec": spec,
    }
    return (csv, *definitions)


def definitions_of(described: Iterable[Mapping[str, Any]]) -> list[Obj]:
    """Return definitions that accept any object. ``described``: name, version, kind, and whether it is ``cluster``
    scoped; each definition is made once, with all its versions."""
    return _once([_definition(one, bool(one.get("cluster"))) for one in described])


def _definition(described: Mapping[str, Any], cluster: bool) -> Obj:
    plural, _, group = str(described.get("name") or "").partition(".")
    kind, version = str(described.get("kind") or ""), str(described.get("version") or "v1")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster" if cluster else "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def _once(definitions: Sequence[Obj]) -> list[Obj]:
    """Return each definition once, with all its versions; the last one is stored."""
    made: dict[str, Obj] = {}
    for one in definitions:
        name = one["metadata"]["name"]
        if name not in made:
            made[name] = one
            continue
        known = made[name]["spec"]["versions"]
        (new,) = one["spec"]["versions"]
        if all(version["name"] != new["name"] for version in known):
            made[name]["spec"]["versions"] = [*({**version, "storage": False} for version in known), new]
    return list(made.values())
