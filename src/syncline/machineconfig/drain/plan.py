"""Plans the drain of a node: cordon, evict within budgets, wait, report, retry; pure.

The node's agent requests it in ``desiredDrain`` and continues when ``lastAppliedDrain`` is equal. An attempt lasts 90
seconds and retries refused evictions every 5; the next attempt follows after a minute, after ten minutes of failures
every five minutes, without end (reference machine-config 5). Ours: a drain that cannot finish does not start
(``machineconfig/drain/feasible.py``), and the retries survive a restart (``machineconfig/drain/progress.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from syncline.control.plan import Delete, Emit, Evict, Patch, Plan, Requeue, Result, Retry, SetStatus, set_status
from syncline.kube.errors import Conflict, NotFound, TooManyRequests
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    gvk_of,
    is_terminating,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)
from syncline.machineconfig.drain.feasible import Outlook, Verdict, judge
from syncline.machineconfig.drain.observe import Observed
from syncline.machineconfig.drain.progress import (
    BLOCKED,
    KEEP_CORDON,
    MAX_TEXT,
    PROGRESS,
    BlockedNote,
    Progress,
    insists,
)
from syncline.machineconfig.drain.proposals import proposals
from syncline.machineconfig.names import DESIRED_DRAIN, LAST_DRAIN
from syncline.machineconfig.nodes.phases import Phase, advance

COMPONENT = "machineconfigcontroller-nodecontroller"
"""Component of Events, as upstream's."""
UNTIL = "The drain will not be complete until desired drainer"
UNWRITABLE = "the node could not be cordoned"
"""Upstream waits for the next change of the node; here the attempt is retried like any failed one."""
DEADLINE = "context deadline exceeded"
CLOCKS = timedelta(minutes=1)
"""Tolerated clock difference: a note with a later time comes from a wrong clock and is ignored."""


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """Time limits; the defaults are upstream's."""

    attempt_s: float = 90.0
    """Duration of one attempt."""
    evict_again_s: float = 5.0
    """Between evictions of a pod that was refused."""
    retry_s: float = 60.0
    """Between a failed attempt and the next one."""
    patience_s: float = 600.0
    """Time after which attempts become less frequent, with an Event."""
    rare_retry_s: float = 300.0
    limit_s: float = 3600.0
    """Time after which each attempt reports that the drain fails; it is never abandoned."""
    look_again_s: float = 30.0
    """Between checks of a drain that cannot finish; changes of budgets and nodes cause further ones."""
    tries: int = 5
    """Maximum writes of the node in one reconcile, before its MachineConfigNode reports the failure."""


UPSTREAM = DrainSettings()


def plan(observed: Observed, now: datetime, settings: DrainSettings = DrainSettings()) -> Plan:
    have = annotations_of(observed.node)
    wanted = have.get(DESIRED_DRAIN, "")
    if wanted == have.get(LAST_DRAIN, ""):
        return _forget(observed)
    if observed.trouble:
        return Plan(outcome=Retry(observed.trouble), why=observed.trouble)
    verb = wanted.split("-")[0]
    if verb == "uncordon":
        return _uncordon(observed, wanted, now)
    if verb != "drain":
        text = f"node {name_of(observed.node)}: non-recognized drain verb detected {verb}"
        return Plan(outcome=Retry(text), why=text)
    return _drain(observed, wanted, now, settings)


def _forget(observed: Observed) -> Plan:
    """Remove the notes about a drain that is no longer requested."""
    have = annotations_of(observed.node)
    notes: dict[str, str | None] = {key: None for key in (PROGRESS, BLOCKED) if key in have}
    if not notes:
        return Plan(why="the drain that is asked for is done")
    return Plan(((_write(observed.node, notes, "the drain is no longer requested"),),), why="forget an old drain")


