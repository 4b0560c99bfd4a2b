"""The result of generation: :class:`Generated`. ``generate`` turns a set and :class:`Facts` into it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from syncline.appset.questions import Question
from syncline.kube.objects import Obj


@dataclass(frozen=True, slots=True)
class Row:
    """One parameter set, and the generator element that made it: ``origin`` as ``spec.generators[0].matrix``."""

    origin: str
    number: int
    """Zero-based, among the rows of the element."""
    params: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Made:
    """An Application as rendered, before any write, and its row."""

    app: Obj
    row: Row


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a generator or of a template. ``reason``: that of upstream's condition; ``origin``: the element;
    ``row``: the row whose template failed."""

    reason: str
    message: str
    origin: str = ""
    row: Row | None = None


@dataclass(frozen=True, slots=True)
class Generated:
    """All Applications of a set, or why it cannot be known."""

    made: tuple[Made, ...] = ()
    failures: tuple[Failure, ...] = ()
    """With any of them nothing may be created, updated or deleted; the first one is upstream's."""
    missing: tuple[Question, ...] = ()
    """Questions without an answer; with any of them ``made`` is incomplete."""
    asked: tuple[tuple[Question, float], ...] = ()
    """All questions whose answers were used or are missing, each with the seconds after which it is asked again."""
    warnings: tuple[str, ...] = ()
    """What is no error upstream, but probably a mistake: an element without a generator."""
    requeue_s: float = 0.0
    """Seconds until the generators should run again, as upstream counts them; 0: never."""
