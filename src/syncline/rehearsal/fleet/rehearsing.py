"""Rehearses a commit on a fleet, and its cures: :func:`rehearse_fleet`.

The hub says what each cluster gets; clusters that are equal up to their names are played once, a few more are played
and compared; what they say of the release, and when, feeds the hub's plan of the order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from pathlib import Path

from syncline.base.interpreter import seldom_collecting
from syncline.fleet.pull.order.forecasting import Said
from syncline.fleet.pull.order.model import GroupSeen
from syncline.rehearsal.answer.answer import Cure, Outcome
from syncline.rehearsal.cures.editing import Edit, diff_of, edited
from syncline.rehearsal.cures.proposing import Proposal
from syncline.rehearsal.faults import Schedule
from syncline.rehearsal.fleet.alike import alike, spread, uses_names_whole
from syncline.rehearsal.fleet.answer import ClassAnswer, FleetAnswer
from syncline.rehearsal.fleet.classes import (
    EqualClusters,
    Mentions,
    Pulled,
    by_member,
    classes_of,
    digest,
    sample,
    with_name,
    without_name,
)
from syncline.rehearsal.fleet.course import Course, Courses, Of
from syncline.rehearsal.fleet.given import Away, ClusterGroup, FleetWorld, parse_fleet
from syncline.rehearsal.fleet.hub import HubSeen, Making, Placing
from syncline.rehearsal.fleet.hubobjects import ForTheHub, for_the_hub
from syncline.rehearsal.fleet.judging import Rehearsed, count, fleet_answer, shown
from syncline.rehearsal.fleet.playing import Played, Plays, Question
from syncline.rehearsal.fleet.reactions import Reactions
from syncline.rehearsal.given.applications import pulled_applications
from syncline.rehearsal.given.durations import fixed
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.rehearsing import Settings, laws_of
from syncline.rehearsal.repository import commit_files
from syncline.rehearsal.repositoryreader import RehearsedReader
from syncline.rehearsal.scenario import ScenarioError

MAX_CURES = 8
MAX_NAMED = 10
MAX_RANGED = 4
"""Classes that are played three times, with the least and the longest durations, too."""


@dataclass(frozen=True)
class FleetAsked:
    """What is rehearsed: ``files`` arrive as a commit. ``before``: what the hub had until then; None: nothing.
    ``repositories``: copies of further repositories by address."""

    name: str
    files: Files
    world: FleetWorld
    before: Files | None = None
    repositories: Mapping[str, Files] = field(default_factory=dict)
    seed: int = 1
    until: timedelta = timedelta(hours=24)
    schedule: Schedule | None = None
    """Faults that strike in each cluster after it got the commit; None: undisturbed."""


@dataclass(frozen=True)
class _Seen:
    """The hub before and after the commit."""

    given: ForTheHub
    after: HubSeen
    given_before: ForTheHub | None
    before: HubSeen | None
    alike: tuple[tuple[str, ...], ...]
    """Clusters that the hub cannot tell apart; the first of each, and those that are ``drawn``, have Applications."""
    drawn: tuple[str, ...]
    mentions: tuple[Mentions, ...]
    committed: tuple[tuple[Files, Path], ...]
    """Repositories of the files before and after, which no play changes."""

    @property
    def others(self) -> Mapping[str, tuple[str, ...]]:
        """By the first of clusters that are alike those that have no Applications."""
        return {each[0]: tuple(name for name in each[1:] if name not in self.drawn) for each in self.alike}


@dataclass
class FleetRehearsal:
    """Rehearsals of one question and its cures; a class of clusters that both have is played once."""

    settings: Settings
    scratch: Path
    plays: Plays
    _count: int = 0

    def answer(self, asked: FleetAsked) -> FleetAnswer:
        """Return the whole answer. Raises ScenarioError."""
        laws_of(asked.files, self.settings.without, self.settings.more)
        found, plays = self._one(asked)
        if found.outcome is Outcome.SAFE and self.settings.ranged:
            found = self._ranged(asked, found)
        if found.outcome is not Outcome.SAFE and self.settings.cures:
            found = self._cured(asked, found, plays)
        return replace(found, schedule=str(asked.schedule or ""))

    def _ranged(self, asked: FleetAsked, found: FleetAnswer) -> FleetAnswer:
        """Return the answer with its range, if few enough clusters are to be played for it; if it is not safe at one
        end of the range, that is the answer."""
        if len(found.classes) > MAX_RANGED:
            said = f"the least and the longest durations are not rehearsed: there are more than {MAX_RANGED} classes"
            return replace(found, assumed=(*found.assumed, said))
        ends: list[float | None] = []
        for name in ("least", "longest"):
            self.settings.report(f"rehearsing with the {name} durations")
            other, _ = self._one(replace(asked, world=_lasting(asked.world, longest=name == "longest")))
            if other.outcome is not Outcome.SAFE:
                return replace(other, headline=f"with the {name} durations: {other.headline}")
            ends.append(other.done_s)
        return replace(found, quickest_s=ends[0], slowest_s=ends[1])

    def _one(self, asked: FleetAsked) -> tuple[FleetAnswer, Mapping[str, Played]]:
        self._count += 1
        seen = self._hub(asked, self.scratch / f"hub-{self._count}")
        pulled = {one.name: one for one in _pulled(asked.world, seen)}
        firsts = [(pulled[each[0]], each) for each in seen.alike]
        classes = classes_of(firsts, seen.mentions)
        asking = {one.played.name: self._question(asked, seen, one.key, one.played) for one in classes}
        asking |= {name: self._question(asked, seen, name, pulled[name]) for name in seen.drawn}
        answers = self.plays.of(asking.values())
        plays = {name: answers[question.key] for name, question in asking.items()}
        classes, notes = _compared(classes, [pulled[name] for name in seen.drawn], plays)
        aways = asked.world.aways()
        courses = _courses(seen, _reactions(classes, plays), aways)
        found = fleet_answer(
            Rehearsed(
                asked.name,
                asked.seed,
                classes,
                tuple(plays[each.played.name] for each in classes),
                courses,
                seen.after.problems,
                seen.drawn,
                (*seen.given.assumed, *seen.after.notes, *_assumed(classes, seen, courses), *_away(aways), *notes),
                aways,
            )
        )
        return found, {each.played.name: plays[each.played.name] for each in classes}

    def _hub(self, asked: FleetAsked, place: Path) -> _Seen:
        self.settings.report("rehearsing the hub")
        world, seed, reader = asked.world, asked.seed, RehearsedReader(place / "mirrors")
        copies = {url: place / f"copy-{number}" for number, url in enumerate(sorted(asked.repositories))}
        heads = {url: commit_files(asked.repositories[url], copy) for url, copy in copies.items()}
        given = for_the_hub(asked.files, world.hub, asked.name)
        commits = [(given, asked.files)]
        if asked.before is not None:
            commits.insert(0, (for_the_hub(asked.before, world.hub, asked.name), asked.before))
        everyone = list(world.clusters())
        placing = Placing(world, given.namespace, reader, everyone, seed)
        placed = [placing.commit(each) for each, _ in commits]
        mentions = tuple(Mentions(files, everyone) for _, files in commits)
        groups = alike(world, mentions, (each.decisions for each in placed))
        drawn = sample(groups, seed)
        if not all(uses_names_whole(each.objects) for each, _ in commits):
            groups = tuple((name,) for name in everyone)
        chosen = {*drawn, *(each[0] for each in groups)}
        making = Making(world, given.namespace, reader, [name for name in everyone if name in chosen], seed)
        seen = []
        for number, ((each, files), decided) in enumerate(zip(commits, placed, strict=True)):
            head = commit_files(files, place / f"commit-{number}")
            mine = dict.fromkeys(each.urls, str(place / f"commit-{number}"))
            reader.places = {**{url: str(copy) for url, copy in copies.items()}, **mine}
            seen.append(making.commit(each, decided, {**heads, **dict.fromkeys(each.urls, head)}))
        given_before, before = (commits[0][0], seen[0]) if len(seen) > 1 else (None, None)
        committed = tuple((files, place / f"commit-{number}") for number, (_, files) in enumerate(commits))
        return _Seen(given, seen[-1], given_before, before, groups, drawn, mentions, committed)

    def _question(self, asked: FleetAsked, seen: _Seen, key: str, cluster: Pulled) -> Question:
        pulled = pulled_applications(asked.files, cluster.after, seen.given.urls)
        before = None
        if asked.before is not None and seen.given_before is not None and cluster.before:
            before = pulled_applications(asked.before, cluster.before, seen.given_before.urls)
        played = Asked(
            cluster.name,
            asked.files,
            replace(cluster.world, repositories=asked.repositories),
            asked.before if before is not None else None,
            seed=asked.seed,
            until=asked.until,
            pulled=pulled,
            pulled_before=before,
            control_namespace=seen.given.namespace,
            schedule=asked.schedule,
            committed=seen.committed,
        )
        lasting = digest([repr(each) for each in cluster.world.durations.values()])
        return Question(f"{key} {_hash(asked.files)} {_hash(asked.before)} {lasting}", played)

    # -- cures -------------------------------------------------------------------------------------------------------

    def _cured(self, asked: FleetAsked, found: FleetAnswer, plays: Mapping[str, Played]) -> FleetAnswer:
        cures: list[Cure] = []
        for proposal in _ideas(asked.world, found, plays):
            self.settings.report(f"rehearsing a cure: {proposal.text}")
            cure = self._proved(asked, proposal)
            if cure is not None:
                cures.append(cure)
        cures.sort(key=lambda cure: (not cure.proved, len(cure.outages)))
        best = next((cure for cure in cures if cure.proved), None)
        return replace(found, cures=tuple(cures), advice=f"{best.text} ({best.file})" if best else found.advice)

    def _proved(self, asked: FleetAsked, proposal: Proposal) -> Cure | None:
        """Rehearse the fleet with the edit; None if it cannot be made, or changes nothing."""
        try:
            changed, diff = _applied(asked, proposal)
            if not diff:
                return None
            found, _ = self._one(changed)
        except (ScenarioError, ValueError, LookupError):
            return None
        file = ", ".join(dict.fromkeys(edit.file for edit in proposal.edits))
        outages = tuple(outage for one in found.classes if one.reached for outage in one.answer.outages)
        return Cure(proposal.text, file, diff, found.outcome, found.headline, found.done_s, outages)


@seldom_collecting()
def rehearse_fleet(asked: FleetAsked, scratch: Path, settings: Settings, processes: int = 0) -> FleetAnswer:
    """Return what would happen to the fleet. Equal questions return equal answers. ``processes``: as in
    :class:`~syncline.rehearsal.fleet.playing.Plays`. Raises ScenarioError."""
    plays = Plays(scratch, settings, processes)
    return FleetRehearsal(settings, scratch, plays).answer(asked)


def _hash(files: Files | None) -> str:
    made = hashlib.sha256()
    for path, data in sorted(files.content.items()) if files is not None else ():
        made.update(f"{path}\0{len(data)}\0".encode())
        made.update(data)
    return made.hexdigest()[:16]


def _pulled(world: FleetWorld, seen: _Seen) -> Iterator[Pulled]:
    """Yield each cluster that has Applications, with what it gets."""
    after = _manifests(seen.after.groups)
    before = _manifests(seen.before.groups) if seen.before is not None else {}
    groups = world.clusters()
    for name in {*seen.drawn, *(each[0] for each in seen.alike)}:
        yield Pulled(name, groups[name].world, tuple(after.get(name, ())), tuple(before.get(name, ())))


def _manifests(groups: Sequence[GroupSeen]) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for group in groups:
        for target in sorted(group.targets, key=lambda one: one.order):
            found.setdefault(target.cluster.name, []).extend(target.manifests)
    return found


def _reactions(classes: Sequence[EqualClusters], plays: Mapping[str, Played]) -> Of:
    members = by_member(classes)
    bare: dict[str, list[tuple[str, tuple[Said, ...]]]] = {}
    for one in classes:
        name = one.played.name
        bare[name] = [(without_name(app, name), said) for app, said in plays[name].reactions.said.items()]

    @cache
    def of(cluster: str) -> Reactions:
        played = members[cluster].played.name
        return Reactions({with_name(app, cluster): said for app, said in bare[played]})

    return of


def _courses(seen: _Seen, of: Of, aways: Mapping[str, Sequence[Away]]) -> tuple[Course, ...]:
    """Return the course of each group; groups that are equal up to their names are looked at once."""
    others = seen.others
    before = {one.ref: spread(one, others) for one in seen.before.groups} if seen.before is not None else {}
    planner = Courses(seen.after.at, of, aways)
    return tuple(planner.of(spread(one, others), before.get(one.ref)) for one in seen.after.groups)


def _compared(
    classes: Sequence[EqualClusters], drawn: Sequence[Pulled], plays: Mapping[str, Played]
) -> tuple[tuple[EqualClusters, ...], tuple[str, ...]]:
    """Compare what was drawn with the cluster of its class; one that differs becomes a class of its own."""
    notes: list[str] = []
    found = list(classes)
    for one in drawn:
        place = next(number for number, each in enumerate(found) if one.name in each.names)
        mine = found[place]
        if mine.played.name == one.name or not _differs(plays[one.name], plays[mine.played.name]):
            continue
        notes.append(f"cluster {one.name} is equal to {mine.played.name} up to its name, and was played otherwise")
        found[place] = replace(mine, names=tuple(name for name in mine.names if name != one.name))
        found.append(EqualClusters(f"{mine.key}-{one.name}", (one.name,), one))
    return tuple(found), tuple(notes)


def _differs(one: Played, other: Played) -> bool:
    return _course_of(one) != _course_of(other)


def _course_of(played: Played) -> object:
    answer, name = played.answer, played.cluster
    bars = [(without_name(bar.row, name), bar.doing, bar.began_s, bar.ends_s, bar.state) for bar in answer.bars]
    said = {
        without_name(app, name): [(one.after, without_name(one.updating or "", name)) for one in each]
        for app, each in played.reactions.said.items()
    }
    return answer.outcome, answer.done_s, bars, said


def _assumed(classes: Sequence[EqualClusters], seen: _Seen, courses: Sequence[Course]) -> Iterator[str]:
    played = ", ".join(each.played.name for each in classes[:MAX_NAMED])
    more = f" and {len(classes) - MAX_NAMED} more" if len(classes) > MAX_NAMED else ""
    yield f"clusters that were played: {played}{more}; the others are equal to one of them up to their names"
    if seen.drawn:
        yield f"played and compared with the one that they are equal to: {', '.join(seen.drawn)}"
    if sum(bool(course.force) for course in courses) > 1:
        yield "the orders of several sets are looked at one by one: each begins in a cluster as if it was the only one"


def _away(aways: Mapping[str, Sequence[Away]]) -> Iterator[str]:
    if aways:
        yield f"{shown(sorted(aways))} and the hub do not reach one another for a while; what has begun there goes on"


def _lasting(world: FleetWorld, *, longest: bool) -> FleetWorld:
    """Return the fleet with the longest or the least durations in each cluster."""

    def lasts(group: ClusterGroup) -> ClusterGroup:
        known = group.world.durations
        durations = {key: fixed(each, each.most_s if longest else each.least_s) for key, each in known.items()}
        return replace(group, world=replace(group.world, durations=durations))

    return replace(world, groups=tuple(map(lasts, world.groups)))


def _ideas(world: FleetWorld, found: FleetAnswer, plays: Mapping[str, Played]) -> list[Proposal]:
    """Return the ideas of the classes that fail, as edits of the fleet's files, each once."""
    kept: dict[tuple[Edit, ...], Proposal] = {}
    groups = world.clusters()
    failing = sorted(
        (one for one in found.classes if one.reached and one.outcome is not Outcome.SAFE), key=lambda one: -one.reached
    )
    for one in failing:
        for proposal in plays[one.played].ideas:
            made = _of_fleet(world, groups[one.played].place, one, proposal)
            kept.setdefault(made.edits, made)
    return list(kept.values())[:MAX_CURES]


