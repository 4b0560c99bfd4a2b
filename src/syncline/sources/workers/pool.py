"""Runs rendering tasks in a few warm child processes with limits: :class:`RenderWorkers`.

``sources/helm/rendering.py`` and ``sources/rendering/jsonnet.py`` call :func:`shared_workers` and
:meth:`RenderWorkers.run` from worker threads, with plain data as input and output. A child has no credentials of ours,
no user settings, no sockets (``base/seccomp.py``), no files but those of :meth:`RenderWorkers.scratch`
(``base/landlock.py``), and limited memory and processor time. On a timeout it is killed with its children, and the next
task gets a new one. The child runs ``sources/workers/main.py``.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from syncline.base.places import Limits
from syncline.base.removal import remove_tree
from syncline.base.scratch import work_folder
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.process import Children
from syncline.sources.remote.turns import Turns, away
from syncline.sources.workers.read_scope import current

HEADER = 8
"""Bytes of a frame's length, big-endian."""

"""Letters of an error; a template that calls itself complains once for every call, and its reason stands at the end."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of one task. A large chart takes 10 ms and 100 MB, so only abnormal ones reach them."""

    workers: int = 4
    """At once, of one project one less, and of one folder of a repository two less."""
    wall_s: float = 60.0
    cpu_s: int = 40
    memory_bytes: int = 2 * 1024**3
    """Address space: a Go library reserves several hundred megabytes that it never touches."""
    file_bytes: int = 64 * 1024**2
    """Largest file that a child may write."""
    output_bytes: int = 64 * 1024**2


class RenderWorkers:
    """At most ``limits.workers`` children, started on demand and reused. Thread-safe."""

    def __init__(self, limits: WorkerLimits = WorkerLimits()) -> None:
        self._limits = limits
        each = {"project": max(limits.workers - 1, 1), "source": max(limits.workers - 2, 1)}
        self.turns = Turns("a render worker", Limits(limits.workers, each))
        self._idle: list[subprocess.Popen[bytes]] = []
        self._children = Children()
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self.started = 0

    def run(self, task: str, payload: dict[str, Any], *, label: str) -> Any:
        """Return the result of ``task``; raises :class:`SourceError` for an error of the task, a crash or a limit.

        ``label`` names the work in messages: the rendered folder.
        """
        request = msgspec.msgpack.encode({"task": task, "payload": payload, "cpu_s": self._limits.cpu_s})
        with away(), self.turns.turn(current().source):
            child = self._take(label)
            try:
                with self._children.keeping(child):
                    answer = self._ask(child, request, label)
            except BaseException:
                _end(child)
                raise
            with self._lock:
                self._idle.append(child)
        return _unpacked(answer, label)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a temporary folder for one task, which children may read and write."""
        with tempfile.TemporaryDirectory(prefix="syncline-chart-", dir=self._home()) as made:
            yield Path(made)

    def _home(self) -> Path:
        """Return the folder of all tasks. If it was removed, a new one is created and the children are replaced."""
        with self._lock:
            if self._folder is not None and self._folder.is_dir():
                return self._folder
            self._folder = Path(tempfile.mkdtemp(prefix="syncline-render-", dir=work_folder()))
            weakref.finalize(self, remove_tree, self._folder)
            idle, self._idle = self._idle, []
        for child in idle:
            _end(child)
        return self._folder

    def close(self, *, over: bool = False) -> None:
        """End the children, including busy ones. ``over``: the process ends, so start no new ones."""
        self._children.end(over=over)
        with self._lock:
            idle, self._idle = self._idle, []
            folder, self._folder = self._folder, None
        for child in idle:
            _end(child)
        if folder is not None:
            remove_tree(folder)

    def _take(self, label: str) -> subprocess.Popen[bytes]:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.poll() is None:
                    return child
                _end(child)
            self.started += 1
        given = (str(self._limits.memory_bytes), str(self._limits.file_bytes), str(self._home()))
        try:
            return subprocess.Popen(
                [sys.executable, "-s", "-m", "syncline.sources.workers.main", *given],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                cwd="/",
                process_group=0,  # not a session: its niceness would count against itself alone (base/priority.py)
            )
        except OSError as error:
            message = f"{label}: a render worker cannot be started ({error.strerror})"
            raise SourceError(Problem.UNREACHABLE, message) from None

    def _ask(self, child: subprocess.Popen[bytes], request: bytes, label: str) -> bytes:
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            _kill(child)

        timer = threading.Timer(self._limits.wall_s, expire)
        timer.daemon = True
        timer.start()
        try:
            answer = self._exchange(child, request, label)
        finally:
            timer.cancel()
        if expired.is_set():
            took = f"rendering took longer than {self._limits.wall_s:g} seconds and was ended"
            raise SourceError(Problem.EXHAUSTED, f"{label}: {took}", subject=label)
        if answer is None:
            raise SourceError(Problem.EXHAUSTED, f"{label}: {self._death(child)}", subject=label)
        return answer

    def _exchange(self, child: subprocess.Popen[bytes], request: bytes, label: str) -> bytes | None:
        """Return the child's response, None if it ended without one."""
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(len(request).to_bytes(HEADER, "big") + request)
            child.stdin.flush()
            header = child.stdout.read(HEADER)
            size = int.from_bytes(header, "big")
            if size > self._limits.output_bytes:
                _kill(child)
                message = f"{label}: rendering gave more than {self._limits.output_bytes} bytes"
                raise SourceError(Problem.EXHAUSTED, message, subject=label, fix="split the Application")
            answer = child.stdout.read(size) if len(header) == HEADER else b""
        except OSError:
            return None
        return answer if answer and len(answer) == size else None

    def _death(self, child: subprocess.Popen[bytes]) -> str:
        code = child.wait()
        if code == -signal.SIGXCPU:
            return f"rendering took more than {self._limits.cpu_s} seconds of processor time and was ended"
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
        memory = self._limits.memory_bytes // 1024**2
        return f"the render worker died ({how}); most often it needed more than {memory} MiB of memory"


def _unpacked(answer: bytes, label: str) -> Any:
    try:
        found = msgspec.msgpack.decode(answer)
        if "error" not in found:
            return found["value"]
        message, problem = str(found["error"]), Problem(found["problem"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        raise SourceError(Problem.INVALID, f"{label}: the render worker's answer is unreadable") from None
    raise SourceError(problem, f"{label}: {message}", subject=label)


def _environment() -> dict[str, str]:
    """Return the paths of programs and packages, and nothing about the user."""
    paths = os.pathsep.join(path for path in sys.path if path)
    given = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
    return given | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "GOMAXPROCS": "2"}


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child with its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        _kill(child)
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


@cache
def shared_workers() -> RenderWorkers:
    """Return the workers of this process."""
    workers = RenderWorkers()
    atexit.register(workers.close, over=True)
    return workers
