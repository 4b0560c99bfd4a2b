"""What people are told is bounded: Events live for an hour after they were last said."""

from __future__ import annotations

from tests.cluster.world import World

EVENTS = "/api/v1/namespaces/default/events"


def event(name: str, said: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Said",
        "lastTimestamp": said,
        "firstTimestamp": said,
    }


def test_an_event_goes_after_its_hour_and_one_said_again_stays_longer() -> None:
    world = World()
    world.post(EVENTS, event("once", "2026-01-01T00:00:00Z"))
    world.post(EVENTS, event("again", "2026-01-01T00:00:00Z"))
    world.advance(1800)
    world.merge(f"{EVENTS}/again", {"count": 2, "lastTimestamp": "2026-01-01T00:30:00Z"})
    world.advance(1801)
    assert [e["metadata"]["name"] for e in world.items(EVENTS)] == ["again"]
    world.advance(1800)
    assert world.items(EVENTS) == []
