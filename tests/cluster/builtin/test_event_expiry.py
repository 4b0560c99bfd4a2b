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
    world.advance(1799)
    assert len(world.items(EVENTS)) == 2
    world.advance(62)  # Events of a minute go together, as those of a lease do
    assert [e["metadata"]["name"] for e in world.items(EVENTS)] == ["again"]
    world.advance(1800)
    assert world.items(EVENTS) == []


def test_events_of_a_minute_go_in_one_pass_whatever_their_order() -> None:
    world = World()
    for number in (5, 3, 9, 1, 7):
        world.post(EVENTS, event(f"e{number}", "2026-01-01T00:00:00Z"))
    world.advance(3000)
    steps = world.driver.steps
    world.advance(661)
    assert world.items(EVENTS) == [] and world.driver.steps - steps < 5


def test_events_of_before_a_restart_go_in_their_time() -> None:
    world = World()
    for number in range(4):
        world.post(EVENTS, event(f"e{number}", "2026-01-01T00:00:00Z"))
        world.advance(50)
    world.restart()
    world.advance(3300)
    assert len(world.items(EVENTS)) == 4
    world.advance(360)
    assert world.items(EVENTS) == []
