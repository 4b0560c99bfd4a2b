"""Start and end sandboxed commands: the cluster's side of ``cluster/machines/sandbox/launch.py``."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import syncline
from syncline.base.scratch import work_folder
from syncline.cluster.machines.sandbox import PROGRAM
from syncline.cluster.machines.sessions import CommandSession, Pipes
from syncline.cluster.verbs.exchange import ExecWish

OURS = "/opt/syncline"
"""Path of our interpreter and tools inside a sandbox."""
PROGRAMS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHOWN = "/usr/"
"""Programs outside of it are hidden from containers."""
CHECK_S = 20.0
VERDICT_BYTES = 4096
MOST_SAID = 10 * 1024
"""Limit of a probe's output."""
OWNERLESS = {"TAR_OPTIONS": "--no-same-owner"}
"""``kubectl cp`` unpacks as root and restores owners, which do not exist in a sandbox."""
STUBBORN_S = 5.0
"""Seconds after which a launcher that does not stop is killed."""


def package_root() -> Path:
    return Path(syncline.__file__).resolve().parents[1]


def installed(name: str) -> str:
    """Return the path of a local program that containers may see, or ""."""
    found = shutil.which(name, path=PROGRAMS)
    real = os.path.realpath(found) if found else ""
    return real if real.startswith(SHOWN) else ""


def python_inside() -> tuple[str, list[tuple[str, str, bool]]]:
    """Return our interpreter's path in the sandbox, and the binds that it needs beside ``/usr``.

    All are below one folder, so that no volume of a pod can hide it or be hidden by it.
    """
    binds = [(str(package_root() / "syncline"), f"{OURS}/source/syncline", False)]
    binds.append((sysconfig.get_paths()["purelib"], f"{OURS}/packages", False))
    base = Path(sys.base_prefix)
    program = Path(sys.executable).resolve()
    if not program.is_relative_to(base):  # a virtual environment with a copy of the interpreter: use the original
        program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if base.is_relative_to("/usr") or not program.is_relative_to(base):
        return str(program), binds
    binds.append((str(base), f"{OURS}/python", False))
    return f"{OURS}/python/{program.relative_to(base)}", binds


