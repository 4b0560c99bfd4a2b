"""Why something cannot be rendered, in upstream's words."""

from __future__ import annotations

__all__ = ["RenderError"]


class RenderError(ValueError):
    """A configuration that cannot be rendered; the text is what the pool's RenderDegraded says. ``culprit``: the
    MachineConfig that is to blame, empty where that cannot be determined."""

    def __init__(self, text: str, culprit: str = "") -> None:
        super().__init__(text)
        self.culprit = culprit
