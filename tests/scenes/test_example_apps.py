"""The public example applications: each is synced, or says in one sentence why it cannot be."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.scenes.scenes import Repo, Stage, application, rows, scene

from syncline.kube.objects import dig, name_of

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SERVICES = "/api/v1/namespaces/default/services"


def needs(package: str, extra: str) -> None:
    """Skip, with the line that would change it."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'syncline[{extra}]'")


def synced(tmp_path: Path, folder: str) -> Stage:
    stage = Stage(tmp_path)
    stage.create(application(Repo(tmp_path / "repo", scene("argocd-example-apps")), folder, automated=True))
    stage.healthy()
    return stage


def test_a_chart_is_synced_under_the_name_of_its_application(tmp_path: Path) -> None:
    needs("helm_python", "helm")
    stage = synced(tmp_path, "helm-guestbook")
    assert [name_of(one) for one in stage.items(DEPLOYMENTS)] == ["app-helm-guestbook"]
    assert dig(stage.app(), "status", "sourceType") == "Helm"


def test_two_applications_of_one_chart_have_their_own_objects(tmp_path: Path) -> None:
    needs("helm_python", "helm")
    repo = Repo(tmp_path / "repo", scene("argocd-example-apps"))
    stage = Stage(tmp_path)
    for name in ("one", "two"):
        stage.create(application(repo, "helm-guestbook", name=name, automated=True))
    stage.healthy("one")
    stage.healthy("two")
    assert [name_of(one) for one in stage.items(DEPLOYMENTS)] == ["one-helm-guestbook", "two-helm-guestbook"]


@pytest.mark.parametrize("folder", ["jsonnet-guestbook", "jsonnet-guestbook-tla"])
def test_jsonnet_is_synced_and_waits_for_the_load_balancer_it_asks_for(tmp_path: Path, folder: str) -> None:
    needs("rjsonnet", "jsonnet")
    stage = Stage(tmp_path)
    stage.create(application(Repo(tmp_path / "repo", scene("argocd-example-apps")), folder))
    stage.sync()
    assert stage.finish()["phase"] == "Succeeded"
    stage.world.driver.advance(60)
    status = stage.app()["status"]
    assert [name_of(one) for one in stage.items(DEPLOYMENTS)] == ["jsonnet-guestbook-ui"]
    assert (status["sourceType"], status["sync"]["status"]) == ("Directory", "Synced")
    waiting = [row["name"] for row in status["resources"] if dig(row, "health", "status") != "Healthy"]
    assert waiting == ["jsonnet-guestbook-ui"], "nobody gives load balancers here"


def test_top_level_arguments_reach_the_program(tmp_path: Path) -> None:
    needs("rjsonnet", "jsonnet")
    stage = Stage(tmp_path)
    app = application(Repo(tmp_path / "repo", scene("argocd-example-apps")), "jsonnet-guestbook-tla", automated=True)
    arguments = [
        {"name": "name", "value": "$ARGOCD_APP_NAME-ui"},
        {"name": "replicas", "value": "1+1", "code": True},
        {"name": "type", "value": "ClusterIP"},
    ]
    app["spec"]["source"]["directory"] = {"jsonnet": {"tlas": arguments}}
    stage.create(app)
    stage.healthy()
    (deployment,) = stage.items(DEPLOYMENTS)
    assert (name_of(deployment), deployment["spec"]["replicas"]) == ("app-ui", 2)


def test_a_chart_of_applications_makes_them(tmp_path: Path) -> None:
    needs("helm_python", "helm")
    stage = Stage(tmp_path)
    stage.create(application(Repo(tmp_path / "repo", scene("argocd-example-apps")), "apps", namespace="argocd"))
    stage.sync()
    assert stage.finish()["phase"] == "Succeeded"
    made = [name_of(app) for app in stage.items("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications")]
    assert "example.helm-guestbook" in made
    assert len(made) == 15


def said(tmp_path: Path, folder: str, source: dict[str, object] | None = None) -> str:
    """What the Application says about a source that cannot be rendered."""
    stage = Stage(tmp_path)
    app = application(Repo(tmp_path / "repo", scene("argocd-example-apps")), folder)
    app["spec"]["source"].update(source or {})
    stage.create(app)
    stage.world.driver.settle()
    (condition,) = stage.app()["status"]["conditions"]
    assert condition["type"] == "ComparisonError"
    assert "\n" not in condition["message"]
    return str(condition["message"])


def test_a_dependency_whose_repository_cannot_be_reached_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("helm_python", "helm")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # wherever the test runs, there is no way out
    message = said(tmp_path, "helm-dependency")
    assert "chart repository https://charts.helm.sh/stable" in message


def test_a_kind_that_is_not_installed_fails_the_operation_by_name(tmp_path: Path) -> None:
    needs("helm_python", "helm")
    stage = Stage(tmp_path)
    stage.create(application(Repo(tmp_path / "repo", scene("argocd-example-apps")), "blue-green"))
    stage.sync()
    state = stage.finish()
    assert state["phase"] == "Failed"
    row = rows(state)["Rollout/app-helm-guestbook"]
    assert 'Rollout.argoproj.io "" not found' in row["message"] or "Rollout" in row["message"]
    assert [name_of(one) for one in stage.items(SERVICES)] == ["kubernetes"], "nothing is applied before all is known"


def test_a_plugin_that_nobody_enabled_is_refused_with_what_to_do(tmp_path: Path) -> None:
    message = said(tmp_path, "plugins/kustomized-helm", {"plugin": {"name": "kustomized-helm"}})
    assert "not enabled here; start the controllers with --plugins FOLDER" in message


def test_a_chart_takes_its_values_from_another_repository_which_makes_nothing_itself(tmp_path: Path) -> None:
    needs("helm_python", "helm")
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "prod.yaml").write_text("replicaCount: 2\n")
    charts, values = Repo(tmp_path / "charts", scene("argocd-example-apps")), Repo(tmp_path / "values", settings)
    app = application(charts, "helm-guestbook", automated=True)
    source = app["spec"].pop("source") | {"helm": {"valueFiles": ["$values/prod.yaml"]}}
    app["spec"]["sources"] = [source, {"repoURL": str(values.path), "targetRevision": "main", "ref": "values"}]
    stage = Stage(tmp_path)
    stage.create(app)
    stage.healthy()
    (deployment,) = stage.items(DEPLOYMENTS)
    assert deployment["spec"]["replicas"] == 2
    assert len(stage.app()["status"]["sync"]["revisions"]) == 2
