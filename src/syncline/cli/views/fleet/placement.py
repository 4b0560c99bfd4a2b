"""Formats Placements: lists, who is selected and why, and what a change would do. Values in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from syncline.assembly.inspection.fleet import Move, PlacementChange, PlacementReport
from syncline.base.clock import time_or_none
from syncline.cli.frame.output import table
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.placement.explaining import Explained
from syncline.fleet.hub.placement.selectors import PREDICATE
from syncline.fleet.hub.placement.status import MISCONFIGURED, SATISFIED
from syncline.fleet.hub.placement.tolerations import TAINT_TOLERATION
from syncline.kube.objects import Obj, ObjectRef, dig, name_of, namespace_of
from syncline.views.texts import age

HEADERS = ("NAMESPACE", "NAME", "SUCCEEDED", "REASON", "SELECTED", "AGE")
WIDE_HEADERS = ("SETS", "WANTED", "GROUPS", "MESSAGE")
FILTERS = (("ClusterSets", "SETS"), (PREDICATE, "PREDICATE"), (TAINT_TOLERATION, "TAINTS"))
"""The filters in their order, and their columns."""
MAX_CLUSTERS = 200
"""Clusters that a table shows; ``-o json`` has all."""
MAX_NAMED = 20
"""Names in a line."""


def said(placement: Obj, kind: str) -> Obj:
    """Return a condition of a Placement; empty without one."""
    return find_condition(dig(placement, "status", "conditions") or (), kind) or {}


def placement_rows(found: Iterable[Obj], now: datetime, *, wide: bool) -> str:
    """Return the table of ``placement list``."""
    rows = []
    for one in found:
        satisfied, wrong = said(one, SATISFIED), said(one, MISCONFIGURED)
        shown = wrong if wrong.get("status") == "True" else satisfied
        row = [
            namespace_of(one),
            name_of(one),
            str(satisfied.get("status") or "Unknown"),
            str(shown.get("reason") or "NotScheduledYet"),
            str(dig(one, "status", "numberOfSelectedClusters") or 0),
            age(time_or_none(dig(one, "metadata", "creationTimestamp")), now),
        ]
        if wide:
            wanted = dig(one, "spec", "numberOfClusters")
            groups = dig(one, "status", "decisionGroups") or ()
            row += [
                ",".join(dig(one, "spec", "clusterSets") or ("(all bound)",)),
                "all" if wanted is None else str(wanted),
                str(len(groups)),
                str(shown.get("message") or " "),
            ]
        rows.append(row)
    return table([*HEADERS, *(WIDE_HEADERS if wide else ())], rows)


# -- one Placement ---------------------------------------------------------------------------------------------------


def describe_report(report: PlacementReport, *, only: Sequence[str] = ()) -> str:
    """Return the text of ``placement explain``: what is selected from, then each cluster with filters, scores, rank and
    the reason. ``only``: show these clusters alone."""
    lines = _header(report)
    shown = [one for one in report.clusters if not only or one.cluster in only]
    if shown:
        lines += ["", _clusters(report, shown[:MAX_CLUSTERS])]
    if len(shown) > MAX_CLUSTERS:
        lines.append(f"… and {len(shown) - MAX_CLUSTERS} more (-o json shows all)")
    return "\n".join([*lines, *_groups(report), *_notes(report)])


def _header(report: PlacementReport) -> list[str]:
    placement, found = report.placement, report.found
    lines = [f"Placement {namespace_of(placement)}/{name_of(placement)}: {report.plan.why}"]
    if found is None:
        return lines
    wanted = dig(placement, "spec", "numberOfClusters")
    sets = ", ".join(found.eligible) or "none"
    bound = "" if found.bound == found.eligible else f" (bound to the namespace: {', '.join(found.bound) or 'none'})"
    lines.append(f"  cluster sets:           {sets}{bound}")
    lines.append(f"  numberOfClusters:       {'all that match' if wanted is None else wanted}")
    for kind in (SATISFIED, MISCONFIGURED):
        one = said(placement, kind)
        if one:
            lines.append(f"  {kind + ':':<24}{one.get('status')} {one.get('reason')}: {one.get('message')}")
    return lines


def _clusters(report: PlacementReport, shown: Sequence[Explained]) -> str:
    rank = ranks(report)
    weights = [(one.name, one.weight) for one in report.found.prioritizers] if report.found else []
    headers = ["CLUSTER", "SELECTED", *(title for _, title in FILTERS)]
    headers += [f"{name.upper()}*{weight}" for name, weight in weights]
    headers += ["SCORE", "RANK", "WHY"]
    rows = []
    for one in shown:
        scores = {name: score for name, _, score in one.scores}
        row = [one.cluster, "yes" if one.selected else "no", *filter_results(one).values()]
        row += [str(scores[name]) if name in scores else "-" for name, _ in weights]
        row += ["-" if one.total is None else str(one.total), str(rank.get(one.cluster, "-"))]
        rows.append([*row, "; ".join(one.why) or "-"])
    return table(headers, rows)


def ranks(report: PlacementReport) -> dict[str, int]:
    """Return the place of each cluster that passed all filters, from 1, by score and then by name."""
    totals = report.found.totals if report.found else {}
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    return {name: place for place, name in enumerate(ordered, 1)}


def filter_results(one: Explained) -> dict[str, str]:
    """Return ``pass``, ``fail`` or ``-`` (not looked at) of each filter."""
    names = [name for name, _ in FILTERS]
    if one.by not in names:
        looked_at = one.total is not None or one.selected
        return dict.fromkeys(names, "pass") if looked_at else {**dict.fromkeys(names, "-"), names[0]: "pass"}
    at = names.index(one.by)
    return {name: "pass" if place < at else "fail" if place == at else "-" for place, name in enumerate(names)}


def _groups(report: PlacementReport) -> list[str]:
    if len(report.groups) < 2 and not any(one.name for one in report.groups):
        return []
    rows = [(str(index), one.name or " ", _names(one.clusters)) for index, one in enumerate(report.groups)]
    return ["", table(("GROUP", "NAME", "CLUSTERS"), rows)]


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more or "none"


def _notes(report: PlacementReport) -> list[str]:
    if report.found is None:
        return []
    lines = []
    if report.frozen:
        lines.append(f"the annotation freezes the decisions; they name {_names(report.before)}")
    elif report.before != report.selected:
        lines.append(
            f"the PlacementDecisions name {_names(report.before)} and not yet {_names(report.selected)}: "
            "the hub has not written them; does its role `hub` run?"
        )
    if report.found.requeue_at is not None:
        lines.append(f"looked at again at {report.found.requeue_at:%Y-%m-%dT%H:%M:%SZ}, when a toleration ends")
    return ["", *lines] if lines else []


def report_obj(report: PlacementReport) -> Obj:
    """Return a report for ``-o json``."""
    found, rank = report.found, ranks(report)
    return {
        "placement": name_of(report.placement),
        "namespace": namespace_of(report.placement),
        "why": report.plan.why,
        "frozen": report.frozen,
        "bound": list(found.bound) if found else [],
        "eligible": list(found.eligible) if found else [],
        "decided": list(report.before),
        "selected": list(report.selected),
        "unscheduled": found.unscheduled if found else 0,
        "conditions": dig(report.placement, "status", "conditions") or [],
        "groups": [{"name": one.name, "clusters": list(one.clusters)} for one in report.groups],
        "clusters": [
            {
                "name": one.cluster,
                "selected": one.selected,
                "rank": rank.get(one.cluster),
                "score": one.total,
                "filters": filter_results(one),
                "scores": [{"name": name, "weight": weight, "score": score} for name, weight, score in one.scores],
                "by": one.by,
                "why": list(one.why),
            }
            for one in report.clusters
        ],
    }


# -- a change --------------------------------------------------------------------------------------------------------


def describe_change(change: PlacementChange) -> str:
    """Return the text of ``placement plan`` about one Placement."""
    report = change.report
    lines = [f"Placement {namespace_of(report.placement)}/{name_of(report.placement)}: {report.plan.why}"]
    moves = [("+", one) for one in change.comes] + [("-", one) for one in change.goes]
    if moves:
        width = max(len(one.cluster) for _, one in moves)
        lines += ["", *(_move(mark, one, width) for mark, one in moves[:MAX_CLUSTERS])]
        lines += [f"  … and {len(moves) - MAX_CLUSTERS} more"] if len(moves) > MAX_CLUSTERS else []
    if change.stays:
        lines.append(f"    {len(change.stays)} stay: {_names(change.stays)}")
    lines += _groups(report)
    lines += ["", *(_effect(one, change) for one in change.users)] if change.users and change.changes else []
    if report.frozen:
        lines += ["", "frozen: an annotation keeps the decisions as they are"]
    return "\n".join([*lines, "", f"Plan: {_summary(change)}"])


def _move(mark: str, one: Move, width: int) -> str:
    return f"  {mark} {one.cluster:<{width}}  {one.why}".rstrip()


def _effect(user: ObjectRef, change: PlacementChange) -> str:
    parts = [f"sends a work to {_names([one.cluster for one in change.comes])}"] if change.comes else []
    parts += [f"deletes its work of {_names([one.cluster for one in change.goes])}"] if change.goes else []
    return f"{user.kind} {user.namespace}/{user.name} {' and '.join(parts)}"


def _summary(change: PlacementChange) -> str:
    if change.report.found is None or change.report.plan.status_found.failed:
        return f"blocked: {change.report.plan.why}"
    counts = ((len(change.comes), "to come"), (len(change.goes), "to go"), (len(change.stays), "to stay"))
    shown = [f"{count} {word}" for count, word in counts if count]
    return (
        ("; ".join(shown) or "no cluster") if change.changes else f"nothing changes ({shown[0] if shown else 'none'})"
    )


def change_obj(change: PlacementChange) -> Obj:
    """Return a change for ``-o json``."""
    return {
        "placement": name_of(change.report.placement),
        "namespace": namespace_of(change.report.placement),
        "why": change.report.plan.why,
        "frozen": change.report.frozen,
        "comes": [{"name": one.cluster, "why": one.why} for one in change.comes],
        "goes": [{"name": one.cluster, "why": one.why} for one in change.goes],
        "stays": list(change.stays),
        "groups": [{"name": one.name, "clusters": list(one.clusters)} for one in change.report.groups],
        "users": [str(one) for one in change.users],
    }
