"""The recorded conformance cases of ApplicationSets, and how results are compared with them."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.recorded import Case, cases_of, judge_by, known

KNOWN = Path(__file__).with_name("known.json")
FOREIGN = (": template:", "error converting YAML", "error unmarshaling JSON", "Invalid value", "json: ", "yaml: ")
"""Where the text of Go's template engine, decoders and parsers begins; it must be similar only."""


def cases(kind: str) -> list[Case]:
    return cases_of("appset", kind)


def judge(kind: str, case: Case, agrees: bool, got: object) -> None:
    """See :func:`tests.recorded.judge_by`."""
    judge_by(known(KNOWN).get(kind, {}), case, agrees, got)


def sparse(value: Any) -> Any:
    """For comparisons in which null, an empty list, an empty map and an absent key are equal, and 1 equals 1.0."""
    if isinstance(value, dict):
        pairs = {key: sparse(item) for key, item in value.items()}
        return {key: item for key, item in pairs.items() if item not in (None, [], {}) or item is False} or None
    if isinstance(value, list):
        return [sparse(item) for item in value] or None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def same_sets(expected: list[Any], got: list[Any], *, unordered: bool) -> bool:
    if not unordered:
        return [sparse(one) for one in expected] == [sparse(one) for one in got]
    return Counter(map(_text, expected)) == Counter(map(_text, got))


def _text(value: Any) -> str:
    return json.dumps(sparse(value), sort_keys=True)


def same_error(expected: str | None, got: str | None) -> bool:
    """Argo CD's own text is equal; what follows it from other libraries is similar."""
    if not expected or not got:
        return not expected and not got
    if expected == got:
        return True
    begins = [at for mark in FOREIGN if (at := expected.find(mark)) >= 0]
    own = min(begins, default=len(expected))
    return expected[:own] == got[:own] and _alike(expected[own:], got[own:])


def _alike(expected: str, got: str) -> bool:
    return difflib.SequenceMatcher(None, expected, got, autojunk=False).ratio() >= 0.6
