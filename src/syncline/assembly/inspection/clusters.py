"""The state of each cluster of a hub, for commands: acceptance, availability, works, add-ons, requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.assembly.inspection.fleet import REQUEST
from syncline.base.clock import time_or_none
from syncline.control.cache import Cache
from syncline.fleet.conditions import find_condition, is_true
from syncline.fleet.hub.registration.leases import AVAILABLE, CLOCK_SYNCED, CLUSTER_NAME
from syncline.fleet.hub.registration.pending import Pending, pending_requests, stage_of
from syncline.fleet.hub.sets import sets_of
from syncline.fleet.pull.order.annotations import WINDOWS
from syncline.kube.certificates import CertificateError, issued_certificate, validity_of
from syncline.kube.kinds.managedaddons import MANAGED_ADDON
from syncline.kube.kinds.managedclusters import CLUSTER_SET, MANAGED_CLUSTER
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, generation, labels_of, name_of

ADDON: Final = MANAGED_ADDON.group_kind
READ: Final = (
    MANAGED_CLUSTER.group_kind,
    CLUSTER_SET.group_kind,
    MANIFEST_WORK.group_kind,
    ADDON,
    REQUEST.group_kind,
)
"""Kinds that the state of a cluster is made of."""
ROTATED: Final = "ClusterCertificateRotated"
_UNTIL: Final = re.compile(r" to (\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class Counted:
    """Works of a cluster: all, those applied as they are now, and those with a part that failed."""

    total: int = 0
    applied: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class ClusterState:
    """One cluster. None: the kind may not be read."""

    obj: Obj
    sets: tuple[str, ...] | None
    works: Counted | None
    addons: tuple[tuple[str, str], ...] | None
    """Names and states: ``available``, ``degraded``, ``unavailable``, ``unknown``."""
    requests: tuple[Pending, ...] | None
    certificate_until: datetime | None = None
    windows: tuple[tuple[str, str], ...] = ()
    """Its maintenance windows, and those of its sets: who has them, and the text."""

    @property
    def name(self) -> str:
        return name_of(self.obj)

    @property
    def accepted(self) -> bool:
        return bool(dig(self.obj, "spec", "hubAcceptsClient"))

    @property
    def stage(self) -> str:
        """See :func:`~syncline.fleet.hub.registration.pending.stage_of`."""
        return stage_of(self.obj)

    @property
    def available(self) -> Obj:
        return find_condition(dig(self.obj, "status", "conditions") or (), AVAILABLE) or {}

    @property
    def clock_differs(self) -> bool:
        one = find_condition(dig(self.obj, "status", "conditions") or (), CLOCK_SYNCED)
        return one is not None and one.get("status") == "False"

    @property
    def url(self) -> str:
        configs = dig(self.obj, "spec", "managedClusterClientConfigs") or ()
        return str(configs[0].get("url") or "") if configs else ""


def cluster_states(cache: Cache) -> list[ClusterState]:
    """Return the states of all clusters by name."""
    sets = _readable(cache, CLUSTER_SET.group_kind)
    works = _readable(cache, MANIFEST_WORK.group_kind)
    addons = _readable(cache, ADDON)
    requests = _readable(cache, REQUEST.group_kind)
    by_work, by_addon = _by_namespace(works), _by_namespace(addons)
    pending = None if requests is None else pending_requests(requests)
    return [
        ClusterState(
            one,
            None if sets is None else tuple(sorted(name_of(each) for each in sets_of(one, sets))),
            None if works is None else counted(by_work.get(name_of(one), ())),
            None
            if addons is None
            else tuple((name_of(each), addon_state(each)) for each in by_addon.get(name_of(one), ())),
            None if pending is None else tuple(each for each in pending if each.cluster == name_of(one)),
            _certificate_until(one, requests or ()),
            _windows(one, sets or ()),
        )
        for one in cache.objects(MANAGED_CLUSTER.group_kind)
    ]


def _windows(cluster: Obj, sets: Iterable[Obj]) -> tuple[tuple[str, str], ...]:
    owners = (cluster, *sets_of(cluster, sets))
    found = ((f"{one.get('kind')} {name_of(one)}", annotations_of(one).get(WINDOWS)) for one in owners)
    return tuple((owner, text) for owner, text in found if text is not None)


def _readable(cache: Cache, kind: GroupKind) -> list[Obj] | None:
    """Return the objects of a kind; None if it may not be read. A hub without the kind has none."""
    return None if cache.unread(ObjectRef(*kind, "", "")) else cache.objects(kind)


def _by_namespace(objects: Iterable[Obj] | None) -> dict[str, list[Obj]]:
    found: dict[str, list[Obj]] = {}
    for one in objects or ():
        found.setdefault(str(dig(one, "metadata", "namespace")), []).append(one)
    return found


def counted(works: Iterable[Obj]) -> Counted:
    """Count works: a condition of an earlier generation says nothing about what is wanted now."""
    total = applied = failed = 0
    for work in works:
        total += 1
        current = {
            one.get("type"): one.get("status")
            for one in dig(work, "status", "conditions") or ()
            if one.get("observedGeneration") in (None, generation(work))
        }
        applied += current.get("Applied") == "True"
        failed += "False" in (current.get("Applied"), current.get("Available")) or current.get("Degraded") == "True"
    return Counted(total, applied, failed)


def addon_state(addon: Obj) -> str:
    """Return the state of an add-on in one word."""
    conditions = dig(addon, "status", "conditions") or ()
    if is_true(conditions, "Degraded"):
        return "degraded"
    status = (find_condition(conditions, "Available") or {}).get("status")
    return {"True": "available", "False": "unavailable"}.get(str(status), "unknown")


def _certificate_until(cluster: Obj, requests: Iterable[Obj]) -> datetime | None:
    """Return when the certificate of an agent ends: as the agent says, or as the hub issued it."""
    rotated = find_condition(dig(cluster, "status", "conditions") or (), ROTATED) or {}
    said = _UNTIL.search(str(rotated.get("message") or ""))
    found = [time_or_none(f"{said[1]}T{said[2]}Z")] if said else []
    for one in requests:
        if labels_of(one).get(CLUSTER_NAME) != name_of(cluster):
            continue
        pem, _ = issued_certificate(one)
        try:
            found += [validity_of(pem).ends] if pem else []
        except CertificateError:
            continue
    return max((one for one in found if one is not None), default=None)
