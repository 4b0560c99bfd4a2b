"""What holds for every template."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.kube.gotemplate.fmt import sprint, sprintf
from syncline.kube.gotemplate.strconv import quote, unquote
from syncline.kube.gotemplate.template import Limits, TemplateError, parse

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | TEXTS | st.integers(-(1 << 63), (1 << 63) - 1),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
WORDS = """
{{ }} {{- -}} {{if {{else {{end}} {{range {{with {{define {{template {{block {{break}} /* */ ( ) | $ $x := = , . .a .a.b
nil true 1 -1 1.5 0x1f 99999999999999999999 "a" "%d" `r` 'c' print printf index len and or not eq lt é \\ "
"""
PIECES = st.sampled_from(WORDS.split())
TEMPLATES = st.lists(PIECES | st.just(" ") | st.just("\n"), max_size=30).map("".join) | TEXTS
SMALL = Limits(steps=5_000, output=10_000)


@given(TEXTS)
def test_text_without_delimiters_renders_to_itself(text: str) -> None:
    text = text.replace("{{", "")
    assert parse("t", text, {}).render({}) == text


@settings(max_examples=300)
@given(TEMPLATES, VALUES)
def test_every_text_renders_or_is_refused_with_its_place(text: str, data: Any) -> None:
    try:
        found = parse("t", text, {}, limits=SMALL).render(data)
    except TemplateError as error:
        assert str(error).startswith("template: t:")
    else:
        assert len(found) <= 10_000
        found.encode()


@settings(max_examples=300)
@given(TEMPLATES, VALUES)
def test_a_template_may_be_rendered_again(text: str, data: Any) -> None:
    try:
        template = parse("t", text, {}, limits=SMALL)
        first = template.render(data)
    except TemplateError:
        return
    assert template.render(data) == first


@given(TEXTS)
def test_a_quoted_text_is_read_as_itself(text: str) -> None:
    assert unquote(quote(text)) == text
    assert parse("t", "{{" + quote(text) + "}}", {}).render({}) == text


@given(TEXTS)
def test_a_value_prints_as_it_is_shown(text: str) -> None:
    assert parse("t", "{{.a}}", {}).render({"a": text}) == text == sprint(text)


@settings(max_examples=200)
@given(TEXTS | st.lists(st.sampled_from("%vdsqxXtfg#+- 0[1]*.5é")).map("".join), st.lists(VALUES, max_size=3))
def test_every_format_gives_a_text(template: str, values: list[Any]) -> None:
    sprintf(template, *values).encode()


@given(st.integers(0, 50), st.integers(0, 50))
def test_steps_that_are_bounded_end(outer: int, inner: int) -> None:
    template = parse("t", f"{{{{range {outer}}}}}{{{{range {inner}}}}}x{{{{end}}}}{{{{end}}}}", {}, limits=SMALL)
    try:
        assert template.render({}) == "x" * (outer * inner)
    except TemplateError as error:
        assert "too many steps" in str(error)
        assert outer * inner > 500
