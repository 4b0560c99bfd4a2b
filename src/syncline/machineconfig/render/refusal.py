"""Why something cannot be rendered, in upstream's words."""

from __future__ import annotations

__all__ = ["RenderError"]


class RenderError(ValueError):
    """A configuration that cannot be rendered; the text is what the pool's RenderDegraded says."""
