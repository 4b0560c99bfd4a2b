"""The recorded conformance cases of the gitops rooms; empty where the folder is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.recorded import Case, cases_of, judge_by, known

KNOWN = Path(__file__).with_name("known.json")


def cases(kind: str) -> list[Case]:
    return cases_of("gitops", kind)


def judge(case: Case, agrees: bool, got: object) -> None:
    """See :func:`tests.recorded.judge_by`."""
    judge_by(known(KNOWN).get(case["kind"], {}), case, agrees, got)


def without_nulls(value: Any) -> Any:
    """For comparisons in which null and absent are equal."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
