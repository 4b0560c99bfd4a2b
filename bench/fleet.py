"""A hub with many agents: joining, resting, carrying works, and coming back after it was away.

Started by ``python -m bench fleet [--quick]``. API server and controllers of the hub are processes
of their own; all agents run in a third one (:mod:`bench.fleetagents`), each with its own certificate over TLS.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.ocm import ocm_hub
from bench.processes import (
    Blocking,
    Running,
    apiserver,
    cpu_s_of,
    cpu_s_with_ended,
    free_port,
    resident_mib_of,
    running,
    syncline,
)
from bench.table import Table
from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.fleet.objects import foreign_hub_objects
from syncline.assembly.ports import HttpPort
from syncline.control.manager import drive
from syncline.kube.transport.kubeconfig import load_kubeconfig

CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
PLACING = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/bench/placements"
BINDINGS = "/apis/cluster.open-cluster-management.io/v1beta2/namespaces/bench/managedclustersetbindings"
WORKS = "/apis/work.open-cluster-management.io/v1"
REPLICA_SETS = "/apis/work.open-cluster-management.io/v1alpha1/namespaces/bench/manifestworkreplicasets"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
ACCOUNT = "/api/v1/namespaces/open-cluster-management/serviceaccounts/agent-registration-bootstrap"
CLUSTER_NAME = "open-cluster-management.io/cluster-name"
OF_REPLICA_SET = "work.open-cluster-management.io%2Fmanifestworkreplicaset"
MERGE = "application/merge-patch+json"
PROGRAMS = "OCM_PROGRAMS"
"""Names the folder of upstream's programs (:mod:`bench.ocm`), which then stand beside ours."""
WORK_COUNT = 1_000
REST_S = 70.0
"""Longer than the time between two renewals of a lease."""
LIMIT_S = 400.0
LOOK_S = 0.25


def figures(table: Table, *, quick: bool) -> None:
    count = 50 if quick else 500
    if programs := os.environ.get(PROGRAMS):
        beside_peers(table, 50 if quick else 100, Path(programs))
    with tempfile.TemporaryDirectory(prefix="bench-") as place, _hub(Path(place), count) as bench:
        table.title(f"A hub with {count} agents (API and controllers: a process each; all agents: one process)")
        _join(table, bench)
        _rest(table, bench)
        _carry(table, bench)
        _replicate(table, bench)
        _come_back(table, bench)


def beside_peers(table: Table, count: int, programs: Path) -> None:
    for name, folder in (("ours", None), ("Open Cluster Management's", programs)):
        with tempfile.TemporaryDirectory(prefix="bench-") as place, _hub(Path(place), count, folder) as bench:
            table.title(f"A hub with {count} agents of ours, its controllers {name}")
            _join(table, bench)
            _rest(table, bench)
            _replicate(table, bench)
            table.row("controllers, resident", f"{bench.controllers_mib():.0f} MiB")


# -- what is measured ---------------------------------------------------------------------------------------------


def _join(table: Table, bench: Bench) -> None:
    before = bench.api_mib()
    with bench.spending() as spent:
        bench.start_agents()
        bench.until(lambda: bench.counts["joined"] == bench.count, "all agents have joined")
        joined = time.perf_counter() - spent.begun
        bench.until(lambda: _available(bench) == bench.count, "all clusters are available")
    beside = f"certificates after {joined:.1f} s; {spent.text()}"
    table.row("join: from nothing to Available", f"{spent.wall_s:.1f} s", beside)
    table.row("  of each", f"{spent.hub_s / bench.count * 1000:.0f} ms", "CPU of API and controllers")
    bench.calm()
    watching = bench.counts["watching"]
    table.row(
        "  open watches", f"{watching}", f"{(bench.api_mib() - before) / bench.count:.2f} MiB an agent on the API"
    )


