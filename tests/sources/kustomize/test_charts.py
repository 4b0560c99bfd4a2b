"""Charts in kustomizations, and kustomizations that need the program: what ``kustomize.buildOptions`` allows."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.charthttp import ChartRepository
from tests.sources.conftest import Upstream
from tests.sources.test_charts import published

from syncline.assembly.sources.reading import GitSourceReader, renderers_with
from syncline.assembly.sources.source_rules import source_rules
from syncline.cli.main import main
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.kube.objects import Obj
from syncline.sources.errors import SourceError
from syncline.sources.kustomize.engine import KustomizeEngine
from syncline.sources.kustomize.flags import BuildFlags, parse_flags
from syncline.sources.kustomize.options import KustomizeOptions
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.renderer import render_opened
from syncline.sources.sourcing import NO_RULES
from syncline.sources.tree import Entry, MemoryTree

pytest.importorskip("helm_python", reason="pip install 'syncline[helm]'")

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = RenderContext("shop", "default", "prod", kube_version="v1.36.0", api_versions=("v1",))
TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}", namespace: "{{ .Release.Namespace }}"}
data: {color: "{{ .Values.color }}", size: "{{ .Values.box.size }}", kube: "{{ .Capabilities.KubeVersion }}"}
"""
HOOK = """
apiVersion: v1
kind: Pod
metadata: {name: %s, annotations: {helm.sh/hook: %s}}
"""
FILES = {
    "charts/shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "charts/shop/values.yaml": "color: blue\nbox: {size: 1, kept: true}\n",
    "charts/shop/templates/map.yaml": TEMPLATE,
    "charts/shop/templates/test.yaml": HOOK % ("try", "test"),
    "charts/shop/templates/job.yaml": HOOK % ("migrate", "pre-install"),
    "charts/shop/crds/one.yaml": (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ones.example.com}\n"
    ),
    "big.yaml": "color: red\nbox: {size: 9}\n",
}
HELM = BuildFlags(helm=True)


def kustomization(**chart: Any) -> str:
    return json.dumps({"helmCharts": [{"name": "shop", "releaseName": "mine", **chart}]})


def built(text: str, flags: BuildFlags = HELM, path: str = "", **files: str) -> list[Obj]:
    names = {name.replace("__", "/").replace("_yaml", ".yaml"): content for name, content in files.items()}
    tree = MemoryTree({name: data.encode() for name, data in {**FILES, "kustomization.yaml": text, **names}.items()})
    place = tree.folder(path) if path else tree
    return render_opened({"repoURL": "r"}, place, "sha", context=CONTEXT, kustomize=flags).manifests


def data_of(found: list[Obj]) -> dict[str, str]:
    (one,) = [obj["data"] for obj in found if obj["kind"] == "ConfigMap"]
    return {name: str(value) for name, value in one.items()}


def test_without_the_flag_a_chart_is_refused_as_kustomize_does() -> None:
    with pytest.raises(SourceError, match="must specify --enable-helm"):
        built(kustomization(), BuildFlags())


@pytest.mark.parametrize(
    ("entry", "color", "size"),
    [
        ({}, "blue", "1"),
        ({"valuesFile": "big.yaml"}, "red", "9"),
        ({"valuesInline": {"color": "green"}}, "green", "1"),
        ({"valuesInline": {"color": "green"}, "valuesMerge": "merge"}, "blue", "1"),
        ({"valuesInline": {"color": "green", "box": {"size": 4}}, "valuesMerge": "replace"}, "green", "4"),
        ({"valuesInline": {"color": "green"}, "additionalValuesFiles": ["big.yaml"]}, "red", "9"),
    ],
)
def test_values_come_from_the_file_then_inline_then_additional_files(entry: Any, color: str, size: str) -> None:
    found = data_of(built(kustomization(**entry)))
    assert (found["color"], found["size"]) == (color, size)


def test_hooks_tests_and_definitions_are_there_unless_left_out() -> None:
    def names(**entry: Any) -> set[str]:
        return {obj["metadata"]["name"] for obj in built(kustomization(**entry))}

    assert names() == {"mine", "try", "migrate"}
    assert names(skipTests=True) == {"mine", "migrate"}
    assert names(skipHooks=True) == {"mine"}
    assert names(includeCRDs=True, skipHooks=True) == {"mine", "ones.example.com"}


