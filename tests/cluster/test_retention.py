"""The history is bounded by number, bytes and time; a watch from before it hears so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.conftest import Figure

from syncline.cluster.storage.retention import KEPT_FOR, LOOK_EVERY, Retention
from syncline.cluster.storage.store import HISTORY_LIMIT_BYTES, HISTORY_LIMIT_EVENTS, Compacted, Key, Store

BEGIN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def test_a_revision_is_old_when_it_was_the_newest_before_the_time_kept() -> None:
    retention = Retention(timedelta(minutes=10))
    told = [retention.note(BEGIN + timedelta(minutes=minute), minute * 100) for minute in range(15)]
    assert told == [0] * 10 + [0, 100, 200, 300, 400]


def test_a_clock_that_is_set_back_forgets_nothing_early() -> None:
    retention = Retention(timedelta(minutes=10))
    retention.note(BEGIN, 5)
    assert retention.note(BEGIN - timedelta(hours=2), 9) == 0
    assert retention.note(BEGIN + timedelta(minutes=9), 12) == 0
    assert retention.note(BEGIN + timedelta(minutes=10), 13) == 5


def test_an_hour_of_churn_leaves_a_bounded_history_and_quiet_empties_it(figure: Figure) -> None:
    store, retention, now, most = Store(), Retention(), BEGIN, 0
    key = [Key("/configmaps", "demo", f"c{number}") for number in range(100)]
    for minute in range(60):
        for write in range(1200):  # 20 a second, 72,000 in all
            store.put(
                key[write % 100], {"metadata": {"name": key[write % 100].name}, "data": {"v": "x" * 500}}, expect=None
            )
        now = BEGIN + minute * LOOK_EVERY
        store.compact(retention.note(now, store.committed))
        most = max(most, len(store._history))
        assert store._history_bytes <= HISTORY_LIMIT_BYTES
        assert sum(len(each.events) for each in store._collections.values()) == len(store._history)
    assert most <= min(HISTORY_LIMIT_EVENTS, 1200 * (KEPT_FOR // LOOK_EVERY + 1))
    recent = store.compacted
    assert next(iter(store.watch("/configmaps", since=recent).take(1))).revision == recent + 1
    with pytest.raises(Compacted):
        store.watch("/configmaps", since=recent - 1)
    for minute in range(60, 77):
        store.compact(retention.note(BEGIN + minute * LOOK_EVERY, store.committed))
    assert not store._history and not store._history_bytes
    assert store.watch("/configmaps", since=store.revision).take(1) == []
    figure("history after 72,000 writes in an hour", f"{most} changes at most, 0 after {KEPT_FOR} without one")
