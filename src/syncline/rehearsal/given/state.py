"""A cluster as it is at a moment, with status: :class:`WorldState`; :func:`laid` puts it into a new embedded cluster.

Controllers keep all their memory in the API, so what was under way goes on from there: running syncs, updates of pools,
rollouts. Machines begin with the config that their Nodes name. Opens no socket.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.argo.clusters import SECRET_TYPE
from syncline.assembly.embedded.core import ClusterCore
from syncline.cluster.machines.kubelet.node import SPEC
from syncline.cluster.storage.store import Key
from syncline.kube.objects import Obj, annotations_of, dig, gvk_of, labels_of, meta, name_of, namespace_of
from syncline.kube.schema.extensions import MACHINE, SIMULATED

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
DEFINITION = "CustomResourceDefinition"
LEFT_OUT = frozenset(
    (
        *("Lease", "APIService", "FlowSchema", "PriorityLevelConfiguration", "CSINode", "TokenReview", "PodMetrics"),
        *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "NodeMetrics", "ComponentStatus"),
    )
)
"""Kinds of servers that no virtual world has, and of what processes write about themselves."""


@dataclass(frozen=True, slots=True)
class WorldState:
    """``objects``: all that may be read, whole, at the time ``at``."""

    at: datetime
    objects: tuple[Obj, ...]

    @property
    def machine_config(self) -> bool:
        return any(obj.get("kind") == "MachineConfigPool" for obj in self.objects)


def commits_of(state: WorldState) -> tuple[str, ...]:
    """Return the hashes of the commits that Applications were compared with, or sync."""
    found: set[str] = set()
    for obj in state.objects:
        if obj["kind"] == "Application":
            status = obj.get("status") or {}
            places = (status.get("sync"), dig(obj, "operation", "sync"), dig(status, "operationState", "syncResult"))
            for place in (*places, dig(status, "operationState", "operation", "sync")):
                named = dig(place, "revisions", default=[]) if isinstance(place, dict) else []
                found |= {str(each) for each in (*named, dig(place, "revision")) if each}
    return tuple(sorted(each for each in found if _SHA.fullmatch(each)))


def laid(state: WorldState, core: ClusterCore) -> tuple[str, ...]:
    """Store the objects as they are, definitions first; return in sentences what is left out. No controller may run
    yet."""
    unknown: Counter[str] = Counter()
    elsewhere: list[str] = []
    for obj in _ordered(state.objects):
        if obj["kind"] in LEFT_OUT:
            continue
        if obj["kind"] == "Secret" and SECRET_TYPE in labels_of(obj):
            elsewhere.append(name_of(obj))
            continue
        resource = core.registry.of_kind(gvk_of(obj))
        if resource is None:
            unknown[f"{obj['kind']} ({obj['apiVersion']})"] += 1
            continue
        key = Key(resource.storage, namespace_of(obj), name_of(obj))
        core.store.put(key, resource.to_stored(_simulated(obj)), expect=None)
    return tuple(_notes(unknown, elsewhere))


def _ordered(objects: Sequence[Obj]) -> Iterator[Obj]:
    yield from (obj for obj in objects if obj["kind"] == DEFINITION)
    yield from (obj for obj in objects if obj["kind"] != DEFINITION)


def _simulated(obj: Obj) -> Obj:
    """Return a Node as one of a simulated machine; other objects as they are."""
    if obj["kind"] != "Node":
        return obj
    has = dig(obj, "status", "capacity", default={})
    sizes = {f"{SPEC}{name}": str(has[name]) for name in ("cpu", "memory", "pods") if has.get(name)}
    return {**obj, "metadata": {**meta(obj), "annotations": sizes | annotations_of(obj) | {MACHINE: SIMULATED}}}


def _notes(unknown: Counter[str], elsewhere: list[str]) -> Iterator[str]:
    if unknown:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(unknown.items()))
        yield f"left out, since no definition of their kind is known: {kinds}"
    if elsewhere:
        yield f"other clusters and repositories are known without credentials: Secrets {', '.join(sorted(elsewhere))}"
