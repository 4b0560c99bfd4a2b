"""Directory sources: which files, which objects, which words for what is wrong."""

from __future__ import annotations

import pytest

from syncline.base.report import Position
from syncline.sources.directory import DirectoryLimits, DirectoryOptions, Manifests, read_manifests, select_files
from syncline.sources.errors import Problem, SourceError
from syncline.sources.tree import MemoryTree

ALL = DirectoryOptions()


def manifest(name: str, kind: str = "ConfigMap") -> str:
    return f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n"


def read(files: dict[str, str | bytes], options: DirectoryOptions = ALL, path: str = "") -> Manifests:
    tree = MemoryTree({name: text.encode() if isinstance(text, str) else text for name, text in files.items()}, path)
    return read_manifests(tree, select_files(tree, options))


def names(manifests: Manifests) -> list[str]:
    return [sourced.obj["metadata"]["name"] for sourced in manifests.objects]


FILES = {
    name: manifest(name.replace("/", "-"))
    for name in ("b.yaml", "a.yml", "sub/c.yaml", "sub-a/d.yaml", "sub/deep/e.yaml", "x.txt", "README.md", "y.YAML")
}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (DirectoryOptions(), ["a.yml", "b.yaml"]),
        (DirectoryOptions(recurse=True), ["a.yml", "b.yaml", "sub-c.yaml", "sub-deep-e.yaml", "sub-a-d.yaml"]),
        (DirectoryOptions(recurse=True, include="*.yml"), ["a.yml"]),
        (DirectoryOptions(recurse=True, exclude="sub/*"), ["a.yml", "b.yaml", "sub-a-d.yaml"]),
        (DirectoryOptions(recurse=True, include="{a,b}.*", exclude="*.yml"), ["b.yaml"]),
        (DirectoryOptions(include="*.yaml", exclude="*.yaml"), []),
    ],
)
def test_files_are_taken_in_the_order_of_a_walk_and_exclude_wins(
    options: DirectoryOptions, expected: list[str]
) -> None:
    assert names(read(dict(FILES), options)) == expected


def test_behaviour_74_a_star_of_an_include_crosses_folders() -> None:
    chosen = names(read(dict(FILES), DirectoryOptions(recurse=True, include="*.yaml")))
    assert "sub-c.yaml" in chosen
    assert "sub-deep-e.yaml" in chosen


def test_behaviour_73_what_does_not_parse_is_skipped_unless_it_looks_like_a_manifest() -> None:
    values = "image: {{ .tag\nreplicas: 1\n"
    assert names(read({"values.yaml": values, "a.yaml": manifest("a")})) == ["a"]
    with pytest.raises(SourceError, match=r'^Failed to unmarshal "b\.yaml": b\.yaml:6:1: ') as caught:
        read({"b.yaml": manifest("b") + "spec: {{ x\n"})
    assert caught.value.position == Position("b.yaml", 6, 1)


def test_values_that_parse_are_no_manifests_either() -> None:
    assert names(read({"values.yaml": "replicas: 1\n", "list.yaml": "- a\n- b\n", "a.yaml": manifest("a")})) == ["a"]


def test_a_broken_document_beside_a_good_one_is_fatal() -> None:
    with pytest.raises(SourceError, match=r"m\.yaml:6:1: Object 'Kind' is missing"):
        read({"m.yaml": "kind: A\napiVersion: v1\n---\n\n\nreplicas: 1\n"})


def test_a_kind_without_a_version_is_never_skipped() -> None:
    with pytest.raises(SourceError, match=r"m\.yaml:1:1: Object 'ApiVersion' is missing"):
        read({"m.yaml": "kind: Thing\n"})


def test_behaviour_75_a_json_file_holds_one_object() -> None:
    good = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "j"}, "n": 1.0}'
    found = read({"j.json": good})
    assert (names(found), found.objects[0].obj["n"]) == (["j"], 1)
    with pytest.raises(SourceError) as caught:
        read({"j.json": good + good})
    assert str(caught.value) == ("Found multiple objects in j.json. Only single objects are allowed in JSON files.")


@pytest.mark.parametrize("text", ["", "[]", "{", "a: 1", '{"a": 1}', "1"])
def test_a_json_file_that_is_no_object_is_fatal(text: str) -> None:
    with pytest.raises(SourceError, match=r'^Failed to unmarshal "j\.json": '):
        read({"j.json": text})


def test_documents_keep_their_place_and_empty_ones_are_dropped() -> None:
    text = "# head\n---\n" + manifest("a") + "---\n# nothing\n---\nnull\n---\n\n" + manifest("b")
    found = read({"m.yaml": text}, path="apps/x")
    assert [(s.obj["metadata"]["name"], str(s.position)) for s in found.objects] == [
        ("a", "apps/x/m.yaml:3:1"),
        ("b", "apps/x/m.yaml:13:1"),
    ]


def test_a_list_stands_for_its_items() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- " + manifest("a").replace("\n", "\n  ") + "\n- "
    text += manifest("b").replace("\n", "\n  ") + "\n---\nkind: PodList\napiVersion: v1\nitems:\n"
    found = read({"m.yaml": text})
    assert [(s.obj["metadata"]["name"], s.position.line) for s in found.objects] == [("a", 4), ("b", 9)]


def test_an_item_that_is_no_object_is_fatal_at_its_line() -> None:
    with pytest.raises(SourceError, match=r"m\.yaml:5:3: a manifest is a mapping, found text"):
        read({"m.yaml": "apiVersion: v1\nkind: List\nmetadata: {}\nitems:\n- text\n"})


def test_a_marked_file_is_skipped_and_utf16_is_read() -> None:
    marked = "# +argocd:skip-file-rendering\n" + manifest("m")
    files = {"m.yaml": marked, "n.yaml": marked.encode("utf-16"), "u.yaml": manifest("u").encode("utf-16")}
    assert names(read(files)) == ["u"]


def test_repeated_keys_are_warnings_with_their_place() -> None:
    found = read({"m.yaml": manifest("a") + "kind: ConfigMap\n"})
    assert [warning.split(";")[0] for warning in found.warnings] == [
        "m.yaml:5:1: kind: key 'kind' is repeated, first in line 2"
    ]


def test_jsonnet_is_never_read_as_yaml_and_can_be_excluded() -> None:
    files: dict[str, str | bytes] = {"a.yaml": manifest("a"), "b.jsonnet": manifest("b")}
    with pytest.raises(SourceError, match=r"b\.jsonnet: a Jsonnet program was not evaluated"):
        read(files)
    assert names(read(files, DirectoryOptions(exclude="*.jsonnet"))) == ["a"]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (DirectoryLimits(files=2), "3 manifest files, at most 2 are read"),
        (DirectoryLimits(bytes=100), r"exceeded max combined manifest file size \(100 bytes\)"),
        (DirectoryLimits(objects=2), "more than 2 objects"),
    ],
)
def test_every_limit_ends_in_a_sentence(limits: DirectoryLimits, message: str) -> None:
    tree = MemoryTree({f"{name}.yaml": manifest(name).encode() for name in "abc"})
    with pytest.raises(SourceError, match=message) as caught:
        read_manifests(tree, select_files(tree, DirectoryOptions(), limits), limits)
    assert caught.value.problem is Problem.TOO_LARGE


def test_a_wrong_pattern_names_its_field() -> None:
    with pytest.raises(SourceError, match=r"\[abc\]") as caught:
        read(dict(FILES), DirectoryOptions(include="[a"))
    assert caught.value.field == "spec.source.directory.include"
