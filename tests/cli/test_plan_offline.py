"""``syncline plan`` without a cluster: a folder or a repository against nothing, or against what was exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.scenes.scenes import Repo, application

from syncline.cli.main import main
from syncline.kube.yaml.loading import emit_all

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: menu}\ndata: {soup: %s}\n"
CONFIG_OBJ = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "menu", "namespace": "default", "uid": "1", "resourceVersion": "7"},
    "data": {"soup": "leek"},
}
DISH = "apiVersion: example.org/v1\nkind: Dish\nmetadata: {name: stew}\nspec: {spice: 1}\n"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "dishes.example.org", "uid": "2", "resourceVersion": "8"},
    "spec": {
        "group": "example.org",
        "scope": "Cluster",
        "names": {"plural": "dishes", "kind": "Dish", "singular": "dish", "listKind": "DishList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "there-is-none"))


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int) -> str:
    ended = main(["plan", *arguments])
    out, err = capsys.readouterr()
    assert ended == code, out + err
    return out + err


def folder(where: Path, **files: str) -> Path:
    where.mkdir(parents=True)
    for name, text in files.items():
        (where / f"{name}.yaml").write_text(text)
    return where


def test_a_folder_that_nobody_committed_is_planned_against_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(capsys, "--local", str(folder(tmp_path / "Shop_1", a=CONFIG % "leek")), "--against", "empty", code=2)
    assert found.startswith("Application argocd/shop-1 at local: OutOfSync, Missing\n")
    assert "  + create  ConfigMap default/menu  not in the cluster\n" in found
    assert found.endswith("Plan: 1 to create\n")


@pytest.mark.parametrize("form", ["list.yaml", "list.json", "documents.yaml", "folder"])
def test_an_export_stands_for_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    objects: list[Any] = [CONFIG_OBJ, DEFINITION]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    export = tmp_path / form
    if form == "folder":
        for number, obj in enumerate(objects):
            (export / str(number)).mkdir(parents=True)
            (export / str(number) / "object.json").write_text(json.dumps(obj))
    else:
        export.write_text(emit_all(objects) if form == "documents.yaml" else json.dumps(listed))
    source = folder(tmp_path / "shop", a=CONFIG % "tomato", b=DISH)
    found = run(capsys, "--local", str(source), "--against", str(export), "--diff", code=2)
    assert "ConfigMap default/menu  differs from the source in" in found
    assert "-  soup: leek\n+  soup: tomato\n" in found
    assert "+ create     Dish stew" in found, "the definition of the export is served, and cluster-wide"


def test_a_kind_that_the_export_does_not_define_blocks_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(capsys, "--local", str(folder(tmp_path / "shop", b=DISH)), "--against", "empty", code=3)
    assert "blocked: example.org/Dish/default/stew: not valid" in found
    assert "next: install the definition of the kind first" in found


def test_an_application_of_a_file_is_read_from_its_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = Repo(tmp_path / "repo", folder(tmp_path / "source" / "app", a=CONFIG % "leek").parent)
    file = tmp_path / "app.json"
    file.write_text(json.dumps(application(repo, "app", name="shop", namespace="kitchen")))
    first = repo.git("rev-parse", "HEAD")
    repo.change("app/a.yaml", "leek", "tomato")
    export = tmp_path / "export.json"
    export.write_text(json.dumps(CONFIG_OBJ | {"metadata": {"name": "menu", "namespace": "kitchen"}}))
    where = ("-f", str(file), "--against", str(export))
    assert "- soup: leek" not in run(capsys, *where, code=2)
    told = json.loads(run(capsys, *where, "--revision", first, "-o", "json", code=2))
    assert told["revisions"] == [first] and told["application"] == "argocd/shop"
    assert told["waves"][0]["actions"][0]["object"] == "/ConfigMap/kitchen/menu"
    assert "differs" in run(capsys, *where, code=2)


def test_files_that_a_kustomization_names_beside_its_folder_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = folder(tmp_path / "repo" / "base", menu=CONFIG % "leek", kustomization="resources: [menu.yaml]\n")
    (base.parent / ".git").mkdir()
    over = folder(base.parent / "over", kustomization="resources: [../base]\nnamePrefix: my-\n")
    assert "ConfigMap default/my-menu" in run(capsys, "--local", str(over), "--against", "empty", code=2)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = folder(tmp_path / "shop", a=CONFIG % "leek")
    (tmp_path / "outside.yaml").write_text(CONFIG % "stolen")
    (source / "b.yaml").symlink_to("../outside.yaml")
    assert "b.yaml: the symbolic link leaves" in run(capsys, "--local", str(source), "--against", "empty", code=3)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("shop", "--local", ".", "--revision", "x"), 2, "--local is what lies on the disk"),
        (("--against", "empty"), 2, "give either APP, -f FILE or --local FOLDER"),
        (("shop", "--against", "nowhere.yaml"), 2, "no such file or folder; write `empty`"),
        (("shop", "--against", "empty"), 1, "Application argocd/shop does not exist"),
    ],
)
def test_what_cannot_be_meant_is_said(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, text: str
) -> None:
    assert text in run(capsys, *arguments, code=code)
