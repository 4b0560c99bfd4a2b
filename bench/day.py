"""A day of a cluster in virtual time: rolling deployments, drains and reboots, lost nodes, failing pods and Jobs.

Played by ``python -m bench virtual`` in full and by ``tests/assembly/test_a_day.py`` in a reduced form. The script's
own chance is apart from the world's, so that worlds with other seeds live through the same day.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from syncline.assembly.machines.virtual import node_name
from syncline.base.entropy import Entropy
from syncline.gitops.application.manifests import Manifests
from syncline.kube.client import Request
from syncline.kube.objects import Obj, dig, is_terminating, labels_of, name_of, owner_references
from syncline.rehearsal.world import World

__all__ = ["FULL", "REDUCED", "Day", "Size", "budget", "live_through", "outline", "template", "workload"]

MERGE = "application/merge-patch+json"
DRAIN_RETRY_S = 5.0
MAX_DRAIN_ROUNDS = 120
CALM_S = 2400.0
"""What is left undisturbed at the end, so that everything comes to rest."""

Script = Generator[float, None, None]
"""Does something, yields the seconds until it wants to go on."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is and how much happens; times in seconds."""

    nodes: int
    namespaces: int
    deployments: int
    replicas: int
    hours: float
    rollout_every: float
    reboot_every: float
    loss_every: float
    crashing: int
    jobs_every: float


FULL = Size(100, 10, 5, 10, 24, 1200, 1800, 7200, 5, 900)
REDUCED = Size(12, 2, 3, 4, 3, 900, 1500, 4000, 2, 1200)


class NoSources:
    """There is no Application in this day."""

    def read(self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime) -> Manifests:
        raise AssertionError("nothing is to be rendered")


@dataclass(slots=True)
class Operators:
    """The people of the day: an actor of the driver that runs their scripts when they are due."""

    world: World
    _due: list[tuple[datetime, int, Script]] = field(default_factory=list)
    _count: int = 0

    def start(self, script: Script, after_s: float = 0.0) -> None:
        self._push(self.world.clock.now() + timedelta(seconds=after_s), script)

    def _push(self, at: datetime, script: Script) -> None:
        self._count += 1
        heapq.heappush(self._due, (at, self._count, script))

    def pump(self) -> bool:
        return False

    def next_due(self, *, foreground_only: bool) -> datetime | None:
        return self._due[0][0] if self._due else None

    def step(self) -> bool:
        now = self.world.clock.now()
        if not self._due or self._due[0][0] > now:
            return False
        _, _, script = heapq.heappop(self._due)
        wait = next(script, None)
        if wait is not None:
            self._push(now + timedelta(seconds=wait), script)
        return True

    def describe(self) -> str:
        return f"{len(self._due)} scripts" if self._due else ""


# -- what is there in the morning --------------------------------------------------------------------------------------


def _namespace(index: int) -> str:
    return f"team-{index}"


def template(app: str, image: str = "shop:1", annotations: dict[str, str] | None = None) -> Obj:
    """A pod of a tenth of a core."""
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    spec = {"containers": [container], "automountServiceAccountToken": False}
    return {"metadata": {"labels": {"app": app}, "annotations": annotations or {}}, "spec": spec}


def workload(kind: str, name: str, pod: Obj, **spec: Any) -> Obj:
    """``pod``: the template of its pods, of the same name."""
    body = {"selector": {"matchLabels": {"app": name}}, "template": pod} | spec
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": body}


