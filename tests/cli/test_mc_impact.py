"""``syncline mc impact`` against a served cluster with machines: files, Butane, deletions, exit codes, and exports."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_mc import MCO, rendered
from tests.live import START_S, Served, served_cluster
from tests.machineconfig.rendering import files, machine_config
from tests.scenes.scenes import Repo, application

from syncline.assembly.gitops import GitOpsSettings
from syncline.cli.main import main
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import dump
from syncline.machineconfig.names import CURRENT, DESIRED, STATE

BUTANE = """variant: openshift
version: 4.14.0
metadata: {name: 99-motd, labels: {machineconfiguration.openshift.io/role: worker}}
storage:
  files: [{path: /etc/motd, contents: {local: motd.txt}}]
"""


def node(name: str, config: str) -> Obj:
    """As its agent left it; no machine stands behind it, so that nothing moves while it is asked about."""
    have = {CURRENT: config, DESIRED: config, STATE: "Done"}
    metadata = {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}, "annotations": have}
    ready = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2099-01-01T00:00:00Z"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": ready}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("impact")
    gitops = GitOpsSettings(folder / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600))
    with served_cluster(folder, gitops=gitops) as cluster:

        async def story() -> None:
            await cluster.cluster.start_machine_config("argocd")
            await rendered(cluster, "rendered-worker-")
            transport = cluster.cluster.core.transport(judged=False)
            pool = transport.send(Request("GET", f"{MCO}/machineconfigpools/worker")).or_raise()
            for name in ("node-1", "node-2"):
                body = node(name, pool["spec"]["configuration"]["name"])
                transport.send(Request("POST", "/api/v1/nodes", body=body)).or_raise()

        asyncio.run_coroutine_threadsafe(story(), cluster.loop).result(2 * START_S)
        yield cluster


def impact(served: Served, *words: str) -> int:
    return main(["mc", "impact", *words, "--kubeconfig", str(served.kubeconfig)])


def answer(served: Served, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    impact(served, *words, "-o", "json")
    return json.loads(capsys.readouterr().out)


def written(folder: Path, *objects: Any) -> str:
    path = folder / "change.yaml"
    path.write_text("".join(f"---\n{dump(one)}" for one in objects))
    return str(path)


def test_a_change_is_told_from_the_conclusion_down_to_each_node(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = machine_config("99-args", kernelArguments=["nosmt"])
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    file = written(tmp_path, config, other)
    assert impact(served, "-f", file) == 2
    told = capsys.readouterr().out
    head, _, first, because, *_ = told.splitlines()
    assert head == "+ 99-args"
    assert first == "pool worker: 2 nodes drain and reboot, one at a time, node-1 first, about 10 min"
    assert because == "  because kernelArguments + nosmt (99-args)"
    assert "durations: drain 1m (assumed), files 10s (assumed), reboot 4m (assumed)" in told
    assert "note: 1 other object of the files does not concern machines" in told
    found = answer(served, capsys, "-f", file)
    assert found["verdict"] == "changes" and found["machineConfigs"] == ["+ 99-args"]
    (pool,) = found["pools"]
    assert [(node["name"], node["steps"], node["wave"]) for node in pool["nodes"]] == [
        ("node-1", ["drain", "reboot"], 1),
        ("node-2", ["drain", "reboot"], 2),
    ]
    assert pool["causes"][0]["field"] == "kernelArguments" and pool["causes"][0]["machineConfig"] == "99-args"
    assert pool["lengths"]["reboot"] == {"seconds": 240, "measuredUpdates": 0}


def test_butane_is_translated_with_the_files_beside_it(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "motd.bu").write_text(BUTANE)
    (tmp_path / "motd.txt").write_text("hello\n")
    assert impact(served, "-f", str(tmp_path / "motd.bu")) == 2
    assert "because file /etc/motd added (no policy, 99-motd)" in capsys.readouterr().out
    (tmp_path / "motd.bu").write_text("variant: fcos\nversion: 1.5.0\n")
    assert impact(served, "-f", str(tmp_path)) == 2
    assert "write variant openshift with metadata.name and a role label" in capsys.readouterr().err


SITE = """\
- hosts: all
  gather_facts: false
  tasks:
    - {name: the message, copy: {content: x, dest: /etc/motd}, tags: [syncline.drain]}
    - {name: the date, command: date}
