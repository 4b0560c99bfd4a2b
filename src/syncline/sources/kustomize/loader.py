"""The files of a build, from a tree at a commit or from the command line: :class:`Source` and :class:`Folder`.

Used by every step that names a file. It implements kustomize's load restrictor (a file must be in or below the folder
of its kustomization, folders may be anywhere in the repository), follows symbolic links inside the tree, refuses links
that leave it and everything remote, and records the paths that were read or looked up, for caches.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from syncline.sources.errors import Problem, SourceError
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.tree import SUBMODULE_MODE, Entry, Tree
from syncline.sources.workers.deadline import sheltered

if TYPE_CHECKING:
    from syncline.sources.kustomize.resources.resource import Resource


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one build, so that a wrong or hostile repository causes an error and no harm."""

    files: int = 10_000
    bytes: int = 50_000_000
    """All files together."""
    cpu_s: float = 20.0
    """Processor time of the thread that builds; charts have their own in the render workers."""
    resources: int = 20_000
    depth: int = 64
    """Kustomizations inside kustomizations."""
    kustomizations: int = 2_000
    """All that are built in one go; a diamond of bases is built once per way to it."""
    remotes: int = 30
    """Files and repositories that a build fetches."""
    links: int = 40
    """Symbolic links on the way to one file (Linux)."""


DEFAULT_LIMITS = Limits()

_REMOTE_FILE = re.compile(r"https?://", re.IGNORECASE)
_REMOTE = re.compile(
    r"(?i)^(?:git::|[a-z][a-z0-9+.-]*://|git@|[^/\s]+@[^/\s]+:|github\.com[/:]|gitlab\.com/)|\.git(?:/|\?|$)|_git/"
)


class Files(Protocol):
    """The storage that a build reads: a tree at a commit (:class:`TreeFiles`) or, for the command line, the disk."""

    absolute_links: bool
    """Whether a symbolic link may hold an absolute path."""

    def entry(self, path: str) -> Entry | None:
        """Return the file or symbolic link at ``path``, links not followed; None for folders and missing paths."""
        ...

    def is_folder(self, path: str) -> bool: ...

    def listing(self, path: str) -> list[tuple[str, bool]]:
        """Return the files and links below a folder: sorted relative paths, each with True for a link."""
        ...

    def read(self, entry: Entry) -> bytes:
        """Return the content of a file, or the target of a link; raises :class:`SourceError`."""
        ...


class RemoteFiles(Protocol):
    """Fetches what kustomizations reference outside of their repository; all methods raise :class:`SourceError`."""

    @property
    def viewer(self) -> str:
        """The owner of the access: results for one are not cached for another."""
        ...

    def text(self, url: str) -> bytes:
        """Return a file at an address."""
        ...

    def base(self, url: str, ref: str) -> tuple[Tree, str]:
        """Return a whole repository at a reference, and its commit."""
        ...

    def dependency(self, repository: str, chart: str, wanted: str, pin: str) -> tuple[str, str]:
        """Return version and digest of a packed chart; equal pins get an equal result."""
        ...

    def archive(self, digest: str) -> bytes:
        """Return the packed chart of a digest."""
        ...


class TreeFiles:
    """The files of a whole repository at a commit; small files of one folder are read in one call."""

    absolute_links = False

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._entries = {entry.path: entry for entry in tree.entries}
        self._folders = {""}
        self._beside: dict[str, list[Entry]] = {}
        self._contents: dict[str, bytes] = {}
        for path, entry in self._entries.items():
            self._beside.setdefault(posixpath.dirname(path), []).append(entry)
            while path := posixpath.dirname(path):
                if path in self._folders:
                    break
                self._folders.add(path)

    def entry(self, path: str) -> Entry | None:
        return self._entries.get(path)

    def is_folder(self, path: str) -> bool:
        return path in self._folders

    def listing(self, path: str) -> list[tuple[str, bool]]:
        prefix = f"{path}/" if path else ""
        found = [entry for name, entry in self._entries.items() if name.startswith(prefix)]
        return sorted((one.path[len(prefix) :], one.is_symlink) for one in found if one.is_file or one.is_symlink)

    def read(self, entry: Entry) -> bytes:
        content = self._contents.pop(entry.path, None)
        if content is not None:
            return content
        beside = self._beside[posixpath.dirname(entry.path)] if entry.size <= _AHEAD_BYTES else []
        wanted = {entry.path: entry}
        for other in beside:
            if len(wanted) < _AHEAD_FILES and other.size <= _AHEAD_BYTES and other.mode != SUBMODULE_MODE:
                wanted[other.path] = other
        contents = self._tree.read(wanted.values())
        content = contents.pop(entry.path)
        self._contents = contents
        return content


