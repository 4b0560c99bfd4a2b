"""The tool that is chosen, and the cache that knows what a render read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.sources.repositories import render, render_source

from syncline.assembly.sources.source_rules import source_rules
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.mirrors import Git, GitSettings
from syncline.sources.rendering.cache import CacheLimits, RenderCache
from syncline.sources.rendering.renderer import (
    RenderContext,
    Rendered,
    SourceSpec,
    SourceType,
    detect,
    parse_source,
    render_opened,
    render_tree,
    with_overrides,
)
from syncline.sources.sourcing import Sources
from syncline.sources.tree import MemoryTree

MANIFEST = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


PLAIN = SourceSpec("u")


def rendered(files: dict[str, bytes], cache: RenderCache, spec: SourceSpec = PLAIN, path: str = "p") -> Rendered:
    return render_tree(spec, MemoryTree(files, path), "f" * 40, cache=cache)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a.yaml"], SourceType.DIRECTORY),
        (["Chart.yaml", "values.yaml"], SourceType.HELM),
        (["myChart.yaml"], SourceType.HELM),
        (["kustomization.yml"], SourceType.KUSTOMIZE),
        (["Kustomization"], SourceType.KUSTOMIZE),
        (["Chart.yaml", "kustomization.yaml"], SourceType.KUSTOMIZE),
        (["sub/Chart.yaml", "sub/kustomization.yaml"], SourceType.DIRECTORY),
        ([], SourceType.DIRECTORY),
    ],
)
def test_the_folder_decides_which_tool_reads_it_a076(files: list[str], expected: SourceType) -> None:
    assert detect(MemoryTree(dict.fromkeys(files, b"")), SourceSpec("u")) is expected


def test_an_explicit_block_wins_over_the_folder() -> None:
    spec = parse_source({"repoURL": "u", "path": "p", "directory": {"recurse": True}})
    assert detect(MemoryTree({"Chart.yaml": b""}), spec) is SourceType.DIRECTORY
    assert spec.directory.recurse


def test_two_blocks_are_refused_in_upstreams_words_a004() -> None:
    with pytest.raises(SourceError, match=r"^multiple application sources defined: Helm,Kustomize"):
        parse_source({"helm": {"values": "a"}, "kustomize": {"namePrefix": "b"}})


def test_what_cannot_be_rendered_yet_says_so() -> None:
    spec = parse_source({"plugin": {"name": "x"}})
    with pytest.raises(SourceError, match="p: the source asks for the tool Plugin, which is not enabled") as caught:
        rendered({"a.yaml": MANIFEST}, RenderCache(), spec)
    assert caught.value.problem is Problem.UNSUPPORTED


def test_a_render_is_reused_exactly_while_nothing_it_reads_changes() -> None:
    cache = RenderCache()
    first = rendered({"a.yaml": MANIFEST, "README.md": b"1"}, cache)
    assert not first.cached
    assert rendered({"a.yaml": MANIFEST, "README.md": b"2", "sub/b.yaml": MANIFEST}, cache).cached
    assert not rendered({"a.yaml": MANIFEST + b"# x\n"}, cache).cached
    assert not rendered({"b.yaml": MANIFEST}, cache).cached
    assert not rendered({"a.yaml": MANIFEST}, cache, path="q").cached
    again = rendered({"a.yaml": MANIFEST}, cache)
    assert (again.cached, again.key, again.manifests) == (True, first.key, first.manifests)
    recursive = parse_source({"repoURL": "u", "directory": {"recurse": True}})
    assert not rendered({"a.yaml": MANIFEST, "sub/b.yaml": MANIFEST}, cache, recursive).cached


def test_the_least_recently_used_render_goes_first() -> None:
    cache = RenderCache(CacheLimits(renders=2))
    for name in ("a", "b", "a", "c"):
        rendered({f"{name}.yaml": MANIFEST}, cache)
    assert [rendered({f"{name}.yaml": MANIFEST}, cache).cached for name in ("a", "c", "b")] == [True, True, False]


def test_the_number_of_objects_is_bounded_too() -> None:
    cache = RenderCache(CacheLimits(objects=3))
    two = MANIFEST + b"---\n" + MANIFEST
    assert [rendered({f"{name}.yaml": two}, cache).cached for name in ("a", "b", "a")] == [False, False, False]


def test_a_folder_keeps_renders_across_restarts_and_damage_is_a_miss(tmp_path: Path) -> None:
    first = rendered({"a.yaml": MANIFEST}, RenderCache(folder=tmp_path))
    second = rendered({"a.yaml": MANIFEST}, RenderCache(folder=tmp_path))
    assert (second.cached, second.objects) == (True, first.objects)
    (tmp_path / f"{first.key}.json").write_text('{"objects": [[1]]')
    assert not rendered({"a.yaml": MANIFEST}, RenderCache(folder=tmp_path)).cached


def test_a_commit_elsewhere_in_the_repository_is_a_hit_a084(upstream: Any, git: Git) -> None:
    cache = RenderCache()
    repository = git.repository(str(upstream.path))
    spec = SourceSpec(str(upstream.path), "app", "main")
    first_sha = upstream.commit({"app/a.yaml": MANIFEST.decode(), "other/b.yaml": "x: 1\n"})
    first = render(spec, repository, cache=cache)
    second_sha = upstream.commit({"other/b.yaml": "x: 2\n", "app/notes.md": "n"})
    second = render(spec, repository, cache=cache)
    assert [(r.sha, r.cached) for r in (first, second)] == [(first_sha, False), (second_sha, True)]
    assert str(second.objects[0].position) == "app/a.yaml:1:1"


def test_a_change_behind_a_link_is_a_miss(upstream: Any, git: Git) -> None:
    cache = RenderCache()
    repository = git.repository(str(upstream.path))
    upstream.commit({"shared/a.yaml": MANIFEST.decode(), "app/b.yaml": MANIFEST.decode()})
    (upstream.path / "app" / "a.yaml").symlink_to("../shared/a.yaml")
    upstream.commit({})
    spec = SourceSpec(str(upstream.path), "app", "main")
    assert len(render(spec, repository, cache=cache).objects) == 2
    upstream.commit({"shared/a.yaml": MANIFEST.decode().replace("name: a", "name: z")})
    again = render(spec, repository, cache=cache)
    assert (again.cached, [m["metadata"]["name"] for m in again.manifests]) == (False, ["z", "a"])


def test_overrides_in_the_folder_change_the_source_but_not_where_it_is_a077(upstream: Any, git: Git) -> None:
    files = {"app/sub/a.yaml": MANIFEST.decode(), "app/sub/b.yaml": MANIFEST.decode()}
    files["app/.argocd-source.yaml"] = "path: elsewhere\nrepoURL: x\ndirectory: {recurse: true}\n"
    files["app/.argocd-source-shop.yaml"] = "directory: {exclude: 'sub/b*'}\n"
    upstream.commit(files)
    repository = git.repository(str(upstream.path))
    source = {"repoURL": str(upstream.path), "path": "app", "targetRevision": "main"}
    assert len(render_source(source, repository).objects) == 2
    assert len(render_source(source, repository, context=RenderContext(application="shop")).objects) == 1
    upstream.commit({"app/.argocd-source.yaml": "- no\n"})
    with pytest.raises(SourceError, match=r"\.argocd-source\.yaml: an override is a mapping"):
        render_source(source, repository)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("helm: {releaseName: b, parameters: null}", {"releaseName": "b", "parameters": [{"name": "x"}]}),
        ("helm: null", {"releaseName": "a", "parameters": [{"name": "x"}]}),
        (
            "Helm: {parameters: [{name: z, value: '1', forcestring: true}]}",
            {"releaseName": "a", "parameters": [{"name": "z", "value": "1", "forceString": True}]},
        ),
        ("helm: {parameters: [{name: z, value: 1}]}", "helm.parameters\\[0\\].value in body must be of type string"),
        ("helm: []", "helm in body must be of type object"),
        ("directory: {recurse: 'yes'}", "directory.recurse in body must be of type boolean"),
    ],
)
def test_an_override_is_read_as_the_fields_of_a_source(override: str, expected: Any) -> None:
    """A null changes nothing, names count in any case, types must fit."""
    tree = MemoryTree({".argocd-source.yaml": override.encode()})
    source = {"repoURL": "u", "helm": {"releaseName": "a", "parameters": [{"name": "x"}]}}
    if isinstance(expected, str):
        with pytest.raises(SourceError, match=rf"\.argocd-source\.yaml: .*{expected}"):
            with_overrides(source, tree)
    else:
        assert with_overrides(source, tree)["helm"] == expected


def test_many_threads_share_one_mirror(upstream: Any, git: Git) -> None:
    shas = [upstream.commit({f"app/{name}.yaml": MANIFEST.decode()}) for name in "abcd"]
    repository = git.repository(str(upstream.path))
    spec = SourceSpec(str(upstream.path), "app")

    def count(sha: str) -> int:
        return len(render(spec, repository, revision=repository.resolve(sha)).objects)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, shas * 4)) == [1, 2, 3, 4] * 4


def test_75_files_of_any_name_are_manifests_where_the_source_says_so(upstream: Any, git: Git) -> None:
    upstream.commit({"app/a.yaml": MANIFEST.decode(), "app/b.manifest": MANIFEST.decode(), "app/c.txt": "a: 1\n"})
    repository = git.repository(str(upstream.path))
    source = {"repoURL": str(upstream.path), "path": "app", "targetRevision": "main"}

    def names(**directory: Any) -> list[str]:
        found = render_source({**source, "directory": directory}, repository)
        return [one.position.file for one in found.objects]

    assert names(recurse=True) == ["app/a.yaml"]
    assert names(disableExtensionFilter=True, exclude="*.txt") == ["app/a.yaml", "app/b.manifest"]


def test_a_tool_that_is_off_leaves_plain_manifests(upstream: Any, tmp_path: Path) -> None:
    chart = {"app/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "app/a.yaml": MANIFEST.decode()}
    program = "{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'j'}}"
    upstream.commit({**chart, "k/kustomization.yaml": "namePrefix: x-\n", "j/a.jsonnet": program})
    sources = Sources(GitSettings(tmp_path / "cache", allow_local=True))
    settings = {"helm.enable": "false", "kustomize.enable": "false", "jsonnet.enable": "false"}
    rules = source_rules([], [{"metadata": {"name": "argocd-cm"}, "data": settings}])
    found: dict[str, tuple[str, int]] = {}
    for path in ("app", "k", "j"):
        source = {"repoURL": str(upstream.path), "path": path, "helm": {"releaseName": "x"} if path == "app" else {}}
        tree = sources.open(source, "main").tree
        one = render_opened(source, tree, "f" * 40, disabled=rules.disabled, jsonnet=rules.jsonnet)
        found[path] = (str(one.source_type), len(one.objects))
    assert found == {"app": ("Directory", 1), "k": ("Directory", 0), "j": ("Directory", 0)}


def test_a_link_that_ends_nowhere_is_no_manifest(upstream: Any, git: Git) -> None:
    upstream.commit({"app/a.yaml": MANIFEST.decode()})
    (upstream.path / "app" / "b.yaml").symlink_to("nowhere.yaml")
    upstream.commit({})
    repository = git.repository(str(upstream.path))
    assert len(render(SourceSpec(str(upstream.path), "app", "main"), repository).objects) == 1