def _uncordon(observed: Observed, wanted: str, now: datetime) -> Plan:
    parent = Phase("UpdateComplete", "True", "Uncordoned", "Uncordoned Node as part of completing upgrade phase")
    message = f"UnCordoned node. The node is reporting Unschedulable = {_go(_cordoned(observed.node))}"
    child = Phase("Uncordoned", "True", "UpdateCompleteUncordoned", message)
    notes = {LAST_DRAIN: wanted, PROGRESS: None, BLOCKED: None}
    if KEEP_CORDON in annotations_of(observed.node):
        patch = _write(observed.node, notes | {KEEP_CORDON: None}, "its update has ended; another client cordoned it")
    elif _cordoned_by_others(observed.node):
        patch = _write(observed.node, notes, "its update has ended, and was none of those that cordon")
    else:
        patch = _write(observed.node, notes, "its update has ended", unschedulable=False)
    return Plan((*_phase(observed, parent, child, now), (patch,)), why=f"uncordon node {name_of(observed.node)}")


def _drain(observed: Observed, wanted: str, now: datetime, settings: DrainSettings) -> Plan:
    progress = Progress.of(observed.node)
    mine = progress is not None and progress.request == wanted
    kept = "" if mine else observed.kept(now)
    if kept:
        return _keep(observed, kept, now)
    if not mine or not _cordoned(observed.node):
        verdict = _verdict(observed, mine, now)
        if verdict is not None and verdict.outlook is not Outlook.CAN:
            return _hold_back(observed, verdict, wanted, now, settings)
        return _begin(observed, wanted, progress if mine else None, now, settings)
    assert progress is not None, "it is mine"
    wait = _wait_s(progress, now)
    if progress.retry is not None and wait <= 0:
        return _retry_attempt(observed, progress, now, settings)
    if not observed.leaving:
        return _done(observed, wanted, now)
    if progress.retry is not None:
        return Plan(outcome=Requeue(wait, "the next attempt to drain"), why="waits to try again")
    return _go_on(observed, progress, now, settings)


def _keep(observed: Observed, why: str, now: datetime) -> Plan:
    """Do not start while the pool is paused or held. The pool reports that, so a note about a blocked drain is
    removed."""
    gone: dict[str, str | None] = {BLOCKED: None}
    steps = ((_write(observed.node, gone, why),),) if BLOCKED in annotations_of(observed.node) else ()
    ends = [hold.expires for hold in observed.holds if hold.lives(now) and hold.expires is not None]
    if not ends:
        return Plan(steps, why=f"{why}: the drain is not begun")
    left_s = (min(ends) - now).total_seconds()
    return Plan(steps, Requeue(left_s, "a Hold expires", background=True), f"{why}: the drain is not begun")


def _wait_s(progress: Progress, now: datetime) -> float:
    """Return the seconds until the next attempt; 0 if a wrong clock set it."""
    if progress.retry is None or progress.attempt > now + CLOCKS:
        return 0.0
    return (progress.retry - now).total_seconds()


def _verdict(observed: Observed, begun: bool, now: datetime) -> Verdict | None:
    """Return the forecast, before the first cordon only: a drain that has started is completed."""
    if begun or observed.forecast is None or not observed.leaving or insists(observed.node, observed.pool):
        return None
    return judge(observed.forecast(), name_of(observed.node), now)


def _hold_back(observed: Observed, verdict: Verdict, wanted: str, now: datetime, settings: DrainSettings) -> Plan:
    """Do not cordon; note on the node what blocks, for the pool's status."""
    again = Requeue(settings.look_again_s, "whether the drain can finish now", background=True)
    note, event = _blocked_note(observed, wanted, now, verdict)
    if note is None:
        gone: dict[str, str | None] = {BLOCKED: None}
        known = BLOCKED in annotations_of(observed.node)
        steps = ((_write(observed.node, gone, "the drain only has to wait"),),) if known else ()
        return Plan(steps, again, verdict.message())
    if event is None:
        return Plan(outcome=again, why=note.message)
    notes: dict[str, str | None] = {BLOCKED: note.text(), PROGRESS: None}
    patch = _write(observed.node, notes, "its drain cannot finish")
    return Plan(((patch,), (event,)), again, note.message)


