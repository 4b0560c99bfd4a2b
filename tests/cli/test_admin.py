"""``syncline admin``: what an import does to each object, checks of settings, manifests for Git."""

from __future__ import annotations

import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from syncline.cli.admin.files import text_of, written
from syncline.cli.admin.plan import Change, ImportOptions, belongs, exported, plan_import
from syncline.cli.admin.settings import checks
from syncline.cli.main import main
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import load

ARGO = "argoproj.io/v1alpha1"


def app(name: str = "shop", path: str = ".", **metadata: Any) -> Obj:
    return {"apiVersion": ARGO, "kind": "Application", "metadata": {"name": name, **metadata}, "spec": {"path": path}}


def there(obj: Obj, **more: Any) -> Obj:
    placed = {"namespace": "argocd", "uid": "u", "resourceVersion": "7", **obj["metadata"]}
    return obj | {"metadata": placed} | more


def secret(name: str, **labels: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels}, "data": {"a": "Yg=="}}


def changes(wanted: list[Obj], live: list[Obj], **options: Any) -> list[tuple[str, Change]]:
    return [(one.obj["metadata"]["name"], one.change) for one in plan_import(wanted, live, ImportOptions(**options))]


LABELLED = app(labels={"keep": "out"})


@pytest.mark.parametrize(
    ("wanted", "live", "options", "found"),
    [
        ([app()], [], {}, Change.CREATE),
        ([app()], [there(app())], {}, Change.KEEP),
        ([app()], [there(app(path="old"))], {}, Change.UPDATE),
        ([app(), ], [there(app(annotations={"a": "b"}))], {}, Change.UPDATE),
        ([app()], [there(app(), operation={"sync": {}})], {}, Change.KEEP),
        ([app()], [there(app(), operation={"sync": {}})], {"stop_operation": True}, Change.UPDATE),
        ([], [there(app())], {}, Change.LEAVE),
        ([], [there(app())], {"prune": True}, Change.PRUNE),
        ([], [there(LABELLED)], {"prune": True, "skip_label": "keep=out"}, Change.SKIP),
        ([LABELLED], [], {"skip_label": "keep=out"}, Change.SKIP),
        ([app(namespace="team")], [], {"namespaces": ("te*",)}, Change.CREATE),
    ],
    ids=[
        "what is not there is created",
        "what is equal stays",
        "another spec is written",
        "other annotations are written",
        "an operation is no difference",
        "unless it is to be stopped",
        "what the file has not is named",
        "and deleted where that is asked for",
        "but not with the label that is left alone",
        "nor is such an object written",
        "other namespaces are taken where they are enabled",
    ],
)  # fmt: skip
def test_what_an_import_does(wanted: list[Obj], live: list[Obj], options: dict[str, Any], found: Change) -> None:
    assert changes(wanted, live, **options) == [("shop", found)]


def test_an_application_of_a_namespace_that_is_not_enabled_is_passed_over() -> None:
    assert changes([app(namespace="elsewhere")], []) == []


def test_settings_are_never_deleted() -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}}
    assert changes([], [there(settings)], prune=True) == [("argocd-cm", Change.LEAVE)]


def test_an_update_keeps_what_the_server_knows_and_the_tracking_that_is_there() -> None:
    mine = app(annotations={"argocd.argoproj.io/tracking-id": "old", "b": "c"})
    live = there(
        app(path="x", annotations={"argocd.argoproj.io/tracking-id": "new"}, finalizers=["f"]), status={"s": 1}
    )
    [step] = plan_import([mine], [live], ImportOptions(ignore_tracking=True))
    assert step.obj["metadata"]["annotations"] == {"argocd.argoproj.io/tracking-id": "new", "b": "c"}
    assert step.obj["metadata"]["resourceVersion"] == "7" and "finalizers" not in step.obj["metadata"]
    assert step.obj["spec"] == {"path": "."} and step.obj["status"] == {"s": 1}


def test_an_export_holds_what_an_import_reads() -> None:
    live = there(app(labels={"a": "b"}), status={"x": 1})
    assert exported(live, "argocd") == app(labels={"a": "b"}) | {"status": {"x": 1}}
    assert exported(there(app(namespace="team")), "argocd")["metadata"] == {"name": "shop", "namespace": "team"}
    assert changes([exported(live, "argocd")], [live]) == [("shop", Change.KEEP)]
    assert belongs(secret("r", **{"argocd.argoproj.io/secret-type": "repository"})) and belongs(secret("argocd-secret"))
    assert not belongs(secret("till"))