def _of_fleet(world: FleetWorld, place: int, one: ClassAnswer, proposal: Proposal) -> Proposal:
    """Return the proposal for the class of a cluster: an edit of its world is one of its entry in the fleet's file."""
    if not proposal.world:
        return proposal
    edits = tuple(
        replace(edit, path=("clusters", place, *edit.path)) if edit.file == world.name else edit
        for edit in proposal.edits
    )
    return Proposal(f"{proposal.text} in {count(len(one.clusters))}", edits, world=True)


def _applied(asked: FleetAsked, proposal: Proposal) -> tuple[FleetAsked, str]:
    """Return the question with the proposal's edits, and their diff. Raises ValueError, ScenarioError."""
    world = asked.world
    files = world.objects.changed({world.name: world.text}) if proposal.world else asked.files
    before = files
    for edit in proposal.edits:
        files = files.changed({edit.file: edited(files.text(edit.file), edit)})
    diff = "".join(
        diff_of(name, before.text(name), files.text(name)) for name in dict.fromkeys(one.file for one in proposal.edits)
    )
    if not proposal.world:
        return replace(asked, files=files), diff
    objects = Files({path: data for path, data in files.content.items() if path != world.name})
    return replace(asked, world=parse_fleet(files.text(world.name), world.folder / world.name, objects)), diff
