"""What the whole suite says at its end: figures that tests measured, and what was skipped for which reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

Figure = Callable[[str, str], None]
FIGURE = "figure"


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """``figure(name, text)``: a line under "figures" at the session's end. Travels with the report, so it also comes
    from parallel workers."""

    def note(name: str, text: str) -> None:
        request.node.user_properties.append((FIGURE, f"{name}: {text}"))

    return note


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for group in terminalreporter.stats.values() for report in group if hasattr(report, "when")]
    figures = sorted(
        {text for report in reports for name, text in getattr(report, "user_properties", ()) if name == FIGURE}
    )
    if figures:
        terminalreporter.section("figures")
        for text in figures:
            terminalreporter.write_line(text)
    skipped = Counter(_why(report) for report in reports if report.skipped)
    if skipped:
        terminalreporter.section("skipped")
        for why, count in sorted(skipped.items()):
            terminalreporter.write_line(f"{count} tests: {why}")


def _why(report: Any) -> str:
    """The sentence given to ``pytest.skip``; its third part where pytest also kept file and line."""
    found = report.longrepr
    return str(found[2] if isinstance(found, tuple) else found).removeprefix("Skipped: ")
