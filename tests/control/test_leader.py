"""Leases as their holders and their rivals read them; rounds against the embedded API."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from syncline.base.clock import EPOCH
from syncline.control.leader import (
    LEASES,
    Free,
    Held,
    LeaderSettings,
    Mine,
    Share,
    lease_plan,
    release_all,
    shard_of,
    share_round,
)
from syncline.kube.client import Request, Response
from syncline.kube.errors import Unavailable
from syncline.kube.objects import Obj, ObjectRef

SECOND = timedelta(seconds=1)


def lease(holder: str, duration: int = 15, version: str = "7") -> Obj:
    return {
        "metadata": {"name": "l", "resourceVersion": version},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": "2001-01-01T00:00:00Z"},
    }


class Leases:
    """The part of an API that Leases need: resourceVersions, conflicts, being away."""

    def __init__(self) -> None:
        self.objects: dict[str, Obj] = {}
        self.version = 0
        self.away = False
        self.swallows_answers = False

    def send(self, request: Request) -> Response:
        if self.away:
            return Response.refused(Unavailable("away"))
        answer = self._answer(request)
        if self.swallows_answers and request.method != "GET":
            return Response.refused(Unavailable("the answer was lost"))
        return answer

    def _answer(self, request: Request) -> Response:
        name = request.path.removeprefix(LEASES.path("ns")).strip("/")
        found = self.objects.get(name)
        if request.method == "GET" and not name:
            return Response.of(200, {"items": list(self.objects.values())})
        if request.method == "POST":
            created = str(request.body["metadata"]["name"])
            return Response.of(409, {}) if created in self.objects else self._keep(created, request.body)
        if found is None:
            return Response.of(404, {})
        if request.method == "DELETE":
            return Response.of(200, self.objects.pop(name))
        if request.method == "PUT":
            stale = request.body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]
            return Response.of(409, {}) if stale else self._keep(name, request.body)
        return Response.of(200, found)

    def _keep(self, name: str, body: Any) -> Response:
        self.version += 1
        self.objects[name] = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return Response.of(200, self.objects[name])


class Replica:
    """One process in steps."""

    def __init__(self, api: Leases, name: str, shards: int = 1) -> None:
        self.api = api
        self.settings = LeaderSettings(name, "ns", shards=shards)
        self.share = Share()

    def round(self, at: float, busy: frozenset[int] = frozenset()) -> frozenset[int]:
        now = EPOCH + at * SECOND
        self.share = self._drive(share_round(self.share, self.settings, now, busy))
        return self.share.working(self.settings, now)

    def dropped(self) -> None:
        """Its work was dropped because the Leases could not be renewed."""
        self.share = self.share.lost()

    def stop(self, at: float) -> None:
        self._drive(release_all(self.share, self.settings, EPOCH + at * SECOND))

    def _drive(self, steps: Any) -> Any:
        try:
            request = next(steps)
            while True:
                request = steps.send(self.api.send(request))
        except StopIteration as stop:
            return stop.value


@pytest.fixture
def api() -> Iterator[Leases]:
    yield Leases()


def test_a_lease_that_nobody_made_or_that_was_given_back_is_free() -> None:
    assert isinstance(lease_plan(None, "me", EPOCH), Free)
    assert isinstance(lease_plan(lease(""), "me", EPOCH), Free)


def test_our_own_lease_is_ours_however_old_its_time_stamp() -> None:
    assert lease_plan(lease("me"), "me", EPOCH) == Mine()


def test_a_lease_of_our_name_that_this_process_did_not_acquire_is_another_ones() -> None:
    ours = lease("me")
    ours["spec"]["acquireTime"] = "then"
    assert lease_plan(ours, "me", EPOCH, acquired="then") == Mine()
    held = lease_plan(ours, "me", EPOCH, acquired="")
    assert held == Held("another process named me", EPOCH + 15 * SECOND)
    assert isinstance(lease_plan(ours, "me", EPOCH + 15 * SECOND, unchanged_since=EPOCH, acquired=""), Free)


def test_a_lease_cannot_claim_to_last_for_ever() -> None:
    held = lease_plan(lease("other", duration=10**30), "me", EPOCH)
    assert held == Held("other", EPOCH + timedelta(hours=1))


def test_the_clock_of_another_machine_is_not_believed() -> None:
    assert lease_plan(lease("other"), "me", EPOCH) == Held("other", EPOCH + 15 * SECOND)


def test_a_lease_is_free_when_it_did_not_change_for_its_duration_before_our_eyes() -> None:
    held = lease("other")
    assert isinstance(lease_plan(held, "me", EPOCH + 14 * SECOND, unchanged_since=EPOCH), Held)
    assert isinstance(lease_plan(held, "me", EPOCH + 15 * SECOND, unchanged_since=EPOCH), Free)


def test_one_of_two_replicas_works_and_the_other_takes_over_when_it_goes_silent(api: Leases) -> None:
    a, b = Replica(api, "a"), Replica(api, "b")
    assert (a.round(0), b.round(0)) == ({0}, frozenset())
    assert (a.round(2), b.round(2)) == ({0}, frozenset())
    assert b.round(16) == frozenset()
    assert b.round(17.5) == {0}
    assert api.objects[b.settings.name]["spec"]["leaseTransitions"] == 1


def test_a_lease_given_back_at_the_end_is_taken_at_once(api: Leases) -> None:
    a, b = Replica(api, "a"), Replica(api, "b")
    a.round(0)
    b.round(0)
    a.stop(1)
    assert b.round(2) == {0}


def test_a_replica_that_cannot_renew_stops_before_another_may_begin(api: Leases) -> None:
    a, b = Replica(api, "a"), Replica(api, "b")
    a.round(0)
    b.round(0)
    api.away = True
    assert a.round(9) == {0}
    assert a.round(10) == frozenset()
    api.away = False
    assert b.round(10) == frozenset()


def test_who_finds_its_lease_in_other_hands_has_lost_it(api: Leases) -> None:
    a, b = Replica(api, "a"), Replica(api, "b")
    a.round(0)
    b.round(0)
    assert b.round(16) == {0}
    assert a.round(16.5) == frozenset()


@pytest.mark.parametrize("shards", [1, 3])
def test_a_process_restarted_under_its_name_takes_over_once_the_lease_has_run_out(api: Leases, shards: int) -> None:
    killed = Replica(api, "a", shards)
    killed.round(0)
    killed.round(2)
    again = Replica(api, "a", shards)
    assert [len(again.round(at)) for at in (3, 5, 17)] == [0, 0, 0]
    assert len(again.round(18.5)) == shards


@pytest.mark.parametrize("shards", [1, 3])
def test_of_two_processes_with_one_name_never_both_work(api: Leases, shards: int) -> None:
    first, second = Replica(api, "a", shards), Replica(api, "a", shards)
    for at in range(0, 100, 2):
        assert first.round(at) == frozenset(range(shards))
        assert second.round(at + 1) == frozenset()
    for at in range(100, 130, 2):
        second.round(at)
    assert second.round(130) == frozenset(range(shards))
    assert first.round(131) == frozenset()


def test_a_process_whose_work_was_dropped_takes_its_own_lease_again_at_once(api: Leases) -> None:
    """The API froze for 20 seconds and nobody else is there: nothing may wait for ever on its own name."""
    alone = Replica(api, "a")
    alone.round(0)
    api.away = True
    assert alone.round(11) == frozenset()
    alone.dropped()
    assert alone.round(20) == frozenset()
    api.away = False
    assert alone.round(22) == {0}
    assert alone.share.why.endswith(": ours")


def test_a_write_whose_answer_was_lost_is_known_as_ours(api: Leases) -> None:
    one = Replica(api, "a")
    api.swallows_answers = True
    assert one.round(0) == frozenset()
    api.swallows_answers = False
    assert one.round(2) == {0}
    api.swallows_answers = True
    assert one.round(4) == {0}
    api.swallows_answers = False
    assert one.round(6) == {0}


def test_only_what_this_process_acquired_is_given_back(api: Leases) -> None:
    first, second = Replica(api, "a"), Replica(api, "a")
    first.round(0)
    second.round(0)
    assert second.round(16) == {0}
    first.stop(17)
    assert api.objects[first.settings.name]["spec"]["holderIdentity"] == "a"
    assert second.round(18) == {0}


def test_a_lease_that_is_ours_to_take_and_stays_free_is_told(api: Leases) -> None:
    class Unwritable(Leases):
        def send(self, request: Request) -> Response:
            return Response.of(403, {"message": "no"}) if request.method != "GET" else super().send(request)

    one = Replica(Unwritable(), "a")
    for at in (0, 2, 4):
        assert one.round(at) == frozenset()
    assert one.share.vacant_since == EPOCH
    assert one.share.trouble == f"Lease {one.settings.name} cannot be written: no"


def test_replicas_share_the_shards_evenly_and_no_shard_twice(api: Leases) -> None:
    replicas = [Replica(api, name, shards=7) for name in ("a", "b", "c")]
    worked: list[list[frozenset[int]]] = [[one.round(at) for one in replicas] for at in range(0, 40, 2)]
    for row in worked:
        assert sum(map(len, row)) == len(frozenset().union(*row))
    assert sorted(map(len, worked[-1])) == [2, 2, 3]


def test_a_shard_goes_to_a_new_replica_only_when_nothing_of_it_is_being_worked_on(api: Leases) -> None:
    a, b = Replica(api, "a", shards=2), Replica(api, "b", shards=2)
    assert a.round(0) == {0, 1}
    b.round(0)
    assert a.round(2) == {0}
    assert b.round(2) == frozenset()
    a.round(4, busy=frozenset({1}))
    assert b.round(4) == frozenset()
    a.round(6)
    assert b.round(6) == {1}


def test_what_a_dead_replica_left_is_taken_and_cleared_away(api: Leases) -> None:
    a, b = Replica(api, "a", shards=2), Replica(api, "b", shards=2)
    for at in (0, 2, 4, 6):
        a.round(at)
        b.round(at)
    assert len(api.objects) == 4
    b.round(20)
    assert b.round(22) == {0, 1}
    assert sorted(api.objects) == [f"{b.settings.name}-{end}" for end in ("0", "1", "member-b")]


def test_replicas_that_count_shards_differently_never_work_at_the_same_time(api: Leases) -> None:
    a, b = Replica(api, "a", shards=1), Replica(api, "b", shards=2)
    assert a.round(0) == {0}
    assert b.round(0) == frozenset()
    assert "a works with 1 shards" in b.share.why
    a.stop(1)
    assert b.round(2) == {0, 1}


def test_a_refusal_is_told_and_not_raised(api: Leases) -> None:
    api.away = True
    a = Replica(api, "a")
    assert a.round(0) == frozenset()
    assert a.share.why == "Leases cannot be read: away"


def test_an_object_is_in_the_same_shard_in_every_process() -> None:
    refs = [ObjectRef("argoproj.io", "Application", "argocd", f"app-{n}") for n in range(1000)]
    assert [shard_of(ref, 4) for ref in refs[:4]] == [shard_of(ref._replace(), 4) for ref in refs[:4]]
    sizes = [sum(shard_of(ref, 4) == shard for ref in refs) for shard in range(4)]
    assert min(sizes) > 200
