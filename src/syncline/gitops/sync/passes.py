"""One reconcile of an operation from beginning to end, as a generator of steps; run by ``plan.py``.

It yields steps of actions and is sent their outcomes, so the code reads in the order of events. It is a pure function
of observation and outcomes: ``plan.py`` runs it from the start with the outcomes so far and stops at the first missing
one. It never calls a cluster. The sequence is Argo CD's (gitops-engine ``pkg/sync/sync_context.go``, Sync and
Terminate); deviations are listed in ``docs/compatibility.md`` and enabled by ``SyncObserved.operation``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from syncline.apply.actions import AfterWave
from syncline.apply.annotations import DeletePolicy
from syncline.apply.health import HealthStatus
from syncline.apply.outcome import WaitKind
from syncline.base.clock import format_time
from syncline.gitops.sync import messages
from syncline.gitops.sync.conditions import (
    GATE_DEADLINE_KEY,
    JUDGED_AGAIN,
    MAX_ALL_WAITS,
    RETRY_S,
    WAIT_FOR,
    Condition,
    ConditionError,
    OutOfSteps,
    Steps,
    WaveGate,
    gate_deadline,
    is_conditioned,
    rests_until,
    seen_by,
    waits_of,
)
from syncline.gitops.sync.decide import is_stamped, read_object
from syncline.gitops.sync.model import GATE_DEADLINE, OperationPhase, ResultCode, SyncObserved, Wait, WaveDone
from syncline.gitops.sync.phases import SyncPhase, is_after
from syncline.gitops.sync.run import Flow, Runner, RunState, ask, makes_room, makes_room_for
from syncline.gitops.sync.state import SyncState, waiting_since
from syncline.gitops.sync.task import Task
from syncline.gitops.sync.tasks import build_tasks
from syncline.gitops.sync.terminate import judge_hook, terminate_hooks
from syncline.kube.objects import Obj, ObjectRef, meta, ref_of


def terminate_pass(observed: SyncObserved, now: datetime) -> Flow[SyncState]:
    """Terminate an operation: delete running hooks, leave resources as they are."""
    state = SyncState.open(observed)
    runner = Runner(state, now)
    tasks = _prepare(state).tasks
    yield from _release_completed(state, runner, tasks)
    clean = yield from terminate_hooks(state, runner, tasks)
    if clean:
        state.set_phase(OperationPhase.FAILED, messages.TERMINATED)
    else:
        state.set_phase(OperationPhase.ERROR, messages.TERMINATED_BADLY)
    return state


def sync_pass(observed: SyncObserved, now: datetime) -> Flow[SyncState]:
    """Advance an operation by at most one wave."""
    state = SyncState.open(observed)
    runner = Runner(state, now)
    ready = _prepare(state)
    tasks = ready.tasks
    if ready.problems:
        state.set_phase(OperationPhase.FAILED, messages.invalid_message(ready.problems))
        return state
    broken = _unreadable(observed, tasks)
    if broken:
        state.set_phase(OperationPhase.FAILED, messages.invalid_message(broken))
        return state
    if not ready.started and (yield from _check_beforehand(state, runner, tasks)):
        return state
    cut_off = _out_of_sync(observed, _cut_off(ready))
    if cut_off:
        yield from _run_next(state, runner, tasks, cut_off)
        return state
    done = _judge_running(state, tasks)
    _judge_deadlines(state, tasks, now)
    if (yield from _wait_for_running(state, tasks)) or _wait_for_pruned(state, tasks):
        return state
    if done and observed.durable:
        # Store the results before the object is deleted from which alone they could be read again.
        state.set_phase(OperationPhase.RUNNING, state.message, "results of hooks are kept before their objects go")
        state.wait, state.again = Wait(WaitKind.RESULTS, tuple(task.ref for task in done)), True
        return state
    yield from _release_completed(state, runner, tasks)
    yield from _go_on(state, runner, tasks)
    return state


def dry_pass(observed: SyncObserved, now: datetime) -> Flow[SyncState]:
    """Run only the initial dry runs of an operation: rows report refusals, nothing is written."""
    observed = replace(observed, options=replace(observed.options, dry_run=True, apply_out_of_sync_only=True))
    state = SyncState.open(observed)
    ready = _prepare(state)
    if not ready.problems:
        yield from Runner(state, now).run(_out_of_sync(observed, ready.tasks), dry=True)
    return state


@dataclass(frozen=True, slots=True)
class _Ready:
    """The tasks with their results. ``problems``: why the operation is invalid. ``recognised``: tasks known to have run
    by their stamp only. ``started``: the dry run is done."""

    tasks: list[Task]
    problems: list[str]
    recognised: list[Task]
    started: bool


def _prepare(state: SyncState) -> _Ready:
    made = build_tasks(state.observed)
    for problem in (*made.broken, *made.invalid):
        state.note(problem.task, ResultCode.SYNC_FAILED, problem.state, problem.message)
    tasks = list(made.tasks)
    state.attach(tasks)
    started = state.started
    recognised: list[Task] = []
    for task in tasks:
        if task.pending and is_stamped(state.observed, task):
            state.note(task, ResultCode.SYNCED, OperationPhase.RUNNING, f"{_label(task)} created")
            recognised += [] if _is_own_namespace(state.observed, task) else [task]
    return _Ready(tasks, [problem.message for problem in made.invalid], recognised, started or bool(recognised))


def _is_own_namespace(observed: SyncObserved, task: Task) -> bool:
    """Return whether this is the destination Namespace: created before the dry run, so no evidence that it passed."""
    return (task.gvk.group, task.gvk.kind, task.ref.name) == ("", "Namespace", observed.namespace)


def _cut_off(ready: _Ready) -> list[Task]:
    """Return the rest of a wave that a crash interrupted: it must not wait for the wave's own hooks."""
    waves = {(task.phase, task.wave) for task in ready.recognised if task.phase is not SyncPhase.SYNC_FAIL}
    left = [task for task in ready.tasks if task.pending and (task.phase, task.wave) in waves]
    return [task for task in left if (task.phase, task.wave) == (left[0].phase, left[0].wave)]


