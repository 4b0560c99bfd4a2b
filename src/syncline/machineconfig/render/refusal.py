"""The error of a refused render, in upstream's words."""

from __future__ import annotations


class RenderError(ValueError):
    """A configuration cannot be rendered; the message becomes the pool's RenderDegraded. ``culprit``: the MachineConfig
    at fault, or empty."""

    def __init__(self, text: str, culprit: str = "") -> None:
        super().__init__(text)
        self.culprit = culprit
