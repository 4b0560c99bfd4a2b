"""Says on the hub for which key and versions this cluster's content is made, and keeps the private key here.

The private keys are in one Secret in the agent's namespace and never leave the cluster. A key is replaced after 90
days; the one before can be used until the next replacement, and the hub seals everything again for the new one.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from syncline.apply.actions import ReadObject
from syncline.apply.outcome import Outcome
from syncline.argo.content.chunks import ContentError
from syncline.argo.content.sealing import PrivateKey, key_bytes
from syncline.base.action import Action
from syncline.base.clock import format_time, time_or_none
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Create, Patch, Plan, Requeue, Result
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.kube.kinds.content import AGENT_NAMESPACE, KEY_SECRET, MAX_API_VERSIONS, TARGET, TARGET_NAME
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, annotations_of, dig, resource_version

TARGETS: Final = TARGET.group_kind
SECRET, NAMESPACE = GVK("", "v1", "Secret"), GVK("", "v1", "Namespace")
CRDS: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
ROTATED: Final = "syncline.dev/rotated-at"
"""Annotation of the Secret: since when its current key is the current one."""
ROTATE_AFTER: Final = timedelta(days=90)
LOOK_S: Final = 3600.0
SETTLED_S: Final = 5.0
"""Seconds from a change of the cluster's definitions to the report of its versions."""


@dataclass(frozen=True)
class Targeted:
    """``read``: what the cluster answered about namespace and Secret; None: not asked yet."""

    cluster: str
    target: Obj | None
    kube_version: str
    api_versions: tuple[str, ...]
    fresh: bytes = field(repr=False)
    """32 random bytes, if a key is due."""
    read: tuple[Outcome, Outcome] | None = field(default=None, repr=False)


def target_controller(link: Link, draw: Callable[[], bytes]) -> Controller[Targeted]:
    """Return the controller. Where the hub does not serve the kind, or does not let the agent read it, it does
    nothing."""

    def observe(hub: Snapshot, ref: ObjectRef) -> Targeted | None:
        spoke = link.spoke()
        if ref.name != link.cluster or spoke is None or hub.get(ref) is None or not hub.has_synced(TARGETS):
            return None
        target = hub.get(ObjectRef(*TARGETS, link.cluster, TARGET_NAME))
        mapper = spoke.mapper
        served = {text for one in mapper.all() for text in (one.api_version, f"{one.api_version}/{one.kind}")}
        return Targeted(link.cluster, target, mapper.version, tuple(sorted(served)[:MAX_API_VERSIONS]), draw())

    def of_any(_obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*MANAGED_CLUSTER.group_kind, "", link.cluster),)

    return Controller(
        name="content-target",
        kind=MANAGED_CLUSTER.group_kind,
        predicate=comes_or_goes,
        watches=(
            Watch(TARGETS, of_any, differ(lambda one: one.get("spec"))),
            Watch(CRDS, of_any, comes_or_goes, cluster=SPOKE),
        ),
        reaches=lambda _cluster, _hub: of_any({}, _hub),
        observe=observe,
        plan=plan_target,
        settle=settle_target,
        debounce_s=SETTLED_S,
    )


def plan_target(seen: Targeted, _now: datetime) -> Plan:
    """Plan the look at the key; what follows is :func:`settle_target`'s."""
    why = "the key for which this cluster's content is sealed"
    reads = (
        ReadObject(ObjectRef(*NAMESPACE.group_kind, "", AGENT_NAMESPACE), NAMESPACE, why, cluster=SPOKE),
        ReadObject(ObjectRef(*SECRET.group_kind, AGENT_NAMESPACE, KEY_SECRET), SECRET, why, cluster=SPOKE),
    )
    return Plan((reads,), Requeue(LOOK_S, why, background=True), why)


def settle_target(
    seen: Targeted, _plan: Plan, results: tuple[Result, ...], now: datetime
) -> tuple[Targeted, Plan] | None:
    """Return what makes or replaces the key, and what tells the hub; None if nothing is left to do."""
    values = [one.value for one in results if isinstance(one.action, ReadObject)]
    if len(values) != 2 or not all(isinstance(one, Outcome) and (one.ok or one.not_found) for one in values):
        return None
    space, secret = values
    steps: list[tuple[Action, ...]] = []
    if space.not_found:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENT_NAMESPACE}}
        steps.append((Create(made, "the agent's own namespace", cluster=SPOKE),))
    keys = keys_of(secret.obj)
    since = time_or_none(annotations_of(secret.obj or {}).get(ROTATED))
    if not keys or since is None or now - since >= ROTATE_AFTER:
        fresh = PrivateKey(seen.fresh)
        steps.append((_kept(secret.obj, fresh, keys[:1], now),))
        keys = [fresh, *keys[:1]]
    steps += [(one,) for one in _said(seen, keys)]
    why = "the hub knows for which key and versions content is made"
    return (seen, Plan(tuple(steps), Requeue(LOOK_S, why, background=True), why)) if steps else None


def keys_of(secret: Obj | None) -> list[PrivateKey]:
    """Return the keys of the Secret, the current one first; what is no key is left out."""
    found = []
    for name in ("current", "previous"):
        try:
            found.append(PrivateKey(key_bytes(dig(secret or {}, "data", name))))
        except ContentError:
            continue
    return found


def _kept(secret: Obj | None, fresh: PrivateKey, before: list[PrivateKey], now: datetime) -> Create | Patch:
    texts = {"current": fresh, **({"previous": before[0]} if before else {})}
    data: Mapping[str, str] = {name: base64.b64encode(key.raw).decode() for name, key in texts.items()}
    annotations = {ROTATED: format_time(now)}
    if secret is None:
        metadata: Obj = {"name": KEY_SECRET, "namespace": AGENT_NAMESPACE, "annotations": annotations}
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": dict(data)}
        return Create(made, "a key of this cluster", cluster=SPOKE)
    body = {"metadata": {"annotations": annotations, "resourceVersion": resource_version(secret)}, "data": dict(data)}
    return Patch(SECRET, AGENT_NAMESPACE, KEY_SECRET, body, "the key is replaced", cluster=SPOKE)


def _said(seen: Targeted, keys: list[PrivateKey]) -> list[Create | Patch]:
    public = [one.public for one in keys]
    listed = [{"id": one.id, "publicKey": base64.b64encode(one.raw).decode()} for one in public]
    spec = {"keys": listed, "kubeVersion": seen.kube_version, "apiVersions": list(seen.api_versions)}
    if seen.target is None:
        metadata = {"name": TARGET_NAME, "namespace": seen.cluster}
        made = {"apiVersion": TARGET.api_version, "kind": TARGET.kind, "metadata": metadata, "spec": spec}
        return [Create(made, "the hub does not know the key")]
    if seen.target.get("spec") == spec:
        return []
    body = {"metadata": {"resourceVersion": resource_version(seen.target)}, "spec": spec}
    return [Patch(TARGET, seen.cluster, TARGET_NAME, body, "the key or the versions changed")]
