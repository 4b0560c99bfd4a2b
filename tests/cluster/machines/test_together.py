"""What pods take from the API and from each other: last in line for the processors, and one bound over all of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from syncline.base.priority import LAST, RENDERING
from syncline.cluster.machines.processes.launching import end, launcher, sandbox_problem
from syncline.cluster.machines.sandbox.board import FIGURES, Board
from syncline.sources.errors import SourceError
from syncline.sources.workers.pool import RenderWorkers

PROBLEM = sandbox_problem()
sandboxed = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)
PATIENCE_S = 300
IDLE = 5
"""SCHED_IDLE, as ``/proc`` has it."""


def started(folder: Path, script: str, **more: Any) -> subprocess.Popen[bytes]:
    root = folder / f"root-{len(list(folder.iterdir()))}"
    root.mkdir()
    spec = {"argv": ["sh", "-c", script], "env": {"PATH": "/usr/bin:/bin"}, "cwd": "/", "root": str(root)}
    spec |= {"hostname": "x", "binds": [], "socket": "", "port": 0, "limits": {}, "tmpfs_bytes": 1 << 20}
    return launcher(spec | more)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Its exit code and what it said; killed when it takes too long."""
    late = threading.Timer(PATIENCE_S, process.kill)
    late.start()
    assert process.stdout is not None and process.stdin is not None
    said = process.stdout.read().decode()
    process.wait()
    late.cancel()
    process.stdin.close()
    process.stdout.close()
    return process.returncode, said


@sandboxed
def test_commands_are_last_in_line_and_cannot_step_forward(tmp_path: Path) -> None:
    script = "cut -d' ' -f19,41 /proc/self/stat; renice -n 0 -p $$ >/dev/null 2>&1; cut -d' ' -f19,41 /proc/self/stat"
    assert ended(started(tmp_path, script)) == (0, 2 * f"{LAST} {IDLE}\n")
    if shutil.which("ionice"):
        assert ended(started(tmp_path, "ionice -p $$")) == (0, "idle\n")


@sandboxed
@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel does not share by session")
def test_each_session_of_a_command_gets_the_least_share_of_the_processors(tmp_path: Path) -> None:
    """Where the kernel shares by session first, a niceness counts only against the own session."""
    lowered = f"until grep -q 'nice {LAST}$' /proc/self/autogroup; do sleep 0.05; done; echo lowered"
    assert ended(started(tmp_path, f'{lowered}; setsid -w sh -c "{lowered}"')) == (0, 2 * "lowered\n")


@pytest.mark.parametrize(
    ("lines", "limits", "ends"),
    [
        ({0: (5, 0, 0), 1: (4, 0, 0)}, {"processes": 9}, None),
        ({0: (6, 0, 0), 1: (4, 0, 0)}, {"processes": 9}, 0),
        ({0: (4, 0, 0), 7: (6, 0, 0)}, {"processes": 9}, 7),
        ({3: (5, 0, 0), 4: (5, 0, 0)}, {"processes": 9}, 3),
        ({0: (9, 10, 0), 1: (1, 90, 0)}, {"processes": 10, "memory_bytes": 99}, 1),
        ({0: (1, 1, 900), 1: (1, 1, 200)}, {"open_files": 1000}, 0),
        ({0: (1000, 1, 1)}, {}, None),
    ],
)
def test_of_all_the_one_that_uses_most_ends(
    lines: dict[int, tuple[int, ...]], limits: dict[str, int], ends: int | None
) -> None:
    descriptor = Board.made()
    board, other = Board(descriptor), Board(descriptor)
    os.close(descriptor)
    for line, figures in lines.items():
        other.write(line, figures)
    assert [line for line in lines if board.over(line, limits)] == ([] if ends is None else [ends])
    for line in lines:
        board.write(line)
    assert not any(board.over(line, dict.fromkeys(FIGURES, 0)) for line in lines), "what has ended counts no more"


@sandboxed
def test_many_processes_of_one_container_do_not_end_another(tmp_path: Path) -> None:
    board = Board.made()
    together: dict[str, Any] = {"board": board, "together": {"processes": 30}}
    try:
        small = started(tmp_path, "echo here; sleep 600", line=0, **together)
        assert small.stdout is not None and small.stdout.readline() == b"here\n"
        code, said = ended(started(tmp_path, "for i in $(seq 40); do sleep 600 & done; wait", line=1, **together))
        assert code == 137 and "it used too much processes: " in said and ", all containers " in said
        assert small.poll() is None
        end(small)
        ended(small)
    finally:
        os.close(board)


@sandboxed
@pytest.mark.skipif(shutil.which("setsid") is None, reason="setsid is not installed")
def test_sessions_are_bounded_since_each_may_count_as_much_as_the_api(tmp_path: Path) -> None:
    script = "for i in $(seq 60); do setsid sleep 600 & done; wait"
    code, said = ended(started(tmp_path, script, whole={"processes": 500}))
    assert code == 137 and "it used too much sessions: " in said


@sandboxed
def test_open_files_of_a_container_are_bounded(tmp_path: Path) -> None:
    if not os.stat("/proc/self/fd").st_size:
        pytest.skip("this kernel does not count open files (Linux 6.2 or newer does)")
    script = "for i in $(seq 30); do sleep 600 3</dev/null 4</dev/null 5</dev/null & done; wait"
    code, said = ended(started(tmp_path, script, whole={"open_files": 100}))
    assert code == 137 and "it used too much open files: " in said


def test_render_workers_step_back_behind_the_api() -> None:
    workers = RenderWorkers()
    with contextlib.suppress(SourceError):  # whatever it says to nothing: it has begun
        workers.run("butane", {}, label="x")
    [child] = workers._idle
    assert os.getpriority(os.PRIO_PROCESS, child.pid) >= RENDERING
    assert os.getsid(child.pid) == os.getsid(0), "its niceness counts only within one session"
    workers.close()
