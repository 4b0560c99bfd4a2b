"""What is said of a drain before it begins, and what becomes of it: both on the embedded cluster, for drawn workloads.

Each case has its own nodes and namespace; many share a cluster, since a cluster costs more than its cases.
"""

from __future__ import annotations

import json
import random
import re
import shlex
from dataclasses import dataclass
from typing import Any

import pytest
from tests.machineconfig.room import NODES, NoSource

from syncline.cluster.machines.kubelet.node import node_object
from syncline.cluster.machines.machine import MachineSpec
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, ObjectRef, labels_of, name_of, namespace_of
from syncline.machineconfig.drain.feasible import Outlook, Sight, Verdict, judge
from syncline.machineconfig.drain.pods import departures
from syncline.machineconfig.drain.proposals import proposals
from syncline.rehearsal.world import World

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
CASES_EACH = 8
BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/{}"
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets"}


@dataclass
class StepResult:
    """``left``: pods that are still on the node when nothing moves any more; ``still``: after ``way_out`` was taken."""

    case: str
    verdict: Verdict
    left: tuple[str, ...] = ()
    way_out: str = ""
    still: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return (self.verdict.outlook is Outlook.CAN) is not bool(self.left)

    def __str__(self) -> str:
        said = f"{self.case}: {self.verdict.message() or 'can finish'}; left: {', '.join(self.left) or 'nobody'}"
        return said + (f"; {self.way_out}; still left: {', '.join(self.still) or 'nobody'}" if self.way_out else "")


