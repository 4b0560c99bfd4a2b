"""MulticlusterApplicationSetReports in parts; pure.

The first has the whole summary, since upstream's readers read it there. Further ones are objects of the same kind with
the annotation ``syncline.dev/part-of``, and the entries of further clusters, as readers of single entries want them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Create, Delete, Patch, Plan, Replace
from syncline.fleet.pull.reporting.parts import fits, part_name, portions, size_of
from syncline.kube.client import PatchType
from syncline.kube.objects import Obj, annotations_of, gvk_of, labels_of, name_of, namespace_of, resource_version

PART_OF: Final = "syncline.dev/part-of"
"""Annotation of a further part: the name of the report that it belongs to."""
LIMIT: Final = 1_000_000
"""Size of the content of one part as JSON; etcd refuses 1.5 MB."""
_LISTS: Final = ("clusterConditions", "resources")
MOST: Final = 50
"""Parts of one report: some 50,000 clusters, each with an error."""


def report_name(report: Obj) -> str:
    """Return the name of the report, and of the set, that an object is, or is a part of."""
    return annotations_of(report).get(PART_OF) or name_of(report)


def is_part(report: Obj) -> bool:
    return PART_OF in annotations_of(report)


def whole(report: Obj, parts: Iterable[Obj]) -> Obj:
    """Return a report with the entries of its parts."""
    statuses: Obj = dict(report.get("statuses") or {})
    for one in parts:
        for key in ("resources", "clusterConditions"):
            more = (one.get("statuses") or {}).get(key) or ()
            if more:
                statuses[key] = [*(statuses.get(key) or ()), *more]
    return {**report, "statuses": statuses} if statuses else report


def divided(statuses: Obj, *, limit: int = LIMIT, most: int = MOST) -> list[Obj]:
    """Return the contents of the parts. Entries of clusters come before resources, which only few readers want."""
    lists = {key: statuses.get(key) or () for key in _LISTS}
    if fits(statuses, sum(map(len, lists.values())), limit):
        return [statuses]
    head = {key: value for key, value in statuses.items() if key not in lists}
    found = portions(lists, {}, size_of(head), 0, limit, most)
    first, *further = found.parts
    empty: Obj = {key: [] for key in lists if key in statuses}
    return [{**empty, **first, **head}, *({**empty, **one} for one in further)]


def plan_parts(plan: Plan, live: Obj | None, parts: Sequence[Obj], *, limit: int = LIMIT) -> Plan:
    """Return the plan of a whole report as one of its parts. ``live`` and ``parts``: those there now. Further parts are
    written before the first, whose summary is that of all; what is too much goes last."""
    steps: list[tuple[Action, ...]] = []
    for step in plan.steps:
        (one,) = step[:1]
        if isinstance(one, Create | Replace) and one.obj.get("statuses"):
            steps += _written(one, live, parts, limit)
        elif isinstance(one, Delete) and live is not None and one.name == name_of(live):
            steps += [tuple(Delete.of(each, one.reason) for each in parts)] if parts else []
            steps.append(step)
        else:
            steps.append(step)
    return replace(plan, steps=tuple(steps))


def _written(
    action: Create | Replace, live: Obj | None, parts: Sequence[Obj], limit: int
) -> Iterable[tuple[Action, ...]]:
    report = action.obj
    first, *further = divided(report["statuses"], limit=limit)
    there = {name_of(one): one for one in parts}
    wanted = {part_name(name_of(report), number): one for number, one in enumerate(further, 2)}
    for name, content in wanted.items():
        made = _part(report, name, content, there.get(name))
        if name not in there:
            yield (Create(made, action.reason),)
        elif (there[name].get("statuses") or {}) != content:
            yield (Replace(made, action.reason),)
    if live is None or (live.get("statuses") or {}) != first or labels_of(live) != labels_of(report):
        yield (replace(action, obj={**report, "statuses": first}),)
    surplus = tuple(
        Delete.of(one, "its entries fit into fewer parts") for name, one in there.items() if name not in wanted
    )
    if surplus:
        yield surplus


def changes_only(plan: Plan, there: Mapping[str, Obj]) -> Plan:
    """Return the plan with patches of the entries that change, where most stay. ``there``: the live parts by name."""
    steps = tuple(tuple(_patched(one, there) for one in step) for step in plan.steps)
    return replace(plan, steps=steps)


def _patched(action: Action, there: Mapping[str, Obj]) -> Action:
    live = there.get(name_of(action.obj)) if isinstance(action, Replace) else None
    if live is None or not isinstance(action, Replace) or labels_of(live) != labels_of(action.obj):
        return action
    changes = _changes(live.get("statuses") or {}, action.obj["statuses"])
    if changes is None:
        return action
    same_version = {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version(live)}
    where = gvk_of(live), namespace_of(live), name_of(live)
    return Patch(*where, [same_version, *changes], action.reason, kind=PatchType.JSON)


def _changes(old: Obj, new: Obj) -> list[Obj] | None:
    """Return the operations of a JSON patch; None: more than a quarter of the entries changes."""
    if old.keys() != new.keys() or any(len(old[key]) != len(new[key]) for key in _LISTS if key in old):
        return None
    made: list[Obj] = []
    for key, value in new.items():
        if key not in _LISTS:
            made += [{"op": "replace", "path": f"/statuses/{key}", "value": value}] if old[key] != value else []
            continue
        found = [number for number, one in enumerate(value) if one != old[key][number]]
        if len(found) > max(len(value) // 4, 1):
            return None
        made += [{"op": "replace", "path": f"/statuses/{key}/{number}", "value": value[number]} for number in found]
    return made


def _part(report: Obj, name: str, content: Obj, live: Obj | None) -> Obj:
    metadata: Obj = {"namespace": report["metadata"].get("namespace"), "name": name, "labels": labels_of(report)}
    metadata["annotations"] = {PART_OF: name_of(report)}
    kept = live["metadata"] if live is not None else {}
    return {
        "apiVersion": report["apiVersion"],
        "kind": report["kind"],
        "metadata": {**kept, **metadata},
        "statuses": content,
    }
