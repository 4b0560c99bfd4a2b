"""The verbs that people know from argocd, over HTTP, against one served cluster with the GitOps controllers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commanding import Repository, Shell
from tests.live import Served, served_cluster

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.cli.access.connection import Connection
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request

CANARY = "canary-7f3a"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: menu}\ndata: {soup: %s}\n"
SECRET = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: till}}\nstringData: {{pin: {CANARY}-%s}}\n"
QUICK = "annotations: {syncline.dev/pull-seconds: '0', syncline.dev/start-seconds: '0', syncline.dev/run-seconds: '0'}"
WEB = f"""apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}, {QUICK.replace("run", "stop")}}}
    spec: {{containers: [{{name: web, image: 'web:1'}}]}}
"""
HOOK = f"""apiVersion: batch/v1
kind: Job
metadata: {{name: open, annotations: {{argocd.argoproj.io/hook: PreSync}}}}
spec:
  template: {{metadata: {{{QUICK}}}, spec: {{containers: [{{name: open, image: sh}}], restartPolicy: Never}}}}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("verbs")
    gitops = GitOpsSettings(folder / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600))
    with served_cluster(folder, ClusterSettings(nodes=1), gitops) as found:
        yield found


@pytest.fixture
def served(cluster: Served) -> Path:
    return cluster.kubeconfig


