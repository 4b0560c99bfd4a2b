"""Renders Butane documents for OpenShift in a folder of manifests to MachineConfigs: :func:`read_documents`.

Called by the directory renderer in ``sources/rendering/renderer.py``. Upstream ignores files named ``*.bu``; here one
with the variant ``openshift`` is rendered to its MachineConfig, all others are still ignored. A MachineConfig of the
same name among the manifests wins, so repositories that commit Butane's output are not changed.

Local files are read below the document's own folder, following links inside the repository. They are recorded first,
for the key of the render cache; a worker then translates, see ``sources/rendering/butane_task.py``.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from syncline.base.report import Position
from syncline.ignition.butane.files import Kind, Node
from syncline.kube.objects import Obj
from syncline.sources.directory import SKIP_MARKER, SourcedObject
from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import join
from syncline.sources.tree import EXECUTABLE_MODE, Entry, Tree, with_modes
from syncline.sources.workers.pool import shared_workers

VARIANT = "openshift"

MAX_DOCUMENT = 500_000
"""Bytes of one document; larger ones are passed over. People write some kilobytes."""
MAX_DOCUMENTS = 1_000
MAX_TOGETHER = 5_000_000
MAX_LOCAL_FILES = 5_000
MAX_LOCAL_BYTES = 8_000_000
"""What all documents of a folder may embed; one MachineConfig holds about 1.5 MB."""
MAX_LINKS = 20


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a folder, by path from the repository's root, and their entries in the folder."""

    tree: Tree
    entries: tuple[Entry, ...]
    texts: Mapping[str, bytes]

    def left_of(self, files: Sequence[Entry]) -> tuple[Entry, ...]:
        """Return the files that are read as manifests."""
        taken = {entry.path for entry in self.entries}
        return tuple(entry for entry in files if entry.path not in taken)

    def among(self, files: Sequence[Entry]) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """Return the manifests among ``files``, and the read set of the folder; a ``//`` prefix keeps embedded files
        apart from its own files and from imports of Jsonnet. Raises :class:`SourceError`."""
        left = self.left_of(files)
        embedded = (replace(entry, path=f"//{entry.path}") for entry in self.reads())
        return left, (*left, *self.entries, *embedded)

    def reads(self) -> tuple[Entry, ...]:
        """Return every embedded local file and link, by path from the root. Raises :class:`SourceError`."""
        if not self.texts:
            return ()
        from syncline.ignition.butane.transpile import Options, transpile

        recorder = _Recorder(self.tree)
        for name, text in self.texts.items():
            transpile(text, Options(files=recorder.at(posixpath.dirname(name)), compress=False))
        return with_modes(recorder.read[path] for path in sorted(recorder.read))

    def render(self, manifests: Sequence[SourcedObject]) -> tuple[list[SourcedObject], list[str]]:
        """Return the objects and warnings. Raises :class:`SourceError` for the first invalid document.

        ``manifests`` are the folder's other objects: a MachineConfig among them replaces a document of that name, and
        errors of that document are only warnings.
        """
        if not self.texts:
            return [], []
        from syncline.ignition.butane.transpile import Options, transpile

        recorder = _Recorder(self.tree)
        answers = []
        for name, text in self.texts.items():
            files = recorder.at(posixpath.dirname(name))
            transpile(text, Options(files=files, compress=False))
            answers.append({"name": name, "text": text, "directory": files.directory, "answers": files.answers})
        payload = {"documents": answers, "contents": recorder.contents()}
        found = shared_workers().run("butane", payload, label=self.tree.path or ".")
        return _gathered(found, manifests)


