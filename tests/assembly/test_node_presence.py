"""Machines without a kubelet say that they are there; the service of systemd that makes them do so."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from syncline.base.clock import SystemClock, format_time
from syncline.cli.main import main
from syncline.control.plan import Apply, Create, Plan, SetStatus
from syncline.hosts.linuxhost import LinuxHost
from syncline.hosts.nodepresence import NO_KUBELET, MachineFacts, ObservedPresence, plan_presence
from syncline.hosts.nodeservice import Service, unit_text
from syncline.kube.objects import Obj

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FACTS = MachineFacts("boot-1", "m", "6.1", "Debian", "amd64", ("10.0.0.7",))
SEEN = ObservedPresence("edge", None, FACTS, {"node-role.kubernetes.io/worker": ""})


def actions(plan: Plan) -> list[Any]:
    return [one for step in plan.steps for one in step]


def told(observed: ObservedPresence, now: datetime = NOW) -> Obj:
    """The node as it is after one pass."""
    node = observed.node or {}
    for action in actions(plan_presence(observed, now)):
        if isinstance(action, Create):
            node = action.obj
        if isinstance(action, SetStatus):
            node = node | {"status": action.new}
    return node


def test_a_machine_without_a_node_makes_one_that_takes_no_pods() -> None:
    made = told(SEEN)
    assert made["metadata"]["labels"]["node-role.kubernetes.io/worker"] == ""
    assert made["metadata"]["labels"]["kubernetes.io/arch"] == "amd64"
    assert made["spec"]["taints"] == [{"key": NO_KUBELET, "effect": "NoSchedule"}]


def test_it_tells_how_it_is_once_and_renews_its_lease_every_time() -> None:
    node = told(replace(SEEN, node=told(SEEN)))
    assert node["status"]["nodeInfo"]["bootID"] == "boot-1"
    assert node["status"]["addresses"][0] == {"type": "InternalIP", "address": "10.0.0.7"}
    plan = plan_presence(replace(SEEN, node=node), NOW + timedelta(seconds=10))
    (lease,) = actions(plan)
    assert isinstance(lease, Apply)
    assert lease.obj["spec"]["renewTime"].startswith("2026-01-01T00:00:10")


def test_a_boot_is_told_and_a_node_that_was_given_up_is_ready_again() -> None:
    node = told(replace(SEEN, node=told(SEEN)))
    gone = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": "x"}
    other = {"type": "Shelved", "status": "False"}
    lost = [{"type": kind, "status": "Unknown"} for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    node["status"] = node["status"] | {"conditions": [other, gone, *lost]}
    later = NOW + timedelta(minutes=2)
    again = told(replace(SEEN, node=node, facts=replace(FACTS, boot_id="boot-2")), later)
    assert again["status"]["nodeInfo"]["bootID"] == "boot-2"
    assert again["status"]["conditions"][0] == other
    assert [each["status"] for each in again["status"]["conditions"][1:4]] == ["False"] * 3
    ready = again["status"]["conditions"][4]
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", format_time(later))


def test_labels_are_the_clusters_to_change() -> None:
    node = told(SEEN)
    node["metadata"]["labels"].pop("node-role.kubernetes.io/worker")
    assert "labels" not in str(actions(plan_presence(replace(SEEN, node=node), NOW)))


# -- the service ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "line"),
    [
        (Service("/opt/syncline", "edge"), "/opt/syncline node-agent --kubeconfig {} --node edge"),
        (Service("/a b/s"), '"/a b/s" node-agent --kubeconfig {}'),
        (Service("/s", "50%$x"), "/s node-agent --kubeconfig {} --node 50%%$$x"),
        (
            Service("/s", "", True, {"b": "", "a": "1"}),
            "/s node-agent --kubeconfig {} --register --label a=1 --label b=",
        ),
    ],
)
def test_the_unit_runs_it_with_these_words(service: Service, line: str) -> None:
    wanted = line.format("/etc/syncline/node-agent.kubeconfig")
    assert f"\nExecStart={wanted}\n" in unit_text(service)


def test_it_is_installed_and_enabled_below_a_root(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        '{"clusters":[{"name":"c","cluster":{"server":"https://h"}}],"users":[{"name":"u","user":{"token":"t"}}],'
        '"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}'
    )
    root = tmp_path / "root"
    root.mkdir()
    words = ["node-agent", "install", "--program", "/opt/s", "--root", str(root)]
    assert main(words) == 2  # no kubeconfig anywhere
    assert main([*words, "--kubeconfig", str(kubeconfig)]) == 0
    put = root / "etc/syncline/node-agent.kubeconfig"
    assert put.read_bytes() == kubeconfig.read_bytes()
    assert (put.stat().st_mode & 0o777, put.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert (root / "etc/systemd/system/multi-user.target.wants/syncline-node-agent.service").is_symlink()
    assert LinuxHost(root, SystemClock()).run(["systemctl", "is-enabled", "syncline-node-agent.service"]).ok
    assert main([*words, "--register"]) == 0  # it is there from before


def test_a_kubeconfig_that_names_files_of_this_machine_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    (tmp_path / "t").write_text("token")
    kubeconfig.write_text(
        "clusters: [{name: c, cluster: {server: https://h}}]\nusers: [{name: u, user: {tokenFile: t}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
    )
    words = ["node-agent", "install", "--program", "/s", "--root", str(tmp_path), "--kubeconfig", str(kubeconfig)]
    assert main(words) == 2
    assert "tokenFile names a file of this machine; `kubectl config view --flatten --raw`" in capsys.readouterr().err
