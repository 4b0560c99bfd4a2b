"""``syncline node-agent`` against a served cluster, on a tree of its own; and a tree without any cluster."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live import START_S, Served, reached, served_cluster

from syncline.base.clock import SystemClock
from syncline.hosts.linuxhost import LinuxHost, LinuxHosts
from syncline.kube.client import Request

MCO = "/apis/machineconfiguration.openshift.io/v1"
NODE = "/api/v1/nodes/edge"
RUN = "import sys; from syncline.cli.main import main; sys.exit(main(sys.argv[1:]))"
PREFIX = "machineconfiguration.openshift.io"


def syncline(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *words], capture_output=True, text=True, timeout=2 * START_S, check=False
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """As little of a machine as the agent needs."""
    root = tmp_path / "tree"
    for path, text in {
        "etc/os-release": "ID=debian\n",
        "etc/passwd": "root:x:0:0::/root:/bin/sh\ncore:x:1000:1000::/home/core:/bin/sh\n",
        "etc/group": "root:x:0:\ncore:x:1000:\n",
        "etc/shadow": "root:*:1::::::\ncore:*:1::::::\n",
        "usr/lib/systemd/system/chronyd.service": "[Service]\nExecStart=/x\n[Install]\nWantedBy=multi-user.target\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "home").mkdir()
    return root


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with served_cluster(tmp_path) as cluster:
        work = asyncio.run_coroutine_threadsafe(cluster.cluster.start_machine_config("argocd"), cluster.loop)
        work.result(START_S)
        yield cluster


def _send(served: Served, verb: str, path: str, body: Any) -> Any:
    async def send() -> Any:
        answer = served.cluster.core.transport(judged=False).send(Request(verb, path, body=body))
        return answer.or_raise()

    return asyncio.run_coroutine_threadsafe(send(), served.loop).result(START_S)


def machine_config(name: str, files: dict[str, str], **config: Any) -> dict[str, Any]:
    storage = {"files": [{"path": path, "contents": {"source": f"data:,{text}"}} for path, text in files.items()]}
    return {
        "apiVersion": f"{PREFIX}/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {f"{PREFIX}/role": "worker"}},
        "spec": {"config": {"ignition": {"version": "3.5.0"}, "storage": storage, **config}},
    }


def test_a_node_gets_its_files_reboots_and_is_told_of_drift(served: Served, tree: Path) -> None:
    """The cluster renders, drains and uncordons; the agent does the rest in three runs of one pass to rest."""
    labels = {"node-role.kubernetes.io/worker": ""}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "edge", "labels": labels}}
    _send(served, "POST", "/api/v1/nodes", node)
    # Nobody tells the cluster again that it lives, however long the agent takes.
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": "2099-01-01T00:00:00Z"}
    # Without a resourceVersion: the cluster's controllers write to a new node at the same time.
    _send(served, "PUT", f"{NODE}/status", node | {"status": {"conditions": [ready]}})
    agent = ("node-agent", "--kubeconfig", str(served.kubeconfig), "--node", "edge", "--root", str(tree))
    once = (*agent, "--offline", "--once", "--patience", str(START_S))
    born = syncline(*once)
    assert born.returncode == 0, born.stdout + born.stderr
    first = json.loads((tree / "etc/machine-config-daemon/currentconfig").read_text())["metadata"]["name"]
    assert f"edge has {first}" in born.stdout

    _send(served, "POST", f"{MCO}/machineconfigs", machine_config("99-motd", {"/etc/motd": "hello"}))
    target = _targeted(served, first)
    before = sorted(tree.rglob("*"))
    dry = syncline(*agent, "--offline", "--dry-run", "--patience", str(START_S))
    assert dry.returncode == 0, dry.stdout + dry.stderr
    assert "write /etc/motd mode 0644 owner 0:0, 5 bytes" in dry.stdout
    assert "reboot edge" in dry.stdout
    assert sorted(tree.rglob("*")) == before

    done = syncline(*once)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tree / "etc/motd").read_text() == "hello"
    assert "skipped: reboot" in done.stdout and f"edge has {target}" in done.stdout

    (tree / "etc/motd").write_text("mine")
    drifted = syncline(*once)
    assert drifted.returncode == 1
    assert 'content mismatch for file "/etc/motd"' in drifted.stdout


def _targeted(served: Served, first: str) -> str:
    """Waits until the pool asks the node for another config than ``first``."""

    transport = served.cluster.core.transport(judged=False)

    def target() -> str:
        notes = transport.send(Request("GET", NODE)).or_raise()["metadata"].get("annotations") or {}
        found = str(notes.get(f"{PREFIX}/desiredConfig", ""))
        return "" if found == first else found

    return asyncio.run_coroutine_threadsafe(reached(transport, "/api/v1/nodes", target), served.loop).result(
        2 * START_S
    )


def test_a_tree_is_brought_to_a_file_and_to_the_next_one(tree: Path, tmp_path: Path) -> None:
    units = {"units": [{"name": "chronyd.service", "enabled": True}]}
    users = {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA me"], "passwordHash": "$6$x"}]}
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(json.dumps(machine_config("a", {"/etc/a": "1", "/opt/b": "2"}, systemd=units, passwd=users)))
    second.write_text(json.dumps(machine_config("b", {"/etc/a": "3"}, systemd=units, passwd=users)))

    dry = syncline("node-agent", "apply", "-f", str(first), "--root", str(tree), "--dry-run")
    assert "write /opt/b mode 0644 owner 0:0, 1 bytes" in dry.stdout, dry.stderr
    assert "run systemctl enable chronyd.service" in dry.stdout
    assert "run usermod -p … core" in dry.stdout and "$6$x" not in dry.stdout
    assert not (tree / "etc/a").exists()

    done = syncline("node-agent", "apply", "-f", str(first), "--root", str(tree))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tree / "opt/b").read_text() == "2"
    assert (tree / "etc/systemd/system/multi-user.target.wants/chronyd.service").is_symlink()
    assert (tree / "home/core/.ssh/authorized_keys.d/ignition").read_text() == "ssh-ed25519 AAAA me\n"
    assert "core:$6$x:" in (tree / "etc/shadow").read_text()

    again = syncline("node-agent", "apply", "-f", str(second), "--root", str(tree))
    assert again.returncode == 0, again.stdout + again.stderr
    assert (tree / "etc/a").read_text() == "3"
    assert not (tree / "opt/b").exists()


def test_a_rehearsal_may_look_on_while_an_agent_works_there(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(json.dumps(machine_config("a", {"/etc/a": "1"})))
    working = LinuxHosts("edge", LinuxHost(tree, SystemClock(), offline=True))
    working.lock()
    words = ("node-agent", "apply", "-f", str(tmp_path / "a.yaml"), "--root", str(tree))
    looked, tried = syncline(*words, "--dry-run"), syncline(*words)
    working.unlock()
    assert (looked.returncode, tried.returncode) == (0, 1)
    assert "another agent works there; end it first" in tried.stderr


def test_a_file_that_is_no_machine_config_is_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")
    refused = syncline("node-agent", "apply", "-f", str(tmp_path / "pod.yaml"), "--root", str(tree))
    assert refused.returncode == 2
    assert "found Pod; give one MachineConfig" in refused.stderr


def test_a_first_boot_is_finished_before_the_machine_joins(tree: Path) -> None:
    """Upstream's machine-config-daemon-firstboot.service, on the disk of a system of images that does not run."""
    (tree / "etc/os-release").write_text("ID=rhel\nVARIANT_ID=coreos\n")
    left = tree / "etc/ignition-machine-config-encapsulated.json"
    spec = {"osImageURL": "quay.io/os@sha256:1", "kernelArguments": ["audit=0"]}
    empty = {"config": {"ignition": {"version": "3.5.0"}}}
    left.write_text(json.dumps({"metadata": {"name": "rendered-worker-1"}, "spec": spec | empty}))
    command = ("node-agent", "firstboot", "--root", str(tree), "--offline")

    dry = syncline(*command, "--dry-run")
    assert dry.returncode == 0, dry.stdout + dry.stderr
    assert "run rpm-ostree rebase --experimental ostree-unverified-registry:quay.io/os@sha256:1" in dry.stdout
    assert "run rpm-ostree kargs --append=audit=0" in dry.stdout
    assert left.exists()

    done = syncline(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped: rpm-ostree kargs --append=audit=0" in done.stdout and "skipped: reboot" in done.stdout
    assert not left.exists() and left.with_name(f"{left.name}.bak").exists()

    assert "end of the first boot" in syncline(*command).stdout, "it has booted anew"
    assert "this was no first boot" in syncline(*command).stdout

    left.write_text("{")
    broken = syncline(*command)
    assert broken.returncode == 1 and "failed to parse MachineConfig" in broken.stderr
