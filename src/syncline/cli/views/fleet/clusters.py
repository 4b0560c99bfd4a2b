"""Formats the clusters of a hub: the fleet in one table, one cluster, cluster sets, requests. Values in, text out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from syncline.assembly.inspection.clusters import ClusterState, Counted
from syncline.base.clock import format_time, time_or_none
from syncline.cli.frame.output import table
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.registration.leases import NODES_UPDATING
from syncline.fleet.hub.registration.pending import Pending
from syncline.fleet.hub.sets import BY_LABELS, EXCLUSIVE, SetError, members
from syncline.fleet.pull.order.annotations import wave_of_cluster
from syncline.fleet.pull.order.windows import judge_windows
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of
from syncline.views.texts import age

HEADERS = (
    "NAME",
    "ACCEPTED",
    "JOINED",
    "AVAILABLE",
    "SINCE",
    "VERSION",
    "SETS",
    "TAINTS",
    "WORKS",
    "ADD-ONS",
    "REQUEST",
)
WIDE_HEADERS = ("URL", "CERTIFICATE", "AGE", "MESSAGE")
UNREAD = "?"
"""A cell whose objects may not be read."""
MAX_LISTED = 20
OWN_TAINTS = "cluster.open-cluster-management.io/"


def fleet_table(found: Sequence[ClusterState], now: datetime, *, wide: bool) -> str:
    """Return the table of ``syncline fleet``: one line for each cluster."""
    rows = []
    for one in found:
        joined = {"joined": "yes", "leaving": "leaving"}.get(one.stage, "no")
        available = one.available
        since = time_or_none(available.get("lastTransitionTime"))
        row = [
            one.name,
            "yes" if one.accepted else "denied" if one.stage == "denied" else "no",
            joined,
            str(available.get("status") or "-"),
            age(since, now) if since else "-",
            str(dig(one.obj, "status", "version", "kubernetes") or "-"),
            UNREAD if one.sets is None else ",".join(one.sets) or "-",
            ",".join(taint_text(each) for each in dig(one.obj, "spec", "taints") or ()) or "-",
            works_text(one.works),
            _addons(one),
            _requests(one, now),
        ]
        if wide:
            until = one.certificate_until
            row += [
                one.url or "-",
                f"until {format_time(until)}" if until else "-",
                age(time_or_none(dig(one.obj, "metadata", "creationTimestamp")), now),
                str(available.get("message") or "-"),
            ]
        rows.append(row)
    return table([*HEADERS, *(WIDE_HEADERS if wide else ())], rows)


def taint_text(taint: Obj) -> str:
    """Return a taint as short as it is clear: those of the hub without their prefix."""
    key = str(taint.get("key") or "").removeprefix(OWN_TAINTS)
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{key}{value}:{taint.get('effect')}"


def works_text(works: Counted | None) -> str:
    """Return ``3/4 (1 failed)``: applied of all."""
    if works is None:
        return UNREAD
    failed = f" ({works.failed} failed)" if works.failed else ""
    return f"{works.applied}/{works.total}{failed}" if works.total else "-"


def _addons(one: ClusterState) -> str:
    if one.addons is None:
        return UNREAD
    if not one.addons:
        return "-"
    ready = sum(state == "available" for _, state in one.addons)
    bad = [f"{name} {state}" for name, state in one.addons if state != "available"]
    return f"{ready}/{len(one.addons)}" + (f" ({', '.join(bad[:3])}{', …' if len(bad) > 3 else ''})" if bad else "")


def _requests(one: ClusterState, now: datetime) -> str:
    if one.requests is None:
        return UNREAD
    return ", ".join(f"{each.name} {waiting(each, now)}" for each in one.requests[:2]) or "-"


def waiting(request: Pending, now: datetime) -> str:
    """Return since when a request waits, and when Kubernetes deletes it."""
    left = f", deleted in {age(now, request.until)}" if request.until else ""
    return f"pending for {age(request.since, now)}{left}"


def fleet_summary(found: Sequence[ClusterState]) -> str:
    """Return one line of counts, and what waits for a person."""
    stages = Counter(one.stage for one in found)
    status = Counter(str(one.available.get("status")) for one in found if one.accepted)
    parts = [f"{status['True']} available"]
    parts += [
        f"{status[key]} {word}" for key, word in (("False", "unavailable"), ("Unknown", "unreachable")) if status[key]
    ]
    parts += [f"{stages[one]} {one}" for one in ("accepted", "pending", "denied", "leaving") if stages[one]]
    asking = [
        one.name for one in found if one.stage == "pending" or any(not each.refused for each in one.requests or ())
    ]
    count = f"{len(found)} cluster{'' if len(found) == 1 else 's'}"
    step = f"; to be accepted: syncline cluster accept {' '.join(asking[:5])}" if asking else ""
    return f"{count}: {', '.join(parts)}{step}"


def fleet_obj(one: ClusterState) -> Obj:
    """Return one cluster for ``-o json``; null: it may not be read."""
    works = (
        None
        if one.works is None
        else {"total": one.works.total, "applied": one.works.applied, "failed": one.works.failed}
    )
    return {
        "name": one.name,
        "stage": one.stage,
        "accepted": one.accepted,
        "available": {key: one.available.get(key) for key in ("status", "reason", "message", "lastTransitionTime")},
        "clockDiffers": one.clock_differs,
        "version": dig(one.obj, "status", "version", "kubernetes") or "",
        "url": one.url,
        "sets": None if one.sets is None else list(one.sets),
        "taints": dig(one.obj, "spec", "taints") or [],
        "works": works,
        "addons": None if one.addons is None else [{"name": name, "state": state} for name, state in one.addons],
        "requests": None if one.requests is None else [request_obj(each) for each in one.requests],
        "certificateUntil": format_time(one.certificate_until) if one.certificate_until else None,
    }


def request_obj(one: Pending) -> Obj:
    """Return a request for ``-o json``."""
    return {
        "name": one.name,
        "cluster": one.cluster,
        "agent": one.agent,
        "user": one.user,
        "since": format_time(one.since) if one.since else None,
        "deletedAt": format_time(one.until) if one.until else None,
        "passedOver": one.refused,
    }


def describe_cluster(one: ClusterState, now: datetime, applications: str = "") -> str:
    """Return the text of ``cluster get`` about a cluster of the hub. ``applications``: those that it pulls, in one
    line; empty: none are known."""
    lines = [
        f"Name:          {one.name}",
        f"State:         {one.stage}{'; its clock differs from that of the hub' if one.clock_differs else ''}",
        f"Server:        {one.url or '-'}",
        f"Version:       {dig(one.obj, 'status', 'version', 'kubernetes') or '-'}",
        f"Cluster sets:  {UNREAD if one.sets is None else ', '.join(one.sets) or '-'}",
        f"Works:         {works_text(one.works)}",
        *([f"Applications:  {applications}"] if applications else []),
        f"Add-ons:       {_addons(one)}",
    ]
    if one.certificate_until:
        lines.append(f"Certificate:   until {format_time(one.certificate_until)}")
    lines += _order(one, now)
    for title, pairs in (
        ("Labels", labels_of(one.obj)),
        ("Claims", _claims(one.obj)),
        ("Capacity", _capacity(one.obj)),
    ):
        shown = [f"{key}={value}" for key, value in sorted(pairs.items())]
        more = f", … {len(shown) - MAX_LISTED} more" if len(shown) > MAX_LISTED else ""
        lines += [f"{title + ':':<14} {', '.join(shown[:MAX_LISTED])}{more}"] if shown else []
    for taint in dig(one.obj, "spec", "taints") or ():
        added = time_or_none(taint.get("timeAdded"))
        lines.append(f"Taint:         {taint_text(taint)}{f', for {age(added, now)}' if added else ''}")
    for request in one.requests or ():
        said = f"; passed over: {request.refused}" if request.refused else ""
        lines.append(f"Request:       {request.name} of {request.user}, {waiting(request, now)}{said}")
    conditions = dig(one.obj, "status", "conditions") or ()
    if conditions:
        rows = [
            (
                str(each.get("type")),
                str(each.get("status")),
                str(each.get("reason") or ""),
                age(time_or_none(each.get("lastTransitionTime")), now),
                str(each.get("message") or ""),
            )
            for each in conditions
        ]
        lines += ["", table(("CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"), rows)]
    return "\n".join(lines)


def _order(one: ClusterState, now: datetime) -> list[str]:
    """Return what the order over clusters reads of a cluster: wave, maintenance windows, nodes."""
    wave, problem = wave_of_cluster(one.obj)
    lines = [f"Wave:          {problem or wave}"] if problem or wave is not None else []
    if one.windows:
        closed = judge_windows(one.windows, now)
        owners = ", ".join(owner for owner, _ in one.windows)
        until = f", until {format_time(closed.until)}" if closed is not None and closed.until else ""
        lines.append(f"Windows:       {f'{closed.why}{until}' if closed else f'those of {owners} permit changes now'}")
    nodes = find_condition(dig(one.obj, "status", "conditions") or (), NODES_UPDATING) or {}
    if nodes.get("status") == "True":
        since = age(time_or_none(nodes.get("lastTransitionTime")), now)
        lines.append(f"Nodes:         {nodes.get('message') or 'they are being updated'}, for {since}")
    return lines


def _claims(obj: Obj) -> dict[str, str]:
    return {str(one.get("name")): str(one.get("value")) for one in dig(obj, "status", "clusterClaims") or ()}


def _capacity(obj: Obj) -> dict[str, str]:
    return {str(key): str(value) for key, value in (dig(obj, "status", "capacity") or {}).items()}


# -- requests and sets -----------------------------------------------------------------------------------------------


def request_table(found: Sequence[Pending], now: datetime) -> str:
    """Return the pending requests with what acceptance thinks of them."""
    rows = [
        (one.cluster, one.name, one.agent or "-", one.user, age(one.since, now), one.refused or "would be approved")
        for one in found
    ]
    return table(("CLUSTER", "REQUEST", "AGENT", "ASKED BY", "AGE", "WHAT HAPPENS"), rows)


def set_rows(sets: Iterable[Obj], clusters: Sequence[Obj], bindings: Sequence[Obj], *, wide: bool) -> str:
    """Return the table of ``cluster sets``."""
    rows = []
    for one in sets:
        bound = [binding for binding in bindings if name_of(binding) == name_of(one)]
        row = [name_of(one), selector_text(one), *_members(one, clusters)]
        row.append(",".join(sorted(namespace_of(binding) for binding in bound)) or "-")
        if not wide:
            del row[3]
        rows.append(row)
    return table(("NAME", "SELECTOR", "CLUSTERS", *(("MEMBERS",) if wide else ()), "BOUND TO"), rows)


def _members(one: Obj, clusters: Sequence[Obj]) -> tuple[str, str]:
    try:
        found = [name_of(each) for each in members(one, clusters)]
    except SetError as error:
        return "0", f"invalid: {error}"
    return str(len(found)), ",".join(found[:MAX_LISTED]) + ("…" if len(found) > MAX_LISTED else "") or "-"


def selector_text(cluster_set: Obj) -> str:
    """Return what selects the members of a set."""
    spec = dig(cluster_set, "spec", "clusterSelector") or {}
    if spec.get("selectorType") != BY_LABELS:
        return f"label clusterset={name_of(cluster_set)}" if spec.get("selectorType") in (None, "", EXCLUSIVE) else "?"
    labels = spec.get("labelSelector") or {}
    parts = [f"{key}={value}" for key, value in (labels.get("matchLabels") or {}).items()]
    for each in labels.get("matchExpressions") or ():
        values = f" ({','.join(each.get('values') or ())})" if each.get("values") else ""
        parts.append(f"{each.get('key')} {each.get('operator')}{values}")
    return ", ".join(parts) or "every cluster"
