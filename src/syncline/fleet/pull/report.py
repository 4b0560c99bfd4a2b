"""The MulticlusterApplicationSetReport of each ApplicationSet (reference ocm-pull-model §11).

It joins what works say of each cluster with what a collector found out: resources, and the conditions of errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from syncline.base.action import Action
from syncline.control.plan import Create, Delete, Plan, Replace
from syncline.fleet.pull import names
from syncline.fleet.pull.status import feedback_of
from syncline.kube.kinds.applicationfleet import REPORT
from syncline.kube.objects import Obj, annotations_of, labels_of, name_of, namespace_of
from syncline.kube.yaml.loading import YamlError, load

SetKey = tuple[str, str]
"""Namespace and name of an ApplicationSet."""
_ENTRY = (
    "cluster",
    "syncStatus",
    "healthStatus",
    "operationStateStartedAt",
    "operationStatePhase",
    "syncRevision",
    "app",
)
_RESOURCE = ("apiVersion", "kind", "name", "namespace")
_MAX_LABEL = 63


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collector found out about the Applications of a set."""

    resources: tuple[Obj, ...] = ()
    conditions: tuple[Obj, ...] = ()
    """Entries of clusters with their errors and warnings."""


@dataclass(frozen=True, slots=True)
class ReportsObserved:
    """Complete lists: a set that is not among ``sets`` is gone."""

    sets: frozenset[SetKey]
    works: Sequence[Obj]
    reports: Sequence[Obj]
    collected: Mapping[SetKey, Collected]
    parts: Sequence[Obj] = ()
    """Further parts of the only report."""
    entries: Mapping[SetKey, Sequence[Obj]] = field(default_factory=dict)
    """What the works of a set say, by cluster and name of the work, where that was read before (:func:`entry_of`)."""


def collected_of(text: str) -> Collected:
    """Read a collector's file, a report in YAML. One that can't be read says nothing, as upstream."""
    try:
        value = load(text)
    except YamlError:
        return Collected()
    statuses = value.get("statuses") if isinstance(value, dict) else None
    if not isinstance(statuses, dict):
        return Collected()
    resources = tuple(_strings(one, _RESOURCE) for one in _dicts(statuses.get("resources")))
    conditions = tuple(
        {
            **_strings(one, _ENTRY),
            "conditions": [_strings(each, ("type", "message")) for each in _dicts(one.get("conditions"))],
        }
        for one in _dicts(statuses.get("clusterConditions"))
    )
    return Collected(resources, conditions)


def _dicts(value: Any) -> list[Obj]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _strings(value: Obj, keys: Iterable[str]) -> Obj:
    """The fields as strings: a plain YAML ``n`` is false, and upstream's reader makes "false" of it."""
    return {key: _string(value[key]) for key in keys if value.get(key) is not None}


