"""Until the engine of Go templates is there, what needs it is skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    try:
        return (yield)
    except NotImplementedError:
        pytest.skip("no engine of Go templates yet")
