"""Describes what surrounds the waves of a planned sync: its waits, Holds, skipped hooks and guards.

Called by ``preview`` with the observation of the sync. Pure; returns sentences from the controller's own functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta

from syncline.apply.actions import ApplyObject, PruneObject, SyncAction
from syncline.apply.annotations import is_delete_hook
from syncline.argo.dependencies import dependency_problem, depends_on, not_ready
from syncline.argo.guard import GUARD, guard_asked, mass_deletion
from syncline.gitops.application.observing.observe import AppObserved
from syncline.gitops.application.operating.holds import pools_to_hold
from syncline.gitops.gates.sequence import awaited_by, is_job
from syncline.gitops.sync.conditions import (
    Condition,
    ConditionError,
    OutOfSteps,
    gate_deadline,
    seen_by,
    waits_of,
)
from syncline.gitops.sync.model import SyncObserved
from syncline.gitops.sync.plan import PlannedWave
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import Obj, annotations_of, dig, meta, name_of, ref_of

FUTURE = "; if that is meant, sync with `syncline app sync --prune`"


def needs_first(observed: AppObserved) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the waits of a sync before its first wave, and the reason of a refusal (a cycle)."""
    app = observed.view.obj
    named = [f"{ref.namespace}/{ref.name}" for ref in depends_on(app)]
    if not named:
        return (), ()
    circle = dependency_problem(app, observed.before)
    if circle:
        return (), (circle,)
    waits = not_ready(app, observed.before, observed.reach_of_applications).removeprefix("waiting for ")
    message = f"Application {', '.join(named)} to be Synced and Healthy"
    return (f"{message} (now: {waits})" if waits else f"{message} (ready)",), ()


def conditions_before(observed: SyncObserved, wave: PlannedWave) -> tuple[str, ...]:
    """Return the ``syncline.dev/wait-for`` conditions of the wave's objects with their current state."""
    found: list[str] = []
    for action in _applied(observed, wave):
        with suppress(ConditionError):  # then the sync is refused, see broken_conditions
            waits = waits_of(action.target, observed.kinds, observed.namespace, observed.rules.refuses)
            found += [_condition(observed, one) for one in waits]
    return tuple(dict.fromkeys(found))


def gates_after(observed: SyncObserved, wave: PlannedWave) -> tuple[str, ...]:
    """Return what holds the waves after this one beyond its objects' health: gates, waits in place of Jobs, and what
    Jobs wait for where their command can be read."""
    found = []
    for gate in observed.gates:
        if (gate.phase, gate.wave) == (wave.phase, wave.wave) and not gate.refused:
            who = f"{gate.who.kind} {gate.who.name}" + (", without a pod" if gate.to_end else "")
            what = gate.unserved or _condition(observed, gate.condition, goes_on=gate.goes_on)
            found.append(f"{what} ({who})")
    for action in _applied(observed, wave):
        awaited = awaited_by(action.target) if is_job(action.target) else None
        if awaited is not None:
            found.append(f"Job {name_of(action.target)}, which looks for {awaited} in a loop without an end")
    return tuple(found)


def gate_limits(observed: SyncObserved, wave: PlannedWave) -> tuple[str, ...]:
    """Return the gate deadlines of the wave's objects, and the action then."""
    found: list[str] = []
    for action in _applied(observed, wave):
        with suppress(ConditionError):
            deadline = gate_deadline(action.target)
            if deadline is not None:
                then = "the operation fails" if deadline[1] == "fail" else "the operation goes on without it"
                found.append(f"{action.ref.kind} {action.ref.name} at most {_span(deadline[0])}, then {then}")
    return tuple(found)


def _applied(observed: SyncObserved, wave: PlannedWave) -> list[ApplyObject]:
    return [action for action in wave.actions if isinstance(action, ApplyObject)] if observed.durable else []


