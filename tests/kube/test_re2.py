"""Patterns as Go reads them, in time that is in proportion to the text."""

from __future__ import annotations

import re

import pytest

from syncline.kube.text.re2 import compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^(?i)(abort|warn)?$", "Abort", True),
        ("^((?i)january|1[0-2])$", "JANUARY", True),
        ("^((?i)a)b$", "AB", False),
        (r"^\pL+$", "é", True),
        (r"^\w+$", "é", False),
        ("a$", "a\n", False),
        (r"\Qa.b\E", "a.b", True),
        ("(?<year>[0-9]+)", "in 2026", True),
        ("[[:alpha:]]+-[^[:space:]]", "ab-c", True),
    ],
)
def test_syntax_is_gos(pattern: str, text: str, found: bool) -> None:
    assert (compile_pattern(pattern).search(text) is not None) is found


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)*b$", "(x?)*(x?)*(x?)*y", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_no_pattern_can_hold_up_a_server(pattern: str) -> None:
    assert compile_pattern(pattern).search("a" * 50_000 + "!") is None


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "a{1001}", "a**"])
def test_what_go_would_not_compile_is_refused(pattern: str) -> None:
    with pytest.raises(re.error):
        compile_pattern(pattern)
