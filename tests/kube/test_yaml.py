"""The YAML door: positions, diagnostics, budgets, and text that reads back as it was."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.base.report import Position
from syncline.kube.yaml import loading as yaml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | TEXT
    | st.from_regex(r"[-+.0-9_xobeEynfTN~:]{1,8}", fullmatch=True)
    | st.text(" \n\ta'\"#:-é", max_size=12)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)


@settings(max_examples=400, deadline=None)
@given(VALUES)
def test_what_is_written_reads_back_the_same(value: object) -> None:
    assert yaml.load(yaml.dump({"v": value})) == {"v": value}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(TEXT, VALUES, min_size=1, max_size=3), max_size=4))
def test_several_documents_read_back_the_same(values: list[object]) -> None:
    loaded = yaml.load_all(yaml.emit_all(values))
    assert loaded.report.ok
    assert loaded.values == values


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from(list("ab:-?&*!|>'\"{}[],#%@ \n\t1~<")), max_size=30))
def test_any_text_gives_documents_or_diagnostics_and_never_raises(text: str) -> None:
    loaded = yaml.load_all(text, file="x.yaml")
    assert all(d.position is not None and d.position.file == "x.yaml" for d in loaded.report)


def test_every_document_and_every_value_knows_its_line_and_column() -> None:
    text = "# head\na: 1\n---\nb:\n- x\n- c: 2\n--- # note\nd: &e {f: 1}\ng: *e\n"
    loaded = yaml.load_all(text, file="m.yaml")
    assert [d.position for d in loaded.documents] == [Position("m.yaml", line, 1) for line in (2, 4, 8)]
    _, second, third = loaded.documents
    assert second.position_of(("b", 1, "c")) == Position("m.yaml", 6, 3)
    assert second.position_of(("b", 0)) == Position("m.yaml", 5, 3)
    assert third.position_of(("g", "f")) == Position("m.yaml", 8, 8)
    assert third.position_of(("g", "h")) is None
    assert third.position_of(("d", 0)) is None


def test_json_keeps_gos_number_rules_and_its_positions() -> None:
    loaded = yaml.load_all(
        b'\xef\xbb\xbf{"a": 1.0, "b": [18446744073709551615, 1.5, "\\ud83d\\ude00"],\n "c": 1e3}', file="m.json"
    )
    document = loaded.documents[0]
    assert repr(document.value) == "{'a': 1, 'b': [1.8446744073709552e+19, 1.5, '😀'], 'c': 1000}"
    assert document.position == Position("m.json", 1, 1)
    assert yaml.load_all('\n {"a":\n 1}').documents[0].position_of(("a",)) == Position("", 2, 3)


def test_flow_yaml_that_is_no_json_is_read_as_yaml() -> None:
    assert yaml.load("{a: on, b: [08]}") == {"a": True, "b": [8]}


def test_a_repeated_key_is_reported_where_it_stands_and_the_last_one_counts() -> None:
    loaded = yaml.load_all("a: 1\nb: {c: 1, c: 2}\na: 3\n", file="m.yaml")
    assert loaded.values == [{"a": 3, "b": {"c": 2}}]
    assert [str(d.position) for d in loaded.report.warnings] == ["m.yaml:2:11", "m.yaml:3:1"]
    assert [(d.path, d.key, d.first.line) for d in loaded.documents[0].duplicates] == [("b.c", "c", 2), ("a", "a", 1)]


def test_a_broken_document_does_not_hide_the_others() -> None:
    loaded = yaml.load_all("a: 1\n---\nb: [\n---\nc: 1\n", file="m.yaml")
    assert loaded.values == [{"a": 1}, {"c": 1}]
    assert len(loaded.report.errors) == 1


def test_empty_documents_are_left_out() -> None:
    assert yaml.load_all("---\n---\n# only a comment\n---\n\n").documents == ()
    assert yaml.load("") is None
    assert yaml.load_all("null\n---\n{}\n").values == [None, {}]


def test_content_on_a_separators_line_begins_no_document_for_kubernetes() -> None:
    loaded = yaml.load_all("a: 1\n--- {b: 2}\n", file="m.yaml")
    assert loaded.values == [{"a": 1}]
    assert str(loaded.report.warnings[0].position) == "m.yaml:2:5"


def test_a_manifest_that_ends_within_its_last_line_is_read_as_if_it_had_ended_it() -> None:
    text = "kind: ConfigMap\ndata:\n  motd: |\n    be kind"
    (manifest,) = yaml.load_all(text).values
    assert manifest["data"]["motd"] == "be kind\n", "as kubectl and Argo CD, which read by lines"
    assert yaml.load_all(text + "\n---\n" + text).values == [manifest, manifest]
    (values,) = yaml.load_all(text, by_lines=False).values
    assert values["data"]["motd"] == yaml.load(text)["data"]["motd"] == "be kind", "as Helm, which reads the text"


def test_loading_one_document_refuses_a_second() -> None:
    with pytest.raises(yaml.YamlError, match=r"f\.yaml:3:1: one document is wanted"):
        yaml.load("a: 1\n---\nb: 1\n", file="f.yaml")


ALIAS_BOMB = f"a: &a [{'x,' * 20}]\nb: &b [{'*a,' * 20}]\nc: &c [{'*b,' * 20}]\nd: [{'*c,' * 20}]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ALIAS_BOMB, "excessive aliasing"),
        ("a: " + "[" * 300 + "]" * 300, "nested deeper than 20 levels"),
        ('{"a": ' * 30 + "1" + "}" * 30, "nested deeper than 20 levels"),
        ("a: 1\n---\n" * 6, "more than 5 documents"),
        ("a: " + "x" * 5000, "at most 4000 are read"),
        (b"a: 1\nb: \xff\n", "f.yaml:2: the text is not UTF-8"),
        ("a: \x01", "control characters|special characters"),
    ],
)  # fmt: skip
def test_every_budget_ends_in_a_diagnostic(text: str | bytes, message: str) -> None:
    budget = yaml.Budget(bytes=4000, documents=5, depth=20, alias_nodes=1000)
    errors = yaml.load_all(text, file="f.yaml", budget=budget).report.errors
    assert len(errors) == 1
    assert re.search(message, str(errors[0]))


def test_an_alias_inside_a_deep_chain_counts_its_depth() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 400)]
    errors = yaml.load_all("\n".join(lines)).report.errors
    assert "nested deeper than 128" in str(errors[0])


def test_what_json_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError, match="set is not a JSON value"):
        yaml.dump({"a": {1}})
