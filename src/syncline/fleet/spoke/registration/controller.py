"""The registration half of an agent: :class:`Registration` connects the planners with the hub and the cluster; it
decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from syncline.base.action import Handler
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.fleet.spoke.registration.beats import Beat, RenewLease, answers, plan_beat
from syncline.fleet.spoke.registration.claims import Claims, exposed
from syncline.fleet.spoke.registration.namespaces import Observed as ObservedNamespaces
from syncline.fleet.spoke.registration.namespaces import hub_label, plan_namespaces, settle_namespaces
from syncline.fleet.spoke.registration.probing import Prober, Renewer
from syncline.fleet.spoke.registration.resources import Resources, resources_of
from syncline.fleet.spoke.registration.rotation import (
    Credentials,
    Rotate,
    Rotating,
    plan_rotation,
    settle_rotation,
)
from syncline.fleet.spoke.registration.rotation import Observed as ObservedRotation
from syncline.fleet.spoke.registration.status import Observed, Probe, plan_status, settle_status
from syncline.kube.certificates import CertificateError, validity_of
from syncline.kube.kinds.managedclusters import CLUSTER_CLAIM, MANAGED_CLUSTER
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, is_terminating, labels_of, name_of

CLUSTERS: Final = MANAGED_CLUSTER.group_kind
CLAIMS: Final = CLUSTER_CLAIM.group_kind
PROPERTIES: Final = GroupKind("about.k8s.io", "ClusterProperty")
NODES: Final = GroupKind("", "Node")
NAMESPACES: Final = GroupKind("", "Namespace")

_cluster_differs = differ(lambda one: one.get("spec"), lambda one: one.get("status"), annotations_of, is_terminating)
_node_differs = differ(
    lambda one: dig(one, "status", "capacity"),
    lambda one: dig(one, "status", "allocatable"),
    lambda one: dig(one, "spec", "unschedulable"),
)
_claim_differs = differ(labels_of, lambda one: one.get("spec"))
_space_differs = differ(labels_of)


@dataclass(frozen=True, slots=True)
class RegistrationSettings:
    """``custom_claims``: the most claims besides reserved ones; ``reserved_suffixes``: of names that count as reserved;
    ``expiration_s``: the wanted lifetime of certificates, 0: the hub's."""

    custom_claims: int = 20
    reserved_suffixes: tuple[str, ...] = ()
    expiration_s: int = 0


@dataclass(slots=True)
class Registration:
    """Controllers and handlers of one agent. What it remembers (the last probe, the last renewal, a request under way)
    may be lost. ``credentials`` None: its certificate is not rotated."""

    link: Link
    now: Callable[[], datetime]
    credentials: Credentials | None = None
    settings: RegistrationSettings = field(default_factory=RegistrationSettings)
    _prober: Prober = field(init=False)
    _renewer: Renewer = field(init=False)
    _rotating: Rotating | None = field(init=False, default=None)
    _draw: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        link = self.link
        self._prober, self._renewer = Prober(self.now), Renewer(self.now, link.draw)
        self._draw = link.draw()
        if self.credentials is not None:
            self._rotating = Rotating(link.cluster, link.agent, self.credentials, self.settings.expiration_s)

    def handlers(self) -> Mapping[type, Handler]:
        """Return the handlers of its actions, at home."""
        found: dict[type, Handler] = {Probe: self._prober, RenewLease: self._renewer}
        if self._rotating is not None:
            found[Rotate] = self._rotating
        return found

    def controllers(self) -> tuple[Controller[Any], ...]:
        made: tuple[Controller[Any], ...] = (self._status(), self._beats(), self._namespaces())
        return made if self._rotating is None else (*made, self._rotation(self._rotating))

    # -- one controller each -------------------------------------------------------------------------------------

    def _status(self) -> Controller[Observed]:
        def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
            cluster = self._own(cache, ref)
            if cluster is None:
                return None
            spoke, answered = self.link.spoke(), answers(self._renewer.last, cluster)
            if spoke is None:
                return Observed(cluster, self._prober.health, answered=answered)
            return Observed(cluster, self._prober.health, _resources(spoke), self._claims(spoke), answered)

        return Controller(
            name="cluster-status",
            kind=CLUSTERS,
            predicate=_cluster_differs,
            watches=(
                Watch(NODES, self._key, _node_differs, SPOKE),
                Watch(CLAIMS, self._key, _claim_differs, SPOKE),
                Watch(PROPERTIES, self._key, _claim_differs, SPOKE),
            ),
            reaches=self._reached,
            observe=observe,
            plan=plan_status,
            settle=settle_status,
        )

    def _beats(self) -> Controller[Beat]:
        def observe(cache: Snapshot, ref: ObjectRef) -> Beat | None:
            cluster = self._own(cache, ref)
            return None if cluster is None else Beat(cluster, self._renewer.last)

        return Controller(
            name="cluster-beats", kind=CLUSTERS, predicate=_cluster_differs, observe=observe, plan=plan_beat
        )

    def _namespaces(self) -> Controller[ObservedNamespaces]:
        label = hub_label(self.link.hub_url)

        def observe(cache: Snapshot, ref: ObjectRef) -> ObservedNamespaces | None:
            cluster, spoke = self._own(cache, ref), self.link.spoke()
            if cluster is None or spoke is None or not spoke.has_synced(NAMESPACES):
                return None
            return ObservedNamespaces(cluster, label, {name_of(one): one for one in spoke.objects(NAMESPACES)})

        return Controller(
            name="cluster-namespaces",
            kind=CLUSTERS,
            predicate=_cluster_differs,
            watches=(Watch(NAMESPACES, self._key, _space_differs, SPOKE),),
            reaches=self._reached,
            observe=observe,
            plan=plan_namespaces,
            settle=settle_namespaces,
        )

    def _rotation(self, rotating: Rotating) -> Controller[ObservedRotation]:
        def observe(cache: Snapshot, ref: ObjectRef) -> ObservedRotation | None:
            cluster = self._own(cache, ref)
            if cluster is None or self.credentials is None:
                return None
            try:
                validity = validity_of(self.credentials.certificate())
            except CertificateError:
                return None
            return ObservedRotation(cluster, validity, self._draw, rotating.asked is not None, rotating.condition)

        return Controller(
            name="certificate-rotation",
            kind=CLUSTERS,
            predicate=_cluster_differs,
            observe=observe,
            plan=plan_rotation,
            settle=settle_rotation,
        )

    # -- what they share -----------------------------------------------------------------------------------------

    def _own(self, cache: Snapshot, ref: ObjectRef) -> Obj | None:
        return cache.get(ref) if ref.name == self.link.cluster else None

    def _key(self, _obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (self.link.cluster_ref(*CLUSTERS),)

    def _reached(self, cluster: str, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (self.link.cluster_ref(*CLUSTERS),) if cluster == SPOKE else ()

    def _claims(self, spoke: Snapshot) -> Claims | None:
        """Return the claims; None if they cannot be read, so that the hub keeps what it knows."""
        if any(spoke.unread(ObjectRef(*kind, "", "")) for kind in (CLAIMS, PROPERTIES)):
            return None
        most, suffixes = self.settings.custom_claims, self.settings.reserved_suffixes
        return exposed(spoke.objects(CLAIMS), spoke.objects(PROPERTIES), most=most, suffixes=suffixes)


def _resources(spoke: Snapshot) -> Resources | None:
    return resources_of(spoke.objects(NODES)) if spoke.has_synced(NODES) else None