def _blocked_note(
    observed: Observed, wanted: str, now: datetime, verdict: Verdict | None = None
) -> tuple[BlockedNote | None, Emit | None]:
    """Return the note about a blocked drain, and an Event if it is new; None if the drain can finish."""
    if observed.forecast is None:
        return None, None
    sight = observed.forecast()
    verdict = judge(sight, name_of(observed.node), now) if verdict is None else verdict
    if verdict.outlook is not Outlook.BLOCKED:
        return None, None
    old = BlockedNote.of(observed.node)
    since = old.since if old is not None and old.request == wanted else now
    fixes = tuple(text for each in proposals(sight, verdict, now) if len(text := str(each)) <= MAX_TEXT)
    note = BlockedNote(wanted, since, verdict.message()[:MAX_TEXT], fixes)
    if note == old:
        return note, None
    return note, Emit(observed.node, "DrainBlocked", note.sentence(), COMPONENT, warning=True)


# -- attempts --------------------------------------------------------------------------------------------------------


def _begin(observed: Observed, wanted: str, lifted: Progress | None, now: datetime, settings: DrainSettings) -> Plan:
    """Cordon, also if the cordon was removed (``lifted``), and start the timer."""
    progress = Progress(wanted, now, now) if lifted is None else Progress(wanted, lifted.began, now, restarted=True)
    parent = Phase("UpdateExecuted", "Unknown", "Cordoned", "Cordoned Node as part of update executed phase")
    message = f"Cordoned node. The node is reporting Unschedulable = {_go(_cordoned(observed.node))}"
    child = Phase("Cordoned", "True", "UpdateExecutedCordoned", message)
    notes: dict[str, str | None] = {PROGRESS: progress.text(), BLOCKED: None}
    if _cordoned_by_others(observed.node):
        notes[KEEP_CORDON] = "true"
    elif KEEP_CORDON in annotations_of(observed.node) and not _cordoned(observed.node):
        notes[KEEP_CORDON] = None  # the user who cordoned it has uncordoned it, too
    patch = _write(observed.node, notes, "its agent asks for a drain", unschedulable=True)
    events = _too_long(observed, progress, now, settings)
    return Plan((*_phase(observed, parent, child, now), (patch, *events)), why=f"cordon node {name_of(observed.node)}")


def _cordoned_by_others(node: Obj) -> bool:
    """Return whether the node is cordoned, but not by a drain of ours."""
    ours = Progress.of(node) is not None or annotations_of(node).get(LAST_DRAIN, "").startswith("drain-")
    return _cordoned(node) and not ours


def _retry_attempt(observed: Observed, progress: Progress, now: datetime, settings: DrainSettings) -> Plan:
    fresh = replace(progress, attempt=now, retry=None)
    patch = _write(observed.node, {PROGRESS: fresh.text()}, "another attempt to drain")
    events = _too_long(observed, progress, now, settings)
    steps = ((patch,), events) if events else ((patch,),)  # a note that cannot be written is not reported repeatedly
    return Plan(steps, why=f"try again to drain node {name_of(observed.node)}")


def _too_long(observed: Observed, progress: Progress, now: datetime, settings: DrainSettings) -> tuple[Emit, ...]:
    if now - progress.began < timedelta(seconds=settings.limit_s):
        return ()
    limit = _go_duration(settings.limit_s)
    text = f"node {name_of(observed.node)}: drain exceeded timeout: {limit}. Will continue to retry."
    return (Emit(observed.node, "DrainFailed", text, COMPONENT, warning=True),)


def _go_on(
    observed: Observed, progress: Progress, now: datetime, settings: DrainSettings, *, first: bool = False
) -> Plan:
    """Continue an attempt: evict all pods first, then the remaining ones, and all again at its end, so that each has a
    current result."""
    left = _left_s(progress, now, settings)
    asked = [pod for pod in observed.leaving if first or left <= 0 or not is_terminating(pod)]
    wait = min(settings.evict_again_s, left) if asked else left
    message = f"{len(observed.leaving)} pods have to leave {name_of(observed.node)}"
    return Plan(
        (*_draining(observed, now), *_removals(observed, asked)), Requeue(max(wait, 0.0), "pods are going"), message
    )


def _left_s(progress: Progress, now: datetime, settings: DrainSettings) -> float:
    """Return the seconds left in the attempt; 0 if a wrong clock started it."""
    if progress.attempt > now + CLOCKS:
        return 0.0
    return settings.attempt_s - (now - progress.attempt).total_seconds()


