"""Runs git as a child process, the one way ``sources/git.py`` does it.

Arguments go in, bytes come out. Children get no terminal, no hooks, no credentials of ours beyond the administrator's
own git and ssh configuration; their time and their output are bounded, and a timeout ends their children too.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from syncline.sources.errors import Problem, SourceError, mask_credentials

__all__ = ["MAX_OUTPUT", "GitAnswer", "child_environment", "run_git"]

MAX_OUTPUT = 256 * 1024 * 1024
"""Bytes of one answer: references of the largest repositories, or all manifests of one folder."""

_MAX_COMPLAINT = 8192
"""Bytes of git's complaint that are looked at."""

_ALLOWED_PROTOCOLS = "file:http:https:ssh"
"""``file`` is here for the administrator's own ``url.<base>.insteadOf``; repository addresses are checked before."""

_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|XDG_CONFIG_HOME|SSH_AUTH_SOCK|SSL_CERT_(FILE|DIR)|GIT_CONFIG_.*|GIT_SSL_.*"
    r"|GIT_SSH(_COMMAND|_VARIANT)?|GIT_EXEC_PATH|(?i:https?_proxy|all_proxy|no_proxy)|SYSTEMROOT"
)

_SAFE_CONFIG = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never"),
    *("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false", "-c", "fetch.recurseSubmodules=false"),
    *("-c", "advice.detachedHead=false", "-c", "core.quotePath=false", "-c", "fetch.writeCommitGraph=false"),
)

_SAYS_NOTHING = (
    "fatal: Could not read from remote repository",
    "Please make sure you have",
    "and the repository exists",
)


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """Exit code, standard output, and what git complained about in one line without credentials."""

    code: int
    output: bytes
    complaint: str


def run_git(
    arguments: Sequence[str],
    *,
    directory: Path | None = None,
    stdin: bytes = b"",
    timeout_s: float,
    label: str,
    environment: Mapping[str, str] | None = None,
    whole_complaint: bool = False,
) -> GitAnswer:
    """Run ``git ARGUMENTS``; a failed command is an answer, not an exception.

    Raises :class:`SourceError` if git is missing, takes longer than ``timeout_s`` or answers more than
    :data:`MAX_OUTPUT`. ``label`` is what the message calls the work; ``environment`` is
    what this one child gets beyond the usual. ``whole_complaint``: all it complained, not the telling line.
    """
    place = ["-C", str(directory)] if directory is not None else []
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as complaints:
        given.write(stdin)
        given.seek(0)
        try:
            child = subprocess.Popen(
                ["git", *_SAFE_CONFIG, *place, *arguments],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=child_environment() | dict(environment or {}),
                start_new_session=True,
            )
        except OSError as error:
            raise SourceError(Problem.UNREACHABLE, f"{label}: git cannot be started ({error.strerror})") from None
        output = _drain(child, timeout_s, label)
        complaints.seek(0)
        text = complaints.read(_MAX_COMPLAINT).decode("utf-8", "replace")
    return GitAnswer(child.returncode, output, text if whole_complaint else _summary(text))


def _drain(child: subprocess.Popen[bytes], timeout_s: float, label: str) -> bytes:
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _end(child)

    timer = threading.Timer(timeout_s, expire)
    timer.daemon = True
    timer.start()
    try:
        assert child.stdout is not None
        with child.stdout as stream:
            output = stream.read(MAX_OUTPUT + 1)
            if len(output) > MAX_OUTPUT:
                _end(child)
        child.wait()
    except BaseException:
        _end(child)
        child.wait()
        raise
    finally:
        timer.cancel()
    if expired.is_set():
        raise SourceError(Problem.UNREACHABLE, f"{label}: no answer within {timeout_s:g} seconds")
    if len(output) > MAX_OUTPUT:
        raise SourceError(Problem.TOO_LARGE, f"{label}: the answer is larger than {MAX_OUTPUT} bytes")
    return output


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child with all it started; it leads a process group of its own."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def child_environment() -> dict[str, str]:
    """What git and ssh may know of the process that starts them."""
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    kept.setdefault("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
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
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1:  # after what ssh or the host said, git adds this, which says less
        lines = [line for line in lines if not line.startswith(_SAYS_NOTHING)] or lines
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:"))] or lines[-1:]
    return mask_credentials(telling[0].removeprefix("fatal: ").removeprefix("error: ")) if telling else ""
