""":class:`Refused`: why a request about an Application is not carried out."""

from __future__ import annotations

INVALID = "InvalidArgument"
PRECONDITION = "FailedPrecondition"
UNKNOWN = "Unknown"


class Refused(ValueError):
    """The text is upstream's, since scripts match it; ``code`` is the name that gRPC gives its kind."""

    def __init__(self, text: str, code: str = PRECONDITION) -> None:
        super().__init__(text)
        self.code = code