def _label(task: Task) -> str:
    kind = f"{task.gvk.kind}.{task.gvk.group}" if task.gvk.group else task.gvk.kind
    return f"{kind.lower()}/{task.ref.name}"


def _check_beforehand(state: SyncState, runner: Runner, tasks: Sequence[Task]) -> Flow[bool]:
    """Create the destination Namespace, then dry-run everything else; True if the operation ends here."""
    observed = state.observed
    namespace = next((task for task in tasks if _is_missing_namespace(observed, task)), None)
    if namespace is not None and (yield from runner.run([namespace], dry=False)) is RunState.FAILED:
        why = messages.with_reasons(messages.NAMESPACE_FAILED, [namespace])
        state.set_phase(OperationPhase.FAILED, why)
        return True
    rest = [task for task in tasks if task is not namespace]
    if (yield from runner.run(_out_of_sync(observed, rest), dry=True)) is RunState.FAILED:
        refused = [task for task in rest if task.status is ResultCode.SYNC_FAILED]
        state.set_phase(OperationPhase.FAILED, messages.dry_run_failed(refused))
        return True
    return False


def _unreadable(observed: SyncObserved, tasks: Sequence[Task]) -> list[str]:
    """Return errors of our annotations; with any of them, nothing is applied."""
    problems: list[str] = []
    count = 0
    for task in tasks if observed.durable else ():
        if not is_conditioned(task.facts.annotations):
            continue
        try:
            gate_deadline(task.obj)
            count += len(_conditions(observed, task))
        except ConditionError as error:
            problems.append(f"{task.ref}: {error}")
    problems += [f"{gate.who}: {gate.refused}" for gate in observed.gates if gate.refused]
    if count > MAX_ALL_WAITS:
        problems.append(f"{WAIT_FOR}: found {count} conditions in all manifests; at most {MAX_ALL_WAITS}")
    return problems


