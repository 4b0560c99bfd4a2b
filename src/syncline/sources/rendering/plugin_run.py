"""Runs plugin commands on a temporary copy of the repository, in a sandbox with limits: :class:`PluginRunner`.

Used by ``sources/rendering/plugins.py``. The sandbox is a launcher program that ``assembly`` configures: a process
without network, files and credentials of ours, with a read-only system and the copy. Time, processor time, memory, file
size and output are limited. Without a sandbox no command runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from syncline.base.places import Limits
from syncline.base.removal import remove_tree
from syncline.base.scratch import work_folder
from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import join
from syncline.sources.remote.turns import Turns, away
from syncline.sources.tree import EXECUTABLE_MODE, Tree
from syncline.sources.workers.scratch import write_below

INSIDE = "/repository"
CANNOT = 125
"""Exit code of the launcher where no sandbox can be made."""
MAX_COMPLAINT = 4096


@dataclass(frozen=True, slots=True)
class PluginLimits:
    """Limits of one command, and of its copy."""

    at_once: int = 3
    """Of one project one less."""
    wall_s: float = 90.0
    """As upstream's ARGOCD_EXEC_TIMEOUT."""
    cpu_s: int = 60
    memory_bytes: int = 2 * 1024**3
    file_bytes: int = 64 * 1024**2
    processes: int = 256
    output_bytes: int = 64 * 1024**2
    files: int = 50_000
    bytes: int = 500_000_000


@dataclass(frozen=True, slots=True)
class Checkout:
    """A copy of a repository on the disk; ``folder`` is the Application's folder in it."""

    root: Path
    folder: str


@dataclass(frozen=True, slots=True)
class PluginRunner:
    """``launcher``: the program that makes a sandbox of a line of JSON (``cluster/machines/sandbox/__main__.py``);
    ``visible``: folders of programs that commands may see beyond the system's."""

    launcher: Path
    visible: tuple[Path, ...] = ()
    limits: PluginLimits = PluginLimits()
    _turns: Turns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        most = self.limits.at_once
        object.__setattr__(self, "_turns", Turns("a plugin", Limits(most, {"project": max(most - 1, 1)})))

    @contextlib.contextmanager
    def checkout(self, tree: Tree, *, keep_modes: bool) -> Iterator[Checkout]:
        """Yield a copy of the repository of ``tree``. Raises :class:`SourceError`."""
        whole = tree.whole()
        entries = [entry for entry in whole.entries if entry.is_file or entry.is_symlink]
        if len(entries) > self.limits.files or sum(entry.size for entry in entries) > self.limits.bytes:
            message = f"a plugin may read {self.limits.files} files and {self.limits.bytes} bytes"
            raise SourceError(Problem.TOO_LARGE, message, field="spec.source.plugin")
        with _scratch() as made:
            root = made / "repository"
            root.mkdir()
            contents = whole.read(entries)
            runs = [entry.path for entry in entries if keep_modes and entry.mode == EXECUTABLE_MODE]
            files = ((entry.path, contents[entry.path]) for entry in entries if entry.is_file)
            links = {one.path: _inside(one.path, contents[one.path]) for one in entries if one.is_symlink}
            write_below(root, files, executable=runs, links=links)
            yield Checkout(root, tree.path)

    def run(self, place: Checkout, command: Sequence[str], environment: Mapping[str, str], label: str) -> bytes:
        """Return the output of the command. Raises :class:`SourceError` with its error output if it fails."""
        with away(), self._turns.turn(), _scratch() as scratch:
            spec = self._spec(place, command, environment, scratch)
            with tempfile.TemporaryFile() as complaints:
                output, code, late = self._launched(spec, complaints.fileno())
                complaints.seek(0, os.SEEK_END)
                complaints.seek(max(0, complaints.tell() - MAX_COMPLAINT))
                said = " ".join(complaints.read().decode("utf-8", "replace").split())
        if late:
            raise SourceError(Problem.EXHAUSTED, f"{label}: took longer than {self.limits.wall_s:g} seconds")
        if len(output) > self.limits.output_bytes:
            raise SourceError(Problem.EXHAUSTED, f"{label}: printed more than {self.limits.output_bytes} bytes")
        if code == CANNOT and "[syncline]" in said:
            why = said.rpartition("[syncline] ")[2].removeprefix("no sandbox: ")
            message = f"{label}: plugins run in a sandbox alone, and this machine makes none: {why}"
            raise SourceError(Problem.UNSUPPORTED, message, fix="allow unprivileged user namespaces")
        if code != 0:
            raise SourceError(Problem.INVALID, f"{label}: `{command[0]}` failed exit status {code}: {said}")
        return output

    def _spec(
        self, place: Checkout, command: Sequence[str], environment: Mapping[str, str], scratch: Path
    ) -> dict[str, object]:
        base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "TMPDIR": "/tmp"}
        root = scratch / "root"
        root.mkdir()
        binds = [[str(place.root), INSIDE, True], *([str(one), str(one), False] for one in self.visible)]
        limits = {
            "RLIMIT_AS": self.limits.memory_bytes,
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": self.limits.cpu_s,
            "RLIMIT_FSIZE": self.limits.file_bytes,
            "RLIMIT_NOFILE": 1024,
            "RLIMIT_NPROC": self.limits.processes,
        }
        return {
            "argv": list(command),
            "env": base | {name: value for name, value in environment.items() if "\0" not in value},
            "cwd": f"{INSIDE}/{place.folder}".rstrip("/"),
            "root": str(root),
            "hostname": "plugin",
            "binds": binds,
            "socket": "",
            "port": 0,
            "limits": limits,
            "tmpfs_bytes": self.limits.bytes,
            "whole": {
                "memory_bytes": self.limits.memory_bytes,
                "cpu_s": self.limits.cpu_s,
                "processes": self.limits.processes,
                "disk_bytes": 2 * self.limits.bytes,
            },
            "slot": os.getpid(),
            "give": [[str(place.root), True]],
        }

    def _launched(self, spec: Mapping[str, object], complaints: int) -> tuple[bytes, int, bool]:
        """Return output, exit code, and whether it timed out."""
        late = threading.Event()
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(self.launcher)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            start_new_session=True,
        )

        def expire() -> None:
            late.set()
            _end(child)

        timer = threading.Timer(self.limits.wall_s, expire)
        timer.daemon = True
        timer.start()
        try:
            assert child.stdin is not None, "it is a pipe"
            assert child.stdout is not None, "it is a pipe"
            # The launcher's input stays open as long as the command may live.
            with child.stdin, child.stdout:
                with contextlib.suppress(BrokenPipeError):
                    child.stdin.write(json.dumps(spec).encode() + b"\n")
                    child.stdin.flush()
                output = child.stdout.read(self.limits.output_bytes + 1)
                if len(output) > self.limits.output_bytes:
                    _end(child)
                child.wait()
        finally:
            timer.cancel()
            _end(child)
            child.wait()
        return output, child.returncode, late.is_set()


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="syncline-plugin-", dir=work_folder()))
    try:
        yield made
    finally:
        remove_tree(made)


def _inside(path: str, content: bytes) -> str:
    """Refuse links that leave the repository, as upstream; in the sandbox their targets do not exist."""
    target = content.decode("utf-8", "replace")
    folder = path.rpartition("/")[0]
    if target.startswith("/") or join(folder, target) is None:
        message = f"repository contains out-of-bounds symlinks. file: {path}"
        raise SourceError(Problem.REFUSED, message, subject=path)
    return target


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
