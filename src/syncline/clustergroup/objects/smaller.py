"""Nodes, the Scheduler, catalogues and objects that values give whole (reference clustergroup §7, 11)."""

from __future__ import annotations

import re

from syncline.clustergroup.errors import RenderFailed
from syncline.clustergroup.facts import Facts
from syncline.clustergroup.objects.namespaces import MANAGED_BY
from syncline.clustergroup.printing import first, is_empty
from syncline.kube.objects import Obj

_IMAGE = re.compile(r"[^/\n]*/(.*):.*")


def nodes(facts: Facts) -> list[Obj]:
    """Return Nodes with labels and annotations."""
    if facts.plumbing:
        return []
    out, made = facts.printer("core/nodes"), []
    for item in out.each(facts.group.get("nodes"), "clusterGroup.nodes"):
        metadata: Obj = {}
        for name, one in out.pairs(item, "clusterGroup.nodes"):
            labels = out.labelled(out.field(one, "labels", "clusterGroup.nodes"))
            metadata = {"name": out.plain(name), "labels": {MANAGED_BY: facts.argo_namespace, **labels}}
            metadata |= out.annotations(one.get("annotations"))
        made.append({"apiVersion": "v1", "kind": "Node", "metadata": metadata or None})
    return made


def scheduler(facts: Facts) -> list[Obj]:
    if facts.plumbing or "scheduler" not in facts.group:
        return []
    metadata = {"name": "cluster", "annotations": {"argocd.argoproj.io/sync-options": "Prune=false,Delete=false"}}
    spec = facts.group["scheduler"]
    return [{"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "metadata": metadata, "spec": spec}]


def catalogues(facts: Facts) -> list[Obj]:
    """Return CatalogSources; one without a name is named after its image."""
    out, made = facts.printer("core/catalog-sources"), []
    for one in out.each(facts.group.get("indexImages"), "clusterGroup.indexImages"):
        image = out.field(one, "image", "clusterGroup.indexImages")
        if not isinstance(image, str):
            raise RenderFailed(out.part, "clusterGroup.indexImages: image: expected a string")
        name = first(one.get("name"), _IMAGE.sub(r"\1", image).replace("/", "-"))
        metadata = {"name": out.plain(name), "namespace": "openshift-marketplace"}
        spec = {"sourceType": "grpc", "image": out.plain(image)}
        made.append(
            {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": metadata, "spec": spec}
        )
    return made


def given_objects(facts: Facts) -> list[Obj]:
    """Return the objects that the values give as they are, in the order of their keys."""
    out, what = facts.printer("core/extraObjects"), "clusterGroup.extraObjects"
    pairs = [(key, one) for key, one in out.pairs(facts.group.get("extraObjects"), what)]
    live = [one for _, one in pairs if is_empty(out.field(one, "disabled", what))]
    return [{key: value for key, value in one.items() if key != "disabled"} for one in live]
