"""One look at a rollout: states, open steps, limits, conditions, and the syncs to start; pure.

Rules: ``PerformProgressiveSyncs`` and ``SyncDesiredApplications`` of upstream. A reconcile starts syncs by the statuses
that it read at its start; those it decides itself count from the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from syncline.appset.rollout.states import (
    OLDER,
    PENDING,
    STALE,
    Entry,
    Seen,
    State,
    entries_of,
    lacking_evidence,
    next_entry,
    started_after,
)
from syncline.appset.status import INVALID_ROLLOUT, PROGRESSING, Condition
from syncline.argo.rollout.steps import Assignment, assign, limit_of, with_limits
from syncline.argo.rollout.strategy import Step, is_strict, steps_of
from syncline.base.clock import time_or_none
from syncline.kube.objects import Obj, dig, name_of

INITIATOR = "applicationset-controller"
RETRIES = 5
UNSEEN = timedelta(seconds=10)
"""How long after its begin an operation of a Pending Application is not asked for again while no look followed it."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """The decision about a rollout."""

    steps: tuple[Step, ...]
    assignment: Assignment
    entries: tuple[Entry, ...]
    """The entries to write."""
    open: frozenset[str]
    """Applications whose step is open."""
    conditions: tuple[Condition, ...]
    to_refresh: frozenset[str] = frozenset()
    """Applications that must be compared again: nothing tells whether that happened since their last sync."""
    look_again: bool = False
    """A sync has begun or ended in this very second, so that a later look decides."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Strict evidence: what an Application lacks that is Synced and Healthy."""
    held: frozenset[str] = frozenset()
    """Applications in an open step that wait because ``maxUpdate`` others are being updated."""

    def waits(self, name: str) -> str:
        """Return why an Application waits, or is not yet counted as healthy; empty if it does not."""
        entry = next((one for one in self.entries if one.application == name), None)
        if entry is None or entry.status == State.HEALTHY:
            return ""
        if entry.status == State.WAITING:
            if name in self.held:
                return f"maxUpdate of step {entry.step} is reached"
            if name not in self.assignment.step_of:
                return "it is in no step, so it is not synced by the rollout"
            return "" if name in self.open else f"steps before {entry.step} are not complete"
        return self.lacks.get(name) or entry.message


Differs = Callable[[Obj], bool]
"""Returns whether the generated spec of a live Application differs from its live one."""
Wanted = Callable[[str], Obj | None]
"""Returns the normalized spec of a generated Application, without automated sync; None: it is not generated."""


def plan_rollout(
    appset: Obj, current: Sequence[Obj], wanted: Wanted, made: Iterable[Obj], differs: Differs, now: datetime
) -> Rollout:
    """Decide about a set with steps. ``current``: its live Applications by name; ``made``: generated ones."""
    steps, strict = steps_of(appset), is_strict(appset)
    listed = list(made)
    generated = set(map(name_of, listed))
    assignment = assign(steps, listed)
    before = {one.application: one for one in entries_of(appset.get("status") or {})}
    seen = [
        Seen(
            app,
            before.get(name_of(app)),
            assignment.label(name_of(app)),
            wanted(name_of(app)) if strict else None,
            name_of(app) in generated and differs(app),
            strict,
        )
        for app in current
    ]
    by_name = {name_of(app): app for app in current}
    first = _kept(tuple(before.values()), tuple(next_entry(one, now) for one in seen))
    opened = _open(assignment, {name_of(app) for app in current}, first)
    second, held, wrong = _promoted(steps, assignment, first, opened, now)
    assignment = with_limits(assignment, wrong)
    lacks = {name_of(one.app): why for one in seen if strict and (why := lacking_evidence(one.app, one.wanted))}
    entries = _kept(first, second)
    stale = {name for name, why in lacks.items() if why == STALE and _is_moving(entries, name)}
    late = {name for name in stale if _ended(by_name[name], now)}
    return Rollout(
        steps,
        assignment,
        entries,
        opened,
        (_invalid(assignment), _progressing(steps, entries)),
        frozenset(late | {one.application for one in entries if ran_unseen(one, by_name.get(one.application), now)}),
        late != stale or any(_is_pending(one) and just_ran(one, by_name.get(one.application), now) for one in entries),
        lacks,
        frozenset(held),
    )


