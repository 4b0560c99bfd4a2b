"""Policies of errors: each names its place and says what Go says."""

from __future__ import annotations

import pytest

from syncline.kube.gotemplate.template import TemplateError, parse

DATA = {"s": "text", "l": ["a", 1.5, None], "m": {"b": 2.0, "a": None}, "d": 1.5, "nil": None}

REFUSED = {
    "an else without if": ("{{else}}", "template: t:1: unexpected {{else}}"),
    "an end without if": ("a{{end}}", "template: t:1: unexpected {{end}}"),
    "a second else": ("{{if 1}}{{else}}{{else}}{{end}}", "template: t:1: expected end; found {{else}}"),
    "break outside range": ("{{break}}", "template: t:1: {{break}} outside {{range}}"),
    "an empty action": ("{{}}", "template: t:1: missing value for command"),
    "an empty pipeline": ("{{if}}{{end}}", "template: t:1: missing value for if"),
    "a value in the middle of a pipeline": ("{{1 | 2}}", "template: t:1: non executable command in pipeline stage 2"),
    "an unclosed parenthesis": ("{{(1}}", "template: t:1: unclosed left paren"),
    "a parenthesis too many": ("{{1)}}", "template: t:1: unexpected right paren"),
    "an unclosed text": ('{{"x}}', "template: t:1: unterminated quoted string"),
    "an unclosed comment": ("{{/* x", "template: t:1: unclosed comment"),
    "a comment with a space before its end": ("{{/* x */ }}", "template: t:1: comment ends before closing delimiter"),
    "a wrong escape": ('{{"\\q"}}', "template: t:1: invalid syntax"),
    "a number with a letter": ("{{12a}}", 'template: t:1: bad number syntax: "12a"'),
    "a number too large": ("{{99999999999999999999}}", 'template: t:1: integer overflow: "99999999999999999999"'),
    "a bad octal": ("{{0o8}}", 'template: t:1: bad number syntax: "0o8"'),
    "a hyphen in a name": ("{{.a-b}}", "template: t:1: bad character U+002D '-'"),
    "a strange character": ("{{€}}", "template: t:1: unrecognized character in action: U+20AC '€'"),
    "a field after a constant": ("{{1.5.x}}", 'template: t:1: unexpected . after term "1.5"'),
    "two variables outside range": ("{{$a, $b := .l}}", "template: t:1: too many declarations in command"),
    "three variables in range": ("{{range $a, $b, $c := .l}}{{end}}", "template: t:1: too many declarations in range"),
    "a template twice": (
        '{{define "a"}}1{{end}}{{define "a"}}2{{end}}',
        'template: t:1: template: multiple definition of template "a"',
    ),
    "a template within another": (
        '{{if 1}}{{define "a"}}{{end}}{{end}}',
        "template: t:1: unexpected <define> in command",
    ),
    "a template without a name": ("{{template .x}}", 'template: t:1: unexpected ".x" in template clause'),
    "a variable of an inner block outside": (
        "{{if 1}}{{$x := 1}}{{end}}{{$x}}",
        'template: t:1: undefined variable "$x"',
    ),
    "a colon alone": ("{{$x : 1}}", 'template: t:1: undefined variable "$x"'),
    "an action over several lines": ("a\n{{if\n", "template: t:3: unclosed action started at t:2"),
    "an unclosed character": ("{{'a}}", "template: t:1: unterminated character constant"),
    "a character of two": ("{{'ab'}}", "template: t:1: malformed character constant: 'ab'"),
    "a keyword where a value belongs": ("{{print if}}", "template: t:1: unexpected <if> in operand"),
    "a long token is cut": ('{{print 1 | "abcdefghijklmnop"x}}', 'template: t:1: unexpected "x" in operand'),
}


@pytest.mark.parametrize("policy", REFUSED)
def test_parsing_refuses(policy: str) -> None:
    text, expected = REFUSED[policy]
    with pytest.raises(TemplateError) as error:
        parse("t", text, {})
    assert str(error.value) == expected


