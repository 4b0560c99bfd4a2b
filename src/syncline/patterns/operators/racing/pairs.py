"""Which pairs of operators have an outcome that depends on their order; pure.

What an operator looks for it reads once (``behaving.py``). If another operator makes what it would prefer, and it would
take something else or nothing without it, the outcome depends on which of the two comes first. If it waits for that one
thing, and takes nothing else, it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from syncline.kube.objects import GroupKind, Obj, annotations_of, gvk_of, name_of
from syncline.kube.text.durations import format_duration
from syncline.patterns.operators.behaving import PLACE, Line, Look
from syncline.patterns.operators.controllers.looking import DEFINITIONS
from syncline.patterns.operators.racing.foreseen import Foreseen

NOTHING: Final = "nothing"
MOST_RACES: Final = 500


@dataclass(frozen=True, slots=True)
class Made:
    """An object that an operator makes, and a look of another one would find. ``rank``: its place among what that one
    prefers, 0 first. ``line`` None: it is a definition that comes with the operator. ``bound``: what the names in the
    line stand for, so that the object has this name."""

    who: Foreseen
    line: Line | None
    kind: GroupKind
    name: str
    rank: int
    bound: Mapping[str, str]

    @property
    def source(self) -> str:
        return self.line.source if self.line is not None else f"the catalogue's bundle of {self.who.package}"


@dataclass(frozen=True, slots=True)
class Race:
    """``reader`` looks once, in ``line``, and ``made`` is what ``maker`` makes of it, the preferred one first.
    ``instead``: what it takes if it looks before, :data:`NOTHING` or an object."""

    reader: Foreseen
    line: Line
    look: Look
    maker: Foreseen
    made: tuple[Made, ...]
    instead: tuple[str, ...]

    @property
    def best(self) -> Made:
        return self.made[0]

    @property
    def circle(self) -> str:
        """The definition that the maker of the best waits for, and the reader itself brings; "" without. Then no order
        of the two gives the best for sure."""
        return _circle(self.best, self.reader)

    @property
    def target(self) -> Made:
        """What an order can have there before the reader looks: the best that is not in a circle, if there is one."""
        return next((one for one in self.made if not _circle(one, self.reader)), self.best)

    @property
    def good(self) -> frozenset[str]:
        """What the reader may take: the best, or in a circle what is as good as its target."""
        return frozenset(one.name for one in self.made if one.rank <= self.target.rank)

    @property
    def reason(self) -> str:
        """Why the outcome depends on the order, in words."""
        kind, reads = self.look.kind.kind, _moment(self.line, "it is up")
        first = f"{self.reader.package} reads {kind} {self.best.name} once, {reads} ({self.line.name})"
        by = f", which {self.maker.brought_by} brings," if self.maker.brought_by else ""
        if self.best.line is None:
            return f"{first}; it comes with {self.maker.package}{by}"
        return f"{first}; {self.maker.package}{by} makes it {_moment(self.best.line, 'it is up', self.best.bound)}"

    @property
    def consequence(self) -> str:
        """What happens in the worse order."""
        taken = " or ".join(f"finds {NOTHING}" if one == NOTHING else f"takes {one}" for one in self.instead)
        return f"if it reads first, it {taken}, and does not look again"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A look whose order does not matter: it waits for the one thing that it takes."""

    reader: str
    maker: str
    what: str


