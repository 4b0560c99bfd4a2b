"""When each cluster gets a release, and how that ends: the hub's own plan of the order, over what classes of clusters
said when they were played; pure. Entry point: :func:`course_of`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from syncline.fleet.pull.order.forecasting import GOOD, Forecast, Said, forecast
from syncline.fleet.pull.order.model import GroupSeen, Target
from syncline.fleet.pull.order.plan import release_now
from syncline.fleet.pull.order.proven import Proven
from syncline.kube.kinds.fleetrollouts import MAX_CLUSTERS
from syncline.rehearsal.fleet.classes import with_name, without_name
from syncline.rehearsal.fleet.given import Away
from syncline.rehearsal.fleet.reactions import Reactions

ROUNDS = 20_000
"""Plans that are made of one group at most."""
NEVER: Mapping[str, Sequence[Away]] = {}
Of = Callable[[str], Reactions]
"""What a cluster says, by its name; the names of Applications are those of that cluster."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An Application of a cluster in the order of its group. ``begins_s``: when the cluster gets the release, None:
    never; ``ends_s``: when it has proved it, None: never. ``why``: what it waits for last."""

    group: str
    wave: int
    cluster: str
    app: str
    begins_s: float | None
    ends_s: float | None
    why: str = ""
    unchanged: bool = False
    """The cluster has the release already."""


@dataclass(frozen=True, slots=True)
class Course:
    """What becomes of a group. ``force``: why its order is in force; empty: all get the release at once."""

    group: str
    force: str
    turns: tuple[Turn, ...]
    complete: bool = True


@dataclass
class Courses:
    """Courses of groups; those that are equal up to names of groups and Applications are looked at once. ``at``: the
    time of the hub; ``react``: what clusters say; ``aways``: when they do not reach the hub."""

    at: datetime
    react: Of
    aways: Mapping[str, Sequence[Away]] = field(default_factory=dict)
    _known: dict[object, Course] = field(default_factory=dict)

    def of(self, seen: GroupSeen, before: GroupSeen | None) -> Course:
        """As :func:`course_of`."""
        prior = {one.key: one.wanted for one in before.targets} if before is not None else {}
        targets = sorted(seen.targets, key=lambda one: one.order)
        shape = bool(seen.force), tuple(self._shape(one, prior) for one in targets)
        known = self._known.get(shape) if not any(one.needs for one in targets) else None
        if known is None:
            known = self._known[shape] = course_of(seen, before, self.at, self.react, self.aways)
            return known
        group = seen.ref.name
        turns = tuple(replace(turn, group=group, app=one.name) for turn, one in zip(known.turns, targets, strict=True))
        return Course(group, seen.force, turns, known.complete)

    def _shape(self, one: Target, prior: Mapping[tuple[str, str], str]) -> object:
        said = self.react(one.cluster.name).said.get(one.name, ())
        away = tuple(self.aways.get(one.cluster.name, ()))
        own = one.wave, one.cluster.name, away, one.aside, one.cannot, one.asked.healthy_for, one.rolling
        changed = None if one.key not in prior else prior[one.key] == one.wanted
        return *own, changed, tuple((each.after, each.facts, each.updating) for each in said)


def heard(said: Sequence[Said], begins: timedelta, aways: Sequence[Away]) -> list[Said]:
    """Return what a cluster says as the hub hears it. ``begins``: when the hub gives it the release."""
    got = later(begins, aways)
    return [replace(one, after=later(got + one.after, aways) - begins) for one in said]


def later(at: timedelta, aways: Sequence[Away]) -> timedelta:
    """Return when what happens on one side reaches the other."""
    for one in sorted(aways, key=lambda each: each.begins):
        at = one.later(at)
    return at


def course_of(
    seen: GroupSeen, before: GroupSeen | None, now: datetime, of: Of, aways: Mapping[str, Sequence[Away]] = NEVER
) -> Course:
    """Return what becomes of a group after the commit. ``before``: the group as it was, proved by each of its clusters;
    None: there was none. ``aways``: by cluster when it does not reach the hub."""
    group = seen.ref.name
    prior = {one.key: one for one in before.targets} if before is not None else {}
    release = release_now(replace(before, rollout=None))[0] if before is not None and before.force else ""
    started = replace(seen, targets=tuple(_proven(one, prior.get(one.key), release) for one in seen.targets))
    if not seen.force:
        turns = (_at_once(group, one, of, aways) for one in sorted(started.targets, key=lambda one: one.order))
        return Course(group, "", tuple(turns))

    def react(target: Target, _release: str, moment: datetime) -> Sequence[Said]:
        cluster = target.cluster.name
        return heard(of(cluster).said.get(target.name, ()), moment - now, aways.get(cluster, ()))

    few, stands = _few(started, of, aways)
    found = forecast(few, now, react, rounds=ROUNDS)
    planned = {(turn.cluster, turn.app): turn for turn in _ordered(group, found, now)}
    ordered = sorted(started.targets, key=lambda one: one.order)
    return Course(group, seen.force, tuple(_of(one, planned[stands[one.key]]) for one in ordered), found.complete)


def _few(
    seen: GroupSeen, of: Of, aways: Mapping[str, Sequence[Away]]
) -> tuple[GroupSeen, Mapping[tuple[str, str], tuple[str, str]]]:
    """Return the group with two targets at most of those that are equal up to names, and by target the one that stands
    for it. Gates treat such targets alike, but for the first, which the others name when they wait; where a place is
    limited, or people name clusters, all stay."""
    limited = seen.fleet.budgets or seen.fleet.unknown or len(seen.targets) > MAX_CLUSTERS
    if limited or seen.entries or seen.spec.get("skip"):
        return seen, {one.key: one.key for one in seen.targets}
    found: dict[object, list[Target]] = {}
    stands: dict[tuple[str, str], tuple[str, str]] = {}
    for one in sorted(seen.targets, key=lambda each: each.order):
        name = one.cluster.name
        said = tuple((each.after, each.facts, each.updating) for each in of(name).said.get(one.name, ()))
        alike = found.setdefault((*_nameless(one), tuple(aways.get(name, ())), said), [])
        if len(alike) < 2:
            alike.append(one)
        stands[one.key] = alike[-1].key
    return replace(seen, targets=tuple(one for alike in found.values() for one in alike)), stands


def _nameless(one: Target) -> Iterator[object]:
    """Yield all that an order reads of a target but names. Hashes of content have names in them: what counts is which
    of them are equal."""
    yield from (one.wave, replace(one.cluster, name=""), one.asked, one.cannot, one.unwritten, one.unmade, one.aside)
    yield from (one.pins, one.needs, one.depends, one.rolling, one.ordered, one.operation)
    yield from (bool(one.wanted), bool(one.carried), one.carried == one.wanted)
    release = one.facts.release
    yield from (replace(one.facts, release=""), release is None, release == one.carried, release == one.wanted)
    yield tuple((each.release == one.wanted, each.group, each.number) for each in one.proven)


def _of(target: Target, turn: Turn) -> Turn:
    """Return the turn of a target, from that of the one that stands for it."""
    if turn.cluster == target.cluster.name and turn.app == target.name:
        return turn
    name = target.cluster.name
    return replace(turn, cluster=name, app=target.name, why=with_name(without_name(turn.why, turn.cluster), name))


def _proven(target: Target, before: Target | None, group: str) -> Target:
    """Return a target whose cluster has proved what it had before."""
    if before is None or not before.wanted:
        return target
    facts = replace(GOOD, release=before.wanted, revision=_only(before.pins.commits), applied=True)
    kept = (Proven(before.wanted, group, 1, {}),)
    return replace(target, carried=before.wanted, proven=kept, facts=facts)


def _only(commits: Sequence[str]) -> str:
    return commits[0] if len(commits) == 1 else ""


def _at_once(group: str, target: Target, of: Of, aways: Mapping[str, Sequence[Away]]) -> Turn:
    if target.aside or not target.wanted:
        why = target.aside or target.cannot
        return Turn(group, target.wave, target.cluster.name, target.name, None, None, why)
    cluster = target.cluster.name
    mine = aways.get(cluster, ())
    good = of(cluster).good_after(target.name)
    ends = None if good is None else later(later(timedelta(), mine) + good, mine)
    return Turn(group, target.wave, cluster, target.name, 0.0, _seconds(ends))


def _ordered(group: str, found: Forecast, now: datetime) -> Iterable[Turn]:
    for one in found.ahead:
        standing, target = one.standing, one.standing.target
        why = one.waits[-1].why if one.waits and one.begins is None else standing.why if one.begins is None else ""
        yield Turn(
            group,
            target.wave,
            target.cluster.name,
            target.name,
            _since(one.begins, now),
            _since(one.ends, now),
            "" if standing.done else why,
            standing.done,
        )


def _since(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else _seconds(at - now)


def _seconds(after: timedelta | None) -> float | None:
    return None if after is None else after.total_seconds()


def begins_of(courses: Iterable[Course]) -> Mapping[str, float]:
    """Return when each cluster that is reached gets its first release, by name; seconds since the commit."""
    found: dict[str, float] = {}
    for course in courses:
        for turn in course.turns:
            if turn.begins_s is not None and not turn.unchanged:
                found[turn.cluster] = min(found.get(turn.cluster, turn.begins_s), turn.begins_s)
    return found