FAILED = {
    "nil as a command is an error of the rendering": (
        "{{nil}}",
        'template: t:1:2: executing "t" at <nil>: nil is not a command',
    ),
    "an undefined template": (
        '{{template "x"}}',
        'template: t:1:11: executing "t" at <{{template "x"}}>: template "x" not defined',
    ),
    "range over a text": (
        "{{range .s}}{{end}}",
        'template: t:1:8: executing "t" at <.s>: range can\'t iterate over text',
    ),
    "two variables over an integer": (
        "{{range $i, $x := 3}}{{end}}",
        'template: t:1:18: executing "t" at <3>: can\'t use 3 to iterate over more than one variable',
    ),
    "an argument for a field": (
        "{{.m 1}}",
        'template: t:1:2: executing "t" at <.m>: m is not a method but has arguments',
    ),
    "an argument for a field of a map": (
        "{{.m.a 1}}",
        'template: t:1:4: executing "t" at <.m.a>: a is not a method but has arguments',
    ),
    "an argument for a variable": (
        "{{$ 1}}",
        'template: t:1:2: executing "t" at <$>: can\'t give argument to non-function $',
    ),
    "a field of a number": (
        "{{$x := 1}}{{$x.y}}",
        'template: t:1:15: executing "t" at <$x.y>: can\'t evaluate field y in type int',
    ),
    "a number for a text": (
        "{{printf .d}}",
        'template: t:1:9: executing "t" at <.d>: wrong type for value; expected string; got float64',
    ),
    "nil for a text": ("{{printf nil}}", 'template: t:1:9: executing "t" at <nil>: cannot assign nil to string'),
    "a missing value for a text": (
        "{{printf .no}}",
        'template: t:1:9: executing "t" at <.no>: invalid value; expected string',
    ),
    "nil data for a text": (
        "{{printf .nil}}",
        'template: t:1:9: executing "t" at <.nil>: wrong type for value; expected string; got interface {}',
    ),
    "too many arguments": (
        "{{len 1 2}}",
        'template: t:1:2: executing "t" at <len>: wrong number of args for len: want 1 got 2',
    ),
    "len of a number": ("{{len 3}}", 'template: t:1:2: executing "t" at <len 3>: error calling len: len of type int'),
    "len of nil": (
        "{{len nil}}",
        'template: t:1:2: executing "t" at <len nil>: '
        "error calling len: reflect: call of reflect.Value.Type on zero Value",
    ),
    "an order of lists": (
        "{{lt .l .l}}",
        'template: t:1:2: executing "t" at <lt .l .l>: error calling lt: invalid type for comparison',
    ),
    "equality of lists": (
        "{{eq .l .l}}",
        'template: t:1:2: executing "t" at <eq .l .l>: '
        "error calling eq: non-comparable type [a %!s(float64=1.5) <nil>]: []interface {}",
    ),
    "equality of a list and a map": (
        "{{eq .l .m}}",
        'template: t:1:2: executing "t" at <eq .l .m>: '
        "error calling eq: non-comparable types [a %!s(float64=1.5) <nil>]: []interface {}"
        ", map[string]interface {}: map[a:<nil> b:2]",
    ),
    "eq of one value": (
        "{{eq 1}}",
        'template: t:1:2: executing "t" at <eq 1>: error calling eq: missing argument for comparison',
    ),
    "an index that is no number": (
        '{{index .l "a"}}',
        'template: t:1:2: executing "t" at <index .l "a">: '
        "error calling index: cannot index slice/array with type string",
    ),
    "a key that is no text": (
        "{{index .m 1}}",
        'template: t:1:2: executing "t" at <index .m 1>: error calling index: value has type int; should be string',
    ),
    "a slice backwards": (
        "{{slice .s 2 1}}",
        'template: t:1:2: executing "t" at <slice .s 2 1>: error calling slice: invalid slice index: 2 > 1',
    ),
    "a call of what is no function": (
        "{{call .s}}",
        'template: t:1:2: executing "t" at <call .s>: error calling call: non-function .s of type string',
    ),
    "an assignment to no variable": ("{{$x = 1}}", 'template: t:1:7: executing "t" at <1>: undefined variable: $x'),
    "the name of the template that runs": (
        '{{define "u"}}{{.x.y}}{{end}}{{template "u" 1}}',
        'template: t:1:18: executing "u" at <.x.y>: can\'t evaluate field x in type int',
    ),
    "a pipeline's value for a parameter of another type": (
        "{{1 | printf}}",
        'template: t:1:6: executing "t" at <printf>: wrong type for value; expected string; got int',
    ),
    "an error within an argument comes first": (
        "{{print (index .l 9) (len 3)}}",
        'template: t:1:9: executing "t" at <index .l 9>: error calling index: index out of range: 9',
    ),
}


@pytest.mark.parametrize("policy", FAILED)
def test_rendering_fails(policy: str) -> None:
    text, expected = FAILED[policy]
    template = parse("t", text, {})
    with pytest.raises(TemplateError) as error:
        template.render(DATA)
    assert str(error.value) == expected