@dataclass(frozen=True, slots=True)
class Found:
    """``looks``: how many looks were compared; ``unknown``: operators of which nothing is known; ``unresolved``: why no
    version of an operator is found, by package."""

    races: tuple[Race, ...]
    waiting: tuple[Waiting, ...]
    looks: int
    operators: tuple[Foreseen, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        return tuple(one.package for one in self.operators if one.behaviour is None)

    @property
    def unresolved(self) -> Mapping[str, str]:
        return {one.package: one.unresolved for one in self.operators if one.unresolved}


def races(operators: Sequence[Foreseen], there: Sequence[Obj] = ()) -> Found:
    """Return the pairs of operators that race, by reader and maker. ``there``: objects that the cluster has before."""
    found: list[Race] = []
    waiting: list[Waiting] = []
    looks = 0
    for reader in operators:
        for line in reader.behaviour.lines if reader.behaviour is not None else ():
            for look in line.looks:
                looks += 1
                made = sorted(_finds(look, operators), key=lambda one: (one.rank, one.name))
                others = tuple(_others(line, look, there))
                for maker in operators:
                    mine = tuple(one for one in made if one.who == maker)
                    if not mine or maker == reader:
                        continue
                    if instead := _instead(line, look, mine, made, others):
                        found.append(Race(reader, line, look, maker, mine, instead))
                    else:
                        waiting.append(Waiting(reader.package, maker.package, f"{look.kind.kind} {mine[0].name}"))
    return Found(tuple(found[:MOST_RACES]), tuple(waiting), looks, tuple(operators))


def _finds(look: Look, operators: Iterable[Foreseen]) -> Iterator[Made]:
    """Yield what the look would find of all that operators make."""
    for who in operators:
        if look.kind == DEFINITIONS:
            for rank, name in enumerate(look.named):
                if name in who.definitions:
                    yield Made(who, None, look.kind, name, rank, {})
        for line in who.behaviour.lines if who.behaviour is not None else ():
            for obj in line.creates:
                if gvk_of(obj).group_kind == look.kind and (one := _named(look, obj)) is not None:
                    rank, name, bound = one
                    yield Made(who, line, look.kind, name, rank, bound)


def _named(look: Look, obj: Obj) -> tuple[int, str, Mapping[str, str]] | None:
    for rank, name in enumerate(look.named):
        if (bound := binding(name_of(obj), name)) is not None:
            return rank, name, bound
    fits = look.where is not None and look.where.items() <= annotations_of(obj).items()
    return (len(look.named), name_of(obj), {}) if fits else None


def binding(template: str, name: str) -> Mapping[str, str] | None:
    """Return what the places of a name with ``${…}`` stand for if it is this name; None: it cannot be."""
    parts, places = PLACE.split(template)[::2], [found["name"] for found in PLACE.finditer(template)]
    pattern = "([a-z0-9.-]+)".join(map(re.escape, parts))
    matched = re.fullmatch(pattern, name)
    if matched is None:
        return None
    bound: dict[str, str] = {}
    for place, value in zip(places, matched.groups(), strict=True):
        if bound.setdefault(place, value) != value:
            return None
    return bound


def _others(line: Line, look: Look, there: Sequence[Obj]) -> Iterator[tuple[int, str]]:
    """Yield what a look takes besides what operators make: rank and words."""
    here = [one for one in there if gvk_of(one).group_kind == look.kind]
    for rank, name in enumerate(look.named):
        if any(name_of(one) == name for one in here):
            yield rank, f"{look.kind.kind} {name}, which the cluster has"
    if look.where is not None:
        said = ", ".join(f"{key}={value}" for key, value in sorted(look.where.items()))
        fits = [name_of(one) for one in here if look.where.items() <= annotations_of(one).items()]
        named = f"{look.kind.kind} {min(fits)}, which the cluster has" if fits else f"a {look.kind.kind} of the cluster"
        yield len(look.named), f"{named} ({said})"
    if look.name not in line.needs:
        yield len(look.named) + 1, NOTHING


def _instead(
    line: Line, look: Look, mine: Sequence[Made], made: Sequence[Made], others: Sequence[tuple[int, str]]
) -> tuple[str, ...]:
    """Return what a look takes where the objects of a maker are missing, and would not take where they are there."""
    best = mine[0]
    if any(rank <= best.rank and rank < len(look.named) for rank, _ in others):
        return ()  # what it prefers is there before
    mine_too = {one.who.package for one in mine}
    more = [
        (one.rank, f"{one.kind.kind} {one.name} of {one.who.package}")
        for one in made
        if one.who.package not in mine_too and one.name != best.name
    ]
    tied = len(look.named)  # of those that annotations find, the first name counts
    later = (one for one in (*others, *more) if one[0] > best.rank or one[0] == best.rank == tied)
    return tuple(text for _, text in sorted(later))


def _circle(one: Made, reader: Foreseen) -> str:
    """Return a definition that the reader brings and the line that makes the object waits for; "" if there is none."""
    looks = [look for look in one.line.looks if look.name in one.line.needs] if one.line is not None else ()
    wanted = {name for look in looks if look.kind == DEFINITIONS for name in look.named}
    lines = reader.behaviour.lines if reader.behaviour is not None else ()
    served = {name_of(obj) for line in lines for obj in line.creates if gvk_of(obj).group_kind == DEFINITIONS}
    return min(wanted & (served | reader.definitions), default="")


def _moment(line: Line, up: str, bound: Mapping[str, str] | None = None) -> str:
    """Return when a line is carried out, in words."""
    if line.trigger is None:
        begun = up
    else:
        name = (bound or {}).get("object", "")
        begun = f"there is a {line.trigger.kind}{f' {name}' if name else ''}"
    later = f"{format_duration(line.after)} after " if line.after > timedelta(0) else "as soon as "
    return later + begun


def race_to_obj(one: Race) -> dict[str, Any]:
    """Return a race as JSON."""
    return {
        "reader": one.reader.package,
        "maker": one.maker.package,
        "broughtBy": one.maker.brought_by,
        "line": one.line.name,
        "kind": one.look.kind.kind,
        "made": [{"name": each.name, "source": each.source, "line": each.line and each.line.name} for each in one.made],
        "instead": list(one.instead),
        "circle": one.circle,
        "reason": one.reason,
        "consequence": one.consequence,
        "source": one.look.source or one.line.source,
    }
