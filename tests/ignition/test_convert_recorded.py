"""Conversions between versions, as ign-converter and the Machine Config Operator do them
(``conformance/ignition``: convert; ``conformance/machineconfig``: convert, decode, validate; behaviours 83 to 88)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.ignition.recordings import cases, judge, raw_input, run_as, same_text
from tests.machineconfig.recordings import same_text as same_text_of_ours

from syncline.ignition.golang import parse_version, quoted
from syncline.ignition.jsontext import dump
from syncline.ignition.parsing import minor_of, parse
from syncline.ignition.payload import PayloadError
from syncline.ignition.spec2.parsing import parse2
from syncline.ignition.spec2.translating import TranslationError, translate
from syncline.ignition.versions.converting import (
    ConversionError,
    convert_raw_to,
    parse_and_convert,
    parse_payload,
    refusal,
)
from syncline.ignition.versions.upward import lift


def _minor(version: str) -> int:
    parsed = parse_version(version)
    minor = parsed and minor_of(parsed)
    assert minor is not None, version
    return minor


@pytest.mark.parametrize("case", run_as("convert", "ignition-up"), ids=lambda case: case["id"])
def test_a_configuration_is_lifted_to_a_newer_version_as_upstream_lifts_it(case: dict[str, Any]) -> None:
    expect, target = case["expect"], _minor(case["args"][1])
    parsed = parse(raw_input(case), newest=target)
    got: dict[str, Any] = {"ok": parsed.config is not None}
    if parsed.config is not None:
        got["output"] = dump(lift(parsed.config, _minor(parsed.config["ignition"]["version"]), target))
    agrees = all(got[key] == expect[key] for key in got) and (parsed.error or "") == expect.get("error", "")
    judge(case, agrees and same_text(case, str(parsed.report), expect.get("report_text", "")), (got, parsed))


@pytest.mark.parametrize("case", run_as("convert", "mco"), ids=lambda case: case["id"])
def test_the_operator_reads_every_supported_version_as_3_5(case: dict[str, Any]) -> None:
    try:
        got: dict[str, Any] = {"ok": True, "output": dump(parse_and_convert(raw_input(case)))}
    except ConversionError as problem:
        got = {"ok": False, "error": str(problem)}
    expect = case["expect"]
    agrees = got["ok"] == expect["ok"] and got.get("output") == expect.get("output")
    judge(case, agrees and same_text(case, got.get("error", ""), expect.get("error", "")), got)


def _converted(case: dict[str, Any]) -> dict[str, Any]:
    """As the stand-alone converter: what it prints and whether it is content."""
    mounts: dict[str, str] = {}
    if "-fsmap" in case["args"]:
        for line in case["files"][0]["text"].split("\n"):
            parts = line.split(" ")
            if len(parts) != 2:
                return {"ok": False, "error": f"Error parsing line: {quoted(line)}, needs two parts\n"}
            mounts[parts[0]] = parts[1]
    config, _, error = parsed = parse2(raw_input(case))
    if config is None:
        return {"ok": False, "error": f"{parsed.text}Error parsing spec v2 config: {error}\n{parsed.text}\n"}
    warned = {"report_text": parsed.text} if parsed.text else {}
    try:
        return {"ok": True, "output": dump(translate(config, 4, mounts)), **warned}
    except TranslationError as problem:
        return {"ok": False, "error": f"{parsed.text}Failed to translate config from 2 to 3: {problem}\n"}


@pytest.mark.parametrize("case", run_as("convert", "ign-converter"), ids=lambda case: case["id"])
def test_2_x_is_translated_to_3_1_as_the_converter_does_it(case: dict[str, Any]) -> None:
    got, expect = _converted(case), case["expect"]
    agrees = got["ok"] == expect["ok"] and got.get("output") == expect.get("output")
    texts = ("error", "report_text")
    judge(case, agrees and all(same_text(case, got.get(key, ""), expect.get(key, "")) for key in texts), got)


@pytest.mark.parametrize("case", cases("machineconfig", "convert"), ids=lambda case: case["id"])
def test_a_configuration_is_served_in_the_version_that_is_asked_for(case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    raw = json.dumps(given["config"], ensure_ascii=False, separators=(",", ":")).encode()
    try:
        config = convert_raw_to(raw, given["target"]) if "target" in given else parse_and_convert(raw)
        got: dict[str, Any] = {"config": config, "error": None}
    except ConversionError as problem:
        got = {"error": str(problem)}
    judge(case, got == {key: expect[key] for key in ("config", "error") if key in expect}, got)


@pytest.mark.parametrize("case", cases("machineconfig", "decode"), ids=lambda case: case["id"])
def test_a_packed_configuration_is_unpacked_read_and_lifted(case: dict[str, Any]) -> None:
    try:
        config = parse_payload(base64.b64decode(case["input"]["payloadBase64"]))
        got: dict[str, Any] = {"config": config, "error": None}
    except (ConversionError, PayloadError) as problem:
        got = {"error": str(problem)}
    expect = case["expect"]
    agrees = got.get("config") == expect.get("config") and same_text_of_ours(expect["error"], got["error"])
    judge(case, agrees, got)


def _only_about_ignition(case: dict[str, Any]) -> bool:
    return "config" in case["input"]["spec"] and not case["input"]["spec"].keys() & {"kernelType", "extensions"}


@pytest.mark.parametrize(
    "case", list(filter(_only_about_ignition, cases("machineconfig", "validate"))), ids=lambda case: case["id"]
)
def test_a_machine_config_is_refused_for_what_upstream_refuses_it(case: dict[str, Any]) -> None:
    raw = json.dumps(case["input"]["spec"]["config"], ensure_ascii=False, separators=(",", ":")).encode()
    got = refusal(raw)
    judge(case, got == case["expect"]["error"], got)
