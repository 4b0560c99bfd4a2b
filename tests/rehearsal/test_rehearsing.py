"""A repository and a world of a few lines are rehearsed: verdict, range, and what people write wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from syncline.cli.main import main
from syncline.cli.views.rehearsal.text import describe_answer
from syncline.rehearsal.answer.answer import Answer, Outcome
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import default_world, parse_world
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.rehearsing import Settings, rehearse
from syncline.rehearsal.scenario import ScenarioError

CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\ndata: {sky: blue}\n"
ONE_NODE = "nodes: [{name: node}]\n"


def answered(folder: Path, files: dict[str, bytes], world: str = ONE_NODE, **settings: bool) -> Answer:
    asked = Asked("repository", Files(files), parse_world(world, Path("world.yaml"), Files({})))
    return rehearse(asked, folder, Settings(**settings))  # type: ignore[arg-type]


def test_a_repository_that_deploys_is_safe_and_its_text_begins_with_that(tmp_path: Path) -> None:
    answer = answered(tmp_path, {"map.yaml": CONFIG})
    assert (answer.outcome, answer.breaches, answer.cures) == (Outcome.SAFE, (), ())
    assert answer.quickest_s is not None and answer.slowest_s is not None and answer.done_s is not None
    assert answer.quickest_s <= answer.done_s <= answer.slowest_s
    assert describe_answer(answer).startswith("SAFE     repository: done after")


def test_equal_rehearsals_are_equal_bytes(tmp_path: Path) -> None:
    twice = [answered(tmp_path / name, {"map.yaml": CONFIG}, ranged=False) for name in "ab"]
    first, second = (json.dumps(answer.to_obj()) for answer in twice)
    assert first == second


def test_a_manifest_that_is_refused_makes_it_fail(tmp_path: Path) -> None:
    bad = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n"
    answer = answered(tmp_path, {"map.yaml": bad}, cures=False)
    assert answer.outcome is Outcome.FAILED
    assert "Not_A_Name" in answer.headline or "one or more" in answer.headline


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodez: []\n", "found the key 'nodez'; allowed: machineConfig, nodes, objects, durations"),
        ("nodes: []\n", "nodes: found 0 nodes; allowed: 1 to 2000 nodes"),
        ("nodes: [{name: A}]\n", "nodes[0].name: found 'A'; allowed: lower case letters"),
        ("nodes: [{name: a, count: 0}]\n", "nodes[0].count: found 0; allowed: a number from 1 to 1000"),
        ("nodes: [{name: a}, {name: a}]\n", "found the node a twice; allowed: each name once"),
        ("nodes: [{name: a, taints: [x]}]\n", "found 'x'; allowed: KEY[=VALUE]:EFFECT"),
        ("nodes: [{name: a}]\ndurations: {boot: soon}\n", "durations.boot: found 'soon'; allowed: a duration such as"),
        ("nodes: [{name: a}]\ndurations: {boot: {from: 3m, to: 1m}}\n", "the shorter one first"),
        ("nodes: [{name: a}]\nobjects: [../secret.yaml]\n", "beside the world's file or below"),
        ("machineConfig: true\nnodes: [{name: a}]\n", "roles: [worker] on the nodes"),
    ],
)
def test_a_world_that_is_wrong_names_key_value_and_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        parse_world(text, Path("world.yaml"))
    assert said in str(error.value)


def test_without_a_world_the_answer_says_which_one_is_assumed() -> None:
    plain = default_world(Files({"map.yaml": CONFIG}))
    pools = default_world(Files({"a.yaml": b"apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n"}))
    assert (plain.machine_config, len(plain.nodes())) == (False, 3)
    assert (pools.machine_config, len(pools.nodes())) == (True, 6)
    assert plain.assumed[0].startswith("no --world is given: a new cluster with 3 nodes")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give PATH, or --demo"),
        (["missing"], "there is no such file or folder"),
        ([".", "--until", "soon"], "--until 'soon': allowed: a duration"),
        ([".", "--without-law", "gravity"], "there is no such law; allowed: nothing-stays-paused"),
        ([".", "--world", "missing.yaml"], "--world takes a YAML file"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "map.yaml").write_bytes(CONFIG)
    assert main(["rehearse", *arguments]) == 2
    assert said in capsys.readouterr().err
