"""What can go wrong on the way from a repository to objects.

Raised by every module of this room, caught by those who ask for a render: the text is one sentence for a condition, the
fields are for tests and for choosing what to do next. No message ever holds a credential.
"""

from __future__ import annotations

import re
from enum import StrEnum

from syncline.base.masking import bounded, mask_credentials
from syncline.base.report import Position

__all__ = ["Problem", "SourceError", "mask_credentials"]


class Problem(StrEnum):
    """Why a source gives no objects, for those who decide whether to try again."""

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
    """``subject`` is the repository or file, ``field`` the Application's field to read, ``fix`` what to do."""

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
    """What YAML readers (ours, Go's inside Helm) quote of a file may be a Secret's value: its place is enough."""
    return _SCALAR.sub(lambda found: f"{found[1]} `***`" if found[1] else "'***'", text)