def test_a_chart_takes_the_namespace_of_the_kustomizations_around_it_and_is_not_moved() -> None:
    outer = json.dumps({"namespace": "far", "resources": ["charts"]})
    inner: Any = {
        "helmCharts": [{"name": "shop", "releaseName": "mine", "skipHooks": True}],
        "helmGlobals": {"chartHome": "."},
    }
    (found,) = built(outer, charts__kustomization_yaml=json.dumps(inner))
    assert found["metadata"]["namespace"] == "far"
    inner["helmCharts"][0]["namespace"] = "own"
    (found,) = built(outer, charts__kustomization_yaml=json.dumps(inner))
    assert found["metadata"]["namespace"] == "own"


def test_transformers_change_what_charts_gave() -> None:
    text = json.dumps({**json.loads(kustomization(skipHooks=True)), "namePrefix": "a-", "commonLabels": {"l": "x"}})
    (found,) = built(text)
    assert (found["metadata"]["name"], found["metadata"]["labels"]) == ("a-mine", {"l": "x"})


def test_versions_come_from_the_flags_then_the_entry_then_the_destination() -> None:
    assert data_of(built(kustomization()))["kube"] == "v1.36.0"
    assert data_of(built(kustomization(kubeVersion="v1.30.0")))["kube"] == "v1.30.0"
    flags = BuildFlags(helm=True, kube_version="v1.29.0")
    assert data_of(built(kustomization(kubeVersion="v1.30.0"), flags))["kube"] == "v1.29.0"


def test_old_lists_and_generators_of_their_own_inflate_too() -> None:
    old = json.dumps(
        {"helmChartInflationGenerator": [{"chartName": "shop", "releaseName": "old", "values": "big.yaml"}]}
    )
    assert data_of(built(old))["color"] == "red"
    own = json.dumps({"generators": ["g.yaml"]})
    generator = (
        "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: g}\nname: shop\nreleaseName: gen\n"
    )
    found = built(own, g_yaml=generator)
    assert "gen" in {obj["metadata"]["name"] for obj in found}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"name": ""}, "chart name cannot be empty"),
        ({"name": "other"}, "no repo specified for pull, no chart found at"),
        ({"valuesMerge": "shake"}, r"valuesMerge must be one of \[merge override replace\]"),
        ({"additionalValuesFiles": ["none.yaml"]}, "could not load additionalValuesFile"),
        ({"valuesFile": "../up.yaml"}, "no such file"),
        ({"repo": "https://charts.example.com", "name": "far"}, "not fetched"),
    ],
)
def test_what_cannot_be_inflated_says_why(entry: Any, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        built(kustomization(**entry))


def test_a_new_file_in_a_chart_is_a_new_read_set_and_a_file_beside_it_is_not() -> None:
    engine = KustomizeEngine()
    files = {**FILES, "kustomization.yaml": kustomization(skipHooks=True)}
    options = KustomizeOptions(flags=HELM)

    def reads(**more: str) -> tuple[Entry, ...]:
        return engine.reads(MemoryTree({name: data.encode() for name, data in {**files, **more}.items()}), options)

    first = reads()
    assert reads(README="new") == first
    assert engine.builds == 1
    assert reads(**{"charts/shop/templates/more.yaml": "# nothing\n"}) != first
    assert engine.builds == 2


def test_a_chart_that_is_not_there_is_pulled_from_its_repository(tmp_path: Path, upstream: Upstream) -> None:
    published(tmp_path / "host", tmp_path / "made", "far", "1.2.0")
    host = ChartRepository(tmp_path / "host")
    try:
        entry = {"name": "far", "repo": host.url, "version": "1.2.0", "releaseName": "r"}
        upstream.commit({"kustomization.yaml": json.dumps({"helmCharts": [entry]})})
        reader = GitSourceReader(tmp_path / "cache", allow_local=True)
        settings = {"metadata": {"name": "argocd-cm"}, "data": {"kustomize.buildOptions": "--enable-helm"}}
        project = {"metadata": {"name": "default"}, "spec": {"sourceRepos": ["*"]}}
        reader.learn_rules(source_rules([project], [settings]))
        found = reader.read(({"repoURL": str(upstream.path), "path": "."},), ("HEAD",), NOW, CONTEXT)
        assert not found.error, found.error
        assert [obj["data"] for obj in found.objects] == [{"version": "1.2.0", "color": "blue"}]
        reader.learn_rules(NO_RULES)
        refused = reader.read(({"repoURL": str(upstream.path), "path": "."},), ("HEAD",), NOW, CONTEXT)
        assert "must specify --enable-helm" in (refused.error or "")
    finally:
        host.close()


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("", BuildFlags()),
        ("--enable-helm", HELM),
        ("--enable-helm=false", BuildFlags()),
        ("--load-restrictor LoadRestrictionsNone", BuildFlags(unrestricted=True)),
        ("--load_restrictor=none --reorder none", BuildFlags(unrestricted=True, order="none")),
        ("--enable-alpha-plugins --enable-exec --network", BuildFlags(plugins=True, execs=True, network=True)),
        ("--helm-kube-version 1.30 --helm-api-versions a,b", BuildFlags(kube_version="1.30", api_versions=("a", "b"))),
        ("--helm-command helm3 --enable-helm", HELM),
    ],
)
def test_the_flags_of_build_options_are_read(text: str, flags: BuildFlags) -> None:
    assert parse_flags(text) == flags


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--enable-magic", "unknown flag: --enable-magic"),
        ("--reorder", "flag needs an argument: --reorder"),
        ("--reorder sideways", "'sideways' is none of legacy, none"),
        ("'open", "No closing quotation"),
    ],
)
def test_flags_that_kustomize_does_not_know_are_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message) as refused:
        parse_flags(text)
    assert "argocd-cm kustomize.buildOptions" in str(refused.value)


