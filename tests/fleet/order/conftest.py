"""The stage is built once for all stories of the order over clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.fleet.order.stage import Stage, Story, check_words


@pytest.fixture(scope="session")
def stage() -> Stage:
    return Stage()


@pytest.fixture
def play(stage: Stage) -> Iterator[Callable[..., Story]]:
    """Begin stories; at the end each has explained its waits, and is taken away."""
    made: list[Story] = []

    def begin(name: str, **how: Any) -> Story:
        made.append(Story(stage, name, **how))
        return made[-1]

    yield begin
    for one in made:
        one.delete()
    for one in made:
        check_words(one)
