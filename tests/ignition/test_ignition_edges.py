"""Rare texts and the sentences about them, found by comparing with Ignition's own code (Go 1.27 for specification 3, Go
1.24 and an older reader for Butane and specification 2)."""

from __future__ import annotations

import pytest

from syncline.ignition.butane.transpile import Options, transpile
from syncline.ignition.jsontext import dump
from syncline.ignition.merging import merge
from syncline.ignition.parsing import parse, validate
from syncline.ignition.spec2.parsing import parse2
from syncline.ignition.typed import canonical


def said(text: str) -> tuple[str, int | None, int | None]:
    (entry,) = parse(text.encode()).report.entries
    return entry.message, entry.line, entry.column


def said2(text: str) -> tuple[str, int | None, int | None]:
    (entry,) = parse2(text.encode()).report.entries
    return entry.message, entry.line, entry.column


@pytest.mark.parametrize(
    ("text", "now", "before"),
    [
        (
            '{"a":"b\nc"}',
            ("invalid character '\\n' in string", 2, 1),
            ("invalid character '\\n' in string literal", 2, 1),
        ),
        (
            '{"a":"\\x","b":1}',
            ("invalid escape sequence `\\x` in string", 1, 9),
            ("invalid character 'x' in string escape code", 1, 8),
        ),
        (
            '{"a":"\\u00g0","b":1}',
            ("invalid escape sequence `\\u00g0` in string", 1, 13),
            ("invalid character 'g' in \\u hexadecimal character escape", 1, 11),
        ),
        (
            '{"a" é:1}',
            ("invalid character 'é' after object key", 1, 8),
            ("invalid character 'Ã' after object key", 1, 6),
        ),
    ],
)
def test_wrong_json_is_told_as_the_version_of_go_tells_it(
    text: str, now: tuple[str, int, int], before: tuple[str, int, int]
) -> None:
    assert said(text) == now
    assert said2(text) == before


def test_butane_tells_wrong_json_inside_by_its_first_byte() -> None:
    text = "variant: fcos\nversion: 1.5.0\nignition: {config: {merge: [{inline: é}]}}\n"
    first, *_ = transpile(text.encode(), Options()).report.entries
    assert first.message == "invalid character 'Ã' looking for beginning of value"


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        (
            '"storage":{"files":[{"mode":1e2}]}',
            "json: cannot unmarshal number 1e2 into Go struct field Config.storage.files.0.mode of type int",
        ),
        (
            '"storage":{"files":[[]]}',
            "json: cannot unmarshal array into Config.storage.files.0 of type types.File",
        ),
        (
            '"kernelArguments":{"shouldExist":[1]}',
            "json: cannot unmarshal number into Config.kernelArguments.shouldExist.0 of type types.KernelArgument",
        ),
        (
            '"storage":{"files":[{"user":1}]}',
            "json: cannot unmarshal number into Go struct field Config.storage.files.0.user of type types.NodeUser",
        ),
    ],
)
def test_a_wrong_type_is_told_with_gos_names_and_the_number_as_written(section: str, sentence: str) -> None:
    assert said(f'{{"ignition":{{"version":"3.4.0"}},{section}}}')[0] == sentence


def test_keys_match_with_the_long_s_also_where_the_version_stands() -> None:
    parsed = parse('{"ignition":{"verſion":"3.4.0"}}'.encode())
    assert parsed.config is not None
    assert [entry.message for entry in parsed.report.entries] == ["unused key verſion"]


def test_merged_lists_that_stay_empty_are_null_where_the_version_always_writes_them() -> None:
    raid = {"storage": {"raid": [{"name": "x", "level": "raid1", "devices": []}]}}
    config = canonical(0, {"ignition": {"version": "3.0.0"}} | raid)
    assert '"devices":null' in dump(merge(0, config, config))


def test_a_configuration_without_version_is_not_valid() -> None:
    assert validate(canonical(2, {"ignition": {"version": None}}), "3.2.0").fatal


def test_a_value_that_a_repeated_key_loses_has_to_fit_too() -> None:
    three = '{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a","mode":"x","mode":420}]}}'
    where = "Go struct field Config.storage.files.0.mode of type int"
    assert said(three) == (f"json: cannot unmarshal string into {where}", 1, three.index('"x"') + 4)
    assert parse(three.replace('"x"', "384").encode()).config == {
        "ignition": {"version": "3.4.0"},
        "storage": {"files": [{"path": "/a", "mode": 420}]},
    }
    assert parse(b'{"ignition":{"version":3,"version":"3.4.0"}}').config is None
    two = '{"ignition":{"version":"2.2.0"},"passwd":{"users":[{"name":[],"name":"core"}]}}'
    assert said2(two)[0] == "json: cannot unmarshal array into Go value of type string"
