"""What people ask of a roll-out over clusters: what is written, what they read, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncline.base.clock import parse_time
from syncline.fleet.pull.order import steering
from syncline.fleet.pull.order.steering import Proven, Steered, SteeringError
from syncline.kube.objects import Obj

NOW = parse_time("2026-03-01T12:00:00Z")
OF = {"of": {"kind": "ApplicationSet", "name": "shop"}}
RELEASE = "3fa9c1e2ab44"
MEMBERS = ("aws-1", "aws-2", "aws-3", "aws-4")
WAVES = (
    {"wave": 0, "total": 1, "done": 1},
    {"wave": 1, "total": 2, "inProgress": 1, "pending": 1},
    {"wave": 2, "total": 1, "pending": 1},
)
CLUSTERS = (
    {"cluster": "aws-2", "application": "shop-2", "wave": 1, "state": "Progressing", "release": "aa11"},
    {"cluster": "aws-3", "application": "shop-3", "wave": 1, "state": "Waiting"},
    {"cluster": "aws-4", "application": "shop-4", "wave": 2, "state": "Waiting", "release": "bb22"},
)


def rollout(status: dict[str, Any] | None = None, **spec: Any) -> Obj:
    known = {"release": RELEASE, "waves": WAVES, "clusters": CLUSTERS}
    return {"spec": {**OF, **spec}, "status": known if status is None else status}


def test_stop_says_which_waves_do_not_begin_and_which_clusters_go_on() -> None:
    found = steering.stop(rollout(), "slow", "ada", NOW)
    assert found.spec == {**OF, "stopped": {"since": "2026-03-01T12:00:00Z", "reason": "slow", "by": "ada"}}
    assert found.follows == (
        "wave 1 (1 cluster) does not go further",
        "wave 2 (1 cluster) does not begin",
        "aws-2 goes on: what has begun is not taken back",
    )


def test_stop_puts_a_group_in_order_that_has_no_status_yet() -> None:
    found = steering.stop(rollout({}), "", "", NOW)
    assert found.spec == {**OF, "stopped": {"since": "2026-03-01T12:00:00Z"}} and found.follows == ()


def test_resume_does_not_pass_over_a_cluster_that_failed() -> None:
    failed = [*CLUSTERS[:1], {**CLUSTERS[1], "state": "Failed"}]
    status = {"release": RELEASE, "waves": WAVES, "clusters": failed}
    found = steering.resume(rollout(status, stopped={"since": "x"}))
    assert found.spec == OF
    assert found.follows == (
        "aws-3 failed, which stops the waves after: correct the cause in Git, or pass over a cluster: syncline rollout "
        "skip shop",
    )
    assert steering.resume(rollout(stopped={})).follows == (
        "wave 1 goes on as far as its gates permit: syncline rollout get shop",
    )


def test_skip_counts_for_the_current_release_and_replaces_an_older_one() -> None:
    older = {"cluster": "aws-3", "release": "0123456789ab"}
    other = {"cluster": "aws-1", "release": "0123456789ab"}
    found = steering.skip(rollout(skip=[older, other]), "aws-3", MEMBERS, "ada")
    assert found.spec["skip"] == [other, {"cluster": "aws-3", "release": RELEASE, "by": "ada"}]
    assert found.done == f"passes over cluster aws-3 in release {RELEASE}"
    assert "keeps what it carries" in found.follows[0]


def test_skip_of_a_cluster_that_has_begun_says_that_it_goes_on_there() -> None:
    assert "goes on there" in steering.skip(rollout(), "aws-2", MEMBERS, "").follows[0]


def test_unskip_leaves_no_empty_list() -> None:
    found = steering.unskip(rollout(skip=[{"cluster": "aws-3", "release": RELEASE}]), "aws-3", MEMBERS)
    assert found.spec == OF and found.done == "includes cluster aws-3 again"


def test_unskip_of_a_cluster_that_left_the_group_takes_its_entry_away() -> None:
    assert steering.unskip(rollout(skip=[{"cluster": "gone", "release": "a"}]), "gone", MEMBERS).spec == OF


def back(given: Obj, *clusters: str) -> Steered:
    proven = [Proven(one, f"shop-{one}", "0123456789ab") for one in clusters]
    return steering.roll_back(given, "wrong", "ada", NOW, ("aws-1", "aws-2"), proven)


def test_roll_back_names_who_goes_back_and_who_has_nothing_to_go_back_to() -> None:
    found = back(rollout(), "aws-1")
    said = {"from": RELEASE, "since": "2026-03-01T12:00:00Z", "reason": "wrong", "by": "ada"}
    assert found.spec == {**OF, "rollBack": said}
    assert found.follows == (
        "aws-1 goes back, the last wave first, by the same gates",
        "aws-2 keeps the release: no earlier one is proven there",
        "a change in Git ends the roll back: a new release begins at wave 0",
    )


def test_roll_back_of_a_stopped_roll_out_moves_nothing_before_resume() -> None:
    assert back(rollout(stopped={"since": "x"}), "aws-1").follows[-1] == (
        "it is stopped, so nothing moves before: syncline rollout resume shop"
    )


def test_a_roll_back_is_taken_back_and_one_that_is_over_is_forgotten() -> None:
    going = steering.go_forward(rollout(rollBack={"from": RELEASE}, stopped={"since": "x"}))
    assert (going.spec, going.done) == ({**OF, "stopped": {"since": "x"}}, f"goes forward to release {RELEASE} again")
    assert going.follows[-1].endswith("syncline rollout resume shop")
    over = steering.go_forward(rollout(rollBack={"from": "0123456789ab"}))
    assert (over.spec, over.done, over.follows) == (OF, "forgets a roll back that is over", ())
    assert steering.go_forward(rollout()).done == "does not roll back"
    assert back(rollout(rollBack={"from": RELEASE})).follows == (
        "to go forward to it again: syncline rollout roll-back shop --undo",
    )


def test_in_a_roll_back_a_cluster_that_is_included_again_goes_back() -> None:
    given = rollout(rollBack={"from": RELEASE}, skip=[{"cluster": "aws-3", "release": RELEASE}])
    assert "cluster aws-3 goes back when its gates permit it" in steering.unskip(given, "aws-3", MEMBERS).follows[0]


STOPPED = {"stopped": {"since": "2026-03-01T11:00:00Z", "reason": "slow", "by": "ada"}}


@pytest.mark.parametrize(
    ("given", "ask", "done"),
    [
        (
            rollout(**STOPPED),
            lambda one: steering.stop(one, "other", "bob", NOW),
            "is stopped already since 2026-03-01T11:00:00Z by ada: slow",
        ),
        (rollout(), steering.resume, "is not stopped"),
        (
            rollout(skip=[{"cluster": "aws-3", "release": RELEASE}]),
            lambda one: steering.skip(one, "aws-3", MEMBERS, "bob"),
            "passes over cluster aws-3 already",
        ),
        (rollout(), lambda one: steering.unskip(one, "aws-3", MEMBERS), "does not pass over cluster aws-3"),
        (rollout(rollBack={"from": RELEASE}), lambda one: back(one), f"rolls back from release {RELEASE} already"),
    ],
    ids=["stop", "resume", "skip", "unskip", "roll back"],
)
def test_what_is_so_already_is_not_written_again(given: Obj, ask: Callable[[Obj], Steered], done: str) -> None:
    found = ask(given)
    assert found.spec == given["spec"] and found.done == done


@pytest.mark.parametrize(
    ("given", "ask", "words"),
    [
        (
            rollout(),
            lambda one: steering.skip(one, "gcp-1", MEMBERS, ""),
            "cluster gcp-1 is not in the group; its clusters are aws-1, aws-2, aws-3, aws-4",
        ),
        (rollout(), lambda one: steering.skip(one, "gcp-1", (), ""), "is not in the group; it has no clusters"),
        (rollout(), lambda one: steering.unskip(one, "gcp-1", MEMBERS), "cluster gcp-1 is not in the group"),
        (rollout({}), lambda one: steering.skip(one, "aws-1", MEMBERS, ""), "the hub has not worked on it yet"),
        (rollout({}), lambda one: back(one, "aws-1"), "the hub has not worked on it yet"),
        (rollout(), lambda one: back(one), f"nothing is proven before release {RELEASE}"),
        (rollout(), lambda one: back(one, "aws-9"), "Revert the change in Git"),
    ],
    ids=["skip other", "skip none", "unskip other", "skip unknown", "back unknown", "back nothing", "back other"],
)
def test_what_makes_no_sense_is_refused_with_what_to_do(given: Obj, ask: Callable[[Obj], Steered], words: str) -> None:
    with pytest.raises(SteeringError) as error:
        ask(given)
    assert words in str(error.value)
