"""Writes for which the disk had no space are taken back: as if they had never been, but for their revisions."""

from __future__ import annotations

import asyncio
import random

import pytest

from syncline.cluster.serving.serve import Durability
from syncline.cluster.storage.store import Compacted, Event, EventType, Key, Store, WriteRefused

RESOURCE = "/configmaps"


def key(name: str) -> Key:
    return Key(RESOURCE, "demo", name)


def put(store: Store, name: str, value: int) -> int:
    return store.put(key(name), {"metadata": {"name": name}, "data": {"v": str(value)}}, expect=None).revision


def state(store: Store) -> dict[str, tuple[int, bytes]]:
    return {stored.key.name: (stored.revision, stored.raw) for stored in store.list(RESOURCE)}


def test_everything_is_as_it_was_and_watchers_never_hear_of_it() -> None:
    store = Store(durable=True)
    put(store, "a", 1)
    put(store, "b", 1)
    store.mark_durable(2)
    before, told = state(store), list[tuple[EventType, str]]()
    store.subscribe(lambda event: told.append((event.type, event.stored.key.name)))
    watching = store.watch(RESOURCE, since=2)
    put(store, "a", 2)
    store.delete(key("b"), expect=None)
    put(store, "c", 1)
    put(store, "c", 2)
    del told[:]
    assert store.take_back() == 4
    assert state(store) == before and store.revision == store.committed == 2 and store.count(RESOURCE) == 2
    assert told == [
        (EventType.MODIFIED, "c"),
        (EventType.DELETED, "c"),
        (EventType.ADDED, "b"),
        (EventType.MODIFIED, "a"),
    ]
    assert watching.take() == [] and watching.revision == 2
    assert put(store, "d", 1) == 7, "no revision is given twice"
    store.mark_durable(7)
    assert [event.revision for event in watching.take()] == [7]
    assert [event.revision for event in store.watch(RESOURCE, since=2).take()] == [7]


def test_an_answer_that_is_ready_only_after_its_write_was_taken_back_is_refused() -> None:
    """A large request writes, and its answer is encoded beside the loop: the disk may say meanwhile that it is full."""
    store = Store(durable=True)
    durability = Durability(store)
    first = put(store, "a", 1)
    durability.take_back(WriteRefused("database space exceeded"))
    kept = put(store, "b", 1)
    durability.advance(kept)
    second = put(store, "c", 1)
    durability.take_back(WriteRefused("database space exceeded"))

    async def ends(revision: int) -> bool:
        async with asyncio.timeout(60):
            await durability.wait(revision)
        return True

    for undone in (first, second):
        with pytest.raises(WriteRefused):
            asyncio.run(ends(undone))
    assert asyncio.run(ends(kept))


def test_whoever_saw_what_was_taken_back_lists_again() -> None:
    store = Store(durable=True)
    put(store, "a", 1)
    store.mark_durable(1)
    put(store, "a", 2)
    put(store, "a", 3)
    store.take_back()
    put(store, "a", 4)
    store.mark_durable(4)
    for observed in (2, 3):
        with pytest.raises(Compacted):
            store.watch(RESOURCE, since=observed)
        with pytest.raises(Compacted):
            store.list_page(RESOURCE, at=observed)
    assert [stored.revision for stored in store.list_page(RESOURCE, at=1)] == [1]


def test_whatever_is_taken_back_when_store_and_subscribers_agree_with_what_is_durable() -> None:
    chance, undone = random.Random(11), 0
    for _ in range(150):
        store, replica = Store(durable=True), dict[str, bytes]()

        def follow(event: Event, replica: dict[str, bytes] = replica) -> None:
            if event.type is EventType.DELETED:
                del replica[event.stored.key.name]
            else:
                assert (event.stored.key.name in replica) is (event.type is EventType.MODIFIED)
                replica[event.stored.key.name] = event.stored.raw

        store.subscribe(follow)
        durable, revisions, heard = state(store), list[int](), list[int]()
        watching = store.watch(RESOURCE, since=0)
        for number in range(40):
            if replica and chance.random() < 0.35:
                name = chance.choice(sorted(replica))
                revisions.append(store.delete(key(name), expect=None).revision)
            else:
                revisions.append(put(store, f"c{chance.randrange(5)}", number))
            if chance.random() < 0.2:
                store.mark_durable(store.revision)
                durable = state(store)
            elif chance.random() < 0.2:
                undone += store.take_back()
                assert state(store) == durable
            assert replica == {name: raw for name, (_, raw) in state(store).items()}
            heard += [event.revision for event in watching.take()]
        assert revisions == sorted(set(revisions)), "no revision is given twice"
        store.mark_durable(store.revision)
        heard += [event.revision for event in watching.take()]
        assert heard == [event.revision for event in store.watch(RESOURCE, since=0).take()]
    assert undone > 1000
