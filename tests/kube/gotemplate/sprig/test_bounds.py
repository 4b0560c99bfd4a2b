"""A template of a stranger cannot hold the process: sizes, counts, patterns, keys and passwords have bounds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kube.gotemplate.sprig.functions import NOW, call, failure

from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.functions import FunctionError
from syncline.kube.gotemplate.sprig.library import sprig_functions

MILLION = 1 << 20


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("repeat", (MILLION, "ab")),
        ("indent", (MILLION, "a\nb")),
        ("nindent", (1000, "\n" * 2000)),
        ("replace", ("a", "b" * 2000, "a" * 1000)),
        ("join", ("x" * 1000, ["y"] * 2000)),
        ("regexReplaceAll", ("a", "a" * 1000, "b" * 2000)),
        ("regexReplaceAll", ("(a+)", "a" * 10_000, "${1}" * 1000)),
        ("toJson", (["x" * MILLION],)),
        ("wrapWith", (1, "y" * 1000, "x" * 2000)),
        ("randAlpha", (MILLION + 1,)),
        ("randBytes", (MILLION,)),
    ],
)
def test_no_function_makes_a_text_of_more_than_a_megabyte(name: str, arguments: tuple[Any, ...]) -> None:
    assert "bytes, at most 1048576 are allowed" in failure(name, *arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("until", (10**9,)),
        ("until", (-(10**9),)),
        ("untilStep", (-(1 << 63), (1 << 63) - 1, 1)),
        ("seq", (10**9,)),
        ("splitList", ("", "x" * 100_001)),
        ("chunk", (1, list(range(100_001)))),
        ("concat", (list(range(60_000)), list(range(60_000)))),
        ("regexFindAll", (".", "x" * 100_001, -1)),
    ],
)
def test_no_function_makes_a_list_of_more_than_a_hundred_thousand_items(name: str, arguments: tuple[Any, ...]) -> None:
    assert "too many" in (text := failure(name, *arguments)) or "items, at most 100000 are allowed" in text


def test_a_map_within_itself_is_refused() -> None:
    values: dict[str, Any] = {}
    call("set", values, "self", values)
    for name in ("toJson", "toPrettyJson", "mustToJson", "deepCopy"):
        assert "within one another" in failure(name, values)
    assert "within one another" in failure("has", values, [values, 1])
    other: dict[str, Any] = {}
    call("set", other, "self", other)
    assert "within one another" in failure("merge", values, other)


def test_a_map_shared_again_and_again_is_walked_with_a_bound() -> None:
    values: dict[str, Any] = {"a": 1}
    for _ in range(60):
        values = {"left": values, "right": values}
    for name in ("toJson", "deepCopy"):
        assert "more than" in failure(name, values)


@pytest.mark.parametrize(("pattern", "text"), [(".{0,999}z", "y" * 100_000), ("a(?:.*z)?", "a" * 60_000)])
def test_searches_are_counted(pattern: str, text: str) -> None:
    assert "too many to search" in failure("regexFindAll", pattern, text, -1)


def test_a_product_of_many_large_floats_is_refused() -> None:
    assert failure("mulf", *[1e300] * 100) == "the exact result has too many digits"


@pytest.mark.parametrize(
    ("name", "arguments", "most"),
    [("derivePassword", (1, "pin", "secret", "user", "site"), 10), ("genPrivateKey", ("ecdsa",), 40)],
)
def test_one_map_of_functions_makes_a_bounded_number_of_passwords_and_keys(
    name: str, arguments: tuple[Any, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hashlib.scrypt", lambda *_, **__: b"\0" * 64)
    function = sprig_functions(lambda: NOW, Entropy(0))[name].call
    for _ in range(most):
        function(*arguments)
    with pytest.raises(FunctionError, match="are left: make keys"):
        function(*arguments)


def test_a_certificate_is_valid_for_a_century_at_most() -> None:
    assert failure("genCA", "ca", 36_501) == "a certificate is valid for 0 to 36500 days, not 36501"
