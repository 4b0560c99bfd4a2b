from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import syncline.cluster.storage.store as store_module
from syncline.cluster.storage.store import Compacted, Event, EventType, Key, Store, StoreConflict, Stored

PODS = "/pods"


def pod(name: str, namespace: str = "demo", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"u-{name}", "labels": labels},
    }


def key(name: str, namespace: str = "demo") -> Key:
    return Key(PODS, namespace, name)


def put(store: Store, name: str, namespace: str = "demo", **labels: str) -> Stored:
    return store.put(key(name, namespace), pod(name, namespace, **labels), expect=None)


def names(page: list[Stored]) -> list[str]:
    return [stored.key.name for stored in page]


def test_a_write_stamps_its_revision_on_its_own_copy() -> None:
    store = Store()
    given_obj = pod("a", app="web")
    stored = store.put(key("a"), given_obj, expect=0)
    assert "resourceVersion" not in given_obj["metadata"]
    assert msgspec.json.decode(stored.raw)["metadata"]["resourceVersion"] == "1"
    assert (stored.uid, stored.labels, store.revision) == ("u-a", {"app": "web"}, 1)


@pytest.mark.parametrize(("expect", "found"), [(0, 1), (7, 1)])
def test_a_write_with_another_expectation_is_refused_and_uses_no_revision(expect: int, found: int) -> None:
    store = Store()
    put(store, "a")
    with pytest.raises(StoreConflict) as caught:
        store.put(key("a"), pod("a"), expect=expect)
    assert (caught.value.expected, caught.value.found, store.revision) == (expect, found, 1)


def test_deleting_what_is_not_there_is_a_conflict_with_revision_zero() -> None:
    with pytest.raises(StoreConflict) as caught:
        Store().delete(key("a"), expect=None)
    assert caught.value.found == 0


def test_a_deletion_has_its_own_revision_and_shows_the_last_state() -> None:
    store = Store()
    put(store, "a", app="web")
    event = store.delete(key("a"), expect=1)
    assert (event.revision, event.type, event.stored.labels) == (2, EventType.DELETED, {"app": "web"})
    assert event.stored.obj["metadata"]["resourceVersion"] == "2"
    assert event.previous is not None and event.previous.obj["metadata"]["resourceVersion"] == "1"
    assert store.get(key("a")) is None


def test_lists_are_sorted_by_namespace_and_name_and_counted_without_a_scan() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y")):
        put(store, name, namespace)
    assert [s.key[1:] for s in store.list(PODS)] == [("a", "y"), ("a", "z"), ("b", "x")]
    assert names(store.list(PODS, "b")) == ["x"]
    assert (store.count(PODS), store.count(PODS, "a"), store.count(PODS, "none"), store.count("/x")) == (3, 2, 0, 0)


def test_pages_of_one_list_show_one_instant() -> None:
    store = Store()
    for name in "abcd":
        put(store, name)
    first = store.list_page(PODS, "demo", limit=2)
    at = store.revision
    store.delete(key("c"), expect=None)
    put(store, "bb")
    changed = put(store, "d", app="new")
    rest = store.list_page(PODS, "demo", after=("demo", "b"), limit=5, at=at)
    assert names(first) + names(rest) == ["a", "b", "c", "d"]
    assert rest[-1].labels == {} and changed.labels == {"app": "new"}


def test_a_page_of_a_forgotten_instant_is_refused() -> None:
    store = Store()
    for name in "ab":
        put(store, name)
    store.compact(2)
    with pytest.raises(Compacted):
        store.list_page(PODS, at=1)
    assert names(store.list_page(PODS, at=2)) == ["a", "b"]


def test_a_watch_gets_the_history_after_its_revision_and_then_what_comes() -> None:
    store = Store()
    put(store, "a")
    put(store, "b")
    cursor = store.watch(PODS, since=1)
    assert [e.stored.key.name for e in cursor.take()] == ["b"]
    put(store, "c", "other")
    put(store, "b")
    events = cursor.take()
    assert [(e.type.value, e.stored.key.name) for e in events] == [("ADDED", "c"), ("MODIFIED", "b")]


def test_a_watch_of_one_namespace_sees_only_that() -> None:
    store = Store()
    put(store, "old", "b")
    cursor = store.watch(PODS, "a", since=0)
    put(store, "x", "b")
    put(store, "y", "a")
    assert [e.stored.key.name for e in cursor.take()] == ["y"]


def test_a_watch_from_before_the_compaction_is_refused() -> None:
    store = Store()
    put(store, "a")
    put(store, "b")
    store.compact(2)
    with pytest.raises(Compacted) as caught:
        store.watch(PODS, since=1)
    assert (caught.value.requested, caught.value.compacted) == (1, 2)
    assert store.watch(PODS, since=2).take() == []


def test_a_reader_is_woken_once_per_emptiness() -> None:
    store = Store()
    cursor = store.watch(PODS, since=0)
    calls: list[int] = []
    cursor.on_ready = lambda: calls.append(store.revision)
    put(store, "a")
    put(store, "b")
    assert calls == [1]
    assert len(cursor.take(1)) == 1
    put(store, "c")
    assert calls == [1], "something was left to take, so the reader is not asleep"
    assert len(cursor.take()) == 2
    put(store, "d")
    assert calls == [1, 4]


