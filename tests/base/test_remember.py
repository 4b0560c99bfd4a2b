"""Caches keyed by texts of strangers do not keep what is long."""

from __future__ import annotations

from syncline.base.remember import MAX_REMEMBERED_CHARS, remember


def test_short_texts_are_remembered_and_long_ones_are_asked_anew() -> None:
    asked: list[str] = []

    @remember(4)
    def shout(text: str) -> str:
        asked.append(text[:1])
        return text.upper()

    short, long = "a", "b" * (MAX_REMEMBERED_CHARS + 1)
    assert [shout(short), shout(short), shout(long), shout(long)] == ["A", "A", long.upper(), long.upper()]
    assert asked == ["a", "b", "b"]