class Stage:
    """One cluster on which several cases are played at once."""

    def __init__(self, seed: int) -> None:
        self.world = World(NoSource(), nodes=0, seed=seed)  # type: ignore[arg-type]
        self.draw = random.Random(seed)
        self.cases = [f"c{seed}-{index}" for index in range(CASES_EACH)]

    def run(self) -> list[StepResult]:
        self._class("important", 1000)
        self._class("humble", -10)
        for case in self.cases:
            self._post("/api/v1/namespaces", "Namespace", case, {})
        self.world.driver.advance(5)
        for case in self.cases:
            self._build(case)
        self.world.driver.advance(60)
        for case in self.cases:
            self._open(case)
        self.world.driver.advance(700)  # who is not ready by now is not believed to be starting
        sight, now = self._sight(), self.world.clock.now()
        simulated = [StepResult(case, judge(sight, f"{case}-a", now)) for case in self.cases]
        for case in self.cases:
            self._merge(f"{NODES}/{case}-a", {"spec": {"unschedulable": True}})
        self._drain()
        for each in simulated:
            each.left = self._leaving(each.case)
        sight, now = self._sight(), self.world.clock.now()
        for each in simulated:
            ways = proposals(sight, judge(sight, f"{each.case}-a", now), now)
            if ways:
                each.way_out = str(self.draw.choice(ways))
                self._take(each.case, each.way_out.split(": ", 1)[1])
        self.world.driver.advance(60)
        self._drain()
        for each in simulated:
            each.still = self._leaving(each.case)
        return simulated

    def _drain(self) -> None:
        for _ in range(16):
            for case in self.cases:
                self._evict(case)
            self.world.driver.advance(10)

    def _take(self, case: str, commands: str) -> None:
        """Types in what was proposed."""
        for command in re.split(r" && |; ", commands):
            match shlex.split(command):
                case ["kubectl", "-n", space, "patch", "pdb", name, "--type=merge", "-p", body]:
                    self._merge(BUDGETS.format(space, name), json.loads(body))
                case ["kubectl", "-n", space, "delete", "pdb", name]:
                    self.world.send("DELETE", BUDGETS.format(space, name))
                case ["kubectl", "-n", space, "scale", kind, name, replicas]:
                    path = f"/apis/apps/v1/namespaces/{space}/{kind}s/{name}"
                    self._merge(path, {"spec": {"replicas": int(replicas.partition("=")[2])}})
                case ["kubectl", "uncordon", name]:
                    self._merge(f"{NODES}/{name}", {"spec": {"unschedulable": None}})
                case ["syncline", "node", "add", "NAME"]:
                    home = self.world.send("GET", f"{NODES}/{case}-a")
                    labels = {"case": case, ZONE: labels_of(home)[ZONE]}
                    self._node(f"{case}-more", labels, home["status"]["capacity"]["cpu"])
                case other:
                    raise AssertionError(f"nobody can type {other}")

    # -- what is drawn -------------------------------------------------------------------------------------------

    def _build(self, case: str) -> None:
        """Some nodes open only when the pods are placed, so that the first one is full."""
        draw = self.draw
        for letter in "abc"[: draw.choice((1, 2, 2, 3, 3))]:
            labels = {"case": case, ZONE: draw.choice("12")}
            self._node(f"{case}-{letter}", labels, draw.choice("1224"), closed=letter != "a" and draw.random() < 0.5)
        for index in range(draw.choice((1, 1, 2))):
            self._workload(case, f"w{index}")
        if draw.random() < 0.3:
            self._daemon_set(case)

    def _node(self, name: str, labels: dict[str, str], cpu: str, *, closed: bool = False) -> None:
        node = node_object(MachineSpec(name, labels=labels, cpu=cpu))
        if closed:
            node["spec"]["unschedulable"] = True
        self.world.send("POST", NODES, node)

    def _open(self, case: str) -> None:
        for node in self._list(NODES):
            if labels_of(node)["case"] == case and self.draw.random() < 0.8:
                self._merge(f"{NODES}/{name_of(node)}", {"spec": {"unschedulable": None}})

    def _workload(self, case: str, name: str) -> None:
        draw = self.draw
        labels = {"app": name}
        spec: Obj = {"nodeSelector": {"case": case}, "terminationGracePeriodSeconds": draw.choice((0, 5))}
        requests = {"cpu": draw.choice(("100m", "500m", "900m"))}
        spec["containers"] = [{"name": "c", "image": "i", "resources": {"requests": requests}}]
        if draw.random() < 0.4:
            spec["priorityClassName"] = draw.choice(("important", "humble"))
        shape = draw.choice(("", "", "apart", "spread", "port", "zone"))
        if shape == "apart":
            term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif shape == "spread":
            spread = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [spread | {"labelSelector": {"matchLabels": labels}}]
        elif shape == "port":
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
        elif shape == "zone":
            spec["nodeSelector"] |= {ZONE: draw.choice("12")}
        notes = {"syncline.dev/ready": "never"} if draw.random() < 0.1 else {}
        template = {"metadata": {"labels": labels, "annotations": notes}, "spec": spec}
        kind = draw.choice(("Deployment", "Deployment", "StatefulSet", "Pod"))
        replicas = draw.choice((1, 2, 3))
        if kind == "Pod":
            for index in range(replicas):
                self._post(
                    f"/api/v1/namespaces/{case}/pods", kind, f"{name}-{index}", spec, labels=labels, annotations=notes
                )
        else:
            parallel = {"podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
            whole = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template} | parallel
            self._post(f"/apis/apps/v1/namespaces/{case}/{PLURALS[kind]}", kind, name, whole)
        for index in range(draw.choice((0, 1, 1, 1, 1, 1, 1, 2)) if replicas else 0):
            self._post(
                f"/apis/policy/v1/namespaces/{case}/poddisruptionbudgets",
                "PodDisruptionBudget",
                f"{name}-{index}",
                {"selector": {"matchLabels": labels}} | self._limit(),
            )

    def _daemon_set(self, case: str) -> None:
        """It runs on cordoned nodes, too, and stays on the one that is drained."""
        labels = {"app": "agent"}
        requests = {"cpu": self.draw.choice(("50m", "300m"))}
        container = {"name": "c", "image": "i", "resources": {"requests": requests}}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "nodeSelector": {"case": case}}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        self._post(f"/apis/apps/v1/namespaces/{case}/daemonsets", "DaemonSet", "agent", spec)

    def _class(self, name: str, value: int) -> None:
        kind = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        self.world.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", kind)

    def _limit(self) -> Obj:
        draw = self.draw
        policy = {"unhealthyPodEvictionPolicy": "AlwaysAllow"} if draw.random() < 0.2 else {}
        if draw.random() < 0.5:
            return {"minAvailable": draw.choice((0, 1, 1, 2, 3, "50%", "100%"))} | policy
        return {"maxUnavailable": draw.choice((0, 1, 1, 2, "34%"))} | policy

    # -- what is done --------------------------------------------------------------------------------------------

    def _sight(self) -> Sight:
        budgets = self._list("/apis/policy/v1/poddisruptionbudgets")
        return Sight(self._list(NODES), self._list("/api/v1/pods"), budgets, self._sets())

    def _sets(self) -> frozenset[ObjectRef]:
        found = self._list("/apis/apps/v1/daemonsets")
        return frozenset(ObjectRef("apps", "DaemonSet", namespace_of(each), name_of(each)) for each in found)

    def _leaving(self, case: str) -> tuple[str, ...]:
        found = departures(f"{case}-a", self._list(f"/api/v1/namespaces/{case}/pods"), self._sets())
        return tuple(name_of(each.pod) for each in found if each.leaves)

    def _evict(self, case: str) -> None:
        for name in self._leaving(case):
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": case}}
            try:
                self.world.send("POST", f"/api/v1/namespaces/{case}/pods/{name}/eviction", body)
            except ApiError:
                continue

    def _post(self, path: str, kind: str, name: str, spec: Obj, **metadata: Any) -> None:
        api = "/".join(path.split("/")[2:4]) if path.startswith("/apis/") else "v1"
        body = {"apiVersion": api, "kind": kind, "metadata": {"name": name} | metadata, "spec": spec}
        self.world.send("POST", path, body)

    def _merge(self, path: str, body: Obj) -> None:
        self.world.send("PATCH", path, body, "application/merge-patch+json")

    def _list(self, path: str) -> list[Obj]:
        found: list[Obj] = self.world.send("GET", path)["items"]
        return found


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_a_drain_is_what_becomes_of_it_and_of_each_way_out(seed: int) -> None:
    simulated = Stage(seed).run()
    assert [str(each) for each in simulated if not each.agrees] == []
    assert [str(each) for each in simulated if each.way_out and each.still] == []
