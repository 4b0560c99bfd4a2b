"""Report ServiceCIDRs as ready, and protect them while addresses depend on them (Kubernetes ``servicecidrs``)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import format_time, parse_time
from syncline.cluster.builtin.conditions import find, without
from syncline.cluster.builtin.services.addresses import ADDRESS, MANAGED, RANGE
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Patch, Plan, Requeue, SetStatus, set_status
from syncline.kube.objects import (
    GVK,
    Obj,
    ObjectRef,
    dig,
    finalizers,
    is_terminating,
    labels_of,
    meta,
    name_of,
    ref_of,
    resource_version,
    uid_of,
)

PROTECTION = "networking.k8s.io/service-cidr-finalizer"
GRACE_S = 10.0
"""Delay before an unused range is released, so that allocators have seen that it terminates."""
READY = ("True", "", "Kubernetes Service CIDR is ready")
HELD = (
    "False",
    "Terminating",
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Observed:
    """``held``: a Service's address would be left without a range."""

    found: Obj
    held: bool


def _networks(found: Obj) -> list[Network]:
    """Return the networks; malformed ones, which validation refuses, are skipped."""
    made: list[Network] = []
    for text in dig(found, "spec", "cidrs", default=[]):
        try:
            made.append(ipaddress.ip_network(str(text)))
        except ValueError:
            continue
    return made


def _inside(part: Network, whole: Network) -> bool:
    if isinstance(part, ipaddress.IPv4Network) and isinstance(whole, ipaddress.IPv4Network):
        return part.subnet_of(whole)
    if isinstance(part, ipaddress.IPv6Network) and isinstance(whole, ipaddress.IPv6Network):
        return part.subnet_of(whole)
    return False


def _is_held(cache: Snapshot, found: Obj) -> bool:
    mine = _networks(found)
    others = [net for each in cache.objects(RANGE) if name_of(each) != name_of(found) for net in _networks(each)]
    if all(any(_inside(net, other) for other in others) for net in mine):
        return False
    given = (name_of(one) for one in cache.objects(ADDRESS) if MANAGED.items() <= labels_of(one).items())
    for address in (ipaddress.ip_address(name) for name in given):
        if any(address in net for net in mine) and not any(address in net for net in others):
            return True
    return False


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None if the range is deleted, or before ranges and addresses are listed."""
    found = cache.get(ref)
    if found is None or not (cache.has_synced(RANGE) and cache.has_synced(ADDRESS)):
        return None
    return Observed(found, is_terminating(found) and _is_held(cache, found))


def plan(observed: Observed, now: datetime) -> Plan:
    """Protect the range; report readiness; release a terminating one after the delay."""
    found, held = observed.found, finalizers(observed.found)
    if not is_terminating(found):
        if PROTECTION not in held:
            return Plan(((_hold(found, [*held, PROTECTION]),),), why="the range is protected")
        return Plan(status=_said(found, READY, now), why="the range is ready")
    if PROTECTION not in held:
        return Plan(why="others hold the range")
    if observed.held:
        return Plan(status=_said(found, HELD, now), why="addresses depend on the range")
    due = parse_time(meta(found)["deletionTimestamp"]) + timedelta(seconds=GRACE_S)
    if now < due:
        return Plan(outcome=Requeue((due - now).total_seconds(), "the range goes then"), why="the range ends")
    left = [name for name in held if name != PROTECTION]
    return Plan(((_hold(found, left),),), why="no address depends on the range")


def _said(found: Obj, verdict: tuple[str, str, str], now: datetime) -> tuple[SetStatus, ...]:
    old: list[Obj] = dig(found, "status", "conditions", default=[])
    known = find(old, "Ready")
    status, reason, message = verdict
    said: Obj = {"type": "Ready", "status": status, "lastTransitionTime": format_time(now)}
    said |= {"reason": reason, "message": message}
    if known is not None and known.get("status") == status:
        said["lastTransitionTime"] = known["lastTransitionTime"]
    conditions = [*without(old, "Ready"), said]
    return set_status(found, dict(found.get("status") or {}) | {"conditions": conditions}, message)


def _hold(found: Obj, names: list[str]) -> Patch:
    observed = {"uid": uid_of(found), "resourceVersion": resource_version(found)}
    body: Obj = {"metadata": {"finalizers": names or None} | observed}
    return Patch(GVK(RANGE.group, "v1", RANGE.kind), "", name_of(found), body, "addresses depend on it")


def _going(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(one) for one in cache.objects(RANGE) if is_terminating(one))


SERVICE_RANGE_CONTROLLER = Controller(
    name="service-ranges",
    kind=RANGE,
    watches=(Watch(ADDRESS, _going), Watch(RANGE, _going)),
    observe=observe,
    plan=plan,
)
"""Maintains the ranges of Services' addresses."""
