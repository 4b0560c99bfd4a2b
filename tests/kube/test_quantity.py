"""Quantities print as Go prints them, and count exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.text.quantity import (
    FORMAT_WRONG,
    SUFFIX_WRONG,
    Format,
    Quantity,
    QuantityError,
    from_int,
    from_milli,
    parse_quantity,
    text_as_read,
)

CANONICAL = {
    "0": "0",
    "0.0Gi": "0",
    "1": "1",
    "1000": "1k",
    "1500": "1500",
    "100m": "100m",
    "0.5": "500m",
    "1.5": "1500m",
    "2.0": "2",
    ".5": "500m",
    "5.": "5",
    "+1": "1",
    "-1.5": "-1500m",
    "1Gi": "1Gi",
    "1024Mi": "1Gi",
    "1.5Gi": "1536Mi",
    "1023": "1023",
    "512Ki": "512Ki",
    "0.5Ki": "512",
    "1e3": "1e3",
    "1E3": "1e3",
    "12e2": "1200",
    "1E": "1E",
    "1e-3": "1e-3",
    "0.1n": "1n",
    "100000m": "100",
    "10000000": "10M",
    "9999999999999999999999": "9223372036854775807",
    "128974848": "128974848",
    "129e6": "129e6",
    "129M": "129M",
    "123Mi": "123Mi",
    "2048Ki": "2Mi",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_a_quantity_prints_in_its_canonical_form(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


@pytest.mark.parametrize("text", ["", "abc", "1 Gi", "1.2.3", " 1", "1Gi "])
def test_a_text_that_is_no_quantity_is_refused_with_the_pattern(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value) == FORMAT_WRONG


@pytest.mark.parametrize("text", ["1kk", "1mi", "1ee3", "1Ki3"])
def test_an_unknown_suffix_is_refused_as_such(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value) == SUFFIX_WRONG


def test_numbers_of_json_are_quantities_too() -> None:
    assert str(parse_quantity(1)) == "1"
    assert str(parse_quantity(1.5)) == "1500m"
    assert str(parse_quantity(2.0)) == "2"


def test_amounts_compare_across_spellings() -> None:
    assert parse_quantity("1Gi") == parse_quantity("1024Mi")
    assert parse_quantity("1G") < parse_quantity("1Gi")
    assert parse_quantity("0.1") == parse_quantity("100m")
    assert hash(parse_quantity("0.1")) == hash(parse_quantity("100m"))


def test_sums_keep_the_format_of_the_first_that_is_not_zero() -> None:
    assert str(parse_quantity("1Gi") + parse_quantity("1Gi")) == "2Gi"
    assert str(parse_quantity("0") + parse_quantity("1Gi")) == "1Gi"
    assert str(parse_quantity("1") - parse_quantity("250m")) == "750m"


def test_whole_values_round_away_from_zero() -> None:
    assert parse_quantity("1500m").value() == 2
    assert parse_quantity("-1500m").value() == -2
    assert parse_quantity("100u").milli() == 1
    assert parse_quantity("2").milli() == 2000


@given(st.integers(-(10**24), 10**24), st.sampled_from(list(Format)))
def test_the_printed_form_reads_back_as_the_same_amount(nano: int, form: Format) -> None:
    quantity = Quantity(nano, form)
    whole_in_binary = form is Format.BINARY and abs(nano) >= 1024 * 10**9 and nano % 10**9
    expected = quantity.value() * 10**9 if whole_in_binary else nano
    assert parse_quantity(str(quantity)).nano == expected


def test_constructors_and_readers_agree() -> None:
    assert from_int(3).value() == 3
    assert from_milli(250).milli() == 250


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("001", "001"),
        ("+5k", "+5k"),
        ("1.234", "1.234"),
        ("1500Mi", "1500Mi"),
        ("1024Ki", "1Mi"),
        ("1000k", "1M"),
        ("1.5Gi", "1536Mi"),
        (".5G", "500M"),
        ("12", "12"),
        (9000, "9k"),
    ],
)
def test_a_short_canonical_text_is_printed_as_it_was_read(text: str | int, told: str) -> None:
    assert text_as_read(text) == told


@pytest.mark.parametrize("text", ["k", "M", "Ti", "n"])
def test_a_suffix_alone_is_zero_as_go_reads_it(text: str) -> None:
    assert not parse_quantity(text)


@pytest.mark.parametrize("text", ["Pi", "Ei"])
def test_a_suffix_alone_is_refused_where_go_counts_with_long_numbers(text: str) -> None:
    with pytest.raises(QuantityError, match="numeric part"):
        parse_quantity(text)
