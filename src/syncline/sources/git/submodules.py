"""Submodules: builds one tree from several mirrors without a checkout: :class:`GraftedTree`.

``sources/git/mirrors.py`` creates it for commits with ``.gitmodules``. A submodule is fetched when files below it are
first read. Addresses in ``.gitmodules`` are untrusted: they pass the same checks as those of Applications, and only
repositories of this machine may name paths on this machine.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from syncline.sources.errors import Problem, SourceError, mask_credentials
from syncline.sources.tree import SUBMODULE_MODE, Entry, Tree, clean_path

MAX_NESTED = 8
"""Submodules in submodules."""
MAX_SUBMODULES = 200
"""In one repository with all that it mounts."""
MAX_LINKS = 40

_MODULE = re.compile(r"submodule\.(?P<name>.+)\.(?P<key>path|url|update)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")


def parse_modules(listing: bytes) -> dict[str, str]:
    """Parse ``git config --null --list`` into addresses by path, without those that are not to be updated."""
    found: dict[str, dict[str, str]] = {}
    for line in listing.decode("utf-8", "replace").split("\0"):
        key, _, value = line.partition("\n")
        match = _MODULE.fullmatch(key)
        if match is not None:
            found.setdefault(match["name"], {})[match["key"]] = value
    return {
        "/".join(part for part in one["path"].split("/") if part not in ("", ".")): one.get("url", "")
        for one in found.values()
        if one.get("path") and one.get("update") != "none"
    }


def submodule_url(parent: str, given: str) -> str:
    """Return the address that ``given`` means in the repository at ``parent``; it may begin with ``./`` or ``../``."""
    if not given.startswith(("./", "../")):
        return given
    base = parent.rstrip("/")
    rest = given
    while rest.startswith(("./", "../")):
        if rest.startswith("./"):
            rest = rest[2:]
            continue
        rest = rest[3:]
        scheme = _SCHEME.match(base)
        start = scheme.end() if scheme is not None else 0
        cut = max(base.rfind("/", start), base.rfind(":", start) if scheme is None else -1)
        if cut < start or (scheme is not None and cut == start and not rest):
            raise SourceError(Problem.REFUSED, f"submodule {given!r} leaves the host of {mask_credentials(parent)}")
        base = base[:cut] if base[cut] == "/" else base[: cut + 1]
    return base + rest if base.endswith(":") else f"{base}/{rest}"


@dataclass(slots=True)
class Graft:
    """One repository at a commit with its submodules, shared by the trees of all its folders.

    ``open_module`` opens the repository at an address and a commit; ``left`` counts how many more may be opened.
    """

    base: Tree
    urls: Mapping[str, str]
    open_module: Callable[[str, str], Tree]
    label: str
    left: list[int] = field(default_factory=lambda: [MAX_SUBMODULES])
    _mounted: dict[str, Tree] = field(default_factory=dict)
    _owners: dict[str, Tree] = field(default_factory=dict)

    def mounts(self) -> dict[str, Entry]:
        return {entry.path: entry for entry in self.base.entries if entry.mode == SUBMODULE_MODE}

    def module(self, entry: Entry) -> Tree | None:
        """Return the tree mounted at ``entry``; None if it is not to be fetched."""
        if entry.path in self._mounted:
            return self._mounted[entry.path]
        if entry.path not in self.urls:
            return None
        if not self.urls[entry.path]:
            message = f"{self.label}: No url found for submodule path '{entry.path}' in .gitmodules"
            raise SourceError(Problem.INVALID, message, subject=self.label)
        if self.left[0] <= 0:
            message = f"{self.label}: more than {MAX_SUBMODULES} submodules"
            raise SourceError(Problem.TOO_LARGE, message, subject=self.label)
        self.left[0] -= 1
        try:
            found = self.open_module(self.urls[entry.path], entry.blob)
        except SourceError as error:
            message = f"{self.label}: submodule {entry.path}: {error.message}"
            raise SourceError(error.problem, message, subject=self.label, fix=error.fix) from None
        self._mounted[entry.path] = found
        return found

    def listed(self, below: str) -> list[Entry]:
        """Return every file below a folder, with its path from the root."""
        prefix = f"{below}/" if below else ""
        found: list[Entry] = []
        for entry in self.base.entries:
            inside = entry.path.startswith(prefix)
            around = entry.mode == SUBMODULE_MODE and f"{below}/".startswith(f"{entry.path}/")
            if not inside and not around:
                continue
            module = self.module(entry) if entry.mode == SUBMODULE_MODE else None
            if module is None:
                self._owners.setdefault(entry.blob, self.base)
                found.append(entry)
                continue
            for inner in module.entries:
                self._owners.setdefault(inner.blob, module)
                full = replace(inner, path=f"{entry.path}/{inner.path}")
                if full.path.startswith(prefix):
                    found.append(full)
        return sorted(found)

    def read(self, entries: Iterable[Entry]) -> dict[str, bytes]:
        by_owner: dict[int, tuple[Tree, list[Entry]]] = {}
        for entry in entries:
            owner = self._owners.get(entry.blob, self.base)
            by_owner.setdefault(id(owner), (owner, []))[1].append(entry)
        contents: dict[str, bytes] = {}
        for owner, wanted in by_owner.values():
            contents |= owner.read(wanted)
        return contents


class GraftedTree:
    """A folder of a repository with its submodules."""

    def __init__(self, graft: Graft, path: str = "", sha: str = "") -> None:
        self._graft = graft
        self._path = path
        self.sha = sha
        self._entries: tuple[Entry, ...] | None = None
        self._whole: GraftedTree | None = None if path else self

    @property
    def id(self) -> str:
        return f"{self._graft.base.id}:{self._path}"

    @property
    def path(self) -> str:
        return self._path

    @property
    def entries(self) -> tuple[Entry, ...]:
        if self._entries is None:
            cut = len(self._path) + 1 if self._path else 0
            found = self._graft.listed(self._path)
            self._entries = tuple(replace(entry, path=entry.path[cut:]) for entry in found)
        return self._entries

    def read(self, entries: Iterable[Entry]) -> dict[str, bytes]:
        return self._graft.read(entries)

    def whole(self) -> GraftedTree:
        if self._whole is None:
            self._whole = GraftedTree(self._graft, "", self.sha)
        return self._whole

    def folder(self, path: str) -> GraftedTree | None:
        """The folder ``path``, None if nothing lies below it."""
        folder = clean_path(path)
        found = GraftedTree(self._graft, folder, self.sha) if folder else self
        found._whole = self.whole()
        return found if found.entries or not folder else None

    def follow(self, entry: Entry) -> Entry | None:
        if not entry.is_symlink:
            return entry
        full = f"{self._path}/{entry.path}" if self._path else entry.path
        everything = {one.path: one for one in self.whole().entries}
        folders = {posixpath.dirname(path) for path in everything}
        folders |= {parent for folder in folders for parent in _parents(folder)}
        done: list[str] = []
        todo = full.split("/")[::-1]
        links = 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not done:
                    raise self._leaves(full, "leaves the repository")
                done.pop()
                continue
            here = "/".join([*done, part])
            found = everything.get(here)
            if found is not None and found.is_symlink:
                links += 1
                target = self._graft.read([found])[here].decode("utf-8", "replace")
                if target.startswith("/") or links > MAX_LINKS:
                    raise self._leaves(full, "leaves the repository" if links <= MAX_LINKS else "goes in circles")
                todo += target.split("/")[::-1]
            elif found is None and here not in folders:
                return None
            else:
                done.append(part)
        target_entry = everything.get("/".join(done))
        return replace(target_entry, path=entry.path) if target_entry is not None else None

    def _leaves(self, full: str, what: str) -> SourceError:
        return SourceError(
            Problem.REFUSED,
            f"{full}: the symbolic link {what}",
            subject=self._graft.label,
            fix="link to a file of the same repository by a relative path",
        )


def _parents(folder: str) -> Iterable[str]:
    while folder:
        folder = posixpath.dirname(folder)
        yield folder
