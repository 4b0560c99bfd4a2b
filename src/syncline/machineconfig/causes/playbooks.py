"""Explains how far an AnsibleConfig has reached the nodes of its pool, and why not further; pure."""

from __future__ import annotations

from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.ansible.journal import IN_TROUBLE
from syncline.machineconfig.causes.nodes import node_cause
from syncline.machineconfig.causes.overview import Diagnosis, Overview, cause_of, written_at
from syncline.machineconfig.causes.pools import pool_cause

MAX_CAUSES = 3
_FIXES = {
    "Refused": "correct the playbook at the line that is named, and push",
    "Unreadable": "correct spec.repository, or its credentials (syncline repo list)",
    "PoolMissing": "create the MachineConfigPool, or correct spec.pool",
}


def ansible_cause(over: Overview, config: Obj) -> Diagnosis:
    """Return what keeps an AnsibleConfig from its nodes: its repository, a node, or its pool."""
    ready = _condition(config, "Ready")
    if not ready:
        fix = "does the controller of AnsibleConfigs run? it is in `syncline up` and the role machineconfig"
        return Diagnosis(cause_of(config, "not read", "no controller has read it", next_action=fix), blocked=True)
    reason, message = str(ready.get("reason")), str(ready.get("message"))
    if ready.get("status") != "True":
        stays = f"; nodes keep {config['status']['machineConfig']}" if dig(config, "status", "machineConfig") else ""
        return Diagnosis(
            cause_of(config, reason, message + stays, written_at(config), next_action=_FIXES.get(reason, "")),
            blocked=True,
        )
    status: Obj = config.get("status") or {}
    text = f"{status.get('applied', 0)} of {status.get('nodes', 0)} nodes have commit {status.get('revision', '')[:12]}"
    troubled = [one["name"] for one in status.get("nodeStatuses") or () if one.get("phase") in IN_TROUBLE]
    if troubled:
        nodes = [node for node in over.nodes if name_of(node) in troubled[:MAX_CAUSES]]
        pool = _pool(over, config)
        below = tuple(node_cause(over, node, pool).cause for node in nodes)
        return Diagnosis(cause_of(config, "Degraded", text, because=below), blocked=True)
    if status.get("applied") == status.get("nodes"):
        return Diagnosis(cause_of(config, "applied", text), blocked=False)
    pool = _pool(over, config)
    above = pool_cause(over, pool) if pool is not None else None
    because = (above.cause,) if above is not None else ()
    return Diagnosis(cause_of(config, "on its way", text, because=because), above is not None and above.blocked)


def _pool(over: Overview, config: Obj) -> Obj | None:
    return next((pool for pool in over.pools if name_of(pool) == dig(config, "spec", "pool")), None)


def _condition(config: Obj, kind: str) -> Obj:
    found = dig(config, "status", "conditions", default=()) or ()
    return next((one for one in found if one.get("type") == kind), {})