def _available(bench: Bench) -> int:
    items = bench.link.send("GET", CLUSTERS)["items"]
    return sum(_is_true(one, "ManagedClusterConditionAvailable") for one in items)


def _is_true(obj: Any, condition: str) -> bool:
    found = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in found)


def _rest(table: Table, bench: Bench) -> None:
    sent = bench.counts["sent"]
    with bench.spending() as spent:
        time.sleep(REST_S)
    parts = [f"{name} {seconds / spent.wall_s:.2%}" for name, seconds in spent.parts.items()]
    per_s = (bench.counts["sent"] - sent) / spent.wall_s
    table.row("rest: leases are renewed", f"{per_s:.1f} requests/s", f"of one core: {', '.join(parts)}")


def _carry(table: Table, bench: Bench) -> None:
    names = [f"c{number:04}" for number in range(min(bench.count, 10))]
    before, controllers = bench.api_mib(), bench.controllers_mib()
    for number in range(WORK_COUNT):
        bench.link.send("POST", _works(names[number % len(names)]), _work(f"w{number:04}", "x" * 800))
    bench.calm()
    mine = bench.controllers_mib() - controllers
    beside = f"{mine:.1f} MiB in the controllers; ConfigMaps of 0.8 kB for {len(names)} clusters"
    table.row(f"{WORK_COUNT:,} works", f"{bench.api_mib() - before:.1f} MiB", beside)
    begun = time.perf_counter()
    bench.link.send("POST", _works(names[0]), _work("timed", "x"))
    path = f"{_works(names[0])}/timed"
    reached = bench.within(lambda: _is_true(bench.link.send("GET", path), "Applied"), 20.0)
    shown = f"{(time.perf_counter() - begun) * 1000:.0f} ms" if reached else "not in 20 s"
    table.row("  a work, from its creation to Applied on the hub", shown)


def _works(cluster: str) -> str:
    return f"{WORKS}/namespaces/{cluster}/manifestworks"


def _work(name: str, text: str) -> dict[str, Any]:
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": name},
        "spec": _template(name, text),
    }


def _template(name: str, text: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}
    return {"workload": {"manifests": [manifest]}}