@pytest.fixture
def shell(served: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setenv("KUBECONFIG", str(served))
    monkeypatch.delenv("KUBECTL_EXTERNAL_DIFF", raising=False)
    made = Shell(capsys, [])
    yield made
    assert CANARY not in "".join(made.printed), "a value of a Secret was printed"


def test_a_life_of_an_application_by_its_verbs(shell: Shell, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop")
    first = repository.commit(menu=CONFIG % "tomato", till=SECRET % "1", web=WEB, open=HOOK)
    created = shell(
        "app", "create", "shop", "--repo", str(repository.folder), "--dest-namespace", "shop",
        "--sync-option", "CreateNamespace=true",
    )  # fmt: skip
    assert created == "application 'shop' created\n"

    new = shell("app", "diff", "shop", code=1)
    assert "===== /ConfigMap shop/menu ======\n" in new and "+  soup: tomato" in new
    assert "===== apps/Deployment shop/web ======" in new and "Job" not in new, "hooks are left out"
    shell("app", "sync", "shop", "--timeout", "300")
    shell("app", "wait", "shop", "--timeout", "300")
    assert shell.json("app", "get-resource", "shop", "--kind", "Secret")["metadata"]["name"] == "till"
    assert shell("app", "diff", "shop") == ""

    second = repository.commit(menu=CONFIG % "leek", till=SECRET % "2")
    changed = shell("app", "diff", "shop", "--refresh", code=1)
    assert "-  soup: tomato\n+  soup: leek" in changed
    assert "-  pin: ++++++++++++\n+  pin: ++++++++\n" in changed, "that a value differs is shown, not the value"
    assert shell("app", "diff", "shop", "--revision", first) == ""
    assert "soup: tomato" in shell("app", "manifests", "shop", "--source", "live")
    assert "soup: leek" in shell("app", "manifests", "shop")
    shell("app", "sync", "shop", "--timeout", "300")

    rows = shell("app", "history", "shop").splitlines()
    assert rows[0] == f"SOURCE  {repository.folder}" and rows[1].split() == ["ID", "DATE", "REVISION"]
    assert [row.split()[0] for row in rows[2:]] == ["0", "1"]
    assert [entry["revision"] for entry in shell.json("app", "history", "shop")] == [first, second]
    assert shell("app", "history", "shop", "-o", "id") == "0\n1\n"

    shell("app", "rollback", "shop", "--timeout", "300")
    state = shell.json("app", "get", "shop")["status"]["operationState"]
    assert state["syncResult"]["revision"] == first
    assert all(not row.get("hookType") for row in state["syncResult"]["resources"]), "a rollback runs no hooks"
    assert "soup: tomato" in shell("app", "manifests", "shop", "--source", "live")
    assert "does not have deployment with id 9" in shell("app", "rollback", "shop", "9", code=20)

    tree = shell("app", "resources", "shop", "--output", "tree")
    assert re.search(r"apps +Deployment +shop +web +No\n", tree)
    assert re.search(r"apps +ReplicaSet +shop +└─web-\w+ +No\n +Pod +shop +  └─web-", tree)
    flat = shell("app", "resources", "shop")
    assert flat.splitlines()[0].split() == ["GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED"]
    assert {"Pod", "ReplicaSet", "ConfigMap"} <= {one["kind"] for one in shell.json("app", "resources", "shop")}
    assert "Deployment/web" in shell("app", "get", "shop", "-o", "tree=detailed")

    assert shell("app", "terminate-op", "shop", code=20) == (
        "error: Unable to terminate operation. No operation is in progress\n"
    )
    shell("app", "delete", "shop", "--yes", "--wait")
    assert "does not exist" in shell("app", "get", "shop", code=20)


ACTIONS = """discovery.lua: |
  return {stir = {disabled = false}}
definitions:
- name: stir
  action.lua: |
    obj.data.soup = "stirred"
    return obj
"""


def test_actions_known_and_of_users_are_listed_and_run(shell: Shell, tmp_path: Path) -> None:
    pytest.importorskip("lupa", reason="the extra lua is not installed")
    repository = Repository(tmp_path / "acting")
    repository.commit(menu=CONFIG % "leek", web=WEB)
    data = {"resource.customizations.actions.ConfigMap": ACTIONS}
    named = {"name": "argocd-cm", "namespace": "argocd"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data}
    with Connection() as link:
        link.ask(Request("POST", "/api/v1/namespaces/argocd/configmaps", body=body))
    shell("app", "create", "acting", "--repo", str(repository.folder), "--dest-namespace", "default")
    shell("app", "sync", "acting", "--timeout", "300")
    shell("app", "wait", "acting", "--timeout", "300")
    rows = [line.split() for line in shell("app", "actions", "list", "acting").splitlines()]
    assert rows[0] == ["GROUP", "KIND", "NAME", "ACTION", "DISABLED"]
    assert ["<none>", "ConfigMap", "menu", "stir", "false"] in rows
    assert ["apps", "Deployment", "web", "resume", "true"] in rows
    scaled = ("app", "actions", "run", "acting", "scale", "--kind", "Deployment", "--param")
    assert shell(*scaled, "replicas=2") == "Deployment/web patched\n"
    assert "invalid number: many" in shell(*scaled, "replicas=many", code=20)
    assert shell("app", "actions", "run", "acting", "stir", "--kind", "ConfigMap") == "ConfigMap/menu patched\n"
    assert "soup: stirred" in shell("app", "manifests", "acting", "--source", "live")
    assert "has no action 'fry'; it has: stir" in shell(
        "app", "actions", "run", "acting", "fry", "--kind", "ConfigMap", code=20
    )
    menu = ("acting", "--kind", "ConfigMap", "--resource-name", "menu")
    shell("app", "patch-resource", *menu, "--patch", '{"data": {"soup": "patched"}}')
    assert shell.json("app", "get-resource", *menu)["data"]["soup"] == "patched"
    assert shell("app", "delete-resource", *menu, "--force") == "Resource 'menu' deleted\n"
    assert "No matching resource found" in shell("app", "get-resource", *menu, code=20)
    assert "Did you mean 'acting'?" in shell("app", "get", "actng", code=20)
    shell("app", "delete", "acting", "--yes=true", "--wait")


def test_async_ends_at_once_and_a_sync_that_fails_ends_with_1_s094(shell: Shell, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "failing")
    repository.commit(menu=CONFIG.replace("name: menu", "name: Not_A_Name") % "leek")
    shell("app", "create", "failing", "--repo", str(repository.folder), "--dest-namespace", "default")
    assert shell("app", "sync", "failing", "--async") == ""
    shell("app", "wait", "failing", "--operation", "--timeout", "300")
    assert "Operation has completed with phase: Failed" in shell("app", "sync", "failing", code=1)
    shell("app", "delete", "failing", "--yes", "--wait")


def test_waiting_for_what_is_there_already_ends_at_once_s096(shell: Shell, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "there")
    repository.commit(menu=CONFIG % "leek")
    shell("app", "create", "there", "--repo", str(repository.folder), "--dest-namespace", "default")
    shell("app", "sync", "there", "--timeout", "300")
    shell("app", "wait", "there", "--timeout", "300")
    assert shell("app", "wait", "there", "--timeout", "1") == "there: Synced, Healthy\n"
    assert shell("app", "list", "--repo", str(repository.folder), "--path", ".", "-o", "name") == "argocd/there\n"
    assert shell("app", "list", "--cluster", "nowhere", "-o", "name") == ""
    shell("app", "delete", "there", "--yes", "--wait")


def test_people_edit_and_compare_with_their_own_programs(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "own")
    repository.commit(menu=CONFIG % "leek")
    shell("app", "create", "own", "--repo", str(repository.folder), "--dest-namespace", "default")
    monkeypatch.setenv("EDITOR", "sed -i s/HEAD/main/")
    monkeypatch.delenv("VISUAL", raising=False)
    assert shell("app", "edit", "own") == "application 'own' updated\n"
    assert shell.json("app", "get", "own")["spec"]["source"]["targetRevision"] == "main"
    assert shell("app", "edit", "own") == "Edit cancelled, no changes made.\n"
    monkeypatch.setenv("KUBECTL_EXTERNAL_DIFF", "cat")
    assert shell("app", "diff", "own", "--diff-exit-code", "7", code=7).startswith(
        "===== /ConfigMap default/menu ======\napiVersion: v1\n"
    )
    monkeypatch.setenv("KUBECTL_EXTERNAL_DIFF", "no-such-program")
    assert "no-such-program: No such file" in shell("app", "diff", "own", code=20)
    assert "does not exist" in shell("app", "diff", "nobody", code=20)
    shell("app", "delete", "own", "--yes", "--wait")


def test_logs_come_from_every_container_and_are_followed_to_their_end(
    shell: Shell, cluster: Served, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "logs")
    job = HOOK.replace(", annotations: {argocd.argoproj.io/hook: PreSync}", "")
    second = "{name: open, image: sh}, {name: close, image: sh}"
    repository.commit(job=job.replace("{name: open, image: sh}", second), menu=CONFIG % "leek")
    shell("app", "create", "logs", "--repo", str(repository.folder), "--dest-namespace", "default")
    shell("app", "sync", "logs", "--timeout", "300")
    shell("app", "wait", "logs", "--health", "--timeout", "300")
    pod = next(one for one in shell.json("app", "resources", "logs") if one["kind"] == "Pod")
    book, now = cluster.cluster.machines.room.book, cluster.cluster.core.clock.now()
    for container in ("open", "close"):
        book.write(pod["uid"], container, 0, f"{container} one\n\n{container} two\n".encode(), now)
        book.close(pod["uid"], container, 0, now)
    name = pod["name"]
    expected = [
        f"{name}/{box} {line}".rstrip() for box in ("open", "close") for line in (f"{box} one", "", f"{box} two")
    ]
    assert [line.rstrip() for line in shell("app", "logs", "logs").splitlines()] == expected
    followed = [line.rstrip() for line in shell("app", "logs", "logs", "--follow").splitlines()]
    assert sorted(followed) == sorted(expected)
    assert shell("app", "logs", "logs", "-c", "open", "--tail", "1") == "open two\n"
    assert shell("app", "logs", "logs", "-c", "open", "--filter", "one", "--kind", "Job") == "open one\n"
    assert "no pods to read" in shell("app", "logs", "logs", "--kind", "ConfigMap", code=20)
    shell("app", "delete", "logs", "--yes", "--wait")


def test_the_spec_follows_the_flags(shell: Shell, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "set")
    repository.commit(menu=CONFIG % "leek")
    shell("app", "create", "set", "--repo", str(repository.folder), "--dest-namespace", "default")

    def spec() -> Any:
        return shell.json("app", "get", "set")["spec"]

    shell("app", "set", "set", "--sync-option", "Prune=false", "--sync-retry-limit", "3", "--revision", "main")
    assert spec()["syncPolicy"] == {
        "syncOptions": ["Prune=false"],
        "retry": {"limit": 3, "backoff": {"duration": "5s", "maxDuration": "3m0s", "factor": 2}},
    }
    shell("app", "set", "set", "--sync-option", "!Prune=false", "--sync-retry-limit", "0")
    assert "syncPolicy" not in spec()
    assert spec()["source"]["targetRevision"] == "main"
    kustomized = ("app", "set", "set", "--namesuffix", "-x", "--kustomize-image", "web=mine:1")
    refused = shell(*kustomized, code=20)
    assert "application spec for set is invalid" in refused and "kustomization.yaml" in refused, "it is read first"
    shell(*kustomized, "--validate=false")
    shell("app", "unset", "set", "--kustomize-image", "web", "--namesuffix")
    assert "kustomize" not in spec()["source"]
    merge = json.dumps({"spec": {"revisionHistoryLimit": 3}})
    assert shell("app", "patch", "set", "--type", "merge", "--patch", merge) == "application 'set' patched\n"
    assert spec()["revisionHistoryLimit"] == 3
    shell("app", "confirm-deletion", "set")
    assert "argocd.argoproj.io/deletion-approved" in shell.json("app", "get", "set")["metadata"]["annotations"]

    shell("app", "set", "set", "--sync-policy", "automated", "--self-heal")
    assert spec()["syncPolicy"] == {"automated": {"selfHeal": True}}
    shell("app", "wait", "set", "--timeout", "300")
    shell("app", "wait", "set", "--operation", "--timeout", "300")
    shell("app", "set", "set", "--revision", "HEAD")
    refused = shell("app", "rollback", "set", "0", code=20)
    assert refused.startswith("error: rollback cannot be initiated when auto-sync is enabled; ")
    assert "auto-sync currently set to" in shell("app", "sync", "set", "--revision", "other", code=20)
    shell("app", "delete", "set", "--yes", "--wait")


def test_a_folder_that_nobody_committed_is_compared_and_synced(shell: Shell, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "local")
    repository.commit(menu=CONFIG % "leek")
    shell("app", "create", "local", "--repo", str(repository.folder), "--dest-namespace", "default")
    shell("app", "sync", "local", "--timeout", "300")
    working = tmp_path / "working"
    working.mkdir()
    (working / "menu.yaml").write_text(CONFIG % "parsnip")
    folder = ("--local", str(working))
    assert "-  soup: leek\n+  soup: parsnip" in shell("app", "diff", "local", *folder, code=1)
    assert "soup: parsnip" in shell("app", "manifests", "local", *folder)
    shell("app", "sync", "local", *folder, "--timeout", "300")
    assert "soup: parsnip" in shell("app", "manifests", "local", "--source", "live")
    root = ("--local-repo-root", str(tmp_path / "other"))
    (tmp_path / "other").mkdir()
    assert "does not lie in --local-repo-root" in shell("app", "diff", "local", *folder, *root, code=20)
    shell("app", "set", "local", "--sync-policy", "automated")
    refused = shell("app", "sync", "local", *folder, code=20)
    assert "Cannot use local sync when Automatic Sync Policy is enabled" in refused
    shell("app", "delete", "local", "--yes", "--wait")


def test_sources_are_synced_at_revisions_of_their_own(shell: Shell, tmp_path: Path) -> None:
    one, two = Repository(tmp_path / "one"), Repository(tmp_path / "two")
    first = one.commit(menu=CONFIG % "leek")
    one.commit(menu=CONFIG % "parsnip")
    two.commit(other=(CONFIG % "bread").replace("menu", "other"))
    sources = [{"repoURL": str(each.folder), "path": "."} for each in (one, two)]
    server = "https://kubernetes.default.svc"
    spec = {"project": "default", "sources": sources, "destination": {"server": server, "namespace": "default"}}
    manifest = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "many"}, "spec": spec}
    (tmp_path / "app.yaml").write_text(json.dumps(manifest))
    shell("app", "create", "-f", str(tmp_path / "app.yaml"))
    at_first = ("--revisions", first, "--source-positions", "1")
    assert "soup: leek" in shell("app", "manifests", "many", *at_first)
    shell("app", "sync", "many", *at_first, "--timeout", "300")
    assert "soup: leek" in shell("app", "manifests", "many", "--source", "live")
    shell("app", "sync", "many", "--timeout", "300")
    assert "soup: parsnip" in shell("app", "manifests", "many", "--source", "live")
    shell("app", "delete", "many", "--yes", "--wait")


