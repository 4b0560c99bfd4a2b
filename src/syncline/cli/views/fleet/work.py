"""Formats works: lists, manifests with their state on the cluster, trees. Values in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from syncline.base.clock import format_time, time_or_none
from syncline.cli.frame.output import table
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.replicasets.explaining import Outlook
from syncline.fleet.hub.replicasets.works import PLACEMENT_LABEL, SET_LABEL
from syncline.fleet.hub.works.explaining import APPLIED, AVAILABLE, ManifestState, manifest_states
from syncline.kube.kinds.managedaddons import ADDON_NAME
from syncline.kube.objects import Obj, annotations_of, dig, generation, is_terminating, labels_of, name_of, namespace_of
from syncline.views.texts import age, one_line

HEADERS = ("CLUSTER", "NAME", "MANIFESTS", "APPLIED", "AVAILABLE", "STATE", "FROM", "AGE")
WIDE_HEADERS = ("EXECUTOR", "GENERATION", "MESSAGE")
MAX_MANIFESTS = 200
"""Manifests that a table shows; ``-o json`` has all."""
MAX_CLUSTERS = 200
"""Clusters that a table shows."""
APPLICATION = "apps.open-cluster-management.io/hub-application-"


def work_state(work: Obj) -> str:
    """Return the state of a work in one word, the worst first."""
    if is_terminating(work):
        return "Terminating"
    current = {
        str(one.get("type")): str(one.get("status"))
        for one in dig(work, "status", "conditions") or ()
        if one.get("observedGeneration") in (None, generation(work))
    }
    rows = (
        (current.get(APPLIED) is None, "Waiting"),
        (current.get(APPLIED) == "False", "NotApplied"),
        (current.get("Degraded") == "True", "Degraded"),
        (current.get(AVAILABLE) == "False", "NotAvailable"),
        (current.get("Progressing") == "True", "Progressing"),
        (current.get("Complete") == "True", "Complete"),
    )
    return next((word for applies, word in rows if applies), "Applied")


def origin_of(work: Obj) -> str:
    """Return what made a work: a replica set with its Placement, an add-on, an Application; empty for people's own."""
    labels, notes = labels_of(work), annotations_of(work)
    if SET_LABEL in labels:
        namespace, _, name = labels[SET_LABEL].partition(".")
        return f"mwrs/{namespace}/{name} ({labels.get(PLACEMENT_LABEL) or '?'})"
    if ADDON_NAME in labels:
        return f"addon/{labels[ADDON_NAME]}"
    if notes.get(f"{APPLICATION}name"):
        return f"app/{notes.get(f'{APPLICATION}namespace')}/{notes[f'{APPLICATION}name']}"
    return ""


def executor_of(work: Obj) -> str:
    account = dig(work, "spec", "executor", "subject", "serviceAccount") or {}
    return f"{account.get('namespace')}/{account.get('name')}" if account else ""


def work_rows(found: Iterable[Obj], now: datetime, *, wide: bool) -> str:
    """Return the table of ``work list``."""
    rows = []
    for one in found:
        states = manifest_states(one)
        counts = [
            f"{sum(each.status(kind) == 'True' for each in states)}/{len(states)}" for kind in (APPLIED, AVAILABLE)
        ]
        created = time_or_none(dig(one, "metadata", "creationTimestamp"))
        row = [namespace_of(one), name_of(one), str(len(states)), *counts, work_state(one), origin_of(one) or "-"]
        row.append(age(created, now))
        if wide:
            applied = find_condition(dig(one, "status", "conditions") or (), APPLIED) or {}
            seen = applied.get("observedGeneration")
            bad = next((each.failed for each in states if each.failed is not None), None) or {}
            row += [
                executor_of(one) or "-",
                f"{'-' if seen is None else seen}/{generation(one)}",
                one_line(str(bad.get("message") or "")) or "-",
            ]
        rows.append(row)
    return table([*HEADERS, *(WIDE_HEADERS if wide else ())], rows)