def _replicate(table: Table, bench: Bench) -> None:
    link, group = bench.link, "cluster.open-cluster-management.io"
    link.send("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})
    binding = {"apiVersion": f"{group}/v1beta2", "kind": "ManagedClusterSetBinding", "metadata": {"name": "global"}}
    link.send("POST", BINDINGS, {**binding, "spec": {"clusterSet": "global"}})
    placement = {"apiVersion": f"{group}/v1beta1", "kind": "Placement", "metadata": {"name": "all"}, "spec": {}}
    with bench.spending() as spent:
        link.send("POST", PLACING, placement)
        path = f"{PLACING}/all"
        bench.until(lambda: _selected(link.send("GET", path)) == bench.count, "the Placement selects all")
    table.row("a Placement of all clusters", f"{spent.wall_s:.2f} s", spent.text())
    kind = {"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet"}
    strategy = {"name": "all", "rolloutStrategy": {"type": "All"}}
    spec = {"placementRefs": [strategy], "manifestWorkTemplate": _template("everywhere", "x" * 800)}
    for what, text in (("created", "x" * 800), ("changed", "y" * 800)):
        spec["manifestWorkTemplate"] = _template("everywhere", text)
        with bench.spending() as spent:
            if what == "created":
                link.send("POST", REPLICA_SETS, {**kind, "metadata": {"name": "every"}, "spec": spec})
            else:
                link.send("PATCH", f"{REPLICA_SETS}/every", {"spec": spec}, MERGE)
            bench.until(lambda text=text: bench.carried(text) == bench.count, f"all works are {what}")
        table.row(f"a ManifestWorkReplicaSet: its works are {what}", f"{spent.wall_s:.1f} s", spent.text())


def _selected(placement: Any) -> int:
    return int((placement.get("status") or {}).get("numberOfSelectedClusters") or 0)


def _come_back(table: Table, bench: Bench) -> None:
    watching = bench.counts["watching"]
    bench.restart()
    bench.until(lambda: bench.counts["watching"] >= watching, "all agents watch again")
    since = [each for each in bench.seconds if each["at"] >= bench.back_at]
    rates = [
        (later["begun"] + later["sent"] - one["begun"] - one["sent"]) / max(later["at"] - one["at"], 0.1)
        for one, later in itertools.pairwise(since)
    ]
    beside = f"{max(rates, default=0.0):.0f} requests and watches begun in its busiest second, {watching} watches"
    table.row("a hub that was killed, away for 20 s, is back", f"{time.time() - bench.back_at:.1f} s", beside)


# -- processes ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Spent:
    begun: float
    wall_s: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def hub_s(self) -> float:
        return sum(seconds for name, seconds in self.parts.items() if name != "agents")

    def text(self) -> str:
        return "CPU: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.parts.items())


@dataclass(slots=True)
class Bench:
    folder: Path
    count: int
    server: Running
    controllers: Controllers
    link: Blocking
    ended: contextlib.ExitStack
    restart_api: Callable[[], Running]
    agents: subprocess.Popen[str] | None = None
    seconds: list[dict[str, Any]] = field(default_factory=list)
    back_at: float = 0.0

    @property
    def counts(self) -> dict[str, Any]:
        return self.seconds[-1] if self.seconds else {"joined": 0, "watching": 0, "sent": 0, "begun": 0, "at": 0.0}

    def start_agents(self) -> None:
        folder = self.folder / "agents"
        folder.mkdir()
        command = [sys.executable, "-m", "bench.fleetagents", str(self._bootstrap()), str(self.count), str(folder)]
        log = self.ended.enter_context((self.folder / "agents.log").open("w"))
        self.agents = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.ended.callback(self._end, self.agents)
        threading.Thread(target=self._read, args=(self.agents,), daemon=True).start()
        threading.Thread(target=self._approve, daemon=True).start()

    def restart(self) -> None:
        self.server = self.restart_api()
        self.back_at = time.time()
        self.link = Blocking(self.server)

    def _bootstrap(self) -> Path:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        made = self.link.send("POST", f"{ACCOUNT}/token", body)
        config = json.loads(self.server.kubeconfig.read_text())
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": made["status"]["token"]}}]
        file = self.folder / "bootstrap.kubeconfig"
        file.write_text(json.dumps(config))
        return file

    def _approve(self) -> None:
        """Open both gates for each cluster that asks, as an administrator would."""
        link, accepted = Blocking(self.server), set[str]()
        while len(accepted) < self.count and self.agents is not None and self.agents.poll() is None:
            for one in link.send("GET", REQUESTS)["items"]:
                name, cluster = one["metadata"]["name"], one["metadata"]["labels"][CLUSTER_NAME]
                if cluster in accepted:
                    continue
                yes = {"type": "Approved", "status": "True", "reason": "Bench", "message": "approved"}
                one["status"] = {"conditions": [yes]}
                link.send("PUT", f"{REQUESTS}/{name}/approval", one)
                link.send("PATCH", f"{CLUSTERS}/{cluster}", {"spec": {"hubAcceptsClient": True}}, MERGE)
                accepted.add(cluster)
            time.sleep(LOOK_S)

    def _read(self, agents: subprocess.Popen[str]) -> None:
        assert agents.stdout is not None
        for line in agents.stdout:
            self.seconds.append(json.loads(line))

    def _end(self, agents: subprocess.Popen[str]) -> None:
        agents.terminate()
        agents.wait(20)

    # -- looking ---------------------------------------------------------------------------------------------------

    def carried(self, text: str) -> int:
        items = self.link.send("GET", f"{WORKS}/manifestworks?labelSelector={OF_REPLICA_SET}")["items"]
        return sum(each["spec"]["workload"]["manifests"][0]["data"]["text"] == text for each in items)

    def api_mib(self) -> float:
        return self.server.resident_mib()

    def controllers_mib(self) -> float:
        return self.controllers.resident_mib()

    def cpu(self) -> dict[str, float]:
        found = {"API": self.server.cpu_s(), "controllers": self.controllers.cpu_s()}
        return found | ({"agents": cpu_s_of(self.agents.pid)} if self.agents is not None else {})

    @contextlib.contextmanager
    def spending(self) -> Iterator[Spent]:
        before, spent = self.cpu(), Spent(time.perf_counter())
        yield spent
        spent.wall_s = time.perf_counter() - spent.begun
        spent.parts = {name: seconds - before.get(name, 0.0) for name, seconds in self.cpu().items()}

    def within(self, reached: Callable[[], bool], limit_s: float) -> bool:
        until = time.perf_counter() + limit_s
        while not reached():
            if time.perf_counter() > until:
                return False
            if self.agents is not None and self.agents.poll() is not None:
                raise SystemExit(f"the agents have ended:\n{(self.folder / 'agents.log').read_text()[-2000:]}")
            time.sleep(LOOK_S)
        return True

    def until(self, reached: Callable[[], bool], what: str) -> None:
        if not self.within(reached, LIMIT_S):
            raise SystemExit(f"{what}: not in {LIMIT_S:g} s; {self.counts}")

    def calm(self) -> None:
        """Until the hub takes less than a twentieth of a core."""
        for _ in range(60):
            before = sum(self.cpu().values())
            time.sleep(1.0)
            if sum(self.cpu().values()) - before < 0.05:
                return


class Controllers(Protocol):
    """The controllers of a hub: ours, or a peer's."""

    def cpu_s(self) -> float: ...

    def resident_mib(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Ours:
    pid: int

    def cpu_s(self) -> float:
        return cpu_s_with_ended(self.pid)

    def resident_mib(self) -> float:
        return resident_mib_of(self.pid)


@contextlib.contextmanager
def _ours(folder: Path, server: Running) -> Iterator[Controllers]:
    command = syncline("controller", "--kubeconfig", str(server.kubeconfig), "--roles", "hub", "--no-leader-elect")
    with (folder / "controllers.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield Ours(process.pid)
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def _peers(programs: Path, folder: Path, server: Running) -> Iterator[Controllers]:
    """Open Cluster Management's controllers, on the same API server with the same definitions."""
    port = HttpPort(load_kubeconfig(server.kubeconfig))

    async def install() -> None:
        await drive(ensure_objects(foreign_hub_objects()), port)
        await port.close()

    asyncio.run(install())
    with ocm_hub(programs, folder / "ocm", server.kubeconfig, features=("ManifestWorkReplicaSet",)) as running_peers:
        yield running_peers


@contextlib.contextmanager
def _hub(folder: Path, count: int, programs: Path | None = None) -> Iterator[Bench]:
    port, data = free_port(), folder / "data"
    command = [*apiserver(folder, port), "--data", str(data)]
    with contextlib.ExitStack() as ended:
        lives = contextlib.ExitStack()
        ended.callback(lambda: lives.close())
        server = lives.enter_context(running(command, folder, port))

        def restart() -> Running:
            lives.close()
            time.sleep(20.0)
            return lives.enter_context(running(command, folder, port))

        controllers = ended.enter_context(_peers(programs, folder, server) if programs else _ours(folder, server))
        bench = Bench(folder, count, server, controllers, Blocking(server), ended, restart)
        if not bench.within(lambda: _exists(server), LIMIT_S):
            raise SystemExit((folder / "controllers.log").read_text()[-2000:])
        yield bench


def _exists(server: Running) -> bool:
    try:
        Blocking(server).send("GET", ACCOUNT)
        Blocking(server).send("GET", CLUSTERS)
    except SystemExit:
        return False
    return True
