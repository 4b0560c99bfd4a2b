"""Bodies of strangers: what has to be looked at number by number, and what finding that out may take."""

from __future__ import annotations

import time

import pytest

from syncline.kube.text.jsontext import has_long_numbers

MANY = b"1" * 308
BODIES = {
    "no digits": (b'{"a": "text"}', False),
    "as many digits as a number may have": (b'{"a": ' + MANY + b"}", False),
    "one digit more": (b'{"a": ' + MANY + b"2}", True),
    "in a text": (b'{"a": "' + MANY + b'2"}', True),
    "at the end": (MANY + b"2", True),
    "two numbers side by side": (MANY + b"," + MANY, False),
    "digits of other scripts": (("\u0661" * 400).encode(), False),
    "bytes that are no text": (bytes(range(128, 256)) * 20, False),
    "a fraction": (MANY + b"." + MANY, False),
}


@pytest.mark.parametrize("name", BODIES)
def test_numbers_are_looked_at_one_by_one_where_one_may_be_too_large(name: str) -> None:
    body, long = BODIES[name]
    assert has_long_numbers(body) is long


def test_bodies_are_searched_in_time_in_proportion_to_their_length() -> None:
    body = b",".join([MANY] * 9_000)
    spent = []
    for _ in range(5):
        begun = time.thread_time()
        assert not has_long_numbers(body)
        spent.append(time.thread_time() - begun)
    assert min(spent) < 0.1, "the best of five, computing alone; a search by pattern took 0.8 seconds of the loop"
