"""Butane documents in directory sources: which are translated, what they may read, how they fail, what is cached."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.sources.conftest import Upstream
from tests.sources.repositories import render_source

from syncline.kube.yaml import loading as yaml
from syncline.sources.directory import DirectoryOptions
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.mirrors import Git
from syncline.sources.rendering.cache import RenderCache
from syncline.sources.rendering.renderer import DirectoryRenderer, Rendered, parse_source, render_tree
from syncline.sources.tree import MemoryTree

HEAD = """\
variant: openshift
version: 4.16.0
metadata:
  name: {name}
  labels:
    machineconfiguration.openshift.io/role: worker
"""
CHRONY = (
    HEAD.format(name="99-chrony") + "storage: {files: [{path: /etc/chrony.conf, contents: {local: chrony.conf}}]}\n"
)
PLAIN = HEAD.format(name="99-plain") + "openshift: {kernel_arguments: [nosmt]}\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def rendered(
    files: dict[str, str], path: str = "mc", directory: dict[str, Any] | None = None, cache: RenderCache | None = None
) -> Rendered:
    tree = MemoryTree({name: text.encode() for name, text in files.items()}).folder(path)
    spec = parse_source({"repoURL": "u", "path": path, "directory": directory or {}})
    return render_tree(spec, tree, "f" * 40, cache=cache)


def names(found: Rendered) -> list[str]:
    return [f"{obj['kind']}/{obj['metadata']['name']}" for obj in found.manifests]


def source_of(found: Rendered, number: int = 0) -> str:
    source: str = found.manifests[number]["spec"]["config"]["storage"]["files"][0]["contents"]["source"]
    return source


# -- which documents -------------------------------------------------------------------------------------------------


def test_a_document_for_openshift_stands_for_its_machine_config_beside_manifests() -> None:
    found = rendered({"mc/a.yaml": CONFIG_MAP, "mc/b.bu": PLAIN})
    assert names(found) == ["ConfigMap/a", "MachineConfig/99-plain"]
    assert found.manifests[1]["spec"] == {"config": {"ignition": {"version": "3.4.0"}}, "kernelArguments": ["nosmt"]}
    assert (found.objects[1].position.file, found.objects[1].position.line) == ("mc/b.bu", 1)


@pytest.mark.parametrize(
    "text",
    [
        "variant: fcos\nversion: 1.5.0\n",
        "variant: fcos\nversion: 1.5.0\nstorage: {files: [{path: a}]}\n",
        "just: yaml\n",
        "\tbroken: [",
        "",
        "\x00\x01",
        PLAIN + "# +argocd:skip-file-rendering\n",
    ],
)
def test_every_other_file_of_that_name_is_passed_over_as_upstream_does(text: str) -> None:
    found = rendered({"mc/a.yaml": CONFIG_MAP, "mc/b.bu": text})
    assert names(found) == ["ConfigMap/a"]
    assert found.warnings == ()


def test_include_exclude_and_recurse_choose_documents_as_they_choose_manifests() -> None:
    files = {"mc/a.yaml": CONFIG_MAP, "mc/b.bu": PLAIN, "mc/deep/c.bu": PLAIN.replace("99-plain", "99-deep")}
    assert names(rendered(files, directory={"recurse": True})) == [
        "ConfigMap/a",
        "MachineConfig/99-plain",
        "MachineConfig/99-deep",
    ]
    assert names(rendered(files, directory={"recurse": True, "exclude": "b.*"})) == [
        "ConfigMap/a",
        "MachineConfig/99-deep",
    ]
    assert names(rendered(files, directory={"include": "*.yaml"})) == ["ConfigMap/a"]


def test_the_settings_can_forbid_it() -> None:
    tree = MemoryTree({"a.yaml": CONFIG_MAP.encode(), "b.bu": PLAIN.encode()})
    spec = parse_source({"repoURL": "u"})
    assert len(render_tree(spec, tree, "f" * 40).manifests) == 2
    off = replace(spec, directory=DirectoryOptions(butane=False))
    assert len(render_tree(off, tree, "f" * 40).manifests) == 1


# -- repositories that commit what Butane printed --------------------------------------------------------------------


def _printed(obj: Any) -> str:
    return yaml.dump(obj)


def test_a_committed_machine_config_of_the_same_name_counts_and_equal_ones_are_not_mentioned() -> None:
    written = _printed(rendered({"mc/b.bu": PLAIN}).manifests[0])
    found = rendered({"mc/b.bu": PLAIN, "mc/b.yaml": written})
    assert names(found) == ["MachineConfig/99-plain"]
    assert found.objects[0].position.file == "mc/b.yaml"
    assert found.warnings == ()


def test_a_committed_machine_config_that_differs_is_told() -> None:
    written = _printed(rendered({"mc/b.bu": PLAIN}).manifests[0]).replace("nosmt", "mitigations=off")
    found = rendered({"mc/b.bu": PLAIN, "mc/generated.yaml": written})
    assert [obj["spec"]["kernelArguments"] for obj in found.manifests] == [["mitigations=off"]]
    (warning,) = found.warnings
    assert "mc/b.bu gives another MachineConfig 99-plain than mc/generated.yaml holds" in warning


def test_a_document_that_cannot_be_translated_harms_nobody_where_its_manifest_lies_beside_it() -> None:
    files = {"mc/b.bu": PLAIN.replace("4.16.0", "4.99.0"), "mc/b.yaml": CONFIG_MAP}
    found = rendered(files)
    assert names(found) == ["ConfigMap/a"]
    assert "No translator exists for variant openshift with version 4.99.0" in found.warnings[0]


# -- errors and warnings ---------------------------------------------------------------------------------------------


def test_an_error_names_file_line_field_and_what_to_type_next() -> None:
    with pytest.raises(SourceError) as caught:
        rendered({"mc/b.bu": HEAD.format(name="x") + "storage:\n  files:\n    - path: a\n    - path: b/\n"})
    error = caught.value
    assert error.problem is Problem.INVALID
    assert error.position is not None
    assert (error.position.file, error.position.line, error.position.column) == ("mc/b.bu", 9, 13)
    assert '"mc/b.bu": mc/b.bu:9:13: $.storage.files.0.path: path not absolute (and 1 more)' in error.message
    assert error.fix == "see all with: syncline butane --check --files-dir mc mc/b.bu"


def test_a_value_of_the_wrong_type_is_an_error_with_its_line() -> None:
    with pytest.raises(SourceError, match="line 7: cannot unmarshal !!str") as caught:
        rendered({"mc/b.bu": HEAD.format(name="x") + "openshift: {fips: maybe}\n"})
    assert caught.value.position is not None


def test_warnings_of_a_translation_are_warnings_of_the_render() -> None:
    found = rendered({"mc/b.bu": PLAIN + "openshfit: {}\n"})
    assert found.warnings == ("mc/b.bu:8:1: warning at $.openshfit: unused key openshfit",)


# -- local files -----------------------------------------------------------------------------------------------------


def test_local_files_are_read_below_the_documents_own_folder() -> None:
    found = rendered(
        {"mc/deep/b.bu": CHRONY, "mc/deep/chrony.conf": "pool a", "mc/chrony.conf": "no"}, directory={"recurse": True}
    )
    assert source_of(found) == "data:,pool%20a"


@pytest.mark.parametrize("local", ["../secret", "/../secret", "x/../../secret"])
def test_nothing_outside_that_folder_can_be_named(local: str) -> None:
    with pytest.raises(SourceError, match="local file path traverses outside the files directory"):
        rendered({"mc/b.bu": CHRONY.replace("local: chrony.conf", f"local: {local}"), "secret": "s"})


def test_a_missing_local_file_is_an_error_at_its_line() -> None:
    with pytest.raises(SourceError, match=r"open mc/chrony\.conf: no such file or directory") as caught:
        rendered({"mc/b.bu": CHRONY})
    assert caught.value.position is not None
    assert caught.value.position.line == 7


def test_a_tree_is_walked_with_modes() -> None:
    class Executable(MemoryTree):
        def whole(self) -> MemoryTree:
            return self

    tree = Executable(
        {"b.bu": (HEAD.format(name="t") + "storage: {trees: [{local: t}]}\n").encode(), "t/a": b"A", "t/b/c.sh": b"C"}
    )
    tree.entries = tuple(replace(one, mode="100755") if one.path.endswith(".sh") else one for one in tree.entries)
    found = render_tree(parse_source({"repoURL": "u"}), tree, "f" * 40)
    files = found.manifests[0]["spec"]["config"]["storage"]["files"]
    assert [(file["path"], oct(file["mode"])) for file in files] == [("/a", "0o644"), ("/b/c.sh", "0o755")]


def test_links_inside_the_repository_are_followed_and_links_out_of_it_refused(upstream: Upstream, git: Git) -> None:
    upstream.commit({"mc/b.bu": CHRONY, "shared/chrony.conf": "shared"})
    (upstream.path / "mc" / "chrony.conf").symlink_to("../shared/chrony.conf")
    upstream.commit({})
    repository = git.repository(str(upstream.path))
    source = {"repoURL": str(upstream.path), "path": "mc"}
    assert source_of(render_source(source, repository)) == "data:,shared"
    (upstream.path / "mc" / "chrony.conf").unlink()
    (upstream.path / "mc" / "chrony.conf").symlink_to("../../../../etc/passwd")
    upstream.commit({})
    with pytest.raises(SourceError, match="the symbolic link leaves the repository") as caught:
        render_source(source, repository)
    assert caught.value.problem is Problem.REFUSED


# -- bounds and the cache --------------------------------------------------------------------------------------------


def test_documents_that_embed_more_than_a_machine_can_be_given_are_refused() -> None:
    with pytest.raises(SourceError, match="embed more than") as caught:
        rendered({"mc/b.bu": CHRONY, "mc/chrony.conf": "x" * 8_000_001})
    assert caught.value.problem is Problem.TOO_LARGE


def test_a_document_larger_than_any_machine_config_is_passed_over() -> None:
    assert names(rendered({"mc/a.yaml": CONFIG_MAP, "mc/b.bu": PLAIN + "#" * 500_000})) == ["ConfigMap/a"]


def test_an_alias_bomb_is_an_error() -> None:
    bomb = "bomb0: &b0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"bomb{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    found = rendered({"mc/b.bu": PLAIN + bomb})
    assert names(found) == ["MachineConfig/99-plain"]
    assert len(found.warnings) == 12


def test_the_key_changes_with_a_local_file_and_not_with_other_files() -> None:
    files = {"mc/b.bu": CHRONY, "mc/chrony.conf": "one", "mc/other": "x"}
    first = rendered(files)
    assert rendered(files | {"mc/other": "y"}).key == first.key
    assert rendered(files | {"mc/chrony.conf": "two"}).key != first.key
    assert rendered(files | {"mc/b.bu": CHRONY + "\n"}).key != first.key


def test_the_key_changes_when_a_tree_gains_a_file() -> None:
    files = {"mc/b.bu": HEAD.format(name="t") + "storage: {trees: [{local: t}]}\n", "mc/t/a": "A"}
    assert rendered(files | {"mc/t/b": "B"}).key != rendered(files).key


def test_a_second_render_comes_from_the_cache() -> None:
    cache = RenderCache()
    files = {"mc/b.bu": CHRONY, "mc/chrony.conf": "one"}
    first, second = rendered(files, cache=cache), rendered(files, cache=cache)
    assert (first.cached, second.cached) == (False, True)
    assert first.manifests == second.manifests


def test_entries_are_named_apart_from_manifests_and_imports() -> None:
    tree = MemoryTree({"b.bu": CHRONY.encode(), "chrony.conf": b"one", "a.yaml": CONFIG_MAP.encode()})
    spec = parse_source({"repoURL": "u"})
    paths = [entry.path for entry in DirectoryRenderer().reads(tree, spec)]
    assert paths == ["a.yaml", "b.bu", "//chrony.conf"]
