"""The plan of a group: who may get a release now, who waits and for what; pure. :func:`plan_group`.

The permits of ``status.clusters`` are the only thing that lets the controller of works write (``permits.py``). They are
written after the places in disruption budgets: a step that fails stops those after it, so no cluster begins without its
place. What one pass does not see any more is taken back by the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from syncline.argo.application import REFRESH
from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.plan import Create, Done, Emit, Outcome, Patch, Plan, Requeue, awaiting_lists, set_status
from syncline.fleet.hub.budgets.model import Holder
from syncline.fleet.hub.budgets.reserve import Reserving
from syncline.fleet.pull.order.gates import SETTLE, Turn, Wait, judge_gates, time_of
from syncline.fleet.pull.order.model import GroupSeen
from syncline.fleet.pull.order.proven import prove
from syncline.fleet.pull.order.release import group_release, unique
from syncline.fleet.pull.order.revisions import Due
from syncline.fleet.pull.order.standing import Standing, first_failure, goes_back, standings
from syncline.fleet.pull.order.status import Judgement, content_of, status_of, unordered
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.fleetrollouts import MAX_CLUSTERS, ROLLOUT
from syncline.kube.objects import Obj, gvk_of, name_of, namespace_of, resource_version, uid_of

COMPONENT: Final = "pulled-order"
LONGEST_S: Final = 3600.0
"""A look is never further away: summer time may have moved a window."""


@dataclass(frozen=True)
class OrderPlan:
    """What a pass decides. ``waits``: by target, why it does not begin; ``permits``: the releases by target."""

    release: str
    revisions: tuple[dict[str, str], ...]
    standings: tuple[Standing, ...]
    going_back: bool
    waits: dict[tuple[str, str], Wait] = field(default_factory=dict)
    permits: dict[tuple[str, str], str] = field(default_factory=dict)
    reservations: tuple[tuple[Action, ...], ...] = ()
    recheck: timedelta | None = None


def plan_group(seen: GroupSeen, now: datetime) -> Plan:
    """Plan one reconcile of a group."""
    if seen.unlisted:
        return Plan(*awaiting_lists(seen.unlisted))
    if not seen.force:
        return _without_order(seen)
    due = _due(seen, now)
    looks = tuple(step for step in (due.actions, _refreshes(seen)) if step)
    if seen.rollout is None:
        if seen.owner is None:
            return Plan(why="whose Applications these are is gone")
        made = Create(_rollout(seen, seen.owner), f"the order is in force: {seen.force}")
        return Plan(((made,), *looks), why=made.reason)
    order = decide_order(seen, now)
    judgement = Judgement(order.release, order.revisions, order.standings, order.going_back, order.waits, order.permits)
    status = status_of(seen, judgement, now)
    proofs = tuple(action for one in order.standings if one.newly for action in _proof(one, order.release))
    write = set_status(seen.rollout, status, "who may get the release, and who waits")
    steps = tuple(step for step in (*looks, proofs, *order.reservations, write) if step)
    events = _events(seen, status, order) if write else ()
    return Plan(
        (*steps, *((events,) if events else ())), _outcome(seen, order, due, now), str(status.get("message") or "")
    )


def _due(seen: GroupSeen, now: datetime) -> Due:
    if seen.looks is None:
        return Due((), None)
    return seen.looks.due(seen.tracked, seen.ref, now, seen.poll_s, fresh=bool(seen.refreshed))


def _refreshes(seen: GroupSeen) -> tuple[Action, ...]:
    """Return the removals of refreshes that the hub has answered: it resolves the revisions, not the cluster."""
    made = []
    for app in seen.refreshed:
        metadata = {"resourceVersion": resource_version(app), "annotations": {REFRESH: None}}
        why = "the hub looks which commits its revisions are"
        made.append(Patch(APPLICATION, namespace_of(app), name_of(app), {"metadata": metadata}, why))
    return tuple(made)


def _without_order(seen: GroupSeen) -> Plan:
    why = "no order is in force: works are written at once"
    if seen.rollout is None or not seen.status:
        return Plan(why=why)
    return Plan(why=why, status=set_status(seen.rollout, unordered(seen.rollout), why))


def _rollout(seen: GroupSeen, owner: Obj) -> Obj:
    kind = gvk_of(owner)
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name_of(owner), "uid": uid_of(owner)}
    metadata = {"name": seen.ref.name, "namespace": seen.ref.namespace, "ownerReferences": [reference]}
    of = {"kind": kind.kind, "name": name_of(owner)}
    return {"apiVersion": ROLLOUT.api_version, "kind": ROLLOUT.kind, "metadata": metadata, "spec": {"of": of}}


def release_now(seen: GroupSeen) -> tuple[str, tuple[dict[str, str], ...]]:
    """Return the release of the group and its revisions. Both stay as they were while a revision is not known, and
    while no Application has changed: a template that the controller of the set has not carried out yet, or does not, is
    no release. There is none before the first look at revisions has ended."""
    counted = [one for one in seen.targets if not one.aside]
    same = any(one.pins.problem for one in counted) or content_of(seen) == seen.status.get("content")
    if same and seen.status.get("release"):
        return str(seen.status["release"]), tuple(seen.status.get("revisions") or ())
    if any(one.pins.awaited for one in counted):
        return "", ()
    revisions = unique(row for one in counted for row in one.revisions)
    return group_release(dict(seen.template), revisions), tuple(revisions)


def decide_order(seen: GroupSeen, now: datetime) -> OrderPlan:
    """Decide who may get the release now. The roll-out must exist: it holds the places in budgets."""
    assert seen.rollout is not None, "made by the first pass"
    release, revisions = release_now(seen)
    found = standings(seen, release, now)
    going_back = goes_back(seen, release)
    settled = {one.target.cluster.name for one in found} - {one.target.cluster.name for one in found if _holds(one)}
    reserving = Reserving(seen.fleet, Holder.of(seen.rollout), now, settled)
    for one in found:
        if one.begun:
            reserving.keep(one.target.cluster.name, f"release {one.goal} is not proved there yet")
    order = OrderPlan(release, revisions, tuple(found), going_back)
    begun = sum(one.begun for one in found)
    for one, turn in _turns(seen, found, now, going_back):
        wait = judge_gates(turn)
        if wait is None and begun + len(order.permits) >= MAX_CLUSTERS:
            wait = Wait(f"{MAX_CLUSTERS} clusters have the release and have not proved it")
        if wait is None and not reserving.take(one.target.cluster.name, f"release {one.goal} may begin"):
            wait = Wait("a place in a FleetDisruptionBudget")
        if wait is None:
            order.permits[one.target.key] = one.goal
        else:
            order.waits[one.target.key] = wait
    budget = {cluster: wait for wait in reserving.waits() for cluster in wait.clusters}
    for key, wait in order.waits.items():
        if key[0] in budget and wait.why == "a place in a FleetDisruptionBudget":
            order.waits[key] = Wait(budget[key[0]].why)
    return replace(order, reservations=reserving.steps(), recheck=reserving.recheck())


def _holds(one: Standing) -> bool:
    """Return whether a target's place must stay: it was begun, or may begin at any moment."""
    return one.begun or (one.counts and one.pending)


