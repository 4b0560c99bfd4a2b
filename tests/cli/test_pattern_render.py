"""``syncline pattern render`` prints objects, or says what is wrong with the values and where."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.commanding import Shell

from syncline.kube.yaml.loading import load_all

GROUP = "clusterGroup: {name: hub, namespaces: [shop], applications: {}}\n"


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys, [])


def _file(tmp_path: Path, text: str, name: str = "values-hub.yaml") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def test_later_files_and_parameters_override(shell: Shell, tmp_path: Path) -> None:
    shared = _file(tmp_path, "global: {pattern: shop, singleArgoCD: true}\n", "values-global.yaml")
    text = shell(
        "pattern", "render", "-f", shared, "-f", _file(tmp_path, GROUP), "--set", "global.vpArgoNamespace=vp-gitops"
    )
    objects = load_all(text).values
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in objects if one["kind"] == "Namespace"}
    assert labels["shop"] == {"argocd.argoproj.io/managed-by": "vp-gitops"}
    assert not [one for one in objects if one["kind"] == "ArgoCD"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("clusterGroup: {name: hub, foo: 1}\n", "at /clusterGroup: additional properties 'foo' not allowed"),
        ("a: [\n", "failed to parse"),
        ("- a\n", "values are a mapping"),
        (GROUP.replace("[shop]", "[{shop: null}]"), "cannot read disabled: nil pointer"),
        (GROUP + "x: '{{ .Values.a'\n", "bad character"),
        (GROUP + "x: '{{ range until 100000 }}{{ range until 100000 }}x{{ end }}{{ end }}'\n", "values"),
    ],
    ids=["unknown key", "no YAML", "no mapping", "null entry", "broken template", "a template without an end"],
)
def test_what_is_wrong_is_said(shell: Shell, tmp_path: Path, values: str, said: str) -> None:
    assert said in shell("pattern", "render", "-f", _file(tmp_path, values), code=1)


def test_a_parameter_without_a_value_is_refused(shell: Shell, tmp_path: Path) -> None:
    found = shell("pattern", "render", "-f", _file(tmp_path, GROUP), "--set", "global.pattern", code=2)
    assert "expected NAME=VALUE" in found


MANAGING = "clusterGroup: {name: hub, applications: {}, namespaces: [], managedClusterGroups: {one: {name: east}}}\n"


@pytest.mark.parametrize(
    ("values", "options", "kinds"),
    [
        (GROUP, (), {"Role"}),
        (MANAGING, (), {"Role", "MultiClusterHub", "Policy"}),
        (MANAGING, ("--chart", "clustergroup"), {"Role"}),
        (MANAGING, ("--chart", "acm"), {"MultiClusterHub", "Policy"}),
        (GROUP, ("--chart", "acm"), {"MultiClusterHub"}),
    ],
    ids=["a group", "a group that manages others", "itself alone", "the others alone", "none to manage"],
)
@pytest.mark.parametrize("output", ["yaml", "json"])
def test_what_a_hub_gives_its_groups_follows(
    shell: Shell, tmp_path: Path, values: str, options: tuple[str, ...], kinds: set[str], output: str
) -> None:
    text = shell("pattern", "render", "-f", _file(tmp_path, values), "-o", output, *options)
    found = load_all(text).values
    objects = found[0] if output == "json" else found
    assert {one["kind"] for one in objects} & {"Role", "MultiClusterHub", "Policy"} == kinds


def test_names_that_are_too_long_for_a_host_are_warned_of(shell: Shell, tmp_path: Path) -> None:
    values = GROUP.replace("hub", "g" * 20) + f"global: {{pattern: {'p' * 7}}}\n"
    shell("pattern", "render", "-f", _file(tmp_path, values))
    assert "are 47 letters, and at most 46 fit" in shell.printed[-1]
