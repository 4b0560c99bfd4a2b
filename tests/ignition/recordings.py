"""Reads the recorded cases about Ignition; empty where the folder is missing."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from tests.recorded import cases_of as cases
from tests.recorded import judge_by, known

__all__ = ["cases", "judge", "raw_input", "run_as", "same_text"]

KNOWN = Path(__file__).with_name("known.json")


def run_as(kind: str, program: str) -> list[dict[str, Any]]:
    """The cases of ``ignition/KIND.jsonl`` that were recorded from one program."""
    return [case for case in cases("ignition", kind) if case["args"][0] == program]


def raw_input(case: dict[str, Any]) -> bytes:
    text = case["input"]
    return base64.b64decode(case["input_base64"]) if text is None else text.encode("utf-8", "surrogatepass")


def judge(case: dict[str, Any], agrees: bool, got: object) -> None:
    """See :func:`tests.recorded.judge_by`."""
    judge_by(known(KNOWN), case, agrees, got)


def same_text(case: dict[str, Any], got: str, expect: str) -> bool:
    """As ``text_match`` of the case says: equal; equal up to the order of lines; or anything, but not nothing."""
    match case["expect"].get("text_match"):
        case "similar":
            return bool(got) == bool(expect)
        case "unordered":
            return sorted(got.splitlines()) == sorted(expect.splitlines())
    return got == expect
