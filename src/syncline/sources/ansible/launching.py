"""Runs a play by ``ansible-playbook`` as a child process with bounds: :func:`run_play`.

``hosts`` runs plays on a node with it, ``capturing.py`` uses :func:`prepare` to run one in a throwaway root. The child
gets a private folder (home, temporary files, settings, passwords), no variable of our environment, no configuration of
the user's or the repository's, local connections alone, and a report that it writes line by line (``reporting.py``). It
ends with its time, with a report that is too long, and at its next task when the reader is gone. ``ansible-core`` is
licensed under the GPL: it is started, never imported.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from syncline.base.masking import bounded
from syncline.base.scratch import credentials_folder, scratch
from syncline.sources.ansible.reporting import (
    MAX_EVENTS,
    MAX_LINE,
    Event,
    NoHosts,
    PlayReport,
    PlayStarted,
    ReportError,
    TaskResult,
    TaskStarted,
    Totals,
    read_event,
)
from syncline.sources.errors import Problem, SourceError

PLUGIN = Path(__file__).parent / "callback-plugins" / "syncline_report.py"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FIX = "install the extra: pip install 'syncline[ansible]', or put ansible-playbook (ansible-core 2.19) on PATH"
READ_BYTES = 65536
SAID = 4000
"""Bytes of error output that are kept, from the end."""
ENDING_S = 30.0
"""How long the end of processes that were killed is waited for: only one that the kernel holds takes longer."""


@dataclass(frozen=True, slots=True)
class PlayLimits:
    """Bounds of one run; memory, processor time and size of files count for each process of it."""

    wall_s: float = 1800.0
    cpu_s: int = 1200
    memory_bytes: int = 2 * 1024**3
    file_bytes: int = 1024**3
    output_bytes: int = 64 * 1024**2
    """Of report, output and error output together."""
    results: int = MAX_EVENTS


@dataclass(frozen=True, slots=True)
class Play:
    """What to run. Paths are this machine's, or in a root those of the root."""

    playbook: str
    inventory: str = "localhost\n"
    """The text of an inventory in INI form, or an absolute path of one."""
    limit: str = ""
    check: bool = False
    diff: bool = True
    tags: tuple[str, ...] = ()
    skip_tags: tuple[str, ...] = ()
    start_at: str = ""
    """The name of the task to begin with."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """As ``--extra-vars``: they win over all others."""
    vault_password: str = field(default="", repr=False)
    collections: tuple[str, ...] = ()
    """Folders that contain ``ansible_collections``."""
    roles: tuple[str, ...] = ()
    interpreter: str = ""
    """The Python that modules run with, unless the inventory names one; ours by default."""
    facts: bool = True
    """False: plays that do not say otherwise gather no facts."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """More variables of the child's environment, for modules (proxies)."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A command and its environment; ``SYNCLINE_REPORT`` is still to be added to it."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(repr=False)


def find_program() -> tuple[str, ...]:
    """Return the command that runs playbooks: ``ansible-core`` beside our interpreter, else of PATH. Raises
    :class:`SourceError` if there is none."""
    if packages_folder() is not None:
        return (sys.executable, "-s", "-m", "ansible", "playbook")
    found = shutil.which("ansible-playbook")
    if found is None:
        raise SourceError(Problem.UNSUPPORTED, "ansible-core is not installed, and playbooks need it", fix=FIX)
    return (found,)


def packages_folder() -> str | None:
    """Return the folder of our interpreter's packages that holds ``ansible-core``, if one does."""
    found = importlib.util.find_spec("ansible")
    folder = os.path.dirname(os.path.dirname(found.origin)) if found is not None and found.origin else ""
    return folder if folder.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep)) else None


