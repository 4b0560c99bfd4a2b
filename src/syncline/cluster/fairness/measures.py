"""Metrics of priority and fairness for ``/metrics``, under Kubernetes' names.

``fairness.control`` records each change. The cluster's objects, not its callers, bound the number of series.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from syncline.cluster.fairness.queues import Level

PREFIX = "apiserver_flowcontrol_"
MAX_SERIES = 2_000
"""Series per metric; beyond the limit, schemas (created and deleted ones) share one series."""
_Pair = tuple[str, str]

_OTHERS: _Pair = ("others", "others")


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with all its series: labels and value. ``kind`` is counter, gauge or summary."""

    name: str
    kind: str
    help_text: str
    series: tuple[tuple[tuple[tuple[str, str], ...], float], ...]
    """Series of a summary have the suffix of the metric's name as label ``""``."""


class Measures:
    """Keys are (priority level, flow schema)."""

    def __init__(self) -> None:
        self._known: set[_Pair] = set()
        self._dispatched: Counter[_Pair] = Counter()
        self._rejected: Counter[tuple[str, str, str]] = Counter()
        self._queued: Counter[_Pair] = Counter()
        self._waited: dict[_Pair, float] = {}
        self._ended: Counter[_Pair] = Counter()
        self._lasted: dict[_Pair, float] = {}

    def seated(self, level: str, schema: str, waited_s: float = 0.0) -> None:
        pair = self._pair(level, schema)
        self._dispatched[pair] += 1
        if waited_s:
            self._waited[pair] = self._waited.get(pair, 0.0) + waited_s

    def queued(self, level: str, schema: str) -> None:
        self._queued[self._pair(level, schema)] += 1

    def refused(self, level: str, schema: str, why: str) -> None:
        self._rejected[(*self._pair(level, schema), why)] += 1

    def ended(self, level: str, schema: str, lasted_s: float) -> None:
        pair = self._pair(level, schema)
        self._ended[pair] += 1
        self._lasted[pair] = self._lasted.get(pair, 0.0) + lasted_s

    def _pair(self, level: str, schema: str) -> _Pair:
        pair = (level, schema)
        if pair in self._known:
            return pair
        if len(self._known) >= MAX_SERIES:
            return _OTHERS
        self._known.add(pair)
        return pair

    def families(self, levels: Sequence[Level]) -> Iterator[Family]:
        yield self._counter("dispatched_requests_total", "Requests that got their seats.", self._dispatched)
        yield Family(
            PREFIX + "rejected_requests_total",
            "counter",
            "Requests that were refused.",
            tuple(
                ((*_labels(level, schema), ("reason", why)), float(count))
                for (level, schema, why), count in sorted(self._rejected.items())
            ),
        )
        yield self._summary("request_wait_duration_seconds", "Time in a queue.", self._waited, self._queued)
        yield self._summary("request_execution_seconds", "Time in a seat.", self._lasted, self._ended)
        for name, report, value in _GAUGES:
            series = tuple(((("priority_level", each.name),), float(value(each))) for each in levels)
            yield Family(PREFIX + name, "gauge", report, series)

    def _counter(self, name: str, message: str, counts: Counter[_Pair]) -> Family:
        series = tuple((_labels(*pair), float(count)) for pair, count in sorted(counts.items()))
        return Family(PREFIX + name, "counter", message, series)

    def _summary(self, name: str, message: str, sums: dict[_Pair, float], counts: Counter[_Pair]) -> Family:
        series = []
        for pair, count in sorted(counts.items()):
            series.append(((("", "_sum"), *_labels(*pair)), sums.get(pair, 0.0)))
            series.append(((("", "_count"), *_labels(*pair)), float(count)))
        return Family(PREFIX + name, "summary", message, tuple(series))


def _labels(level: str, schema: str) -> tuple[tuple[str, str], ...]:
    return (("flow_schema", schema), ("priority_level", level))


_GAUGES: tuple[tuple[str, str, Callable[[Level], float]], ...] = (
    ("current_executing_requests", "Requests in their seats.", lambda level: level.executing),
    ("current_executing_seats", "Seats in use.", lambda level: level.taken),
    ("current_inqueue_requests", "Requests in queues.", lambda level: level.waiting),
    ("current_inqueue_seats", "Seats that waiting requests would fill.", lambda level: level.wanted),
    ("current_limit_seats", "Seats after lending and borrowing.", lambda level: level.seats),
    ("nominal_limit_seats", "Seats by shares.", lambda level: level.bounds.nominal),
    ("lower_limit_seats", "Seats that are never lent.", lambda level: level.bounds.least),
    ("upper_limit_seats", "The most by borrowing.", lambda level: level.bounds.most),
    ("demand_seats_high_watermark", "Most seats wanted in the last period.", lambda level: level.demand.highest),
    ("demand_seats_average", "Seats wanted on average in the last period.", lambda level: level.demand.mean),
    ("demand_seats_stdev", "Deviation of the seats wanted in the last period.", lambda level: level.demand.deviation),
    ("demand_seats_smoothed", "Smoothed demand.", lambda level: level.smooth),
)
