"""Runs git as a child process, on behalf of ``sources/git/mirrors.py``: :func:`run_git`.

Children get no terminal, no hooks and no credentials beyond the administrator's own git and ssh configuration; their
time and output are limited, and a timeout also ends their children.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import resource
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from syncline.base.priority import WORKER
from syncline.sources.errors import Problem, SourceError, mask_credentials

MAX_OUTPUT = 256 * 1024 * 1024
"""Bytes of one answer: references of the largest repositories, or all manifests of one folder."""

_MAX_COMPLAINT = 8192
"""Bytes of git's complaint that are examined: its end, after what a host may say at length."""
CHUNK = 1 << 16

_ALLOWED_PROTOCOLS = "file:http:https:ssh"
"""``file`` is here for the administrator's own ``url.<base>.insteadOf``; repository addresses are checked before."""

_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|XDG_CONFIG_HOME|SSH_AUTH_SOCK|SSL_CERT_(FILE|DIR)|GIT_CONFIG_.*|GIT_SSL_.*"
    r"|GIT_SSH(_COMMAND|_VARIANT)?|GIT_EXEC_PATH|(?i:https?_proxy|all_proxy|no_proxy)|SYSTEMROOT"
)

_SAFE_CONFIG = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never"),
    *("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false", "-c", "fetch.recurseSubmodules=false"),
    *("-c", "fetch.unpackLimit=1", "-c", "gc.bigPackThreshold=64m"),
    *("-c", "advice.detachedHead=false", "-c", "core.quotePath=false", "-c", "fetch.writeCommitGraph=false"),
)
"""``fetch.unpackLimit``: objects of a small fetch that are written one by one show a commit before its folders;
``gc.bigPackThreshold``: the many small packs that come instead are joined without what is large already."""

SSH = ("ssh", "-oBatchMode=yes", "-oConnectTimeout=15", "-oServerAliveInterval=15", "-oServerAliveCountMax=3")
"""Without passwords to ask for; a host that does not answer, also in the middle, is given up."""