_AHEAD_BYTES, _AHEAD_FILES = 64 * 1024, 64
"""What is read along with a file of the same folder: one question to git instead of many."""


class ChartInflation(Protocol):
    """Renders charts to resources."""

    def generator(self, settings: dict[str, Any], folder: Folder) -> Callable[[], list[Resource]]:
        """Check an entry of ``helmCharts`` now; the returned function renders it. Raises :class:`BuildError`."""
        ...


@dataclass(slots=True)
class Source:
    """All files of one build. ``label`` prefixes paths in messages; ``restricted`` is the load restrictor.

    ``touched`` records every path that was read or looked up, with its blob; empty for missing ones.
    """

    files: Files
    label: str = ""
    restricted: bool = True
    limits: Limits = DEFAULT_LIMITS
    touched: dict[str, str] = field(default_factory=dict)
    remote: RemoteFiles | None = None
    """None: nothing remote is fetched."""
    charts: ChartInflation | None = None
    """None: charts are refused."""
    fetched: list[int] = field(default_factory=lambda: [0])
    """How many remote places this build and those inside it have asked for."""
    built: int = 0
    _contents: dict[str, bytes] = field(default_factory=dict)
    _size: int = 0

    def shown(self, path: str) -> str:
        """Return a path as shown in messages."""
        return f"{self.label.rstrip('/')}/{path}".rstrip("/") or "/" if self.label else path or "."

    def find(self, path: str) -> tuple[str, bool] | None:
        """Return the real path, links followed, and whether it is a folder; None if it does not exist."""
        done: list[str] = []
        todo = path.split("/")[::-1]
        links = 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not done and not self.files.absolute_links:
                    return None
                done = done[:-1]
                continue
            here = "/".join([*done, part])
            entry = self.files.entry(here)
            if entry is not None and entry.is_symlink:
                links += 1
                target = self._link(entry, links)
                done = [] if target.startswith("/") else done
                todo += target.split("/")[::-1]
            elif entry is None and not self.files.is_folder(here):
                self.touched.setdefault(here, "")
                return None
            else:
                done.append(part)
        real = "/".join(done)
        return real, self.files.is_folder(real)

    def _link(self, entry: Entry, links: int) -> str:
        target = self._content(entry).decode("utf-8", "replace")
        if links > self.limits.links or (target.startswith("/") and not self.files.absolute_links):
            raise BuildError(
                f"the symbolic link {self.shown(entry.path)} leaves the repository or goes in circles",
                problem=Problem.REFUSED,
            )
        return target

    def fetch(self, url: str) -> bytes:
        """Return the content of a file at an address; an HTML page is an error."""
        remote = self._allowed(url)
        try:
            with sheltered():
                content = remote.text(url)
        except SourceError as error:  # it may be a repository: then the caller enters it
            raise BuildError(error.message, problem=error.problem, fix=error.fix) from None
        if content.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
            raise BuildError(f"URL is a git repository or a page: '{url}'")
        self._size += len(content)
        if self._size > self.limits.bytes:
            raise BuildError(f"the build reads more than {self.limits.bytes} bytes", problem=Problem.TOO_LARGE)
        self.touched[url] = hashlib.sha256(content).hexdigest()
        return content

    def fetch_base(self, name: str) -> tuple[Source, str]:
        """Return the repository that ``name`` means, and the path in it."""
        remote = self._allowed(name)
        url, ref, path = remote_base(name)
        try:
            with sheltered():
                tree, sha = remote.base(url, ref)
                files = TreeFiles(tree)
        except SourceError as error:
            raise BuildError(error.message, problem=error.problem, fix=error.fix) from None
        self.touched[f"{url}?ref={ref}"] = sha
        label = f"{url}@{sha[:7]}"
        inner = Source(files, label, self.restricted, self.limits, remote=remote, charts=self.charts)
        inner.fetched = self.fetched
        return inner, path

    def fetch_chart(self, repository: str, chart: str, wanted: str, pin: str) -> bytes:
        """Return the packed chart of a repository; ``wanted`` is a version or a range."""
        remote = self._allowed(repository)
        try:
            with sheltered():
                version, digest = remote.dependency(repository, chart, wanted, pin)
                content = remote.archive(digest)
        except SourceError as error:
            raise BuildError(error.message, problem=error.problem, fix=error.fix) from None
        self.touched[f"{repository}#{chart}-{version}"] = digest
        return content

    def listing(self, folder: str) -> list[tuple[str, bool]]:
        """Like :meth:`Files.listing`; records what was listed."""
        found = self.files.listing(folder)
        self.touched[f"{folder}/"] = listed(found)
        return found

    def _allowed(self, name: str) -> RemoteFiles:
        if self.remote is None:
            raise _remote(name)
        self.fetched[0] += 1
        if self.fetched[0] > self.limits.remotes:
            message = f"the build fetches more than {self.limits.remotes} remote places"
            raise BuildError(message, problem=Problem.TOO_LARGE)
        return self.remote

    def read(self, real: str) -> bytes:
        """Return the content of the file at a real path."""
        entry = self.files.entry(real)
        if entry is None or not entry.is_file:
            raise BuildError(f"'{self.shown(real)}' is not a file")
        return self._content(entry)

    def _content(self, entry: Entry) -> bytes:
        content = self._contents.get(entry.path)
        if content is not None:
            return content
        self._size += entry.size
        if self._size > self.limits.bytes or len(self._contents) >= self.limits.files:
            raise BuildError(
                f"the build reads more than {self.limits.files} files or {self.limits.bytes} bytes",
                problem=Problem.TOO_LARGE,
                fix="split the kustomization",
            )
        with sheltered():
            content = self.files.read(entry)
        self._contents[entry.path] = content
        self.touched[entry.path] = entry.blob
        return content


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one kustomization; ``outer`` is the one that referenced it."""

    source: Source
    path: str
    outer: Folder | None = None

    @property
    def shown(self) -> str:
        return self.source.shown(self.path)

    @property
    def depth(self) -> int:
        return 0 if self.outer is None else self.outer.depth + 1

    def load(self, name: str) -> bytes:
        """Return the content of a file by its relative path; raises :class:`BuildError`."""
        if _REMOTE_FILE.match(name):
            return self.source.fetch(name)
        joined, found = self._find(name)
        if found is None:
            raise BuildError(f"evalsymlink failure on '{self.source.shown(joined)}' : no such file or directory")
        real, is_folder = found
        if is_folder:
            raise BuildError(f"'{self.source.shown(joined)}' must resolve to a file")
        if self.source.restricted and self.path and not real.startswith(f"{self.path}/"):
            raise BuildError(
                f"security; file '{self.source.shown(real)}' is not in or below '{self.shown}'",
                problem=Problem.REFUSED,
            )
        return self.source.read(real)

    def text(self, name: str) -> str:
        return decoded(self.load(name))

    def enter(self, name: str) -> Folder:
        """Return the folder of another kustomization; raises :class:`BuildError` for files, cycles and remote URLs."""
        if not name:
            raise BuildError("new root cannot be empty")
        if name.startswith("/"):
            raise BuildError(f"new root '{name}' cannot be absolute")
        joined, found = self._find(name)
        if found is None and _REMOTE.search(name):
            return self._enter_remote(name)
        shown = self.source.shown(joined)
        if found is None:
            raise BuildError(
                f"must build at directory: not a valid directory: evalsymlink failure on '{shown}' : "
                "no such file or directory"
            )
        real, is_folder = found
        if not is_folder:
            raise BuildError(f"must build at directory: '{shown}': file is not directory")
        here: Folder | None = self
        while here is not None:
            if here.source is not self.source:
                break
            if here.path == real or not real or here.path.startswith(f"{real}/"):
                raise BuildError(
                    f"cycle detected: candidate root '{self.source.shown(real)}' contains visited root '{here.shown}'"
                )
            here = here.outer
        if self.depth >= self.source.limits.depth:
            raise BuildError(
                f"kustomizations are nested deeper than {self.source.limits.depth} levels", problem=Problem.TOO_LARGE
            )
        return Folder(self.source, real, self)

    def _enter_remote(self, name: str) -> Folder:
        if self.depth >= self.source.limits.depth:
            message = f"kustomizations are nested deeper than {self.source.limits.depth} levels"
            raise BuildError(message, problem=Problem.TOO_LARGE)
        source, path = self.source.fetch_base(name)
        found = source.find(path)
        if found is None or not found[1]:
            raise BuildError(f"'{path}' is no folder of the repository '{name}'")
        return Folder(source, found[0], self)

    def find(self, name: str) -> tuple[str, bool] | None:
        """Return the real path of a relative one, and whether it is a folder; None if it does not exist."""
        return self._find(name)[1]

    def _find(self, name: str) -> tuple[str, tuple[str, bool] | None]:
        if name.startswith("/"):
            return name, self.source.find(name) if self.source.files.absolute_links else None
        # Paths are cleaned before links are followed, so a/../b needs no a (Go filepath.Join).
        joined = posixpath.normpath(f"{self.path}/{name}" if self.path else name)
        return joined, self.source.find(joined)


def listed(found: list[tuple[str, bool]]) -> str:
    """Return a hash of the names of a listing."""
    return hashlib.sha256("\0".join(name for name, _ in found).encode("utf-8", "surrogateescape")).hexdigest()


def decoded(content: bytes) -> str:
    """Return the text of a file; invalid UTF-8 becomes an error of the YAML parser."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return content.decode("utf-16", "replace")
        raise BuildError("MalformedYAMLError: yaml: invalid leading UTF-8 octet") from None


