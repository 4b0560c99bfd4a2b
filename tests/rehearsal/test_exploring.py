"""Schedules of faults: played by their line, explored by seed, and shortened where they break something."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from syncline.cli.rehearse.command import resumed
from syncline.rehearsal.answer.answer import Answer, Outcome
from syncline.rehearsal.disturbing import read_faults
from syncline.rehearsal.exploring import Bounds, explored
from syncline.rehearsal.faults import Schedule
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import parse_world
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.record import Record
from syncline.rehearsal.rehearsing import Rehearsal, Settings
from syncline.rehearsal.scenario import ScenarioError

CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\n"
ASKED = Asked(
    "repository", Files({"a.yaml": CONFIG}), parse_world("nodes: [{name: node}]\n", Path("world.yaml"), Files({}))
)


def test_a_sync_survives_the_faults_that_are_drawn(tmp_path: Path) -> None:
    answer = Rehearsal(Settings(ranged=False, explore=Bounds(6)), tmp_path).answer(ASKED)
    assert answer.outcome is Outcome.SAFE and answer.explored is not None
    assert (answer.explored.schedules, answer.explored.broken) == (6, ())
    assert answer.explored.distinct > 2 and answer.explored.steps > 3


def test_a_schedule_of_a_file_strikes_and_equal_ones_strike_alike(tmp_path: Path) -> None:
    schedule = read_faults("# the write after the first dies\nrehearsal/3; kill@2, lost-answer@4\n", "faults")
    plays = [
        Rehearsal(Settings(ranged=False, cures=False), tmp_path / name)._one(replace(ASKED, schedule=schedule))
        for name in "ab"
    ]
    first, second = plays
    assert first[0] == second[0] and first[1].journal == second[1].journal
    assert first[0].schedule == str(schedule) and first[0].outcome is Outcome.SAFE
    usual = Rehearsal(Settings(ranged=False), tmp_path / "c")._one(replace(ASKED, schedule=Schedule("rehearsal")))
    assert usual[1].journal != first[1].journal


def test_what_breaks_is_shortened_to_the_fault_that_breaks_it(tmp_path: Path) -> None:
    rehearsal = Rehearsal(Settings(ranged=False), tmp_path)
    safe, record = rehearsal._one(replace(ASKED, schedule=Schedule("rehearsal")))

    def play(asked: Asked) -> tuple[Answer, Record]:
        assert asked.schedule is not None
        dies = any(fault.kind.startswith("kill") for fault in asked.schedule.faults)
        return (replace(safe, outcome=Outcome.BLOCKED, headline="it waits") if dies else safe), record

    found = explored(ASKED, Outcome.SAFE, play, Bounds(100))
    assert len(found.broken) == 3 and found.schedules < 100
    shortest = found.broken[0]
    assert shortest.schedule in ("rehearsal; kill@1", "rehearsal; kill-before@1")
    assert shortest.shrunk_from != shortest.schedule


def test_an_exploration_ends_when_its_time_is_used_up(tmp_path: Path) -> None:
    rehearsal = Rehearsal(Settings(ranged=False), tmp_path)
    found = explored(ASKED, Outcome.SAFE, rehearsal._one, Bounds(5, lambda: True))
    assert (found.schedules, found.distinct) == (0, 1)


def test_an_exploration_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    """With other processes, and it finds the same."""
    file, played = tmp_path / "kept", list[str]()
    rehearsal = Rehearsal(Settings(ranged=False), tmp_path)

    def play(asked: Asked) -> tuple[Answer, Record]:
        played.append(str(asked.schedule))
        return rehearsal._one(asked)

    whole = explored(ASKED, Outcome.SAFE, play, resumed(Bounds(4, processes=2), ASKED, file))
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 5 and whole.schedules == 4 and whole.left < whole.pairs
    file.write_text("".join(lines[:3]) + lines[3][:20])
    played.clear()
    assert explored(ASKED, Outcome.SAFE, play, resumed(Bounds(4), ASKED, file)) == whole
    assert len(played) == 3, "the undisturbed one, and two that were lost"
    assert file.read_text().splitlines(keepends=True) == lines
    with pytest.raises(ScenarioError, match=r"it explores question '.*'; give the file of this|was asked for"):
        resumed(Bounds(4), replace(ASKED, seed=2), file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "found 0 lines; allowed: one such as"),
        ("rehearsal; flood@3\n", "'flood@3' is no fault such as kill@12"),
        ("rehearsal; power@3\n", "is no fault such as kill@12"),
        (f"rehearsal; {', '.join(f'kill@{n}' for n in range(1, 60))}\n", "found 59 faults; allowed: at most 50"),
    ],
)
def test_a_schedule_that_is_written_wrongly_is_refused(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        read_faults(text, "faults")
    assert said in str(error.value)
