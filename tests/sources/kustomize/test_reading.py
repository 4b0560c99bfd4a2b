"""Scalars, generators and files: what is read, and what is refused."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.loader import Limits
from syncline.sources.kustomize.transforming.generate import env_pairs, file_source
from syncline.sources.kustomize.transforming.patterns import Anchored
from syncline.sources.kustomize.yaml.reader import parse_one, read_resources
from syncline.sources.kustomize.yaml.values import refolded, to_json
from syncline.sources.kustomize.yaml.writer import write_one

_spec = importlib.util.spec_from_file_location("kust", Path(__file__).with_name("kust.py"))
assert _spec is not None and _spec.loader is not None
kust = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kust)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("yes", '"yes"'),
        ("True", "true"),
        ("0755", "493"),
        ("0o755", "493"),
        ("1_000", "1000"),
        ("08", "8"),
        ("1e3", "1000"),
        ("1.0", "1"),
        ("12:30:45", '"12:30:45"'),
        ("2001-12-14", '"2001-12-14T00:00:00Z"'),
        ("2001-12-14t21:59:43.10-05:00", '"2001-12-14T21:59:43.1-05:00"'),
        ("!!binary aGk=", "hi"),
        ("!!str 5", '"5"'),
        ("12345678901234567", "12345678901234567"),
        ("18446744073709551615", "18446744073709551615"),
        ("1234567.5", "1.2345675e+06"),
        ("=", "="),
        ("'- x'", "'- x'"),
        ("''", '""'),
        ("~", "null"),
    ],
)
def test_a_scalar_is_resolved_and_printed_anew(text: str, printed: str) -> None:
    node = parse_one(f"a: {text}\n")
    assert node is not None
    assert write_one(to_json(node)) == f"a: {printed}\n"


@pytest.mark.parametrize("text", ["a: .inf\n", "1: x\n", "a: 1\na: 2\n", "!!int x: 1\n"])
def test_what_json_cannot_say_is_refused(text: str) -> None:
    node = parse_one(text)
    assert node is not None
    with pytest.raises(BuildError):
        to_json(node)


def test_a_merge_key_is_expanded_and_own_fields_win() -> None:
    node = parse_one("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\n")
    assert node is not None
    assert to_json(node) == {"x": {"a": 1, "b": 2}, "y": {"a": 1, "b": 3}}


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(BuildError, match="excessive aliasing"):
        parse_one("\n".join(lines))


def test_a_chain_of_anchors_does_not_exhaust_the_stack() -> None:
    lines = ["a0: &a0 [x]", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 5000))]
    with pytest.raises(BuildError, match="nested"):
        parse_one("\n".join(lines))


def test_a_list_is_opened_and_a_document_without_a_name_refused() -> None:
    text = f"apiVersion: v1\nkind: ConfigMapList\nitems:\n- {kust.CONFIG_MAP.replace(chr(10), chr(10) + '  ')}"
    assert [to_json(node)["kind"] for node in read_resources(text)] == ["ConfigMap"]
    with pytest.raises(BuildError, match=r"missing metadata\.name in object"):
        read_resources("apiVersion: v1\nkind: ConfigMap\n")


def test_env_files_keep_what_follows_the_first_equals_sign() -> None:
    content = b"\xef\xbb\xbfA=1 # no comment\n# comment\n\n  B = 'x'\nC\n=dropped\n"
    assert list(env_pairs(content)) == [("A", b"1 # no comment"), ("B ", b" 'x'"), ("C", b"")]


def test_a_file_entry_names_key_and_path() -> None:
    assert (file_source("d/f.txt"), file_source("k=d/f.txt")) == (("f.txt", "d/f.txt"), ("k", "d/f.txt"))
    for wrong in ("=f", "k=", "a=b=c"):
        with pytest.raises(BuildError):
            file_source(wrong)


def test_binary_content_goes_to_binary_data_and_long_secrets_into_lines() -> None:
    files = {
        "kustomization.yaml": (
            "configMapGenerator: [{name: c, files: [b.bin]}]\nsecretGenerator: [{name: s, files: [b.bin]}]\n"
        ),
        "b.bin": b"\xff" * 100,
    }
    config_map, secret = kust.built(files).objects
    assert sorted(config_map) == ["apiVersion", "binaryData", "kind", "metadata"]
    assert [len(line) for line in secret["data"]["b.bin"].splitlines()] == [70, 66]


@pytest.mark.parametrize("name", ["../x", "a/../../x", "../../etc/passwd", "/etc/passwd", "./../x", "link/../../x"])
def test_no_file_outside_the_folder_is_read(name: str) -> None:
    files = {"top/kustomization.yaml": f"configMapGenerator: [{{name: c, files: ['{name}']}}]\n", "x": "secret"}
    with pytest.raises(BuildError, match=r"security|no such file"):
        kust.built(files, "top")


@pytest.mark.parametrize("name", ["https://host/a.yaml", "git@host:a/b", "github.com/a/b?ref=v1", "ssh://host/a.git"])
def test_remote_places_are_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(BuildError, match="is a remote place, which is not fetched"):
        kust.built({"kustomization.yaml": f"resources: ['{name}']\n"})


def test_a_base_that_contains_its_overlay_is_a_cycle() -> None:
    files = {"kustomization.yaml": "resources: [a]\n", "a/kustomization.yaml": "resources: [..]\n"}
    with pytest.raises(BuildError, match="cycle detected"):
        kust.built(files)


def test_limits_end_a_build() -> None:
    files = {"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": kust.CONFIG_MAP}
    with pytest.raises(BuildError, match="more than 10000 files or 50 bytes"):
        kust.built(files, limits=Limits(bytes=50))
    with pytest.raises(BuildError, match="more than 0 resources"):
        kust.built(files, limits=Limits(resources=0))
    deep = {f"{'d/' * i}kustomization.yaml": "resources: [d]\n" for i in range(10)}
    with pytest.raises(BuildError, match="nested deeper than 5 levels"):
        kust.built(deep, limits=Limits(depth=5))


def test_patterns_and_texts_are_bounded() -> None:
    with pytest.raises(BuildError, match="at most 1024"):
        Anchored("x" * 2000)
    with pytest.raises(BuildError, match="at most 65536"):
        Anchored("x+").allows("x" * 70_000)


def test_patterns_match_the_whole_name() -> None:
    assert Anchored("web|api").allows("api") and not Anchored("web").allows("web-2")
    assert Anchored("(web-)?[a-z]+.*").allows("web-x1")


def test_unknown_fields_and_two_kustomizations_are_refused() -> None:
    with pytest.raises(BuildError, match='unknown field "namePrefx"'):
        kust.built({"kustomization.yaml": "namePrefx: a\n"})
    with pytest.raises(BuildError, match="Found multiple kustomization files"):
        kust.built({"kustomization.yaml": "namePrefix: a\n", "Kustomization": "namePrefix: a\n"})


def test_a_value_of_a_literal_never_appears_in_an_error() -> None:
    with pytest.raises(BuildError) as caught:
        kust.built({"kustomization.yaml": "secretGenerator: [{name: s, literals: [hunter2]}]\n"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("one two\n", "one two\n"),
        ("three\n  four\nfive\n", "three\n\n  four\nfive\n"),
        ("five\n\n\n  six\n", "five\n\n\n\n  six\n"),
        ("  one\ntwo\nthree\n", "  one\ntwo three\n"),
        ("\na\n  b", "\na\n\n  b"),
        ("one two\n\n\n", "one two\n\n\n\n"),
        ("a\n  b\n\n", "a\n\n  b\n\n"),
        ("trailing \n  b\n", "trailing \n  b\n"),
    ],
)
def test_a_folded_text_is_printed_with_go_yamls_empty_lines(text: str, again: str) -> None:
    assert refolded(text) == again
