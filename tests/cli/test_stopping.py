"""Ctrl-C and SIGTERM: prompt, without a traceback, with the code that scripts expect, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.conftest import Figure
from tests.oc import Oc

from syncline.cluster.machines.processes.launching import sandbox_problem

PROBLEM = sandbox_problem()
RUN = "import sys; from syncline.cli.main import main; sys.exit(main())"
LONGEST_S = 300
GRACE_S = 3600
PROMPT_S = 20.0
"""Generous: what is shown is that nothing waits for a grace period or a time-out of half a minute. On a busy machine
it takes longer, as the start did, which is twice added to it."""


class Served:
    """A command that serves, with a temporary directory of its own."""

    def __init__(self, folder: Path, *arguments: str, ready: str) -> None:
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.kubeconfig = folder / "kubeconfig"
        self.environ = {**os.environ, "TMPDIR": str(self.scratch), "SYNCLINE_HOME": str(folder / "home")}
        self.environ["KUBECONFIG"] = str(self.kubeconfig)
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        begun = time.monotonic()
        late = threading.Timer(LONGEST_S, self.process.kill)
        late.start()
        self.said = ""
        while ready not in self.said:
            line = self.process.stdout.readline()
            assert line, self.said
            self.said += line
        self.start_s = time.monotonic() - begun
        late.cancel()

    def stop(self, number: int) -> tuple[int, str]:
        """Exit code and what it said from then on."""
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=PROMPT_S + 2 * self.start_s)
        return self.process.returncode, said

    def oc(self, *argv: str, stdin: str = "") -> str:
        return Oc(self.kubeconfig)(*argv, stdin=stdin)


SERVERS = {
    "up": (("up", "--memory", "--listen", "127.0.0.1:0"), "Ctrl-C stops"),
    "apiserver": (("apiserver", "--listen", "127.0.0.1:0"), "Ctrl-C stops"),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: str(number.name))
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_is_told_to_stop_ends_well(tmp_path: Path, name: str, number: int) -> None:
    arguments, ready = SERVERS[name]
    served = Served(tmp_path, *arguments, "--kubeconfig-out", str(tmp_path / "kubeconfig"), ready=ready)
    assert served.stop(number) == (0, "stopping\n")
    assert list(served.scratch.iterdir()) == []


def test_controllers_that_are_told_to_stop_end_well(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "controller").mkdir()
    kubeconfig = tmp_path / "kubeconfig"
    cluster = Served(
        tmp_path / "cluster",
        "apiserver",
        "--listen",
        "127.0.0.1:0",
        "--kubeconfig-out",
        str(kubeconfig),
        ready="Ctrl-C",
    )
    try:
        controller = Served(
            tmp_path / "controller", "controller", "--kubeconfig", str(kubeconfig), ready="Ctrl-C hands over"
        )
        code, said = controller.stop(signal.SIGINT)
        assert (code, said.splitlines()[-1]) == (0, "handed over"), said
        assert "Traceback" not in said, said
        assert list(controller.scratch.iterdir()) == []
    finally:
        assert cluster.stop(signal.SIGTERM) == (0, "stopping\n")


@pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)
def test_pods_that_do_not_want_to_stop_are_no_reason_to_wait(tmp_path: Path, figure: Figure) -> None:
    name = f"stubborn-{os.getpid()}"
    arguments = ("up", "--memory", "--listen", "127.0.0.1:0", "--run-commands")
    served = Served(tmp_path, *arguments, "--kubeconfig-out", str(tmp_path / "kubeconfig"), ready="Ctrl-C stops")
    stays = "trap '' TERM INT HUP; while :; do sleep 0.1; done"
    script = f'setsid sh -c "{stays}" & touch /tmp/up; {stays}'
    env = [{"name": "NAME", "value": name}]
    container = {"name": "c", "image": "none", "command": ["sh", "-c", script, name], "env": env}
    container["readinessProbe"] = {"exec": {"command": ["test", "-f", "/tmp/up"]}, "periodSeconds": 1}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": GRACE_S, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stubborn"}, "spec": spec}
    served.oc("wait", "serviceaccount/default", "--for=create", f"--timeout={LONGEST_S}s")
    served.oc("create", "-f", "-", stdin=json.dumps(pod))
    served.oc("wait", "pod/stubborn", "--for=condition=Ready", f"--timeout={LONGEST_S}s")
    assert _processes_with(name)
    before = os.times().elapsed
    code, said = served.stop(signal.SIGINT)
    took_s = os.times().elapsed - before
    assert (code, said) == (0, "stopping\n")
    assert _processes_with(name) == []
    assert list(served.scratch.iterdir()) == []
    figure("from Ctrl-C to the end, with a pod that ignores signals", f"{took_s:.2f} s")


def _processes_with(word: str) -> list[str]:
    """Command lines and variables on this machine that hold ``word``."""
    found = []
    for entry in Path("/proc").iterdir():
        for name in ("cmdline", "environ") if entry.name.isdigit() else ():
            try:
                text = (entry / name).read_bytes()
            except OSError:
                continue
            if word.encode() in text:
                found.append(text.decode("utf-8", "replace"))
    return found
