"""Backs off renders that exceeded their limits, since repeating them would end the same way: :class:`Rests`.

``sources/rendering/renderer.py`` does its work inside :meth:`Rests.guard`. The first back-off takes about a minute,
each further one twice as long, up to an hour; no request shortens it. Changed content is tried at once, a few times.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import format_time
from syncline.base.entropy import Entropy
from syncline.sources.errors import Problem, SourceError
from syncline.sources.workers.read_scope import current

FIRST_REST_S, LONGEST_REST_S = 60.0, 3600.0
SPREAD = 0.25
"""Part of a rest by which it may be shorter or longer, so that renders do not begin together."""
TRIES = 3
"""So often in a row other content of a source is tried at once; then each waits for a first rest."""
MAX_RESTING = 4_096
"""Sources that are remembered, those that ran out last."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """A back-off after ``count`` failures in a row; ``content`` was the last one."""

    content: str
    count: int
    began: datetime
    ended: datetime
    pause_s: float
    error: SourceError

    def lasts(self, content: str, now: datetime) -> bool:
        first = 0.0 if self.count < TRIES else FIRST_REST_S * (1 - SPREAD)
        passed = (now - self.ended).total_seconds()
        return 0 <= passed < (self.pause_s if content == self.content else min(first, self.pause_s))

    def refusal(self) -> SourceError:
        times = "" if self.count == 1 else f" after {self.count} times in a row"
        until = format_time(self.ended + timedelta(seconds=self.pause_s))
        message = (
            f"{self.error.message} (begun at {format_time(self.began)}; "
            f"it rests{times} until {until}, unless what it reads changes)"
        )
        return SourceError(
            Problem.EXHAUSTED, message, subject=self.error.subject, field=self.error.field, fix=self.error.fix
        )


class Rests:
    """The back-offs. Thread-safe. Reads that belong to no Application are not tracked."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._rests: OrderedDict[tuple[str, ...], _Rest] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def guard(self, where: tuple[str, ...], content: Callable[[], str]) -> Iterator[None]:
        """``where`` identifies the source; ``content`` identifies its content, and is called only if needed.

        Raises the stored :class:`SourceError` during the back-off."""
        here = current()
        with self._lock:
            known = self._rests.get(where)
        now = here.time()
        if known is not None and now is not None and known.lasts(content(), now):
            raise known.refusal()
        try:
            yield
        except SourceError as error:
            ended = here.time()
            if error.problem is not Problem.EXHAUSTED or here.now is None or ended is None:
                raise
            count = known.count + 1 if known is not None else 1
            pause = min(FIRST_REST_S * 2.0 ** min(count - 1, 10), LONGEST_REST_S)
            pause *= self._entropy.uniform(1 - SPREAD, 1 + SPREAD)
            rest = _Rest(content(), count, here.now, ended, pause, error)
            with self._lock:
                self._rests[where] = rest
                self._rests.move_to_end(where)
                while len(self._rests) > MAX_RESTING:
                    self._rests.popitem(last=False)
            raise rest.refusal() from None
        if known is not None and known.content == content():
            with self._lock:
                self._rests.pop(where, None)
