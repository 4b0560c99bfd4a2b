"""The files of a pattern's repository that installing looks at; frozen."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field


class NotAFile(ValueError):
    """A folder stands where a values file is expected."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """``files``: content by path from the root, of the files that installing may read; ``paths``: all of them."""

    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    folders: frozenset[str] = frozenset()

    @classmethod
    def of(cls, files: Mapping[str, bytes], paths: frozenset[str] = frozenset()) -> Checkout:
        """``paths``: of files whose content is not at hand."""
        folders: set[str] = set()
        for path in (*files, *paths):
            while path := posixpath.dirname(path):
                folders.add(path)
        return cls(dict(files), frozenset(folders))

    @property
    def has_variants(self) -> bool:
        """Each variant has a folder of its own below ``variants``."""
        return "variants" in self.folders

    @property
    def is_slim(self) -> bool:
        """The repository does not contain the older ``common`` with its charts."""
        return "common/operator-install" not in self.folders and "common/operator-install" not in self.files

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None: there is none, also for a path that leads out of the repository.
        Raises :class:`NotAFile`."""
        place = posixpath.normpath(path.lstrip("/"))
        if place in self.folders or place == ".":
            raise NotAFile(f"{path} is a folder")
        return self.files.get(place)
