"""Logs of containers: bounded, per attempt, readable while they grow.

Runtimes write, possibly from several threads; ``kubectl logs`` reads through :class:`MachineLogs`, the API's
``LogSource``. Logs are deleted with their pod.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from syncline.base.clock import parse_time
from syncline.cluster.machines.containers import Container, ContainerState, ContainerTable
from syncline.cluster.validation.engine.integers import natural
from syncline.kube.errors import BadRequest
from syncline.kube.objects import Obj, dig, name_of, uid_of
from syncline.kube.transport.outbound import Stream

LONG_AGO_S = 10 * 365 * 86400
"""Maximum age of a log."""
MAX_LOG_BYTES = 4 * 1024 * 1024
"""Limit per attempt of a container; older lines are dropped, as when the kubelet rotates."""
LOG_RATE, BURST_S = 8 * 1024 * 1024, 1.0
"""Bytes per second including line costs, and the seconds of burst."""
LINE_COST = 100
"""Cost of a line beside its text, which also bounds a log of empty lines."""
MAX_LINE_BYTES = 16 * 1024
"""Longer lines are split, as by container runtimes."""


@dataclass(frozen=True, slots=True)
class Line:
    """``continues`` a line that was too long for one."""

    at: datetime
    text: bytes
    continues: bool = False


@dataclass(slots=True)
class _Log:
    """``lines`` as written: split lines, and an unfinished last one, have no newline. ``first`` counts the dropped
    lines; ``begun`` is when the unfinished line began."""

    lines: deque[Line] = field(default_factory=deque)
    first: int = 0
    size: int = 0
    partial: bytes = b""
    begun: datetime | None = None
    closed: bool = False
    followers: list[_Follower] = field(default_factory=list)


@dataclass(slots=True)
class Throttle:
    """Slows down a container that writes more than :data:`LOG_RATE` per second, so that its log does not keep the
    cluster busy."""

    _ahead_s: float = 0.0
    _at_s: float = 0.0

    def wait_s(self, cost: int, now_s: float) -> float:
        """Return the seconds to wait after output of this ``cost``; ``now_s`` must be monotonic."""
        self._ahead_s = max(0.0, self._ahead_s - (now_s - self._at_s)) + cost / LOG_RATE
        self._at_s = now_s
        return max(0.0, self._ahead_s - BURST_S)


class LogStore:
    """Stores all logs; thread-safe for writers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: dict[tuple[str, str, int], _Log] = {}

    def write(self, pod_uid: str, container: str, attempt: int, data: bytes, now: datetime) -> None:
        """Append output; complete lines become visible, an unfinished last line when the container ends."""
        with self._lock:
            log = self._logs.setdefault((pod_uid, container, attempt), _Log())
            *lines, rest = (log.partial + data).split(b"\n")
            for line in lines:
                self._add(log, log.begun or now, line + b"\n")
                log.begun = None
            while len(rest) > MAX_LINE_BYTES:
                self._add(log, log.begun or now, rest[:MAX_LINE_BYTES])
                rest = rest[MAX_LINE_BYTES:]
            log.partial, log.begun = rest, (log.begun or now) if rest else None
            followers = list(log.followers)
        self._wake(followers)

    def close(self, pod_uid: str, container: str, attempt: int, now: datetime) -> None:
        """End the log of a container."""
        with self._lock:
            log = self._logs.setdefault((pod_uid, container, attempt), _Log())
            if log.partial:
                self._add(log, log.begun or now, log.partial)
            log.partial, log.closed = b"", True
            followers = list(log.followers)
        self._wake(followers)

    def forget(self, pod_uid: str) -> None:
        with self._lock:
            gone = [self._logs.pop(key) for key in list(self._logs) if key[0] == pod_uid]
            followers = [each for log in gone for each in log.followers]
            for log in gone:
                log.closed = True
        self._wake(followers)

    def lines(self, pod_uid: str, container: str, attempt: int) -> list[Line]:
        """Return the current lines, including an unfinished last one."""
        with self._lock:
            log = self._logs.get((pod_uid, container, attempt))
            if log is None:
                return []
            found = list(log.lines)
            if log.partial and log.begun is not None:
                found.append(Line(log.begun, log.partial, _is_open(log)))
            return found

    def follow(self, pod_uid: str, container: str, attempt: int, skip: int, show: _Show) -> Stream:
        """Return a stream of lines from the ``skip``-th on, until the container ends."""
        with self._lock:
            log = self._logs.setdefault((pod_uid, container, attempt), _Log())
            follower = _Follower(self, log, log.first + skip, show)
            log.followers.append(follower)
            return follower

    @staticmethod
    def _add(log: _Log, at: datetime, line: bytes) -> None:
        for start in range(0, len(line), MAX_LINE_BYTES):
            piece = Line(at, line[start : start + MAX_LINE_BYTES], _is_open(log))
            log.lines.append(piece)
            log.size += len(piece.text) + LINE_COST
        while log.size > MAX_LOG_BYTES and len(log.lines) > 1:
            log.size -= len(log.lines.popleft().text) + LINE_COST
            log.first += 1

    @staticmethod
    def _wake(followers: list[_Follower]) -> None:
        for follower in followers:
            if follower.on_ready is not None:
                follower.on_ready()


