"""Chains of causes in an ApplicationReport: a list with depths, since a schema cannot nest without end; pure.

The agent writes them with :func:`rows_of`, bounded and without credentials; the hub reads them with
:func:`causes_from`, which takes any list, since a cluster may write what it likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from syncline.base.cause import Cause
from syncline.base.clock import format_time, time_or_none
from syncline.base.masking import mask_credentials
from syncline.kube.kinds.syncline import MAX_CAUSES
from syncline.kube.objects import Obj

MAX_TEXT: Final = 1000
"""Characters of one text."""
MAX_DEPTH: Final = 6


def rows_of(causes: Iterable[Cause]) -> list[Obj]:
    """Return causes as rows, each before its own deeper ones, the most important first."""
    return list(_rows(causes, 0))[:MAX_CAUSES]


def _rows(causes: Iterable[Cause], depth: int) -> Iterator[Obj]:
    for one in causes if depth < MAX_DEPTH else ():
        texts = {
            "subject": one.subject,
            "state": one.state,
            "message": one.message,
            "since": format_time(one.since) if one.since else "",
            "nextAction": one.next_action,
        }
        yield {"depth": depth} | {key: mask_credentials(text)[:MAX_TEXT] for key, text in texts.items() if text}
        yield from _rows(one.because, depth + 1)


def causes_from(rows: Any) -> tuple[Cause, ...]:
    """Return the causes of rows, at most as many and as deep as an agent writes."""
    listed = [one for one in rows if isinstance(one, Mapping)][:MAX_CAUSES] if isinstance(rows, list) else []
    found, _ = _tree(listed, 0, 0)
    return tuple(found)


def _tree(rows: list[Mapping[str, Any]], at: int, depth: int) -> tuple[list[Cause], int]:
    """Return the causes from ``at`` on that lie at ``depth`` or deeper, and where they end."""
    found: list[Cause] = []
    while at < len(rows) and _depth(rows[at]) >= depth:
        own = rows[at]
        below, at = _tree(rows, at + 1, min(_depth(own), MAX_DEPTH) + 1)
        subject, state, message, fix = (
            str(own.get(key) or "")[:MAX_TEXT] for key in ("subject", "state", "message", "nextAction")
        )
        found.append(
            Cause(subject, state, message, time_or_none(own.get("since")), next_action=fix, because=tuple(below))
        )
    return found, at


def _depth(row: Mapping[str, Any]) -> int:
    found = row.get("depth")
    return found if isinstance(found, int) and found >= 0 else 0


def deepest(causes: Iterable[Cause]) -> Cause | None:
    """Return the cause at the end of the most important chain."""
    found = next(iter(causes), None)
    while found is not None and found.because:
        found = found.because[0]
    return found