def _conditions(observed: SyncObserved, task: Task) -> tuple[Condition, ...]:
    return (
        () if task.target is None else waits_of(task.target, observed.kinds, observed.namespace, observed.rules.refuses)
    )


def _gates(observed: SyncObserved, wave: Sequence[Task], tasks: Sequence[Task]) -> list[WaveGate]:
    """Return the gates between the waves so far and ``wave``; empty ``wave``: the end."""
    here = {task.ref for task in tasks}
    return [
        gate
        for gate in observed.gates
        if (gate.to_end or gate.who in here)
        and (is_after(wave[0].phase, wave[0].wave, gate.phase, gate.wave) if wave else gate.to_end)
    ]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A condition, the task that is failed by its deadline, and how a message begins."""

    task: Task
    condition: Condition
    who: str
    gate: WaveGate | None = None

    def problem(self, state: SyncState, steps: Steps, now: datetime) -> str:
        rules, one = state.observed.rules, self.condition
        if self.gate is not None and self.gate.unserved:
            return self.gate.unserved
        known = seen_by(rules.behind_gate, rules.unread)
        unread = rules.unread(one.ref)
        return one.problem(rules.lookup(one.ref), rules.health, steps, unread=unread, known=known, now=now)


def _asked(observed: SyncObserved, wave: Sequence[Task], tasks: Sequence[Task], now: datetime) -> list[_Asked]:
    if not observed.durable or not tasks:
        return []
    found = [_Asked(task, one, f"{task.ref} waits") for task in wave for one in _conditions(observed, task)]
    for gate in _gates(observed, wave, tasks):
        if not (gate.goes_on and _is_over(observed, gate.condition, now)):
            what = f"what comes after wave {gate.wave}" if wave else "the end of the sync"
            mine = next((task for task in tasks if task.ref == gate.who), None)
            task = mine or (wave[0] if wave else tasks[-1])
            found.append(_Asked(task, gate.condition, f"{gate.who} holds {what}", gate))
    return found


def _is_over(observed: SyncObserved, condition: Condition, now: datetime) -> bool:
    return condition.deadline is not None and now >= observed.started_at + condition.deadline


def _wait_for_conditions(state: SyncState, wave: Sequence[Task], tasks: Sequence[Task], now: datetime) -> bool:
    """Return whether a condition of the wave's manifests, or a gate before it, does not hold yet. Deadlines count from
    the start of the operation; an exceeded one fails it. After an expression exceeded its budget, evaluation pauses;
    the message records that."""
    observed = state.observed
    asked = _asked(observed, wave, tasks, now)
    over = [one for one in asked if _is_over(observed, one.condition, now)]
    rest = rests_until(observed.message)
    if asked and not over and rest is not None and now < rest <= now + timedelta(seconds=RETRY_S):
        return _waits(state, [one.condition.ref for one in asked], observed.message)
    refs: list[ObjectRef] = []
    why = again = ""
    steps = Steps()
    for one in asked:
        try:
            problem = one.problem(state, steps, now)
        except ConditionError as error:
            problem = str(error)
            if isinstance(error, OutOfSteps):
                again = again or f"{one.who}: {problem}"
        if problem and one in over:
            assert one.condition.deadline is not None, "it is over"
            who = one.gate.who if one.gate is not None else one.task.ref
            text = f"{who} waited for {one.condition.deadline.total_seconds():g} s: {problem}"
            state.note(one.task, ResultCode.SYNC_FAILED, OperationPhase.FAILED, text)
            state.set_phase(OperationPhase.RUNNING, state.message, text)
            state.again = True
            return True
        if problem:
            refs.append(one.condition.ref)
            why = why or f"{one.who}: {problem}"
    if again:
        why = f"{again}{JUDGED_AGAIN}{format_time(now + timedelta(seconds=RETRY_S))}"
    return bool(refs) and _waits(state, refs, why)


def _waits(state: SyncState, refs: list[ObjectRef], why: str) -> bool:
    observed = state.observed
    state.set_phase(OperationPhase.RUNNING, why)
    state.wait = Wait(WaitKind.CONDITION, tuple(refs), observed.started_at, observed.started_at + GATE_DEADLINE)
    return True


def _judge_deadlines(state: SyncState, tasks: Sequence[Task], now: datetime) -> None:
    """Apply the deadlines of resources whose gate waited too long: fail, or continue without them."""
    for task in tasks if state.observed.durable else ():
        limit = gate_deadline(task.obj) if task.running and not task.is_prune else None
        if limit is None or now < waiting_since(task, state.observed.started_at) + limit[0]:
            continue
        text = f"not done after {limit[0].total_seconds():g} s ({GATE_DEADLINE_KEY})"
        fails = limit[1] == "fail"
        state.note(task, task.status, OperationPhase.FAILED if fails else OperationPhase.SUCCEEDED, text)


def _is_missing_namespace(observed: SyncObserved, task: Task) -> bool:
    return task.target is not None and task.live is None and _is_own_namespace(observed, task)


def _out_of_sync(observed: SyncObserved, tasks: Sequence[Task]) -> list[Task]:
    """Remove unmodified resources if the operation selects out-of-sync ones only; hooks always stay."""
    if not observed.options.apply_out_of_sync_only:
        return list(tasks)
    return [task for task in tasks if task.is_hook or not _is_in_sync(observed, task)]


def _is_in_sync(observed: SyncObserved, task: Task) -> bool:
    return task.target is not None and task.live is not None and ref_of(task.live) in observed.in_sync


def _judge_running(state: SyncState, tasks: Sequence[Task]) -> list[Task]:
    """Update running tasks from their live objects; return the hooks that have ended."""
    done: list[Task] = []
    for task in tasks:
        if not task.running or task.live is None:
            continue
        if task.is_hook:
            judge_hook(state, task)
            done += [task] if task.completed else []
        else:
            _judge_resource(state, task)
    return done


def _judge_resource(state: SyncState, task: Task) -> None:
    assert task.live is not None, "only a live object has health"
    health = state.observed.rules.health(task.live)
    if health is None:
        state.note(task, task.status, OperationPhase.SUCCEEDED, task.message)
    elif health.failed:
        return
    elif health.status is HealthStatus.HEALTHY:
        state.note(task, task.status, OperationPhase.SUCCEEDED, health.message)
    elif health.status is HealthStatus.DEGRADED:
        state.note(task, task.status, OperationPhase.FAILED, health.message)


def _wait_for_running(state: SyncState, tasks: Sequence[Task]) -> Flow[bool]:
    """Wait for hooks always, for resources only if there is more than one wave and nothing has failed.

    Upstream waits for resources beside a failed task too, forever if one never becomes healthy.
    """
    several = bool(tasks) and (tasks[0].phase, tasks[0].wave) != (tasks[-1].phase, tasks[-1].wave)
    lost = state.observed.durable and any(_has_failed(task) for task in tasks)
    running = [task for task in tasks if task.running and (task.is_hook or (several and not lost))]
    if not running:
        return False
    unseen = [task for task in running if task.live is None]
    for task, outcome in (yield from ask([unseen], read_object)):
        if outcome.not_found:
            state.note(task, ResultCode.SYNC_FAILED, OperationPhase.ERROR, messages.missing_message(task.ref))
        elif not outcome.ok:
            why = f"Failed to get live resource failed to get resource: {outcome.message}"
            state.note(task, task.status, OperationPhase.ERROR, why)
        elif _judge_read(state, task, outcome.obj):
            state.again = True
    state.set_waiting(running, WaitKind.HEALTH)
    return True


def _judge_read(state: SyncState, task: Task, live: Obj | None) -> bool:
    """Judge an object that was read but is missing from the comparison; True if the task is done."""
    if not state.observed.durable or live is None:
        return False
    task.live = live
    if task.is_hook:
        judge_hook(state, task)
    else:
        _judge_resource(state, task)
    return not task.running


def _has_failed(task: Task) -> bool:
    return task.completed and not task.successful and task.phase is not SyncPhase.SYNC_FAIL


def _wait_for_pruned(state: SyncState, tasks: Sequence[Task]) -> bool:
    going = [task for task in tasks if task.pruned and task.live is not None and _terminating(task)]
    if going:
        state.set_waiting(going, WaitKind.DELETION)
    return bool(going)


def _terminating(task: Task) -> bool:
    return bool((task.live or {}).get("metadata", {}).get("deletionTimestamp"))


def _release_completed(state: SyncState, runner: Runner, tasks: Sequence[Task]) -> Flow[None]:
    completed = [task for task in tasks if task.is_hook and task.completed]
    for task, outcome in (yield from runner.release(completed, "the hook has ended", one_by_one=True)):
        if not outcome.ok:
            why = f"Failed to remove hook finalizer: {outcome.message}"
            state.note(task, task.status, OperationPhase.ERROR, why)


def _deletable(tasks: Sequence[Task], policy: DeletePolicy) -> list[Task]:
    return [task for task in tasks if not task.running and task.has_policy(policy)]


def _go_on(state: SyncState, runner: Runner, tasks: Sequence[Task]) -> Flow[None]:
    """After all running tasks are done, end the operation or run the next wave."""
    regular = [task for task in tasks if task.phase is not SyncPhase.SYNC_FAIL]
    if any(_has_failed(task) for task in regular):
        yield from runner.delete_hooks(_deletable(tasks, DeletePolicy.HOOK_FAILED), "the sync failed")
        yield from _run_fail_hooks(state, runner, _fail_hooks(tasks), regular, messages.UNSUCCESSFUL)
        return
    pending = _out_of_sync(state.observed, [task for task in regular if task.pending])
    if not pending:
        if _wait_for_conditions(state, (), tasks, runner.now):
            return
        yield from runner.delete_hooks(_deletable(tasks, DeletePolicy.HOOK_SUCCEEDED), "the sync succeeded")
        state.set_phase(OperationPhase.SUCCEEDED, messages.NO_MORE_TASKS)
        return
    wave = [task for task in pending if (task.phase, task.wave) == (pending[0].phase, pending[0].wave)]
    if _wait_for_conditions(state, wave, tasks, runner.now):
        return
    yield from _run_next(state, runner, tasks, wave)


def _fail_hooks(tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if task.phase is SyncPhase.SYNC_FAIL]


def _run_next(sync_state: SyncState, runner: Runner, tasks: Sequence[Task], wave: Sequence[Task]) -> Flow[None]:
    """Run ``wave`` and record what is awaited, or how the operation ended."""
    observed = sync_state.observed
    succeeded = _deletable(tasks, DeletePolicy.HOOK_SUCCEEDED)
    failed = _deletable(tasks, DeletePolicy.HOOK_FAILED)
    regular = [task for task in tasks if task.phase is not SyncPhase.SYNC_FAIL]
    pending = _out_of_sync(sync_state.observed, [task for task in regular if task.pending])
    last = (pending[-1].phase, pending[-1].wave) == (wave[0].phase, wave[0].wave)
    whole = [task for task in regular if (task.phase, task.wave) == (wave[0].phase, wave[0].wave)]
    waits = any(task.is_hook and (task.pending or task.running) for task in whole)
    state = yield from _run_wave(sync_state, runner, wave, last, _seen_late(sync_state.observed, wave, tasks))
    match state:
        case RunState.FAILED:
            yield from _after_failure(sync_state, runner, wave, _fail_hooks(tasks), failed)
        case RunState.SUCCESSFUL if len(wave) == len(pending) and not waits and not _gates(observed, (), tasks):
            yield from runner.delete_hooks(succeeded, "the sync succeeded")
            sync_state.set_phase(OperationPhase.SUCCEEDED, messages.ALL_TASKS_RUN)
        case RunState.SUCCESSFUL:
            sync_state.set_waiting(wave, WaitKind.HEALTH)
        case RunState.PENDING:
            kind, waiting = next(iter(runner.waiting.items()))
            sync_state.set_waiting(waiting, kind)
        case None:
            return


def _seen_late(observed: SyncObserved, wave: Sequence[Task], tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks that need a dry run now: an earlier wave has since created their namespace or kind, or their
    first dry run was deferred."""
    if not observed.durable:
        return []
    again = [task for task in wave if task.deferred] if any(not task.pending for task in tasks) else []
    early = [task for task in tasks if makes_room(task) and task not in wave]
    makers = [task for task in early if task.ref.name != observed.namespace and _is_new(observed, task)]
    return [task for task in wave if task in again or any(makes_room_for(maker, task) for maker in makers)]