def test_an_operation_that_hangs_is_terminated(shell: Shell, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "hang")
    # nodeSelector: no node fits, so that the hook never ends
    repository.commit(
        hook=HOOK.replace("restartPolicy: Never", "restartPolicy: Never, nodeSelector: {no: where}"),
        menu=CONFIG % "leek",
    )
    shell(
        "app", "create", "hang", "--repo", str(repository.folder), "--dest-namespace", "default", "-l", "is=stuck"
    )  # fmt: skip
    shell("app", "sync", "-l", "is=stuck", "--async")
    assert "another operation is already in progress" in shell("app", "sync", "-l", "is=stuck", code=20)
    assert "No matching apps found for filter: selector is=not" in shell("app", "sync", "-l", "is=not", code=20)
    assert "no apps match selector is=not" in shell("app", "delete", "-l", "is=not", "--yes", code=20)
    assert "timed out" in shell("app", "wait", "hang", "--operation", "--timeout", "2", code=20)
    assert shell("app", "terminate-op", "hang") == "Application 'hang' operation terminating\n"
    shell("app", "wait", "hang", "--operation", "--timeout", "300")
    state = shell.json("app", "get", "hang")["status"]["operationState"]
    assert state["phase"] == "Failed"
    shell("app", "delete", "hang", "--yes", "--wait")


