"""The health of a running process: :func:`verdict` computes the responses of ``/livez``, ``/healthz`` and ``/readyz``.

The live driver and the process' Lease holder record facts here; :func:`verdict` is pure. Liveness fails only where a
restart may help: due work that does not move, a watch that neither receives nor retries, Leases that are not read or
stay free. An unavailable API is no such case: the process stays alive and reports why it is not ready. A standby is
alive and ready. Instants are of the steady scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from syncline.kube.errors import ApiError, Unanswered

STUCK = timedelta(minutes=5)
"""Work that is due this long while no reconcile begins or ends is stuck; the longest request takes one minute."""
SILENT = timedelta(minutes=15)
"""A watch that received nothing and was not retried for this long is stuck; clients end a silent one after two
minutes."""
UNSEEN = timedelta(seconds=90)
"""The longest time without reading the Leases, which normally happens every few seconds."""
VACANT = timedelta(seconds=90)
"""The longest time that a Lease which is ours to take stays free: one minute, and the longest term of an earlier
holder."""
AWAY = timedelta(seconds=10)
"""Trouble that lasts longer makes a process unready; reopening a watch does not."""
SAY_AGAIN = timedelta(minutes=1)
MAX_CAUSES = 200
AWAY_CAUSE = "away"


@dataclass(frozen=True, slots=True)
class WatchSigns:
    """The watch of one kind. ``trouble``: why the last attempt failed, ``since``: when attempts began to fail; empty
    and None if they succeed. ``needed``: no work is possible without it."""

    moved: datetime
    trouble: str = ""
    since: datetime | None = None
    needed: bool = False
    listed: bool = False


@dataclass(slots=True)
class Signs:
    """The facts of one loop; ``moved``: when a reconcile last began or ended."""

    moved: datetime
    discovery: str = "discovery has not been tried yet"
    """Why discovery has no result; empty if it has one."""
    watches: dict[str, WatchSigns] = field(default_factory=dict)
    by_the_clock: bool = True
    """True if watches receive bookmarks; those of an API in the same process are silent while nothing changes."""

    def watched(self, name: str, now: datetime, *, trouble: str | None = None, listed: bool = False) -> None:
        """Record that a watch received something, or that an attempt began (``trouble`` None) or failed."""
        known = self.watches[name]
        if trouble is None:
            self.watches[name] = replace(known, moved=now)
        else:
            since = (known.since or now) if trouble else None
            self.watches[name] = replace(known, moved=now, trouble=trouble, since=since, listed=known.listed or listed)


@dataclass(frozen=True, slots=True)
class LeaseSigns:
    """The Leases of this process. ``looked``: end of the last round. ``trouble``: why it could not read or write,
    ``since`` when. ``vacant_since``: see :class:`~syncline.control.leader.Share`. ``why``: which replica holds what."""

    looked: datetime
    trouble: str = ""
    since: datetime | None = None
    vacant_since: datetime | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """The problems found; empty tuples mean healthy. ``notes`` are reported but do not count."""

    stuck: tuple[str, ...] = ()
    unready: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def answer(self, *, ready: bool) -> tuple[int, str]:
        """Return status code and text for a probe."""
        problems = (*self.stuck, *self.unready) if ready else self.stuck
        lines = [f"failed: {problem}" for problem in problems]
        lines += [f"note: {note}" for note in (*(self.unready if not ready else ()), *self.notes)]
        return (503 if problems else 200), "".join(f"{line}\n" for line in (*(() if problems else ("ok",)), *lines))


def verdict(signs: Signs, leases: LeaseSigns | None, overdue: timedelta, now: datetime, note: str = "") -> Health:
    """Judge the facts. ``overdue``: how long the oldest key has been due. ``leases`` None: this process holds no
    Leases."""
    stuck: list[str] = []
    unready: list[str] = []
    notes = [note] if note else []
    _judge_work(signs, overdue, now, stuck)
    _judge_watches(signs, now, stuck, unready, notes)
    if leases is not None:
        _judge_leases(leases, now, stuck, unready)
    return Health(tuple(stuck), tuple(unready), tuple(notes))


def _judge_work(signs: Signs, overdue: timedelta, now: datetime, stuck: list[str]) -> None:
    still = now - signs.moved
    if overdue > STUCK and still > STUCK:
        stuck.append(f"the oldest key is due for {_s(overdue)} and no pass began or ended for {_s(still)}")


def _judge_watches(signs: Signs, now: datetime, stuck: list[str], unready: list[str], notes: list[str]) -> None:
    if signs.discovery:
        unready.append(f"what the server serves is not known: {signs.discovery}")
    old = now - SILENT
    silent = [name for name, watch in sorted(signs.watches.items()) if watch.moved < old and signs.by_the_clock]
    if silent:
        stuck.append(f"nothing was heard or tried for {_s(SILENT)} of {_listed(silent)}")
    needed = {name: watch for name, watch in signs.watches.items() if watch.needed}
    if needed and not any(watch.listed for watch in needed.values()):
        unready.append(f"not listed yet: {_listed(sorted(needed))}")
    troubled = sorted(name for name, watch in signs.watches.items() if watch.since and now - watch.since > AWAY)
    if not troubled:
        return
    first = signs.watches[troubled[0]]
    text = f"cannot be watched: {_listed(troubled)}: {first.trouble}"
    away = needed and all(name in troubled for name in needed)
    (unready if away else notes).append(text)


def _judge_leases(leases: LeaseSigns, now: datetime, stuck: list[str], unready: list[str]) -> None:
    if now - leases.looked > UNSEEN:
        stuck.append(f"Leases were not read for {_s(now - leases.looked)}")
    if leases.trouble and leases.since is not None and now - leases.since > AWAY:
        unready.append(leases.trouble)
    elif leases.vacant_since is not None and now - leases.vacant_since > VACANT:
        stuck.append(f"a Lease lies free for {_s(now - leases.vacant_since)} and is not taken: {leases.why}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _s(span: timedelta) -> str:
    return f"{span.total_seconds():.0f} s"


class Complaints:
    """Limits logs to one a minute for each cause, however many requests fail by it. A process has one for each server:
    its unavailability is one cause, whichever request finds it."""

    def __init__(self) -> None:
        self._reported: dict[object, datetime] = {}

    def due(self, error: ApiError, now: datetime) -> bool:
        """Return True if the error is to be logged now, and record that."""
        cause = AWAY_CAUSE if isinstance(error, Unanswered) else (error.code, error.reason, error.message[:60])
        last = self._reported.get(cause)
        if last is not None and now - last < SAY_AGAIN:
            return False
        if len(self._reported) >= MAX_CAUSES:
            self._reported.clear()
        self._reported[cause] = now
        return True
