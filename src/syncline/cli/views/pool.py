"""Formats machine config pools: lists, one pool with its nodes, and its history. Values in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from syncline.base.clock import time_or_none
from syncline.cli.frame.output import table
from syncline.kube.kinds.holds import Hold, pause_writer
from syncline.kube.objects import Obj, annotations_of, dig, labels_of, name_of, owner_references, uid_of
from syncline.machineconfig.drain.progress import BlockedNote, Progress
from syncline.machineconfig.names import CURRENT, CURRENT_IMAGE, DESIRED, DESIRED_IMAGE, REASON, STATE
from syncline.machineconfig.pools.membership import MembershipError, members, primary_pool
from syncline.machineconfig.pools.nodestate import not_ready
from syncline.views.texts import age, one_line

WIDEST = 160
"""Limit of characters of a value in a line."""
HEADERS = ("NAME", "CONFIG", "STATE", "UPDATED", "PAUSED", "HELD BY", "SINCE", "UNTIL", "REASON")


def pool_row(pool: Obj, holds: Sequence[Hold]) -> dict[str, Any]:
    """Return one pool for ``-o json``. ``holds``: the active ones that name it."""
    paused = dig(pool, "spec", "paused") is True
    writer, since = pause_writer(pool) if paused else ("", "")
    status = pool.get("status") or {}
    return {
        "name": name_of(pool),
        "state": state_of(pool, held=bool(holds)),
        "paused": paused,
        "pausedBy": writer,
        "pausedSince": since,
        "configuration": {
            "wanted": dig(pool, "spec", "configuration", "name", default=""),
            "reached": dig(status, "configuration", "name", default=""),
        },
        "machines": {
            key: int(status.get(f"{key}MachineCount") or 0) for key in ("updated", "ready", "unavailable", "degraded")
        }
        | {"total": int(status.get("machineCount") or 0)},
        "holds": [
            {
                "name": hold.name,
                "owner": hold.owner,
                "reason": hold.reason,
                "since": str(dig(hold.obj, "metadata", "creationTimestamp", default="")),
                "expiresAt": str(dig(hold.obj, "spec", "expiresAt", default="")),
            }
            for hold in holds
        ],
    }


def state_of(pool: Obj, *, held: bool) -> str:
    """Return the most important state in one word."""
    said = {each.get("type"): each.get("status") == "True" for each in dig(pool, "status", "conditions", default=[])}
    if said.get("Degraded"):
        return "Degraded"
    if dig(pool, "spec", "paused") is True:
        return "Paused"
    if held:
        return "Held"
    if said.get("DrainBlocked"):
        return "DrainBlocked"
    if said.get("Updated"):
        return "Updated"
    return "Updating" if said.get("Updating") else "Unknown"


def pool_table(rows: Iterable[dict[str, Any]], now: datetime) -> str:
    return table(HEADERS, [_cells(row, now) for row in rows])


def _cells(row: dict[str, Any], now: datetime) -> tuple[str, ...]:
    """Return the cells of a row: who holds or paused the pool, since when, until when."""
    owners = [hold["owner"] for hold in row["holds"]] + ([row["pausedBy"] or "spec.paused"] if row["paused"] else [])
    begun = [hold["since"] for hold in row["holds"]] + [row["pausedSince"]]
    since = min((each for each in begun if each), default="")
    machines = row["machines"]
    return (
        row["name"],
        row["configuration"]["wanted"] or "-",
        row["state"],
        f"{machines['updated']}/{machines['total']}",
        str(row["paused"]).lower(),
        ", ".join(owners) or "-",
        age(time_or_none(since), now) if since else "-",
        max((hold["expiresAt"] for hold in row["holds"]), default="-"),
        "; ".join(hold["reason"] for hold in row["holds"]) or "-",
    )


# -- one pool --------------------------------------------------------------------------------------------------------


def node_rows(pool: Obj, pools: Sequence[Obj], nodes: Sequence[Obj]) -> list[dict[str, str]]:
    try:
        return [node_row(node) for node in members(pool, nodes, pools)]
    except MembershipError:
        return []


def node_row(node: Obj) -> dict[str, str]:
    have = annotations_of(node)
    return {
        "name": name_of(node),
        "ready": "NotReady" if _is_down(node) else "Ready",
        "schedulable": "no" if dig(node, "spec", "unschedulable") else "yes",
        "state": have.get(STATE, ""),
        "current": have.get(CURRENT, ""),
        "desired": have.get(DESIRED, ""),
        "note": _note(node),
    }


def _is_down(node: Obj) -> bool:
    """Return whether a node is not ready for another reason than a cordon."""
    reason = not_ready(node)
    return reason is not None and not reason.endswith("Unschedulable")


def _note(node: Obj) -> str:
    blocked, progress = BlockedNote.of(node), Progress.of(node)
    if blocked is not None:
        return blocked.message
    if progress is not None:
        return f"draining since {progress.began:%H:%M:%S}"
    return annotations_of(node).get(REASON, "")


def describe_pool(row: dict[str, Any], pool: Obj, nodes: Sequence[dict[str, str]], now: datetime) -> str:
    machines = row["machines"]
    counts = ", ".join(f"{machines[key]} {key}" for key in ("updated", "ready", "unavailable", "degraded"))
    lines = [
        f"Name:           {row['name']}",
        f"State:          {row['state']}",
        f"Wanted:         {row['configuration']['wanted'] or '-'}",
        f"Reached:        {row['configuration']['reached'] or '-'}",
        f"Machines:       {machines['total']} ({counts})",
        f"MaxUnavailable: {_limit(pool)}",
    ]
    if row["paused"]:
        since = f" for {age(time_or_none(row['pausedSince']), now)}" if row["pausedSince"] else ""
        lines.append(f"Paused:         spec.paused{since} by {row['pausedBy'] or 'an unknown client'}")
    for hold in row["holds"]:
        since = age(time_or_none(hold["since"]), now)
        lines.append(f"Held:           {hold['owner']} for {since} until {hold['expiresAt']}: {hold['reason'] or '-'}")
    for condition in dig(pool, "status", "conditions", default=[]):
        if condition.get("status") == "True" and condition.get("message"):
            lines.append(f"{condition['type'] + ':':<15} {one_line(condition['message'])}")
    cells = [(n["name"], n["ready"], n["schedulable"], n["state"], n["current"], n["desired"]) for n in nodes]
    rows = [f"  {n['name']}: {one_line(n['note'])}" for n in nodes if n["note"]]
    header = ("NODE", "STATUS", "SCHEDULABLE", "STATE", "CURRENT", "DESIRED")
    return "\n".join([*lines, *(["", table(header, cells)] if cells else []), *rows])


def _limit(pool: Obj) -> str:
    limit = dig(pool, "spec", "maxUnavailable")
    return "1" if limit is None else "0 (taken as 1)" if limit == 0 else str(limit)


# -- nodes -----------------------------------------------------------------------------------------------------------


def roles_of(node: Obj) -> str:
    prefix = "node-role.kubernetes.io/"
    return ",".join(sorted(label.removeprefix(prefix) for label in labels_of(node) if label.startswith(prefix)))


WIDE = ("VERSION", "INTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME")


def _machine(node: Obj) -> tuple[str, ...]:
    """Return the columns that ``kubectl get nodes -o wide`` adds."""
    system = dig(node, "status", "nodeInfo", default={})
    addresses = dig(node, "status", "addresses", default=[])
    address = next((str(one.get("address")) for one in addresses if one.get("type") == "InternalIP"), "")
    fields = ("osImage", "kernelVersion", "containerRuntimeVersion")
    return (str(system.get("kubeletVersion") or ""), address, *(str(system.get(field) or "") for field in fields))


def node_table(nodes: Sequence[Obj], pools: Sequence[Obj], now: datetime, *, wide: bool = False) -> str:
    """Return a table like ``kubectl get nodes``, with pool and progress of the config."""
    cells: list[tuple[str, ...]] = []
    for node in nodes:
        row = node_row(node)
        status = row["ready"] + ("" if row["schedulable"] == "yes" else ",SchedulingDisabled")
        moves = f"{row['current']} -> {row['desired']}" if row["current"] != row["desired"] else row["current"]
        created = time_or_none(str(dig(node, "metadata", "creationTimestamp", default="")))
        where = (roles_of(node) or "-", pool_of(node, pools))
        cells.append((row["name"], status, *where, row["state"] or "-", moves or "-", age(created, now)))
        cells[-1] += _machine(node) if wide else ()
    headers = ("NAME", "STATUS", "ROLES", "POOL", "STATE", "CONFIG", "AGE", *(WIDE if wide else ()))
    return table(headers, cells)


def pool_of(node: Obj, pools: Sequence[Obj]) -> str:
    try:
        found = primary_pool(node, pools)
    except MembershipError:
        return "several"
    return name_of(found) if found is not None else "-"


def describe_node(node: Obj, pools: Sequence[Obj], record: Obj | None, now: datetime) -> str:
    """Describe a node. ``record``: its MachineConfigNode, or None."""
    row = node_row(node)
    system = dig(node, "status", "nodeInfo", default={})
    lines = [
        f"Name:        {row['name']}",
        f"Roles:       {roles_of(node) or '-'}",
        f"Pool:        {pool_of(node, pools)}",
        f"Status:      {row['ready']}{'' if row['schedulable'] == 'yes' else ', scheduling disabled'}",
        f"State:       {row['state'] or '-'}",
        f"Current:     {row['current'] or '-'}",
        f"Desired:     {row['desired'] or '-'}",
        f"OS:          {system.get('osImage') or '-'}",
        f"Boot id:     {system.get('bootID') or '-'}",
    ]
    have = annotations_of(node)
    if have.get(CURRENT_IMAGE) or have.get(DESIRED_IMAGE):
        images = [have.get(key) or "its config's" for key in (CURRENT_IMAGE, DESIRED_IMAGE)]
        lines.append(f"Image:       {images[0] if images[0] == images[1] else ' -> '.join(images)}")
    lines += _record_lines(record)
    if row["note"]:
        lines.append(f"Note:        {one_line(row['note'])}")
    note = BlockedNote.of(node)
    lines += [f"Would help:  {fix}" for fix in (note.fixes if note is not None else ())]
    cells = [
        _phase_cells(each, now)
        for each in dig(record, "status", "conditions", default=[])
        if each.get("status") != "False" or each.get("type") == "Updated"
    ]
    return "\n".join([*lines, *(["", table(("PHASE", "IS", "FOR", "MESSAGE"), cells)] if cells else [])])


def _record_lines(record: Obj | None) -> list[str]:
    """Return lines from the node's record beyond its phases."""
    lines = [f"Pins:        {_pins(one)}" for one in dig(record, "status", "pinnedImageSets", default=[])]
    for change in dig(record, "status", "irreconcilableChanges", default=[]):
        text = " ".join(str(change.get("diff") or "").split())
        lines.append(f"Never has:   {change.get('fieldPath')}: {text if len(text) <= WIDEST else text[:WIDEST] + '…'}")
    return lines


