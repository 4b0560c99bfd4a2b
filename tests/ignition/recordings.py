"""Reads the recorded cases about Ignition; empty where the folder is missing."""

from __future__ import annotations

import base64
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("SYNCLINE_CONFORMANCE", ROOT.parent / "shared" / "conformance"))
KNOWN = Path(__file__).with_name("known.json")


@cache
def cases(room: str, kind: str) -> list[dict[str, Any]]:
    """``room``: ``ignition`` or ``machineconfig``."""
    path = FOLDER / room / f"{kind}.jsonl"
    if not path.exists():
        print(f"no recordings at {path}: set SYNCLINE_CONFORMANCE")  # noqa: T201
        return []
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def run_as(kind: str, program: str) -> list[dict[str, Any]]:
    """The cases of ``ignition/KIND.jsonl`` that were recorded from one program."""
    return [case for case in cases("ignition", kind) if case["args"][0] == program]


def raw_input(case: dict[str, Any]) -> bytes:
    text = case["input"]
    return base64.b64decode(case["input_base64"]) if text is None else text.encode("utf-8", "surrogatepass")


@cache
def _known() -> dict[str, str]:
    found: dict[str, str] = json.loads(KNOWN.read_text())
    return found


def judge(case: dict[str, Any], agrees: bool, got: object) -> None:
    """A case must agree, unless ``known.json`` says why it does not; then it must really differ."""
    if case["id"] in _known():
        assert not agrees, f"{case['id']} agrees now: take it off {KNOWN.name}"
        pytest.xfail(_known()[case["id"]])
    assert agrees, f"{case['id']}: expected {case['expect']}, got {got}"


def same_text(case: dict[str, Any], got: str, expect: str) -> bool:
    """As ``text_match`` of the case says: equal; equal up to the order of lines; or anything, but not nothing."""
    match case["expect"].get("text_match"):
        case "similar":
            return bool(got) == bool(expect)
        case "unordered":
            return sorted(got.splitlines()) == sorted(expect.splitlines())
    return got == expect