def read_documents(tree: Tree, entries: Sequence[Entry]) -> Documents:
    """Return the documents for OpenShift among ``entries``; too many raise :class:`SourceError`."""
    files = [entry for entry in entries if entry.is_file and entry.size <= MAX_DOCUMENT]
    if len(files) > MAX_DOCUMENTS:
        message = f"{tree.path or '.'}: {len(files)} Butane documents, at most {MAX_DOCUMENTS} are read"
        raise SourceError(Problem.TOO_LARGE, message, fix="split the Application")
    contents = tree.read(files) if files else {}
    named = [entry for entry in files if VARIANT.encode() in contents[entry.path]]
    if sum(entry.size for entry in named) > MAX_TOGETHER:
        message = f"{tree.path or '.'}: Butane documents of more than {MAX_TOGETHER} bytes together"
        raise SourceError(Problem.TOO_LARGE, message, fix="split the Application")
    chosen = [entry for entry in named if _is_for_openshift(contents[entry.path])]
    prefix = f"{tree.path}/" if tree.path else ""
    return Documents(tree, tuple(chosen), {prefix + entry.path: contents[entry.path] for entry in chosen})


def _is_for_openshift(text: bytes) -> bool:
    if SKIP_MARKER in text:
        return False
    from syncline.ignition.butane.reading import DecodeError
    from syncline.ignition.butane.transpile import header_of

    try:
        return header_of(text)[0] == VARIANT
    except DecodeError:
        return False


# -- what a translation asks of the repository -----------------------------------------------------------------------


