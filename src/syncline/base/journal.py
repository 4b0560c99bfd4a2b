"""The append-only record of a run: when, who, what, why. Drivers and executors write it.

People, tests and rehearsals read it. Live and virtual runs share the format, so that they can be compared; it never
contains random values (keys, tokens, certificates).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_micro_time

MAX_ENTRIES = 200_000
"""Bound of a journal held in memory; a day of a hundred-node cluster fits. Older entries fall out."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: ``who`` (controller), ``subject`` (object reference), ``what`` (verb and outcome), ``why``."""

    when: datetime
    who: str
    subject: str
    what: str
    why: str = ""

    def line(self) -> str:
        """Return one JSON line with fixed key order."""
        return json.dumps(
            {
                "when": format_micro_time(self.when),
                "who": self.who,
                "subject": self.subject,
                "what": self.what,
                "why": self.why,
            },
            ensure_ascii=False,
        )


class Journal:
    """A bounded list of entries, with listeners for live views."""

    def __init__(self, limit: int = MAX_ENTRIES) -> None:
        self._entries: deque[Entry] = deque(maxlen=limit)
        self._listeners: list[Callable[[Entry], None]] = []

    def write(self, entry: Entry) -> None:
        self._entries.append(entry)
        for listener in self._listeners:
            listener(entry)

    def listen(self, listener: Callable[[Entry], None]) -> None:
        self._listeners.append(listener)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def text(self) -> str:
        """Return the whole journal as JSON lines; runs with equal seeds return the same bytes."""
        return "".join(entry.line() + "\n" for entry in self._entries)
