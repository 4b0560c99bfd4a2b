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


_OF_ENTRY = r"(?m)((?:^|Report: )(?:error|warning|info|deprecated)"
EXCERPT = re.compile(_OF_ENTRY + r") at line \d+, column \d+\n(?:(?: +\d+: [^\n]*\n)+ *\^\n)?")
POSITION = re.compile(_OF_ENTRY + r"(?: at \$\S*?)?)(?:,| at) line \d+ col \d+:")


def without_positions(text: str) -> str:
    """A report of Ignition without lines, columns and excerpts, which we do not track: as ``errorWithoutPositions``,
    for the texts that were recorded without such a twin."""
    return POSITION.sub(r"\1:", EXCERPT.sub(r"\1: ", text)).rstrip()


def same_text(expected: str | None, got: str | None) -> bool:
    """Rule ``text``: equal, or equal up to the foreign text that follows the last ``: `` of one of them."""
    if expected is None or got is None or expected == got:
        return expected == got
    expected = TEMPORARY.sub("", expected)
    if "Report: " in expected:
        expected, got = without_positions(expected), got.rstrip()
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