def _turns(
    seen: GroupSeen, found: Sequence[Standing], now: datetime, going_back: bool
) -> Iterable[tuple[Standing, Turn]]:
    """Yield what is to begin, in the order in which it does."""
    failure = None if going_back else first_failure(found)
    counted = [one for one in found if one.counts]
    if going_back:
        counted.reverse()
    stopped = seen.spec.get("stopped")
    open_wave: Standing | None = None  # the first one of the waves so far that is not done
    wave_of_open = None
    lowest = counted[0].target.wave if counted else 0
    for one in counted:
        wave = one.target.wave
        if one.pending:
            earlier = open_wave if open_wave is not None and wave_of_open != wave else None
            yield (
                one,
                Turn(
                    target=one.target,
                    now=now,
                    stopped=stopped,
                    failed=_failure(failure) if failure is not None and failure is not one else "",
                    earlier=_earlier(earlier, going_back) if earlier is not None else "",
                    first=wave == lowest,
                    since=_known_since(one, now),
                    going_back=going_back,
                ),
            )
        # Who cannot go back for want of content keeps none of the others at the bad release.
        if not one.done and open_wave is None and not (going_back and one.target.unmade):
            open_wave, wave_of_open = one, wave


def _known_since(one: Standing, now: datetime) -> datetime | None:
    """Return since when the change of a target is known; what was permitted has been known for long enough."""
    if one.entry.get("release") != one.goal:
        return None
    return now - SETTLE if one.entry.get("permitted") == one.goal else time_of(one.entry.get("since"))