def _removals(observed: Observed, pods: Sequence[Obj]) -> tuple[tuple[Evict | Delete, ...], ...]:
    """Return the evictions, all at once; without their subresource deletions one by one, up to the first refusal."""
    why = f"node {name_of(observed.node)} is drained"
    if observed.evicts:
        evictions = tuple(Evict(namespace_of(pod), name_of(pod), why, uid_of(pod)) for pod in pods)
        return (evictions,) if evictions else ()
    ordered = sorted(pods, key=lambda pod: (namespace_of(pod), name_of(pod)))
    return tuple((Delete.of({"apiVersion": "v1", "kind": "Pod"} | pod, why),) for pod in ordered)


def _draining(observed: Observed, now: datetime) -> tuple[tuple[SetStatus, ...], ...]:
    wanted, last = _request(observed.node), annotations_of(observed.node).get(LAST_DRAIN, "")
    parent = Phase("UpdateExecuted", "Unknown", "Drained", "Draining Node as part of update executed phase")
    message = (
        f"Draining node. The drain will not be complete until desired drainer {wanted} matches current drainer {last}"
    )
    return _phase(observed, parent, Phase("Drained", "Unknown", "UpdateExecutedDrained", message), now)


def _overdue(observed: Observed, pods: Iterable[Obj], settings: DrainSettings) -> list[str]:
    """Return the errors for pods that remain at the end of an attempt."""
    if not observed.evicts:
        return [DEADLINE for _ in pods]
    limit = _go_duration(settings.attempt_s)
    return [
        f'error when waiting for pod "{name_of(pod)}" in namespace "{namespace_of(pod)}" to terminate: {DEADLINE}'
        if is_terminating(pod)
        else f'error when evicting pods/"{name_of(pod)}" -n "{namespace_of(pod)}": global timeout reached: {limit}'
        for pod in pods
    ]


def _joined(errors: Sequence[str]) -> str:
    """Return the errors as Go's aggregate prints them: each once, in brackets."""
    found = list(dict.fromkeys(errors))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def _give_up(
    observed: Observed, progress: Progress, errors: Sequence[str], now: datetime, settings: DrainSettings
) -> Plan:
    """End a failed attempt and schedule the next one."""
    error = _joined(errors)
    rare = progress.attempt - progress.began >= timedelta(seconds=settings.patience_s)
    wait = settings.rare_retry_s if rare else settings.retry_s
    wanted, last = _request(observed.node), annotations_of(observed.node).get(LAST_DRAIN, "")
    parent = Phase("UpdateExecuted", "Unknown", "Drained", "Node Drain has not succeeded")
    message = f"Error: Node Drain has not succeeded. Error is: {error} {UNTIL} {wanted} matches current drainer {last}"
    phase = _phase(observed, parent, Phase("Drained", "Unknown", "UpdateExecutedDrained", message), now)
    noted = progress.failed(now + timedelta(seconds=wait))
    blocked, _ = _blocked_note(observed, wanted, now)
    notes = {PROGRESS: noted.text(), BLOCKED: blocked.text() if blocked is not None else None}
    patch = _write(observed.node, notes, "the attempt to drain failed")
    events: tuple[Emit, ...] = ()
    if rare:
        minutes, pause = settings.patience_s / 60, settings.rare_retry_s / 60
        text = (
            f"Drain failed. Drain has been failing for more than {minutes:g} minutes. Waiting {pause:g} minutes then "
            f"retrying. Error message from drain: {error}"
        )
        events = (Emit(observed.node, "DrainThresholdExceeded", text, COMPONENT, warning=True),)
    return Plan((*phase, (patch, *events)), Requeue(wait, "the next attempt to drain"), f"the drain failed: {error}")


def _done(observed: Observed, wanted: str, now: datetime) -> Plan:
    """Report the end of the drain, on condition that the node is still as observed."""
    parent = Phase("UpdateExecuted", "Unknown", "Drained", "Drained Node as part of update executed phase")
    message = f"Drained node. The drain is complete as the desired drainer matches current drainer: {wanted}"
    child = Phase("Drained", "True", "UpdateExecutedDrained", message)
    notes = {LAST_DRAIN: wanted, PROGRESS: None, BLOCKED: None}
    patch = _write(observed.node, notes, "nothing is left to evict")
    return Plan((*_phase(observed, parent, child, now), (patch,)), why=f"node {name_of(observed.node)} is drained")


