"""The protocol for local files that a document embeds, :class:`Files`, and upstream's rules for them.

The room reads no files itself. The caller passes :class:`Files`: a directory of the machine (the command) or a tree of
a Git repository (the renderer), each with its own limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from syncline.ignition.butane import messages as m
from syncline.ignition.golang import clean, joined


class Kind(Enum):
    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


class Node(NamedTuple):
    """A file, directory or link; ``executable`` if anyone may execute it."""

    kind: Kind
    executable: bool = False


class Files(Protocol):
    """A directory to read from. Paths are ``directory`` joined with the document's path, cleaned.

    Every method raises OSError with ``strerror`` in upstream's words (``no such file or directory``).
    """

    @property
    def directory(self) -> str:
        """The directory as the user gave it; never empty."""
        ...

    def absolute(self, path: str) -> str:
        """Return the absolute, cleaned ``path``; links are not followed."""
        ...

    def read(self, path: str) -> bytes: ...

    def stat(self, path: str) -> Node:
        """Return the node at ``path``, links followed."""
        ...

    def lstat(self, path: str) -> Node: ...

    def names(self, path: str) -> Sequence[str]:
        """Return the names in a directory."""
        ...

    def target(self, path: str) -> str:
        """Return the target of a link."""
        ...


class LocalError(ValueError):
    """A local file cannot be embedded; the text is upstream's."""


def _located(local: str, files: Files | None) -> tuple[Files, str]:
    if files is None:
        raise LocalError(m.NO_FILES_DIR)
    path = joined(files.directory, local)
    base, wanted = files.absolute(files.directory), files.absolute(path)
    if wanted != base and not wanted.startswith(base + "/"):
        raise LocalError(m.FILES_DIR_ESCAPE)
    return files, path


def _said(action: str, path: str, error: OSError) -> LocalError:
    return LocalError(f"{action} {path}: {(error.strerror or str(error)).lower()}")


def read_local(local: str, files: Files | None) -> bytes:
    """Return the content of a local file; raises :class:`LocalError`."""
    files, path = _located(local, files)
    try:
        return files.read(path)
    except IsADirectoryError as error:
        raise _said("read", path, error) from None
    except OSError as error:
        raise _said("open", path, error) from None


class Walked(NamedTuple):
    """One step of a walk: ``relative`` to the root of the tree, ``.`` for the root; ``problem`` in place of a node."""

    relative: str
    path: str
    node: Node
    problem: str = ""


def tree_nodes(local: str, files: Files | None) -> list[Walked]:
    """Return everything below a directory, parents first, names in byte order; raises :class:`LocalError` for its
    root."""
    files, root = _located(local, files)
    try:
        top = files.stat(root)
    except OSError as error:
        raise _said("stat", root, error) from None
    if top.kind is not Kind.DIRECTORY:
        raise LocalError(m.TREE_NOT_DIRECTORY)
    out: list[Walked] = []
    pending = [(".", root)]
    while pending:
        relative, path = pending.pop()
        try:
            node = files.lstat(path)
        except OSError as error:
            out.append(Walked(relative, path, Node(Kind.OTHER), str(_said("lstat", path, error))))
            continue
        if node.kind is not Kind.DIRECTORY:
            out.append(Walked(relative, path, node))
            continue
        try:
            names = sorted(files.names(path), key=lambda name: name.encode("utf-8", "surrogateescape"))
        except OSError as error:
            out.append(Walked(relative, path, node))
            out.append(Walked(relative, path, node, str(_said("open", path, error))))
            continue
        out.append(Walked(relative, path, node))
        pending.extend((clean(f"{relative}/{name}"), joined(path, name)) for name in reversed(names))
    return out


def read_node(walked: Walked, files: Files) -> bytes:
    """Return the content of a file of a tree; raises :class:`LocalError`."""
    try:
        return files.read(walked.path)
    except OSError as error:
        raise _said("open", walked.path, error) from None


def read_link(walked: Walked, files: Files) -> str:
    """Return the target of a link of a tree; raises :class:`LocalError`."""
    try:
        return files.target(walked.path)
    except OSError as error:
        raise _said("readlink", walked.path, error) from None