def prepare(play: Play, folder: Path, program: tuple[str, ...] | None = None, *, seen_as: str = "") -> Prepared:
    """Write what the child reads to ``folder``, a private one, and return how to start it. ``seen_as``: the path of the
    folder in the child's root, where that differs."""
    program = program or find_program()
    place = seen_as or str(folder)
    for name in ("home", "tmp", "plugins", "empty"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    _write(folder / "ansible.cfg", "[defaults]\n")
    _write(folder / "plugins" / PLUGIN.name, PLUGIN.read_text(encoding="utf-8"))
    variables = dict(play.variables) | {"ansible_connection": "local"}
    _write(folder / "variables.json", msgspec.json.encode(variables).decode())
    inventory = play.inventory
    if not inventory.startswith("/"):
        _write(folder / "inventory.ini", inventory)
        inventory = f"{place}/inventory.ini"
    argv = [*program, "--inventory", inventory, "--extra-vars", f"@{place}/variables.json"]
    if play.vault_password:
        _write(folder / "vault", play.vault_password)
        argv += ["--vault-password-file", f"{place}/vault"]
    argv += ["--check"] * play.check + ["--diff"] * play.diff
    for option, values in (("--tags", play.tags), ("--skip-tags", play.skip_tags)):
        argv += [option, ",".join(values)] if values else []
    for option, value in (("--limit", play.limit), ("--start-at-task", play.start_at)):
        argv += [option, value] if value else []
    return Prepared((*argv, "--", play.playbook), _environment(play, place))


def _environment(play: Play, place: str) -> dict[str, str]:
    return {
        "PATH": SYSTEM_PATH,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "HOME": f"{place}/home",
        "TMPDIR": f"{place}/tmp",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "ANSIBLE_CONFIG": f"{place}/ansible.cfg",
        "ANSIBLE_HOME": f"{place}/home/.ansible",
        "ANSIBLE_LOCAL_TEMP": f"{place}/tmp",
        "ANSIBLE_REMOTE_TEMP": f"{place}/tmp",
        "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(play.collections) or f"{place}/empty",
        "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "0",
        "ANSIBLE_ROLES_PATH": os.pathsep.join(play.roles) or f"{place}/empty",
        "ANSIBLE_CALLBACK_PLUGINS": f"{place}/plugins",
        "ANSIBLE_STDOUT_CALLBACK": PLUGIN.stem,
        "ANSIBLE_PYTHON_INTERPRETER": play.interpreter or sys.executable,
        "ANSIBLE_GATHERING": "implicit" if play.facts else "explicit",
        "ANSIBLE_CACHE_PLUGIN": "memory",
        "ANSIBLE_FORKS": "1",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_NOCOWS": "1",
        "ANSIBLE_DEPRECATION_WARNINGS": "0",
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "ANSIBLE_RETRY_FILES_ENABLED": "0",
        **play.environment,
    }


def run_play(
    play: Play,
    *,
    limits: PlayLimits = PlayLimits(),
    seen: Callable[[Event], None] = lambda _: None,
    program: tuple[str, ...] | None = None,
    cwd: str = "/",
) -> PlayReport:
    """Run a play on this machine and return its report; a play that fails is a report, too.

    ``seen`` gets each event when it happens; what it raises ends the play and is raised here. Positions are relative to
    the playbook's folder. Raises :class:`SourceError` if ansible-playbook cannot be started.
    """
    with scratch(credentials_folder()) as private:
        prepared = prepare(play, private, program)
        reading, writing = os.pipe()
        try:
            child = _started(prepared, writing, limits, cwd)
        finally:
            os.close(writing)
            opened = os.fdopen(reading, "rb", buffering=0)
        with opened, _ending(child):
            followed = Following(os.path.dirname(play.playbook), limits, seen)
            _follow(child, opened.fileno(), followed, limits)
            code = child.wait()
    return followed.report(code)


def _started(prepared: Prepared, writing: int, limits: PlayLimits, cwd: str) -> subprocess.Popen[bytes]:
    try:
        child = subprocess.Popen(
            prepared.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=prepared.env | {"SYNCLINE_REPORT": str(writing)},
            cwd=cwd,
            pass_fds=(writing,),
            start_new_session=True,
        )
    except OSError as error:
        message = f"{prepared.argv[0]} cannot be started ({error.strerror})"
        raise SourceError(Problem.UNSUPPORTED, message, fix=FIX) from None
    bounds = (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
    )
    # Before the interpreter has read its first module: no code of the play runs without them.
    with contextlib.suppress(ProcessLookupError):
        for kind, limit in bounds:
            resource.prlimit(child.pid, kind, (limit, limit))
    return child


@contextlib.contextmanager
def _ending(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """End what is left of the child, and reap it."""
    try:
        yield
    finally:
        if child.returncode is None:
            end_tree(child.pid)
            child.wait()
        else:
            _end_group(child.pid)
        if child.stderr is not None:
            child.stderr.close()


def end_tree(process: int) -> None:
    """Kill a process that leads its group and is not reaped yet, the group, and what descends from it; return when
    they have ended, at the latest after :data:`ENDING_S`.

    ansible-core's workers lead sessions of their own. Each process is stopped first, so that it starts no other.
    """
    found, new = {process}, {process}
    with contextlib.ExitStack() as stack:
        opened: list[int] = []
        while new:
            for each in new:
                with contextlib.suppress(OSError):
                    opened.append(os.pidfd_open(each))
                    stack.callback(os.close, opened[-1])
                    signal.pidfd_send_signal(opened[-1], signal.SIGSTOP)
            new = {child for child, parent in _parents() if parent in found} - found
            found |= new
        _end_group(process)
        for each in opened:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(each, signal.SIGKILL)
        _await(opened)


def _await(processes: Iterable[int]) -> None:
    """Wait until processes, given as open descriptors, have ended: a process that is killed ends when it is next
    scheduled, which takes a while on a busy machine."""
    until = time.monotonic() + ENDING_S
    with selectors.DefaultSelector() as selector:
        for each in processes:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map() and (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                selector.unregister(key.fileobj)


def _end_group(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


def _parents() -> Iterator[tuple[int, int]]:
    """Return the processes of this machine, each with its parent."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                yield int(name), int(file.read().rpartition(b")")[2].split()[1])


class Following:
    """Collects a report from what the child writes; ``ended`` says why it has to be ended, if it has to."""

    def __init__(self, folder: str, limits: PlayLimits, seen: Callable[[Event], None]) -> None:
        self._folder, self._limits, self._seen = folder, limits, seen
        self._line, self._bytes, self._said = b"", 0, b""
        self._results: list[TaskResult] = []
        self._totals: tuple[Any, ...] = ()
        self._play, self._unmatched = "", list[str]()
        self._running: TaskStarted | None = None
        self._events = 0
        self.ended = ""

    def feed(self, chunk: bytes) -> None:
        """Take bytes of the report."""
        self._count(chunk)
        lines = (self._line + chunk).split(b"\n")
        self._line = lines.pop()
        try:
            for line in lines:
                self._events += 1
                if not self.ended and self._events > 2 * self._limits.results:
                    self.ended = f"it reports more than {self._limits.results} results"
                if not self.ended:
                    self._take(read_event(line, self._folder))
            if len(self._line) > MAX_LINE:
                raise ReportError(f"a line of the play's report has more than {MAX_LINE} bytes")
        except ReportError as error:
            self.ended = self.ended or str(error)

    def feed_said(self, chunk: bytes) -> None:
        """Take bytes of the error output."""
        self._count(chunk)
        self._said = (self._said + chunk)[-SAID:]

    def _count(self, chunk: bytes) -> None:
        self._bytes += len(chunk)
        if self._bytes > self._limits.output_bytes:
            self.ended = self.ended or f"it printed more than {self._limits.output_bytes} bytes"

    def _take(self, event: Event) -> None:
        match event:
            case TaskStarted():
                self._running = event
            case TaskResult():
                self._results.append(event)
                self._running = None
            case PlayStarted():
                self._play = event.name
            case NoHosts():
                self._unmatched.append(self._play)
            case Totals():
                self._totals = event.hosts
        self._seen(event)

    def report(self, exit_code: int) -> PlayReport:
        said = bounded(" ".join(self._said.decode("utf-8", "replace").split()))
        running = self._running if exit_code else None
        if exit_code == -signal.SIGXCPU:
            self.ended = self.ended or f"it took more than {self._limits.cpu_s} seconds of processor time"
        return PlayReport(
            tuple(self._results), exit_code, self._totals, tuple(self._unmatched), self.ended, running, said
        )


def _follow(child: subprocess.Popen[bytes], report: int, followed: Following, limits: PlayLimits) -> None:
    """Read report and error output until the child ends or has to be ended."""
    assert child.stderr is not None, "it is a pipe"
    until = time.monotonic() + limits.wall_s
    gone = os.pidfd_open(child.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(report, selectors.EVENT_READ, followed.feed)
            selector.register(child.stderr.fileno(), selectors.EVENT_READ, followed.feed_said)
            selector.register(gone, selectors.EVENT_READ)
            while not followed.ended:
                ready = selector.select(max(0.0, until - time.monotonic()))
                if not ready:
                    followed.ended = f"it took longer than {limits.wall_s:g} seconds"
                read = [key for key, _ in ready if key.data is not None]
                for key in read:
                    chunk = os.read(key.fd, READ_BYTES)
                    if chunk:
                        key.data(chunk)
                    else:
                        selector.unregister(key.fd)
                if ready and not read:
                    return  # it has ended, and everything that it wrote is read
    finally:
        os.close(gone)
        if followed.ended:
            end_tree(child.pid)


def _write(path: Path, text: str) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(opened, "w", encoding="utf-8") as file:
        file.write(text)
