"""The Ansible collection by ``ansible-playbook`` and ``ansible-inventory``, on a served cluster that is a hub, too."""

from __future__ import annotations

import asyncio
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


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("play")
    gitops = GitOpsSettings(folder / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600))
    settings = ClusterSettings(nodes=1, node_labels=LABELS)
    with preloaded(folder) as program, served_cluster(folder, settings, gitops, HubSettings()) as served:
        _fill(served, folder)
        (folder / "collections/ansible_collections/syncline").mkdir(parents=True)
        (folder / "collections/ansible_collections/syncline/syncline").symlink_to(ROOT / "integrations/ansible")
        (folder / "cluster.syncline.yml").write_text(INVENTORY)
        (folder / "root").mkdir()
        yield Stage(served, folder, program, _stranger(served, folder))


def _fill(served: Served, folder: Path) -> None:
    """Pools with machines, an Application, a pod that no controller replaces, a cluster that a Placement selects."""
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


def test_each_module_changes_once_shows_what_and_nothing_in_check_mode(stage: Stage) -> None:
    given = {
        "program": str(stage.program),
        "kubeconfig": str(stage.served.kubeconfig),
        "folder": str(stage.folder),
        "stranger": str(stage.stranger),
    }
    playbook = str(Path(__file__).with_name("playbook.yml"))
    done = stage.run("ansible-playbook", "-i", "cluster.syncline.yml", "--diff", "-e", json.dumps(given), playbook)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '+    "soup": "tomato"' in done.stdout or '"object": "/ConfigMap/shop/menu"' in done.stdout
    assert '-  "schedulable": true' in done.stdout and '+  "schedulable": false' in done.stdout
    assert (stage.folder / "edge.kubeconfig").stat().st_mode & 0o777 == 0o600
    entries = [json.loads(line) for line in (stage.folder / "journal.jsonl").read_text().splitlines()]
    assert all(list(one) == ["when", "who", "subject", "what", "why"] for one in entries), "as base/journal.py has it"
    seen = {(one["what"], one["why"].partition(":")[0]) for one in entries}
    assert ("syncline.syncline.application_sync changed", "A sync") in seen
    assert ("syncline.syncline.application_sync ok", "A second sync") in seen
    assert (entries[0]["what"], entries[-1]["what"]) == ("play began", "play ended")
    secret = [one["why"] for one in entries if one["what"].startswith("ansible.builtin.fail")]
    assert secret == ["A secret in a failure: hidden by no_log"]


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
