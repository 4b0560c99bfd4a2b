"""A cluster killed with SIGKILL while pods use Secrets: nothing of them stays on the disk, nor after the next start."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.oc import Oc

from syncline.base.scratch import PREFIX
from syncline.cluster.machines.processes.launching import sandbox_problem

CANARY = "c4n4ry-0f-4-s3cret"
PATIENCE_S = 300
MAIN = "import sys; from syncline.cli.main import main; sys.exit(main())"
VOLUMES = [
    {"name": "s", "secret": {"secretName": "s"}},
    {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}, {"serviceAccountToken": {"path": "token"}}]}},
]


@contextmanager
def cluster(folder: Path, commands: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own, whose temporary files lie below ``folder``; killed at the end."""
    temporary, config = folder / "tmp", folder / "kubeconfig"
    temporary.mkdir(exist_ok=True)
    config.unlink(missing_ok=True)
    command = [sys.executable, "-c", MAIN, "apiserver", "--listen", "127.0.0.1:0", "--nodes", "1"]
    command += ["--data", str(folder / "data"), "--run-commands", commands, "--kubeconfig-out", str(config)]
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(temporary)}, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and b"serving" in process.stdout.readline()
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def oc(folder: Path, *argv: str, stdin: object = None) -> str:
    return Oc(folder / "kubeconfig")(*argv, stdin=json.dumps(stdin))


def holding(folder: Path) -> list[Path]:
    """Files with what is secret, the cluster's own data left out."""
    found = []
    for top in (folder / "tmp", folder / "data" / "scratch"):
        for path in top.rglob("*"):
            try:
                found += [path] if CANARY.encode() in path.read_bytes() else []
            except OSError:
                continue  # a socket, or gone meanwhile
    return found


def ours(place: Path) -> set[str]:
    return {each.name for each in place.iterdir() if each.name.startswith(PREFIX)}


@pytest.mark.parametrize("commands", ["sandboxed", "unsandboxed"])
def test_no_secret_stays_in_the_temporary_folder(tmp_path: Path, commands: str) -> None:
    if commands == "sandboxed" and (problem := sandbox_problem()):
        pytest.skip(problem)
    read = "cat /s/a /p/a" if commands == "sandboxed" else "cat volumes/s/a volumes/p/a"
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("s", "p")]
    command = ["sh", "-c", f"{read}; sleep 60"]
    container = {"name": "c", "image": "none", "command": command, "volumeMounts": mounts}
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": VOLUMES}
    with cluster(tmp_path, commands):
        oc(tmp_path, "wait", "serviceaccount/default", "--for=create", f"--timeout={PATIENCE_S}s")
        data = {"a": base64.b64encode(CANARY.encode()).decode()}
        oc(
            tmp_path,
            "create",
            "-f",
            "-",
            stdin={"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data},
        )
        oc(
            tmp_path,
            "create",
            "-f",
            "-",
            stdin={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec},
        )
        oc(tmp_path, "wait", "pod/p", "--for=condition=Ready", f"--timeout={PATIENCE_S}s")
        until = time.monotonic() + PATIENCE_S
        while (said := oc(tmp_path, "logs", "p").strip()) != 2 * CANARY:
            assert time.monotonic() < until, said
    left = holding(tmp_path)
    assert not [path for path in left if path.is_relative_to(tmp_path / "tmp")]
    assert bool(left) == (commands == "unsandboxed"), "a process without a sandbox has its files below the data"
    assert (tmp_path / "data" / "scratch").exists() == bool(left)
    folders = ours(tmp_path / "tmp")
    with cluster(tmp_path, "sandboxed" if commands == "sandboxed" else "off"):
        assert not holding(tmp_path)
        assert not folders & ours(tmp_path / "tmp")