# -- answers ---------------------------------------------------------------------------------------------------------


def settle(
    observed: Observed, made: Plan, results: Sequence[Result], now: datetime, settings: DrainSettings = DrainSettings()
) -> tuple[Observed, Plan] | None:
    """Continue from the results: evictions follow the cordon at once; refusals end or prolong an attempt."""
    observed = _with_written(observed, results)
    if any(isinstance(result.error, Conflict) for result in results):
        return None  # something has changed: the key is planned again at once
    if any(isinstance(result.action, SetStatus) and not result.ok for result in results):
        unreported = tuple(step for step in made.steps if not any(isinstance(action, SetStatus) for action in step))
        if unreported:
            return observed, replace(made, steps=unreported)  # a failed write of the record does not stop a drain
    written = next((r for r in results if isinstance(r.action, Patch) and r.action.gvk.kind == "Node"), None)
    if written is not None:
        after = _after_write if written.ok else _after_refused_write
        return after(observed, written, now, settings)
    removals = [result for result in results if isinstance(result.action, Evict | Delete)]
    return _after_removals(observed, removals, now, settings) if removals else None


def _with_written(observed: Observed, results: Sequence[Result]) -> Observed:
    """Return the state with the written objects, so that the next writes are conditional on them."""
    for result in results:
        if result.ok and isinstance(result.value, dict):
            if isinstance(result.action, Patch) and result.action.gvk.kind == "Node":
                observed = replace(observed, node=result.value, tries=0)
            elif isinstance(result.action, SetStatus):
                observed = replace(observed, machine_config_node=result.value)
    return observed


def _after_write(
    observed: Observed, written: Result, now: datetime, settings: DrainSettings
) -> tuple[Observed, Plan] | None:
    """Start the attempt whose note was written."""
    progress = Progress.of(observed.node)
    if progress is None or progress.retry is not None or not _notes(written).get(PROGRESS):
        return None
    if not observed.leaving:
        return observed, _done(observed, progress.request, now)
    return observed, _go_on(observed, progress, now, settings, first=True)


def _after_refused_write(
    observed: Observed, written: Result, now: datetime, settings: DrainSettings
) -> tuple[Observed, Plan] | None:
    """Handle a failed write: retry cordons, report a failed ``lastAppliedDrain``, and continue without a note."""
    name, notes = name_of(observed.node), _notes(written)
    spec = getattr(written.action, "body", {}).get("spec")
    if isinstance(written.error, NotFound):
        return None
    if spec is not None and bool(spec["unschedulable"]) != _cordoned(observed.node):
        if observed.tries + 1 < settings.tries:
            return replace(observed, tries=observed.tries + 1), Plan(((written.action,),), why="write the node again")
        return observed, _unwritable(observed, written, now, settings, cordon=bool(spec["unschedulable"]))
    if LAST_DRAIN in notes:
        text = f"failed to set node uncordoned annotation: node {name}: unable to update: {written.error}"
        return observed, Plan(outcome=Retry(f"node {name}: {text}"), why=text)
    have = annotations_of(observed.node) | {key: text for key, text in notes.items() if text is not None}
    noted = replace(observed, node=observed.node | {"metadata": observed.node["metadata"] | {"annotations": have}})
    return _after_write(noted, written, now, settings)


def _notes(written: Result) -> dict[str, str | None]:
    """Return the annotations that a write of the node set."""
    found: dict[str, str | None] = getattr(written.action, "body", {})["metadata"]["annotations"]
    return found