def launcher(spec: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    """Start the launcher; its standard input stays open for the life of this process."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        start_new_session=True,
        pass_fds=[spec[name] for name in ("verdict", "board", "updates") if name in spec],
    )
    assert process.stdin is not None, "the standard input is a pipe"
    with contextlib.suppress(BrokenPipeError):  # it ended at once; its exit code and output have the reason
        process.stdin.write(json.dumps(spec).encode() + b"\n")
        process.stdin.flush()
    return process


def ask_port(process: subprocess.Popen[bytes], started: Mapping[str, Any], wish: Mapping[str, Any]) -> str:
    """Probe a port in the sandbox of ``process`` (``cluster/machines/sandbox/reach.py``); return the error or ""."""
    spec = {"launcher": process.pid, "slot": started.get("slot", 0), "reach": dict(wish)}
    theirs, ours = os.pipe()
    with os.fdopen(ours, "wb") as pipe:
        asking = subprocess.Popen(
            [sys.executable, "-I", "-S", PROGRAM, str(theirs)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            start_new_session=True,
            pass_fds=(theirs,),
        )
        os.close(theirs)
        with contextlib.suppress(BrokenPipeError):
            pipe.write(json.dumps(spec).encode() + b"\n")
            pipe.flush()
        try:
            said, _ = asking.communicate(timeout=float(wish["timeout_s"]) + CHECK_S)
        except subprocess.TimeoutExpired:
            kill(asking)
            asking.communicate()
            return "the probe was not answered"
    return said.decode("utf-8", "replace") if asking.returncode == 0 else "the container cannot be asked"


def run_inside(
    process: subprocess.Popen[bytes], started: Mapping[str, Any], command: Sequence[str], timeout_s: float
) -> tuple[int | None, bytes]:
    """Run a command in a sandbox; return its exit code (None after a timeout) and output."""
    said, over, codes = bytearray(), threading.Event(), list[int]()

    def tell(_stream: int, data: bytes) -> None:
        said.extend(data[: MOST_SAID - len(said)])

    def ended(code: int) -> None:
        codes.append(code)
        over.set()

    session = join(process, started, ExecWish(tuple(command)), lambda _: None)
    session.start(tell, ended)
    in_time = over.wait(timeout_s)
    session.close()
    return (codes[0] if in_time else None), bytes(said)


def join(
    process: subprocess.Popen[bytes], started: Mapping[str, Any], wish: ExecWish, left: Callable[[CommandSession], None]
) -> CommandSession:
    """Start a launcher that enters the sandbox of ``process``, which was started with ``started``; a separate pipe
    carries its input, because variables may be secret."""
    env = {**OWNERLESS, **started["env"], **({"TERM": "xterm"} if wish.tty else {})}
    spec = {key: started[key] for key in ("cwd", "limits", "slot", "ids") if key in started}
    spec |= {"launcher": process.pid, "argv": list(wish.command), "env": env}
    spec |= {"stdin": wish.stdin or wish.tty, "tty": wish.tty}
    theirs, ours = os.pipe()
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    terminal = os.openpty() if wish.tty else None
    if terminal is not None:
        streams = dict.fromkeys(streams, terminal[1])
    elif not wish.stdin:
        streams["stdin"] = subprocess.DEVNULL
    joining = subprocess.Popen(
        [sys.executable, "-I", "-S", PROGRAM, str(theirs)],
        **streams,
        bufsize=0,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        start_new_session=True,
        pass_fds=(theirs,),
    )
    os.close(theirs)
    pipe = os.fdopen(ours, "wb", 0)
    with contextlib.suppress(BrokenPipeError):
        pipe.write(json.dumps(spec).encode() + b"\n")
    if terminal is not None:
        os.close(terminal[1])
        pipes = Pipes(terminal[0], terminal[0])
    else:
        own = [
            -1 if each is None else os.dup(each.fileno()) for each in (joining.stdin, joining.stdout, joining.stderr)
        ]
        for each in (joining.stdin, joining.stdout, joining.stderr):
            if each is not None:
                each.close()
        pipes = Pipes(*own)
    session = CommandSession(joining, pipes, lambda: _end(joining, pipe), lambda: left(session))
    return session


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its group. A launcher's sandbox ends shortly after."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def end(process: subprocess.Popen[bytes]) -> None:
    """End the sandbox of a launcher at once; the launcher exits when it is empty."""
    assert process.stdin is not None, "the standard input is a pipe"
    _end(process, process.stdin)


def _end(process: subprocess.Popen[bytes], wish: IO[bytes]) -> None:
    with contextlib.suppress(OSError):
        wish.close()
    if process.poll() is not None:
        return
    late = threading.Timer(STUBBORN_S, lambda: kill(process) if process.poll() is None else None)
    late.daemon = True
    late.start()


@cache
def sandbox_problem() -> str:
    """Return why this machine cannot sandbox commands, with remedies, or "". Tested once."""
    with tempfile.TemporaryDirectory(prefix="check-", dir=work_folder()) as scratch:
        spec: dict[str, Any] = {"argv": ["true"], "env": {"PATH": "/usr/bin:/bin"}, "cwd": "/", "root": scratch}
        spec |= {"hostname": "check", "binds": [], "socket": "", "limits": {}, "tmpfs_bytes": 1024**2}
        try:
            process = launcher(spec)
        except OSError as error:
            return f"commands cannot be sandboxed here: {error}"
        limit = threading.Timer(CHECK_S, kill, [process])
        limit.start()
        assert process.stdout is not None and process.stdin is not None, "both are pipes"
        with process.stdout, process.stdin:
            output = process.stdout.read()
            process.wait()
        limit.cancel()
    if process.returncode == 0:
        return ""
    why = output.decode("utf-8", "replace").strip().removeprefix("[syncline] no sandbox: ")
    found = {name: _setting(name) for name in _SETTINGS}
    return refusal(why or f"exit code {process.returncode}", found, os.uname().release, _filtered())


_SETTINGS = {
    "kernel/unprivileged_userns_clone": ("0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    "user/max_user_namespaces": ("0", "sysctl -w user.max_user_namespaces=15000"),
    "kernel/apparmor_restrict_unprivileged_userns": (
        "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (or an AppArmor profile with `userns,` for "
        f"{sys.executable})",
    ),
}
"""Settings in ``/proc/sys``: the value that forbids user namespaces, and the remedy."""
OLDEST = (5, 12)
"""First Linux version that mounts by descriptor with attributes."""


def refusal(why: str, settings: Mapping[str, str], release: str, filtered: bool) -> str:
    """Return the machine's error and its remedies: ``settings`` are the kernel's (empty: no such setting),
    ``filtered``: this process runs under a seccomp filter."""
    ways = [way for name, (bad, way) in _SETTINGS.items() if settings.get(name) == bad]
    number = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    if number < OLDEST:
        ways.append(f"run Linux {OLDEST[0]}.{OLDEST[1]} or newer (this is {release})")
    if not ways and filtered:
        ways.append(
            "this runs in a container that forbids namespaces: start that with `--privileged`, or with "
            "`--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt "
            "systempaths=unconfined`"
        )
    if not ways:
        ways.append("allow unprivileged user namespaces (sysctl user.max_user_namespaces, AppArmor or SELinux rules)")
    ways.append("leave --run-commands out: commands are simulated then")
    ways.append(
        "or take the risk with --run-commands=unsandboxed: commands then run as you, with your files, processes, "
        "network and credentials, and without limits"
    )
    return f"commands cannot be sandboxed here: {why}; " + "; ".join(ways)


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""


def _filtered() -> bool:
    with contextlib.suppress(OSError):
        return "Seccomp:\t2" in Path("/proc/self/status").read_text()
    return False


def read_verdict(descriptor: int) -> str:
    """Return the limit that an ended sandbox exceeded, with figures, or "". Closes the descriptor."""
    if descriptor < 0:
        return ""
    said = os.read(descriptor, VERDICT_BYTES)
    os.close(descriptor)
    return said.decode("utf-8", "replace")
