"""Objects on their way into the store: defaulted, prepared and judged as the API does it, without a store."""

from __future__ import annotations

import copy
from typing import Any

from syncline.base.clock import EPOCH
from syncline.base.entropy import Entropy
from syncline.cluster.validation.strategy import Context, strategy_for
from syncline.kube.defaults import fill_defaults
from syncline.kube.objects import Obj, gvk_of

CONTEXT = Context(EPOCH, Entropy(1), "tester")


def prepared(obj: Obj) -> Obj:
    """A new object as it would be stored."""
    fresh = copy.deepcopy(obj)
    fresh.setdefault("metadata", {}).setdefault("name", "a")
    fresh["metadata"].setdefault("uid", "0000")
    fill_defaults(gvk_of(fresh), fresh)
    strategy_for(gvk_of(fresh).group_kind).prepare_create(fresh, CONTEXT)
    return fresh


def refusals(obj: Obj) -> list[str]:
    """``field: message`` of every cause for which a new object is refused."""
    fresh = prepared(obj)
    return [f"{c.field}: {c.message}" for c in strategy_for(gvk_of(fresh).group_kind).validate_create(fresh)]


def warnings(obj: Obj) -> list[str]:
    """What is let through with a warning."""
    fresh = prepared(obj)
    found: list[str] = strategy_for(gvk_of(fresh).group_kind).warnings(fresh, None)
    return found


def updated(old: Obj, change: Any, subresource: str = "") -> tuple[Obj, list[str]]:
    """The object after an update and the causes against it; ``change`` mutates a copy of the stored object."""
    stored = prepared(old)
    stored["metadata"].setdefault("resourceVersion", "1")
    new = copy.deepcopy(stored)
    change(new)
    fill_defaults(gvk_of(new), new)
    strategy = strategy_for(gvk_of(new).group_kind)
    strategy.prepare_update(new, stored, CONTEXT, subresource)
    causes = strategy.validate_update(new, stored, subresource)
    return new, list(dict.fromkeys(f"{c.field}: {c.message}" for c in causes))


def pod(**spec: Any) -> Obj:
    body = {"containers": [{"name": "c", "image": "x:1"}]} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": body}


def workload(kind: str, group: str = "apps/v1", **spec: Any) -> Obj:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    body = {"selector": {"matchLabels": {"app": "a"}}, "template": template} | spec
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "w", "namespace": "n"}, "spec": body}


def job(**spec: Any) -> Obj:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]}}
    body = {"template": template} | spec
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "n"}, "spec": body}


def service(**spec: Any) -> Obj:
    body = {"ports": [{"port": 80}]} | spec
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"}, "spec": body}


def plain(kind: str, version: str = "v1", **parts: Any) -> Obj:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "n"}, **parts}