def _service(name: str) -> Obj:
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def budget(name: str, down: int | str = 1) -> Obj:
    """Of the pods of that app ``down`` may be missing."""
    spec = {"maxUnavailable": down, "selector": {"matchLabels": {"app": name}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


class Day:
    """One world and what happens in it. ``seed`` and ``shuffle`` are the world's."""

    def __init__(self, size: Size, seed: int = 1, *, shuffle: bool = False) -> None:
        self.size = size
        self.evictions = 0
        self.losses = 0
        self.world = World(NoSources(), seed=seed, shuffle=shuffle, nodes=size.nodes)
        self.operators = Operators(self.world)
        self.world.driver.add(self.operators)
        self._chance = Entropy("a day")
        self._drained: set[str] = set()

    # -- requests --------------------------------------------------------------------------------------------------

    def _send(self, method: str, path: str, body: Any = None, content: str = "") -> Any:
        return self.world.send(method, path, body, content)

    def _path(self, group: str, namespace: str, plural: str, name: str = "") -> str:
        base = f"/apis/{group}" if "/" in group else f"/api/{group}"
        return f"{base}/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")

    def apps(self) -> Iterator[tuple[str, str]]:
        """Namespace and name of every Deployment that is rolled."""
        for index in range(self.size.namespaces):
            for number in range(self.size.deployments):
                yield _namespace(index), f"app-{number}"

    # -- the morning -----------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Nodes register, then everything is created and comes up."""
        self.world.driver.advance(30)
        for index in range(self.size.namespaces):
            metadata = {"name": _namespace(index)}
            self._send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self.world.driver.advance(1)
        for namespace, name in self.apps():
            made = workload("Deployment", name, template(name, "shop:1"), replicas=self.size.replicas)
            self._send("POST", self._path("apps/v1", namespace, "deployments"), made)
            self._send("POST", self._path("v1", namespace, "services"), _service(name))
            self._send("POST", self._path("policy/v1", namespace, "poddisruptionbudgets"), budget(name))
        self._fill_others()
        self.world.driver.advance(120)

    def _fill_others(self) -> None:
        agent = workload("DaemonSet", "agent", template("agent", "agent:1"))
        self._send("POST", self._path("apps/v1", "kube-system", "daemonsets"), agent)
        for index in range(self.size.namespaces):
            base = workload("StatefulSet", "base", template("base", "base:1"), replicas=3, serviceName="base")
            self._send("POST", self._path("apps/v1", _namespace(index), "statefulsets"), base)
        for number in range(self.size.crashing):
            name = f"crashing-{number}"
            notes = {"syncline.dev/run-seconds": "20", "syncline.dev/exit-code": "1"}
            made = workload("Deployment", name, template(name, "broken:1", notes), replicas=2)
            self._send("POST", self._path("apps/v1", _namespace(0), "deployments"), made)

    # -- what happens ----------------------------------------------------------------------------------------------

    def live(self, look: Callable[[float], None] = lambda _hour: None) -> None:
        """The whole day after the morning, and a calm at its end; ``look`` is called after each quarter of it."""
        size, busy = self.size, self.size.hours * 3600 - CALM_S
        self._every(size.rollout_every, busy, self._roll)
        self._every(size.reboot_every, busy, self._reboot)
        self._every(size.loss_every, busy, self._lose)
        self._every(size.jobs_every, busy, self._job)
        self.operators.start(self._repair(), busy)
        for quarter in range(1, 5):
            self.world.driver.advance(size.hours * 900)
            look(size.hours * quarter / 4)

    def _every(self, period: float, until: float, make: Any) -> None:
        number = 0
        while (number + 1) * period < until:
            number += 1
            self.operators.start(make(number), number * period)

    def _roll(self, number: int) -> Script:
        """The next Deployment gets a new image."""
        apps = list(self.apps())
        namespace, name = apps[number % len(apps)]
        container = {"name": "main", "image": f"shop:{number + 1}"}
        body = {"spec": {"template": {"spec": {"containers": [container]}}}}
        path = self._path("apps/v1", namespace, "deployments", name)
        self._send("PATCH", path, body, "application/strategic-merge-patch+json")
        yield from ()

    def _job(self, number: int) -> Script:
        """A Job whose pod fails once."""
        notes = {"syncline.dev/run-seconds": "15"}
        pod = template("work", "work:1", notes)
        pod["spec"] |= {"restartPolicy": "OnFailure"}
        if number % 2:
            pod["metadata"]["annotations"]["syncline.dev/exit-code"] = "1,0"
        namespace = _namespace(number % self.size.namespaces)
        spec = {"template": pod, "completions": 3, "parallelism": 2, "ttlSecondsAfterFinished": 1800}
        made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"work-{number}"}, "spec": spec}
        self._send("POST", self._path("batch/v1", namespace, "jobs"), made)
        yield from ()

    def _pick_node(self) -> str:
        free = [each for each in map(node_name, range(self.size.nodes)) if each not in self._drained]
        return self._chance.choice(free)

    def _reboot(self, number: int) -> Script:
        """Cordon, evict what budgets allow until nothing is left, reboot, uncordon."""
        node = self._pick_node()
        self._drained.add(node)
        self._cordon(node, True)
        for _ in range(MAX_DRAIN_ROUNDS):
            if not self._evict_all(node):
                break
            yield DRAIN_RETRY_S
        machine = self.world.machines.room.machines.get(node)
        assert machine is not None
        machine.request_reboot(f"reboot-{number}", self.world.clock.now())
        yield 120.0
        self._cordon(node, False)
        self._drained.discard(node)

    def _cordon(self, node: str, on: bool) -> None:
        self._send("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": on or None}}, MERGE)

    def _evict_all(self, node: str) -> int:
        """Asks for every pod but those of DaemonSets; how many are there still."""
        pods = self._send("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={node}")["items"]
        left = [pod for pod in pods if not any(o["kind"] == "DaemonSet" for o in owner_references(pod))]
        for pod in left:
            namespace, name = pod["metadata"]["namespace"], name_of(pod)
            if not is_terminating(pod):
                body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
                path = self._path("v1", namespace, "pods", name) + "/eviction"
                self.evictions += self.world.admin.send(Request("POST", path, {}, {}, body)).ok
        return len(left)

    def _lose(self, number: int) -> Script:
        """A node dies without warning and comes back ten minutes later."""
        node = self._pick_node()
        self._drained.add(node)
        machine = self.world.machines.room.machines.get(node)
        assert machine is not None
        machine.power_off(self.world.clock.now())
        self.losses += 1
        yield 600.0
        machine.power_on(self.world.clock.now())
        yield 120.0
        self._drained.discard(node)

    def _repair(self) -> Script:
        """What crashes all day is put right."""
        for number in range(self.size.crashing):
            path = self._path("apps/v1", _namespace(0), "deployments", f"crashing-{number}")
            notes = {"syncline.dev/run-seconds": None, "syncline.dev/exit-code": None}
            self._send("PATCH", path, {"spec": {"template": {"metadata": {"annotations": notes}}}}, MERGE)
        yield from ()


