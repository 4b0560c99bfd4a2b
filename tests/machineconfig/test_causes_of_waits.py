"""No pool and no node waits without a cause: each reason, its chain, since when, until when, what then, what helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from tests.machineconfig import rendering, test_machines_updated
from tests.machineconfig.room import APIS, CRDS, NODES, POOLS, PoolWorld
from tests.machineconfig.test_causes import NODE, POOL, found, lines
from tests.machineconfig.test_image_mode import open_definition
from tests.machineconfig.test_pools import B, world

from syncline.base.cause import Cause
from syncline.base.clock import format_micro_time, format_time
from syncline.control.leader import NODE as HOST
from syncline.kube.objects import Obj, dig
from syncline.machineconfig.agent.hosts import CURRENT_CONFIG
from syncline.machineconfig.causes.nodes import TURN
from syncline.machineconfig.causes.remedies import remedy
from syncline.machineconfig.names import DESIRED, GROUP, REASON, STATE
from syncline.machineconfig.pools.candidates import CANARIES

WORKER = f"{POOLS}/worker"


def spec(one: PoolWorld, **fields: object) -> None:
    one.merge(WORKER, {"spec": fields})


def notes(one: PoolWorld, node: str, **more: str) -> None:
    one.merge(f"{NODES}/{node}", {"metadata": {"annotations": more}})


def stop(one: PoolWorld) -> None:
    """The controllers go; what they have written stays."""
    one.driver.actors.remove(one.room_actor)


# -- the rows --------------------------------------------------------------------------------------------------------


def paused(one: PoolWorld) -> None:
    spec(one, paused=True)
    one.target(B)


def held(one: PoolWorld) -> None:
    one.hold("mine", minutes=30)
    one.target(B)


def cordoned(one: PoolWorld) -> None:
    one.merge(f"{NODES}/worker-1", {"spec": {"unschedulable": True}})
    one.target(B)


def drifted(one: PoolWorld) -> None:
    notes(one, "worker-1", **{STATE: "Degraded", REASON: "content mismatch", "test/broken": f"rendered-worker-a,{B}"})
    one.target(B)


def off(one: PoolWorld) -> None:
    one.merge(f"{NODES}/worker-1", {"metadata": {"annotations": {"syncline.dev/power": "off"}}})
    one.driver.advance(120)
    one.target(B)


def never(one: PoolWorld) -> None:
    spec(one, maxUnavailable=-1)
    one.target(B)


def no_limit(one: PoolWorld) -> None:
    spec(one, maxUnavailable="60")
    one.target(B)


def no_canaries(one: PoolWorld) -> None:
    one.merge(WORKER, {"metadata": {"annotations": {CANARIES: "some"}}})
    one.target(B)


def canary_fails(one: PoolWorld) -> None:
    one.merge(WORKER, {"metadata": {"annotations": {CANARIES: "1"}}, "spec": {"maxUnavailable": 3}})
    notes(one, "worker-0", **{"test/broken": B})
    one.target(B)


def no_controller_config(one: PoolWorld) -> None:
    one.target(B)
    one.send("DELETE", f"{APIS}/controllerconfigs/machine-config-controller")


def everything(one: PoolWorld) -> None:
    one.merge(WORKER, {"spec": {"nodeSelector": {"matchLabels": None}}})
    one.target(B)


def another_selector(one: PoolWorld) -> None:
    selector = {"matchExpressions": [{"key": "zone", "operator": "Near"}]}
    one.make(POOLS, "MachineConfigPool", "odd", {"nodeSelector": selector, "configuration": {"name": B}})
    one.target(B)


def own_selector(one: PoolWorld) -> None:
    one.merge(WORKER, {"spec": {"nodeSelector": {"matchExpressions": [{"key": "zone", "operator": "Near"}]}}})


def two_custom_pools(one: PoolWorld) -> None:
    for name in ("infra", "gpu"):
        one.pool(name, target="rendered-worker-a")
    labels = {f"node-role.kubernetes.io/{role}": "" for role in ("infra", "gpu")}
    one.merge(f"{NODES}/worker-1", {"metadata": {"labels": labels}})
    one.target(B)


def operation_runs(one: PoolWorld) -> None:
    for number in (1, 2):
        one.send("DELETE", f"{NODES}/worker-{number}")
    lease = {"holderIdentity": "x", "leaseDurationSeconds": 36000, "renewTime": format_micro_time(one.clock.now())}
    path = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases"
    one.make(path, "Lease", "syncline-application-controller", lease, annotations={HOST: "worker-0"})
    apps = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
    app = {"destination": {"server": "https://kubernetes.default.svc"}, "project": "default"}
    one.make(apps, "Application", "shop", app | {"source": {"repoURL": "https://git/x.git"}})
    state = {"phase": "Running", "startedAt": format_time(one.clock.now()), "operation": {"sync": {}}}
    one.merge(f"{apps}/shop", {"status": {"operationState": state}})
    one.target(B)


def image_mode(one: PoolWorld, *conditions: Obj) -> None:
    for kind in ("MachineOSConfig", "MachineOSBuild"):
        one.send("POST", CRDS, open_definition(kind, f"{kind.lower()}s"))
    one.driver.advance(30)
    one.make(f"{APIS}/machineosconfigs", "MachineOSConfig", "worker", {"machineConfigPool": {"name": "worker"}})
    one.target(B)
    if conditions:
        one.merge(f"{APIS}/machineosconfigs/worker", {"status": {"currentImagePullSpec": "quay.io/os@sha256:0"}})
        body = {"apiVersion": f"{GROUP}/v1", "kind": "MachineOSBuild", "metadata": {"name": "worker-1"}}
        references = {"machineConfig": {"name": B}, "machineOSConfig": {"name": "worker"}}
        one.send(
            "POST", f"{APIS}/machineosbuilds", body | {"spec": references, "status": {"conditions": [*conditions]}}
        )


def no_build(one: PoolWorld) -> None:
    image_mode(one)


def building(one: PoolWorld) -> None:
    image_mode(one, {"type": "Building", "status": "True", "lastTransitionTime": format_time(one.clock.now())})


def build_failed(one: PoolWorld) -> None:
    at = format_time(one.clock.now())
    image_mode(one, {"type": "Failed", "status": "True", "message": "no space left", "lastTransitionTime": at})


def nobody_keeps_it(one: PoolWorld) -> None:
    stop(one)
    one.target(B)


def left_alone(one: PoolWorld) -> None:
    one.target(B)
    one.driver.advance(3)
    stop(one)


def not_rendered(one: PoolWorld) -> None:
    one.merge(WORKER, {"spec": {"configuration": {"name": None}}})


def selects_all_configs(one: PoolWorld) -> None:
    one.merge(WORKER, {"spec": {"configuration": {"name": None}, "machineConfigSelector": {"matchLabels": None}}})


def silent(one: PoolWorld) -> None:
    one.add_node("worker-9", "worker", born="")
    one.driver.advance(1200)


@dataclass(frozen=True)
class Row:
    """``state`` is the pool's; ``tells`` stands in a line of the chain; ``step`` in the next step, empty: there is
    nothing to be done but wait, and then it is told what comes ``then``."""

    policy: str
    makes: Callable[[PoolWorld], None]
    state: str
    tells: str
    step: str = ""
    after: float = 120


ROWS = (
    Row("paused by a person", paused, "Paused", "spec.paused is set", "syncline pool resume worker --spec"),
    Row("held by a Hold", held, "Held", "ann keeps pool worker from updating until", "wait, or ask ann"),
    Row("a node cordoned by hand", cordoned, "Updating", "maxUnavailable 1 is used up by worker-1", "kubectl uncordon"),
    Row("a node that drifted", drifted, "Degraded", "content mismatch", "correct what its reason says"),
    Row("a machine that is off", off, "Updating", "maxUnavailable 1 is used up by worker-1", "is the machine on?"),
    Row("a limit below zero", never, "Updating", "maxUnavailable is -1", "set spec.maxUnavailable to 1 or more"),
    Row("a limit that is none", no_limit, "Stalled", "is not a percentage", "give a whole number, or a percentage"),
    Row("canaries that are none", no_canaries, "Stalled", "is 'some'", "correct annotation syncline.dev/canaries"),
    Row("a canary that fails", canary_fails, "Degraded", "all canaries have to be", "correct what its reason says"),
    Row("no ControllerConfig", no_controller_config, "Stalled", "not found", "bring ControllerConfig"),
    Row("a selector of everything", everything, "Waiting", "selects all nodes", "name the labels of its nodes"),
    Row("another pool's bad selector", another_selector, "Waiting", "no node is in any pool", "machineconfigpool odd"),
    Row("its own bad selector", own_selector, "Stalled", "invalid label selector", "correct spec.nodeSelector"),
    Row("a node of two custom pools", two_custom_pools, "Waiting", "belongs to 2 custom roles", "take a role label"),
    Row("a sync on the node that is due", operation_runs, "Updating", "a controller that syncs", "", 60),
    Row("changes that are gathered", lambda one: one.target(B), "Updating", "changes that come together", "", 3),
    Row("no image is built", no_build, "Updating", "MachineOSConfig worker waits for a build", "the builder", 700),
    Row("no image is built yet", no_build, "Updating", "MachineOSConfig worker waits for a build", "", 60),
    Row("an image is being built", building, "Updating", "Image build pending", ""),
    Row("an image cannot be built", build_failed, "Waiting", "no space left", "correct MachineOSConfig worker"),
    Row("its condition is to be written yet", nobody_keeps_it, "Waiting", "changes that come together", "", 0),
    Row("nobody keeps the pools", nobody_keeps_it, "Waiting", "gathering changes", "do the machine-config", 600),
    Row("they go after it has said so", left_alone, "Updating", "next: worker-0", "do the machine-config", 600),
    Row("it is not rendered", not_rendered, "Waiting", "status for ControllerConfig", "the pool is not rendered"),
    Row("it selects all configs", selects_all_configs, "Waiting", "selects all machine configs", "name the labels"),
    Row("a node has no agent", silent, "Updating", "its agent has not reported", "is a node agent running"),
)


def below(cause: Cause) -> list[Cause]:
    return [cause, *(each for one in cause.because for each in below(one))]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.policy)
def test_a_pool_that_waits_says_for_what_and_what_helps(row: Row) -> None:
    one = world()
    row.makes(one)
    one.driver.advance(row.after)
    told = found(one, POOL, "worker")
    text = "\n".join(lines(one, POOL, "worker"))
    assert told.cause.state == row.state, text
    assert row.tells in text, text
    assert told.cause.since is not None
    assert len(text.splitlines()) <= 10
    if row.step:
        assert told.blocked
        assert any(line.lstrip().startswith("next:") and row.step in line for line in text.splitlines()), text
    else:
        assert any(each.then for each in below(told.cause)), told.cause


def test_two_nodes_that_are_cordoned_are_both_named_in_the_way_out_that_was_tried() -> None:
    one = world()
    for name in ("worker-1", "worker-2"):
        one.merge(f"{NODES}/{name}", {"spec": {"unschedulable": True}})
    one.target(B)
    one.driver.advance(60)
    (used,) = [each for each in below(found(one, POOL, "worker").cause) if each.subject == "capacity"]
    assert used.next_action == (
        "kubectl uncordon worker-1 worker-2; or let 3 nodes be unavailable: "
        """kubectl patch machineconfigpool worker --type=merge -p '{"spec":{"maxUnavailable":3}}'"""
    )


# -- nodes -----------------------------------------------------------------------------------------------------------


def without_agents(one: PoolWorld) -> None:
    one.driver.actors.remove(one.agents_actor)
    one.target(B)


def without_drains(one: PoolWorld) -> None:
    """The agent asks, and nobody drains."""
    stop(one)
    notes(one, "worker-0", **{DESIRED: B})


def drains_long(one: PoolWorld) -> None:
    """A pod that takes ten minutes to go."""
    pod = {"nodeName": "worker-0", "terminationGracePeriodSeconds": 600, "containers": [{"name": "c", "image": "i"}]}
    slow = {"syncline.dev/stop-seconds": "500"}
    one.make("/api/v1/namespaces/default/pods", "Pod", "slow", pod, annotations=slow)
    one.driver.advance(30)
    one.target(B)


def no_role(one: PoolWorld) -> None:
    one.merge(f"{NODES}/worker-0", {"metadata": {"labels": {"node-role.kubernetes.io/worker": None}}})


NODE_ROWS = (
    Row("it waits for its turn while its pool is paused", paused, TURN, "Paused for", "syncline pool resume worker"),
    Row("or held", held, TURN, "ann keeps pool worker from updating", "wait, or ask ann"),
    Row("or has no place", cordoned, TURN, "Node worker-1 cordoned for", "kubectl uncordon worker-1"),
    Row("or is stalled", no_limit, TURN, "is not a percentage", "give a whole number"),
    Row("or builds an image", building, TURN, "MachineOSBuild worker-1 building for", ""),
    Row("its agent does not take the target up", without_agents, "Targeted", "updates from", "check its agent", 900),
    Row("or has just got it", without_agents, "Targeted", "updates from rendered-worker-a", "", 60),
    Row(
        "it asks for a drain and nobody drains",
        without_drains,
        "about to be drained",
        "is asked",
        "drain controller",
        700,
    ),
    Row("it is drained", drains_long, "draining", "1 pod has to leave it", "", 60),
    Row("it is in no pool", no_role, "Ready", "in no pool"),
    Row("it is in two custom pools", two_custom_pools, "in no pool", "belongs to 2 custom", "take one of its role"),
    Row(
        "a pool's selector is unreadable", own_selector, "in no pool", "meanwhile no node", "correct spec.nodeSelector"
    ),
    Row(
        "its agent never said anything", silent, "Unknown", "(overdue): its agent has not", "is a node agent running on"
    ),
)
WHO = {"it is in two custom pools": "worker-1", "its agent never said anything": "worker-9"}


@pytest.mark.parametrize("row", NODE_ROWS, ids=lambda row: row.policy)
def test_a_node_that_waits_says_for_what_and_what_helps(row: Row) -> None:
    one = world()
    row.makes(one)
    one.driver.advance(row.after)
    name = WHO.get(row.policy, "worker-0")
    told, text = found(one, NODE, name), "\n".join(lines(one, NODE, name))
    assert (told.cause.state, told.blocked) == (row.state, bool(row.step)), text
    assert row.tells in text, text
    assert told.cause.since is not None
    assert len(text.splitlines()) <= 10
    assert not row.step or any(line.lstrip().startswith("next:") and row.step in line for line in text.splitlines()), (
        text
    )
    assert row.step or row.state == "Ready" or any(each.then for each in below(told.cause)), text


def test_a_record_says_what_its_node_says() -> None:
    one = world()
    cordoned(one)
    one.driver.advance(60)
    told = lines(one, (GROUP, "MachineConfigNode", ""), "worker-1")
    assert told[0].startswith("MachineConfigNode worker-1 cordoned for")
    assert told[-1] == "next: kubectl uncordon worker-1"


def test_a_hold_says_when_it_ends_and_what_comes_then() -> None:
    one = world()
    one.hold("mine", minutes=30)
    told = found(one, ("syncline.dev", "Hold", ""), "mine").cause
    assert told.until == one.clock.now() + timedelta(minutes=30)
    assert told.then == "nodes of its pools are updated again"


# -- machine configs -------------------------------------------------------------------------------------------------


def rendered_world() -> PoolWorld:
    one = PoolWorld({}, renders=True)
    for name in ("master", "worker"):
        one.send("POST", POOLS, rendering.pool(name))
    one.driver.until(lambda: dig(one.get(WORKER), "spec", "configuration", "name") is not None, limit_s=120)
    one.driver.advance(30)
    return one


def added(one: PoolWorld) -> None:
    one.send("POST", f"{APIS}/machineconfigs", rendering.machine_config("99-x", rendering.files(("/etc/x", "x"))))


def added_wrong(one: PoolWorld) -> None:
    one.send("POST", f"{APIS}/machineconfigs", rendering.machine_config("99-x", kernelType="quick"))


def added_while_nobody_renders(one: PoolWorld) -> None:
    stop(one)
    added(one)


def added_while_a_kubelet_config_is_refused(one: PoolWorld) -> None:
    body = {"machineConfigPoolSelector": {}, "kubeletConfig": {"clusterDomain": "x"}}
    one.send("POST", f"{APIS}/kubeletconfigs", rendering.thing("KubeletConfig", "bad", body))
    one.driver.advance(5)
    added(one)


CONFIG_ROWS = (
    Row("it is rendered in a moment", added, "on its way", "the pool gets rendered-worker-", "", 1),
    Row("and then it is applied", added, "applied", "on all nodes", "", 60),
    Row(
        "it cannot be rendered",
        added_wrong,
        "on its way",
        "kernelType=quick is invalid",
        "correct or delete MachineConfig 99-x",
        60,
    ),
    Row("nobody renders", added_while_nobody_renders, "on its way", "the pool gets", "the pool is not rendered"),
    Row(
        "another object is refused",
        added_while_a_kubelet_config_is_refused,
        "on its way",
        "KubeletConfig bad refused",
        "correct it: kubectl edit kubeletconfig bad",
    ),
)


@pytest.mark.parametrize("row", CONFIG_ROWS, ids=lambda row: row.policy)
def test_a_machine_config_that_is_not_rendered_says_why(row: Row) -> None:
    one = rendered_world()
    row.makes(one)
    one.driver.advance(row.after)
    kind = (GROUP, "MachineConfig", "")
    told, text = found(one, kind, "99-x"), "\n".join(lines(one, kind, "99-x"))
    assert (told.cause.state, told.blocked) == (row.state, bool(row.step)), text
    assert row.tells in text, text
    assert not row.step or f"next: {row.step}" in text or row.step in text.splitlines()[-1], text


def test_a_pool_that_cannot_be_rendered_names_the_machine_config_to_blame_and_forgets_it_with_it() -> None:
    one = rendered_world()
    added_wrong(one)
    one.driver.advance(60)
    assert lines(one, POOL, "worker")[-1] == "next: correct or delete MachineConfig 99-x"
    # The condition stays as it is while the selector cannot be read; what is told is what is so now.
    wrong = {"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}
    spec(one, machineConfigSelector=wrong)
    one.send("DELETE", f"{APIS}/machineconfigs/99-x")
    one.driver.advance(60)
    text = "\n".join(lines(one, POOL, "worker"))
    assert 'rendering refused for 60s: spec.machineConfigSelector: "in" is not a valid label selector operator' in text
    assert text.endswith("next: correct spec.machineConfigSelector: kubectl edit machineconfigpool worker")
    assert "kernelType" not in text


def test_a_selector_that_cannot_be_read_is_told_of_a_pool_that_is_updated() -> None:
    one = rendered_world()
    spec(one, machineConfigSelector={"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]})
    one.driver.advance(5)
    told = found(one, POOL, "worker")
    assert told.blocked and "the pool keeps its config" in "\n".join(lines(one, POOL, "worker"))


def test_a_machine_config_is_on_its_way_no_longer_than_it_is_there() -> None:
    one = world()
    cordoned(one)
    one.driver.advance(600)
    body = rendering.machine_config("99-y", rendering.files(("/etc/y", "y")))
    one.send("POST", f"{APIS}/machineconfigs", body)
    selector = {"matchLabels": {"machineconfiguration.openshift.io/role": "worker"}}
    spec(one, machineConfigSelector=selector, configuration={"source": [{"name": "99-y"}]})
    one.driver.advance(20)
    pool, told = found(one, POOL, "worker").cause, found(one, (GROUP, "MachineConfig", ""), "99-y").cause
    assert (pool.state, told.state) == ("Updating", "on its way")
    assert pool.since is not None and told.since is not None
    assert one.clock.now() - pool.since >= timedelta(seconds=600)
    assert one.clock.now() - told.since == timedelta(seconds=20)


def test_a_pool_that_is_never_rendered_again_says_so_although_its_nodes_are_all_there() -> None:
    one = rendered_world()
    one.driver.until(lambda: one.condition("Updated").get("status") == "True", limit_s=60)
    added_while_a_kubelet_config_is_refused(one)
    told = lines(one, POOL, "worker")
    assert told[0].startswith("MachineConfigPool worker Waiting") and "KubeletConfig bad refused" in told[2]
    assert told[-1] == "next: correct it: kubectl edit kubeletconfig bad"


def test_a_kubelet_config_says_what_became_of_it() -> None:
    one = rendered_world()
    added_while_a_kubelet_config_is_refused(one)
    kind = (GROUP, "KubeletConfig", "")
    told = lines(one, kind, "bad")
    assert "refused for 5s: KubeletConfiguration: clusterDomain is not allowed to be set" in told[0]
    assert told[-1] == "next: correct it: kubectl edit kubeletconfig bad"
    labels = {"machineConfigPoolSelector": {"matchLabels": {"x": "y"}}, "kubeletConfig": {"maxPods": 99}}
    one.merge(WORKER, {"metadata": {"labels": {"x": "y"}}})
    one.send("POST", f"{APIS}/kubeletconfigs", rendering.thing("KubeletConfig", "good", labels))
    assert (
        "new for 0s: no controller has read it yet; then machine configs are made of it" in lines(one, kind, "good")[0]
    )
    one.driver.advance(30)
    assert lines(one, kind, "good")[0].endswith("accepted for 30s: as 99-worker-generated-kubelet")


# -- what agents say -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "reason", "step"),
    [
        ("Degraded", 'content mismatch for file "/etc/passwd"', "put /etc/passwd back as its MachineConfig has it"),
        ("Degraded", 'mode mismatch for file: "/etc/x"; expected: 420', "touch /run/machine-config-daemon-force"),
        ("Degraded", 'machineconfig.machineconfiguration.openshift.io "rendered-x" not found', "make MachineConfig re"),
        (
            "Degraded",
            "unexpected on-disk state validating against x",
            "touch /run/machine-config-daemon-force",
        ),
        ("Degraded", "could not apply update: restarting crio service failed. Error: exit", "journalctl -u crio"),
        ("Degraded", "write /etc/x: No space left on device", "make room on the node's disk"),
        ("Degraded", "something else", "correct what its reason says, or take the config back"),
        ("Unreconcilable", "ignition disks section contains changes", "take it back, or leave the section as it was"),
        ("Unreconcilable", "", "take it back, or recreate the machine"),
    ],
)
def test_what_an_agent_says_has_a_remedy(state: str, reason: str, step: str) -> None:
    assert step in remedy(state, reason)


def test_a_rendered_config_that_somebody_deleted_while_nodes_had_it_can_be_made_again_as_is_told() -> None:
    """The new one is made again by itself; of the old one only the disks know."""
    one = test_machines_updated.world(2)
    old = test_machines_updated.target(one)
    new = test_machines_updated.apply(one, rendering.machine_config("99-a", rendering.files(("/etc/a", "x"))))
    one.send("DELETE", f"{APIS}/machineconfigs/{new}")
    one.send("DELETE", f"{APIS}/machineconfigs/{old}")
    one.driver.advance(900)
    assert one.get(f"{APIS}/machineconfigs/{new}")
    step = lines(one, POOL, "worker")[-1]
    assert step.startswith(f"next: make MachineConfig {old} again: its name and spec are in {CURRENT_CONFIG} on a node")
    kind = {"apiVersion": f"{GROUP}/v1", "kind": "MachineConfig"}
    one.send("POST", f"{APIS}/machineconfigs", json.loads(test_machines_updated.host(one).read(CURRENT_CONFIG)) | kind)
    one.until_updated(new)
