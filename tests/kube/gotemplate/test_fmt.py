"""Policies of fmt: what printf makes of values, as Go printed them."""

from __future__ import annotations

import pytest

from syncline.kube.gotemplate.fmt import sprint, sprintf, sprintln
from syncline.kube.gotemplate.functions import FunctionError
from syncline.kube.gotemplate.template import parse
from syncline.kube.gotemplate.values import Bytes, Int64, NilDict, NilList, Opaque, StringMap, Strings, Uint8

DATA = {"s": "text", "l": ["a", 1.5, None], "m": {"b": 2.0, "a": None}, "d": 1.5, "nil": None}

PRINTED = {
    "%v of each type": ('{{printf "%v %v %v %v" 1 1.5 true "x"}}', "1 1.5 true x"),
    "%v of nil prints <nil>, %s says that it does not fit": ('{{printf "%v %s" nil nil}}', "<nil> %!s(<nil>)"),
    "%T names the type": (
        '{{printf "%T %T %T %T %T %T" 1 1.5 "x" .l .m .nil}}',
        "int float64 string []interface {} map[string]interface {} <nil>",
    ),
    "%#v is Go syntax": (
        '{{printf "%#v %#v %#v" .l .m 1.0}}',
        '[]interface {}{"a", 1.5, interface {}(nil)} map[string]interface {}{"a":interface {}(nil), "b":2} 1',
    ),
    "%q quotes, with + in ASCII, with # between backquotes": (
        '{{printf "%q %+q %#q" "a\\"é\\n" "é" "a"}}',
        '"a\\"é\\n" "\\u00e9" `a`',
    ),
    "%q of a number is a character": ('{{printf "%q %c %U %#U" 233 233 233 233}}', "'é' é U+00E9 U+00E9 'é'"),
    "%x of a text is its bytes, with spaces between and 0x before where asked for": (
        '{{printf "%x %X %# x" "hé" "hé" "hé"}}',
        "68c3a9 68C3A9 0x68 0xc3 0xa9",
    ),
    "%d of a text says that it does not fit": ('{{printf "%d" "x"}}', "%!d(string=x)"),
    "%s of a list goes over its elements": ('{{printf "%s" .l}}', "[a %!s(float64=1.5) <nil>]"),
    "width pads to the left, with a minus to the right, with a zero by zeros": (
        '{{printf "[%5d|%-5d|%05d|%+d|% d]" 42 42 -42 42 42}}',
        "[   42|42   |-0042|+42| 42]",
    ),
    "precision cuts a text and rounds a number": (
        '{{printf "[%.2s|%.2f|%8.3f|%e|%g]" "héllo" 3.14159 3.14159 1234.5 1e21}}',
        "[hé|3.14|   3.142|1.234500e+03|1e+21]",
    ),
    "other bases": ('{{printf "%b %o %O %x %#x %#o" 5 8 8 255 255 8}}', "101 10 0o10 ff 0xff 010"),
    "width and precision may be arguments": ('{{printf "[%*d|%.*f]" 5 1 2 1.234}}', "[    1|1.23]"),
    "explicit indexes change the order": ('{{printf "%[2]v %[1]v" 1 2}}', "2 1"),
    "an index of no argument is bad": ('{{printf "%[5]v" 1}}', "%!v(BADINDEX)"),
    "a missing argument shows": ('{{printf "%v %v" 1}}', "1 %!v(MISSING)"),
    "an argument too many shows with its type": ('{{printf "%v" 1 "x"}}', "1%!(EXTRA string=x)"),
    "an unknown verb shows": ('{{printf "%z" 1}}', "%!z(int=1)"),
    "a percent sign alone is no verb": ('{{printf "100%"}}', "100%!(NOVERB)"),
    "two percent signs are one": ('{{printf "100%%"}}', "100%"),
    "%t is for booleans": ('{{printf "%t %t" true 1}}', "true %!t(int=1)"),
    "a width that is no integer is bad": ('{{printf "%*d" "x" 1}}', "%!(BADWIDTH)1"),
    "hexadecimal and binary floats": ('{{printf "%x %b" 1.5 1.5}}', "0x1.8p+00 6755399441055744p-52"),
    "the fewest digits that tell a float from others": (
        '{{printf "%v %v %v %v" 0.1 1e20 123456.0 1e-7}}',
        "0.1 1e+20 123456 1e-07",
    ),
    "bytes that are no characters are escaped": ('{{printf "%q" "\\xff"}}', '"\\xff"'),
}


@pytest.mark.parametrize("policy", PRINTED)
def test_printf(policy: str) -> None:
    text, expected = PRINTED[policy]
    assert parse("t", text, {}).render(DATA) == expected


class _Moment(Opaque):
    __slots__ = ()
    go_type = "time.Time"

    def text(self) -> str:
        return "noon"


class _Pair(Opaque):
    __slots__ = ()
    go_type = "*pair.Pair"
    kind = "ptr"

    def fields(self) -> dict[str, object]:
        return {"First": 1, "Second": "x"}


TYPED = {
    "a list of strings": (Strings(["a", "b"]), '[]string [a b] []string{"a", "b"}'),
    "a map of strings": (
        StringMap({"b": "1", "a": "2"}),
        'map[string]string map[a:2 b:1] map[string]string{"a":"2", "b":"1"}',
    ),
    "bytes": (Bytes([104, 105]), "[]uint8 [104 105] []byte{0x68, 0x69}"),
    "a byte": (Uint8(104), "uint8 104 0x68"),
    "a wide integer": (Int64(5), "int64 5 5"),
    "a nil list": (NilList(), "[]interface {} [] []interface {}(nil)"),
    "a nil map": (NilDict(), "map[string]interface {} map[] map[string]interface {}(nil)"),
    "a type with a text of its own": (_Moment(), "time.Time noon time.Time{}"),
    "a pointer to a struct": (_Pair(), '*pair.Pair &{1 x} &pair.Pair{First:1, Second:"x"}'),
}


@pytest.mark.parametrize("policy", TYPED)
def test_types_that_python_lacks(policy: str) -> None:
    value, expected = TYPED[policy]
    assert sprintf("%T %v %#v", value, value, value) == expected


def test_print_puts_spaces_between_values_that_are_no_strings() -> None:
    assert sprint(1, 2, "a", 3, None, True) == "1 2a3 <nil> true"
    assert sprintln(1, "a", "b") == "1 a b\n"


def test_a_text_of_more_than_a_megabyte_is_refused() -> None:
    assert len(sprintf("%1000000d", 1)) == 1_000_000
    with pytest.raises(FunctionError, match="at most 1048576 are allowed"):
        sprintf("%1000000d%1000000d", 1, 1)
