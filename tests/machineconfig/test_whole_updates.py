"""Laws of a whole update that no recording shows; each is what upstream's ``update`` did when it was given the same."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.machineconfig.memory_host import MemoryHost
from tests.machineconfig.recordings import same_text
from tests.machineconfig.test_update_recorded import OneHost, Simulation

from syncline.hosts.nodeagent import handle_now
from syncline.kube.objects import Obj, annotations_of
from syncline.machineconfig.agent.handler import HostHandler
from syncline.machineconfig.agent.steps import WriteFiles
from syncline.machineconfig.names import DESIRED_DRAIN, LAST_DRAIN, REASON, STATE

OLD, NEW, IMAGE = "rendered-worker-aaaa", "rendered-worker-bbbb", "quay.io/os@sha256:11"
ROLE, CA = "node-role.kubernetes.io/worker", "/etc/kubernetes/kubelet-ca.crt"
CLEAN = "rpm-ostree cleanup -p"
BEGUN = "Normal AddSigtermProtection Adding SIGTERM protection"
SKIPPED = (
    "Normal OSUpgradeSkipped OS upgrade skipped; "
    "new MachineConfig ({}) has same OS image ({}) as old MachineConfig ({})"
)

USERS = (
    {"path": "/etc/passwd", "text": "core:x:1000:1000::/home/core:/bin/bash\n"},
    {"path": "/etc/group", "text": "core:x:1000:\n"},
    {"path": "/home/core", "type": "dir", "mode": "0700", "uid": 1000, "gid": 1000},
)


def file(path: str, text: str) -> Obj:
    return {"path": path, "contents": {"source": f"data:,{text}"}, "mode": 420}


def config(name: str, *files: Obj, **spec: object) -> Obj:
    ignition = {"ignition": {"version": "3.5.0"}, "storage": {"files": list(files)}}
    return {"metadata": {"name": name}, "spec": {"config": ignition, "osImageURL": IMAGE, **spec}}


def config_files(config: Obj) -> list[Obj]:
    return list(config["spec"]["config"]["storage"]["files"])


def pool(name: str) -> Obj:
    return {"metadata": {"name": name}, "spec": {"nodeSelector": {"matchLabels": {ROLE: ""}}}}


def update(
    old: Obj,
    new: Obj,
    *,
    notes: Obj | None = None,
    policy: Obj | None = None,
    fail: Sequence[str] = (),
    pools: Sequence[str] = ("worker",),
) -> Simulation:
    """``policy``: what a changed ``/etc/x`` asks for."""
    drained = {DESIRED_DRAIN: f"uncordon-{OLD}", LAST_DRAIN: f"uncordon-{OLD}"}
    machine = "machineconfiguration.openshift.io/"
    said = {f"{machine}currentConfig": OLD, f"{machine}desiredConfig": NEW, STATE: "Done", REASON: "", **drained}
    sim = Simulation(
        {
            "node": {"metadata": {"name": "node-0", "labels": {ROLE: ""}, "annotations": said | (notes or {})}},
            "pools": [pool(name) for name in pools],
            "old": old,
            "new": new,
            "policy": {"files": [{"path": "/etc/x", "actions": [policy]}]} if policy else {},
            "tree": [*USERS, *({"path": each["path"], "text": "?"} for each in config_files(old))],
            "bootedImage": IMAGE,
            "shadow": {"core": "*"},
            "failCommands": list(fail),
        }
    )
    sim.run()
    return sim


def said(sim: Simulation, kind: str) -> list[str]:
    return [entry[kind] for entry in sim.log if kind in entry]


NOTHING = {"type": "None"}
X = config(NEW, file("/etc/x", "new"))


def test_a_kernel_that_is_not_the_image_s_own_is_staged_with_every_update() -> None:
    sim = update(config(OLD, kernelType="realtime"), config(NEW, file("/etc/x", "n"), kernelType="realtime"))
    events = said(sim, "event")
    assert said(sim, "command")[0] == CLEAN
    assert "Normal OSUpdateStarted Updating to a target config with realtime kernel" in events
    assert SKIPPED.format(NEW, IMAGE, OLD) in events and "Normal OSUpdateStaged Changes to OS staged" in events


def test_an_update_of_files_alone_stages_nothing() -> None:
    sim = update(config(OLD), X, policy=NOTHING)
    assert said(sim, "command") == [] and not any("OSUp" in event for event in said(sim, "event"))


def test_kernel_arguments_that_cannot_be_staged_leave_nothing_staged() -> None:
    sim = update(config(OLD), config(NEW, kernelArguments=["a"]), fail=["rpm-ostree kargs"])
    assert said(sim, "command") == [CLEAN, "rpm-ostree kargs --append=a", CLEAN]
    assert sim.error == "error running rpm-ostree kargs --append=a: Failed: rpm-ostree kargs --append=a: exit status 1"


def test_a_system_that_was_staged_in_vain_is_dropped() -> None:
    sim = update(config(OLD), config(NEW, kernelArguments=["a"]), fail=["systemd-run"])
    assert said(sim, "command")[:2] == [CLEAN, "rpm-ostree kargs --append=a"] and said(sim, "command")[-1] == CLEAN


def test_keys_are_taken_back_where_the_password_cannot_be_set() -> None:
    old, new = config(OLD), config(NEW)
    for each, key in ((old, "ann"), (new, "bob")):
        each["spec"]["config"]["passwd"] = {"users": [{"name": "core", "sshAuthorizedKeys": [key]}]}
    new["spec"]["config"]["passwd"]["users"][0]["passwordHash"] = "$6$x"
    sim = update(old, new, fail=["usermod"])
    assert sim.error is not None and sim.error.startswith("failed to reset password for core")
    assert sim.hosts.machine.read("/home/core/.ssh/authorized_keys.d/ignition") == b"ann\n"


def test_a_config_that_cannot_be_read_is_told_before_a_node_of_two_pools() -> None:
    broken = config(NEW) | {"spec": {"config": {"ignition": {"version": "9.0.0"}}}}
    sim = update(config(OLD), broken, pools=("infra", "gpu"))
    assert sim.error is not None and sim.error.startswith("could not calculate config diff: parsing new Ignition")
    assert BEGUN not in said(sim, "event")


def test_a_node_that_was_drained_before_says_that_its_update_begins() -> None:
    drain = f"drain-{NEW}"
    for state in ("Working", "Degraded"):
        sim = update(config(OLD), X, notes={STATE: state, DESIRED_DRAIN: drain, LAST_DRAIN: drain})
        assert said(sim, "event").count(BEGUN) == 1
    assert said(update(config(OLD), X), "event").count(BEGUN) == 1, "also where it waits for its drain in between"


def test_a_refusal_is_an_event_again_only_with_another_reason() -> None:
    refused = config(NEW)
    refused["spec"]["config"]["passwd"] = {"users": [{"name": "bob"}]}
    first = update(config(OLD), refused, notes={STATE: "Unreconcilable", REASON: "something else"})
    text = annotations_of(first.node)[REASON]
    assert f"Warning FailedToReconcile {text}" in said(first, "event")
    again = update(config(OLD), refused, notes={STATE: "Unreconcilable", REASON: text})
    assert not any("FailedToReconcile" in event for event in said(again, "event")) and again.error == text


def test_a_node_whose_uncordon_was_asked_before_says_that_it_works_again() -> None:
    uncordon = f"uncordon-{NEW}"
    sim = update(config(OLD), X, policy=NOTHING, notes={DESIRED_DRAIN: uncordon, LAST_DRAIN: uncordon})
    text = f"In desired config {NEW}. Resumed normal operations. Applying proper annotations."
    assert f"Resumed=True Resumed: {text}" in said(sim, "machineConfigNode")
    assert annotations_of(sim.node)[STATE] == "Done"


def test_an_update_and_its_undoing_leave_the_authority_of_the_kubelet_alone() -> None:
    for fail in ((), ("systemd-run",)):
        sim = update(config(OLD, file(CA, "old")), config(NEW, file(CA, "new"), file("/etc/x", "n")), fail=fail)
        assert sim.hosts.machine.read(CA) == b"?", "it came past the configs, and is newer than both"
    machine = MemoryHost()
    hosts = OneHost(machine, config(OLD), IMAGE, [])
    handle_now(HostHandler(hosts), WriteFiles("node-0", None, config(NEW, file(CA, "new")), True, "by hand"))
    assert machine.read(CA) == b"new"


def test_reports_compare_without_the_positions_that_nobody_tracks() -> None:
    ours = "not valid\nReport: error at $.storage.files.0.path: path not simplified\n"
    theirs = "not valid\nReport: error at $.storage.files.0.path, line 1 col 61: path not simplified\n"
    older = 'x\nReport: error at line 1, column 7\n    1: {"a"}\n         ^\nno filesystem specified\n'
    assert same_text(theirs, ours) and same_text(older, "x\nReport: error: no filesystem specified\n")
    assert not same_text(theirs, json.loads(json.dumps(ours).replace("files.0", "files.1")))