class _Recorder:
    """The repository as documents may read it; records every requested file and link."""

    def __init__(self, tree: Tree) -> None:
        self._whole = tree.whole()
        self.read: dict[str, Entry] = {}
        self._texts: dict[str, str] = {}
        self._bytes = 0

    def at(self, folder: str) -> _Folder:
        return _Folder(self, folder)

    @cached_property
    def entries(self) -> dict[str, Entry]:
        return {entry.path: entry for entry in self._whole.entries}

    @cached_property
    def _folders(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {"": set()}
        for path in self.entries:
            while path:
                folder, _, name = path.rpartition("/")
                known = folder in found
                found.setdefault(folder, set()).add(name)
                if known:
                    break
                path = folder
        return found

    def is_folder(self, path: str) -> bool:
        return path in self._folders

    def names(self, path: str) -> list[str]:
        return sorted(self._folders[path])

    def take(self, entry: Entry) -> Entry:
        """Record that ``entry`` is read; raises :class:`SourceError` at a limit."""
        if entry.path not in self.read:
            self.read[entry.path] = entry
            self._bytes += entry.size
            if len(self.read) > MAX_LOCAL_FILES or self._bytes > MAX_LOCAL_BYTES:
                message = f"Butane documents embed more than {MAX_LOCAL_FILES} files or {MAX_LOCAL_BYTES} bytes"
                raise SourceError(Problem.TOO_LARGE, message, fix="split the Application")
        return entry

    def link_text(self, entry: Entry) -> str:
        if entry.path not in self._texts:
            content = self._whole.read([self.take(entry)])[entry.path]
            self._texts[entry.path] = content.decode("utf-8", "surrogateescape")
        return self._texts[entry.path]

    def resolve(self, path: str, *, last: bool) -> str:
        """Return ``path`` without links; the last part is followed only with ``last``. Raises OSError, and
        :class:`SourceError` for links that leave the repository."""
        done, left, links = "", path.split("/") if path else [], 0
        while left:
            step = f"{done}/{left[0]}" if done else left[0]
            rest = left[1:]
            entry = self.entries.get(step)
            if entry is None or not entry.is_symlink or (not rest and not last):
                done, left = step, rest
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            text = self.link_text(entry)
            target = None if text.startswith("/") else join(done, text)
            if target is None:
                raise SourceError(
                    Problem.REFUSED,
                    f"{step}: the symbolic link leaves the repository",
                    subject=step,
                    fix="link to a file of the same repository by a relative path",
                )
            done, left = "", [*(target.split("/") if target else []), *rest]
        return done

    def contents(self) -> dict[str, bytes]:
        return self._whole.read([entry for entry in self.read.values() if entry.is_file])


class _Folder:
    """The files below one document's folder. It returns names but no contents; every response is recorded, so that the
    worker can repeat it."""

    def __init__(self, repository: _Recorder, folder: str) -> None:
        self._repository = repository
        self._folder = folder
        self.answers: dict[str, Any] = {}

    @property
    def directory(self) -> str:
        return self._folder or "."

    def absolute(self, path: str) -> str:
        return posixpath.normpath(f"/repository/{path}")

    def read(self, path: str) -> bytes:
        def answer() -> Any:
            real = self._real(path, last=True)
            if self._repository.is_folder(real):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            return self._repository.take(self._entry(real)).path

        self._answered("read", path, answer)
        return b""

    def stat(self, path: str) -> Node:
        return _node(self._answered("stat", path, lambda: self._kind(self._real(path, last=True))))

    def lstat(self, path: str) -> Node:
        return _node(self._answered("lstat", path, lambda: self._kind(self._real(path, last=False))))

    def names(self, path: str) -> list[str]:
        found: list[str] = self._answered("names", path, lambda: self._repository.names(self._real(path, last=True)))
        return found

    def target(self, path: str) -> str:
        real = self._real(path, last=False)
        found: str = self._answered("target", path, lambda: self._repository.link_text(self._entry(real)))
        return found

    def _answered(self, question: str, path: str, answer: Any) -> Any:
        key = f"{question} {path}"
        try:
            self.answers[key] = answer()
        except OSError as error:
            self.answers[key] = {"errno": error.errno}
            raise
        return self.answers[key]

    def _real(self, path: str, *, last: bool) -> str:
        return self._repository.resolve("" if path == "." else path, last=last)

    def _entry(self, real: str) -> Entry:
        entry = self._repository.entries.get(real)
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return entry

    def _kind(self, real: str) -> list[Any]:
        if self._repository.is_folder(real):
            return [Kind.DIRECTORY.value, False]
        entry = self._entry(real)
        if entry.is_symlink:
            return [Kind.LINK.value, False]
        return [Kind.FILE.value if entry.is_file else Kind.OTHER.value, entry.mode == EXECUTABLE_MODE]


def _node(answer: list[Any]) -> Node:
    return Node(Kind(answer[0]), bool(answer[1]))


# -- what a worker answered ------------------------------------------------------------------------------------------


def _gathered(
    found: Sequence[dict[str, Any]], manifests: Sequence[SourcedObject]
) -> tuple[list[SourcedObject], list[str]]:
    written = {_identity(sourced.obj): sourced for sourced in manifests}
    beside = {os.path.splitext(sourced.position.file)[0] for sourced in manifests}
    objects: list[SourcedObject] = []
    warnings: list[str] = []
    for answer in found:
        name, obj = answer["name"], answer["value"]
        if obj is None:
            wrong = _wrong(answer)
            if os.path.splitext(name)[0] not in beside:
                raise wrong
            warnings.append(f"{wrong}; the manifest beside it counts")
            continue
        warnings += [_warning(name, entry) for entry in answer["entries"]]
        known = written.get(_identity(obj))
        if known is None:
            objects.append(SourcedObject(obj, Position(name, 1, 1)))
        elif known.obj != obj:
            warnings.append(
                f"{name} gives another MachineConfig {obj['metadata']['name']} than {known.position.file} holds; "
                f"{known.position.file} counts: translate again, or remove one of them"
            )
    return objects, warnings


def _identity(obj: Obj) -> tuple[Any, Any]:
    metadata = obj.get("metadata")
    return obj.get("kind"), metadata.get("name") if isinstance(metadata, dict) else None


def _warning(name: str, entry: Sequence[Any]) -> str:
    severity, path, line, column, message = entry
    place = f"{name}:{line}:{column}" if line is not None else name
    return f"{place}: {severity} at {path}: {message}"


def _wrong(answer: dict[str, Any]) -> SourceError:
    """Return the first error of a document as one sentence."""
    name = answer["name"]
    errors = [entry for entry in answer["entries"] if entry[0] == "error"]
    folder = posixpath.dirname(name) or "."
    fix = f"see all with: syncline butane --check --files-dir {folder} {name}"
    if not errors:
        line = answer["line"] or 1
        message = f'Failed to translate "{name}": {answer["error"]}'
        return SourceError(Problem.INVALID, message, subject=name, fix=fix, position=Position(name, line))
    _, path, line, column, message = errors[0]
    at = Position(name, line or 1, column or 1)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    text = f'Failed to translate "{name}": {at}: {path}: {message}{more}'
    return SourceError(Problem.INVALID, text, subject=name, fix=fix, position=at)
