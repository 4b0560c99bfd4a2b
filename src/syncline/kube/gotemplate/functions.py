"""What a template may call: :class:`Function` with its Go types, and the errors and bounds of calls."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any

MAX_TEXT = 1 << 20
"""Bytes of the largest text that a function may make."""
MAX_ITEMS = 100_000
"""Items of the longest list or map that a function may make, and the longest range over an integer."""
MAX_NESTING = 100
"""Lists and maps within one another that a function walks: templates can nest them without end (``set $d "a" $d``)."""


class FunctionError(Exception):
    """Why a call failed, in Go's words; the engine adds ``error calling NAME:`` and the place."""


class Interrupted(Exception):
    """Raised by a function to end the rendering, out of which it comes as it is: the base of what a caller can answer
    before it renders again."""


class Kind(Enum):
    """Go's type of a parameter or result; the value is its text in error messages."""

    ANY = "interface {}"
    """The call gets any value; None for nil, and for a key that is missing."""
    VALUE = "reflect.Value"
    """As ``ANY``, but a missing value stays :data:`syncline.kube.gotemplate.values.INVALID`; for builtin functions."""
    STRING = "string"
    BOOL = "bool"
    INT = "int"
    INT64 = "int64"
    UINT32 = "uint32"
    FLOAT64 = "float64"
    LIST = "[]interface {}"
    """A nil becomes a :class:`syncline.kube.gotemplate.values.NilList`."""
    DICT = "map[string]interface {}"
    """A nil becomes a :class:`syncline.kube.gotemplate.values.NilDict`."""
    STRINGS = "[]string"
    INTS = "[]int"
    BYTES = "[]uint8"
    STRING_MAP = "map[string]string"
    TIME = "time.Time"
    DURATION = "time.Duration"
    """An integer literal comes as an int64."""
    VERSION = "*semver.Version"
    CERTIFICATE = "sprig.certificate"


@dataclass(frozen=True, slots=True)
class Function:
    """A function of templates.

    ``call`` gets one positional argument for each argument of the template. The engine has checked their number, and
    that each value is assignable to its parameter, as Go does (no conversions: an ``int64`` is no ``int``). It returns
    a template value (``values.py``) and raises :class:`FunctionError`. Large results are its own concern: see
    :func:`check_text` and :func:`check_items`.
    """

    call: Callable[..., Any]
    params: tuple[Kind, ...] = ()
    variadic: bool = False
    """Whether the last parameter may come any number of times, also none."""
    result: Kind = Kind.ANY
    """Go's static type of the result; seen only in texts of errors."""


SPENDING: ContextVar[Callable[[int], None] | None] = ContextVar("spending", default=None)
"""How the rendering that runs counts steps; an engine sets it."""


def spend(steps: int) -> None:
    """Count steps (each about a microsecond) of the rendering that runs, for work that the sizes of arguments and
    result do not show. Raises what the engine raises for too many."""
    if (count := SPENDING.get()) is not None:
        count(steps)


def check_text(size: int) -> None:
    """Refuse to make a text of more than :data:`MAX_TEXT` bytes, before it is made."""
    if size > MAX_TEXT:
        raise FunctionError(f"the result would have {size} bytes, at most {MAX_TEXT} are allowed")


def check_items(count: int) -> None:
    """Refuse to make a list or map of more than :data:`MAX_ITEMS` items, before it is made."""
    if count > MAX_ITEMS:
        raise FunctionError(f"the result would have {count} items, at most {MAX_ITEMS} are allowed")
