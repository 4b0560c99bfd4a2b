"""Differences of two JSON documents, rendered for people; pure. Entry point: :func:`differences`.

The format is that of ``jd`` 2 (josephburnett/jd), in which upstream writes its reports: removed and added values at a
path, in lists with the element before and after, ``[`` and ``]`` at the ends of the list. Equal list elements are
paired by a longest common subsequence; between these, objects and lists at the same index are compared recursively.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeAlias

from syncline.ignition.jsontext import dump

Path: TypeAlias = tuple[str | int, ...]
EDGE = object()
"""The neighbour before the first and after the last element of a list."""
MOST_CELLS = 1_000_000
"""Maximum size of the table that pairs list elements; longer lists without common ends are compared by index."""
_PLAIN_BELOW, _PLAIN_FROM = 1e21, 1e-6


@dataclass(frozen=True, slots=True)
class Hunk:
    """Values ``removed`` and ``added`` at ``path``. ``before`` and ``after``: neighbours in a list, or empty."""

    path: Path
    removed: tuple[Any, ...] = ()
    added: tuple[Any, ...] = ()
    before: tuple[Any, ...] = ()
    after: tuple[Any, ...] = ()

    @property
    def text(self) -> str:
        """Return the hunk in jd's format, one line per value."""
        lines = ["[" if one is EDGE else f"  {rendered(one)}" for one in self.before]
        lines += [f"- {rendered(one)}" for one in self.removed]
        lines += [f"+ {rendered(one)}" for one in self.added]
        lines += ["]" if one is EDGE else f"  {rendered(one)}" for one in self.after]
        return "".join(f"{line}\n" for line in lines)


def rendered(value: Any) -> str:
    """Return the value on one line as Go writes it: sorted keys, numbers as floats."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{dump(key)}:{rendered(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(rendered(one) for one in value) + "]"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return dump(value)
    return _number(float(value))


def _number(value: float) -> str:
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    digits, _, exponent = repr(value).partition("e")
    sign, number = exponent[0], exponent[1:].lstrip("0")
    return f"{digits.removesuffix('.0')}e{sign}{number}"


def differences(old: Any, new: Any, path: Path = ()) -> list[Hunk]:
    """Return the hunks that turn ``old`` into ``new``: first keys of ``old``, then new keys, each in order."""
    if isinstance(old, dict) and isinstance(new, dict):
        return _of_objects(old, new, path)
    if isinstance(old, list) and isinstance(new, list):
        return _of_lists(old, new, path)
    return [] if rendered(old) == rendered(new) else [Hunk(path, (old,), (new,))]


def _of_objects(old: dict[str, Any], new: dict[str, Any], path: Path) -> list[Hunk]:
    found: list[Hunk] = []
    for key in sorted(old):
        if key in new:
            found += differences(old[key], new[key], (*path, key))
        else:
            found.append(Hunk((*path, key), removed=(old[key],)))
    return found + [Hunk((*path, key), added=(new[key],)) for key in sorted(new) if key not in old]


# -- lists ----------------------------------------------------------------------------------------------------------


def _of_lists(old: list[Any], new: list[Any], path: Path) -> list[Hunk]:
    walk = _Walk(old, new, path, [rendered(one) for one in old], [rendered(one) for one in new])
    walk.common = _common(walk.old_keys, walk.new_keys)
    found: list[Hunk] = []
    while True:
        found += walk.stretch()
        if walk.at_old == len(old) and walk.at_new == len(new):
            return found


@dataclass(slots=True)
class _Walk:
    """Walks two lists from left to right. ``place``: index in the result; ``common``: their common subsequence."""

    old: list[Any]
    new: list[Any]
    path: Path
    old_keys: list[str]
    new_keys: list[str]
    common: list[str] = field(default_factory=list)
    at_old: int = 0
    at_new: int = 0
    at_common: int = 0
    place: int = 0

    def stretch(self) -> list[Hunk]:
        """Advance to a common element, to a difference inside two elements, or to the end; return at most one list hunk
        and the hunks inside elements."""
        began, inside, ended = self.at_common, None, False
        hunk = Hunk((*self.path, self.place), before=(self.new[self.at_new - 1] if self.at_new else EDGE,))
        removed: list[Any] = []
        added: list[Any] = []
        while not ended:
            shared_old, shared_new = self._shared(self.old_keys, self.at_old), self._shared(self.new_keys, self.at_new)
            if self.at_old == len(self.old) or self.at_new == len(self.new):
                removed += self.old[self.at_old :]
                added += self.new[self.at_new :]
                self.at_old, self.at_new, ended = len(self.old), len(self.new), True
            elif shared_old and shared_new:
                self.at_common += 1
                self._advance()
                ended = True
            elif shared_old:
                added.append(self.new[self.at_new])
                self.at_new, self.place = self.at_new + 1, self.place + 1
            elif shared_new:
                removed.append(self.old[self.at_old])
                self.at_old += 1
            elif _comparable(self.old[self.at_old], self.new[self.at_new]):
                neighbour = self._neighbour(began)
                inside = differences(self.old[self.at_old], self.new[self.at_new], (*self.path, self.place))
                self._advance()
                ended = True
            else:
                removed.append(self.old[self.at_old])
                added.append(self.new[self.at_new])
                self._advance()
        if not removed and not added:
            return inside or []
        after = neighbour if inside else self._neighbour(began)
        return [replace(hunk, removed=tuple(removed), added=tuple(added), after=(after,)), *(inside or ())]

    def _shared(self, keys: list[str], at: int) -> bool:
        return at < len(keys) and self.at_common < len(self.common) and keys[at] == self.common[self.at_common]

    def _advance(self) -> None:
        self.at_old, self.at_new, self.place = self.at_old + 1, self.at_new + 1, self.place + 1

    def _neighbour(self, began: int) -> Any:
        """Return the old element after the removed ones, also if it is a common one that was already passed."""
        at = self.at_old - (self.at_common - began)
        return self.old[at] if at < len(self.old) else EDGE


def _comparable(old: Any, new: Any) -> bool:
    return any(isinstance(old, kind) and isinstance(new, kind) for kind in (dict, list))


def _common(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the longest common subsequence; of several, the one of a table that is filled from the left."""
    start, end = 0, 0
    short = min(len(old), len(new))
    while start < short and old[start] == new[start]:
        start += 1
    while end < short - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    middle = _by_table(left, right) if len(left) * len(right) <= MOST_CELLS else []
    return [*old[:start], *middle, *old[len(old) - end :]]


def _by_table(left: Sequence[str], right: Sequence[str]) -> list[str]:
    table = [[0] * (len(right) + 1)]
    for one in left:
        above, row = table[-1], [0]
        for at, other in enumerate(right):
            row.append(max(above[at] + (one == other), above[at + 1], row[at]))
        table.append(row)
    found: list[str] = []
    x, y = len(left), len(right)
    while x and y:
        if left[x - 1] == right[y - 1]:
            found.append(left[x - 1])
            x, y = x - 1, y - 1
        elif table[x - 1][y] >= table[x][y - 1]:
            x -= 1
        else:
            y -= 1
    return found[::-1]
