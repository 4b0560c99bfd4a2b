"""The Ansible collection by ``ansible-playbook`` and ``ansible-inventory``, on a served cluster that is a hub, too."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.assembly.test_destinations_live import ask
from tests.cli.test_verbs_live import CONFIG, WEB, Repository
from tests.integrations.preloaded import preloaded
from tests.live import START_S, Served, reached, served_cluster

from syncline.assembly.fleet.hub import HubSettings
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(sys.executable).parent
MCO = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"
GROUP = "cluster.open-cluster-management.io"
HUB = f"/apis/{GROUP}"
QUICK = {"syncline.dev/pull-seconds": "0", "syncline.dev/start-seconds": "0", "syncline.dev/stop-seconds": "0"}
LABELS = {"node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": "north"}
INVENTORY = """plugin: syncline.syncline.cluster
strict: true
keyed_groups: [{key: syncline_zone | default('none'), prefix: zone}]
groups: {still: "syncline_kind == 'node' and not syncline_updating"}
compose: {short: "syncline_name[:4]"}
cache: true
cache_plugin: ansible.builtin.jsonfile
"""

pytestmark = pytest.mark.skipif(not (PROGRAMS / "ansible-playbook").exists(), reason="needs the extra ansible")


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster, the program, and what Ansible is started with."""

    served: Served
    folder: Path
    program: Path
    stranger: Path
    repository: Repository
    driver: subprocess.Popen[str]

    def run(
        self, program: str, *words: str, kubeconfig: Path | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {key: text for key, text in os.environ.items() if not key.startswith("ANSIBLE_")}
        environment = kept | {
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.folder / "collections"),
            "ANSIBLE_CALLBACKS_ENABLED": "syncline.syncline.journal",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(self.folder / "cache"),
            "ANSIBLE_PIPELINING": "1",
            "SYNCLINE_JOURNAL": str(self.folder / "journal.jsonl"),
            "SYNCLINE_PROGRAM": str(self.program),
            "KUBECONFIG": str(kubeconfig or self.served.kubeconfig),
            **more,
        }
        command = [str(PROGRAMS / program), *words]
        return subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)

    def module(self, what: str, /, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
        """What a module returns, without a play around it."""
        access = {"program": str(self.program)}
        access |= {} if what == "node_agent" else {"kubeconfig": str(self.served.kubeconfig)}
        given = {"module": what, "arguments": access | arguments, "check": check}
        assert self.driver.stdin is not None and self.driver.stdout is not None
        self.driver.stdin.write(json.dumps(given) + "\n")
        self.driver.stdin.flush()
        found: dict[str, Any] = json.loads(self.driver.stdout.readline())
        return found

    def line(self) -> str:
        """A line with which a cluster joins this hub."""
        words = [str(self.program), "hub", "token", "--kubeconfig", str(self.served.kubeconfig)]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    def changes(self, what: str, /, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
        """As :meth:`module`, where it changes something."""
        found = self.module(what, check=check, **arguments)
        assert found.get("changed") is True and "failed" not in found, found
        return found

    def keeps(self, what: str, /, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
        """As :meth:`module`, where it changes nothing."""
        found = self.module(what, check=check, **arguments)
        assert found.get("changed") is False and "failed" not in found, found
        return found

    def fails(self, what: str, /, **arguments: Any) -> dict[str, Any]:
        found = self.module(what, **arguments)
        assert found.get("failed") is True, found
        return found


@contextlib.contextmanager
def driving(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the driver of modules, and end it."""
    environment = os.environ | {"PYTHONPATH": str(folder / "collections"), "SYNCLINE_HOME": str(folder / "joined")}
    command = [sys.executable, str(Path(__file__).with_name("driver.py"))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, cwd=folder, text=True, **pipes) as driver:
        try:
            yield driver
        finally:
            driver.terminate()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("play")
    gitops = GitOpsSettings(folder / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600))
    settings = ClusterSettings(nodes=1, node_labels=LABELS)
    with preloaded(folder) as program, served_cluster(folder, settings, gitops, HubSettings()) as served:
        repository = _fill(served, folder)
        (folder / "collections/ansible_collections/syncline").mkdir(parents=True)
        (folder / "collections/ansible_collections/syncline/syncline").symlink_to(ROOT / "integrations/ansible")
        (folder / "cluster.syncline.yml").write_text(INVENTORY)
        (folder / "root").mkdir()
        with driving(folder) as driver:
            yield Stage(served, folder, program, _stranger(served, folder), repository, driver)


def _fill(served: Served, folder: Path) -> Repository:
    """Pools with machines, an Application, a pod that no controller replaces, a cluster that a Placement selects;
    return the Application's repository."""
    repository = Repository(folder / "shop")
    repository.commit(menu=CONFIG % "tomato", web=WEB)
    source = {"repoURL": str(repository.folder), "path": ".", "targetRevision": "HEAD"}
    spec = {
        "project": "default",
        "source": source,
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
        "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
    }
    apps = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
    _make(served, apps, "argoproj.io/v1alpha1", "Application", "shop", spec)
    _make(served, "/api/v1/namespaces", "v1", "Namespace", "fleet")
    cluster = {"hubAcceptsClient": True, "managedClusterClientConfigs": [{"url": "https://{{ 1 + 1 }}"}]}
    _make(served, f"{HUB}/v1/managedclusters", f"{GROUP}/v1", "ManagedCluster", "eu-1", cluster)
    waits = {"hubAcceptsClient": False}
    _make(served, f"{HUB}/v1/managedclusters", f"{GROUP}/v1", "ManagedCluster", "us-1", waits)
    bindings, placements = (f"{HUB}/{place}" for place in (
        "v1beta2/namespaces/fleet/managedclustersetbindings", "v1beta1/namespaces/fleet/placements",
    ))  # fmt: skip
    _make(served, bindings, f"{GROUP}/v1beta2", "ManagedClusterSetBinding", "default", {"clusterSet": "default"})
    tolerations = [{"key": f"{GROUP}/{one}"} for one in ("unreachable", "unavailable")]
    _make(served, placements, f"{GROUP}/v1beta1", "Placement", "all-clusters", {"tolerations": tolerations})
    pod = {"nodeName": "node-1", "containers": [{"name": "a", "image": "a:1"}]}
    _make(served, "/api/v1/namespaces/default/pods", "v1", "Pod", "alone", pod)
    transport = served.cluster.core.transport(judged=False)

    def items(path: str) -> list[Any]:
        found: list[Any] = transport.send(Request("GET", path)).or_raise()["items"]
        return found

    def updated() -> bool:
        return any(
            one["metadata"]["name"] == "worker" and one.get("status", {}).get("updatedMachineCount") == 1
            for one in items(MCO)
        )

    async def settled() -> None:
        await served.cluster.start_machine_config("argocd")
        await reached(transport, MCO, updated)
        decisions = f"{HUB}/v1beta1/placementdecisions"
        await reached(transport, decisions, lambda: [one for one in items(decisions) if one.get("status")])

    asyncio.run_coroutine_threadsafe(settled(), served.loop).result(2 * START_S)
    return repository


def _make(served: Served, path: str, version: str, kind: str, name: str, spec: Any = None) -> None:
    metadata = {"name": name, "annotations": QUICK}
    made = {"apiVersion": version, "kind": kind, "metadata": metadata} | ({} if spec is None else {"spec": spec})
    answer = ask(served, "POST", path, made)
    assert answer["kind"] == kind, answer


def _stranger(served: Served, folder: Path) -> Path:
    """Return the kubeconfig of a user who may list nodes, and nothing else."""
    ask(served, "POST", "/api/v1/namespaces/fleet/serviceaccounts", {"metadata": {"name": "stranger"}})
    token = ask(served, "POST", "/api/v1/namespaces/fleet/serviceaccounts/stranger/token", {"spec": {}})
    access = json.loads(served.kubeconfig.read_text())
    access["users"] = [{"name": "stranger", "user": {"token": token["status"]["token"]}}]
    for one in access["contexts"]:
        one["context"] |= {"user": "stranger"}
    path = folder / "stranger"
    path.write_text(json.dumps(access))
    return path


def test_a_play_has_the_inventory_the_programs_words_and_a_journal(stage: Stage) -> None:
    given = {"program": str(stage.program), "kubeconfig": str(stage.served.kubeconfig)}
    playbook = str(Path(__file__).with_name("playbook.yml"))
    done = stage.run("ansible-playbook", "-i", "cluster.syncline.yml", "--diff", "-e", json.dumps(given), playbook)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '+    "soup": "tomato"' in done.stdout or '"object": "/ConfigMap/shop/menu"' in done.stdout
    entries = [json.loads(line) for line in (stage.folder / "journal.jsonl").read_text().splitlines()]
    assert all(list(one) == ["when", "who", "subject", "what", "why"] for one in entries), "as base/journal.py has it"
    seen = {(one["what"], one["why"].partition(":")[0]) for one in entries}
    assert ("syncline.syncline.application_sync changed", "Check mode plans a sync") in seen
    assert ("syncline.syncline.application_info ok", "It changes nothing") in seen
    assert (entries[0]["what"], entries[-1]["what"]) == ("play began", "play ended")
    secret = [one["why"] for one in entries if one["what"].startswith("ansible.builtin.fail")]
    assert secret == ["A secret in a failure: hidden by no_log"]


def _objects(plan: dict[str, Any]) -> list[str]:
    return [one["object"] for one in plan["actions"]]


def _operation(stage: Stage) -> Any:
    """The Application's last operation."""
    found = ask(stage.served, "GET", "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/shop")
    return found["status"]["operationState"]["operation"]


def test_an_application_is_planned_synced_once_and_again_on_demand(stage: Stage) -> None:
    found = stage.fails("plan", name="shop", fail_on=["changes"])
    assert found["verdict"] == "changes" and found["msg"].startswith("the plan of argocd/shop is: changes")
    assert "/ConfigMap/shop/menu" in [one["object"] for wave in found["waves"] for one in wave["actions"]]
    planned = stage.changes("application_sync", check=True, name="shop", resources=[":ConfigMap:menu"])
    assert _objects(planned["plan"]) == ["/Namespace//shop", "/ConfigMap/shop/menu"]
    (before,) = stage.keeps("application_info", name="shop")["applications"]
    assert before["sync"] == "OutOfSync" and before["operation"]["phase"] == ""
    wait = {"wait_healthy": True, "timeout": START_S}
    synced = stage.changes("application_sync", name="shop", strategy="apply", info={"by": "a play"}, **wait)
    assert (synced["application"]["sync"], synced["application"]["health"]) == ("Synced", "Healthy")
    stage.keeps("application_wait", name="shop", timeout=START_S, **{"for": ["sync", "health"]})
    again = stage.keeps("application_sync", name="shop", prune=True)
    assert again["plan"]["verdict"] == "nothing to do" and "application" not in again
    assert "apply" in _operation(stage)["sync"]["syncStrategy"]
    more = stage.changes("application_sync", name="shop", always=True, strategy="hook", timeout=START_S)
    assert more["plan"]["verdict"] == "nothing to do" and "hook" in _operation(stage)["sync"]["syncStrategy"]
    stage.repository.commit(menu=CONFIG % "potato", web=WEB)
    dry = stage.keeps("application_sync", name="shop", dry_run=True, timeout=START_S)
    assert _objects(dry["plan"]) == ["/ConfigMap/shop/menu"] and dry["application"]["operation"]["phase"] == "Succeeded"
    menu = ask(stage.served, "GET", "/api/v1/namespaces/shop/configmaps/menu")
    assert menu["data"]["soup"] == "tomato", "a dry run asks the API and changes no object"


def test_an_ansible_config_is_waited_for_read_and_refused_by_name(stage: Stage) -> None:
    book = "- hosts: all\n%s  tasks:\n    - {name: the message, copy: {content: x, dest: /etc/motd}}\n"
    path = "/apis/syncline.dev/v1alpha1/ansibleconfigs"
    books = Repository(stage.folder / "books")
    commit = books.commit(good=book % "", bad=book % "  serial: 1\n")
    for name in ("good", "bad"):
        spec = {"repository": {"repoURL": str(books.folder)}, "playbook": f"{name}.yaml", "pool": "worker"}
        _make(stage.served, path, "syncline.dev/v1alpha1", "AnsibleConfig", name, spec)
    waited = stage.keeps("ansible_config_wait", name="good", timeout=START_S)["ansible_config"]
    assert waited["counts"] == {"nodes": 1, "applied": 1, "failing": 0} and waited["revision"] == commit
    assert [(one["name"], one["phase"], one["tasks"][0]["task"]) for one in waited["nodes"]] == [
        ("node-1", "Applied", "the message")
    ]
    refused = stage.fails("ansible_config_wait", name="bad", timeout=START_S)
    assert "ansibleconfig/bad is Refused" in refused["msg"] and "bad.yaml:2: serial is refused" in refused["msg"]
    listed = stage.keeps("ansible_config_info")["ansible_configs"]
    assert [one["name"] for one in listed] == ["bad", "good"]
    assert stage.keeps("ansible_config_info", name="none")["ansible_configs"] == []
    assert stage.module("ansible_config_wait", check=True, name="good")["ansible_config"]["name"] == "good"


def test_holds_are_changed_once_and_those_of_others_never(stage: Stage) -> None:
    holding = {"pools": ["worker", "master"], "reason": "disks"}
    stage.changes("hold", check=True, length="2h", **holding)
    made = stage.changes("hold", length="2h", **holding)
    assert json.loads(made["diff"]["before"])["worker"] == [], "check mode holds nothing"
    assert json.loads(made["diff"]["after"])["master"][0]["reason"] == "disks"
    stage.keeps("hold", length="1h", **holding)
    night = {"owner": "ops", "until": "2999-01-01T00:00:00Z", "reason": "night"}
    paused = stage.changes("pool", name="worker", paused=True, **night)
    assert paused["pool"]["state"] == "Held" and len(paused["still_held_by"]) == 1
    resumed = stage.changes("pool", name="worker", paused=False, wait_updated=True, timeout=START_S)
    assert [hold["owner"] for hold in resumed["pool"]["holds"]] == ["ops"] and len(resumed["still_held_by"]) == 1
    assert stage.changes("pool", name="master", paused=True, spec=True)["pool"]["paused"]
    stage.keeps("pool", name="master", paused=True, spec=True)
    assert not stage.changes("pool", name="master", paused=False, spec=True)["pool"]["paused"]
    assert stage.keeps("pool_info", name="nowhere")["pools"] == [], "what is absent is an empty list"
    forbidden = stage.fails("pool_info", name="worker", kubeconfig=str(stage.stranger))
    assert "machineconfigpools" in forbidden["msg"] and "ask for a ClusterRole" in forbidden["msg"]


def test_a_drain_is_planned_refused_by_name_and_made_once(stage: Stage) -> None:
    refused = stage.fails("node_drain", name="node-1")
    assert refused["blocked"] and "default/alone" in refused["msg"] and "--force" in refused["msg"]
    planned = stage.changes("node_drain", check=True, name="node-1", force=True)
    assert planned["schedulable"] and "default/alone" in planned["evicted"]
    drained = stage.changes("node_drain", name="node-1", force=True, timeout=START_S)
    assert drained["evicted"] == planned["evicted"] and not drained["schedulable"]
    assert (json.loads(drained["diff"]["before"])["schedulable"], drained["schedulable"]) == (True, False)
    assert stage.keeps("node_drain", name="node-1")["evicted"] == []
    assert stage.changes("node_drain", name="node-1", state="uncordoned")["schedulable"]


def test_a_node_joins_once_with_a_kubeconfig_and_an_agent(stage: Stage) -> None:
    file = stage.folder / "edge.kubeconfig"
    edge = {"name": "edge", "dest": str(file)}
    stage.changes("node_join", check=True, **edge)
    assert not file.exists()
    joined = stage.changes("node_join", **edge)
    assert joined["server"] == stage.served.url and file.stat().st_mode & 0o777 == 0o600
    stage.keeps("node_join", **edge)
    stage.changes("node_join", server="https://other.example:6443", **edge)
    agent = {"node": "edge", "root": str(stage.folder / "root"), "kubeconfig_file": str(file)}
    assert "--node edge" in stage.changes("node_agent", **agent)["unit"]
    stage.keeps("node_agent", **agent)


def test_a_cluster_joins_once_and_its_line_is_nowhere(stage: Stage) -> None:
    line = stage.line()
    join = {"name": "eu-9", "line": line}
    assert not stage.changes("cluster_join", check=True, **join)["joined"]
    waits = stage.fails("cluster_join", timeout=1, **join)
    assert line not in json.dumps(waits) and "eu-9" in waits["msg"]
    stage.changes("cluster_accept", name="eu-9")
    assert stage.changes("cluster_join", timeout=START_S, **join)["joined"]
    again = stage.keeps("cluster_join", timeout=START_S, **join)
    assert again["hub"] == stage.served.url and line not in json.dumps(again)
    assert stage.keeps("cluster_join", check=True, **join)["joined"]


def test_a_cluster_is_accepted_once_and_denied_once(stage: Stage) -> None:
    stage.changes("cluster_accept", check=True, name="us-1")
    assert not stage.changes("cluster_accept", name="us-1")["cluster"]["accepted"]
    assert stage.keeps("cluster_accept", name="us-1")["cluster"]["accepted"]
    assert stage.changes("cluster_accept", name="us-1", state="denied")["cluster"]["accepted"]
    assert not stage.keeps("cluster_accept", name="us-1", state="denied")["cluster"]["accepted"]


def test_what_may_not_be_listed_fails_an_inventory_or_is_named_in_it(stage: Stage) -> None:
    text = INVENTORY.partition("cache:")[0]
    for name, more in (("strict.syncline.yml", ""), ("open.syncline.yml", "refused: warn\nparts: [pools]\n")):
        (stage.folder / name).write_text(text + more)
    sources = [word for name in ("strict", "open") for word in ("-i", f"{name}.syncline.yml")]
    done = stage.run("ansible-inventory", *sources, "--list", kubeconfig=stage.stranger)
    assert "MachineConfigPool may not be listed" in done.stderr and "'refused: warn'" in done.stderr
    known = json.loads(done.stdout)
    assert set(known["all"]["children"]) == {"ungrouped"}, "no group says that nothing is there"
    refused = known["all"].get("vars") or {}
    assert "MachineConfigPool" in json.dumps(refused) or "[WARNING]" in done.stderr


def test_a_journal_ends_with_a_line_that_says_so_when_it_is_full(stage: Stage) -> None:
    journal = stage.folder / "short.jsonl"
    example = ROOT / "examples/ansible"
    words = ["-i", str(example / "fleet.syncline.yml"), "--tags", "none", str(example / "release.yml")]
    more = {"SYNCLINE_JOURNAL": str(journal), "SYNCLINE_JOURNAL_MAX_ENTRIES": "2"}
    done = stage.run("ansible-playbook", *words, **more)
    assert done.returncode == 0 and "the journal is full" in done.stderr + done.stdout, done.stdout + done.stderr
    entries = [json.loads(line)["what"] for line in journal.read_text().splitlines()]
    assert entries == ["play began", "play began", "journal full"]
    assert journal.stat().st_mode & 0o777 == 0o600
