"""A Linux host over a directory, filled as the recordings describe one; its commands answer as recorded."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.machineconfig.memory_host import MemoryHost, Node

from syncline.base.clock import SystemClock
from syncline.hosts.linuxhost import LinuxHost
from syncline.machineconfig.agent.host import Done, Stat


class TreeHost(LinuxHost):
    """Files are real; what is run is listed and answered by ``told``, a host in memory with the same tree."""

    def __init__(self, root: Path, given: Mapping[str, Any]) -> None:
        super().__init__(root, SystemClock())
        self.told = MemoryHost.of(given)
        for path, node in sorted(self.told.tree.items()):
            self._fill(path, node)

    def _fill(self, path: str, node: Node) -> None:
        if node.stat.kind == "dir":
            self.make_directories(path, node.stat.mode)
            os.chmod(f"{self.root}{path}", node.stat.mode)
        elif node.stat.kind == "symlink":
            os.symlink(node.stat.target, f"{self.root}{path}")
        else:
            Path(f"{self.root}{path}").write_bytes(node.content)
            os.chmod(f"{self.root}{path}", node.stat.mode)
        if os.geteuid() == 0:
            os.chown(f"{self.root}{path}", node.stat.uid, node.stat.gid, follow_symlinks=False)
            if node.stat.kind == "file":
                os.chmod(f"{self.root}{path}", node.stat.mode)  # a new owner takes setuid away

    @property
    def os(self) -> str:
        return self.told.os

    @property
    def commands(self) -> list[str]:
        return self.told.commands

    def has_program(self, name: str) -> bool:
        return self.told.has_program(name)

    def unit_files(self) -> frozenset[str]:
        return self.told.unit_files()

    def run(self, command: Sequence[str]) -> Done:
        answer = self.told.run(command)
        return super().run(command) if command[0] == "runuser" and answer.ok else answer

    def snapshot(self) -> dict[str, Node]:
        found: dict[str, Node] = {}
        for place, directories, files in os.walk(self.root):
            for name in (*directories, *files):
                path = posixpath.join(place, name)[len(str(self.root)) :]
                stat = self.stat(path)
                assert stat is not None
                content = Path(f"{self.root}{path}").read_bytes() if stat.kind == "file" else b""
                found[path] = Node(Stat(stat.kind, stat.mode, *self._owner(stat), stat.target), content)
        return found

    def _owner(self, stat: Stat) -> tuple[int, int]:
        return (stat.uid, stat.gid) if os.geteuid() == 0 else (0, 0)

    def changed(self, before: Mapping[str, Node]) -> list[dict[str, Any]]:
        shown = MemoryHost()
        shown.tree = self.snapshot()
        return shown.changed(before)

    def removed(self, before: Mapping[str, Node]) -> list[str]:
        now = self.snapshot()
        return sorted(path for path in before if path not in now)