_QUERY = re.compile(r"[?&](ref|version)=([^&]*)")
_SCP = re.compile(r"[^/\s]+@[^/:\s]+:")


def remote_base(name: str) -> tuple[str, str, str]:
    """Parse ``github.com/org/repo//path?ref=v1`` into address, reference and path (kustomize ``git/repospec``)."""
    text, _, query = name.removeprefix("git::").partition("?")
    ref = next((value for _, value in _QUERY.findall(f"?{query}")), "") or "HEAD"
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = ("", text) if _SCP.match(text) else ("https", text)
    repository, path = _split_base(rest)
    address = f"{scheme}://{repository}" if scheme else repository
    if "github.com" in address.split("/")[2 if scheme else 0] and not address.endswith(".git"):
        address += ".git"
    return address, ref, path


def _split_base(rest: str) -> tuple[str, str]:
    """Split at ``//``, after ``.git``, after ``_git/NAME``, or after host, owner and name."""
    if "//" in rest:
        repository, _, path = rest.partition("//")
        return repository, path
    if ".git/" in rest:
        repository, _, path = rest.partition(".git/")
        return f"{repository}.git", path
    parts = rest.split("/")
    taken = parts.index("_git") + 2 if "_git" in parts else (2 if _SCP.match(rest) else 3)
    return "/".join(parts[:taken]), "/".join(parts[taken:])


def is_remote(path: str) -> bool:
    """Return True if the recorded path is outside of the repository."""
    return _REMOTE.search(path) is not None and ("://" in path or _SCP.match(path) is not None)


def _remote(name: str) -> BuildError:
    return BuildError(
        f"'{name}' is a remote place, which is not fetched",
        problem=Problem.UNSUPPORTED,
        fix="copy it into the repository, or make it a source of its own",
    )
