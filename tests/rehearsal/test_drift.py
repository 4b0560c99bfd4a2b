"""An update of nodes is recorded in virtual time, with a node that fails: its replay, its plan, and what leaves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.rehearsal.taping import clone_of, taped

from syncline.cli.views.rehearsal.reality import describe_drift
from syncline.rehearsal.answer.answer import Doing
from syncline.rehearsal.given.applications import REPOSITORY
from syncline.rehearsal.given.demonstration import CHRONY
from syncline.rehearsal.given.durations import GUESSES, Origin
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import parse_world
from syncline.rehearsal.playing import Asked, Play
from syncline.rehearsal.reality.course import course_of
from syncline.rehearsal.reality.drifting import Drift, Key, Plan, Planned, Verdict, drift_of, plan_of
from syncline.rehearsal.reality.measuring import measured
from syncline.rehearsal.reality.outside import Commit, Power, acts_of
from syncline.rehearsal.reality.recording import Recording
from syncline.rehearsal.reality.replaying import played_again, replayed

WORLD = "machineConfig: true\nnodes: [{name: m, roles: [master]}, {name: w, count: 2, roles: [worker]}]\n"
CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours, namespace: shop}\ndata: {sky: blue}\n"
DEPLOYED = Files({"map.yaml": CONFIG})
REBOOTS: Key = ("node/w-2", Doing.REBOOTS, 0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drift")


@pytest.fixture(scope="module")
def recording(place: Path) -> Recording:
    (place / "shop").mkdir()
    play = Play(Asked("shop", DEPLOYED, parse_world(WORLD, Path("world.yaml"), Files({}))), place / "shop")
    play.prepare()
    play.commit(DEPLOYED)
    play.run(timedelta(hours=1))
    return taped(play, update_with_a_failure)


def update_with_a_failure(play: Play) -> None:
    """Let a change of the machines arrive; the master fails meanwhile, and is back after five minutes."""
    play.commit(DEPLOYED.changed({"chrony.yaml": CHRONY}))
    play.world.driver.advance(60)
    machine = play.world.machines.room.machines.get("m")
    assert machine is not None
    machine.fail(play.world.clock.now())
    play.world.driver.advance(300)
    machine.power_on(play.world.clock.now())


@pytest.fixture(scope="module")
def clones(place: Path, recording: Recording) -> dict[str, Path]:
    assert recording.seen
    return {REPOSITORY: clone_of(place / "shop")}


@pytest.fixture(scope="module")
def plan(place: Path, recording: Recording, clones: dict[str, Path]) -> Plan:
    return plan_of(recording, clones, place / "plan", GUESSES)


def test_an_update_with_a_failing_node_is_replayed_as_it_was(
    recording: Recording, clones: dict[str, Path], tmp_path: Path
) -> None:
    acts = acts_of(recording)
    assert [type(act) for act in acts] == [Commit, Power, Power]
    assert [act.up for act in acts if isinstance(act, Power)] == [False, True]
    found = replayed(recording, clones, tmp_path / "replay")
    assert found.differences == ()
    assert [step.what for step in found.played["pool/worker"]][-1].startswith("is at rendered-worker-")


def test_an_update_goes_on_from_its_middle(recording: Recording, clones: dict[str, Path], tmp_path: Path) -> None:
    """The state of a cluster two minutes after the commit is enough to bring the other node up to date."""
    middle = recording.began + timedelta(minutes=2)
    seen = tuple(each for each in recording.seen if each.version.at <= middle)
    now = replace(recording, seen=seen, ended=middle).last
    begun = Recording("middle", middle, middle, "", now.objects, (), ())
    course = course_of(played_again(begun, (), GUESSES, clones, tmp_path / "again"))
    assert [step.what for step in course["pool/worker"]][-1].startswith("is at rendered-worker-")
    assert "is cordoned" in [step.what for step in course["node/w-2"]]
    assert "is cordoned" not in [step.what for step in course["node/w-1"]]


def test_an_operation_as_rehearsed_is_on_plan(recording: Recording, plan: Plan) -> None:
    found = drift_of(plan, recording)
    assert [line.said for line in found.outside] == []
    assert found.pools == ("worker",)
    assert describe_drift(found, "record").startswith("ON PLAN  record: ")


def shorter(bars: dict[Key, Planned]) -> None:
    bars[REBOOTS] = replace(bars[REBOOTS], lengths_s=(60.0, 30.0, 90.0))


def failing(bars: dict[Key, Planned]) -> None:
    bars["app/shop", Doing.SYNC, 0] = replace(bars["app/shop", Doing.SYNC, 0], state="Failed")


def without(bars: dict[Key, Planned]) -> None:
    del bars[REBOOTS]


def other_way_round(bars: dict[Key, Planned]) -> None:
    first: Key = ("node/w-1", Doing.REBOOTS, 0)
    one, other = bars[first], bars[REBOOTS]
    bars[first], bars[REBOOTS] = replace(one, begins_s=other.begins_s), replace(other, begins_s=one.begins_s)


def more(bars: dict[Key, Planned]) -> None:
    bars["node/w-3", Doing.DRAINS, 0] = replace(bars[REBOOTS], row="node/w-3", doing=Doing.DRAINS)


@pytest.mark.parametrize(
    ("changes", "verdict", "said"),
    [
        (shorter, Verdict.LATE, "node/w-2 reboots lasts 4m0s, planned 1m0s (30s to 1m30s)"),
        (failing, Verdict.ENDS, "app/shop sync ends Succeeded, planned Failed"),
        (without, Verdict.UNPLANNED, "node/w-2 reboots, which the plan does not have"),
        (other_way_round, Verdict.ORDER, "which the plan has first"),
        (more, Verdict.MISSING, "node/w-3 drains has not begun at"),
    ],
)
def test_what_leaves_the_range_says_how(
    recording: Recording, plan: Plan, changes: Callable[[dict[Key, Planned]], None], verdict: Verdict, said: str
) -> None:
    bars = dict(plan.bars)
    changes(bars)
    found: Drift = drift_of(replace(plan, bars=bars), recording)
    assert verdict in [line.verdict for line in found.outside]
    assert any(said in line.said for line in found.outside), [line.said for line in found.outside]
    assert describe_drift(found, "record").startswith("LEFT     record: ")


def test_what_has_not_begun_yet_is_to_come(recording: Recording, plan: Plan) -> None:
    soon = recording.began + timedelta(minutes=1)
    seen = tuple(each for each in recording.seen if each.version.at <= soon)
    found = drift_of(plan, replace(recording, seen=seen, ended=soon))
    assert found.outside == ()
    assert {Verdict.GOING, Verdict.COMING} <= {line.verdict for line in found.lines}


def test_durations_of_a_record_are_measured(recording: Recording) -> None:
    found = measured(recording.record())
    assert found["boot"].origin is Origin.MEASURED
    assert found["boot"].usual_s + found["shutdown"].usual_s == pytest.approx(240, abs=5)
    assert found["pull"] == GUESSES["pull"]
