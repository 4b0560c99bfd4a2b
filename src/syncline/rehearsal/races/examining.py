"""Examines the races of a pattern: every order is explored, a bad one is rehearsed, and the smallest ordering that
rules it out is explored and rehearsed, too. Entry point: :func:`examined`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Final

from syncline.clustergroup.defaults import layered
from syncline.clustergroup.errors import RenderFailed, ValuesRefused
from syncline.clustergroup.render import render, values_of
from syncline.gitops.sync.conditions import ConditionError
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import dump
from syncline.patterns.operators.racing.foreseen import foreseen
from syncline.patterns.operators.racing.pairs import Found, Race, races
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.installing.playing import Installation
from syncline.rehearsal.races.forcing import Once, play_once
from syncline.rehearsal.races.holding import held
from syncline.rehearsal.races.orders import Course, Explored, course, drawn, explored, seed_for
from syncline.rehearsal.races.proposing import Ordering, orderings
from syncline.rehearsal.scenario import ScenarioError

MOST_REHEARSED: Final = 8
"""Races of one pattern that are rehearsed; more are explored alone."""
CURE: Final = "rehearsed-ordering.yaml"


@dataclass(frozen=True, slots=True)
class Settings:
    """``seed``: the order that is rehearsed; None: the first that ends badly. ``rehearse``: play at all; ``every``:
    prove each ordering, not the smallest alone."""

    seed: int | None = None
    rehearse: bool = True
    every: bool = False
    report: Callable[[str], None] = lambda _text: None


@dataclass(frozen=True, slots=True)
class Tried:
    """An ordering. ``wrong``: why it cannot be explored."""

    ordering: Ordering
    explored: Explored
    plays: tuple[Once, ...] = ()
    wrong: str = ""

    def rules_out(self, good: frozenset[str]) -> bool:
        """Return whether no explored schedule ends badly, and no rehearsed one did."""
        clean = not self.wrong and self.explored.whole and not self.explored.stuck and not self.explored.bad(good)
        return clean and all(one.taken in good for one in self.plays)


@dataclass(frozen=True, slots=True)
class Examined:
    """A race. ``seed``: of a schedule that ends badly; ``plays``: its rehearsal, and that of one that ends well.
    ``tried``: orderings, the smallest first."""

    race: Race
    course: Course
    explored: Explored
    seed: int | None = None
    plays: tuple[Once, ...] = ()
    tried: tuple[Tried, ...] = ()

    @property
    def ruled_out(self) -> bool:
        """Whether the pattern's own order rules it out."""
        return self.explored.whole and not self.explored.bad(self.race.good) and not self.explored.stuck

    @property
    def cure(self) -> Tried | None:
        """The smallest ordering that rules it out."""
        return next((one for one in self.tried if one.rules_out(self.race.good)), None)


@dataclass(frozen=True, slots=True)
class Answer:
    found: Found
    examined: tuple[Examined, ...]
    not_tried: tuple[str, ...] = field(default=())

    @property
    def outcome(self) -> Outcome:
        """UNSAFE: a schedule ends badly, or not all could be explored; BLOCKED: one never ends."""
        if any(one.explored.bad(one.race.good) or not one.explored.whole for one in self.examined):
            return Outcome.UNSAFE
        return Outcome.BLOCKED if any(one.explored.stuck for one in self.examined) else Outcome.SAFE


@dataclass
class _Examining:
    values: Obj
    asked: Installation
    scratch: Path
    settings: Settings
    number: count[int] = field(default_factory=count)

    def examine(self, found: Found, objects: list[Obj], race: Race, *, rehearse: bool) -> Examined:
        made = course(race, found.operators, held(objects))
        whole = explored(made)
        if not whole.bad(race.good):
            return Examined(race, made, whole)
        seed = self.settings.seed if self.settings.seed is not None else seed_for(made, race.good, ends_well=False)
        against = seed_for(made, race.good, ends_well=True)
        orders = [drawn(made, each)[0] for each in (seed, against) if each is not None] if rehearse else []
        plays = tuple(self._play(race, order, {}) for order in orders)
        tried: list[Tried] = []
        for ordering in orderings(race, self.values, objects):
            one = self._explored(found, race, ordering)
            proved = any(each.rules_out(race.good) for each in tried)
            if one.rules_out(race.good) and (self.settings.every or not proved):
                one = replace(one, plays=tuple(self._play(race, order, ordering.layer) for order in orders))
            tried.append(one)
        return Examined(race, made, whole, seed, plays, tuple(tried))

    def _explored(self, found: Found, race: Race, ordering: Ordering) -> Tried:
        try:
            objects = render(values_of([layered([self.values, ordering.layer])]))
            return Tried(ordering, explored(course(race, found.operators, held(objects))))
        except (RenderFailed, ValuesRefused, ConditionError) as error:
            return Tried(ordering, Explored(0, 0, {}), wrong=str(error))

    def _play(self, race: Race, order: list[str], layer: Obj) -> Once:
        self.settings.report(f"rehearsing {race.reader.package} and {race.maker.package}")
        asked = self.asked
        if layer:
            more = [*(asked.spec.get("extraValueFiles") or ()), CURE]
            spec, files = {**asked.spec, "extraValueFiles": more}, {**asked.files, CURE: dump(layer)}
            asked = replace(asked, spec=spec, files=files)
        place = self.scratch / f"race-{next(self.number)}"
        place.mkdir()
        return play_once(asked, race, order, place)


def examined(values: Obj, asked: Installation, scratch: Path, settings: Settings) -> Answer:
    """Return what is found of a pattern. ``values``: of its cluster group, merged; ``asked``: how it is installed.
    Raises ScenarioError, RenderFailed, ValuesRefused."""
    objects = render(values_of([values]))
    found = races(foreseen(objects, asked.catalogs.catalogs, asked.behaviours), asked.objects)
    work = _Examining(values, asked, scratch, settings)
    try:
        made = tuple(
            work.examine(found, objects, one, rehearse=settings.rehearse and number < MOST_REHEARSED)
            for number, one in enumerate(found.races)
        )
    except ConditionError as error:
        raise ScenarioError(str(error), usage=True) from error
    return Answer(found, made, tuple(_not_tried(found, made, settings)))


def _not_tried(found: Found, made: tuple[Examined, ...], settings: Settings) -> list[str]:
    said = ["faults, restarts and upgrades of operators (an operator that starts again looks again)"]
    if found.unknown:
        said.append(f"what these operators do, which is unknown: {', '.join(found.unknown)}")
    if unknown := sorted({text for one in made for text in one.course.unknown}):
        said.append(f"when there is what no known operator makes: {', '.join(unknown)}")
    if cut := [one.race.reader.package for one in made if not one.explored.whole]:
        said.append(f"all schedules of {', '.join(cut)}: they have too many events")
    if not settings.rehearse:
        said.append("rehearsals: the schedules are those of the files alone")
    elif len(made) > MOST_REHEARSED:
        said.append(f"rehearsals of {len(made) - MOST_REHEARSED} more pairs")
    return said