def test_a_project_by_its_verbs(shell: Shell) -> None:
    assert shell("proj", "create", "team", "--src", "https://example.com/a", "--dest", "*,team") == (
        "project 'team' created\n"
    )
    assert "--upsert" in shell("proj", "create", "team", code=20)
    shell("proj", "add-source-namespace", "team", "apps")
    assert "already allowed in project" in shell("proj", "add-source-namespace", "team", "apps")
    assert shell.json("proj", "get", "team")["spec"]["sourceNamespaces"] == ["apps"]
    shell("proj", "remove-source-namespace", "team", "apps")
    shell("proj", "create", "other", "--src", "https://example.com/*")
    shell("proj", "set", "other", "--description", "of others")
    said = {"sourceRepos": ["https://example.com/*"], "description": "of others"}
    assert said.items() <= shell.json("proj", "get", "other")["spec"].items()
    shell("proj", "delete", "other")
    shell("proj", "add-source", "team", "https://example.com/b")
    assert "already allowed in project" in shell("proj", "add-source", "team", "https://example.com/b")
    shell("proj", "remove-source", "team", "https://example.com/a")
    shell("proj", "add-destination", "team", "in-cluster", "team-*", "--name")
    shell("proj", "remove-destination", "team", "*", "team")
    shell("proj", "allow-cluster-resource", "team", "", "Namespace")
    shell("proj", "deny-namespace-resource", "team", "batch", "Job")
    shell("proj", "windows", "add", "team", "--kind", "deny", "--schedule", "0 22 * * *", "--duration", "8h",
          "--applications", "*")  # fmt: skip
    shell("proj", "windows", "enable-manual-sync", "team", "0")
    assert shell.json("proj", "get", "team")["spec"] == {
        "sourceRepos": ["https://example.com/b"],
        "destinations": [{"name": "in-cluster", "namespace": "team-*"}],
        "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}],
        "namespaceResourceBlacklist": [{"group": "batch", "kind": "Job"}],
        "syncWindows": [
            {
                "kind": "deny",
                "schedule": "0 22 * * *",
                "duration": "8h",
                "applications": ["*"],
                "manualSync": True,
                "timeZone": "UTC",
            }
        ],
    }
    assert "cannot parse duration" in shell(
        "proj", "windows", "add", "team", "--schedule", "0 22 * * *", "--duration", "long", code=2
    )
    assert "ID" in shell("proj", "windows", "list", "team")
    shell("proj", "windows", "delete", "team", "0")
    shell("proj", "deny-cluster-resource", "team", "", "Namespace")
    shell("proj", "allow-namespace-resource", "team", "batch", "Job")
    assert set(shell.json("proj", "get", "team")["spec"]) == {"sourceRepos", "destinations"}
    assert {"default", "team"} <= set(shell("proj", "list", "-o", "name").split())
    shell("proj", "delete", "team")
    assert "does not exist" in shell("proj", "get", "team", code=20)


