"""``syncline health``: a table, JSON, exit codes, and scripts of users that are killed when they do not end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from syncline.cli.main import main

READY = """
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: shop, namespace: shop}
status: {conditions: [{type: Ready, status: "True", message: up to date}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
"""
WIDGET = "apiVersion: example.dev/v1\nkind: Widget\nmetadata: {name: w}\n"
SETTINGS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm}
data:
  resource.customizations.health.example.dev_Widget: |
    {script}
"""


def _file(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_objects_that_are_healthy_or_have_no_health_are_exit_code_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["health", "-f", _file(tmp_path, "all.yaml", READY)]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["NAMESPACE", "OBJECT", "HEALTH", "MESSAGE"],
        ["shop", "Certificate/shop", "Healthy", "up", "to", "date"],
        ["-", "ConfigMap/settings", "-", "-"],
    ]


def test_one_object_that_is_not_healthy_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = READY.replace('"True"', '"False"')
    assert main(["health", "-f", _file(tmp_path, "all.yaml", text), "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found[0]["health"] == {"status": "Degraded", "message": "up to date"}
    assert found[1]["health"] is None


def test_a_file_without_objects_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "-f", _file(tmp_path, "odd.yaml", "a: 1\n")]) == 2
    assert "without apiVersion and kind" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("return {status='Healthy', message=obj.metadata.name}", 0, {"status": "Healthy", "message": "w"}),
        ("return {status='Degraded'}", 1, {"status": "Degraded", "message": ""}),
        ("return {}", 1, {"status": "", "message": ""}),
    ],
)
def test_a_script_of_a_user_judges_its_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str, code: int, said: dict[str, str]
) -> None:
    pytest.importorskip("lupa", reason="the extra lua is not installed")
    settings = _file(tmp_path, "argocd-cm.yaml", SETTINGS.replace("{script}", script))
    widget = _file(tmp_path, "widget.yaml", WIDGET)
    assert main(["health", "-f", widget, "--customizations", settings, "-o", "json"]) == code
    assert json.loads(capsys.readouterr().out)[0]["health"] == said
