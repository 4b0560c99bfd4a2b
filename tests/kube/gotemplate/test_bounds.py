"""Templates of strangers: whatever they say, parsing and rendering end soon and make little."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.kube.gotemplate.functions import Function, Kind
from syncline.kube.gotemplate.template import Limits, TemplateError, parse


def _set(target: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    target[key] = value
    return target


FUNCTIONS = {
    "dict": Function(lambda *pairs: dict(zip(pairs[::2], pairs[1::2])), (Kind.ANY,), variadic=True),
    "set": Function(_set, (Kind.DICT, Kind.STRING, Kind.ANY)),
}
DATA = {"a": {}, "long": [[1.5] * 100] * 10, "wide": {str(at): at for at in range(10_000)}}
UNPARSED = {
    "parentheses within one another": ("{{" + "(" * 5_000 + "1" + ")" * 5_000 + "}}", "max expression depth exceeded"),
    "structures within one another": ("{{if 1}}" * 5_000 + "{{end}}" * 5_000, "max expression depth exceeded"),
    "blocks within one another": ('{{block "a" .}}' * 5_000 + "{{end}}" * 5_000, "max expression depth exceeded"),
    "a command without end": ("{{print" + " 1" * 60_000 + "}}", "more than 100000 words and signs"),
    "a text that is too long": ("x" * 1_048_577, "larger than 1048576 bytes"),
    "a text of few characters and many bytes": ("é" * 600_000, "larger than 1048576 bytes"),
    "a number without end": ("{{" + "1" * 100_000 + "}}", "illegal number syntax"),
}


@pytest.mark.parametrize("policy", UNPARSED)
def test_parsing_is_bounded(policy: str) -> None:
    text, expected = UNPARSED[policy]
    with pytest.raises(TemplateError, match=expected):
        parse("t", text, FUNCTIONS)


UNRENDERED = {
    "an empty loop": ("{{range 1000000000000}}{{end}}", "too many steps"),
    "a loop within a loop": ("{{range 100000}}{{range 100000}}{{end}}{{end}}", "too many steps"),
    "a loop over long fields": ("{{range 100000}}{{$.a" + ".b" * 10_000 + "}}{{end}}", "too many steps"),
    "a loop of large texts": ("{{range 100000}}{{$x := printf `%1000000d` 1}}{{end}}", "too many steps"),
    "templates that call two each": (
        '{{define "u"}}{{if lt (len .) 60}}{{template "u" (print . "x")}}{{template "u" (print . "x")}}{{end}}{{end}}'
        '{{template "u" ""}}',
        "too many steps",
    ),
    "a template that calls itself": (
        '{{define "u"}}{{template "u" .}}{{end}}{{template "u" .}}',
        "exceeded maximum template depth",
    ),
    "a template that calls itself within many structures": (
        '{{define "u"}}' + "{{if 1}}" * 95 + '{{template "u" .}}' + "{{end}}" * 95 + '{{end}}{{template "u" .}}',
        "exceeded maximum template depth",
    ),
    "a text that doubles": ("{{$x := `ab`}}{{range 100}}{{$x = print $x $x}}{{end}}", "at most 1048576 are allowed"),
    "an output that grows": ("{{range 100000}}" + "x" * 1000 + "{{end}}", "the output is too large"),
    "a map that holds itself": ('{{$d := dict}}{{$e := set $d "a" $d}}{{$d}}', "nested more than 100 levels deep"),
    "a map that holds itself twice": (
        '{{$d := dict}}{{range 60}}{{$d = dict "a" $d "b" $d}}{{end}}{{$d}}',
        "at most 1048576 are allowed",
    ),
    "a list printed again and again": ("{{range 100000}}{{$x := printf `%v` $.long}}{{end}}", "too many steps"),
    "a map sorted again and again": ("{{range 100000}}{{range $.wide}}{{break}}{{end}}{{end}}", "too many steps"),
    "a width that pads twice": ("{{printf `%1000000d%1000000d` 1 1}}", "at most 1048576 are allowed"),
}


@pytest.mark.parametrize("policy", UNRENDERED)
def test_rendering_is_bounded(policy: str) -> None:
    text, expected = UNRENDERED[policy]
    template = parse("t", text, FUNCTIONS)
    with pytest.raises(TemplateError, match=expected):
        template.render(DATA)


def test_bounds_are_those_that_the_caller_gives() -> None:
    limits = Limits(text=100, tokens=20, steps=50, output=10, nesting=2, depth=4)
    assert parse("t", "{{if 1}}{{range 3}}{{.}}{{end}}{{end}}", {}, limits=limits).render({}) == "012"
    for text in (
        "x" * 101,
        "{{print 1 2 3 4 5 6 7 8 9}}",
        "{{range 60}}{{end}}",
        "x" * 11,
        "{{if 1}}{{if (1)}}{{end}}{{end}}",
    ):
        with pytest.raises(TemplateError):
            parse("t", text, {}, limits=limits).render({})


def test_a_chain_of_else_if_may_be_long() -> None:
    text = "{{if eq . 0}}" + "".join(f"{{{{else if eq . {at}}}}}{at}" for at in range(1, 500)) + "{{else}}none{{end}}"
    template = parse("t", text, {})
    assert [template.render(dot) for dot in (499, 500)] == ["499", "none"]


def test_recursion_as_deep_as_documents_are_works() -> None:
    text = '{{define "u"}}{{.v}}{{if .n}}{{template "u" .n}}{{end}}{{end}}{{template "u" .}}'
    data: dict[str, Any] = {"v": 0}
    for level in range(1, 60):
        data = {"v": level % 10, "n": data}
    assert parse("t", text, {}).render(data) == "9876543210" * 6


def test_an_error_that_names_a_long_node_is_cut() -> None:
    with pytest.raises(TemplateError) as error:
        parse("t", '{{index "' + "x" * 500_000 + '" "y"}}', {}).render({})
    assert len(str(error.value)) < 20_000
