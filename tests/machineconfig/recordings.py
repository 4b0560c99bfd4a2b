"""The recorded conformance cases of machine configuration; empty where the folder is missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.recorded import Case, cases_of, judge_by, known

KNOWN = Path(__file__).with_name("known.json")


def cases(kind: str) -> list[Case]:
    return cases_of("machineconfig", kind)


def judge(case: Case, agrees: bool, got: object) -> None:
    """See :func:`tests.recorded.judge_by`."""
    judge_by(known(KNOWN).get(case["kind"], {}), case, agrees, got)


def without_nil(value: Any) -> Any:
    """For comparisons in which ``null``, an empty list and an absent key are equal."""
    if isinstance(value, dict):
        stripped = {key: without_nil(item) for key, item in value.items()}
        return {key: item for key, item in stripped.items() if item is not None and item != []}
    return [without_nil(item) for item in value] if isinstance(value, list) else value


TEMPORARY = re.compile(r"\S*<random> ")
"""Where a content was before it was moved into place: our files appear at once."""


def same_text(expected: str | None, got: str | None) -> bool:
    """Rule ``text``: equal, or equal up to the foreign text that follows the last ``: `` of one of them."""
    if expected is None or got is None or expected == got:
        return expected == got
    expected = TEMPORARY.sub("", expected)
    if _entries(expected) == _entries(got):
        return True
    shared = 0
    for left, right in zip(expected.split(": "), got.split(": "), strict=False):
        if left != right:
            break
        shared += 1
    return shared >= min(expected.count(": "), got.count(": ")) and shared > 0


def _entries(text: str) -> list[str]:
    """Lines of a report in any order: upstream tells unknown keys in the order of a Go map."""
    return sorted(text.replace("Report: ", "Report:\n").split("\n"))