def _failure(one: Standing) -> str:
    return f"cluster {one.target.cluster.name} (wave {one.target.wave}, Application {one.target.name}): {one.failed}"


def _earlier(one: Standing, going_back: bool) -> str:
    doing = "is not back at its former release" if going_back else "has not proved this release"
    why = one.failed or one.why
    until = f", until {format_time(one.proves_at)}" if one.proves_at is not None else ""
    return (
        f"wave {one.target.wave} comes first: {one.target.name} on cluster {one.target.cluster.name} {doing}{until}"
        + (f" ({why})" if why else "")
    )


def _proof(one: Standing, release: str) -> list[Action]:
    target = one.target
    if target.work is None:
        return []
    return prove(target.work, one.goal, release, target.manifests, target.proven)


def _outcome(seen: GroupSeen, order: OrderPlan, due: Due, now: datetime) -> Outcome:
    if due.actions:
        return Requeue(0, "what was looked up decides")
    moments = [one.proves_at for one in order.standings if one.proves_at is not None]
    moments += [wait.until for wait in order.waits.values() if wait.until is not None]
    after = [(one - now).total_seconds() for one in moments]
    if order.recheck is not None:
        after.append(order.recheck.total_seconds())
    looks = max((due.next_at - now).total_seconds(), 1.0) if due.next_at is not None else None
    if after and (looks is None or min(after) <= looks):
        # a second at least: times of a status are whole seconds
        return Requeue(min(max(min(after), 1.0), LONGEST_S), "a wait of the order ends then")
    if looks is not None:
        return Requeue(looks, "the next look at revisions", background=not after)
    if seen.fleet.unknown:
        return Requeue(10.0, seen.fleet.unknown, background=True)
    return Done()


def _events(seen: GroupSeen, status: Obj, order: OrderPlan) -> tuple[Action, ...]:
    """Return the Events of what changed: of the roll-out its phase, of an Application what begins and what fails."""
    assert seen.rollout is not None, "it has a status"
    made: list[Action] = []
    phase, message = str(status.get("phase")), str(status.get("message"))
    if phase != seen.status.get("phase"):
        bad = phase in ("Failed", "Stopped")
        made.append(Emit(seen.rollout, f"Rollout{phase}", message, COMPONENT, warning=bad, limited=True))
    for one in order.standings:
        release = order.permits.get(one.target.key, "")
        if release and one.entry.get("permitted") != release:
            text = f"cluster {one.target.cluster.name} (wave {one.target.wave}) may get release {release}"
            made.append(Emit(one.target.app, "ReleasePermitted", text, COMPONENT, limited=True))
        if one.failed and not one.done and one.entry.get("state") != "Failed":
            text = f"release {one.goal} failed on cluster {one.target.cluster.name}: {one.failed}"
            made.append(Emit(one.target.app, "ReleaseFailed", text, COMPONENT, warning=True, limited=True))
        if one.newly:
            text = f"cluster {one.target.cluster.name} has proved release {one.goal}"
            made.append(Emit(one.target.app, "ReleaseProved", text, COMPONENT, limited=True))
    return tuple(made)
