"""Files by their path from the repository's root, for tools whose files name others outside their folder.

A path that begins with ``$name/`` lies in another source's repository.
``sources/helm/rendering.py`` and ``sources/rendering/jsonnet.py`` look up values files and imports here. Symbolic links
are followed inside the repository; nothing outside it can be named.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from syncline.sources.tree import SYMLINK_MODE, Entry, Tree

MAX_LINKS = 20
"""Symbolic links to folders inside symbolic links to folders."""


def join(folder: str, path: str) -> str | None:
    """Resolve ``path`` in ``folder`` to a path from the root; a leading ``/`` is the root. None if it leaves."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{folder}/{path}").split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


class Lookup:
    """The files of a tree's repository and of ``refs``. Returned entries have paths from the root."""

    def __init__(self, tree: Tree, refs: Mapping[str, Tree] | None = None) -> None:
        self._tree = tree
        self.refs = {name: Lookup(other) for name, other in (refs or {}).items()}

    @cached_property
    def whole(self) -> Tree:
        return self._tree.whole()

    @cached_property
    def _inside(self) -> dict[str, Entry]:
        prefix = f"{self._tree.path}/" if self._tree.path else ""
        return {prefix + entry.path: entry for entry in self._tree.entries}

    @cached_property
    def _all(self) -> dict[str, Entry]:
        return {entry.path: entry for entry in self.whole.entries}

    def find(self, path: str) -> Entry | None:
        """Return the regular file at ``path``, or None; raises :class:`SourceError` for links that leave."""
        if path.startswith("$"):
            name, _, rest = path.partition("/")
            found = self.refs[name[1:]].find(rest)
            return found and replace(found, path=path)
        inside = self._inside.get(path)
        if inside is not None and inside.is_file:
            return Entry(path, inside.mode, inside.blob, inside.size)
        entry = self._all.get(path)
        if entry is not None and entry.is_file:
            return entry
        if entry is None and not self._behind_link(path):
            return None
        return self.whole.follow(Entry(path, SYMLINK_MODE, "", 0))

    def _behind_link(self, path: str) -> bool:
        while path := posixpath.dirname(path):
            entry = self._all.get(path)
            if entry is not None:
                return entry.is_symlink
        return False

    def paths(self) -> list[str]:
        """Return all paths of the repository, sorted, then those of other sources."""
        others = [f"${name}/{path}" for name in sorted(self.refs) for path in self.refs[name].paths()]
        return [*sorted(self._all), *others]

    def below(self, folder: str, *, links: int = MAX_LINKS) -> Iterator[Entry]:
        """Yield every file below ``folder`` by its path there; links to folders are followed, too.

        Raises :class:`SourceError` for links that leave the repository.
        """
        prefix = f"{folder}/" if folder else ""
        inside = not self._tree.path or folder == self._tree.path or folder.startswith(f"{self._tree.path}/")
        entries = self._inside if inside else self._all
        for path in sorted(path for path in entries if path.startswith(prefix)):
            entry = entries[path]
            if not entry.is_symlink:
                if entry.is_file:
                    yield Entry(path, entry.mode, entry.blob, entry.size)
                continue
            target = self.whole.follow(Entry(path, SYMLINK_MODE, "", 0))
            if target is not None:
                yield target
            elif links > 0:
                yield from self._through(path, links)

    def _through(self, path: str, links: int) -> Iterator[Entry]:
        """Yield the files of the folder that the link at ``path`` points to, with paths below the link."""
        link = self._all[path]
        text = self.whole.read([link])[link.path].decode("utf-8", "replace")
        target = join(posixpath.dirname(path), text)
        if target is None or path == target or path.startswith(f"{target}/"):
            return
        for entry in self.below(target, links=links - 1):
            name = path + entry.path[len(target) :]
            yield Entry(name, entry.mode, entry.blob, entry.size)

    def read(self, entries: list[Entry]) -> dict[str, bytes]:
        """Return contents by path."""
        contents = self.whole.read([entry for entry in entries if not entry.path.startswith("$")])
        for name, other in self.refs.items():
            there = f"${name}/"
            wanted = [entry for entry in entries if entry.path.startswith(there)]
            found = other.read([replace(entry, path=entry.path[len(there) :]) for entry in wanted]) if wanted else {}
            contents |= {there + path: content for path, content in found.items()}
        return contents
