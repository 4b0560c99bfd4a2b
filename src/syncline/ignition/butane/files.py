"""Local files that a document embeds: the protocol by which they are read, and upstream's rules around it.

The room reads nothing by itself. The caller passes :class:`Files`: a directory of the machine (the
command) or a tree of a Git repository (the renderer), each with limits of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from syncline.ignition.butane import messages as m
from syncline.ignition.golang import clean, joined

__all__ = ["Files", "Kind", "LocalError", "Node", "read_local", "tree_nodes"]


class Kind(Enum):
    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


class Node(NamedTuple):
    """What stands at a path; ``executable`` if anybody may execute it."""

    kind: Kind
    executable: bool = False


class Files(Protocol):
    """A place to read from. Paths are ``directory`` with the document's path joined to it, cleaned.

    Every method raises OSError with ``strerror`` in upstream's words (``no such file or directory``).
    """

    @property
    def directory(self) -> str:
        """As the user gave it; never empty."""
        ...

    def absolute(self, path: str) -> str:
        """``path`` from the root on, cleaned, links not followed."""
        ...

    def read(self, path: str) -> bytes: ...

    def stat(self, path: str) -> Node:
        """What ``path`` leads to, links followed."""
        ...

    def lstat(self, path: str) -> Node: ...

    def names(self, path: str) -> Sequence[str]:
        """What a directory holds."""
        ...

    def target(self, path: str) -> str:
        """What a link says."""
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
    """The content of a local file; raises :class:`LocalError`."""
    files, path = _located(local, files)
    try:
        return files.read(path)
    except IsADirectoryError as error:
        raise _said("read", path, error) from None
    except OSError as error:
        raise _said("open", path, error) from None


class Walked(NamedTuple):
    """One step of a walk: ``relative`` to the root of the tree, ``.`` for itself; ``problem`` instead of a node."""

    relative: str
    path: str
    node: Node
    problem: str = ""


def tree_nodes(local: str, files: Files | None) -> list[Walked]:
    """Everything below a directory, parents first, names in byte order; raises :class:`LocalError` about its root."""
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
    """The content of a file of a tree; raises :class:`LocalError`."""
    try:
        return files.read(walked.path)
    except OSError as error:
        raise _said("open", walked.path, error) from None


def read_link(walked: Walked, files: Files) -> str:
    """The target of a link of a tree; raises :class:`LocalError`."""
    try:
        return files.target(walked.path)
    except OSError as error:
        raise _said("readlink", walked.path, error) from None