_SAYS_NOTHING = (
    "fatal: Could not read from remote repository",
    "Please make sure you have",
    "and the repository exists",
)


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """Exit code, standard output, and git's error message in one line without credentials."""

    code: int
    output: bytes
    complaint: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one child. ``quiet_s``: the longest time without output (0: as for the whole). ``file_bytes``: the
    largest file that it and its children may write (0: any). ``memory_bytes``: the memory of each process beside mapped
    files, since a chain of deltas may unpack to any size."""

    whole_s: float
    quiet_s: float = 0.0
    output_bytes: int = MAX_OUTPUT
    file_bytes: int = 0
    memory_bytes: int = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class RemoteLimits:
    """Limits of calls to a Git remote. Over HTTP the quiet time also counts below ``trickle`` bytes a second;
    references arrive at once, so without HTTP only the total time counts."""

    listing: Bounds = Bounds(90.0)
    """For asking a remote what it has (Argo CD's exec timeout)."""
    listing_quiet_s: float = 30.0
    fetch: Bounds = Bounds(600.0, quiet_s=60.0, file_bytes=8 * 1024**3)
    """For bringing objects; a first fetch of a large repository takes minutes."""
    trickle: int = 16

    def options(self, bounds: Bounds) -> list[str]:
        """Return the git options that set these limits."""
        quiet = max(int(bounds.quiet_s or self.listing_quiet_s), 1)
        return ["-c", f"http.lowSpeedLimit={self.trickle}", "-c", f"http.lowSpeedTime={quiet}"]


class Children:
    """The running children, so that they end with the process that waits for them."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._over = False

    @contextlib.contextmanager
    def keeping(self, child: subprocess.Popen[bytes]) -> Iterator[None]:
        with self._lock:
            if self._over:
                _end(child)
            self._running.add(child)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(child)

    def end(self, *, over: bool = False) -> None:
        """End all children; their callers get an error. ``over``: also those started later."""
        with self._lock:
            self._over = over
            for child in self._running:
                _end(child)


ALL = Children()
"""Of this process: what hangs must not outlive it."""
atexit.register(ALL.end, over=True)


def run_git(
    arguments: Sequence[str],
    *,
    directory: Path | None = None,
    stdin: bytes = b"",
    bounds: Bounds,
    label: str,
    environment: Mapping[str, str] | None = None,
    whole_complaint: bool = False,
) -> GitAnswer:
    """Run ``git ARGUMENTS``; a failed command is a result, not an exception.

    Raises :class:`SourceError` if git is missing or exceeds one of its ``bounds``. ``label`` names the work in
    messages; ``environment`` is added for this child. ``whole_complaint``: return the whole error output, not only its
    most important line.
    """
    place = ["-C", str(directory)] if directory is not None else []
    command = ["git", *_SAFE_CONFIG, *place, *arguments]
    code, output, complaint = run_bounded(command, child_environment() | dict(environment or {}), bounds, label, stdin)
    text = complaint.decode("utf-8", "replace")
    return GitAnswer(code, output, text if whole_complaint else _summary(text))


def run_bounded(
    command: Sequence[str], environment: Mapping[str, str], bounds: Bounds, label: str, stdin: bytes = b""
) -> tuple[int, bytes, bytes]:
    """Return exit code, output, and the end of the error output. Raises :class:`SourceError` at a limit, or if the
    program cannot be started."""
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        try:
            child = subprocess.Popen(
                command,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                process_group=0,  # not a session: its niceness would count against itself alone (base/priority.py)
            )
        except OSError as error:
            message = f"{label}: {command[0]} cannot be started ({error.strerror})"
            raise SourceError(Problem.UNREACHABLE, message) from None
    limits = ((resource.RLIMIT_FSIZE, bounds.file_bytes), (resource.RLIMIT_DATA, bounds.memory_bytes))
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended already
        os.setpriority(os.PRIO_PROCESS, child.pid, WORKER)
        for limit, size in limits:
            if size:
                resource.prlimit(child.pid, limit, (size, size))
    try:
        with ALL.keeping(child):
            output, complaint = _converse(child, bounds, label)
    except BaseException:
        _end(child)
        child.wait()
        raise
    finally:
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
    return child.returncode, output, complaint


def _converse(child: subprocess.Popen[bytes], bounds: Bounds, label: str) -> tuple[bytes, bytes]:
    """Read until the child has closed its output and ended; a left-over grandchild may keep its error output open."""
    assert child.stdout is not None, "it is a pipe"
    assert child.stderr is not None, "it is a pipe"
    parts: list[bytes] = []
    size, complaint = 0, b""
    begun = last = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for stream in (child.stdout, child.stderr):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, stream is child.stdout)
        while child.stdout in {key.fileobj for key in selector.get_map().values()}:
            now = time.monotonic()
            silent = bool(bounds.quiet_s) and now - last >= bounds.quiet_s
            if silent or now - begun >= bounds.whole_s:
                raise _too_late(bounds.quiet_s if silent else bounds.whole_s, label, silent=silent)
            left = begun + bounds.whole_s - now
            for key, _ in selector.select(min(left, last + bounds.quiet_s - now) if bounds.quiet_s else left):
                data = os.read(key.fd, CHUNK)
                last = time.monotonic()
                if not data:
                    selector.unregister(key.fileobj)
                elif key.data:
                    parts.append(data)
                    size += len(data)
                else:
                    complaint = (complaint + data)[-_MAX_COMPLAINT:]
                if size > bounds.output_bytes:
                    message = f"{label}: the answer is larger than {bounds.output_bytes} bytes"
                    raise SourceError(Problem.TOO_LARGE, message)
    try:
        child.wait(max(begun + bounds.whole_s - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        raise _too_late(bounds.whole_s, label, silent=False) from None
    with contextlib.suppress(BlockingIOError):
        while data := os.read(child.stderr.fileno(), CHUNK):
            complaint = (complaint + data)[-_MAX_COMPLAINT:]
    return b"".join(parts), complaint


def _too_late(seconds: float, label: str, *, silent: bool) -> SourceError:
    what = "not a byte" if silent else "no answer"
    return SourceError(Problem.UNREACHABLE, f"{label}: {what} within {seconds:g} seconds")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the child with its process group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def child_environment() -> dict[str, str]:
    """Return the environment variables of this process that git and ssh may have."""
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    kept.setdefault("GIT_SSH_COMMAND", " ".join(SSH))
    return kept | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": _ALLOWED_PROTOCOLS,
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GCM_INTERACTIVE": "never",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }


def _summary(text: str) -> str:
    shown = (line.rpartition("\r")[2].strip() for line in text.rstrip("\r").split("\n"))  # progress is written over
    lines = [line for line in shown if line]
    if len(lines) > 1:  # after what ssh or the host said, git adds this, which says less
        lines = [line for line in lines if not line.startswith(_SAYS_NOTHING)] or lines
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:"))] or lines[-1:]
    return mask_credentials(telling[0].removeprefix("fatal: ").removeprefix("error: ")) if telling else ""