"""


def ansible_config(folder: Path, url: str) -> str:
    spec = {"repository": {"repoURL": url}, "pool": "worker", "playbook": "site.yml"}
    config = {"apiVersion": "syncline.dev/v1alpha1", "kind": "AnsibleConfig", "metadata": {"name": "motd"}}
    return written(folder, config | {"spec": spec})


def test_the_playbook_of_an_ansible_config_is_read_from_git(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = Repo(tmp_path / "playbooks")
    (repo.path / "site.yml").write_text(SITE)
    commit, file = repo.commit("a message"), ansible_config(tmp_path, str(repo.path))
    found = answer(served, capsys, "-f", file)
    (play,), (pool,) = found["ansible"], found["pools"]
    assert (play["revision"], play["disruption"], play["wouldChange"]) == (commit, "Drain", None)
    assert [(task["place"], task["task"]) for task in play["tasks"]] == [
        ("site.yml:4", "the message"),
        ("site.yml:5", "the date"),
    ]
    assert [node["steps"] for node in pool["nodes"]] == [["drain"], ["drain"]]
    assert impact(served, "-f", file) == 2
    assert "not known: --check runs them in check mode" in capsys.readouterr().out
    repo.change("site.yml", "hosts: all", "hosts: all\n  serial: 1")
    repo.commit("one by one")
    assert impact(served, "-f", file) == 4
    assert "refused: AnsibleConfig motd: commit " in (told := capsys.readouterr().out) and "site.yml:2: serial" in told
    assert impact(served, "-f", ansible_config(tmp_path, str(tmp_path / "nowhere"))) == 4
    assert "refused: AnsibleConfig motd: repository " in capsys.readouterr().out
    assert impact(served, "--check") == 2 and "go with an AnsibleConfig in -f" in capsys.readouterr().err


@pytest.mark.process
def test_check_mode_says_which_tasks_would_change_something_and_of_which_it_says_nothing(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ansible")
    (tmp_path / "books").mkdir()
    (tmp_path / "books/site.yml").write_text(SITE)
    file = ansible_config(tmp_path, "https://git.example.com/playbooks.git")
    assert impact(served, "-f", file, "--folder", str(tmp_path / "books"), "--check") == 2
    told = capsys.readouterr().out
    would = "in check mode on a minimal tree with the facts of node-1 it would change task 'the message' (site.yml:4)"
    assert would in told or "playbooks are captured in a root of their own" in told
    assert "check mode says nothing of task 'the date' (site.yml:5)" in told or would not in told


def test_standard_input_is_read_and_what_the_api_refuses_is_told(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = dump(machine_config("99-bad", kernelArguments="nosmt"))

    class Typed:
        buffer = io.BytesIO(text.encode())

    monkeypatch.setattr(sys, "stdin", Typed())
    assert impact(served, "-f", "-") == 4
    assert "refused: MachineConfig 99-bad: spec.kernelArguments: Invalid value" in capsys.readouterr().out


def test_nothing_is_nothing_and_wrong_words_are_usage(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert impact(served) == 0
    assert capsys.readouterr().out == "no node is touched\n"
    for words, said in (
        (["--delete", "99-none"], "--delete 99-none: there is no such MachineConfig; see `syncline mc list`"),
        (["--delete", "gadget/x"], "--delete gadget/x: the cluster serves no kind 'gadget'"),
        (["--pool", "gpu"], "MachineConfigPool gpu does not exist; there are master, worker"),
        (["-f", str(tmp_path / "none.yaml")], "no such file or folder"),
        (["-f", written(tmp_path, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})], "nothing in it"),
        (["--prune"], "--app and --prune go with --revision"),
    ):
        assert impact(served, *words) == 2
        assert said in capsys.readouterr().err


def test_an_export_is_asked_as_the_cluster_is(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transport = served.cluster.core.transport(judged=False)
    exported: list[Any] = []
    for path, kind in (
        (f"{MCO}/machineconfigpools", "MachineConfigPool"),
        (f"{MCO}/machineconfigs", "MachineConfig"),
        (f"{MCO}/controllerconfigs", "ControllerConfig"),
        ("/api/v1/nodes", "Node"),
    ):
        version = "v1" if kind == "Node" else "machineconfiguration.openshift.io/v1"
        items = transport.send(Request("GET", path)).or_raise()["items"]
        exported += [{"apiVersion": version, "kind": kind} | item for item in items]
    for crd in ("machineconfigs", "machineconfigpools", "controllerconfigs"):
        name = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}.machineconfiguration.openshift.io"
        exported.append(transport.send(Request("GET", name)).or_raise())
    (tmp_path / "export.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": exported}))
    file = written(tmp_path, machine_config("99-motd", files(("/etc/motd", "x"))))
    assert main(["mc", "impact", "-f", file, "--against", str(tmp_path / "export.json"), "--pool", "worker"]) == 2
    assert "pool worker: 2 nodes drain and reboot, one at a time, node-1 first" in capsys.readouterr().out


def test_applications_are_asked_at_a_revision(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source" / "machines"
    source.mkdir(parents=True)
    (source / "args.yaml").write_text(dump(machine_config("99-args", kernelArguments=["nosmt"])))
    repo = Repo(tmp_path / "repo", tmp_path / "source")
    transport = served.cluster.core.transport(judged=False)
    apps = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
    transport.send(Request("POST", apps, body=application(repo, "machines"))).or_raise()
    repo.git("checkout", "-q", "-b", "next")
    repo.change("machines/args.yaml", "nosmt", "quiet")
    assert impact(served, "--revision", "next", "--app", "app") == 2
    told = capsys.readouterr().out
    assert "because kernelArguments + quiet (99-args of Application app)" in told
    assert impact(served, "--revision", "nowhere") == 1
    assert "--revision nowhere: Application app could not be asked" in capsys.readouterr().err