def _string(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def plan_reports(seen: ReportsObserved) -> Plan:
    """Plan all reports: each set with works has one; a report without its set goes, with the works that it names."""
    live = {(namespace_of(one), name_of(one)): one for one in seen.reports}
    read = dict(seen.entries) or {
        key: [entry_of(key, one) for one in works] for key, works in _by_set(seen.works).items()
    }
    made = {key: statuses(entries, seen.collected.get(key, Collected())) for key, entries in read.items() if entries}
    steps: list[tuple[Action, ...]] = []
    for key, wanted in made.items():
        report = live.get(key) or _empty(key)
        if key not in live:
            steps.append((Create(report, f"ApplicationSet {key[0]}/{key[1]} has works"),))
        if _differs(report, key, wanted):
            metadata = {**report["metadata"], "labels": _labels(key)}
            new = {**report, "metadata": metadata, "statuses": wanted}
            steps.append((Replace(new, "the clusters report something else"),))
    for key, report in live.items():
        if key not in seen.sets:
            steps += _removal(report, {(namespace_of(one), name_of(one)): one for one in seen.works})
    return Plan(tuple(steps), why=f"{len(made)} ApplicationSets have works")


def _by_set(works: Iterable[Obj]) -> dict[SetKey, list[Obj]]:
    found: dict[SetKey, list[Obj]] = {}
    for one in sorted(works, key=lambda work: (namespace_of(work), name_of(work))):
        parts = annotations_of(one).get(names.HOSTING_SET, "").split("/")
        if names.SET in labels_of(one) and len(parts) == 2 and all(parts):
            found.setdefault((parts[0], parts[1]), []).append(one)
    return found


def statuses(said: Iterable[Obj], collected: Collected) -> Obj:
    """Return the content of a report of what works say (:func:`entry_of`), by name. Of two Applications of a set in one
    cluster the last by name of its work counts; clusters that only the collector knows have no status and are not
    counted."""
    entries = {one["cluster"]: one for one in said}
    summary = _summary(entries.values())
    for one in collected.conditions:
        cluster = str(one.get("cluster") or "")
        entries[cluster] = {**entries[cluster], "conditions": one["conditions"]} if cluster in entries else one
    ordered = [entries[cluster] for cluster in sorted(entries)]
    return {"resources": list(collected.resources), "clusterConditions": ordered, "summary": summary}


def entry_of(key: SetKey, work: Obj) -> Obj:
    """Return what a work says of its cluster."""
    values = {"healthStatus": "Unknown", "syncStatus": "Unknown"}
    for manifest in ((work.get("status") or {}).get("resourceStatus") or {}).get("manifests") or ():
        values |= feedback_of(manifest)
    app = annotations_of(work).get(names.HUB_NAME, "")
    where = {"app": f"{key[0]}/{app}/{namespace_of(work)}/{name_of(work)}"}
    return {"cluster": namespace_of(work), **{name: value for name, value in values.items() if value}, **where}


def _summary(entries: Iterable[Obj]) -> Obj:
    health, sync = [], []
    for one in entries:
        health.append(one.get("healthStatus"))
        sync.append(one.get("syncStatus"))
    healthy, synced = health.count("Healthy"), sync.count("Synced")
    counts = {"clusters": len(health), "healthy": healthy, "notHealthy": len(health) - healthy}
    counts |= {"inProgress": health.count("Progressing"), "synced": synced, "notSynced": len(sync) - synced}
    return {name: str(count) for name, count in counts.items()}


def _labels(key: SetKey) -> dict[str, str]:
    return {names.HOSTING_SET: f"{key[0]}.{key[1]}"[:_MAX_LABEL]}


def _empty(key: SetKey) -> Obj:
    metadata = {"name": key[1], "namespace": key[0], "labels": _labels(key)}
    return {"apiVersion": REPORT.api_version, "kind": REPORT.kind, "metadata": metadata}


def _differs(report: Obj, key: SetKey, wanted: Obj) -> bool:
    live = report.get("statuses") or {}
    if live == wanted and labels_of(report) == _labels(key):
        return False
    same = labels_of(report) == _labels(key) and (live.get("summary") or {}) == wanted["summary"]
    order = {"resources": ("name", "kind"), "clusterConditions": ("cluster",)}
    return not same or any(_entries_differ(live.get(part) or [], wanted[part], by) for part, by in order.items())


def _entries_differ(live: list[Obj], wanted: list[Obj], by: tuple[str, ...]) -> bool:
    """Return whether entries differ in more than their order and empty fields."""
    if len(live) != len(wanted):
        return True
    pairs = [(one, other) for one, other in zip(live, wanted, strict=True) if one != other]
    if all(_place(one, by) == _place(other, by) for one, other in pairs):
        return any(_bare(one) != _bare(other) for one, other in pairs)
    return _ordered(live, by) != _ordered(wanted, by)


def _ordered(values: list[Obj], by: tuple[str, ...]) -> list[Obj]:
    return sorted(map(_bare, values), key=lambda one: _place(one, by))


def _place(entry: Obj, by: tuple[str, ...]) -> list[str]:
    return [str(entry.get(key) or "") for key in by]


def _bare(entry: Obj) -> Obj:
    """Return an entry without empty fields, which are as good as none."""
    return {key: value for key, value in entry.items() if value not in ("", [])}


def _removal(report: Obj, works: Mapping[tuple[str, str], Obj]) -> list[tuple[Action, ...]]:
    """Delete the works first: a report that is gone no longer names them."""
    reason = "its ApplicationSet is gone"
    named = [
        str(one.get("app") or "").split("/") for one in (report.get("statuses") or {}).get("clusterConditions") or ()
    ]
    keys = dict.fromkeys((parts[2], parts[3]) for parts in named if len(parts) > 3)
    gone = tuple(Delete.of(works[key], reason, propagation="Background") for key in keys if key in works)
    return [*([gone] if gone else []), (Delete.of(report, reason),)]
