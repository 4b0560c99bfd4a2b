"""Kustomize sources of Applications: options, the cache, and the example applications."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tests import recorded

from syncline.sources.errors import SourceError
from syncline.sources.kustomize.engine import KustomizeEngine
from syncline.sources.rendering.cache import RenderCache
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.renderer import KustomizeRenderer, SourceType, parse_source, render_tree
from syncline.sources.tree import MemoryTree

_spec = importlib.util.spec_from_file_location("kust", Path(__file__).with_name("kust.py"))
assert _spec is not None and _spec.loader is not None
kust = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kust)

SCENES = recorded.SCENES / "argocd-example-apps"

FILES = {
    "base/kustomization.yaml": "resources: [d.yaml]\n",
    "base/d.yaml": kust.DEPLOYMENT,
    "top/kustomization.yaml": "resources: [../base]\nimages: [{name: busybox, newTag: '1'}]\n",
    "extra/kustomization.yaml": (
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {extra: 'yes'}\n"
    ),
    "other.txt": "nothing",
}


def tree(**changed: str) -> MemoryTree:
    files = {**FILES, **{name.replace("__", "/").replace("_yaml", ".yaml"): text for name, text in changed.items()}}
    return MemoryTree({name: text.encode() for name, text in files.items()})


def rendered(block: dict[str, Any]) -> dict[str, Any]:
    spec = parse_source({"repoURL": "r", "path": "top", "kustomize": block})
    found = render_tree(spec, tree().folder("top"), "sha")
    assert found.source_type is SourceType.KUSTOMIZE
    obj: dict[str, Any] = found.manifests[0]
    return obj


def images(obj: dict[str, Any]) -> list[str]:
    pod = obj["spec"]["template"]["spec"]
    return [each["image"] for each in (*pod["initContainers"], *pod["containers"])]


def test_a_base_outside_the_folder_is_rendered() -> None:
    assert images(rendered({})) == ["busybox:1", "reg.example.com:5000/nginx:1.25"]


@pytest.mark.parametrize(
    ("given", "image"),
    [
        ("busybox:2", "busybox:2"),
        ("busybox@sha256:0a", "busybox@sha256:0a"),
        ("busybox=b:3", "b:3"),
        ("busybox=b:*", "b:1"),
        ("busybox=b", "b"),
        ("busybox=", "busybox"),
        ("busybox=r.example:5000/b", "r.example:5000/b"),
        ("busybox:2@sha256:0a", "busybox:2@sha256:0a"),
    ],
)
def test_images_of_the_application_replace_those_of_the_file(given: str, image: str) -> None:
    assert images(rendered({"images": [given]}))[0] == image


def test_names_namespace_replicas_labels_and_annotations_are_set() -> None:
    obj = rendered(
        {
            "namePrefix": "a-",
            "nameSuffix": "-z",
            "namespace": "team",
            "replicas": [{"name": "web", "count": "3"}],
            "commonLabels": {"l": "1"},
            "commonAnnotations": {"n": "2"},
        }
    )
    assert obj["metadata"] == {"annotations": {"n": "2"}, "labels": {"l": "1"}, "name": "a-web-z", "namespace": "team"}
    assert obj["spec"]["replicas"] == 3
    assert obj["spec"]["selector"]["matchLabels"] == {"app": "web", "l": "1"}


def test_labels_can_leave_selectors_alone() -> None:
    obj = rendered({"commonLabels": {"l": "1"}, "labelWithoutSelector": True, "labelIncludeTemplates": True})
    assert obj["spec"]["selector"]["matchLabels"] == {"app": "web"}
    assert obj["spec"]["template"]["metadata"]["labels"] == {"app": "web", "l": "1"}


def test_the_build_environment_is_put_into_images_and_labels_and_into_annotations_where_asked() -> None:
    block = {
        "images": ["busybox:$ARGOCD_APP_NAME"],
        "commonLabels": {"l": "${ARGOCD_APP_NAME}-x"},
        "commonAnnotations": {"n": "$ARGOCD_APP_NAME"},
    }
    found = []
    for asked in (False, True):
        source = {"path": "top", "kustomize": {**block, "commonAnnotationsEnvsubst": asked}}
        spec = parse_source(source, RenderContext(application="shop"))
        found.append(render_tree(spec, tree().folder("top"), "sha").manifests[0])
    assert images(found[0])[0] == "busybox:shop"
    assert found[0]["metadata"]["labels"] == {"l": "shop-x"}
    assert [obj["metadata"]["annotations"]["n"] for obj in found] == ["$ARGOCD_APP_NAME", "shop"]


def test_patches_and_components_are_appended() -> None:
    patch = {"patch": "- {op: add, path: /spec/paused, value: true}", "target": {"kind": "Deployment"}}
    obj = rendered({"patches": [patch], "components": ["../extra"]})
    assert obj["spec"]["paused"] is True
    assert obj["metadata"]["annotations"] == {"extra": "yes"}


@pytest.mark.parametrize("pattern", ["../ex*", "../[e]xtra", "../extr?"])
def test_a_pattern_names_components(pattern: str) -> None:
    assert rendered({"components": [pattern]})["metadata"]["annotations"] == {"extra": "yes"}


@pytest.mark.parametrize(
    ("entry", "force", "labels"),
    [
        ("{pairs: {l: '0'}}", True, {"l": "1"}),
        ("{pairs: {a: '0'}}", False, {"a": "0", "l": "1"}),
        ("{pairs: {l: '0'}, includeTemplates: true}", False, {"l": "1"}),
        ("{pairs: {l: '0'}}", False, "label l already in kustomization file"),
    ],
)
def test_labels_without_selectors_join_the_entry_of_their_kind(entry: str, force: bool, labels: Any) -> None:
    files = tree(top__kustomization_yaml=f"resources: [../base]\nlabels: [{entry}]\n")
    block = {"commonLabels": {"l": "1"}, "labelWithoutSelector": True, "forceCommonLabels": force}
    spec = parse_source({"path": "top", "kustomize": block})
    if isinstance(labels, str):
        with pytest.raises(SourceError, match=labels):
            render_tree(spec, files.folder("top"), "sha")
    else:
        assert render_tree(spec, files.folder("top"), "sha").manifests[0]["metadata"]["labels"] == labels


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"commonLabels": {"l": "1"}, "labelIncludeTemplates": True}, "labelIncludeTemplates needs labelWithoutSelec"),
        ({"replicas": [{"name": "web", "count": "x"}]}, "count is 'x', not a number"),
        ({"images": ["busybox"]}, "invalid format of image 'busybox'"),
    ],
)
def test_what_kustomize_would_not_edit_is_refused(block: dict[str, Any], message: str) -> None:
    assert rendered({"replicas": [{"name": "web", "count": "-1"}]})["spec"]["replicas"] == -1
    with pytest.raises(SourceError, match=message):
        rendered(block)


def test_a_missing_component_is_an_error_unless_it_may_be_missing() -> None:
    assert rendered({"components": ["../nope"], "ignoreMissingComponents": True})["metadata"]["name"] == "web"
    with pytest.raises(SourceError, match="nope"):
        rendered({"components": ["../nope"]})


def test_a_label_that_is_there_is_replaced_only_by_force() -> None:
    files = tree(top__kustomization_yaml="resources: [../base]\ncommonLabels: {l: '0'}\n")
    block = {"commonLabels": {"l": "1"}}
    spec = parse_source({"path": "top", "kustomize": block})
    with pytest.raises(SourceError, match="label l already in kustomization file"):
        render_tree(spec, files.folder("top"), "sha")
    forced = parse_source({"path": "top", "kustomize": {**block, "forceCommonLabels": True}})
    assert render_tree(forced, files.folder("top"), "sha").manifests[0]["metadata"]["labels"] == {"l": "1"}


def test_a_commit_that_touches_nothing_that_was_read_costs_no_build() -> None:
    engine = KustomizeEngine()
    cache = RenderCache()
    spec = parse_source({"path": "top"})

    def render(files: MemoryTree) -> bool:
        return render_tree(spec, files.folder("top"), "sha", cache=cache, renderers=(KustomizeRenderer(engine),)).cached

    assert (render(tree()), engine.builds) == (False, 1)
    assert (render(tree(**{"other.txt": "changed"})), engine.builds) == (True, 1)
    assert (render(tree(base__d_yaml=kust.DEPLOYMENT + "# more\n")), engine.builds) == (False, 2)
    assert (render(tree()), engine.builds) == (True, 2)


def test_a_file_that_appears_where_one_was_looked_for_changes_the_render() -> None:
    engine = KustomizeEngine()
    spec = parse_source({"path": "top"})
    keys = [
        render_tree(spec, files.folder("top"), "sha", renderers=(KustomizeRenderer(engine),)).key
        for files in (tree(), tree())
    ]
    assert keys[0] == keys[1]
    with pytest.raises(SourceError, match="multiple kustomization files"):
        render_tree(
            spec, tree(**{"top/kustomization.yml": ""}).folder("top"), "sha", renderers=(KustomizeRenderer(engine),)
        )


@pytest.mark.skipif(not SCENES.exists(), reason=recorded.absent(SCENES))
@pytest.mark.parametrize(("name", "count"), [("kustomize-guestbook", 2), ("sock-shop", 29), ("pre-post-sync", 4)])
def test_an_example_application_renders(name: str, count: int) -> None:
    files = {
        str(path.relative_to(SCENES)): path.read_bytes()
        for path in sorted(SCENES.rglob("*"))
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts
    }
    found = render_tree(parse_source({"path": name}), MemoryTree(files).folder(name), "sha")
    assert len(found.manifests) == count
