"""The audit log as a file: one JSON object a line, written by a thread of its own behind a bounded buffer.

Started by ``live`` where ``--audit-log`` names a file. A disk that is too slow loses lines rather than holding
requests back; how many is said in a line of the file.
"""

from __future__ import annotations

import queue
import threading
from pathlib import Path

import msgspec

from syncline.base.entropy import Entropy
from syncline.cluster.answered import Answered
from syncline.cluster.audit import audit_event

__all__ = ["AuditFile"]

MAX_WAITING = 10_000
"""Requests that wait to be written."""


class AuditFile:
    """Raises OSError when the file cannot be opened."""

    def __init__(self, path: Path, entropy: Entropy) -> None:
        self._entropy = entropy
        self._waiting: queue.Queue[Answered | None] = queue.Queue(MAX_WAITING)
        self._lost = 0
        self._file = path.open("ab")
        self._thread = threading.Thread(target=self._write_all, name="audit log", daemon=True)
        self._thread.start()

    def note(self, answered: Answered) -> None:
        """Called by the server for each request; never waits."""
        try:
            self._waiting.put_nowait(answered)
        except queue.Full:
            self._lost += 1

    def close(self) -> None:
        """Write what waits, then close."""
        self._waiting.put(None)
        self._thread.join()

    def _write_all(self) -> None:
        with self._file:
            while (answered := self._waiting.get()) is not None:
                self._write(audit_event(answered, self._entropy.uid()))
                if self._waiting.empty():
                    self._file.flush()
            if self._lost:
                self._write({"kind": "Lost", "count": self._lost, "why": "the disk was slower than the requests"})

    def _write(self, line: object) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