def test_the_command_line_inflates_charts_of_the_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in {**FILES, "kustomization.yaml": kustomization(skipHooks=True)}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert main(["kustomize", "build", str(tmp_path)]) == 1
    assert "must specify --enable-helm" in capsys.readouterr().err
    assert main(["kustomize", "build", "--enable-helm", str(tmp_path)]) == 0
    assert "color: blue" in capsys.readouterr().out


FUNCTION = """#!/bin/sh
sed 's/color: blue/color: painted/'
"""
EXEC = """
apiVersion: example.com/v1
kind: Painter
metadata:
  name: painter
  annotations:
    config.kubernetes.io/function: |
      exec: {path: ./paint.sh}
"""
PLUGGED = {
    "app/kustomization.yaml": "resources: [map.yaml]\ntransformers: [painter.yaml]\n",
    "app/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wall}\ndata:\n  color: blue\n",
    "app/painter.yaml": EXEC,
    "app/paint.sh": FUNCTION,
}
PROGRAM = shutil.which("kustomize")
needs_program = pytest.mark.skipif(
    not PROGRAM or bool(sandbox_problem()), reason=sandbox_problem() or "no kustomize on PATH"
)


def plugged(upstream: Upstream) -> None:
    upstream.commit(PLUGGED)
    os.chmod(upstream.path / "app" / "paint.sh", 0o755)
    upstream.run("commit", "--quiet", "--all", "--message", "may be run")


def read(upstream: Upstream, cache: Path, options: str, block: Obj | None = None) -> Any:
    reader = GitSourceReader(cache, allow_local=True, renderers=renderers_with(None))
    settings = {"metadata": {"name": "argocd-cm"}, "data": {"kustomize.buildOptions": options}}
    reader.learn_rules(source_rules([{"metadata": {"name": "default"}, "spec": {"sourceRepos": ["*"]}}], [settings]))
    source = {"repoURL": str(upstream.path), "path": "app", **({"kustomize": block} if block else {})}
    return reader.read((source,), ("HEAD",), NOW, CONTEXT)


@needs_program
def test_a_function_is_run_by_the_found_program_with_the_options_of_the_application(
    upstream: Upstream, tmp_path: Path
) -> None:
    plugged(upstream)
    found = read(upstream, tmp_path / "cache", "--enable-alpha-plugins --enable-exec", {"namePrefix": "my-"})
    assert not found.error, found.error
    assert [(one["metadata"]["name"], one["data"]) for one in found.objects] == [("my-wall", {"color": "painted"})]


def test_without_its_flag_a_function_is_refused_and_nothing_runs(upstream: Upstream, tmp_path: Path) -> None:
    plugged(upstream)
    found = read(upstream, tmp_path / "cache", "")
    assert "external plugins disabled" in (found.error or "")


def test_without_the_program_the_refusal_says_what_to_install(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugged(upstream)
    git = shutil.which("git")
    assert git is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = read(upstream, tmp_path / "cache", "--enable-alpha-plugins --enable-exec")
    assert "install kustomize where the controllers run" in (found.error or "")
