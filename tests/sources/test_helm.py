"""Charts: which files and values they are rendered with, what is refused, and what the cache knows."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.sources.repositories import render_source

from syncline.kube.yaml import loading as yaml
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.mirrors import Git
from syncline.sources.helm import rendering as helm
from syncline.sources.rendering.cache import RenderCache
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.renderer import Rendered, parse_source, render_tree
from syncline.sources.tree import MemoryTree

needs_helm = pytest.mark.skipif(
    importlib.util.find_spec("helm_python") is None, reason="helm_python is not installed: pip install 'syncline[helm]'"
)

CONTEXT = RenderContext("team_shop", "default", "prod", "v1.36.0+syncline", ("apps/v1", "example.org/v1/Thing"))
CHART = "apiVersion: v2\nname: demo\nversion: 0.1.0\n"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n"
SHOW = MAP % "{{ .Release.Name }}" + "data:\n  json: {{ toJson .Values | quote }}\n"
BASE = {"app/Chart.yaml": CHART, "app/values.yaml": "a: 1\n", "app/templates/show.yaml": SHOW}


def rendered(
    files: dict[str, str],
    options: dict[str, Any] | None = None,
    cache: RenderCache | None = None,
    context: RenderContext = CONTEXT,
) -> Rendered:
    tree = MemoryTree({name: text.encode() for name, text in files.items()}).folder("app")
    spec = parse_source({"repoURL": "u", "path": "app", "helm": options or {}}, context)
    return render_tree(spec, tree, "f" * 40, cache=cache)


def values(files: dict[str, str], options: dict[str, Any]) -> Any:
    (obj,) = rendered(BASE | files, options).manifests
    return yaml.load(obj["data"]["json"])


@needs_helm
def test_values_come_from_the_chart_then_files_then_inline_values_then_parameters() -> None:
    files = {"app/one.yaml": "a: 2\nb: {x: 1, z: 1}\n", "app/two.yaml": "b: {z: 2}\nc: 2\nd: 2\n"}
    options = {
        "valueFiles": ["one.yaml", "two.yaml"],
        "values": "c: 3\nd: 3\n",
        "parameters": [{"name": "d", "value": "4"}, {"name": "e", "value": "5", "forceString": True}],
    }
    assert values(files, options) == {"a": 2, "b": {"x": 1, "z": 2}, "c": 3, "d": 4, "e": "5"}


@needs_helm
def test_a_values_object_wins_over_values_as_text_a078() -> None:
    assert values({}, {"values": "a: 2", "valuesObject": {"a": 3}})["a"] == 3


@needs_helm
def test_values_files_are_named_from_the_chart_from_the_root_or_by_pattern_a079() -> None:
    files = {"env/prod.yaml": "env: prod", "shared/a.yaml": "s: 1\nl: a", "shared/b.yaml": "s: 2\nl: b"}
    options = {"valueFiles": ["../env/prod.yaml", "/shared/*.yaml", "/shared/a.yaml"]}
    assert values(files, options) == {"a": 1, "env": "prod", "s": 1, "l": "a"}, "what is named keeps its place"
    assert values(files, {"valueFiles": ["/**/prod.yaml", "/env/$ARGOCD_APP_NAMESPACE.yaml"]})["env"] == "prod"
    again = {"valueFiles": ["/shared/*.yaml", "/shared/?.yaml", "/shared/{a,b}.*"]}
    assert values(files, again) == {"a": 1, "s": 2, "l": "b"}, "a pattern may find what another has found"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"valueFiles": ["../../x"]}, "file '../../x' resolved to outside repository root"),
        ({"valueFiles": ["/../x"]}, "resolved to outside repository root"),
        ({"valueFiles": ["nope.yaml"]}, r"values file 'nope\.yaml' is not in the repository .*ignoreMissingValueFiles"),
        ({"valueFiles": ["nope/*.yaml"]}, r'values file glob "nope/\*\.yaml" matched no files'),
        ({"valueFiles": ["/nope/{a,b}.yaml"]}, r"values file '/nope/\{a,b\}\.yaml' is not in the repository"),
        ({"valueFiles": ["https://example.org/x"]}, "the URL scheme 'https' is not allowed"),
        ({"valueFiles": ["$other/x.yaml"]}, r'source referenced "\$other", which is not one of the available sources'),
        ({"fileParameters": [{"name": "a", "path": "../../x"}]}, "resolved to outside repository root"),
        ({"fileParameters": [{"name": "a", "path": "x"}]}, "file parameter 'x' is not in the repository"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        rendered(BASE, options)


@needs_helm
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": "a: [b"}, r"failed to parse spec\.source\.helm\.values"),
        ({"values": "[a]"}, "values are a mapping"),
        ({"parameters": [{"name": "a.b", "value": "1"}, {"name": "a.b.c", "value": "1"}]}, "failed parsing --set data"),
        ({"releaseName": "Not_A_Name"}, "release name 'Not_A_Name' is invalid"),
        ({"releaseName": "a" * 54}, "at most 53"),
        ({"version": "v2"}, "helm version 'v2' is not supported, only v3 and v4 are"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        rendered(BASE, options)


@needs_helm
def test_missing_values_files_can_be_ignored_a080() -> None:
    options = {"valueFiles": ["nope.yaml", "nope/*.yaml"], "ignoreMissingValueFiles": True}
    assert values({}, options) == {"a": 1}


@needs_helm
def test_parameters_keep_commas_know_the_application_and_reach_into_lists() -> None:
    options = {
        "parameters": [
            {"name": "list[1].name", "value": "second"},
            {"name": "text", "value": "a,b"},
            {"name": "items", "value": "{a,b}"},
            {"name": "who", "value": "$ARGOCD_APP_NAME in $ARGOCD_APP_NAMESPACE at ${ARGOCD_APP_REVISION_SHORT}"},
        ],
        "values": "list: [{name: one}, {name: two, keep: 1}]",
        "fileParameters": [{"name": "file", "path": "data.txt"}],
    }
    assert values({"app/data.txt": "x,y=z\n"}, options) == {
        "a": 1,
        "list": [{"name": "one"}, {"name": "second", "keep": 1}],
        "text": "a,b",
        "items": ["a", "b"],
        "who": "team_shop in prod at fffffff",
        "file": "x,y=z\n",
    }


@needs_helm
def test_a_large_number_in_a_parameter_is_warned_of() -> None:
    found = rendered(BASE, {"parameters": [{"name": "uid", "value": "1000660000"}, {"name": "port", "value": "80"}]})
    assert found.warnings == ("helm parameter uid: a number this large is printed with an exponent; set forceString",)


@needs_helm
def test_release_namespace_and_versions_reach_the_templates() -> None:
    text = MAP % "x" + "data:\n  v: {{ list .Release.Name .Release.Namespace .Release.IsInstall "
    text += (
        '.Capabilities.KubeVersion.Version (.Capabilities.APIVersions.Has "example.org/v1/Thing") | toJson | quote }}\n'
    )
    files = BASE | {"app/templates/show.yaml": text}
    (obj,) = rendered(files).manifests
    assert yaml.load(obj["data"]["v"]) == ["shop", "prod", True, "v1.36.0+syncline", True]
    options = {"releaseName": "r", "namespace": "n", "kubeVersion": "1.30.1", "apiVersions": ["b/v1"], "version": "v3"}
    (obj,) = rendered(files, options).manifests
    assert yaml.load(obj["data"]["v"]) == ["r", "n", True, "v1.30.1", False]


@needs_helm
def test_definitions_come_first_hooks_are_kept_and_notes_dropped() -> None:
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.x.org}\n"
    hook = MAP % "%s\n  annotations: {helm.sh/hook: %s}"
    files = BASE | {
        "app/crds/thing.yaml": crd,
        "app/templates/NOTES.txt": "Thank you for installing {{ .Chart.Name }}",
        "app/templates/_lib.tpl": '{{ define "x" }}{{ end }}',
        "app/templates/empty.yaml": "{{ if false }}a: b{{ end }}\n---\n# nothing\n",
        "app/templates/hook.yaml": hook % ("pre", "pre-install"),
        "app/templates/tests/test.yaml": hook % ("check", "test"),
    }
    assert names(rendered(files)) == ["things.x.org", "pre", "shop", "check"]
    assert names(rendered(files, {"skipCrds": True, "skipTests": True})) == ["pre", "shop"]


def names(found: Rendered) -> list[str]:
    return [obj["metadata"]["name"] for obj in found.manifests]


@needs_helm
def test_ignored_files_and_files_read_by_templates_are_honoured() -> None:
    files = BASE | {
        "app/.helmignore": "secret*\n",
        "app/templates/secret-b.yaml": MAP % "ignored",
        "app/files/x.txt": "content",
        "app/templates/show.yaml": MAP % "f" + 'data: {x: {{ .Files.Get "files/x.txt" }}}\n',
    }
    (obj,) = rendered(files).manifests
    assert obj["data"] == {"x": "content"}


DEPENDENT = CHART + "dependencies: [{name: base, version: 1.0.0, repository: '%s', condition: base.enabled}]\n"
LOCAL = {
    "lib/base/Chart.yaml": "apiVersion: v2\nname: base\nversion: 1.0.0\n",
    "lib/base/templates/b.yaml": MAP % "from-base",
}


@needs_helm
def test_a_missing_dependency_is_refused_by_name_even_where_it_is_disabled() -> None:
    files = BASE | {"app/Chart.yaml": DEPENDENT % "https://charts.example.org"}
    with pytest.raises(SourceError, match=r"missing in charts/ directory: base \(from https://charts\.example\.org"):
        rendered(files, {"values": "base: {enabled: false}"})


@needs_helm
def test_dependencies_are_taken_from_charts_or_from_elsewhere_in_the_repository() -> None:
    vendored = {f"app/charts/{name.removeprefix('lib/')}": text for name, text in LOCAL.items()}
    files = BASE | {"app/Chart.yaml": DEPENDENT % "https://charts.example.org"} | vendored
    assert names(rendered(files)) == ["from-base", "shop"]
    assert names(rendered(files, {"values": "base: {enabled: false}"})) == ["shop"]
    assert names(rendered(files)) == ["from-base", "shop"], "a former render leaves nothing behind"
    assert names(rendered(BASE | LOCAL | {"app/Chart.yaml": DEPENDENT % "file://../lib/base"})) == ["from-base", "shop"]
    with pytest.raises(SourceError, match="resolved to outside repository root"):
        rendered(BASE | {"app/Chart.yaml": DEPENDENT % "file://../../lib/base"})


@needs_helm
@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"app/templates/x.yaml": '{{ fail "no" }}'}, r"^app: execution error at \(demo/templates/x\.yaml:1:3\): no$"),
        ({"app/templates/x.yaml": "{{ if }}"}, "parse error at .*missing value for if"),
        ({"app/templates/x.yaml": "a: {{ .Values.a }}\n b: c\n"}, r"what app/templates/x\.yaml renders is no manifest"),
        ({"app/templates/x.yaml": "kind: ConfigMap\n"}, "Object 'ApiVersion' is missing"),
        (
            {"app/templates/x.yaml": '{{ define "l" }}{{ include "l" . }}{{ end }}{{ include "l" . }}'},
            "rendering|nested",
        ),
        ({"app/Chart.yaml": "name: demo\n"}, "version is required"),
        ({"app/Chart.yaml": CHART + "type: library\n"}, "library charts are not installable"),
        ({"app/Chart.yaml": CHART + "kubeVersion: '<1.20.0'\n"}, "requires kubeVersion: <1.20.0 which is incompatible"),
        ({"app/values.schema.json": '{"required": ["zz"]}'}, "missing property 'zz'"),
    ],
)
def test_a_chart_that_cannot_be_rendered_says_why_in_one_line(files: dict[str, str], message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        rendered(BASE | files)
    assert "\n" not in str(caught.value)


@needs_helm
def test_the_schema_can_be_skipped() -> None:
    files = BASE | {"app/values.schema.json": '{"required": ["zz"]}'}
    assert len(rendered(files, {"skipSchemaValidation": True}).manifests) == 1


@needs_helm
@pytest.mark.parametrize("place", ["file:///etc/hostname", "/etc/hostname", "other.json"])
def test_a_schema_reads_no_file_of_the_machine(place: str) -> None:
    schema = json.dumps({"properties": {"a": {"$ref": place}}})
    with pytest.raises(SourceError, match="names a file outside the repository") as caught:
        rendered(BASE | {"app/values.schema.json": schema})
    assert caught.value.problem is Problem.REFUSED
    inside = '{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {}}, %s'
    rendered(BASE | {"app/values.schema.json": inside % '"properties": {"a": {"$ref": "#/definitions/n"}}}'})


@needs_helm
def test_the_cache_knows_the_chart_its_values_files_and_who_asks() -> None:
    cache = RenderCache()
    options = {"valueFiles": ["/env/a.yaml", "/env/b.yaml"], "ignoreMissingValueFiles": True}
    files = BASE | {"env/a.yaml": "x: 1", "other/z": "1"}
    assert not rendered(files, options, cache).cached
    assert rendered(files | {"other/z": "2", "env/c.yaml": "x: 2"}, options, cache).cached
    assert not rendered(files | {"env/a.yaml": "x: 2"}, options, cache).cached
    assert not rendered(files | {"env/b.yaml": "x: 3"}, options, cache).cached
    assert not rendered(files | {"app/README.md": "new"}, options, cache).cached
    assert not rendered(files, options, cache, RenderContext("other", "default", "prod")).cached


def test_without_helm_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helm, "helm_engine", lambda: "")
    with pytest.raises(SourceError, match=r"app: Helm charts need Helm.*pip install helm-python-sdk") as caught:
        rendered(BASE)
    assert caught.value.problem is Problem.UNSUPPORTED


PROGRAM = """#!/bin/sh
arguments="$*"
while [ "$1" != -- ]; do shift; done
echo "apiVersion: v1"
echo "kind: ConfigMap"
echo "metadata: {name: $2}"
echo "data: {arguments: '$arguments', home: '$HOME'}"
"""


def test_a_helm_program_is_used_where_the_library_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "helm"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(helm, "helm_engine", lambda: "helm-binary")
    monkeypatch.setattr(helm, "shared_workers", fresh_workers)
    (obj,) = rendered(BASE, {"skipCrds": True, "kubeVersion": "1.30"}).manifests
    assert obj["metadata"]["name"] == "shop"
    for words in ("--namespace prod", "--skip-crds", "--kube-version 1.30", "--api-versions apps/v1"):
        assert words in obj["data"]["arguments"]
    assert "syncline-chart-" in obj["data"]["home"], "the program sees no home but its own"


def fresh_workers() -> Any:
    from syncline.sources.workers.pool import RenderWorkers

    return RenderWorkers()


@needs_helm
def test_links_inside_the_repository_are_followed_and_others_refused(upstream: Any, git: Git) -> None:
    files = BASE | LOCAL | {"env/prod.yaml": "a: linked"}
    upstream.commit({**files, "app/Chart.yaml": DEPENDENT % "https://charts.example.org"})
    (upstream.path / "app" / "charts").mkdir()
    (upstream.path / "app" / "charts" / "base").symlink_to("../../lib/base")
    (upstream.path / "app" / "prod.yaml").symlink_to("../env/prod.yaml")
    upstream.commit({})
    repository = git.repository(str(upstream.path))
    source = {"repoURL": str(upstream.path), "path": "app", "helm": {"valueFiles": ["prod.yaml"]}}
    found = render_source(source, repository, context=CONTEXT)
    assert names(found) == ["from-base", "shop"]
    assert "linked" in found.manifests[1]["data"]["json"]
    (upstream.path / "app" / "out.txt").symlink_to("../../../etc/passwd")
    upstream.commit({})
    with pytest.raises(SourceError, match="the symbolic link leaves the repository"):
        render_source(source, repository, context=CONTEXT)


@needs_helm
def test_values_files_of_another_source_are_read_at_its_commit_and_known_to_the_cache_a081() -> None:
    cache = RenderCache()
    tree = MemoryTree({name: text.encode() for name, text in BASE.items()}).folder("app")
    names_ = ["$env/prod/*.yaml", "$env/last.yaml"]
    spec = parse_source({"repoURL": "u", "path": "app", "helm": {"valueFiles": names_}}, CONTEXT)

    def read(**files: str) -> Rendered:
        other = MemoryTree(
            {"prod/a.yaml": b"a: 2\nb: 2", "last.yaml": b"b: 3"} | {n: t.encode() for n, t in files.items()}
        )
        return render_tree(replace(spec, refs={"env": other}), tree, "f" * 40, cache=cache)

    (obj,) = read().manifests
    assert yaml.load(obj["data"]["json"]) == {"a": 2, "b": 3}
    assert read(other="1").cached
    assert not read(**{"prod/a.yaml": "a: 3"}).cached
    with pytest.raises(SourceError, match="resolved to outside repository root"):
        rendered(BASE, {"valueFiles": ["/../x"]})