def test_repositories_and_clusters_are_declared_and_removed_without_showing_values(
    shell: Shell, served: Path, tmp_path: Path
) -> None:
    url = "https://127.0.0.1:1/private"
    secret = ("repo", "add", url, "--username", CANARY, "--password", CANARY)
    assert shell(*secret) == f"Repository '{url}' added\n"
    assert shell(*secret) == f"Repository '{url}' unchanged\n"
    assert "--upsert" in shell("repo", "add", url, code=20)
    shell("repo", "add", "https://127.0.0.1:1/open")
    listed = {one["repo"]: one["credentials"] for one in shell.json("repo", "list")}
    assert listed == {url: "true", "https://127.0.0.1:1/open": "false"}
    shell("repo", "get", url, "-o", "yaml")
    Repository(tmp_path / "here").commit(menu=CONFIG % "leek")
    shell("repo", "add", str(tmp_path / "here"))
    shell("repo", "add", str(tmp_path / "nowhere"))
    states = {one["repo"]: one["connectionState"] for one in shell.json("repo", "list", "--refresh", "hard")}
    assert states[str(tmp_path / "here")] == {"status": "Successful", "message": ""}
    assert states[str(tmp_path / "nowhere")]["status"] == "Failed"
    shell("repo", "add", "https://127.0.0.1:1/owned", "--project", "team")
    assert shell.json("repo", "get", "https://127.0.0.1:1/Owned.git")["project"] == "team"
    shell("repo", "get", "https://127.0.0.1:1/owned", "--project", "other", code=20)
    shell("repo", "rm", "https://127.0.0.1:1/owned")
    shell("repo", "rm", str(tmp_path / "here"), str(tmp_path / "nowhere"))
    shell("repo", "rm", url, "https://127.0.0.1:1/open")
    assert shell.json("repo", "list") == []

    shell("repocreds", "add", "https://127.0.0.1:1", "--username", "me", "--password", CANARY)
    assert shell.json("repocreds", "list") == [{"url": "https://127.0.0.1:1", "username": "me", "sshCreds": False}]
    shell("repocreds", "rm", "https://127.0.0.1:1")
    assert "no credentials are declared" in shell("repocreds", "rm", "https://127.0.0.1:1", code=20)

    here = shell.json("cluster", "list")
    assert [(one["name"], one["connectionState"]["status"]) for one in here] == [("in-cluster", "Successful")]
    context = json.loads(served.read_text())["current-context"]
    server = json.loads(served.read_text())["clusters"][0]["cluster"]["server"]
    shell("cluster", "add", context, "--from", str(served), "--name", "copy", "--namespace", "a")
    assert shell.json("cluster", "get", "copy")["namespaces"] == ["a"]
    shell("cluster", "set", "copy", "--name", "twin", "--namespace", "*", "--label", "region=eu")
    assert shell.json("cluster", "get", "twin")["namespaces"] == []
    assert "Did you mean 'twin'?" in shell("cluster", "rm", "twn", code=20)
    assert "none can be rotated" in shell("cluster", "rotate-auth", "twin", code=20)
    shell("cluster", "rm", server)
    assert "is not known" in shell("cluster", "get", "copy", code=20)


