"""Further verbs of argocd, over HTTP, against one served cluster with the GitOps controllers."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commanding import Repository, Shell
from tests.cli.test_completing import offered
from tests.live import Served, served_cluster

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.cli.access.connection import Connection
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube import client
from syncline.kube.objects import GVK

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: menu}\ndata: {soup: %s}\n"
WEB = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'web:1'}]}
"""
HERE = "https://kubernetes.default.svc"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("further")
    gitops = GitOpsSettings(
        folder / "mirrors",
        allow_local_repos=True,
        application=AppSettings(poll_s=600, application_namespaces=("team-apps",)),
    )
    with served_cluster(folder, ClusterSettings(nodes=0), gitops) as found:
        yield found


@pytest.fixture
def shell(cluster: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    return Shell(capsys, [])


def make_namespace(cluster: Served, name: str) -> None:
    with Connection(str(cluster.kubeconfig)) as link:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        link.ask(client.create(link.resource(GVK("", "v1", "Namespace")), made))


def test_app_namespace_is_that_of_the_application_and_not_of_its_project(
    shell: Shell, cluster: Served, tmp_path: Path
) -> None:
    make_namespace(cluster, "team-apps")
    repository = Repository(tmp_path / "away")
    repository.commit(menu=CONFIG % "leek", web=WEB)
    shell(
        "proj", "create", "away", "--src", "*", "--dest", "*,*", "--source-namespaces", "team-apps",
        "--orphaned-resources",
    )  # fmt: skip
    shell(
        "app", "create", "team-apps/away", "--repo", str(repository.folder), "--dest-namespace", "team-apps",
        "--project", "away",
    )  # fmt: skip
    shell("app", "sync", "away", "-N", "team-apps", "--timeout", "300")
    assert "orphaned" not in shell("app", "resources", "away", "-N", "team-apps")
    listed = shell.json("app", "actions", "list", "away", "-N", "team-apps", "--kind", "Deployment")
    assert {"restart", "pause"} <= {one["name"] for one in listed}
    assert "patched" in shell("app", "actions", "run", "away", "pause", "-N", "team-apps", "--kind", "Deployment")
    orphan = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stray", "namespace": "team-apps"}}
    with Connection(str(cluster.kubeconfig)) as link:
        link.ask(client.create(link.resource(GVK("", "v1", "ConfigMap")), orphan))
    orphans = shell.json("app", "resources", "away", "-N", "team-apps", "--orphaned")
    assert "stray" in json.dumps(orphans)
    assert shell.json("plan", "team-apps/away")["verdict"]
    assert "away" in shell("explain", "app/team-apps/away")


def test_what_is_stored_was_judged_as_a_server_would(shell: Shell, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "judged")
    repository.commit(menu=CONFIG % "leek")
    shell("proj", "create", "narrow", "--src", "https://127.0.0.1:1/*", "--dest", f"{HERE},narrow")
    create = ("app", "create", "judged", "--repo", str(repository.folder), "--dest-namespace", "narrow")
    for flags, words in (
        (("--project", "nosuch"), 'app is not allowed in project "nosuch", or the project does not exist'),
        (("--project", "narrow"), "is not permitted in project 'narrow'"),
        (("--dest-server", "https://127.0.0.1:9"), 'cluster "https://127.0.0.1:9" not found'),
        (("--path", "nosuch"), "app path does not exist"),
        (("--revision", "nosuch"), "Unable to generate manifests"),
        (("--repo", str(tmp_path / "nowhere")), "repository not accessible"),
        (("--repo", "https://127.0.0.1:1/r"), "repository not accessible"),
        (("--dest-name", "nosuch"), "there are no clusters with this name: nosuch"),
    ):
        text = shell(*create, *flags, code=20)
        assert words in text and ("application spec for judged is invalid" in text or "nosuch" in flags)
        assert "does not exist" in shell("app", "get", "judged", code=20), "nothing was written"
    assert "not permitted" in shell(*create, "--project", "narrow", "--validate=false", code=20), "in any case"
    shell(*create, "--path", "nosuch", "--validate=false")
    refused = shell("app", "set", "judged", "--revision", "other", code=20)
    assert "give --validate=false" in refused
    shell("app", "set", "judged", "--path", ".")
    assert "is not permitted" in shell("app", "set", "judged", "--project", "narrow", code=20)
    unknown = json.dumps({"spec": {"sauce": {}}})
    patched = shell("app", "patch", "judged", "--type", "merge", "--patch", unknown, code=20)
    assert 'unknown field "spec.sauce"' in patched


def person_without_secrets(cluster: Served, folder: Path) -> Path:
    """A kubeconfig of somebody who may write Applications and read projects and settings, but no Secrets."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/argocd"
    rules = [
        {"apiGroups": ["argoproj.io"], "resources": ["applications", "appprojects"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
    ]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"}
    subject = {"kind": "ServiceAccount", "name": "writer", "namespace": "argocd"}
    accounts = "/api/v1/namespaces/argocd/serviceaccounts"
    with Connection(str(cluster.kubeconfig)) as link:
        link.ask(client.Request("POST", accounts, body={"metadata": {"name": "writer"}}))
        link.ask(client.Request("POST", f"{rbac}/roles", body={"metadata": {"name": "writer"}, "rules": rules}))
        binding = {"metadata": {"name": "writer"}, "roleRef": role, "subjects": [subject]}
        link.ask(client.Request("POST", f"{rbac}/rolebindings", body=binding))
        token = link.ask(client.Request("POST", f"{accounts}/writer/token", body={"spec": {}}))["status"]["token"]
    access = json.loads(cluster.kubeconfig.read_text())
    access["users"] = [{"name": one["name"], "user": {"token": token}} for one in access["users"]]
    (folder / "writer").write_text(json.dumps(access))
    return folder / "writer"


def test_what_may_not_be_read_is_not_checked_and_what_is_certain_is_refused(
    shell: Shell, cluster: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(person_without_secrets(cluster, tmp_path)))
    shell("proj", "create", "strict", "--src", "https://127.0.0.1:1/*", "--dest", f"{HERE},*")
    create = ("app", "create", "unseen", "--repo", "https://127.0.0.1:1/r", "--dest-namespace", "default")
    refused = shell(*create, "--project", "strict", "--repo", "https://127.0.0.1:2/r", code=20)
    assert "is not permitted in project 'strict'" in refused, "no Secret would change that"
    shell(*create)
    assert "not checked: the sources" in shell.printed[-1] and "list secrets in argocd" in shell.printed[-1]
    shell(*create, "--dest-server", "https://127.0.0.1:9", "--upsert")
    assert 'cluster "https://127.0.0.1:9" not found' in shell.printed[-1]


def test_applications_are_made_of_the_standard_input(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    app = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "piped"},
        "spec": {"source": {"repoURL": "https://127.0.0.1:1/r", "path": "."}, "destination": {"server": HERE}},
    }
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(app).encode())))
    shell("app", "create", "-f", "-", "--validate=false", "-l", "a=b", "--helm-set", "soup=leek")
    found = shell.json("app", "get", "piped")
    assert found["metadata"]["labels"] == {"a": "b"}
    assert "soup   leek" in shell("app", "get", "piped", "--show-params")
    assert "the Application has 1 sources" in shell(
        "app", "get", "piped", "--show-params", "--source-position", "3", code=2
    )
    assert "piped" in shell("app", "list", "-p", "default", "-p", "narrow", "-o", "name")
    assert shell("app", "list", "-p", "nosuch", "-o", "name") == ""


def test_contexts_are_those_of_the_kubeconfig(shell: Shell, cluster: Served) -> None:
    [current] = [one for one in shell.json("context") if one["current"]]
    assert current["server"].startswith("https://127.0.0.1:")
    assert f"*         {current['name']}" in shell("context")
    assert shell("context", current["name"]) == f"Already at context '{current['name']}'\n"
    assert "does not exist" in shell("context", "nosuch", code=20)
    assert "kubectl config delete-context" in shell("context", current["name"], "--delete", code=20)


def test_a_shell_completes_names_that_the_cluster_has(shell: Shell) -> None:
    for name in ("crewed", "crested"):
        shell("proj", "create", name)
    shell("repo", "add", "https://127.0.0.1:1/completed")
    assert offered("proj", "get", "cre") == ["crested", "crewed"]
    assert offered("app", "list", "-p", "crew") == ["crewed"]
    assert offered("repo", "get", "https://127.0.0.1:1/c") == ["https://127.0.0.1:1/completed"]
    assert offered("cluster", "get", "in-") == ["in-cluster"]
    assert "kube-system" in offered("app", "get", "-N", "kube-")
    assert offered("app", "create", "") == []


def test_an_installation_is_exported_and_put_back(shell: Shell, cluster: Served, tmp_path: Path) -> None:
    file = tmp_path / "argocd.yaml"
    shell("proj", "create", "kept", "--description", "as exported")
    shell("admin", "export", "-o", str(file))
    assert file.stat().st_mode & 0o077 == 0
    assert "as exported" in file.read_text() and "kind: ConfigMap" not in shell("admin", "export", "-N", "default")
    shell("proj", "delete", "kept")
    shell("proj", "create", "extra")
    put_back = ("admin", "import", str(file), "--override-on-conflict")
    line = "argoproj.io/AppProject kept in namespace argocd created"
    dry = shell(*put_back, "--dry-run")
    assert f"{line} (dry run)\n" in dry and "AppProject extra in namespace argocd needs pruning\n" in dry
    assert "does not exist" in shell("proj", "get", "kept", code=20)
    assert f"{line}\n" in shell(*put_back)
    assert shell.json("proj", "get", "kept")["spec"] == {"description": "as exported"}
    assert "AppProject kept" not in shell(*put_back), "it is equal"
    assert "AppProject kept in namespace argocd unchanged" in shell(*put_back, "--verbose")
    assert "AppProject extra in namespace argocd pruned" in shell(*put_back, "--prune", "--yes")
    assert "does not exist" in shell("proj", "get", "extra", code=20)
    (tmp_path / "pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
    assert "found Pod; an export holds" in shell("admin", "import", str(tmp_path / "pod.yaml"), code=2)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": {}}
    assert '"argocd-cm" not found' in shell("admin", "settings", "validate", "--load-cluster-settings", code=20)
    with Connection(str(cluster.kubeconfig)) as link:
        info = link.resource(GVK("", "v1", "ConfigMap"))
        link.ask(client.create(info, settings, namespace="argocd"))
    assert "✅ resource-overrides" in shell("admin", "settings", "validate", "--load-cluster-settings")


def test_a_cluster_is_declared_with_labels_and_a_proxy(shell: Shell, cluster: Served) -> None:
    name = shell.json("context")[0]["name"]
    shell(
        "cluster", "add", name, "--name", "near", "--in-cluster", "--label", "region=eu", "--shard", "2", "--yes",
        "--proxy-url", "http://127.0.0.1:3128", "--annotation", "a=b",
    )  # fmt: skip
    with Connection(str(cluster.kubeconfig)) as link:
        secrets = link.ask(client.list_(link.resource(GVK("", "v1", "Secret")), "argocd", label_selector="region=eu"))
    [found] = secrets["items"]
    fields = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
    assert (fields["server"], fields["shard"]) == (HERE, "2")
    assert json.loads(fields["config"])["proxyUrl"] == "http://127.0.0.1:3128"
    assert found["metadata"]["annotations"]["a"] == "b"
    assert "not run for other clusters" in shell("cluster", "add", name, "--exec-command", "aws", code=20)
    shell("cluster", "rm", "near", "-y")


def test_a_project_has_roles_policies_and_groups(shell: Shell) -> None:
    shell("proj", "create", "crew")
    assert shell("proj", "role", "create", "crew", "deploy", "--description", "ships") == "Role 'deploy' created\n"
    assert shell("proj", "role", "create", "crew", "deploy") == "Role 'deploy' already exists\n"
    shell("proj", "role", "add-policy", "crew", "deploy", "-a", "sync", "-p", "allow", "-o", "*")
    shell("proj", "role", "add-policy", "crew", "deploy", "-a", "get", "-o", "shop", "-r", "logs")
    shell("proj", "role", "add-group", "crew", "deploy", "crew:admins")
    found = shell.json("proj", "role", "get", "crew", "deploy")
    assert found["policies"] == [
        "p, proj:crew:deploy, applications, sync, crew/*, allow",
        "p, proj:crew:deploy, logs, get, crew/shop, allow",
    ]
    text = shell("proj", "role", "get", "crew", "deploy")
    assert "Role Name:     deploy\nDescription:   ships\nPolicies:\np, proj:crew:deploy" in text
    assert "  - crew:admins" in text
    assert "deploy" in shell("proj", "role", "list", "crew") and shell("proj", "role", "list", "crew", "-o", "name")
    refused = shell("proj", "role", "add-policy", "crew", "deploy", "-a", "fly", "-o", "*", code=20)
    assert "invalid action 'fly'" in refused
    assert "does not exist in the project (deploy)" in shell("proj", "role", "get", "crew", "nobody", code=20)
    shell("proj", "role", "remove-policy", "crew", "deploy", "-a", "get", "-o", "shop", "-r", "logs")
    shell("proj", "role", "remove-group", "crew", "deploy", "crew:admins")
    left = shell.json("proj", "role", "get", "crew", "deploy")
    assert left["policies"] == ["p, proj:crew:deploy, applications, sync, crew/*, allow"] and "groups" not in left
    assert shell("proj", "role", "list-tokens", "crew", "deploy") == "No tokens for crew.deploy\n"
    assert "kubectl create token" in shell("proj", "role", "create-token", "crew", "deploy", code=20)
    assert shell("proj", "role", "delete", "crew", "deploy") == "Role 'deploy' deleted\n"
    assert "roles" not in shell.json("proj", "get", "crew")["spec"]


def test_a_projects_lists_of_several_fields(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shell("proj", "create", "lists", "--signature-keys", "4AEE18F83AFDEB23", "--dest-service-accounts", f"{HERE},a,b")
    spec = shell.json("proj", "get", "lists")["spec"]
    assert spec["signatureKeys"] == [{"keyID": "4AEE18F83AFDEB23"}]
    assert spec["destinationServiceAccounts"] == [{"server": HERE, "namespace": "a", "defaultServiceAccount": "b"}]
    shell("proj", "add-destination-service-account", "lists", HERE, "x", "robot", "--service-account-namespace", "y")
    assert "already defined" in shell("proj", "add-destination-service-account", "lists", HERE, "x", "y:robot", code=20)
    shell("proj", "remove-destination-service-account", "lists", HERE, "a", "b")
    shell("proj", "add-orphaned-ignore", "lists", "", "ConfigMap", "--name", "kube-*")
    shell("proj", "add-signature-key", "lists", "0123456789abcdef")
    shell("proj", "remove-signature-key", "lists", "4AEE18F83AFDEB23")
    assert "hexadecimal" in shell("proj", "add-signature-key", "lists", "xyz", code=2)
    spec = shell.json("proj", "get", "lists")["spec"]
    assert spec["destinationServiceAccounts"] == [
        {"server": HERE, "namespace": "x", "defaultServiceAccount": "y:robot"}
    ]
    assert spec["orphanedResources"] == {"ignore": [{"kind": "ConfigMap", "name": "kube-*"}]}
    assert spec["signatureKeys"] == [{"keyID": "0123456789ABCDEF"}]
    shell("proj", "remove-orphaned-ignore", "lists", "", "ConfigMap", "--name", "kube-*")
    assert "does not exist" in shell("proj", "remove-orphaned-ignore", "lists", "", "ConfigMap", code=20)
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho 'description: edited' >> \"$1\"\n")
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))
    shell("proj", "edit", "lists")
    assert shell.json("proj", "get", "lists")["spec"]["description"] == "edited"


def test_policies_of_signatures_and_windows_are_changed_by_their_number(shell: Shell) -> None:
    shell("proj", "create", "signed")
    policies = ("proj", "source-integrity", "git", "policies")
    shell(
        *policies, "add", "signed", "--repo-url", "https://a/*", "--gpg-mode", "head", "--gpg-key", "0123456789ABCDEF"
    )
    shell(*policies, "add", "signed", "--repo-url", "*", "--gpg-mode", "none")
    shell(*policies, "update", "signed", "0", "--gpg-mode", "strict", "--add-repo-url", "https://b/*")
    assert shell.json(*policies, "list", "signed")[0] == {
        "gpg": {"keys": ["0123456789ABCDEF"], "mode": "strict"},
        "repos": [{"url": "https://a/*"}, {"url": "https://b/*"}],
    }
    assert "takes the place of all" in shell(
        *policies, "update", "signed", "0", "--repo-url", "*", "--add-repo-url", "x", code=2
    )
    assert "policy 7 does not exist" in shell(*policies, "delete", "signed", "7", "--yes", code=20)
    shell(*policies, "delete", "signed", "0", "1", "--yes")
    assert "sourceIntegrity" not in shell.json("proj", "get", "signed")["spec"]

    shell("proj", "windows", "add", "signed", "-k", "deny", "--schedule", "0 22 * * *", "--duration", "1h",
        "--applications", "*",
    )  # fmt: skip
    shell("proj", "windows", "update", "signed", "0", "--duration", "2h", "--time-zone", "Europe/Berlin")
    shell("proj", "windows", "enable-sync-overrun", "signed", "0")
    window = shell.json("proj", "windows", "list", "signed")[0]
    assert (window["duration"], window["timeZone"], window["syncOverrun"]) == ("2h", "Europe/Berlin", True)
    assert window["schedule"] == "0 22 * * *"
    shell("proj", "windows", "disable-sync-overrun", "signed", "0")
    assert not shell.json("proj", "windows", "list", "signed")[0].get("syncOverrun")
    assert shell("proj", "windows", "update", "signed", "0", "--duration", "soon", code=2)
