"""What strangers send: nothing raises what it does not announce, and large inputs cost what they are long."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.ignition.recordings import cases, raw_input, run_as

from syncline.ignition import jsontext, payload
from syncline.ignition.dataurl import DataUrlError, decode_data_url
from syncline.ignition.golang import UrlError, parse_url, parse_version
from syncline.ignition.merging import merge
from syncline.ignition.parsing import parse
from syncline.ignition.payload import PayloadError, decode_file_contents, decode_payload
from syncline.ignition.spec2.parsing import parse2
from syncline.ignition.unitfile import UnitError, sections_with_options
from syncline.ignition.versions.converting import (
    ConversionError,
    convert_raw_to,
    parse_and_convert,
    parse_payload,
    refusal,
)
from syncline.ignition.versions.negotiate import NegotiationError, negotiate

SEEDS = [raw_input(case) for program in ("ignition-validate", "spec2x-parse") for case in run_as("validate", program)]
SEEDS += [b'{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,x"}}]}}']
PIECES = (b"", b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"-", b"1e999", b"0" * 5000)
PIECES += (b"\\u", b"\\ud800", b"\xff", b"\xc3")
MANY = 20_000
"""So many that the square of it would take minutes."""


def _damaged(chance: random.Random) -> bytes:
    raw = chance.choice(SEEDS)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(raw))
        raw = raw[:at] + chance.choice((*PIECES, chance.randbytes(3))) + raw[at + chance.randint(0, 8) :]
    return raw


READERS: tuple[tuple[Callable[[bytes], Any], tuple[type[Exception], ...]], ...] = (
    (parse, ()),
    (parse2, ()),
    (refusal, ()),
    (parse_and_convert, (ConversionError,)),
    (lambda raw: convert_raw_to(raw, "2.2.0"), (ConversionError,)),
    (parse_payload, (ConversionError, PayloadError)),
    (decode_payload, (PayloadError,)),
)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_text_is_refused_in_a_sentence(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        raw = _damaged(chance)
        for reader, announced in READERS:
            try:
                reader(raw)
            except announced as problem:
                assert str(problem)


SIGNS = "a:/?#[]@!$&'()*+,;=%25zé\\\"\n \x00-._~0123456789data:text/plain;base64,[Unit]=#;"


@pytest.mark.parametrize("seed", range(20))
def test_damaged_values_are_refused_in_a_sentence(seed: int) -> None:
    chance = random.Random(seed)
    readers: tuple[tuple[Callable[[str], Any], type[Exception]], ...] = (
        (parse_url, UrlError),
        (decode_data_url, DataUrlError),
        (sections_with_options, UnitError),
        (negotiate, NegotiationError),
        (parse_version, ZeroDivisionError),
        (lambda text: decode_file_contents(text, "gzip"), PayloadError),
    )
    for _ in range(200):
        text = chance.choice(("", "data:", "http://", "[", "a/vnd.coreos.ignition+json;version=3."))
        text += "".join(chance.choice(SIGNS) for _ in range(chance.randint(0, 30)))
        for reader, announced in readers:
            try:
                reader(text)
            except announced as problem:
                assert str(problem)


@pytest.mark.parametrize("open_sign", ["[", '{"a":'])
def test_a_tower_of_brackets_is_refused(open_sign: str) -> None:
    for depth in (jsontext.NESTING_MAX, 100_000):
        config, _, error = parse(('{"ignition":' + open_sign * depth).encode())
        assert config is None and error == "config is not valid"
    deep = "[" * (jsontext.NESTING_MAX - 1) + "]" * (jsontext.NESTING_MAX - 1)
    config, report, _ = parse(f'{{"ignition":{{"version":"3.5.0"}},"x":{deep}}}'.encode())
    assert config is not None and [entry.message for entry in report.entries] == ["unused key x"]


def test_a_text_that_is_too_long_is_refused() -> None:
    config, report, error = parse(b" " * (jsontext.SIZE_MAX + 1))
    assert config is None and error == "config is not valid"
    assert "at most" in report.entries[0].message


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "UNPACKED_MAX", 10_000)
    bomb = gzip.compress(bytes(10_001))
    with pytest.raises(PayloadError, match="more than 10000 bytes"):
        decode_payload(bomb)
    with pytest.raises(PayloadError, match="more than 10000 bytes"):
        decode_file_contents("data:;base64," + base64.b64encode(bomb).decode(), "gzip")
    assert decode_payload(gzip.compress(bytes(10_000))) == bytes(10_000)


def test_many_members_cost_what_they_are_long() -> None:
    many = gzip.compress(b"a") * MANY
    assert decode_payload(many) == b"a" * MANY


def _config(**sections: Any) -> bytes:
    return json.dumps({"ignition": {"version": "3.5.0"}, **sections}).encode()


LARGE: dict[str, bytes] = {
    "links above files": _config(
        storage={
            "links": [{"path": f"/l{number}", "target": "x"} for number in range(MANY)],
            "files": [{"path": f"/f{number}/x/y"} for number in range(MANY)],
        }
    ),
    "hard links to directories": _config(
        storage={
            "links": [{"path": f"/l{number}", "target": f"/d{number}", "hard": True} for number in range(MANY)],
            "directories": [{"path": f"/d{number}"} for number in range(MANY)],
        }
    ),
    "partitions": _config(
        storage={
            "disks": [
                {
                    "device": "/dev/a",
                    "partitions": [
                        {"label": f"p{number}", "startMiB": 2 * number + 1, "sizeMiB": 1} for number in range(MANY)
                    ],
                }
            ]
        }
    ),
    "unknown keys": _config(x={}, **{f"k{number}": number for number in range(MANY)}),
    "wrong files": _config(storage={"files": [{"path": "a"} for _ in range(MANY)]}),
    "one unit name": _config(systemd={"units": [{"name": "@" * MANY + ".service", "enabled": True}]}),
    "a long unit": _config(systemd={"units": [{"name": "a.service", "contents": "[Unit]\n" + "A=b\\\n" * MANY}]}),
    "escapes": _config(storage={"files": [{"path": "/a", "contents": {"source": "data:," + "%41" * MANY}}]}),
    "one key many times": b'{"ignition":{"version":"3.5.0"},'
    + b",".join(b'"x":{"k%d":0}' % number for number in range(MANY))
    + b"}",
    "a wide 2.x": json.dumps(
        {
            "ignition": {"version": "2.2.0"},
            "storage": {
                "links": [{"filesystem": "root", "path": f"/l{number}.", "target": "x"} for number in range(MANY)],
                "files": [{"filesystem": "root", "path": f"/f{number}"} for number in range(MANY)],
            },
            **{f"k{number}": number for number in range(MANY)},
        }
    ).encode(),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_configuration_costs_what_it_is_long(name: str) -> None:
    raw = LARGE[name]
    config, report, error = parse(raw)
    if name == "a wide 2.x":
        old = parse2(raw)
        assert old.config is not None and len(old.report.entries) > MANY
        parse_and_convert(raw)
    else:
        assert (config is not None) == (error is None)
        assert len(report.entries) >= MANY * (name in ("unknown keys", "wrong files"))


def test_large_configurations_are_merged_at_the_cost_of_their_length() -> None:
    def files(prefix: str) -> dict[str, Any]:
        nodes = [{"path": f"/{prefix}{number}", "contents": {"source": "data:,"}} for number in range(MANY)]
        return {"ignition": {"version": "3.5.0"}, "storage": {"files": nodes}}

    merged = merge(5, files("a"), files("b"))
    assert len(merged["storage"]["files"]) == 2 * MANY


def test_the_recorded_cases_are_there() -> None:
    """Seeds come from them; without the folder only a handful of damaged texts is tried."""
    assert len(SEEDS) == 1 + len(run_as("validate", "ignition-validate")) + len(run_as("validate", "spec2x-parse"))
    assert cases("machineconfig", "convert") == [] or len(SEEDS) > 100
