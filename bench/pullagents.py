"""Twenty Applications in each of three clusters whose agents are processes of their own, over TLS.

Started by ``python -m bench pullagents``: what filling, one commit to all of them, and a time at rest cost the hub, the
clusters and their agents. Each agent reaches the hub through a proxy that counts bytes; the hub counts its requests.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import pullscene
from bench.faultproxy import FaultProxy
from bench.processes import Running, cpu_s_of, resident_mib_of, syncline
from bench.table import Table
from syncline.kube.objects import dig
from syncline.kube.yaml.loading import load_all

EACH = 20
"""Applications of a cluster."""
REST_S = 60.0
_COUNTED = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<count>\d+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
LEASES = "leases"
Asked = Counter[tuple[str, str]]


@dataclass
class Agents:
    """The processes of agents and the proxies in front of them, by cluster."""

    pids: dict[str, int] = field(default_factory=dict)
    proxies: dict[str, FaultProxy] = field(default_factory=dict)

    @contextlib.contextmanager
    def begin(self, name: str, hub: Running, spoke: Running, folder: Path) -> Iterator[int]:
        """Run the agent of a cluster until the block ends."""
        folder.mkdir()
        proxy = self.proxies[name] = FaultProxy(hub.port)
        env = {**os.environ, "KUBECONFIG": str(hub.kubeconfig), "SYNCLINE_HOME": str(folder)}
        url = proxy.url.replace("http:", "https:")
        said = subprocess.run(syncline("hub", "token", "--server", url), env=env, capture_output=True, text=True)
        join = ("join", said.stdout.strip(), "--name", name, "--kubeconfig", str(spoke.kubeconfig))
        with (folder / "output").open("wb") as output:
            command = syncline(*join)
            process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=env)
        self.pids[name] = process.pid
        try:
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            proxy.close()


@dataclass(frozen=True, slots=True)
class Account:
    """Seconds of CPU of the hub, the clusters and the agents; requests to the hub; bytes between it and agents."""

    hub_s: float
    clusters_s: float
    agents_s: float
    requests: Asked
    passed: int

    def since(self, before: Account, pairs: int) -> str:
        spent = (self.hub_s - before.hub_s, self.clusters_s - before.clusters_s, self.agents_s - before.agents_s)
        hub, clusters, agents = (f"{one / pairs * 1000:.0f} ms" for one in spent)
        kib = (self.passed - before.passed) / 1024 / pairs
        return f"for each: CPU hub {hub}, cluster {clusters}, agent {agents}; {kib:.1f} KiB between agent and hub"

    def asked(self, before: Account) -> Asked:
        return self.requests - before.requests


def figures(table: Table, *, quick: bool) -> None:
    """``quick``: nothing is shorter; one run takes about three minutes."""
    table.title(f"{EACH} Applications in each of three clusters, with agents as processes of their own over TLS")
    agents = Agents()
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        played = pullscene.played(table, pullscene.scenes(), Path(place), agents.begin, refusing=False)
        with played as scene:
            _story(table, scene, agents)


def _story(table: Table, scene: pullscene.Scene, agents: Agents) -> None:
    pairs = EACH * len(pullscene.CLUSTERS)
    sets = [f"web-{number:02}" for number in range(EACH)]
    pullscene.administrate(scene)
    begun = time.perf_counter()
    _make(scene, sets[:1])  # the first read of the repository is not part of the figures
    scene.until("one Application of each cluster runs", lambda: _reported(scene, sets[:1], 1), begun)
    before, begun = _account(scene, agents), time.perf_counter()
    _make(scene, sets[1:])
    more = pairs - len(pullscene.CLUSTERS)
    scene.until(f"{more} more run and are reported", lambda: _reported(scene, sets, 1), begun)
    _row(table, scene, agents, before, more)
    before, begun = _account(scene, agents), scene.commit(1, 2)
    scene.until("a commit to all of them, to the last report", lambda: _reported(scene, sets, 2), begun)
    _row(table, scene, agents, before, pairs)
    time.sleep(10)
    before = _account(scene, agents)
    time.sleep(REST_S)
    now = _account(scene, agents)
    asked = now.asked(before)
    rest = {f"{verb} {what}": count for (verb, what), count in asked.items() if what != LEASES}
    leases = sum(count for (_, what), count in asked.items() if what == LEASES)
    cpu = f"CPU hub {now.hub_s - before.hub_s:.2f} s, agents {now.agents_s - before.agents_s:.2f} s"
    passed = f"{(now.passed - before.passed) / 1024:.0f} KiB"
    table.row(f"at rest for {REST_S:.0f} s", f"{leases} leases", f"{cpu}, {passed}; other requests: {rest or 'none'}")
    for name, pid in agents.pids.items():
        table.row(f"resident: agent of {name}", f"{resident_mib_of(pid):.0f} MiB")


def _row(table: Table, scene: pullscene.Scene, agents: Agents, before: Account, pairs: int) -> None:
    now = _account(scene, agents)
    table.row("  spent", "", now.since(before, pairs))
    found = [(count, f"{verb} {what}") for (verb, what), count in now.asked(before).items() if what != LEASES]
    table.row(
        "  requests of agents to the hub", "", ", ".join(f"{count} {what}" for count, what in sorted(found)[::-1])
    )


def _account(scene: pullscene.Scene, agents: Agents) -> Account:
    asked: Asked = Counter()
    for one in _COUNTED.finditer(scene.api.text("/metrics")):
        labels = dict(_LABEL.findall(one["labels"]))
        what = "/".join(part for part in (labels["resource"], labels["subresource"]) if part)
        # What the bench itself asks: Applications, reports of sets, metrics.
        if labels["verb"] not in ("GET", "LIST") and what:
            asked[labels["verb"], what] += int(one["count"])
    clusters = sum(one.cpu_s() for one in scene.spokes.values())
    own = sum(map(cpu_s_of, agents.pids.values()))
    passed = sum(one.passed_bytes for one in agents.proxies.values())
    return Account(scene.hub.cpu_s(), clusters, own, asked, passed)


def _make(scene: pullscene.Scene, sets: list[str]) -> None:
    """Make sets like the one of the scene, each for a namespace of its own, and the scene's GitOpsCluster."""
    where = f"namespaces/{pullscene.NAMESPACE}"
    (importer,) = load_all((scene.folder / "pull-model" / "gitopscluster.yaml").read_text()).values
    path = f"/apis/{importer['apiVersion']}/{where}/gitopsclusters"
    if scene.api.find(f"{path}/{importer['metadata']['name']}") is None:
        scene.api.send("POST", path, importer)
    (made,) = load_all((scene.folder / "pull-model" / "applicationset.yaml").read_text()).values
    for name in sets:
        template: Any = made["spec"]["template"]
        metadata = {**template["metadata"], "name": f"{{{{name}}}}-{name}"}
        spec = {**template["spec"], "destination": {**template["spec"]["destination"], "namespace": name}}
        one = {**made["spec"], "template": {"metadata": metadata, "spec": spec}}
        body = {**made, "metadata": {**made["metadata"], "name": name}, "spec": one}
        scene.api.send("POST", f"/apis/{made['apiVersion']}/{where}/applicationsets", body)


def _reported(scene: pullscene.Scene, sets: list[str], replicas: int) -> bool:
    """Return whether the report of each set says of each cluster that it runs the newest commit well."""
    path = pullscene.REPORT.rpartition("/")[0]
    found = {one["metadata"]["name"]: one for one in scene.api.send("GET", path)["items"]}
    entries = [dig(found.get(name) or {}, "statuses", "clusterConditions", default=[]) for name in sets]
    good = {"syncStatus": "Synced", "healthStatus": "Healthy", "syncRevision": scene.head()}
    return all(
        len(listed) == len(pullscene.CLUSTERS) and all(good.items() <= one.items() for one in listed)
        for listed in entries
    )
