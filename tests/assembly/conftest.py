"""Real git repositories, as the room of sources has them."""

from __future__ import annotations

from tests.sources.conftest import upstream

__all__ = ["upstream"]
