"""Cluster groups as sources of Applications: who renders them, with which values, and when Helm does."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.charthttp import ChartRepository
from tests.sources.conftest import Upstream
from tests.sources.test_helm import needs_helm

from syncline.argo.application import AppView
from syncline.assembly.sources.reading import GitSourceReader
from syncline.clustergroup.acm import render as acm
from syncline.clustergroup.ordering import rank
from syncline.clustergroup.render import render, values_of
from syncline.gitops.application.observing.observe import AppSettings, render_context
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import dump
from syncline.sources.errors import Problem, SourceError
from syncline.sources.helm.patterns import KNOWN, Known, digest_of
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.renderer import Rendered, SourceType, parse_source, render_tree
from syncline.sources.tree import MemoryTree

CHART = "apiVersion: v2\nname: clustergroup\nversion: 0.9.55\n"
TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: by-helm\n"
GROUP: Obj = {
    "global": {"pattern": "shop", "singleArgoCD": True},
    "clusterGroup": {
        "name": "hub",
        "namespaces": ["web"],
        "applications": {"web": {"name": "web", "path": "charts/web", "overrides": [{"name": "x", "value": "1"}]}},
    },
}
CONTEXT = RenderContext("team_shop-hub", "default", "prod", "1.36.0", ())
ANNOTATED = replace(CONTEXT, source="clustergroup")


def rendered(
    files: dict[str, str],
    helm: Obj | None = None,
    context: RenderContext = CONTEXT,
    refs: dict[str, dict[str, str]] | None = None,
) -> Rendered:
    tree = MemoryTree({name: text.encode() for name, text in files.items()}).folder("app")
    others = {
        name: MemoryTree({path: text.encode() for path, text in one.items()}) for name, one in (refs or {}).items()
    }
    spec = parse_source({"repoURL": "u", "path": "app", "helm": helm or {"releaseName": "given"}}, context)
    return render_tree(replace(spec, refs=others), tree, "f" * 40)


def in_order(objects: list[Obj]) -> list[Obj]:
    return sorted(objects, key=rank)


def with_values(*layers: Obj) -> list[Obj]:
    """What the renderer makes of layers of values."""
    return render(values_of(layers))


@pytest.mark.parametrize(
    ("helm", "more"),
    [
        ({"valueFiles": ["/values.yaml", "b.yaml"]}, {"global": {"pattern": "b"}}),
        ({"valueFiles": ["/values.yaml"], "values": "global: {pattern: c}\n"}, {"global": {"pattern": "c"}}),
        (
            {"valueFiles": ["/values.yaml"], "valuesObject": {"global": {"pattern": "d"}}, "values": "global: 1"},
            {"global": {"pattern": "d"}},
        ),
        (
            {
                "valueFiles": ["/values.yaml"],
                "values": "global: {pattern: c}\n",
                "parameters": [
                    {"name": "global.pattern", "value": "e"},
                    {"name": "global.clusterVersion", "value": "4.16"},
                    {"name": "global.multiSourceSupport", "value": "true", "forceString": True},
                    {"name": "global.privateRepo", "value": "true"},
                    {"name": "global.namespace", "value": "$ARGOCD_APP_NAMESPACE"},
                ],
            },
            {
                "global": {
                    "pattern": "e",
                    "clusterVersion": "4.16",
                    "multiSourceSupport": "true",
                    "privateRepo": True,
                    "namespace": "prod",
                }
            },
        ),
        (
            {"valueFiles": ["/values.yaml"], "fileParameters": [{"name": "global.domain", "path": "text"}]},
            {"global": {"domain": "from a file"}},
        ),
        (
            {"valueFiles": ["/values.yaml", "nope.yaml", "/nope/*.yaml"], "ignoreMissingValueFiles": True},
            {},
        ),
        ({"valueFiles": ["$shared/values/hub.yaml"]}, {"global": {"pattern": "of another source"}}),
    ],
    ids=["files", "values", "an object", "parameters", "file parameters", "missing files", "another source"],
)
@pytest.mark.parametrize("context", [CONTEXT, ANNOTATED], ids=["chart", "annotation"])
def test_values_come_from_where_a_charts_values_come_from(helm: Obj, more: Obj, context: RenderContext) -> None:
    files = {
        "values.yaml": dump(GROUP),
        "app/b.yaml": "global: {pattern: b}\n",
        "app/text": "from a file",
        **({} if context.source else {"app/Chart.yaml": CHART}),
    }
    shared = {"values/hub.yaml": dump({**GROUP, "global": {**GROUP["global"], "pattern": "of another source"}})}
    found = rendered(files, helm, context, {"shared": shared})
    assert found.source_type is SourceType.HELM
    assert found.warnings == ()
    assert in_order(found.manifests) == with_values(GROUP, more)


def test_texts_of_values_know_the_release() -> None:
    values = dump({**GROUP, "note": "{{ .Release.Name }} in {{ .Release.Namespace }}"})
    for helm, name in (({}, "shop-hub"), ({"releaseName": "given"}, "given")):
        found = rendered({"app/Chart.yaml": CHART}, {**helm, "values": values}).manifests
        (text,) = [one["data"]["values.yaml"] for one in found if "data" in one and "values.yaml" in one["data"]]
        assert f"note: '{name} in prod'" in text


def test_a_hubs_groups_are_rendered_for_chart_acm() -> None:
    values: Obj = {"clusterGroup": {"name": "hub", "managedClusterGroups": {"one": {"name": "east"}}}}
    found = rendered({"app/Chart.yaml": "name: acm\nversion: 0.2.8\n"}, {"valuesObject": values}).manifests
    assert in_order(found) == acm.render(acm.values_of([values]))
    assert in_order(rendered({"app/x": ""}, {"valuesObject": values}, replace(CONTEXT, source="acm")).manifests) == (
        in_order(found)
    )


OTHERS = (
    ("another version", {"app/Chart.yaml": CHART.replace("55", "56")}, "it is '0.9.56'"),
    ("a patched copy", {"app/Chart.yaml": CHART}, "its files are not those of that version"),
    ("another chart", {"app/Chart.yaml": CHART.replace("clustergroup", "web")}, ""),
)


@needs_helm
@pytest.mark.parametrize(("files", "said"), [one[1:] for one in OTHERS], ids=[one[0] for one in OTHERS])
def test_helm_renders_what_is_not_a_known_chart(files: dict[str, str], said: str) -> None:
    found = rendered({**files, "app/templates/a.yaml": TEMPLATE})
    assert [one["metadata"]["name"] for one in found.manifests] == ["by-helm"]
    assert [said in one and "Syncline renders clustergroup 0.9.55, acm 0.2.8" in one for one in found.warnings] == (
        [True] if said else []
    )


@needs_helm
def test_an_annotation_does_not_make_another_chart_a_cluster_group() -> None:
    files = {"app/Chart.yaml": CHART.replace("clustergroup", "web"), "app/templates/a.yaml": TEMPLATE}
    found = rendered(files, context=ANNOTATED)
    assert [one["metadata"]["name"] for one in found.manifests] == ["by-helm"]
    assert (
        "the chart here is 'web', so that annotation syncline.dev/source: clustergroup does not count"
        in (found.warnings[0])
    )


def test_an_unknown_word_in_the_annotation_is_refused() -> None:
    with pytest.raises(SourceError, match=r"syncline.dev/source: 'foo' is none of clustergroup, acm") as refused:
        rendered({"app/x.yaml": ""}, context=replace(CONTEXT, source="foo"))
    assert refused.value.problem is Problem.INVALID


def test_without_the_annotation_a_folder_with_values_is_none() -> None:
    tree = MemoryTree({"app/values.yaml": dump(GROUP).encode()}).folder("app")
    found = render_tree(parse_source({"repoURL": "u", "path": "app"}, CONTEXT), tree, "f" * 40)
    assert (found.source_type, found.manifests) == (SourceType.DIRECTORY, [])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"clusterGroup": {**GROUP["clusterGroup"], "foo": 1}}, "at /clusterGroup: additional properties 'foo'"),
        ({**GROUP, "text": "{{ include 'x' . }}"}, "values: "),
        ({**GROUP, "clusterGroup": {**GROUP["clusterGroup"], "extraObjects": {"a": {"x": 1}}}}, "'Kind' is missing"),
    ],
    ids=["schema", "a function that is not there", "no object"],
)
def test_values_that_give_no_objects_are_refused(values: Obj, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        rendered({"app/Chart.yaml": CHART}, {"valuesObject": values})


def test_a_number_beyond_64_bits_stays_one() -> None:
    values: Obj = {**GROUP, "global": {**GROUP["global"], "originURL": 1e21}}
    (web,) = [
        one
        for one in rendered({"app/Chart.yaml": CHART}, {"valuesObject": values}).manifests
        if one["kind"] == "Application"
    ]
    given = {one["name"]: one["value"] for one in web["spec"]["source"]["helm"]["parameters"]}
    assert given["global.originURL"] == 1e21


def test_the_schema_can_be_skipped() -> None:
    values = {"clusterGroup": {**GROUP["clusterGroup"], "foo": 1}}
    helm = {"valuesObject": values, "skipSchemaValidation": True}
    assert rendered({"app/Chart.yaml": CHART}, helm).manifests


def _chart(**more: str) -> dict[str, str]:
    return {"Chart.yaml": CHART, "templates/a.yaml": TEMPLATE, "values.yaml": "a: 1\n", **more}


def _known(monkeypatch: pytest.MonkeyPatch, dependency: Known | None = None, **more: str) -> None:
    files = {name: text.encode() for name, text in _chart(**more).items()}
    monkeypatch.setitem(KNOWN, "clustergroup", Known("clustergroup", "0.9.55", digest_of(files), dependency))  # type: ignore[arg-type]


@needs_helm
def test_helm_has_the_last_word_on_values_that_syncline_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    _known(monkeypatch)
    files = {f"app/{name}": text for name, text in _chart().items()}
    assert len(rendered(files, {"valuesObject": GROUP}).manifests) > 1, "known by its files: rendered without Helm"
    found = rendered(files, {"valuesObject": {**GROUP, "text": "{{ include 'x' . }}"}})
    assert [one["metadata"]["name"] for one in found.manifests] == ["by-helm"]
    assert found.warnings[0].startswith("rendered by Helm, since Syncline alone refuses the values: ")


def test_a_charts_own_picture_is_taken_from_the_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    template = {"templates/link.yaml": "    imageURL: data:image/png;base64,iVBORw0KGgo=\n"}
    _known(monkeypatch, **template)
    values = {**GROUP, "global": {"pattern": "shop"}}
    found = {}
    for name, files in (("whole", _chart(**template)), ("bare", {"Chart.yaml": CHART})):
        objects = rendered({f"app/{path}": text for path, text in files.items()}, {"valuesObject": values}).manifests
        (link,) = [one for one in objects if one["kind"] == "ConsoleLink"]
        found[name] = link["spec"]["applicationMenu"]["imageURL"]
    assert found["whole"] == "data:image/png;base64,iVBORw0KGgo="
    assert found["bare"].startswith("data:image/svg+xml;base64,")


RBAC = {"Chart.yaml": "name: vp-rbac\nversion: 0.1.2\n", "templates/x.yaml": "{{/* none */}}"}


@needs_helm
@pytest.mark.parametrize(
    ("more", "ours"),
    [
        ({f"charts/vp-rbac/{name}": text for name, text in RBAC.items()}, True),
        ({f"charts/vp-rbac/{name}": text + "#" for name, text in RBAC.items()}, False),
        ({f"charts/other/{name}": text.replace("vp-rbac", "other") for name, text in RBAC.items()}, False),
        ({}, False),
    ],
    ids=["the dependency", "another copy of it", "another dependency", "none"],
)
def test_a_known_chart_has_its_known_dependency(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, str], ours: bool
) -> None:
    content = {name: text.encode() for name, text in RBAC.items()}
    _known(monkeypatch, Known("vp-rbac", "0.1.2", digest_of(content)))
    found = rendered({f"app/{name}": text for name, text in _chart(**more).items()}, {"valuesObject": GROUP})
    assert (len(found.manifests) > 1, found.warnings == ()) == (ours, ours)


def test_an_annotation_without_a_helm_block_is_warned_of() -> None:
    tree = MemoryTree({"app/values-hub.yaml": dump(GROUP).encode()}).folder("app")
    found = render_tree(parse_source({"repoURL": "u", "path": "app"}, ANNOTATED), tree, "f" * 40)
    assert (found.source_type, found.manifests) == (SourceType.DIRECTORY, [])
    assert "syncline.dev/source counts for a source with a helm block" in found.warnings[0]


@needs_helm
def test_a_group_of_a_chart_repository_has_its_values_in_another_source(upstream: Upstream, tmp_path: Path) -> None:
    import helm_python

    chart = tmp_path / "clustergroup"
    chart.mkdir()
    (chart / "Chart.yaml").write_text("apiVersion: v2\n" + CHART.removeprefix("apiVersion: v2\n"))
    (tmp_path / "charts").mkdir()
    helm_python.package(chart, destination=tmp_path / "charts")
    helm_python.repo_index_generate(tmp_path / "charts")
    upstream.commit({"values-global.yaml": "global: {singleArgoCD: true}\n", "values-hub.yaml": dump(GROUP)})
    served = ChartRepository(tmp_path / "charts")
    files = ["$patternref/values-global.yaml", "$patternref/values-hub.yaml", "$patternref/values-AWS.yaml"]
    sources: tuple[Obj, ...] = (
        {"repoURL": str(upstream.path), "targetRevision": "main", "ref": "patternref"},
        {
            "repoURL": served.url,
            "chart": "clustergroup",
            "targetRevision": "0.9.*",
            "helm": {
                "valueFiles": files,
                "ignoreMissingValueFiles": True,
                "parameters": [{"name": "global.pattern", "value": "given"}],
            },
        },
    )
    reader = GitSourceReader(tmp_path / "cache", allow_local=True)
    found = reader.read(sources, ("main", "0.9.*"), datetime(2026, 1, 1, tzinfo=UTC), CONTEXT)
    served.close()
    assert (found.error, found.warnings) == ("", ())
    assert in_order(list(found.objects)) == with_values(GROUP, {"global": {"pattern": "given"}})


def test_an_applications_annotation_reaches_its_render() -> None:
    app: Obj = {"metadata": {"name": "hub", "namespace": "argocd", "annotations": {"syncline.dev/source": "acm"}}}
    assert render_context(AppView(app), AppSettings()).source == "acm"


def _keys(files: dict[str, str], context: RenderContext) -> Any:
    return rendered(files, {"valuesObject": GROUP}, context).key


def test_the_annotation_is_part_of_what_a_render_is_cached_under() -> None:
    files = {"app/x.yaml": ""}
    assert _keys(files, ANNOTATED) != _keys(files, replace(CONTEXT, source="acm"))