def describe_work(work: Obj, now: datetime) -> str:
    """Return the text of ``work get``: the work, its manifests, its conditions."""
    states = manifest_states(work)
    lines = [
        f"Work:       {namespace_of(work)}/{name_of(work)}",
        f"State:      {work_state(work)}",
        f"From:       {origin_of(work) or 'made by a person or a program'}",
        f"Executor:   {executor_of(work) or 'the agent itself'}",
        f"Deletion:   {dig(work, 'spec', 'deleteOption', 'propagationPolicy') or 'Foreground'}",
        "",
        manifest_table(states[:MAX_MANIFESTS]),
    ]
    lines += [f"… and {len(states) - MAX_MANIFESTS} more (-o json shows all)"] if len(states) > MAX_MANIFESTS else []
    conditions = dig(work, "status", "conditions") or ()
    if conditions:
        rows = []
        for one in conditions:
            seen = one.get("observedGeneration")
            old = f" (generation {seen} of {generation(work)})" if seen not in (None, generation(work)) else ""
            since = age(time_or_none(one.get("lastTransitionTime")), now)
            rows.append((str(one.get("type")), f"{one.get('status')}{old}", since, str(one.get("message") or "")))
        lines += ["", table(("CONDITION", "STATUS", "SINCE", "MESSAGE"), rows)]
    return "\n".join(lines)


def manifest_table(states: Sequence[ManifestState]) -> str:
    """Return one line for each manifest: applied, available, what it feeds back, what is wrong."""
    rows = []
    for one in states:
        others = [
            f"{kind} {one.status(kind)}" for kind in ("Progressing", "Degraded", "Complete") if kind in one.conditions
        ]
        wrong = one.failed or {}
        rows.append(
            (
                str(one.ordinal),
                one.title,
                one.status(APPLIED),
                one.status(AVAILABLE),
                ", ".join((*(f"{name}={value}" for name, value in one.feedback), *others)) or "-",
                one_line(str(wrong.get("message") or ""))
                or ("-" if one.said else "the agent has not said anything yet"),
            )
        )
    return table(("#", "MANIFEST", "APPLIED", "AVAILABLE", "FEEDBACK", "MESSAGE"), rows)


def work_obj(work: Obj) -> Obj:
    """Return a work with the states of its manifests for ``-o json``."""
    return {
        "name": name_of(work),
        "cluster": namespace_of(work),
        "state": work_state(work),
        "from": origin_of(work),
        "executor": executor_of(work),
        "manifests": [
            {
                "ordinal": one.ordinal,
                "group": one.group,
                "kind": one.kind,
                "namespace": one.namespace,
                "name": one.name,
                "conditions": list(one.conditions.values()),
                "feedback": dict(one.feedback),
            }
            for one in manifest_states(work)
        ],
    }


def work_tree(work: Obj, lead: str = "") -> list[str]:
    """Return a work and its manifests as lines of a tree."""
    states = manifest_states(work)
    lines = [f"{lead}ManifestWork {namespace_of(work)}/{name_of(work)}  {work_state(work)}"]
    for index, one in enumerate(states[:MAX_MANIFESTS]):
        branch = "└─" if index == len(states) - 1 else "├─"
        shown = "waiting" if not one.said else "applied" if one.status(APPLIED) == "True" else "not applied"
        shown += ", missing" if one.status(AVAILABLE) == "False" and one.status(APPLIED) == "True" else ""
        values = "".join(f", {name}={value}" for name, value in one.feedback)
        wrong = one_line(str((one.failed or {}).get("message") or ""))
        lines.append(f"{branch}{one.title}  {shown}{values}{f': {wrong}' if wrong else ''}")
    return lines


def outlook_table(rows: Sequence[Outlook]) -> str:
    """Return how far each cluster of a replica set is, and what it waits for until when."""
    cells = [
        (
            one.placement or "-",
            one.cluster,
            f"{one.group.index}{f' {one.group.name}' if one.group.name else ''}",
            one.work or "-",
            one.state or "-",
            one.next.value,
            format_time(one.until) if one.until else "-",
            one.budget or "-",
            one_line(one.why),
        )
        for one in rows[:MAX_CLUSTERS]
    ]
    text = table(("PLACEMENT", "CLUSTER", "GROUP", "WORK", "STATE", "NEXT", "UNTIL", "BUDGET", "WHY"), cells)
    more = len(rows) - MAX_CLUSTERS
    return text + (f"\n… and {more} more (-o json shows all)" if more > 0 else "")


def outlook_obj(one: Outlook) -> Obj:
    """Return one cluster of a replica set for ``-o json``."""
    return {
        "placement": one.placement,
        "cluster": one.cluster,
        "group": {"index": one.group.index, "name": one.group.name},
        "work": one.work,
        "state": one.state,
        "next": one.next.value,
        "until": format_time(one.until) if one.until else None,
        "budget": one.budget,
        "why": one.why,
    }
