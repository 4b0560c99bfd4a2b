"""``syncline kustomize build`` on real folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncline.cli.main import main

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"


def put(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_yaml", ".yaml")).write_text(text)
    return folder


def test_a_folder_is_built_with_bases_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "base", kustomization_yaml="resources: [c.yaml]\n", c_yaml=CONFIG_MAP)
    top = put(tmp_path / "top", kustomization_yaml="bases: [../base]\nnamePrefix: p-\n")
    assert main(["kustomize", "build", str(top)]) == 0
    shown = capsys.readouterr()
    assert shown.out == CONFIG_MAP.replace("name: c", "name: p-c")
    assert shown.err.startswith("# Warning: 'bases' is deprecated.")


def test_links_are_followed_but_a_file_must_lie_in_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG_MAP)
    top = put(tmp_path / "top", kustomization_yaml="resources: [link.yaml]\n")
    (top / "link.yaml").symlink_to("../c.yaml")
    assert main(["kustomize", "build", str(top)]) == 1
    assert "is not in or below" in capsys.readouterr().err
    assert main(["kustomize", "build", "--load-restrictor", "LoadRestrictionsNone", str(top)]) == 0
    assert capsys.readouterr().out == CONFIG_MAP


def test_a_link_in_circles_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = put(tmp_path / "top", kustomization_yaml="resources: [a.yaml]\n")
    (top / "a.yaml").symlink_to("b.yaml")
    (top / "b.yaml").symlink_to("a.yaml")
    assert main(["kustomize", "build", str(top)]) == 1
    assert "goes in circles" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--enable-exec", "--enable-alpha-plugins"])
def test_plugins_need_the_kustomize_program(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["kustomize", "build", flag]) == 1
    assert "there is no kustomize on PATH; install kustomize" in capsys.readouterr().err


def test_an_unknown_value_is_a_usage_error() -> None:
    assert main(["kustomize", "build", "--reorder", "random"]) == 2