def _condition(observed: SyncObserved, condition: Condition, *, goes_on: bool = False) -> str:
    ref = condition.ref
    where = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
    if condition.gate or condition.exists:
        wanted = f"gate {condition.gate}" if condition.gate else "it is there"
    elif condition.condition:
        wanted = f"condition {condition.condition} is True"
    elif condition.jsonpath:
        wanted = f"{condition.jsonpath} is {condition.value!r}" if condition.value is not None else condition.jsonpath
    else:
        wanted = condition.cel or "it is healthy"
    try:
        problem = condition.problem(
            observed.rules.lookup(ref),
            observed.rules.health,
            unread=observed.rules.unread(ref),
            known=seen_by(observed.rules.behind_gate, observed.rules.unread),
        )
    except OutOfSteps as error:
        problem = str(error)
    then = ", then it goes on" if goes_on else ""
    limit = f", at most {_span(condition.deadline)}{then}" if condition.deadline is not None else ""
    return f"{ref.kind} {where}: {wanted}{limit} (now: {problem or 'it holds'})"


def _span(time: timedelta) -> str:
    seconds = int(time.total_seconds())
    return f"{seconds // 60}m" if seconds and seconds % 60 == 0 else f"{time.total_seconds():g}s"


def broken_conditions(observed: SyncObserved, wave: PlannedWave) -> tuple[str, ...]:
    """Return invalid annotations, for which the whole operation is refused."""
    found: list[str] = []
    for action in _applied(observed, wave):
        try:
            gate_deadline(action.target)
            waits_of(action.target, observed.kinds, observed.namespace, observed.rules.refuses)
        except ConditionError as error:
            found.append(f"{action.ref}: {error}")
    place = wave.phase, wave.wave
    found += [f"{one.who}: {one.refused}" for one in observed.gates if one.refused and (one.phase, one.wave) == place]
    return tuple(found)


def held_pools(seen: AppObserved, observed: SyncObserved, actions: Iterable[SyncAction]) -> frozenset[str]:
    """Return the pools that are held before these actions."""
    if HOLD not in seen.kinds.served or not seen.pools:
        return frozenset()
    return pools_to_hold(seen, observed, actions)


def left_out(observed: SyncObserved, targets: Sequence[Obj]) -> tuple[str, ...]:
    """Return the hooks among the manifests that this sync does not run, and why."""
    running = {id(hook) for hook in observed.hooks}
    found: list[str] = []
    for obj in targets:
        kinds = [kind for kind in ("PreDelete", "PostDelete") if is_delete_hook(obj, kind)]
        if kinds:
            found.append(f"{_hook(obj)}: {' and '.join(kinds)} hook, runs when the Application is deleted")
    for hook in observed.all_hooks:
        if id(hook) not in running and not any(is_delete_hook(hook, kind) for kind in ("PreDelete", "PostDelete")):
            found.append(f"{_hook(hook)}: its inputs are as when it last ran")
    if observed.options.skip_hooks:
        found += [f"{_hook(hook)}: only some resources are synced" for hook in observed.hooks]
    return tuple(dict.fromkeys(found))


def _hook(obj: Obj) -> str:
    return f"{ref_of(obj).kind} {name_of(obj) or str(meta(obj).get('generateName') or '') + '…'}"


def guarded(seen: AppObserved, observed: SyncObserved, waves: Sequence[PlannedWave], rows: Sequence[Obj]) -> list[str]:
    """Return the guard's refusal of a mass deletion, if any; deleting everything is always reported."""
    gone = sum(isinstance(action, PruneObject) for wave in waves for action in wave.actions)
    if not gone or annotations_of(seen.view.obj).get(GUARD) == "off":
        return []
    report = mass_deletion(seen.view.obj, [row for row in rows if not row.get("hook")])
    if report and (guard_asked(seen.view.obj) or dig(seen.view.operation, "initiatedBy", "automated")):
        return [report]
    if report:
        return [f"{report.partition('; if that is meant')[0]}{FUTURE}"]
    live = sum(pair.live is not None for pair in observed.pairs)
    return [f"all {live} live objects would be deleted{FUTURE}"] if gone == live and gone > 1 else []
