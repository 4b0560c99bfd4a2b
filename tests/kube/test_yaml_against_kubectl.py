"""kubectl is the oracle: what it reads, we read; what it writes, we write. Skipped where kubectl is not installed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess

import pytest

from syncline.kube.yaml import loading as yaml

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")

SEED = 20260101
EDGE_WORDS = (
    "on off yes no y n Y N On OFF Yes NO true True TRUE tRUE ~ null Null nULL 0755 0o755 0O17 08 09 -08 0x1F 0X1f -0x1 "
    "0b101 0B11 -0b11 +0b11 0b-11 0b+11 -0b-1 0b12 0b 0x 0o8 1e3 1E3 1e+3 1e-3 1_000 1__0 _1 0_8 0_7 -_1 +_1 + 1. 1.0 "
    ".5 .5_0 ._5 .5_ .5__0 .5e1_0 5._0 -.5 +.5 . .. .e1 .5e3 1.5e300 1e400 -1e400 .5e400 12:30:45 12:30 1:0 190:20:30 "
    "2001-12-14 2001-12-14T21:59:43Z 2001-1-1 = << 1234e567 12e03 9223372036854775807 9223372036854775808 "
    "-9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 +9223372036854775808 "
    "99999999999999999999999 0xFFFFFFFFFFFFFFFF 0xFFFFFFFFFFFFFFFFF 01777777777777777777777 1e18 1e19 1e20 1e21 1e22 "
    "9223372036854774784.0 123456789012345678.5 123456789.5 0.1 0.0001 0.00001 1e-7 -0 -0.0 0.0 00 0e0 1e 1e+ e1 "
    "0x1p3 1.2.3 v1 1d Infinity inf NaN nan"
)
EDGES = EDGE_WORDS.split()


def fuzzed(count: int) -> list[str]:
    dice = random.Random(SEED)
    alphabet = "0011223456789abcdefxXoOeE+-._yYnNtTfF~:="
    texts = {"".join(dice.choice(alphabet) for _ in range(dice.randint(1, 7))) for _ in range(count)}
    return sorted(text for text in texts if parses_as_plain(text))


def parses_as_plain(text: str) -> bool:
    loaded = yaml.load_all(f"k: [ {text} ]\nl: {text}\n")
    return loaded.report.ok and not text.endswith(":") and ":" not in text[:1] and "- " not in text and text != "-"


def kubectl(document: str, output: str) -> str:
    command = ["kubectl", "label", "--local", "-o", output, "-f", "-", "oracle=1"]
    done = subprocess.run(command, input=document, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_go_prints(digits: str) -> int | float:
    """Go prints floats below 1e21 without an exponent."""
    return int(digits) if -(2**63) <= int(digits) < 2**63 else float(digits)


def read_by_kubectl(document: str) -> dict[str, object]:
    head = "apiVersion: example.com/v1\nkind: Oracle\nmetadata: {name: oracle}\n"
    answer: dict[str, object] = json.loads(kubectl(head + document, "json"), parse_int=as_go_prints)
    return answer


def test_plain_scalars_are_read_as_kubectl_reads_them() -> None:
    scalars = EDGES + fuzzed(1500)
    document = "".join(f"v{index}: {text}\n" for index, text in enumerate(scalars))
    theirs = read_by_kubectl(document)
    ours = yaml.load(document)
    wrong = [
        (text, theirs[f"v{index}"], ours[f"v{index}"])
        for index, text in enumerate(scalars)
        if (type(theirs[f"v{index}"]), theirs[f"v{index}"]) != (type(ours[f"v{index}"]), ours[f"v{index}"])
    ]
    assert wrong == [], f"seed {SEED}"


def test_keys_are_turned_to_text_as_kubectl_turns_them() -> None:
    keys = [
        "on",
        "n",
        "~x",
        "1",
        "1.5",
        "0.1",
        "1e3",
        "1e6",
        "1234567.5",
        "1e-5",
        "0755",
        "08",
        "12:30",
        "2001-12-14",
        "1e21",
    ]
    document = "m:\n" + "".join(f"- {{{key}: v}}\n" for key in keys)
    assert yaml.load(document)["m"] == read_by_kubectl(document)["m"]


STRUCTURES = """
merge_last: {base: &b {x: 1, y: 2}, use: {x: 9, <<: *b}}
merge_first: {use: {<<: *b, x: 9}}
merge_many: {use: {<<: [*b, {x: 5, z: 6}]}}
merge_quoted: {"<<": 1}
twice: 1
twice: 2
custom: !foo bar
custom_number: !foo 12
local: ! 12
local_quoted: ! "12"
text: !!str 12
number: !!int "12"
float: !!float 3
half: !!float 3.5
truth: !!bool "yes"
nothing: !!null ""
seq_tag: !!seq text
set: !!set {a, b}
day: !!timestamp 2001-12-14
binary: !!binary aGVsbG8=
binary_lines: !!binary |
  aGVs
  bG8=
