"""Explains any object: :func:`explain_object` returns the chain of causes that blocks it.

``syncline explain`` calls it with a :class:`View`; the cause in the :class:`Found` leads down to the object that
blocks. Pure. Each kind has its own module, imported below; Applications are in ``explain/application.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from syncline.apply.causes.masking import masked_found
from syncline.apply.causes.objects import KINDS, by_health, plain
from syncline.apply.causes.pods import condition
from syncline.base.cause import Cause
from syncline.base.clock import format_time, time_or_none
from syncline.explain.deletion import explain_deletion
from syncline.explain.fleet.addons import ADDONS, explain_addon
from syncline.explain.fleet.carried import explain_member
from syncline.explain.fleet.clusters import CLUSTERS
from syncline.explain.fleet.placements import PLACEMENTS, explain_placement
from syncline.explain.fleet.replicasets import BUDGETS, SETS, explain_budget, explain_set
from syncline.explain.fleet.rollouts import ROLLOUTS, explain_rollout
from syncline.explain.fleet.works import WORKS, explain_work
from syncline.explain.policies import (
    LOCAL,
    POLICIES,
    WITHOUT_CONTROLLER,
    explain_idle,
    explain_local_policy,
    explain_policy,
)
from syncline.explain.view import Found, View
from syncline.gitops.holds.model import POOL, Hold, holds_of
from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
from syncline.kube.kinds.machineconfiguration import CONTAINER_RUNTIME_CONFIG, KUBELET_CONFIG
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    is_terminating,
    name_of,
    ref_of,
    uid_of,
)
from syncline.machineconfig.causes.configs import APPLIED, config_cause
from syncline.machineconfig.causes.nodes import TURN, node_cause
from syncline.machineconfig.causes.playbooks import ansible_cause
from syncline.machineconfig.causes.pools import pool_cause, unreadable_pool
from syncline.machineconfig.causes.rendering import generating_cause
from syncline.machineconfig.names import CURRENT, MACHINE_CONFIG, MACHINE_CONFIG_NODE
from syncline.machineconfig.pools.membership import MembershipError, primary_pool

MAX_DEPTH = 12
"""Maximum depth of causes; a longer chain is a loop, and a bug."""
HOLDS = HOLD.group_kind


def explain_object(view: View, obj: Obj) -> Found:
    """Explain one object; for a healthy object the result is its state."""
    if is_terminating(obj) and ref_of(obj).group_kind not in _DEPARTURES:
        return masked_found(view, explain_deletion(view, obj))
    return masked_found(view, _KINDS.get(ref_of(obj).group_kind, by_health)(view, obj))


def deepened(view: View, cause: Cause) -> Found:
    """Add the causes of the subject below a cause that another package returned."""
    obj = view.cluster.get(ObjectRef.parse(cause.subject)) if "/" in cause.subject else None
    overdue = cause.until is not None and view.now >= cause.until
    if obj is None:
        return Found(cause, blocked=overdue or bool(cause.because) or bool(cause.next_action))
    below = explain_object(view, obj)
    own = below.cause
    return Found(
        replace(
            cause,
            state=own.state if below.blocked else cause.state,
            message=own.message or cause.message,
            next_action=own.next_action or cause.next_action,
            because=(*cause.because, *own.because),
            evidence=cause.evidence or own.evidence,
        ),
        blocked=below.blocked or overdue or bool(cause.because) or bool(cause.next_action),
    )


def cause_to_obj(cause: Cause, depth: int = 0) -> Obj:
    """Return the tree of causes as JSON, without empty fields."""
    assert depth < MAX_DEPTH, "causes do not go round in circles"
    found: Obj = {
        "subject": cause.subject,
        "state": cause.state,
        "message": cause.message,
        "since": cause.since.isoformat() if cause.since else None,
        "until": cause.until.isoformat() if cause.until else None,
        "then": cause.then,
        "nextAction": cause.next_action,
        "evidence": [{"name": name, "value": value} for name, value in cause.evidence],
        "because": [cause_to_obj(each, depth + 1) for each in cause.because],
    }
    return {key: value for key, value in found.items() if value}


def _pool(view: View, pool: Obj) -> Found:
    """Explain a pool by its machine-config causes and its Holds, also if another operator manages it."""
    reason = pool_cause(view.machines, pool)
    holds = [hold for hold in holds_of(view.cluster.objects(HOLDS)) if name_of(pool) in hold.pools]
    living = tuple(_hold(view, hold.obj).cause for hold in holds if hold.lives(view.now))
    state = "Held" if living and reason.cause.state in ("Updating", "Waiting") else reason.cause.state
    because = (*reason.cause.because, *living) if reason.blocked else (*living, *reason.cause.because)
    since = min((c.since for c in living if c.since), default=None) if state == "Held" else reason.cause.since
    cause = replace(reason.cause, state=state, since=since, because=because)
    return Found(_dated(cause, pool), blocked=reason.blocked or bool(living))


def _dated(cause: Cause, obj: Obj) -> Cause:
    evidence = (*cause.evidence, *((("uid", uid_of(obj)),) if uid_of(obj) else ()))
    since = cause.since or time_or_none(dig(obj, "metadata", "creationTimestamp"))
    return replace(cause, since=since, evidence=evidence)


def _machine_config(view: View, config: Obj) -> Found:
    reason = config_cause(view.machines, config)
    # No object records since when it is applied.
    cause = reason.cause if reason.cause.state == APPLIED else _dated(reason.cause, config)
    return Found(cause, blocked=reason.blocked)


def _hold(view: View, obj: Obj) -> Found:
    hold = Hold.of(obj)
    until = f"until {format_time(hold.expires)}" if hold.expires is not None else "without a readable end"
    pools = f"pool{'' if len(hold.pools) == 1 else 's'} {', '.join(sorted(hold.pools)) or '(none)'}"
    text = f"{hold.owner or 'an unknown owner'} keeps {pools} from updating {until}"
    reason = f": {hold.reason}" if hold.reason else ""
    lives = hold.lives(view.now)
    fix = f"wait, or ask {hold.owner or 'its owner'}; to end it: kubectl delete hold {name_of(obj)}" if lives else ""
    cause = plain(obj, "Held" if lives else "Expired", text + reason, fix=fix)
    ends = replace(cause, until=hold.expires, then="nodes of its pools are updated again") if lives else cause
    return Found(ends, blocked=False)


def _budget(view: View, budget: Obj) -> Found:
    status = dig(budget, "status", default={})
    healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
    text = f"{healthy} of {status.get('expectedPods') or 0} pods are healthy, {desired} have to be"
    if status.get("disruptionsAllowed"):
        return Found(plain(budget, "Allows", f"{status['disruptionsAllowed']} evictions; {text}"), blocked=False)
    fix = "get more of its pods ready, run more of them, or relax the budget"
    return Found(plain(budget, "Refuses", f"any eviction: {text}", fix=fix), blocked=True)


def _node(view: View, node: Obj) -> Found:
    """Explain a node: in a pool, the progress of its config; else its readiness."""
    try:
        pool = primary_pool(node, view.machines.pools)
    except MembershipError as error:
        below = unreadable_pool(view.machines)
        if below is not None:
            return Found(plain(node, "in no pool", str(error), below), blocked=True)
        fix = "take one of its role labels away"
        return Found(plain(node, "in no pool", str(error), fix=fix), blocked=True)
    if CURRENT in annotations_of(node) or pool is not None:
        return _of_pool(view, node, pool)
    ready = condition(node, "Ready")
    cordoned = ", cordoned (spec.unschedulable)" if dig(node, "spec", "unschedulable") else ""
    if ready.get("status") == "True":
        return Found(plain(node, "Ready", f"{ready.get('message') or ''}{cordoned}"), blocked=bool(cordoned))
    text = f"{ready.get('reason') or 'no condition Ready'}: {ready.get('message') or ''}{cordoned}"
    return Found(plain(node, "NotReady", text, fix="check its kubelet; is the machine on?"), blocked=True)


def _of_pool(view: View, node: Obj, pool: Obj | None) -> Found:
    reason = node_cause(view.machines, node, pool)
    if reason.cause.state != TURN or pool is None:
        return Found(_dated(reason.cause, node), blocked=reason.blocked)
    above = _pool(view, pool)
    cause = replace(reason.cause, since=above.cause.since, because=(above.cause,))
    return Found(_dated(cause, node), blocked=above.blocked)


def _record(view: View, record: Obj) -> Found:
    """Explain a MachineConfigNode by its node."""
    node = view.cluster.get(ObjectRef("", "Node", "", name_of(record)))
    if node is None:
        text = "its node is gone: it goes, too, as what the node owned"
        return Found(plain(record, "left over", text), blocked=False)
    below = _node(view, node)
    return Found(plain(record, below.cause.state, f"of node {name_of(node)}", below.cause), blocked=below.blocked)


def _ansible(view: View, config: Obj) -> Found:
    cause = ansible_cause(view.machines, config)
    return Found(_dated(cause.cause, config), blocked=cause.blocked)


def _generating(view: View, config: Obj) -> Found:
    cause = generating_cause(view.machines, config)
    return Found(_dated(cause.cause, config), blocked=cause.blocked)


_DEPARTURES = (CLUSTERS, WORKS)
"""Kinds whose agent cleans up when they are deleted; they explain that themselves."""
_KINDS: dict[GroupKind, Callable[[View, Obj], Found]] = {
    **KINDS,
    GroupKind("policy", "PodDisruptionBudget"): _budget,
    GroupKind("", "Node"): _node,
    POOL: _pool,
    MACHINE_CONFIG: _machine_config,
    MACHINE_CONFIG_NODE: _record,
    KUBELET_CONFIG.group_kind: _generating,
    CONTAINER_RUNTIME_CONFIG.group_kind: _generating,
    ANSIBLE_CONFIG.group_kind: _ansible,
    HOLDS: _hold,
    CLUSTERS: explain_member,
    WORKS: explain_work,
    PLACEMENTS: explain_placement,
    ADDONS: explain_addon,
    SETS: explain_set,
    BUDGETS: explain_budget,
    ROLLOUTS: explain_rollout,
    POLICIES: explain_policy,
    **dict.fromkeys(LOCAL, explain_local_policy),
    **dict.fromkeys(WITHOUT_CONTROLLER, explain_idle),
}
