"""The work agent among faults: it is killed after each write, requests fail, the hub and the cluster are away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.fleet.agents import Counted, Place, maps
from tests.fleet.world import MERGE, Fleet, config_map

from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, Conflict, InternalError, Unavailable
from syncline.kube.objects import Obj, dig, owner_references
from syncline.rehearsal.seams import Killed

MOST_WRITES = 60
"""More than the story has."""


@pytest.fixture(scope="module")
def place() -> Place:
    return Place(Fleet("c1"))


def story(place: Place, name: str) -> list[Callable[[], None]]:
    """A work comes, changes, loses a manifest, and gets a sibling that goes."""
    a, b, c, d = (f"{name}-{one}" for one in "abcd")
    return [
        lambda: place.work(name, config_map(a, v="1"), config_map(b, v="1")),
        lambda: place.manifests(name, config_map(b, v="2"), config_map(c, v="2")),
        lambda: place.work(f"{name}-gone", config_map(b, v="2"), config_map(d)),
        lambda: place.delete(f"{name}-gone"),
    ]


def state(place: Place, name: str) -> Any:
    """Return what is left of the story, without times and versions."""
    work = place.get(name)["status"]
    entries = work["resourceStatus"]["manifests"]
    return (
        place.gone(f"{name}-gone"),
        place.applied(f"{name}-gone") is None,
        [_shown(place.there(maps(f"{name}-{one}"))) for one in "abcd"],
        sorted((one["type"], one["status"]) for one in work["conditions"]),
        [sorted((one["type"], one["status"]) for one in entry["conditions"]) for entry in entries],
        [one["name"][-1:] for one in dig(place.applied(name) or {}, "status", "appliedResources")],
    )


def _shown(obj: Obj | None) -> Any:
    return obj and (obj["data"], len(owner_references(obj)))


END = (
    True,
    True,
    [None, ({"v": "2"}, 1), ({"v": "2"}, 1), None],
    [("Applied", "True"), ("Available", "True")],
    [[("Applied", "True"), ("Available", "True"), ("StatusFeedbackSynced", "True")]] * 2,
    ["b", "c"],
)


def run(place: Place, name: str) -> None:
    for step in story(place, name):
        step()
        place.settle(5)
    place.settle(120)


def both(place: Place, before: Callable[[Request], Response | None]) -> None:
    place.hub.before = place.own.before = before


def is_write(request: Request) -> bool:
    return request.method != "GET" and not any(
        part in request.path for part in ("/leases", "managedclusters", "events")
    )


def test_the_story_ends_as_it_should_without_faults(place: Place) -> None:
    run(place, "calm")
    assert state(place, "calm") == END


class Crash:
    """Kills the agent right after the n-th of its writes."""

    def __init__(self, place: Place, number: int) -> None:
        self.left, self._place = number, place

    def __call__(self, transport: Counted) -> Callable[[Request], Response | None]:
        def before(request: Request) -> Response | None:
            if not is_write(request) or not self.left:
                return None
            self.left -= 1
            if self.left:
                return None
            transport.inner.send(request)
            raise Killed(request.describe())

        return before


def test_killed_after_each_write_it_ends_in_the_same_state(place: Place) -> None:
    number = 0
    for number in range(1, MOST_WRITES):
        crash = Crash(place, number)
        place.hub.before, place.own.before = crash(place.hub), crash(place.own)
        name = f"k{number}"
        for step in story(place, name):
            try:
                step()
                place.settle(5)
            except Killed:
                place.restart()
        place.settle(120)
        assert state(place, name) == END, number
        if crash.left:
            break
        place.delete(name)
        place.settle(2)
    assert 15 < number < MOST_WRITES - 1


@pytest.mark.parametrize(
    "error",
    [Conflict("the object has been modified (injected)"), InternalError("injected"), Unavailable("injected")],
    ids=["409", "500", "503"],
)
def test_refused_requests_change_nothing_in_the_end(place: Place, error: ApiError) -> None:
    counted = 0

    def before(request: Request) -> Response | None:
        nonlocal counted
        if not is_write(request):
            return None
        counted += 1
        return Response.refused(error) if counted % 3 == 1 else None

    both(place, before)
    run(place, f"e{error.code}")
    both(place, lambda _request: None)
    place.settle(300)
    assert state(place, f"e{error.code}") == END
    assert counted > 20


def test_a_lost_answer_is_asked_for_again(place: Place) -> None:
    counted = 0
    inner = {id(one): one.inner for one in (place.hub, place.own)}

    def losing(transport: Counted) -> Callable[[Request], Response | None]:
        def before(request: Request) -> Response | None:
            nonlocal counted
            if not is_write(request):
                return None
            counted += 1
            if counted % 3:
                return None
            inner[id(transport)].send(request)
            return Response.refused(Unavailable("the answer was lost"))

        return before

    place.hub.before, place.own.before = losing(place.hub), losing(place.own)
    run(place, "lost")
    both(place, lambda _request: None)
    place.settle(300)
    assert state(place, "lost") == END


def test_while_the_hub_is_away_drift_is_undone_and_later_everything_is_caught_up(place: Place) -> None:
    place.work("away", config_map("away-a", v="1"), config_map("away-b", v="1"))
    place.work("away-2", config_map("away-c"))
    place.settle(5)
    place.member.hub_cable.cut()
    place.member.send("DELETE", maps("away-a"))
    place.settle(5)
    assert place.there(maps("away-a")) is not None
    place.manifests("away", config_map("away-a", v="2"))
    place.delete("away-2")
    place.settle(600)
    assert dig(place.there(maps("away-a")), "data", "v") == "1"
    assert dig(place.applied("away-2"), "status", "evictionStartTime") is None
    place.member.hub_cable.mend()
    place.settle(130)
    assert dig(place.there(maps("away-a")), "data", "v") == "2"
    assert place.there(maps("away-b")) is None
    assert place.gone("away-2")
    assert place.condition("away", "Applied") == ("True", "AppliedManifestWorkComplete")


def test_a_hub_that_is_away_for_hours_evicts_nothing(place: Place) -> None:
    place.work("kept", config_map("kept"))
    place.settle(5)
    place.member.hub_cable.cut()
    place.settle(3 * 3600)
    assert place.there(maps("kept")) is not None
    place.member.hub_cable.mend()
    place.settle(60)
    assert dig(place.applied("kept"), "status", "evictionStartTime") is None


def test_while_the_cluster_is_away_nothing_is_reported_as_missing(place: Place) -> None:
    place.work("still", config_map("still", v="1"))
    place.settle(5)
    place.member.own_cable.cut()
    place.manifests("still", config_map("still", v="2"))
    place.settle(300)
    assert place.condition("still", "Available") == ("True", "ResourcesAvailable")
    place.member.own_cable.mend()
    place.settle(300)
    assert dig(place.there(maps("still")), "data", "v") == "2"


def test_an_object_that_others_write_at_once_gets_its_owner_at_once() -> None:
    """Controllers of the cluster write an Application as soon as it appears; that is no conflict over fields."""
    place = Place(Fleet("c1"))
    written: list[str] = []

    def meddle(request: Request) -> Response | None:
        if request.method == "PATCH" and "ownerReferences" in str(request.body) and not written:
            written.append(request.path)
            place.member.admin.send(Request("PATCH", maps("a"), headers=MERGE, body={"data": {"theirs": "1"}}))
        return None

    place.own.before = meddle
    config = {
        "resourceIdentifier": {"group": "", "resource": "configmaps", "namespace": "default", "name": "a"},
        "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": True}},
    }
    place.work("w", config_map("a", ours="1"), manifestConfigs=[config])
    place.settle(3)
    assert written == [maps("a")]
    assert place.condition("w", "Applied") == ("True", "AppliedManifestWorkComplete")
    assert place.member.get(maps("a"))["metadata"]["ownerReferences"]
