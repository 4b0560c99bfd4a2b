"""Recorded Kubernetes conversations as tables: request bodies and the parts of answers that were compared."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.recorded import CONFORMANCE, absent

_STEP = re.compile(r"((?:\\.|[^.\[\\])+)|\[([^\]]*)\]|\.")


def steps(name: str) -> list[dict[str, Any]]:
    """The steps of a recording; skips the test where the recordings are not there."""
    path = CONFORMANCE / "recorded" / f"{name}.json"
    if not path.exists():
        pytest.skip(absent(path))
    text = path.read_text().replace("${ns}", "<ns>").replace("${rv}", "0")
    return list(json.loads(text)["steps"])


def project(value: Any, path: str) -> Any:
    """The part of an answer that ``only`` names."""
    for match in _STEP.finditer(path):
        key, index = match.group(1), match.group(2)
        if key is not None:
            value = value.get(key.replace("\\.", ".")) if isinstance(value, dict) else None
        elif index == "*":
            rest = path[match.end() :].lstrip(".")
            return [project(item, rest) if rest else item for item in value or []]
        elif index is not None and "=" in index:
            name, wanted = index.split("=", 1)
            value = next((item for item in value or [] if str(item.get(name)) == wanted), None)
        elif index is not None:
            value = value[int(index)] if isinstance(value, list) and len(value) > int(index) else None
    return value


def covers(expected: Any, ours: Any) -> bool:
    """Whether ``ours`` says nothing that the recording does not; the reference adds defaults that a pure room lacks."""
    if isinstance(ours, dict) and isinstance(expected, dict):
        return all(name in expected and covers(expected[name], value) for name, value in ours.items())
    if isinstance(ours, list) and isinstance(expected, list):
        return len(ours) == len(expected) and all(map(covers, expected, ours))
    return bool(expected == ours) or (isinstance(expected, str) and expected.startswith("<"))