def _unwritable(observed: Observed, written: Result, now: datetime, settings: DrainSettings, *, cordon: bool) -> Plan:
    """Report the error in the MachineConfigNode; the queue retries with backoff."""
    name = name_of(observed.node)
    tried = f"node {name}: failed to {'cordon' if cordon else 'uncordon'} ({settings.tries} tries)"
    error = f"{tried}: [timed out waiting for the condition, cordon error: {written.error}]"
    state = f"The node is reporting Unschedulable = {_go(_cordoned(observed.node))}"
    if not cordon:
        message = "Failed to Uncordon Node as part of completing upgrade phase"
        parent = Phase("UpdateComplete", "Unknown", "Uncordoned", message)
        child = f"Error: Failed to UnCordon node. Error is: {error} {state}"
        phase = _phase(observed, parent, Phase("Uncordoned", "Unknown", "UpdateCompleteUncordoned", child), now)
        return Plan(phase, Retry(f"failed to uncordon node {name}: {error}"), error)
    message = "Failed to Cordon Node as part of In progress update phase"
    parent = Phase("UpdateExecuted", "Unknown", "Cordoned", message)
    child = f"Error: Failed to Cordon node. Error is {error}, {state}"
    phase = _phase(observed, parent, Phase("Cordoned", "Unknown", "UpdateExecutedCordoned", child), now)
    return Plan(phase, Requeue(settings.retry_s, UNWRITABLE), error)


def _after_removals(
    observed: Observed, removals: Sequence[Result], now: datetime, settings: DrainSettings
) -> tuple[Observed, Plan] | None:
    """Fail the attempt when its time is over, or when no pod can still go within it."""
    refused = _refusals(removals)
    others = [pod for pod in observed.leaving if (namespace_of(pod), name_of(pod)) not in refused]
    progress = Progress.of(observed.node) or Progress(_request(observed.node), now, now)
    hopeless = refused and (not others or not observed.evicts)
    if not hopeless and _left_s(progress, now, settings) > 0:
        return None
    overdue = _overdue(observed, others, settings) if observed.evicts or not refused else []
    return observed, _give_up(observed, progress, [*refused.values(), *overdue], now, settings)


def _refusals(removals: Iterable[Result]) -> dict[tuple[str, str], str]:
    """Return why pods (namespace, name) will not go in this attempt, except those that are gone or may still go."""
    found: dict[tuple[str, str], str] = {}
    for result in removals:
        action, error = result.action, result.error
        if result.ok or isinstance(error, NotFound):
            continue
        if isinstance(action, Delete):
            found[action.target.namespace, action.target.name] = str(error)
        elif isinstance(action, Evict) and not _may_pass(error):
            message = f'error when evicting pods/"{action.name}" -n "{action.namespace}": {error}'
            found[action.namespace, action.name] = message
    return found


def _may_pass(error: object) -> bool:
    causes = getattr(error, "details", {}).get("causes") or []
    return isinstance(error, TooManyRequests) or any(each.get("reason") == "NamespaceTerminating" for each in causes)


# -- writes ----------------------------------------------------------------------------------------------------------


def _write(node: Obj, notes: dict[str, str | None], why: str, *, unschedulable: bool | None = None) -> Patch:
    """Return one conditional patch, since the decision holds only for the node as observed."""
    body: Obj = {"metadata": {"resourceVersion": resource_version(node), "annotations": notes}}
    if unschedulable is not None:
        body["spec"] = {"unschedulable": True if unschedulable else None}
    return Patch(gvk_of({"apiVersion": "v1", "kind": "Node"}), "", name_of(node), body, why)


def _phase(observed: Observed, parent: Phase, child: Phase, now: datetime) -> tuple[tuple[SetStatus, ...], ...]:
    mcn = observed.machine_config_node
    status = advance(mcn, observed.node, parent, child, now) if mcn is not None else None
    if mcn is None or status is None:
        return ()
    actions = set_status(mcn, status, f"node {name_of(observed.node)}: {child.type}")
    return (actions,) if actions else ()


def _request(node: Obj) -> str:
    return annotations_of(node).get(DESIRED_DRAIN, "")


def _cordoned(node: Obj) -> bool:
    return bool(dig(node, "spec", "unschedulable", default=False))


def _go(value: bool) -> str:
    return "true" if value else "false"


def _go_duration(seconds: float) -> str:
    """Return a duration as Go prints it: ``1h0m0s``, ``1m30s``, ``2s``."""
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}h{minutes}m{left}s" if hours else f"{minutes}m{left}s" if minutes else f"{left}s"
