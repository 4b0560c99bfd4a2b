"""The errors between a repository and its objects: :class:`SourceError`.

Every module of this room raises it, callers of a render catch it: the text is one sentence for a condition, the fields
are for tests and for the decision what to do next. No message ever contains a credential.
"""

from __future__ import annotations

import re
from enum import StrEnum

from syncline.base.masking import bounded, mask_credentials
from syncline.base.report import Position

__all__ = ["Problem", "SourceError", "mask_credentials"]


class Problem(StrEnum):
    """The kind of an error, for callers that decide whether to try again."""

    UNREACHABLE = "unreachable"
    """The network, the host or the repository may come back: trying again makes sense."""
    DENIED = "denied"
    REFUSED = "refused"
    """The settings or the safety rules forbid it."""
    REVISION_UNKNOWN = "revision unknown"
    PATH_MISSING = "path missing"
    TOO_LARGE = "too large"
    EXHAUSTED = "exhausted"
    """It used up the time or memory that a render may have: the same again costs as much
    (``sources/remote/rests.py``)."""
    INVALID = "invalid"
    """The content is wrong; only another commit helps."""
    UNSUPPORTED = "unsupported"


class SourceError(Exception):
    """A source cannot be read. ``subject``: the repository or file; ``field``: the Application's field; ``fix``: the
    remedy."""

    def __init__(
        self,
        problem: Problem,
        message: str,
        *,
        subject: str = "",
        field: str = "",
        fix: str = "",
        position: Position | None = None,
    ) -> None:
        self.problem = problem
        self.message = bounded(_mask_scalars(mask_credentials(message)))
        self.subject = mask_credentials(subject)
        self.field = field
        self.fix = fix
        self.position = position
        super().__init__(self.message + (f"; {fix}" if fix else ""))


_SCALAR = re.compile(r"(?<=unknown anchor )'[^'\n]*'|(?<= !!)(str|int|float|bool|null|binary) `[^`]*`")


def _mask_scalars(text: str) -> str:
    """Mask what YAML parsers (ours, Go's inside Helm) quote from a file: it may be a Secret's value."""
    return _SCALAR.sub(lambda found: f"{found[1]} `***`" if found[1] else "'***'", text)
