"""Why a text or template cannot be rendered: :class:`RenderError`."""

from __future__ import annotations


class RenderError(ValueError):
    """The message is upstream's; ``missing_key``: a Go template read a key that the row does not have."""

    def __init__(self, message: str, *, missing_key: bool = False) -> None:
        self.missing_key = missing_key
        super().__init__(message)