literal: |
  a
   b

folded: >-
  a
  b

  c
kept: |+
  a

? complex
: value
anchor_key: &k name
*k : value
quoted: "a\\tb\\u00e9"
empty:
list:
- - 1
  - 2
-
- {}
"""


def test_merges_tags_aliases_and_blocks_are_read_as_kubectl_reads_them() -> None:
    theirs = read_by_kubectl(STRUCTURES)
    ours = yaml.load_all(STRUCTURES)
    assert ours.report.ok, str(ours.report)
    for key, value in ours.documents[0].value.items():
        assert (key, value) == (key, theirs[key])


REFUSED = (
    r"""
a: .inf
a: .nan
~: 1
{}: 1
[a]: 1
a: *x
a: &x [*x]
a: !!int foo
a: !!float foo
a: !!bool 1
a: !!null x
a: !!timestamp x
a: !!timestamp 2001-02-30
a: !!binary '*'
a: {<<: 1}
a: {<<: [1]}
18446744073709551615: 1
%YAML 1.2
a: "\ud83d\ude00"
a: [
a: b: c
	a: 1
a: @x
a: `x
a: %x
a: 'x
*x : 1
""".strip("\n")
    .replace("\\t", "\t")
    .split("\n")
)


@pytest.mark.parametrize("text", REFUSED)
def test_what_kubectl_refuses_is_an_error_with_its_place(text: str) -> None:
    done = subprocess.run(
        ["kubectl", "label", "--local", "-o", "json", "-f", "-", "x=y"],
        input=f"{text}\n" if text[0] == "%" else f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\n{text}\n",
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    report = yaml.load_all(text + "\n", file="f.yaml").report
    assert len(report.errors) == 1
    position = report.errors[0].position
    assert position is not None and position.file == "f.yaml" and position.line >= 1


TEXT_WORDS = (
    "plain on y 1e3 0o755 08 12:30:45 1_000 = << ~ null - ? !x &x *x @x `x %x | > {a} [a] a,b é 日本 😀 --- ... "
    "2001-12-14 2001-02-30 2001-1-1T1:2:3Z 0x1F .5 +1 1. a: :a http://x:80/y a'b true True 'q' \"d\" a#b"
)
TEXTS = [
    *TEXT_WORDS.split(),
    *("2001-12-14 10:20:30", "2001-12-14 10:60:30", "", " lead", "trail ", "a: b", "a #b", "#x", "- x", "? x", "--- x"),
    *("\ttab", "a\tb", "l1\nl2", "l1\nl2\n", "\nx", "  in\nx", "x\n\n", "x \ny", "\x01", "\ufeff", "a\r\nb", "\n", " "),
    *("x\n ", "word " * 40, "word " * 40 + "\nx", "w" * 200, "é: " * 60),
]


def test_text_is_written_as_kubectl_writes_it() -> None:
    value = {"apiVersion": "example.com/v1", "kind": "Oracle", "metadata": {"labels": {"oracle": "1"}, "name": "x"}}
    value |= {"spec": {f"t{index}": text for index, text in enumerate(TEXTS)}}
    value |= {"lists": [TEXTS, [[], {}, [[1]]], {"a": [{"b": 1}]}]}
    value |= {"keys": dict.fromkeys((*(t for t in TEXTS if t != "<<" and not t[:1].isdigit()), "k" * 200), 1)}
    value |= {"numbers": [1, -5, 1.5, 1e21, 1e-7, 1234567.5, 0.1, 2.0, 1e20, 2**63 - 1, True, None]}
    theirs = kubectl(json.dumps(value), "yaml").splitlines()
    ours = yaml.dump(value).splitlines()
    for mine, other in zip(ours, theirs, strict=False):
        assert mine == other
    assert len(ours) == len(theirs)


def test_keys_are_sorted_as_kubectl_sorts_them() -> None:
    dice = random.Random(SEED)
    pairs = [
        ["".join(dice.choice("aB01290-./") for _ in range(dice.randint(1, 5))) for _ in range(2)] for _ in range(400)
    ]
    value = {"apiVersion": "v1", "kind": "Oracle", "metadata": {"labels": {"oracle": "1"}, "name": "x"}}
    value |= {"pairs": [dict.fromkeys(pair, 1) for pair in pairs]}
    assert yaml.dump(value) == kubectl(json.dumps(value), "yaml")