def _kept(before: tuple[Entry, ...], after: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return the entries to keep: the new ones, sorted, if a status, step or message differs, else the old ones."""
    known = {one.application: one for one in before}

    def same(one: Entry) -> bool:
        old = known.get(one.application)
        return old is not None and (old.status, old.step, old.message) == (one.status, one.step, one.message)

    if len(before) == len(after) and all(map(same, after)):
        return before
    return tuple(sorted(after, key=lambda one: one.application))


def _open(assignment: Assignment, current: set[str], entries: Iterable[Entry]) -> frozenset[str]:
    """Return the Applications of the steps up to the first that is not complete."""
    healthy = {one.application for one in entries if one.status == State.HEALTHY}
    opened: set[str] = set()
    for names in assignment.names:
        opened.update(names)
        if not all(name in current and name in healthy for name in names):
            break
    return frozenset(opened)


def _promoted(
    steps: Sequence[Step], assignment: Assignment, entries: tuple[Entry, ...], opened: frozenset[str], now: datetime
) -> tuple[tuple[Entry, ...], set[str], dict[int, str]]:
    """Move Waiting Applications of open steps to Pending, as many as ``maxUpdate`` allows. Return the entries, those
    held back by it, and invalid values by step."""
    counts, busy = [0] * len(steps), [0] * len(steps)
    for one in entries:
        counts[assignment.counted(one.application)] += 1
        busy[assignment.counted(one.application)] += one.status in (State.PENDING, State.PROGRESSING)
    made: list[Entry] = []
    held: set[str] = set()
    wrong: dict[int, str] = {}
    for one in entries:
        step = assignment.counted(one.application)
        limit, valid = limit_of(steps[step], counts[step])
        if not valid:
            wrong.setdefault(step, str(steps[step].max_update))
        if one.status == State.WAITING and one.application in opened:
            if busy[step] < limit:
                one = one.moved(State.PENDING, PENDING, now)
                busy[step] += 1
            else:
                held.add(one.application)
        made.append(one)
    return tuple(made), held, wrong


def _progressing(steps: Sequence[Step], entries: Iterable[Entry]) -> Condition:
    unfinished = {one.step for one in entries if one.status != State.HEALTHY}
    for number in range(1, len(steps) + 1):
        if str(number) in unfinished:
            text = f"ApplicationSet is performing rollout of step {number}"
            return Condition(PROGRESSING, True, "ApplicationSetModified", text)
    return Condition(PROGRESSING, False, "ApplicationSetRolloutComplete", "ApplicationSet Rollout has completed")


def _invalid(assignment: Assignment) -> Condition:
    message = assignment.issues.message
    if message:
        return Condition(INVALID_ROLLOUT, True, "ApplicationSetInvalidRolloutConfig", message)
    return Condition(INVALID_ROLLOUT, False, "ApplicationSetValidRolloutConfig", "Rolling Sync Configured correctly")


def _is_pending(entry: Entry) -> bool:
    return entry.status == State.PENDING


def _is_moving(entries: Iterable[Entry], name: str) -> bool:
    return any(one.application == name and one.status != State.HEALTHY for one in entries)


def _ended(app: Obj, now: datetime) -> bool:
    """Return whether the last sync ended so long ago that a look at the Application now counts as later."""
    finished = time_or_none(dig(app, "status", "operationState", "finishedAt"))
    return finished is not None and now >= finished + OLDER


def without_automation(spec: Obj) -> Obj:
    """Return a spec whose automated sync, if it has any, is off: the controller starts its syncs."""
    automated = dig(spec, "syncPolicy", "automated")
    if not isinstance(automated, dict):
        return spec
    return {**spec, "syncPolicy": {**spec["syncPolicy"], "automated": {**automated, "enabled": False}}}


def just_ran(entry: Entry, live: Obj | None, now: datetime) -> bool:
    """Return whether an operation began in the second in which its Application became Pending, and that second lasts.

    Times are whole seconds, so upstream cannot tell that it was the one asked for, and asks again at each look. A look
    a second later asks once.
    """
    since = time_or_none(entry.since)
    began = time_or_none(dig(live or {}, "status", "operationState", "startedAt"))
    return since is not None and began == since and now < since + OLDER


def ran_unseen(entry: Entry, live: Obj | None, now: datetime) -> bool:
    """Return whether an operation has just run for a Pending Application that was not compared since.

    Upstream asks for another sync then. Its Application controller compares after each operation; ours does not write
    when nothing changed, so it is asked to look instead.
    """
    since, status = time_or_none(entry.since), (live or {}).get("status") or {}
    began = time_or_none(dig(status, "operationState", "startedAt"))
    seen = time_or_none(status.get("reconciledAt"))
    if entry.status != State.PENDING or since is None or began is None or seen is None:
        return False
    return seen <= since < began and now < began + UNSEEN


def operation_for(
    appset: Obj, spec: Obj, entry: Entry | None, rollout: Rollout, live: Obj | None, now: datetime
) -> Obj | None:
    """Return the sync to request for a generated Application, or None. ``spec``: as generated, with its automation."""
    if entry is None or entry.status != State.PENDING or entry.application not in rollout.open:
        return None
    if just_ran(entry, live, now) or ran_unseen(entry, live, now):
        return None
    since = time_or_none(entry.since)
    if is_strict(appset) and live is not None and since is not None and started_after(live, since):
        return None  # upstream asks for it once more; a second sync would be evidence of nothing
    policy: Any = spec.get("syncPolicy") or {}
    automated = policy.get("automated") or {}
    prunes = automated.get("enabled") is not False and automated.get("prune") is True
    sync: Obj = {"prune": True} if prunes else {}
    if policy.get("syncOptions"):
        sync["syncOptions"] = policy["syncOptions"]
    return {
        "info": [
            {"name": "Reason", "value": "ApplicationSet RollingSync triggered a sync of this Application resource"}
        ],
        "initiatedBy": {"username": INITIATOR, "automated": True},
        "retry": policy.get("retry", {"limit": RETRIES}),
        "sync": sync,
    }


def entries_patch(status: Obj, rollout: Rollout) -> Obj:
    """Return ``status`` with the entries of the rollout; without Applications there is no list, as upstream."""
    entries = [one.as_obj() for one in rollout.entries]
    return {**status, "applicationStatus": entries} if entries else cleared(status)


def cleared(status: Obj) -> Obj:
    """Return ``status`` without entries: the set has no rollout (any more)."""
    return {key: value for key, value in status.items() if key != "applicationStatus"}