def _is_new(observed: SyncObserved, task: Task) -> bool:
    created = meta(task.live or {}).get("creationTimestamp")
    return task.target is not None and isinstance(created, str) and created >= format_time(observed.started_at)


def _run_wave(
    sync_state: SyncState, runner: Runner, wave: Sequence[Task], final: bool, late: Sequence[Task]
) -> Flow[RunState | None]:
    """Run one wave; None if a later step failed and ended the operation."""
    sync_state.set_phase(OperationPhase.RUNNING, "one or more tasks are running")
    state = RunState.SUCCESSFUL
    if late:
        state = yield from runner.run(late, dry=True, among=wave)
    if state is not RunState.FAILED:
        state = yield from runner.run(wave, dry=False)
    if state is RunState.FAILED:
        return state
    phase, number = wave[0].phase, wave[0].wave
    sync_state.wave = WaveDone(phase, number, final)
    if not sync_state.observed.options.wave_callback:
        return state
    ((outcome,),) = yield ((AfterWave(phase, number, final, "the wave is through"),),)
    if outcome.ok:
        return state
    yield from terminate_hooks(sync_state, runner, wave)
    sync_state.set_phase(OperationPhase.ERROR, messages.WAVE_CALLBACK_FAILED + outcome.message)
    return None


def _after_failure(
    state: SyncState, runner: Runner, wave: Sequence[Task], fail_hooks: Sequence[Task], failed: Sequence[Task]
) -> Flow[None]:
    """After a failed wave, start SyncFail hooks at once and still wait for the applied objects."""
    running = [task for task in wave if task.running]
    if running and not fail_hooks:
        state.set_waiting(running, WaitKind.HEALTH)
        return
    over = yield from _run_fail_hooks(state, runner, fail_hooks, wave, messages.NOT_APPLIED)
    if running:
        state.set_waiting([*running, *([] if over else fail_hooks)], WaitKind.HEALTH)
    elif over:
        yield from runner.delete_hooks(failed, "the sync failed")


def _run_fail_hooks(
    state: SyncState, runner: Runner, fail_hooks: Sequence[Task], tasks: Sequence[Task], message: str
) -> Flow[bool]:
    """Start the SyncFail hooks that have not run; True once only the failure is left to record."""
    refused = [task for task in tasks if task.status is ResultCode.SYNC_FAILED]
    text = messages.with_reasons(message, refused)
    if all(task.completed for task in fail_hooks):
        broken = [task for task in fail_hooks if task.status is ResultCode.SYNC_FAILED]
        if broken:
            text += "\n" + messages.with_reasons(messages.SYNC_FAIL_HOOKS_FAILED, broken)
        state.set_phase(OperationPhase.FAILED, text)
        return True
    pending = [task for task in fail_hooks if not task.completed and not task.running]
    yield from runner.run(pending, dry=False)
    state.set_waiting(pending, WaitKind.HEALTH)
    return False
