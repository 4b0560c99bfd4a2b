"""The tool that is chosen, and the cache that knows what a render read."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncline.sources.errors import Problem, SourceError
from syncline.sources.render_cache import CacheLimits, RenderCache
from syncline.sources.renderer import Rendered, SourceSpec, SourceType, detect, parse_source, render_tree
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
def test_the_folder_decides_which_tool_reads_it(files: list[str], expected: SourceType) -> None:
    assert detect(MemoryTree(dict.fromkeys(files, b"")), SourceSpec("u")) is expected


def test_an_explicit_block_wins_over_the_folder() -> None:
    spec = parse_source({"repoURL": "u", "path": "p", "directory": {"recurse": True}})
    assert detect(MemoryTree({"Chart.yaml": b""}), spec) is SourceType.DIRECTORY
    assert spec.directory.recurse


def test_two_blocks_are_refused_in_upstreams_words() -> None:
    with pytest.raises(SourceError, match=r"^multiple application sources defined: Helm,Kustomize"):
        parse_source({"helm": {"values": "a"}, "kustomize": {"namePrefix": "b"}})


@pytest.mark.parametrize("source", [{"chart": "x"}, {"directory": {"jsonnet": {"libs": ["a"]}}}])
def test_what_cannot_be_rendered_yet_says_so(source: dict[str, object]) -> None:
    with pytest.raises(SourceError, match="not supported yet") as caught:
        parse_source(source)
    assert caught.value.problem is Problem.UNSUPPORTED
    with pytest.raises(SourceError, match="p: not supported yet: Helm sources"):
        rendered({"Chart.yaml": b""}, RenderCache())


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
