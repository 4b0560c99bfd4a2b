"""Reads the files of a folder at a commit of a mirror: :class:`GitTree`.

Opened by ``sources/git/mirrors.py``. If many folders of a commit are read, their small files are read in one git call.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from syncline.sources.errors import Problem, SourceError
from syncline.sources.tree import MAX_ENTRIES, SUBMODULE_MODE, Entry, checked

if TYPE_CHECKING:
    from syncline.sources.git.mirrors import Repository

AHEAD_BYTES, AHEAD_FILES = 8 * 1024 * 1024, 4_000
"""Read of a commit in one question where many folders of it are read; a quarter of what is kept of all repositories."""


class GitTree:
    """A folder at a commit. The list of files is read on first use, contents in one git call."""

    def __init__(
        self, repository: Repository, sha: str, path: str, tree_id: str, entries: tuple[Entry, ...] | None = None
    ) -> None:
        if entries is not None:
            self.entries = entries
        self._repository = repository
        self.sha = sha
        self.path = path
        self.id = tree_id

    def is_of(self, repository: Repository) -> bool:
        """Return True if it has the access of ``repository``: large files need the rights of its project."""
        mine, other = self._repository.access, repository.access
        if not any(one is not None and one.lfs for one in (mine, other)):
            return True
        return mine == other and self._repository.viewer == repository.viewer

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        answer = self._repository.read_mirror(["ls-tree", "-r", "-z", "-l", "--full-tree", self.id])
        if answer.code != 0:
            raise SourceError(
                Problem.INVALID, f"{self.path or '.'}: {answer.complaint}", subject=self._repository.shown
            )
        label = f"{self._repository.shown}: {self.path or '.'}"
        if answer.output.count(b"\0") > MAX_ENTRIES:
            raise SourceError(Problem.TOO_LARGE, f"{label}: more than {MAX_ENTRIES} files", subject=label)
        return tuple(checked(sorted(_parse_entry(line) for line in answer.output.split(b"\0") if line), label))

    def read(self, entries: Iterable[Entry]) -> dict[str, bytes]:
        return self._repository.smudged(self.sha, self._stored(list(entries)))

    def _stored(self, wanted: list[Entry]) -> dict[str, bytes]:
        small = self._repository.small
        if small is None:
            return self._asked(wanted)
        known = small.get(entry.blob for entry in wanted)
        if len(known) < len({entry.blob for entry in wanted}) and self._read_ahead(wanted):
            known = small.get(entry.blob for entry in wanted)
        missing = [entry for entry in wanted if entry.blob not in known]
        found = self._asked(missing) if missing else {}
        small.put((entry.blob, found[entry.path]) for entry in missing)
        return {entry.path: found[entry.path] if entry.path in found else known[entry.blob] for entry in wanted}

    def _read_ahead(self, wanted: list[Entry]) -> bool:
        """If many folders of one commit are read, read the small files of the next ones in one call. Return True if
        something was read, also by a concurrent reader."""
        listing = self._repository.listed(self.sha)
        if listing is None:
            return False
        small = self._repository.small
        with self._repository.reading:
            if not small.unknown(entry.blob for entry in wanted if entry.size <= small.each):
                return True
            prefix = f"{self.path}/" if self.path else ""
            first = prefix + min(entry.path for entry in wanted)
            following = list(listing.ahead(first, each=small.each, together=AHEAD_BYTES, files=AHEAD_FILES))
            unknown = small.unknown(entry.blob for entry in following)
            asked = list({entry.blob: entry for entry in following if entry.blob in unknown}.values())
            found = self._asked(asked) if asked else {}
            small.put((entry.blob, found[entry.path]) for entry in asked)
        return bool(asked)

    def _asked(self, wanted: list[Entry]) -> dict[str, bytes]:
        answer = self._repository.read_mirror(
            ["cat-file", "--batch"], "".join(f"{entry.blob}\n" for entry in wanted).encode()
        )
        if answer.code != 0:
            why = answer.complaint or f"git ended with code {answer.code}"
            raise SourceError(Problem.UNREACHABLE, f"mirror of {self._repository.shown}: {why}")
        contents: dict[str, bytes] = {}
        position = 0
        for entry in wanted:
            end = answer.output.find(b"\n", position)
            header = answer.output[position:end].split(b" ")
            if end < 0 or len(header) != 3:
                raise SourceError(Problem.INVALID, f"{entry.path}: the object {entry.blob} is not in the mirror")
            size = int(header[2])
            contents[entry.path] = answer.output[end + 1 : end + 1 + size]
            position = end + 1 + size + 1
        return contents

    def follow(self, entry: Entry) -> Entry | None:
        if not entry.is_symlink:
            return entry
        full = f"{self.path}/{entry.path}" if self.path else entry.path
        kind, blob = self._repository.object_at(self.sha, full)
        if kind == "tree":
            return None
        if kind in ("dangling", "missing", "notdir"):
            return None
        if kind != "blob":
            ends = "leaves the repository" if kind == "symlink" else "does not end at a file"
            raise SourceError(
                Problem.REFUSED,
                f"{full}: the symbolic link {ends}",
                subject=self._repository.shown,
                fix="link to a file of the same repository by a relative path",
            )
        size = self._repository.read_mirror(["cat-file", "-s", blob]).output
        return Entry(entry.path, "100644", blob, int(size))

    def whole(self) -> GitTree:
        return self._repository.whole_tree(self.sha)


def _parse_entry(line: bytes) -> Entry:
    """Parse ``MODE TYPE OBJECT SIZE<tab>PATH``; bytes of a name that are no UTF-8 are escaped."""
    head, _, path = line.partition(b"\t")
    mode, _, blob, size = head.decode().split()
    return Entry(path.decode("utf-8", "backslashreplace"), mode, blob, 0 if mode == SUBMODULE_MODE else int(size))
