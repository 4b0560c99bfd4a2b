"""``appset generate|diff``, ``plan appset/X``, ``explain appset/X``: offline on folders, and on a served cluster
without controllers, whose Applications are as a test stores them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commanding import Repository, Shell
from tests.cli.test_completing import offered
from tests.live import Served, served_cluster

from syncline.assembly.gitops import foreign_objects
from syncline.assembly.settings import ClusterSettings
from syncline.cli.access.connection import Connection
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GVK, Obj, gvk_of, name_of, uid_of

HERE = "https://kubernetes.default.svc"
PARAMETERS = "argocd-cmd-params-cm"
CANARY = "canary-7f3a"
TEMPLATE: Obj = {
    "metadata": {"name": "NAME-{{team}}", "labels": {"env": "{{env}}"}},
    "spec": {
        "project": "default",
        "source": {"repoURL": "https://127.0.0.1:1/r", "path": "apps/{{team}}", "targetRevision": "main"},
        "destination": {"server": HERE, "namespace": "{{team}}"},
    },
}
ENV = {"red": "dev", "blue": "prod", "green": "prod", "white": "prod", "black": "prod"}


def a_set(name: str, teams: str = "red blue", **spec: Any) -> Obj:
    """A set with one list element for each word."""
    template = json.loads(json.dumps(TEMPLATE).replace("NAME", name))
    elements = [{"team": team, "env": ENV[team]} for team in teams.split()]
    fields = {"generators": [{"list": {"elements": elements}}], "template": template}
    kind = {"apiVersion": APPLICATION_SET.api_version, "kind": APPLICATION_SET.kind}
    return kind | {"metadata": {"name": name, "namespace": "argocd"}, "spec": fields | spec}


def of_git(name: str, url: str, **git: Any) -> Obj:
    template = json.loads(json.dumps(TEMPLATE).replace("NAME", name).replace("team", "path.basename"))
    del template["metadata"]["labels"]
    return a_set(name, template=template, generators=[{"git": {"repoURL": url, "revision": "main"} | git}])


def written(folder: Path, found: Obj) -> str:
    path = folder / f"{name_of(found)}.json"
    path.write_text(json.dumps(found))
    return str(path)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("planned"), ClusterSettings(nodes=0)) as found:
        for obj in foreign_objects("argocd"):
            with Connection(str(found.kubeconfig)) as link:
                link.ask(client.create(link.resource(gvk_of(obj)), obj))
        yield found


@pytest.fixture
def shell(cluster: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    return Shell(capsys, [])


@pytest.fixture
def link(cluster: Served) -> Iterator[Connection]:
    with Connection(str(cluster.kubeconfig)) as found:
        yield found


def stored(shell: Shell, link: Connection, found: Obj, folder: Path) -> Obj:
    """Store a set and the Applications that it makes, as the controller would have."""
    shell("appset", "create", written(folder, found))
    kept: Obj = link.ask(client.get(link.resource(APPLICATION_SET), "argocd", name_of(found)))
    owner = {
        "apiVersion": APPLICATION_SET.api_version,
        "kind": APPLICATION_SET.kind,
        "name": name_of(kept),
        "uid": uid_of(kept),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made = shell.json("appset", "generate", written(folder, found))
    for app in made if isinstance(made, list) else [made]:
        owned = app | {"metadata": app["metadata"] | {"ownerReferences": [owner]}}
        link.ask(client.create(link.resource(APPLICATION), owned))
    return kept


# -- without a cluster -----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("web", "db"):
        (tmp_path / "repo" / "apps" / name).mkdir(parents=True)
        (tmp_path / "repo" / "apps" / name / "config.json").write_text(json.dumps({"team": f"of-{name}", "env": "x"}))
    return tmp_path


@pytest.mark.parametrize(
    ("git", "expected"),
    [
        ({"directories": [{"path": "apps/*"}]}, ["argocd/dirs-db", "argocd/dirs-web"]),
        ({"directories": [{"path": "apps/*"}, {"path": "apps/db", "exclude": True}]}, ["argocd/dirs-web"]),
        ({"files": [{"path": "apps/*/config.json"}]}, ["argocd/dirs-db", "argocd/dirs-web"]),
    ],
)
def test_a_folder_stands_for_the_repositories_of_git_generators(
    shell: Shell, folder: Path, git: dict[str, Any], expected: list[str]
) -> None:
    file = written(folder, of_git("dirs", "https://127.0.0.1:1/away", **git))
    offline = ("--local", str(folder / "repo"), "--against", "empty")
    assert shell("appset", "generate", file, *offline, "-o", "name").splitlines() == expected
    rows = shell("appset", "generate", file, *offline).splitlines()
    assert rows[0].split()[:4] == ["NAME", "CLUSTER", "NAMESPACE", "PROJECT"] and len(rows) == len(expected) + 1
    plan = shell("plan", "-f", file, *offline, code=2)
    assert "+ create  dirs-web  spec.generators[0].git row " in plan and "path.basename=web" in plan
    assert "Segments" not in plan and "basenameNormalized" not in plan, "what other parameters say is left out"


def test_a_dry_run_shows_the_applications_and_stores_nothing(shell: Shell, folder: Path) -> None:
    file = written(folder, of_git("dry", "https://127.0.0.1:1/away", directories=[{"path": "apps/*"}]))
    found = shell.json("appset", "create", file, "--dry-run", "--local", str(folder / "repo"))
    assert [one["name"] for one in found["status"]["resources"]] == ["dry-db", "dry-web"]
    assert "ApplicationSet 'dry' created (dry-run)\n" in shell.printed
    assert "does not exist" in shell("appset", "get", "dry", code=20)
    assert "--dry-run" in shell("appset", "create", file, "--local", str(folder), code=2)


def test_clusters_and_projects_come_from_the_folder_of_against(shell: Shell, folder: Path) -> None:
    def secret(name: str, region: str) -> Obj:
        labels = {"argocd.argoproj.io/secret-type": "cluster", "region": region}
        data = {"name": name, "server": f"https://{name}.example", "config": f'{{"bearerToken": "{CANARY}"}}'}
        metadata = {"name": name, "namespace": "argocd", "labels": labels}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "data": {k: b64(v) for k, v in data.items()},
        }

    there = folder / "cluster"
    there.mkdir()
    team = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "team", "namespace": "argocd"},
    }
    for obj in (secret("paris", "eu"), secret("tokio", "asia"), team):
        (there / f"{name_of(obj)}.json").write_text(json.dumps(obj))
    template = {
        "metadata": {"name": "on-{{name}}"},
        "spec": {
            "project": "team",
            "source": {"repoURL": "https://127.0.0.1:1/r", "path": "."},
            "destination": {"server": "{{server}}", "namespace": "x"},
        },
    }
    chosen = {"clusters": {"selector": {"matchLabels": {"region": "eu"}}}}
    file = written(folder, a_set("regional", generators=[chosen], template=template))
    assert shell("appset", "generate", file, "--against", str(there), "-o", "name") == "argocd/on-paris\n"
    assert "on-paris  spec.generators[0].clusters row 1 (" in shell(
        "plan", "--local", file, "--against", str(there), code=2
    )
    assert CANARY not in "".join(shell.printed), "a credential was printed"
    refused = shell("appset", "generate", file, "--against", "empty", code=20)
    assert "references project team which does not exist; put it into what --against names" in refused


def b64(text: str) -> str:
    import base64

    return base64.b64encode(text.encode()).decode()


def test_a_failure_names_the_element_and_makes_no_application(shell: Shell, folder: Path) -> None:
    (folder / "repo" / "apps" / "db" / "config.json").write_text("{")
    file = written(folder, of_git("broken", "https://127.0.0.1:1/away", files=[{"path": "apps/*/config.json"}]))
    offline = ("--local", str(folder / "repo"), "--against", "empty")
    said = shell("appset", "generate", file, *offline, code=20)
    assert "unable to generate Applications of ApplicationSet: broken: spec.generators[0].git: " in said
    assert "apps/db/config.json" in said
    assert "Plan: blocked; nothing would be created, changed or deleted" in shell("plan", "-f", file, *offline, code=3)
    assert "spec.generators[0].git: " in shell("appset", "diff", file, *offline, code=20)


@pytest.mark.parametrize(
    ("name", "patch", "field"),
    [
        ("x-{{ .team.x }}", "", "spec.template.metadata.name"),
        ("x-{{ .team }}", "metadata:\n  labels: {a: '{{ .nosuch }}'}\n", "spec.templatePatch"),
    ],
)
def test_a_template_that_fails_is_named_by_its_field_with_all_rows_in_one_line(
    shell: Shell, tmp_path: Path, name: str, patch: str, field: str
) -> None:
    spec = {"project": "default", "source": {"repoURL": "r", "path": "p"}, "destination": {"server": HERE}}
    template = {"metadata": {"name": name}, "spec": spec}
    go = {"goTemplate": True, "goTemplateOptions": ["missingkey=error"]}
    file = written(tmp_path, a_set("typo", "red blue", template=template, templatePatch=patch, **go))
    said = shell("appset", "generate", file, "--against", "empty", code=20)
    assert f"typo: {field}, spec.generators[0].list row 1 (team=red, env=dev): " in said
    assert said.count("(and 1 more row)") == 1 and "row 2" not in said
    found = json.loads(shell("plan", "-f", file, "--against", "empty", "-o", "json", code=3))
    assert [one["field"] for one in found["failures"]] == [field, field]


def test_a_row_is_named_by_what_differs_from_the_others_and_two_of_one_name_by_both(shell: Shell, folder: Path) -> None:
    dirs = {"git": {"repoURL": "https://127.0.0.1:1/r", "revision": "main", "directories": [{"path": "apps/*"}]}}
    matrix = {"matrix": {"generators": [{"clusters": {"values": {"tier": "gold"}}}, dirs]}}
    found = of_git("grid", "https://127.0.0.1:1/r") | {"spec": a_set("grid", generators=[matrix])["spec"]}
    found["spec"]["template"]["metadata"] = {"name": "{{name}}-{{path.basename}}"}
    offline = ("--local", str(folder / "repo"), "--against", "empty")
    said = shell("plan", "-f", written(folder, found), *offline, code=2)
    assert "row 1 (path=apps/db, path.basename=db, name=in-cluster, " in said
    assert "row 2 (path=apps/web, path.basename=web, name=in-cluster, " in said
    found["spec"]["template"]["metadata"] = {"name": "{{name}}"}
    said = shell("plan", "-f", written(folder, found), *offline, code=3)
    assert "contains applications with duplicate name: in-cluster (made by spec.generators[0].matrix row 1, " in said


# -- on a cluster ----------------------------------------------------------------------------------------------------


def test_git_generators_read_the_repository_with_the_reader_of_the_controller(
    shell: Shell, link: Connection, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "fleet")
    (repository.folder / "apps" / "till").mkdir(parents=True)
    (repository.folder / "apps" / "till" / "menu.yaml").write_text("{}")
    repository.commit(readme="{}")
    found = of_git("read", str(repository.folder), directories=[{"path": "apps/*"}])
    assert shell("appset", "generate", written(tmp_path, found), "-o", "name") == "argocd/read-till\n"
    stored(shell, link, found, tmp_path)
    assert "nothing to do (1 unchanged)" in shell("plan", "appset/read")
    said = shell("app", "get", "read-till")
    assert "ApplicationSet:     argocd/read (syncline explain app/read-till names the row)\n" in said
    assert "ApplicationSet argocd/read makes it: from spec.generators[0].git row 1 (path=apps/till" in shell(
        "explain", "app/read-till"
    )


def test_a_plan_names_what_is_created_changed_adopted_and_deleted(
    shell: Shell, link: Connection, tmp_path: Path
) -> None:
    stored(shell, link, a_set("plan", "red blue"), tmp_path)
    assert shell("plan", "appset/plan").splitlines()[-1] == "Plan: nothing to do (2 unchanged)"
    alone = shell.json("appset", "generate", written(tmp_path, a_set("plan", "green")))
    link.ask(client.create(link.resource(APPLICATION), alone))
    changed = a_set("plan", "blue green white")
    changed["spec"]["template"]["spec"]["source"]["targetRevision"] = "v2"
    said = shell("plan", "appset/plan", "--local", written(tmp_path, changed), code=2)
    assert "~ change  plan-blue   spec.generators[0].list row 1 (team=blue, env=prod)\n" in said
    assert "      spec.source.targetRevision: main → v2\n" in said
    assert "~ adopt   plan-green  spec.generators[0].list row 2" in said and "is there without an owner" in said
    assert "+ create  plan-white  spec.generators[0].list row 3" in said
    assert "- delete  plan-red    no row makes it; its objects are deleted with it" in said
    assert said.splitlines()[-1] == "Plan: 1 to create; 1 to change; 1 to adopt; 1 to delete"
    found = json.loads(shell("plan", "-f", written(tmp_path, changed), "-o", "json", code=2))
    assert found["applications"][0]["row"] == {
        "generator": "spec.generators[0].list", "row": 1, "values": {"team": "blue", "env": "prod"}
    }  # fmt: skip
    assert "ApplicationSet:     argocd/plan, spec.generators[0].list row 2 (team=blue, env=prod)\n" in shell(
        "app", "get", "plan-blue"
    )


def test_a_diff_shows_each_application_line_by_line(shell: Shell, link: Connection, tmp_path: Path) -> None:
    found = a_set("lines", "red")
    stored(shell, link, found, tmp_path)
    assert shell("appset", "diff", written(tmp_path, found)) == ""
    found["spec"]["template"]["spec"]["source"]["path"] = "other"
    said = shell("appset", "diff", written(tmp_path, found), code=1)
    assert "===== argoproj.io/Application argocd/lines-red ======" in said
    assert "-    path: apps/red\n+    path: other\n" in said
    assert "path: other" in shell("appset", "diff", written(tmp_path, found), "--no-exit-code")


def test_a_policy_that_forbids_it_keeps_applications(shell: Shell, link: Connection, tmp_path: Path) -> None:
    stored(shell, link, a_set("kept", "red blue"), tmp_path)
    changed = a_set("kept", "red", syncPolicy={"applicationsSync": "create-only"})
    said = shell("plan", "-f", written(tmp_path, changed))
    assert "policy create-only" in said and "no row makes it; policy create-only does not delete" in said
    assert said.splitlines()[-1] == "Plan: nothing to do (2 to keep)"


def test_a_mass_deletion_is_unsafe_until_its_hash_is_confirmed(shell: Shell, link: Connection, tmp_path: Path) -> None:
    stored(shell, link, a_set("many", "red blue green white black"), tmp_path)
    fewer = a_set("many", "red")
    said = shell("plan", "-f", written(tmp_path, fewer), code=4)
    assert "! hold" in said and "unsafe: 4 of 5 Applications would be deleted" in said
    confirm = re.search(r"annotation (\S+): (\w+)", said)
    assert confirm is not None
    shell("appset", "create", written(tmp_path, fewer), "--upsert")
    told = shell("explain", "appset/many", code=3)
    assert "ApplicationSet argocd/many Guarded" in told
    assert f"kubectl annotate appset many -n argocd {confirm[1]}={confirm[2]} --overwrite" in told
    mark = {"metadata": {"annotations": {confirm[1]: confirm[2]}}}
    link.ask(client.patch(link.resource(APPLICATION_SET), "argocd", "many", PatchType.MERGE, mark))
    assert "Plan: 4 to delete; 1 unchanged" in shell("plan", "appset/many", code=2)


def test_an_application_that_is_not_valid_blocks_in_part(shell: Shell, link: Connection, tmp_path: Path) -> None:
    found = a_set("half", "red blue")
    found["spec"]["template"]["spec"]["destination"]["server"] = "https://nowhere.example"
    link.ask(client.create(link.resource(APPLICATION_SET), found))
    said = shell("plan", "appset/half", code=3)
    assert "✘ refuse" in said and "application destination spec is invalid" in said
    told = shell("explain", "appset/half", code=3)
    assert "2 of 2 Applications are not written: they are not valid" in told
    assert "(from spec.generators[0].list row 1 (team=red, env=dev))" in told


def test_b49_the_steps_of_a_rollout_say_what_each_waits_for(shell: Shell, link: Connection, tmp_path: Path) -> None:
    def selects(env: str) -> Obj:
        return {"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]}

    steps = [selects("dev"), selects("prod") | {"maxUpdate": "25%"}]
    rolling = {"type": "RollingSync", "rollingSync": {"steps": steps}}
    stored(shell, link, a_set("roll", "red blue"), tmp_path)
    shell("appset", "create", written(tmp_path, a_set("roll", "red blue", strategy=rolling)), "--upsert")
    assert "warning: spec.strategy is not used: applicationsetcontroller.enable.progressive.syncs" in shell(
        "plan", "appset/roll"
    )
    maps = link.resource(GVK("", "v1", "ConfigMap"))
    data = {"applicationsetcontroller.enable.progressive.syncs": "true"}
    link.ask(client.create(maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PARAMETERS,
             "namespace": "argocd"}, "data": data}))  # fmt: skip
    said = shell("plan", "appset/roll")
    assert "step 1: env In [dev]\n" in said and "step 2: env In [prod], at most 25% at once\n" in said
    assert "  first waits for step 1: roll-red\n" in said
    told = shell("explain", "appset/roll")
    assert "ApplicationSet argocd/roll Rolling" in told and "step 1 of 2: 0 of 1 are Healthy" in told
    assert "Application argocd/roll-red" in told
    assert "step 2 of its rollout: Waiting, " in shell("explain", "app/roll-blue")
    link.ask(client.delete(maps, "argocd", PARAMETERS))


@pytest.mark.parametrize(("policy", "verb"), [("create-update", "○ orphan"), ("sync", "- delete")])
def test_b18_applications_of_a_set_that_goes_are_orphaned_or_deleted_as_its_policy_says(
    shell: Shell, link: Connection, tmp_path: Path, policy: str, verb: str
) -> None:
    name = f"going-{policy}"
    going = a_set(name, "red", syncPolicy={"applicationsSync": policy})
    going["metadata"]["finalizers"] = ["resources-finalizer.argocd.argoproj.io"]
    stored(shell, link, going, tmp_path)
    shell("appset", "delete", name, "--yes")
    said = shell("plan", f"appset/{name}", code=2)
    assert f"{verb}  {name}-red" in said and "warning: the set is being deleted" in said
    assert f"ApplicationSet argocd/{name} Terminating" in shell("explain", f"appset/{name}", code=3)


def test_the_plan_of_each_application_is_folded_in(shell: Shell, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shops")
    repository.commit(menu="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: menu}\n")
    found = a_set("folded", "red")
    found["spec"]["template"]["spec"]["source"] |= {"repoURL": str(repository.folder), "path": "."}
    bare = shell("plan", "-f", written(tmp_path, found), "--applications", code=4)
    assert (
        bare.splitlines()[-1] == "Plan of the set: unsafe as it stands (1 to create; plans of Applications: 1 unsafe)"
    )
    found["spec"]["template"]["spec"]["syncPolicy"] = {"syncOptions": ["CreateNamespace=true"]}
    said = shell("plan", "-f", written(tmp_path, found), "--applications", code=2)
    assert "Application argocd/folded-red at " in said and "+ create  ConfigMap red/menu" in said
    assert said.splitlines()[-1] == "Plan of the set: 1 to create"
    assert json.loads(shell("plan", "-f", written(tmp_path, found), "--applications", "-o", "json", code=2))[
        "applications"
    ][0]["plan"]["waves"]  # fmt: skip


def test_a_set_in_a_namespace_that_is_not_enabled_says_so(shell: Shell, tmp_path: Path) -> None:
    team = a_set("team", "red")
    team["metadata"]["namespace"] = "default"
    shell("appset", "create", written(tmp_path, team))
    said = "namespace default is not in applicationsetcontroller.namespaces of argocd-cmd-params-cm"
    assert f"warning: {said}" in shell("plan", "appset/default/team", code=2)
    assert said in shell("explain", "appset/default/team")


def test_names_of_sets_are_completed_and_a_missing_one_is_said(shell: Shell, tmp_path: Path) -> None:
    shell("appset", "create", written(tmp_path, a_set("named")))
    assert offered("plan", "appset/nam") == ["appset/named"] == offered("explain", "appset/nam")
    assert "ApplicationSet argocd/nosuch does not exist" in shell("plan", "appset/nosuch", code=1)
    assert "does not exist; there " in shell("explain", "appset/nosuch", code=1)
    for wrong in ("appset/a/b/c", "appset/", "appset"):
        assert "write appset/NAME" in shell("plan", wrong, code=2)
