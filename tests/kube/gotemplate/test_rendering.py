"""Policies of rendering: what a template of Go gives for its data, and how it fails."""

from __future__ import annotations

import pytest

from syncline.kube.gotemplate.template import MissingKey, TemplateError, parse

DATA = {"path": {"basename": "web", "segments": ["apps", "web"]}, "nil": None, "count": 12345678.0, "yes": True}

RENDERED = {
    "text without delimiters is itself": ("no tags } {", "no tags } {"),
    "fields are looked up in maps within maps": ("{{ .path.basename }}", "web"),
    "a missing key prints <no value>, and so do its fields": ("{{ .no }} {{ .no.further }}", "<no value> <no value>"),
    "nil prints <no value>": ("{{ .nil }}", "<no value>"),
    "large numbers have an exponent": ("{{ .count }}", "1.2345678e+07"),
    "lists and maps print as in Go": ("{{ .path }}", "map[basename:web segments:[apps web]]"),
    "range goes over a list with indexes": ("{{range $i, $x := .path.segments}}{{$i}}{{$x}} {{end}}", "0apps 1web "),
    "range goes over a map in the order of its keys": ("{{range $k, $v := .path}}{{$k}} {{end}}", "basename segments "),
    "range goes over an integer": ("{{range 3}}{{.}}{{end}}", "012"),
    "an empty range takes else": ("{{range .nil}}x{{else}}none{{end}}", "none"),
    "break ends a range": ("{{range 9}}{{if eq . 2}}{{break}}{{end}}{{.}}{{end}}", "01"),
    "continue skips the rest of the body": ("{{range 4}}{{if eq . 2}}{{continue}}{{end}}{{.}}{{end}}", "013"),
    "with sets dot": ("{{with .path}}{{.basename}}{{$.yes}}{{end}}", "webtrue"),
    "with of nothing takes else with": ("{{with .no}}a{{else with .path.basename}}{{.}}{{end}}", "web"),
    "a declared variable hides one of the name until its block ends": (
        "{{$x := 1}}{{if true}}{{$x := 2}}{{$x}}{{end}}{{$x}}",
        "21",
    ),
    "an assigned variable keeps its value": ("{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}", "2"),
    "trim markers remove space and newlines": ("a \n {{- 1 -}} \n b", "a1b"),
    "comments are nothing": ("a{{/* b */}}c", "ac"),
    "a defined template gets a dot of its own": (
        '{{define "t"}}<{{.}}>{{end}}{{template "t" .path.basename}}',
        "<web>",
    ),
    "a block is defined and run in place": ('{{block "t" 5}}[{{.}}]{{end}}', "[5]"),
    "and and or give the value that decides": ('{{and 1 "" 2}}|{{or 0 "x" 2}}', "|x"),
    "and evaluates no more than it needs": ("{{and .no (index .nil 1)}}", "<no value>"),
    "eq compares with each of several": ('{{eq .path.basename "a" "web"}}', "true"),
    "printf formats as Go": ('{{printf "%05d %q %v" 42 "x" .path.segments}}', '00042 "x" [apps web]'),
    "a string of bytes that are no characters prints U+FFFD": ('{{"\\xff"}}', "\ufffd"),
    "bytes that become a character by being joined are one": ('{{"\\xc3"}}{{"\\xa9"}}', "é"),
}


@pytest.mark.parametrize("policy", RENDERED)
def test_rendering(policy: str) -> None:
    text, expected = RENDERED[policy]
    assert parse("", text, {}).render(DATA) == expected


FAILING = {
    "an unknown function": ("{{ env }}", 'template: t:1: function "env" not defined'),
    "an unclosed action names where it began": (
        "{{ .a\n\n",
        "template: t:3: unclosed action started at t:1",
    ),
    "an undefined variable": ("\n{{ $x }}", 'template: t:2: undefined variable "$x"'),
    "a missing end": ("{{if 1}}", "template: t:1: unexpected EOF"),
    "a complex number is refused": ("{{1i}}", 'template: t:1: complex numbers are not supported: "1i"'),
    "a field of nil": (
        "{{ .nil.x }}",
        'template: t:1:7: executing "t" at <.nil.x>: nil pointer evaluating interface {}.x',
    ),
    "a field of a text, by the bytes before it": (
        "é{{ .path.basename.x }}",
        'template: t:1:10: executing "t" at <.path.basename.x>: can\'t evaluate field x in type interface {}',
    ),
    "an index beyond the end": (
        "{{ index .path.segments 5 }}",
        'template: t:1:3: executing "t" at <index .path.segments 5>: error calling index: index out of range: 5',
    ),
    "types that cannot be compared": (
        "{{ eq 1 1.0 }}",
        'template: t:1:3: executing "t" at <eq 1 1.0>: error calling eq: '
        "incompatible types for comparison: int and float64",
    ),
    "too few arguments": (
        "{{ eq }}",
        'template: t:1:3: executing "t" at <eq>: wrong number of args for eq: want at least 1 got 0',
    ),
    "an argument of another type": (
        "{{ printf 1 }}",
        'template: t:1:10: executing "t" at <1>: expected string; found 1',
    ),
}


@pytest.mark.parametrize("policy", FAILING)
def test_failing(policy: str) -> None:
    text, expected = FAILING[policy]
    with pytest.raises(TemplateError) as error:
        parse("t", text, {}).render(DATA)
    assert str(error.value) == expected


MISSING = {
    MissingKey.DEFAULT: ("<no value>", "<no value>"),
    MissingKey.INVALID: ("<no value>", "<no value>"),
    MissingKey.ZERO: (
        "<no value>",
        'template: :1:5: executing "" at <.no.x>: nil pointer evaluating interface {}.x',
    ),
    MissingKey.ERROR: (
        'template: :1:2: executing "" at <.no>: map has no entry for key "no"',
        'template: :1:5: executing "" at <.no.x>: map has no entry for key "no"',
    ),
}


@pytest.mark.parametrize("option", MISSING)
def test_missing_keys_follow_the_option(option: MissingKey) -> None:
    found = []
    for text in ("{{.no}}", "{{.no.x}}"):
        try:
            found.append(parse("", text, {}, missing_key=option).render({}))
        except TemplateError as error:
            found.append(str(error))
    assert tuple(found) == MISSING[option]


def test_an_error_holds_characters_only() -> None:
    with pytest.raises(TemplateError) as error:
        parse("t", '{{range "\\xff"}}{{end}}', {}).render({})
    assert str(error.value).endswith("range can't iterate over \ufffd")
