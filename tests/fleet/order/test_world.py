"""Order over clusters in virtual time: five clusters with their agents and their own GitOps controllers."""

from __future__ import annotations

from tests.fleet.order.worlds import ROLLOUT, WAVES, carried, five, ordered_set, push, rollout, spec, until
from tests.fleet.test_pull_controllers import SETS
from tests.fleet.world import Fleet


def test_clusters_get_a_release_wave_by_wave_when_the_one_before_proved_it() -> None:
    fleet = five()
    fleet.hub.send("POST", SETS, ordered_set(healthy_for="20s"))
    until(fleet, 900, "Done")
    assert carried(fleet) == dict.fromkeys(WAVES, "v1")
    push(fleet, "v2")
    seen: list[set[str]] = []
    for _ in range(300):
        fleet.time.advance(3)
        new = {name for name, revision in carried(fleet).items() if revision == "v2"}
        if not seen or new != seen[-1]:
            seen.append(new)
        if rollout(fleet)["status"]["phase"] == "Done" and len(new) == 5:
            break
    waves = [sorted(WAVES[name] for name in one) for one in seen]
    assert waves[-1] == [0, 1, 1, 2, 2], rollout(fleet)["status"]
    assert all(one in ([], [0], [0, 1], [0, 1, 1], [0, 1, 1, 2], [0, 1, 1, 2, 2]) for one in waves)


def _done(fleet: Fleet) -> None:
    fleet.hub.send("POST", SETS, ordered_set(healthy_for="5s"))
    until(fleet, 900, "Done")


def test_a_canary_that_fails_stops_the_rest_until_a_fix_is_pushed() -> None:
    fleet = five()
    _done(fleet)
    push(fleet, "bad")
    found = until(fleet, 300, "Failed")
    assert "c1" in found["status"]["message"]
    assert "the chart does not render" in found["status"]["message"]
    fleet.time.advance(60)
    assert carried(fleet) == {**dict.fromkeys(WAVES, "v1"), "c1": "bad"}
    waits = {one["cluster"]: one["why"] for one in rollout(fleet)["status"]["clusters"] if one["cluster"] != "c1"}
    assert waits.keys() == {"c2", "c3", "c4", "c5"}
    assert all("stopped by a failure: cluster c1" in why for why in waits.values())
    push(fleet, "v3")
    found = until(fleet, 900, "Done")
    assert carried(fleet) == dict.fromkeys(WAVES, "v3")
    assert [one["outcome"] for one in found["status"]["history"]] == ["Done", "Superseded", "Done"]


def test_a_stopped_group_begins_nothing_and_goes_on_when_resumed() -> None:
    fleet = five()
    _done(fleet)
    spec(fleet, stopped={"reason": "a holiday"})
    push(fleet, "v2")
    fleet.time.advance(30)
    assert carried(fleet) == dict.fromkeys(WAVES, "v1")
    assert "a holiday" in rollout(fleet)["status"]["message"]
    spec(fleet, stopped=None)
    until(fleet, 900, "Done")
    assert carried(fleet) == dict.fromkeys(WAVES, "v2")


def test_a_skipped_cluster_is_neither_waited_for_nor_written() -> None:
    fleet = five()
    _done(fleet)
    push(fleet, "bad")
    release = until(fleet, 300, "Failed")["status"]["release"]
    spec(fleet, skip=[{"cluster": name, "release": release} for name in ("c1", "c4")])
    fleet.time.advance(60)
    now = carried(fleet)
    assert (now["c1"], now["c4"]) == ("bad", "v1")
    assert now["c2"] == now["c3"] == "bad", "nothing waits for c1 any more"


def test_a_roll_back_goes_in_reverse_order_and_ends() -> None:
    fleet = five()
    _done(fleet)
    push(fleet, "v2")
    release = until(fleet, 900, "Done")["status"]["release"]
    spec(fleet, rollBack={"from": release, "reason": "slow"})
    seen: list[list[int]] = []
    for _ in range(100):
        fleet.time.advance(1)
        back = sorted(WAVES[name] for name, revision in carried(fleet).items() if revision == "v1")
        if not seen or back != seen[-1]:
            seen.append(back)
        if rollout(fleet)["status"]["phase"] == "RolledBack":
            break
    assert seen[-1] == [0, 1, 1, 2, 2], rollout(fleet)["status"]
    assert all(one in ([], [2], [2, 2], [1, 2, 2], [1, 1, 2, 2], [0, 1, 1, 2, 2]) for one in seen)
    push(fleet, "v3")
    until(fleet, 900, "Done")
    assert carried(fleet) == dict.fromkeys(WAVES, "v3"), "another release ends the roll back"


def test_permits_that_a_person_deletes_are_given_again() -> None:
    fleet = five()
    _done(fleet)
    push(fleet, "v2")
    until(fleet, 60, "Progressing")
    fleet.hub.send("PATCH", f"{ROLLOUT}/status", {"status": {"clusters": [], "phase": None, "release": None}})
    until(fleet, 900, "Done")
    assert carried(fleet) == dict.fromkeys(WAVES, "v2")


def test_a_cluster_that_is_away_holds_later_waves_until_it_returns() -> None:
    fleet = five()
    _done(fleet)
    fleet.members["c2"].hub_cable.cut()
    fleet.time.advance(400)
    push(fleet, "v2")
    fleet.time.advance(60)
    assert carried(fleet) == {"c1": "v2", "c2": "v1", "c3": "v2", "c4": "v1", "c5": "v1"}
    whys = {one["cluster"]: one["why"] for one in rollout(fleet)["status"]["clusters"]}
    assert "cluster c2 is not available since" in whys["c2"]
    assert "wave 1 comes first: web-c2 on cluster c2" in whys["c4"]
    fleet.members["c2"].hub_cable.mend()
    until(fleet, 900, "Done")
    assert carried(fleet) == dict.fromkeys(WAVES, "v2")
