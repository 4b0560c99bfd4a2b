"""Where libyaml, which reads for us, and go-yaml, which upstream reads with, differ; found by comparing with butane."""

from __future__ import annotations

import pytest

from syncline.ignition.butane.transpile import Options, transpile

HEADER = "variant: fcos\nversion: 1.5.0\n"


def refused(body: str) -> str:
    done = transpile((HEADER + body).encode(), Options())
    assert done.output is None
    return str(done.error)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("a: {should_exis?t: [x]}", "yaml: line 2: did not find expected ',' or '}'"),
        ("a: [https://x/y?z=1]", "yaml: line 2: did not find expected ',' or ']'"),
        ("a: [x, y ?z]", "yaml: line 2: did not find expected ',' or ']'"),
    ],
)
def test_a_question_mark_ends_plain_text_in_brackets(body: str, sentence: str) -> None:
    assert sentence in refused(body)


@pytest.mark.parametrize(
    "body", ["a: https://x/y?z", "a: ['b?c', \"d?e\"]", "a: [?b]", "a: [? b]", "a: b # [c?d]", "a: |\n  [b?c]"]
)
def test_question_marks_elsewhere_are_text(body: str) -> None:
    assert transpile((HEADER + body).encode(), Options()).output is not None


def test_behind_an_error_two_more_tokens_are_read_and_what_is_wrong_with_them_is_told() -> None:
    assert "line 4: found character that cannot start any token" in refused("a:\n: @x")
    assert "line 3: mapping values are not allowed in this context" in refused("}b: {c: d}")
    far = 'a: {b: "x"\n}]}: [{c: ["y"}]\nd: "z'
    assert "unexpected end of stream" not in refused(far), "the text that never ends is too far behind"


def test_a_colon_that_was_hidden_to_be_read_stays_hidden_when_what_follows_is_refused() -> None:
    assert "line 2: did not find expected ',' or '}'" in refused("a: {b: [{c: {enabled:}]}")


def test_repeated_keys_are_told_before_the_type_of_their_mapping() -> None:
    body = "storage:\n  files:\n    contents: {}\n    contents:\n"
    assert refused(body).endswith('yaml: unmarshal errors:\n  line 6: mapping key "contents" already defined at line 5')


def test_a_byte_order_mark_at_the_beginning_of_a_later_line_is_text() -> None:
    assert "line 3: could not find expected ':'" in refused("\ufeff\n")
    done = transpile(("\ufeff" + HEADER + "a: b\n\ufeffc: d\n").encode(), Options())
    assert [entry.message for entry in done.report.entries] == ["unused key a", "unused key \ufeffc"]


def test_a_merge_key_as_text_is_written_as_it_is() -> None:
    role = "machineconfiguration.openshift.io/role: worker"
    body = f"variant: openshift\nversion: 4.14.0\nmetadata: {{name: x, labels: {{'<<': '<<', {role}}}}}\n"
    done = transpile(body.encode(), Options())
    assert done.output is not None and b"    <<: <<\n" in done.output


def test_behind_the_first_document_two_tokens_are_read() -> None:
    assert "mapping values are not allowed in this context" in refused("---\n.0\nstorage: {}\n")
    assert transpile((HEADER + "---\n{{{\n").encode(), Options()).output is not None


def test_of_a_text_that_begins_with_a_byte_order_mark_every_character_is_escaped() -> None:
    role = "machineconfiguration.openshift.io/role: worker"
    body = f'variant: openshift\nversion: 4.14.0\nmetadata: {{name: "\\uFEFFa\\xA0é", labels: {{{role}}}}}\n'
    done = transpile(body.encode(), Options())
    assert done.output is not None and rb'  name: "\uFEFF\x61\_\xE9"' in done.output