def _is_open(log: _Log) -> bool:
    """Return whether new output continues the last line."""
    return bool(log.lines) and not log.lines[-1].text.endswith(b"\n")


_Show = Callable[[Line], bytes]


class _Follower:
    """A ``kube.client.Stream`` of log lines."""

    def __init__(self, book: LogStore, log: _Log, at: int, show: _Show) -> None:
        self.on_ready: Callable[[], None] | None = None
        self._book = book
        self._log = log
        self._at = at
        self._show = show

    def take(self, limit: int = 1000) -> list[bytes]:
        with self._book._lock:
            start = max(self._at - self._log.first, 0)
            found = list(islice(self._log.lines, start, start + limit))
            self._at = self._log.first + start + len(found)
        return [self._show(line) for line in found]

    @property
    def ended(self) -> bool:
        with self._book._lock:
            return self._log.closed and self._at >= self._log.first + len(self._log.lines)

    def close(self) -> None:
        with self._book._lock:
            if self in self._log.followers:
                self._log.followers.remove(self)


class MachineLogs:
    """Serves ``pods/log``."""

    def __init__(self, book: LogStore, table: ContainerTable) -> None:
        self._book = book
        self._table = table

    def log(self, pod: Obj, container: str, query: Mapping[str, str], now: datetime) -> bytes | Stream:
        """Supported PodLogOptions: tailLines, sinceSeconds, sinceTime, timestamps, limitBytes, previous, follow."""
        record = self._record(pod, container, previous=query.get("previous") == "true", now=now)
        show = _with_time if query.get("timestamps") == "true" else _plain
        lines = self._book.lines(record.pod_uid, container, record.attempt)
        skip = len(lines) - len(_chosen(lines, query, now))
        if query.get("follow") == "true" and record.state(now) is not ContainerState.EXITED:
            return self._book.follow(record.pod_uid, container, record.attempt, skip, show)
        text = b"".join(show(line) for line in lines[skip:])
        return text[: natural(query.get("limitBytes", ""))]

    def _record(self, pod: Obj, container: str, *, previous: bool, now: datetime) -> Container:
        records = [each for each in self._table.containers(uid_of(pod)) if each.name == container]
        if previous:
            if len(records) < 2:
                raise BadRequest(f'previous terminated container "{container}" in pod "{name_of(pod)}" not found')
            return records[-2]
        if not records or records[-1].state(now) is ContainerState.CREATED:
            raise BadRequest(
                f'container "{container}" in pod "{name_of(pod)}" is waiting to start: {_waiting(pod, container)}'
            )
        return records[-1]


def _waiting(pod: Obj, container: str) -> str:
    for part in ("containerStatuses", "initContainerStatuses"):
        for status in dig(pod, "status", part, default=[]):
            reason = dig(status, "state", "waiting", "reason")
            if status.get("name") == container and reason:
                return str(reason)
    return "ContainerCreating"


def _plain(line: Line) -> bytes:
    return line.text


def _with_time(line: Line) -> bytes:
    if line.continues:
        return line.text
    return line.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ ").encode() + line.text


def _chosen(lines: list[Line], query: Mapping[str, str], now: datetime) -> list[Line]:
    """Return the last lines that the options select."""
    since: datetime | None = None
    seconds = natural(query.get("sinceSeconds", ""))
    if seconds is not None:
        since = now - timedelta(seconds=min(seconds, LONG_AGO_S))
    elif query.get("sinceTime"):
        try:
            since = parse_time(query["sinceTime"])
        except ValueError as error:
            raise BadRequest(f"sinceTime: {error}") from error
    found = [each for each in lines if since is None or each.at >= since]
    tail = natural(query.get("tailLines", ""))
    if tail is not None:
        found = found[-tail:] if tail else []
    return found
