"""A scenario of a file ``*.rehearsal.yaml`` as values: :class:`Case`, what happens in it, and what is expected of it.

``reading.py`` makes them of the file, ``happening.py`` lets things happen, ``judging.py`` judges a record by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.answer.condition import Condition
from syncline.rehearsal.answer.laws import RecordLaw
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.mishaps import Mishap
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.scenario import Act

# -- what happens ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Commit:
    """The repository has these files from now on."""

    files: Files


@dataclass(frozen=True, slots=True)
class Acts:
    """What a person does to the cluster; a target may be a pattern such as ``Pod/shop/web-*``: its first object."""

    acts: tuple[Act, ...]


@dataclass(frozen=True, slots=True)
class Sync:
    """As ``syncline app sync``."""

    application: str


@dataclass(frozen=True, slots=True)
class Terminate:
    """As ``syncline app terminate-op``."""

    application: str


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault begins, or ``heals``."""

    mishap: Mishap
    heals: bool = False


Change: TypeAlias = "Commit | Acts | Sync | Terminate | Strike"


@dataclass(frozen=True, slots=True)
class Happening:
    """``at``: since the first commit, or, with ``once``, as soon as that is so; ``where``: its path in the file.
    ``then`` heals what was waited for, ``at`` seconds later."""

    at: timedelta
    where: str
    text: str
    change: Change
    once: State | None = None
    then: Happening | None = None


# -- what is expected ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class When:
    """When a state is looked at: ``at`` a time; once until ``within``; ``always`` since the commit; else at the end."""

    at: timedelta | None = None
    within: timedelta | None = None
    always: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rehearsal ends with one of these outcomes."""

    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is waited for any more after this time."""

    within: timedelta


@dataclass(frozen=True, slots=True)
class Laws:
    """These laws are ``broken``, these are ``held``."""

    broken: tuple[str, ...]
    held: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class State:
    """Each object that ``target`` names has these ``fields`` and holds the ``condition``; there is one at least, or
    exactly ``count``, or, if ``absent``, none."""

    target: str
    when: When
    fields: Mapping[str, object] = field(default_factory=dict)
    condition: Condition | None = None
    absent: bool = False
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """Moments, each not after the next one."""

    moments: tuple[Moment, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """``begins`` or ends of each bar of the timeline whose ``row`` (and what it does, if ``row`` names it) matches."""

    row: str
    begins: bool

    def __str__(self) -> str:
        return f"{self.row} {'begins' if self.begins else 'ends'}"


@dataclass(frozen=True, slots=True)
class Waits:
    """Something whose name contains ``subject`` waits (or, with ``never``, does not) for something whose text contains
    ``cause``; ``forever``: until the end."""

    subject: str
    cause: str = ""
    forever: bool = False
    never: bool = False


@dataclass(frozen=True, slots=True)
class AtEnd:
    """The condition holds at the end, of all objects and the journal."""

    condition: Condition


Wanted: TypeAlias = "Verdict | Done | Laws | State | Order | Waits | AtEnd"


@dataclass(frozen=True, slots=True)
class Expectation:
    """``where``: its path in the file; ``text``: as it stands there."""

    where: str
    text: str
    wanted: Wanted


@dataclass(frozen=True)
class Case:
    """One scenario. ``file``: as it was found; ``asked``: its world, what was deployed before, and the first commit."""

    file: str
    name: str
    about: str
    asked: Asked
    happenings: tuple[Happening, ...]
    expected: tuple[Expectation, ...]
    seeds: tuple[int, ...]
    laws: tuple[RecordLaw, ...]