def _pins(one: Obj) -> str:
    if one.get("lastFailedGenerationError"):
        return f"{one.get('name')}: {one['lastFailedGenerationError']}"
    done = one.get("currentGeneration") == one.get("desiredGeneration")
    return str(one.get("name")) if done else f"{one.get('name')}, on the way"


def _phase_cells(condition: Obj, now: datetime) -> tuple[str, ...]:
    since = age(time_or_none(str(condition.get("lastTransitionTime"))), now)
    return (
        str(condition.get("type")),
        str(condition.get("status")),
        since,
        one_line(str(condition.get("message") or "")) or "-",
    )


# -- history ---------------------------------------------------------------------------------------------------------


def history_rows(pool: Obj, configs: Iterable[Obj], nodes: Sequence[Obj]) -> list[dict[str, Any]]:
    """Return the rendered configs of a pool, newest first."""
    mine = [c for c in configs if any(owner.get("uid") == uid_of(pool) for owner in owner_references(c))]
    wanted = dig(pool, "spec", "configuration", "name", default="")
    reached = dig(pool, "status", "configuration", "name", default="")
    rows = [
        {
            "name": name_of(config),
            "created": str(dig(config, "metadata", "creationTimestamp", default="")),
            "nodes": sum(annotations_of(node).get(CURRENT) == name_of(config) for node in nodes),
            "wanted": name_of(config) == wanted,
            "reached": name_of(config) == reached,
        }
        for config in mine
    ]
    return sorted(rows, key=lambda row: (row["created"], row["wanted"], row["name"]), reverse=True)


def describe_history(rows: Sequence[dict[str, Any]], events: Sequence[Obj], now: datetime) -> str:
    """Return the configs, then the pool's rollout Events, oldest first."""
    cells = [
        (
            row["name"],
            age(time_or_none(row["created"]), now),
            str(row["nodes"]),
            " ".join(word for word in ("wanted", "reached") if row[word]) or "-",
        )
        for row in rows
    ]
    lines = [table(("CONFIG", "AGE", "NODES", "IS"), cells)]
    if events:
        lines.append("")
    for event in sorted(events, key=_said_at):
        lines.append(f"{_said_at(event)}  {event.get('reason')}: {one_line(str(event.get('message') or ''))}")
    return "\n".join(lines)


def _said_at(event: Obj) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or "")
