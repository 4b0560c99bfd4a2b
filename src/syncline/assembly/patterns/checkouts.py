"""Reads the files of a pattern's repository from a mirror; blocking."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.assembly.sources.administered import read_administered
from syncline.patterns.installing.checkout import Checkout
from syncline.patterns.installing.reading import Found, Wanted
from syncline.sources.errors import Problem, SourceError
from syncline.sources.sourcing import Sources
from syncline.sources.tree import Entry, Tree

MAX_BYTES: Final = 8 * 1024 * 1024
"""Limit of all values files of one pattern."""
MAX_PATHS: Final = 200_000


@dataclass(frozen=True, slots=True)
class Checkouts:
    """A :class:`~syncline.patterns.installing.reading.CheckoutReader`."""

    sources: Sources

    def checkout(self, wanted: Wanted, now: datetime) -> Found:
        try:
            commit, found = read_administered(
                self.sources, wanted, "", now, lambda tree: checkout_of(tree, wanted.names)
            )
        except SourceError as error:
            return Found(now, error=str(error))
        return Found(now, commit, checkout=found)


def checkout_of(tree: Tree, names: tuple[str, ...]) -> Checkout:
    """Return the named files of a tree, and which folders it has. Raises :class:`SourceError`."""
    entries = tree.entries
    if len(entries) > MAX_PATHS:
        raise SourceError(Problem.TOO_LARGE, f"the repository has more than {MAX_PATHS} files")
    places = {posixpath.normpath(name.lstrip("/")) for name in names}
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.path in places:
            target = tree.follow(entry)
            if target is not None:
                found[entry.path] = target
    if sum(one.size for one in found.values()) > MAX_BYTES:
        raise SourceError(Problem.TOO_LARGE, f"the values files have more than {MAX_BYTES} bytes")
    contents = tree.read(found.values())
    files = {path: contents[target.path] for path, target in found.items()}
    return Checkout.of(files, frozenset(entry.path for entry in entries))
