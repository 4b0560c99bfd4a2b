"""Notes about a drain as annotations of the node, so that a restart repeats nothing.

Upstream keeps them in memory, so its retries start over with each restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.base.cause import OR
from syncline.base.clock import format_time, parse_time
from syncline.kube.objects import Obj, annotations_of
from syncline.kube.schema.extensions import json_note

PROGRESS = "syncline.dev/drain-progress"
"""Annotation of a Node: JSON of :class:`Progress`."""
BLOCKED = "syncline.dev/drain-blocked"
"""Annotation of a Node: JSON of :class:`BlockedNote`, while a requested drain cannot finish."""
KEEP_CORDON = "syncline.dev/keep-cordon"
"""Annotation of a Node: a user cordoned it before its drain, and it stays cordoned after its update."""
INSIST = "syncline.dev/drain"
INSISTS = "insist"
"""Value of :data:`INSIST` on a Node or a pool: cordon and drain although the drain cannot finish."""
MAX_TEXT = 2000
"""Maximum characters of a note's message, and of each fix; longer fixes are left out."""


def insists(*objects: Obj | None) -> bool:
    return any(obj is not None and annotations_of(obj).get(INSIST) == INSISTS for obj in objects)


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a drain. ``began``: the cordon; ``attempt``: start of the last attempt; ``retry``: start of the next
    one, None during an attempt. ``restarted``: the cordon had been removed; time counts from this attempt once it has
    failed."""

    request: str
    began: datetime
    attempt: datetime
    retry: datetime | None = None
    restarted: bool = False

    def failed(self, retry: datetime) -> Progress:
        """Return the state after the attempt failed."""
        return Progress(self.request, self.attempt if self.restarted else self.began, self.attempt, retry)

    @classmethod
    def of(cls, node: Obj) -> Progress | None:
        """Return the state that the node's annotations hold; None if missing or invalid."""
        noted = _noted(node, PROGRESS)
        try:
            retry = parse_time(noted["retry"]) if noted.get("retry") else None
            began, attempt = parse_time(noted["began"]), parse_time(noted["attempt"])
            return cls(str(noted["request"]), began, attempt, retry, noted.get("anew") is True)
        except (KeyError, ValueError):
            return None

    def text(self) -> str:
        found = {"request": self.request, "began": format_time(self.began), "attempt": format_time(self.attempt)}
        marks = {"retry": format_time(self.retry)} if self.retry is not None else {}
        return _json(found | marks | ({"anew": True} if self.restarted else {}))


@dataclass(frozen=True, slots=True)
class BlockedNote:
    """Why a drain does not start, since when, and fixes."""

    request: str
    since: datetime
    message: str
    fixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: Obj) -> BlockedNote | None:
        noted = _noted(node, BLOCKED)
        try:
            fixes = tuple(str(each) for each in noted.get("fixes") or ())
            return cls(str(noted["request"]), parse_time(noted["since"]), str(noted["message"]), fixes)
        except (KeyError, ValueError):
            return None

    def sentence(self) -> str:
        """Return the block and its fixes as one sentence, for conditions and Events."""
        return self.message + would_help(self.fixes)

    def text(self) -> str:
        found = {"request": self.request, "since": format_time(self.since), "message": self.message}
        return _json(found | ({"fixes": list(self.fixes)} if self.fixes else {}))


def would_help(fixes: Iterable[str]) -> str:
    """Return the fixes as the end of a sentence; empty if there is none."""
    message = OR.join(fixes)
    return f"; would help: {message}" if message else ""


def _noted(node: Obj, key: str) -> Mapping[str, Any]:
    found = json_note(node, key)
    return found if isinstance(found, dict) else {}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