def test_the_file_of_an_export_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "export.yaml"
    file.write_text("old")
    file.chmod(0o644)
    written(file, [secret("a")])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
    assert load(text_of([secret("a")]).encode(), file="x") == secret("a")


def test_an_export_is_not_shown_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["admin", "export"]) == 2
    assert "is not shown on a terminal" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "group", "words"),
    [
        ({"resource.customizations": "[]"}, "resource-overrides", "resource.customizations"),
        ({"timeout.reconciliation": "soon"}, "general", "timeout.reconciliation"),
        ({"kustomize.buildOptions": "--no-such-flag"}, "kustomize", "no-such-flag"),
        ({"resource.exclusions": "{"}, "general", "resource.exclusions"),
    ],
)
def test_a_setting_that_cannot_be_read_is_named_in_its_group(data: dict[str, str], group: str, words: str) -> None:
    found = checks(data)
    assert words in " ".join(found[group])
    assert not any(problems for name, problems in found.items() if name != group)


def settings(tmp_path: Path, **data: str) -> list[str]:
    file = tmp_path / "argocd-cm.yaml"
    file.write_text(
        json.dumps({"kind": "ConfigMap", "data": {key.replace("__", "."): text for key, text in data.items()}})
    )
    return ["--argocd-cm-path", str(file)]


def test_settings_are_checked_group_by_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["admin", "settings", "validate", *settings(tmp_path)]) == 0
    assert "✅ general" in capsys.readouterr().out
    assert main(["admin", "settings", "validate", *settings(tmp_path, timeout__reconciliation="soon")]) == 20
    said = capsys.readouterr()
    assert "❌ general" in said.out and "settings that cannot be read: general" in said.err
    assert main(["admin", "settings", "validate"]) == 2
    assert "--load-cluster-settings" in capsys.readouterr().err


def test_what_settings_make_of_an_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    file = tmp_path / "web.yaml"
    file.write_text(json.dumps(web))
    rule = "jsonPointers: [/spec/replicas]"
    given = settings(tmp_path, resource__customizations__ignoreDifferences__apps_Deployment=rule)
    overrides = ["admin", "settings", "resource-overrides"]
    assert main([*overrides, "ignore-differences", str(file), *given]) == 0
    assert "-  replicas: 3" in capsys.readouterr().out
    assert main([*overrides, "ignore-differences", str(file), *settings(tmp_path)]) == 0
    assert "No fields are ignored" in capsys.readouterr().out
    assert main([*overrides, "health", str(file), *given]) == 0
    assert "STATUS: " in capsys.readouterr().out
    assert main([*overrides, "list-actions", str(file), *given]) == 0
    assert "restart" in capsys.readouterr().out
    assert main([*overrides, "run-action", str(file), "pause", *given]) == 0
    assert "+  paused: true" in capsys.readouterr().out
    assert main([*overrides, "run-action", str(file), "fly", *given]) == 20


def test_manifests_are_printed_without_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*arguments: str) -> Obj:
        assert main(["admin", *arguments]) == 0
        found: Obj = load(capsys.readouterr().out.encode(), file="printed")
        return found

    one = made("app", "generate-spec", "shop", "--repo", "https://h/r", "--path", "p", "--dest-namespace", "shop")
    assert one["spec"]["source"] == {"repoURL": "https://h/r", "path": "p", "targetRevision": "HEAD"}
    file = tmp_path / "app.yaml"
    file.write_text(json.dumps(one))
    assert main(["admin", "app", "generate-spec", "-f", str(file), "--revision", "v2", "-i"]) == 0
    assert load(file.read_bytes(), file="x")["spec"]["source"]["targetRevision"] == "v2"
    team = made("proj", "generate-spec", "team", "--src", "*", "--description", "ours")
    assert team["spec"] == {"description": "ours", "sourceRepos": ["*"]}
    monkeypatch.setattr("sys.stdin", io.StringIO("hidden\n"))
    repository = made("repo", "generate-spec", "https://h/r", "--username", "me", "--password-stdin")
    assert repository["stringData"]["password"] == "hidden" and "data" not in repository
    config = tmp_path / "config"
    user = {"name": "u", "user": {"token": "t"}}
    near = {"name": "k", "cluster": {"server": "https://h:6443"}}
    context = {"name": "prod", "context": {"cluster": "k", "user": "u"}}
    config.write_text(json.dumps({"contexts": [context], "clusters": [near], "users": [user]}))
    cluster = made("cluster", "generate-spec", "prod", "--from", str(config), "--label", "region=eu")
    assert cluster["stringData"]["server"] == "https://h:6443" and cluster["metadata"]["labels"]["region"] == "eu"
    assert main(["admin", "app", "generate-spec", "--inline"]) == 2
