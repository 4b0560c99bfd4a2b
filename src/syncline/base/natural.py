"""The natural order of numbers in texts in which Go's YAML libraries sort keys, for Kubernetes and Butane."""

from __future__ import annotations


def by_number(left: str, right: str, index: int) -> int:
    """Compare two texts that are equal before ``index`` and differ there, neither by a letter; return -1 or 1. The
    numbers that begin there decide (as int64, as upstream reads them), then their length, then the character."""
    head = 0
    if "0" in (left[index], right[index]):
        before = len(left[:index]) - len(left[:index].rstrip("0123456789"))
        head = 1 if left[index - before : index].strip("0") else 0
    a, a_end = _run(left, index, head)
    b, b_end = _run(right, index, head)
    if a != b:
        return -1 if a < b else 1
    if a_end != b_end:
        return -1 if a_end < b_end else 1
    return -1 if left[index] < right[index] else 1


def _run(text: str, start: int, value: int) -> tuple[int, int]:
    end = start
    while end < len(text) and text[end].isdecimal():
        value = value * 10 + int(text[end])
        end += 1
    return (value + 2**63) % 2**64 - 2**63, end
