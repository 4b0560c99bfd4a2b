"""Reads the recorded conformance cases of machine configuration; empty where the folder is missing."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("SYNCLINE_CONFORMANCE", ROOT.parent / "shared" / "conformance")) / "machineconfig"
KNOWN = Path(__file__).with_name("known.json")


@cache
def cases(kind: str) -> list[dict[str, Any]]:
    path = FOLDER / f"{kind}.jsonl"
    if not path.exists():
        print(f"no recordings at {path}: set SYNCLINE_CONFORMANCE")  # noqa: T201
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


@cache
def _known(kind: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(KNOWN.read_text()).get(kind, {})
    return found


def judge(case: dict[str, Any], agrees: bool, got: object) -> None:
    """A case must agree, unless ``known.json`` says why it does not; then it must really differ."""
    if case["id"] in _known(case["kind"]):
        assert not agrees, f"{case['id']} agrees now: take it off {KNOWN.name}"
        pytest.xfail(_known(case["kind"])[case["id"]])
    assert agrees, f"{case['id']} {case['about']}: expected {case['expect']}, got {got}"


def without_nil(value: Any) -> Any:
    """For comparisons in which ``null``, an empty list and an absent key are equal."""
    if isinstance(value, dict):
        stripped = {key: without_nil(item) for key, item in value.items()}
        return {key: item for key, item in stripped.items() if item is not None and item != []}
    return [without_nil(item) for item in value] if isinstance(value, list) else value


def same_text(expected: str | None, got: str | None) -> bool:
    """Rule ``text``: equal, or equal up to the foreign text that follows the last ``: `` of one of them."""
    if expected is None or got is None or expected == got:
        return expected == got
    shared = 0
    for left, right in zip(expected.split(": "), got.split(": "), strict=False):
        if left != right:
            break
        shared += 1
    return shared >= min(expected.count(": "), got.count(": ")) and shared > 0