def test_a_missing_cluster_is_one_line(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", os.devnull)
    text = shell("app", "list", code=20)
    assert text.startswith("error: ") and text.count("\n") == 1


def test_what_a_server_would_refuse_is_refused_before_it_is_written_s001_s017_s082_s084(
    shell: Shell, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "refused")
    repository.commit(menu=CONFIG % "leek")
    create = ("app", "create", "refused", "--repo", str(repository.folder), "--dest-namespace", "default")
    shell(*create)
    assert "No operation is in progress" in shell("app", "terminate-op", "refused", code=20)
    with Connection() as link:
        apps = "/apis/argoproj.io/v1alpha1/namespaces/argocd"
        merge = {"content-type": "application/merge-patch+json"}
        window = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["refused"]}
        body = {"spec": {"syncWindows": [window]}}
        link.ask(Request("PATCH", f"{apps}/appprojects/default", headers=merge, body=body))
        assert "cannot sync: blocked by sync window" in shell("app", "sync", "refused", code=20)
        held = {"operation": {"sync": {}}}
        link.ask(Request("PATCH", f"{apps}/applications/refused", headers=merge, body=held))
        body["spec"]["syncWindows"] = [window | {"manualSync": True, "applications": ["other"]}]
        assert "another operation is already in progress" in shell("app", "sync", "refused", code=20)
        link.ask(Request("PATCH", f"{apps}/appprojects/default", headers=merge, body=body))
    shell("app", "wait", "refused", "--operation", "--timeout", "300")
    shell("app", "set", "refused", "--sync-policy", "automated")
    assert "rollback cannot be initiated when auto-sync is enabled" in shell("app", "rollback", "refused", "0", code=20)
    shell("app", "delete", "refused", "--yes", "--wait")
