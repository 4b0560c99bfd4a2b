"""The status of an AnsibleConfig from the reports of its nodes; pure. Entry point: :func:`ansible_status`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_time
from syncline.control.plan import SetStatus, set_status
from syncline.kube.kinds.ansible import ANSIBLE_CONFIG, MAX_NODES
from syncline.kube.objects import Obj, annotations_of, generation, name_of
from syncline.machineconfig.ansible.journal import IN_TROUBLE, REPORT, WAITING, Entry, reported
from syncline.machineconfig.ansible.outcome import task_json

MAX_MESSAGE = 8000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the repository. ``reason``: Resolved, Unreadable, Refused, PoolMissing; ``config``: the
    MachineConfig in force, empty if there is none yet."""

    reason: str
    why: str = ""
    commit: str = ""
    digest: str = ""
    config: str = ""


def reports_of(name: str, nodes: Sequence[Obj]) -> dict[str, Entry | None]:
    """Return by node what it reports of an AnsibleConfig; None: nothing yet."""
    return {name_of(node): reported(annotations_of(node).get(REPORT, "")).get(name) for node in nodes}


def ansible_status(config: Obj, nodes: Sequence[Obj], verdict: Verdict, now: datetime) -> tuple[SetStatus, ...]:
    """Return the write of the status, if it changed."""
    old: Obj = config.get("status") or {}
    reports = reports_of(name_of(config), nodes)
    digest = verdict.digest or str(old.get("digest") or "")
    applied = sum(one is not None and one.applied == digest and not one.open for one in reports.values())
    failing = [name for name, one in reports.items() if one is not None and one.phase in IN_TROUBLE]
    lines = sorted(reports.items(), key=lambda pair: (pair[0] not in failing, pair[0]))
    status = {
        "conditions": _conditions(config, verdict, len(reports), applied, sorted(failing), now),
        "observedGeneration": generation(config),
        "revision": verdict.commit or str(old.get("revision") or ""),
        "digest": digest,
        "machineConfig": verdict.config,
        "nodes": len(reports),
        "applied": applied,
        "failing": len(failing),
        "nodeStatuses": [_line(name, entry) for name, entry in lines[:MAX_NODES]],
    }
    typed = {"apiVersion": ANSIBLE_CONFIG.api_version, "kind": ANSIBLE_CONFIG.kind} | config
    return set_status(typed, {key: value for key, value in status.items() if value != ""}, "what became of it")


def _line(name: str, entry: Entry | None) -> Obj:
    if entry is None:
        return {"name": name, "phase": WAITING}
    found: Obj = {"name": name, "phase": entry.phase, "digest": entry.applied, "changed": entry.changed}
    found |= {"at": format_time(entry.at)} if entry.at is not None else {}
    found |= {"tasks": [task_json(task) for task in entry.tasks]} if entry.tasks else {}
    return found | ({"failed": task_json(entry.failed)} if entry.failed is not None else {})


def _conditions(
    config: Obj, verdict: Verdict, nodes: int, applied: int, failing: Sequence[str], now: datetime
) -> list[Obj]:
    ready = verdict.reason == "Resolved"
    count = f"{applied} of {nodes} nodes have it"
    trouble = f"; in trouble: {', '.join(failing[:10])}" if failing else ""
    found = [
        ("Ready", ready, verdict.reason, verdict.why or f"its MachineConfig is {verdict.config}"),
        ("Applied", ready and applied == nodes, "AllNodes" if applied == nodes else "Waiting", count + trouble),
        ("Degraded", bool(failing), "NodesInTrouble" if failing else "AsExpected", count + trouble),
    ]
    before = {one.get("type"): one for one in (config.get("status") or {}).get("conditions") or ()}
    made = []
    for kind, holds, reason, message in found:
        text = "True" if holds else "False"
        last = before.get(kind) or {}
        since = last.get("lastTransitionTime") if last.get("status") == text else None
        made.append(
            {
                "type": kind,
                "status": text,
                "reason": reason,
                "message": message[:MAX_MESSAGE],
                "lastTransitionTime": since or format_time(now),
                "observedGeneration": generation(config),
            }
        )
    return made
