"""One line per figure, with the limit beside it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Table:
    """Prints as it grows, so that a run that is stopped leaves what it measured."""

    rows: list[str] = field(default_factory=list)

    def title(self, text: str) -> None:
        self._say(f"\n{text}")

    def row(self, name: str, value: str, beside: str = "") -> None:
        self._say(f"  {name:<44} {value:>14}   {beside}".rstrip())

    def rate(self, name: str, per_s: float, limit: float, what: str, more: str = "") -> None:
        """A rate and which part of its limit it reaches."""
        self.row(name, f"{per_s:,.0f}/s", f"{per_s / limit:6.1%} of {limit:,.0f}/s {what}{more}")

    def _say(self, text: str) -> None:
        self.rows.append(text)
        print(text, flush=True)