def test_a_closed_watch_costs_nothing_and_ends() -> None:
    store = Store()
    cursor = store.watch(PODS, since=0)
    put(store, "a")
    cursor.close()
    cursor.close()
    assert cursor.ended and cursor.take() == [] and not store._cursors


def test_a_watcher_too_slow_gets_what_was_queued_and_then_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "CURSOR_LIMIT_EVENTS", 2)
    store = Store()
    cursor = store.watch(PODS, since=0)
    for name in "abc":
        put(store, name)
    assert cursor.overrun and not cursor.ended
    assert [e.stored.key.name for e in cursor.take()] == ["a", "b"]
    assert cursor.ended


def test_history_is_bounded_by_count_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "HISTORY_LIMIT_EVENTS", 20)
    store = Store()
    for _ in range(100):
        put(store, "a")
    assert len(store._history) <= 20 and store.compacted >= 80
    assert len(store.watch(PODS, since=store.compacted).take()) == 100 - store.compacted
    monkeypatch.setattr(store_module, "HISTORY_LIMIT_BYTES", 1000)
    put(store, "a")
    for _ in range(20):
        put(store, "a")
    assert store._history_bytes <= 1000


def test_with_a_disk_watchers_see_only_what_is_durable() -> None:
    store = Store(durable=True)
    cursor = store.watch(PODS, since=0)
    woken: list[int] = []
    cursor.on_ready = lambda: woken.append(store.committed)
    put(store, "a")
    put(store, "b")
    assert cursor.take() == [] and woken == [] and cursor.revision == 0
    store.mark_durable(1)
    assert [e.revision for e in cursor.take()] == [1] and woken == [1] and cursor.revision == 1
    store.mark_durable(2)
    assert [e.revision for e in cursor.take()] == [2] and woken == [1, 2]


def test_a_bookmark_promises_everything_up_to_the_stores_revision_once_the_queue_is_empty() -> None:
    store = Store()
    cursor = store.watch(PODS, since=0)
    store.put(Key("/secrets", "demo", "s"), pod("s"), expect=None)
    assert cursor.revision == 1
    put(store, "a")
    assert cursor.revision == 0, "event 2 is not taken yet, and a promise about 1 alone is never made"
    cursor.take()
    assert cursor.revision == 2


def test_a_restored_store_goes_on_counting_and_has_no_history() -> None:
    old = Store()
    put(old, "a", app="web")
    put(old, "b")
    old.delete(key("b"), expect=None)
    new = Store()
    new.restore(old.revision, [Stored.load(s.key, s.revision, s.raw) for s in old.list(PODS)])
    assert (new.revision, new.compacted, names(new.list(PODS))) == (3, 3, ["a"])
    restored = new.list(PODS)[0]
    assert (restored.uid, restored.labels, restored.obj) == ("u-a", {"app": "web"}, old.list(PODS)[0].obj)
    assert put(new, "c").revision == 4


def test_subscribers_hear_every_event_in_order() -> None:
    store = Store()
    heard: list[Event] = []
    store.subscribe(heard.append)
    put(store, "a")
    put(store, "a")
    store.delete(key("a"), expect=None)
    assert [e.type for e in heard] == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED]


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from(["n1", "n2"]), st.sampled_from("abcd")), max_size=40
)


def _run(store: Store, steps: list[tuple[str, str, str]], after_each: Callable[[], None]) -> None:
    for verb, namespace, name in steps:
        if verb == "put":
            put(store, name, namespace)
        elif store.get(key(name, namespace)):
            store.delete(key(name, namespace), expect=None)
        after_each()


def _versions(page: list[Stored]) -> dict[tuple[str, str], int]:
    return {stored.key[1:]: stored.revision for stored in page}


@given(steps=STEPS, namespace=st.sampled_from(["", "n1"]), compact=st.integers(0, 40))
def test_watching_from_any_retained_revision_replays_to_what_a_list_shows(
    steps: list[tuple[str, str, str]], namespace: str, compact: int
) -> None:
    store = Store()
    seen = {0: store.list(PODS, namespace)}
    _run(store, steps, lambda: seen.update({store.revision: store.list(PODS, namespace)}))
    store.compact(min(compact, store.revision))
    for revision in range(store.compacted, store.revision + 1):
        state = _versions(seen[revision])
        assert state == _versions(store.list_page(PODS, namespace, at=revision))
        for event in store.watch(PODS, namespace, since=revision).take(10_000):
            if event.type is EventType.DELETED:
                del state[event.stored.key[1:]]
            else:
                state[event.stored.key[1:]] = event.revision
        assert state == _versions(store.list(PODS, namespace))


@given(steps=STEPS, limit=st.integers(1, 3), namespace=st.sampled_from(["", "n2"]))
def test_pages_join_to_the_list_at_their_revision_whatever_is_written_between(
    steps: list[tuple[str, str, str]], limit: int, namespace: str
) -> None:
    store = Store()
    half = len(steps) // 2
    _run(store, steps[:half], lambda: None)
    at, whole = store.revision, _versions(store.list(PODS, namespace))
    joined: list[Stored] = []
    after: tuple[str, str] | None = None
    pending = list(steps[half:])
    while True:
        page = store.list_page(PODS, namespace, after=after, limit=limit, at=at)
        joined += page
        if len(page) < limit:
            break
        after = (page[-1].key.namespace, page[-1].key.name)
        _run(store, pending[:2], lambda: None)
        del pending[:2]
    assert _versions(joined) == whole and [s.key for s in joined] == sorted(s.key for s in joined)
