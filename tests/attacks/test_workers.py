"""Programs of others that render or judge: what they can reach if a repository talks them into anything."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from syncline.base import landlock
from syncline.sources.errors import SourceError
from syncline.sources.workers.pool import RenderWorkers, WorkerLimits

needs_helm = pytest.mark.skipif(importlib.util.find_spec("helm_python") is None, reason="syncline[helm]")

TRIES = """
import json, os, socket, subprocess, sys
from syncline.base import landlock, seccomp
out, scratch = sys.argv[1:]
seccomp.restrict(families=())
confined = landlock.confine(landlock.programs(), [scratch])
ways = {
    "a file of the user": lambda: open(out + "/secret").read(),
    "a folder of the user": lambda: os.listdir(out),
    "a file of the system's settings": lambda: open("/etc/passwd").read(),
    "the environment of another process": lambda: open(f"/proc/{os.getppid()}/environ").read(),
    "the files of this process": lambda: os.listdir("/proc/self/fd"),
    "a new file": lambda: open(out + "/new", "w"),
    "a file emptied": lambda: open(out + "/secret", "r+").truncate(0),
    "a new folder": lambda: os.mkdir(out + "/folder"),
    "a link out of the scratch": lambda: (os.symlink(out, scratch + "/l"), open(scratch + "/l/secret").read()),
    "a hard link into the scratch": lambda: (os.link(out + "/secret", scratch + "/h"), open(scratch + "/h").read()),
    "a move into the scratch": lambda: os.rename(out + "/secret", scratch + "/m"),
    "a file removed": lambda: os.unlink(out + "/secret"),
    "a program of another folder": lambda: subprocess.run([out + "/program"], check=True),
    "a program that reads for it": lambda: subprocess.run(["/bin/cat", out + "/secret"], check=True),
    "a socket": lambda: socket.create_connection(("127.0.0.1", 9)),
    "a socket of this machine": lambda: socket.socket(socket.AF_UNIX),
}
through = []
for name, way in ways.items():
    try:
        way()
        through.append(name)
    except (OSError, subprocess.CalledProcessError):
        pass
open(scratch + "/ours", "w").write("ours")
print(json.dumps([confined, through, open(scratch + "/ours").read()]))
"""


def test_a_confined_program_reaches_its_scratch_and_nothing_else(tmp_path: Path) -> None:
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    out.mkdir()
    scratch.mkdir()
    (out / "secret").write_text("stolen")
    (out / "program").write_text("#!/bin/sh\n")
    (out / "program").chmod(0o755)
    run = [sys.executable, "-c", TRIES, str(out), str(scratch)]
    confined, through, ours = json.loads(subprocess.run(run, capture_output=True, check=True, text=True).stdout)
    if not confined:
        pytest.skip("this kernel has no Landlock")
    assert (through, ours) == ([], "ours")
    assert (out / "secret").read_text() == "stolen" and sorted(os.listdir(out)) == ["program", "secret"]


@needs_helm
def test_helm_loads_nothing_beside_the_scratch_of_its_task(tmp_path: Path) -> None:
    if not _has_landlock():
        pytest.skip("this kernel has no Landlock")
    workers = RenderWorkers(WorkerLimits(workers=1, wall_s=300))
    try:
        with workers.scratch() as scratch:
            for folder, words in ((tmp_path, "Chart.yaml file is missing"), (scratch, "")):
                (folder / "chart").mkdir()
                (folder / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 1.0.0\n")
                payload = {"chart": str(folder / "chart"), "name": "x", "namespace": "n", "values": "{}"}
                payload |= {"kube_version": "", "api_versions": [], "skip_crds": True}  # type: ignore[dict-item]
                try:
                    assert (workers.run("helm", payload, label="x"), words) == ([], "")
                except SourceError as error:
                    assert words and words in str(error)
    finally:
        workers.close()


def test_a_scratch_that_somebody_removed_is_made_again() -> None:
    workers = RenderWorkers(WorkerLimits(workers=1, wall_s=300))
    try:
        with workers.scratch() as first:
            pass
        assert not first.exists()
        first.parent.rmdir()
        with workers.scratch() as second:
            assert second.is_dir() and second.parent != first.parent
    finally:
        workers.close()
    assert not second.parent.exists()


def test_what_a_worker_may_read_is_programs_and_not_where_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    assert not {"", "/", str(tmp_path), str(Path.home())} & set(landlock.programs())


def _has_landlock() -> bool:
    code = "from syncline.base import landlock, seccomp; seccomp.restrict(); print(landlock.confine(['/usr']))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "True"
