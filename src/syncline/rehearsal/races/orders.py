"""All orders in which the operators of a race can do what they do: counted by states, drawn by a seed; pure.

An event is one thing that happens: a Subscription is applied, definitions come, an operator is up, a line is carried
out. What holds an event is known (:mod:`~syncline.rehearsal.races.holding`, and the files of operators); everything
else may come in any order, however long it takes. Orders that lead to the same state are explored once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from syncline.base.entropy import Entropy
from syncline.kube.objects import ObjectRef, dig, gvk_of, ref_of
from syncline.patterns.operators.behaving import Line
from syncline.patterns.operators.controllers.looking import DEFINITIONS, SUBSCRIPTIONS
from syncline.patterns.operators.racing.foreseen import Foreseen
from syncline.patterns.operators.racing.pairs import Made, Race, binding
from syncline.rehearsal.races.holding import Held

MOST_EVENTS: Final = 40
MOST_STATES: Final = 200_000
"""States of one race; the scene of two operators has a hundred."""
MOST_SEEDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Event:
    """``after``: the events that come before it, by name; ``any_of``: of each of these one comes before it."""

    name: str
    after: frozenset[str]
    any_of: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Course:
    """The events of one race. ``read``: the look; ``makes``: the events by which there is something to find, with its
    rank and words, the preferred one first; ``else_``: what it takes without them. ``unknown``: what something waits
    for, and nothing here is known to make."""

    events: tuple[Event, ...]
    read: str
    makes: tuple[tuple[str, int, str], ...]
    else_: str
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explored:
    """``taken``: schedules by what the reader takes; ``states``: distinct ones; ``stuck``: schedules that end before
    all is done, with what they wait for (``stuck_at``). ``whole``: no bound cut it short."""

    schedules: int
    states: int
    taken: Mapping[str, int]
    stuck: int = 0
    stuck_at: tuple[str, ...] = ()
    whole: bool = True

    def bad(self, good: Collection[str]) -> int:
        """Return in how many schedules the reader takes nothing good."""
        return sum(count for what, count in self.taken.items() if what not in good)


# -- events ------------------------------------------------------------------------------------------------------------


@dataclass
class _Events:
    """The events that a race needs, each once."""

    operators: Mapping[str, Foreseen]
    held: Mapping[ObjectRef, tuple[Held, ...]]
    made: dict[str, Event] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    def add(self, name: str, after: Iterable[str], any_of: tuple[frozenset[str], ...] = ()) -> str:
        self.made[name] = Event(name, frozenset(after), any_of)
        return name

    def applied(self, ref: ObjectRef) -> str:
        name = f"Subscription {ref.name} is applied"
        if name not in self.made:
            self.add(name, ())  # a circle comes back here
            self.add(name, {each for one in self.held.get(ref, ()) if (each := self._held(one))})
        return name

    def _held(self, one: Held) -> str:
        if one.works:
            asked = (op for op in self.operators.values() if op.subscription == one.ref and not op.brought_by)
            found = next(asked, None)
            return self.up(found.package) if found is not None else ""
        for operator in self.operators.values():
            if one.ref[:2] == DEFINITIONS and one.ref.name in operator.definitions:
                return self.brought(operator.package)
            for line in operator.behaviour.lines if operator.behaviour is not None else ():
                if any(_makes(obj_ref, one.ref) for obj_ref in map(ref_of, line.creates)):
                    return self.line(operator.package, line)
        text = f"{one.ref.kind} {one.ref.name}"
        if text not in self.unknown:
            self.unknown.append(text)
        return ""

    def brought(self, package: str) -> str:
        """Its definitions are there."""
        operator, name = self.operators[package], f"{package} is being installed"
        if name not in self.made:
            by = self._subscriber(operator)
            self.add(name, {by} if by else {self.applied(operator.subscription)})
        return name

    def _subscriber(self, operator: Foreseen) -> str:
        """Return the event by which an operator subscribes to this one; "" if none does."""
        by = self.operators.get(operator.brought_by)
        for line in by.behaviour.lines if by is not None and by.behaviour is not None else ():
            for obj in line.creates:
                if gvk_of(obj).group_kind == SUBSCRIPTIONS and dig(obj, "spec", "name") == operator.package:
                    return self.line(operator.brought_by, line)
        return ""

    def up(self, package: str) -> str:
        name = f"{package} is up"
        return name if name in self.made else self.add(name, {self.brought(package)})

    def line(self, package: str, line: Line, *, takes_other: bool = False) -> str:
        """``takes_other``: it does not wait for what operators make."""
        name = line_event(package, line)
        if name in self.made:
            return name
        self.add(name, ())  # a circle comes back here
        after = {self.up(package)}
        if line.trigger is not None and (made := self._making(line.trigger)):
            after.add(made)
        any_of: list[frozenset[str]] = []
        for look in line.looks:
            if look.name in line.needs and not takes_other:
                makers = {self._held(Held(ObjectRef(*look.kind, "", each), False, "")) for each in look.named}
                if makers - {""}:
                    any_of.append(frozenset(makers - {""}))
        return self.add(name, after, tuple(any_of))

    def _making(self, kind: tuple[str, str]) -> str:
        """Return the event by which an operator makes an object of a kind; "" if none does."""
        for operator in self.operators.values():
            for line in operator.behaviour.lines if operator.behaviour is not None else ():
                if any(gvk_of(obj).group_kind == kind for obj in line.creates):
                    return self.line(operator.package, line)
        return ""


def _makes(template: ObjectRef, ref: ObjectRef) -> bool:
    return template[:2] == ref[:2] and binding(template.name, ref.name) is not None


def line_event(package: str, line: Line) -> str:
    return f"{package}: {line.name or 'a line without a name'}"


def made_event(one: Made) -> str:
    """Return the event by which an object is there."""
    return f"{one.who.package} is being installed" if one.line is None else line_event(one.who.package, one.line)


def course(race: Race, operators: Sequence[Foreseen], held: Mapping[ObjectRef, tuple[Held, ...]]) -> Course:
    """Return the events of a race. ``held``: by Subscription."""
    events = _Events({one.package: one for one in operators}, held)
    read = events.line(race.reader.package, race.line, takes_other=bool(race.instead))
    makes = []
    for one in race.made:
        name = events.brought(one.who.package) if one.line is None else events.line(one.who.package, one.line)
        makes.append((name, one.rank, one.name))
    return Course(tuple(events.made.values()), read, tuple(makes), race.instead[0], tuple(events.unknown))


# -- exploring ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Masks:
    """The events as bits."""

    place: Mapping[str, int]
    after: tuple[int, ...]
    any_of: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, events: Sequence[Event]) -> _Masks:
        place = {one.name: 1 << number for number, one in enumerate(events)}

        def mask(names: Iterable[str]) -> int:
            return sum(place[name] for name in names)

        return cls(
            place, tuple(mask(one.after) for one in events), tuple(tuple(map(mask, one.any_of)) for one in events)
        )

    def free(self, done: int) -> list[int]:
        """Return the events that may come next."""
        return [
            each
            for each, wanted in enumerate(self.after)
            if not done & 1 << each and wanted & done == wanted and all(group & done for group in self.any_of[each])
        ]


def explored(found: Course) -> Explored:
    """Return what all schedules of the events come to."""
    names, masks = [one.name for one in found.events], _Masks.of(found.events)
    every, read = (1 << len(names)) - 1, names.index(found.read)
    ways: dict[tuple[int, str], int] = {(0, ""): 1}
    states, whole = 1, len(names) <= MOST_EVENTS
    taken: dict[str, int] = {}
    stuck: dict[int, int] = {}
    while ways and whole:
        later: dict[tuple[int, str], int] = {}
        for (done, took), count in ways.items():
            free = masks.free(done)
            if done == every:
                taken[took] = taken.get(took, 0) + count
            elif not free:
                stuck[done] = stuck.get(done, 0) + count
            for each in free:
                now = _taken(found, done, masks.place) if each == read else took
                key = (done | 1 << each, now)
                later[key] = later.get(key, 0) + count
            if states + len(later) > MOST_STATES:
                whole = False
                break
        ways, states = later, states + len(later)
    left = sorted({name for done in stuck for name in names if not done & masks.place[name]})
    schedules = sum(taken.values()) + sum(stuck.values())
    return Explored(schedules, states, dict(sorted(taken.items())), sum(stuck.values()), tuple(left), whole)


def _taken(found: Course, done: int, place: Mapping[str, int]) -> str:
    there = [(rank, what) for name, rank, what in found.makes if done & place[name]]
    return min(there)[1] if there else found.else_


def drawn(found: Course, seed: int) -> tuple[list[str], str]:
    """Return the events in the order of a seed, and what the reader takes."""
    masks, entropy = _Masks.of(found.events), Entropy(seed)
    order, done, took = list[str](), 0, ""
    while free := masks.free(done):
        chosen = entropy.choice(free)
        name = found.events[chosen].name
        took = _taken(found, done, masks.place) if name == found.read else took
        order.append(name)
        done |= 1 << chosen
    return order, took


def seed_for(found: Course, good: Collection[str], *, ends_well: bool) -> int | None:
    """Return the first seed whose order ends with something good, or without; None: no seed up to
    :data:`MOST_SEEDS`."""
    for seed in range(1, MOST_SEEDS + 1):
        _, took = drawn(found, seed)
        if took and (took in good) is ends_well:
            return seed
    return None