def live_through(size: Size, seed: int = 1, *, shuffle: bool = False) -> Day:
    """A day from morning to calm."""
    day = Day(size, seed, shuffle=shuffle)
    day.fill()
    day.live()
    return day


def outline(day: Day) -> dict[str, Any]:
    """The final state without names that are drawn: what every order must lead to."""
    send = day.world.send
    found: dict[str, Any] = {}
    for plural in ("deployments", "statefulsets", "daemonsets"):
        for each in send("GET", f"/apis/apps/v1/{plural}")["items"]:
            counts = {k: v for k, v in each["status"].items() if isinstance(v, int) and k != "collisionCount"}
            image = dig(each, "spec", "template", "spec", "containers", 0, "image")
            found[f"{plural}/{each['metadata']['namespace']}/{name_of(each)}"] = (image, counts)
    pods = send("GET", "/api/v1/pods")["items"]
    found["pods"] = dict(sorted(Counter(_pod_outline(pod) for pod in pods).items()))
    for node in send("GET", "/api/v1/nodes")["items"]:
        ready = [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"]
        found[f"node/{name_of(node)}"] = (ready, dict(node.get("spec") or {}).get("taints"), _boots(node))
    for piece in send("GET", "/apis/policy/v1/poddisruptionbudgets")["items"]:
        place = f"budget/{piece['metadata']['namespace']}/{name_of(piece)}"
        found[place] = [piece["status"][k] for k in ("currentHealthy", "desiredHealthy", "disruptionsAllowed")]
    for piece in send("GET", "/apis/discovery.k8s.io/v1/endpointslices")["items"]:
        place = f"endpoints/{piece['metadata']['namespace']}/{labels_of(piece).get('kubernetes.io/service-name')}"
        found[place] = len([e for e in piece.get("endpoints") or () if e["conditions"]["ready"]])
    for job in send("GET", "/apis/batch/v1/jobs")["items"]:
        found[f"job/{job['metadata']['namespace']}/{name_of(job)}"] = job["status"].get("succeeded")
    return found


def _pod_outline(pod: Obj) -> str:
    labels = {key: value for key, value in sorted(labels_of(pod).items()) if key == "app"}
    return f"{pod['metadata']['namespace']} {labels} {dig(pod, 'status', 'phase')}"


def _boots(node: Obj) -> str:
    return str(dig(node, "metadata", "annotations", "syncline.dev/boots", default=""))
