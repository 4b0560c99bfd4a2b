"""Recorded conformance cases of a room, and the differences that its ``known.json`` names; empty without the folder."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("SYNCLINE_CONFORMANCE", ROOT.parent / "shared" / "conformance"))

Case = dict[str, Any]


@cache
def cases_of(room: str, kind: str) -> list[Case]:
    """A case for each line; other line separators than the newline may stand in one."""
    path = FOLDER / room / f"{kind}.jsonl"
    if not path.exists():
        print(f"no recordings at {path}: set SYNCLINE_CONFORMANCE")  # noqa: T201
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


@cache
def known(file: Path) -> dict[str, Any]:
    """``known.json``: reasons by the id of a case, or such a table for each kind."""
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def judge_by(reasons: dict[str, str], case: Case, agrees: bool, got: object) -> None:
    """A case must agree, unless it is known why it does not; then it must really differ."""
    if case["id"] in reasons:
        assert not agrees, f"{case['id']} agrees now: take it off known.json"
        pytest.xfail(reasons[case["id"]])
    assert agrees, f"{case['id']} {case.get('about', '')}: expected {case['expect']}, got {got}"
