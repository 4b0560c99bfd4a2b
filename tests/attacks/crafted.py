"""What honest tools do not write: trees that no checkout holds, archives whose headers lie."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from tests.sources.conftest import IDENTITY, Upstream

__all__ = ["CHART", "MAP", "Crafted", "entry", "packed", "tar_of"]

CHART = "apiVersion: v2\nname: c\nversion: 1.0.0\n"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
Node = tuple[str, str, "bytes | list[Node]"]
"""Mode, name, and content or entries."""


class Crafted:
    """A repository whose trees are written byte by byte."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self._known: dict[bytes, str] = {}
        Upstream(folder)

    def commit(self, *nodes: Node) -> str:
        sha = self._git("commit-tree", self._tree(list(nodes)), "-m", "crafted")
        self._git("update-ref", "refs/heads/main", sha)
        return sha

    def _tree(self, nodes: list[Node]) -> str:
        body = b""
        for mode, name, inner in nodes:
            sha = self._tree(inner) if isinstance(inner, list) else self._object("blob", inner)
            body += f"{mode} {name}".encode() + b"\0" + bytes.fromhex(sha)
        return self._object("tree", body)

    def _object(self, kind: str, content: bytes) -> str:
        key = kind.encode() + b"\0" + content
        if key not in self._known:
            asked = ("hash-object", "-t", kind, "-w", "--stdin", "--literally")
            self._known[key] = self._git(*asked, given=content)
        return self._known[key]

    def _git(self, *arguments: str, given: bytes = b"") -> str:
        asked = ["git", *IDENTITY, "-C", str(self.path), *arguments]
        return subprocess.run(asked, input=given, capture_output=True, check=True).stdout.decode().strip()


def entry(
    name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE, **more: object
) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.type, made.size = kind, len(content)
    for key, value in more.items():
        setattr(made, key, value)
    return made, content


def tar_of(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT, mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=form) as archive:  # type: ignore[call-overload]
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def packed(files: Mapping[str, bytes]) -> bytes:
    """A ``.tgz`` as ``helm package`` writes it."""
    return tar_of(*(entry(name, content) for name, content in files.items()), mode="w:gz")
