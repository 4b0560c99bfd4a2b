"""Scenes that people have, unchanged, played to the end with machines: every node is Updated by its own agent."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.scenes.pools import NAMESPACE
from tests.scenes.scenes import scene

from syncline.assembly.embedded.install import ensure_objects
from syncline.cli.views.story import explained, transcript
from syncline.control.executor import run_in_place
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.kube.yaml.loading import load_all
from syncline.machineconfig.names import CURRENT, STATE
from syncline.rehearsal.scenario import PLACE, AddNode, NodeShape, Patching, Scenario, Step, Until
from syncline.rehearsal.simulation import Simulation

POOL = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker"
MASTER_TAINT = ("node-role.kubernetes.io/master:NoSchedule",)
MASTERS = tuple(NodeShape(f"okd-master-0{n}", ("master",), taints=MASTER_TAINT) for n in (1, 2, 3))
WORKER = NodeShape("okd-worker-01", ("worker",))
SCRIPT = "/usr/local/bin/kubeinit_kubevirt_extra_config_script"


def played(name: str, tmp_path: Path, nodes: tuple[NodeShape, ...], *steps: Step, **story: Any) -> Simulation:
    """Machines and controllers, before the first step."""
    source = {"repoURL": PLACE, "targetRevision": "main", "path": name} | story.pop("source", {})
    told = Scenario(
        scene(name),
        name,
        sources=(source,),
        policy={"automated": {}},
        steps=steps,
        nodes=nodes,
        machine_config=True,
        whole=True,
        **story,
    )
    show = Simulation(told, tmp_path)
    show.begin()
    return show


def applied(show: Simulation, *objects: Obj) -> None:
    """As an administrator does it, before."""
    run_in_place(ensure_objects(objects), show.world.admin)
    show.world.driver.advance(60)


def documents(file: Path) -> list[Obj]:
    return [document.value for document in load_all(file.read_bytes()).documents]


def all_updated(show: Simulation) -> None:
    for node in show.stage.items("/api/v1/nodes"):
        have = annotations_of(node)
        assert have[STATE] == "Done" and not dig(node, "spec", "unschedulable"), name_of(node)
    pool = show.world.send("GET", POOL)
    assert dig(pool, "spec", "configuration", "name") == dig(pool, "status", "configuration", "name")
    workers = [n for n in show.stage.items("/api/v1/nodes") if "worker" in name_of(n)]
    assert {annotations_of(node)[CURRENT] for node in workers} == {dig(pool, "spec", "configuration", "name")}
    assert dig(pool, "spec", "paused") is not True


def boots(show: Simulation) -> dict[str, int]:
    return {name_of(n): int(annotations_of(n)["syncline.dev/boots"]) for n in show.stage.items("/api/v1/nodes")}


def test_the_machine_config_of_spec_2_2_is_refused_its_drain_insisted_on_and_done_with_a_second_worker(
    tmp_path: Path,
) -> None:
    blocked = Step("refused before the cordon", until=(Until("pool/worker", "DrainBlocked"),))
    insist = {"metadata": {"annotations": {"syncline.dev/drain": "insist"}}}
    insisted = Step(
        "insisted on",
        acts=(Patching("pool/worker", insist),),
        until=(Until("pool/worker", "Degraded"),),
        within=timedelta(hours=2),
    )
    freed = Step(
        "a second worker",
        acts=(AddNode(NodeShape("okd-worker-02", ("worker",))),),
        until=(Until("pool/worker", "Updated"),),
        within=timedelta(hours=1),
    )
    source = {"directory": {"include": "99_*.yaml"}}
    nodes = (*MASTERS, WORKER)
    show = played("machine-config", tmp_path, nodes, blocked, insisted, freed, namespace="default", source=source)
    applied(show, *documents(scene("machine-config") / "cluster.yaml"))
    show.simulate(blocked)
    worker = show.world.send("GET", "/api/v1/nodes/okd-worker-01")
    assert not dig(worker, "spec", "unschedulable")
    said = explained(show.stage, "pool/worker")
    for words in (
        "MachineConfigPool worker DrainBlocked",
        "Node okd-worker-01 drain not begun",
        "by budget router-default (allows 0: 1 of 2 healthy, 1 needed)",
        "0/4 nodes are available: 1 node(s) were unschedulable (okd-worker-01, to be drained)",
        "add a worker node",
        "make the masters schedulable",
        "relax budget openshift-ingress/router-default",
    ):
        assert words in said, said
    began = show.world.clock.now()
    show.simulate(insisted)
    assert timedelta(hours=1) <= show.world.clock.now() - began < timedelta(minutes=70)
    conditions = {each["type"]: each for each in show.world.send("GET", POOL)["status"]["conditions"]}
    assert "refused by budget router-default (allows 0: 1 of 2" in conditions["Degraded"]["message"]
    show.simulate(freed)
    all_updated(show)
    (config,) = documents(scene("machine-config") / "99_kubeinit_extra_config_worker.yaml")
    assert config["spec"]["config"]["ignition"]["version"] == "2.2.0"
    for name in ("okd-worker-01", "okd-worker-02"):
        machine = show.world.machines.room.machines.get(name)
        file = machine.root.read(SCRIPT) if machine is not None else None
        assert file is not None and file.mode == 0o755 and file.content.startswith(b"#!/usr/bin/bash\nset -x"), name
    assert boots(show) == {"okd-master-01": 1, "okd-master-02": 1, "okd-master-03": 1} | dict.fromkeys(
        ("okd-worker-01", "okd-worker-02"), 2
    )


def test_the_repository_with_pause_and_resume_jobs_brings_its_file_to_each_worker_with_one_reboot(
    tmp_path: Path,
) -> None:
    step = Step("all of it", until=(Until("pool/worker", "Updating"), Until("pool/worker", "Updated")))
    nodes = (MASTERS[0], WORKER, NodeShape("okd-worker-02", ("worker",)))
    show = played("pool-pause", tmp_path, nodes, step, namespace=NAMESPACE)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    applied(show, space, *documents(scene("pool-pause") / "sync-job-cluster-rbac.yaml"))
    told = transcript(show.stage, show.simulate(step))
    assert "Succeeded: successfully synced" in told
    all_updated(show)
    assert boots(show) == {"okd-master-01": 1, "okd-worker-01": 2, "okd-worker-02": 2}
    machine = show.world.machines.room.machines.get("okd-worker-02")
    assert machine is not None
    file = machine.root.read("/etc/motd")
    assert file is not None and file.content == b"managed from Git\n"
