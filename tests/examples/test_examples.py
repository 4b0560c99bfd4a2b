"""Every example folder is played in virtual time and tells what stands in its ``expected.txt``.

``pytest tests/examples --update-golden`` writes these files anew. A served cluster tells the same.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from syncline.cli.frame.failure import CommandFailed
from syncline.cli.views.story import failing, masked, transcript
from syncline.rehearsal.reading import read_scenario
from syncline.rehearsal.scenario import Scenario
from syncline.rehearsal.simulation import Simulation

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIVE = (("butane-policy", 2),)
"""Also played on a served cluster, so many steps: those that do not wait for a machine to boot."""
STORIES = sorted(path.parent for path in EXAMPLES.rglob("story.yaml"))


def tell(story: Scenario, folder: Path) -> str:
    """The transcripts of all steps, masked."""
    show = Simulation(story, folder)
    show.begin()
    told = "".join(transcript(show.stage, show.simulate(step)) + "\n" for step in story.steps)
    return masked(told, show.commits)


def transcripts_in(printed: str) -> list[str]:
    """What ``syncline demo`` printed of each step, without the progress between."""
    return re.findall(r"^# .*?\n(?=\nApplication )", printed, re.MULTILINE | re.DOTALL)


def comparable(told: str) -> list[str]:
    """Steps without what depends on the clock: how long it took, and moments and durations."""
    steps = []
    for step in re.split(r"^(?=# )", told, flags=re.MULTILINE)[1:]:
        step = re.sub(r"^took .* on the cluster's clock\n\n", "", step, flags=re.MULTILINE)
        steps.append(re.sub(r"(?<=^\+)\w+|(?<= for )\w+(?=:)", "…", step, flags=re.MULTILINE).strip())
    return steps


def syncline(*arguments: str, fails: bool = False) -> str:
    command = [sys.executable, "-c", "import sys; from syncline.cli.main import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, *arguments], env=dict(os.environ), capture_output=True, text=True, timeout=900, check=False
    )
    assert (done.returncode != 0) is fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


@pytest.mark.parametrize("folder", STORIES, ids=lambda path: path.name)
def test_an_example_tells_what_its_folder_promises(folder: Path, tmp_path: Path, update_golden: bool) -> None:
    told = tell(read_scenario(folder), tmp_path)
    expected = folder / "expected.txt"
    if update_golden:
        expected.write_text(told)
    assert told == expected.read_text()


@pytest.mark.parametrize(("name", "steps"), LIVE)
def test_a_served_cluster_tells_the_same_as_virtual_time(name: str, steps: int) -> None:
    folder = EXAMPLES / name
    printed = syncline("demo", "--example", str(folder), "--steps", str(steps), "--exit")
    told = masked("".join(transcripts_in(printed)), [])
    assert comparable(told) == comparable((folder / "expected.txt").read_text())[:steps]


def test_the_command_of_the_readmes_plays_in_virtual_time() -> None:
    printed = syncline("demo", "--example", str(EXAMPLES / "multi-source"), "--virtual", "--steps", "1")
    assert "# Chart, values and quota" in printed and "More replicas" not in printed


def test_a_story_with_a_chart_says_at_once_that_helm_is_missing(tmp_path: Path) -> None:
    code = "import sys; sys.modules['helm_python'] = None\n"
    code += "from syncline.cli.main import main; sys.exit(main(['demo', '--exit', '--example', sys.argv[1]]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(EXAMPLES / "migration-chart")],
        env=dict(os.environ, PATH=str(tmp_path)), capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stdout == "", "nothing was started"
    assert "Chart.yaml is a Helm chart, and Helm is not installed: `python3 run.py helm`" in done.stderr


def test_stories_with_charts_are_named_where_they_are_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text().splitlines()
    for folder in STORIES:
        row = next((line for line in listed if line.startswith(f"| [{folder.name}](")), "")
        assert ("(needs Helm)" in row) is bool(list(folder.rglob("Chart.yaml")))


def test_a_step_of_hours_is_not_waited_for_by_accident() -> None:
    said = syncline("demo", "--example", str(EXAMPLES / "router-drain"), "--exit", fails=True)
    assert "may take 2h0m0s: add --virtual, or play less with --steps" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("about: x", "found no steps"),
        ("steps: [{say: a, chnage: b}]", "steps[0]: found the key 'chnage'; allowed: say, change"),
        ("steps: [{change: b}]", "steps[0]: found no say"),
        ("steps: [{say: a}, {say: b}]", "steps[1]: found nothing happens in it"),
        ("steps: [{say: a, ends: Done}]", "steps[0].ends: found 'Done'; allowed: Succeeded, Failed, or Running"),
        ("steps: [{say: a, until: [pool/worker]}]", "steps[0].until[0]: found 'pool/worker'; allowed: KIND/NAME COND"),
        ("steps: [{say: a, until: [worker Updated]}]", "steps[0].until[0]: found 'worker'; allowed: KIND/NAME or"),
        ("steps: [{say: a, within: soon}]", "steps[0].within: found 'soon'; allowed: a duration such as 90m"),
        ("steps: [{say: a, rests: -1m}]", "steps[0].rests: found '-1m'; allowed: a duration longer than nothing"),
        ("steps: [{say: a, do: [{patch: pool/worker}]}]", "steps[0].do[0]: found patch; allowed: one of node"),
        ("steps: [{say: a, do: [{node: {}}]}]", "steps[0].do[0].node: found no name"),
        ("nodes: [{name: w, taints: [x]}]", "nodes[0].taints: found 'x'; allowed: KEY[=VALUE]"),
        ("nodes: [{name: w, taints: x}]", "nodes[0].taints: found 'x'; allowed: a list"),
        ("machineConfig: 1", "machineConfig: found 1; allowed: true or false"),
        ("look: [{path: nodes}]", "look[0].path: found 'nodes'; allowed: the path of a list"),
        ("more: 1", "the file: found the key 'more'; allowed: about"),
        ("steps: [", "story.yaml:2:1: while parsing"),
    ],
)
def test_a_story_that_cannot_be_played_is_refused_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "story.yaml").write_text(
        text if text.startswith(("steps", "about")) else f"steps: [{{say: a}}]\n{text}"
    )
    with pytest.raises(CommandFailed) as refused, failing():
        read_scenario(tmp_path)
    assert words in str(refused.value)


def test_what_does_not_come_about_in_its_time_names_the_step(tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "story.yaml").write_text(
        "namespace: default\nsyncPolicy: {automated: {}}\n"
        "steps: [{say: For ever, until: [node/node-1 Shining], within: 1m}]\n"
    )
    (tmp_path / "repository" / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    show = Simulation(replace(read_scenario(tmp_path), name="late"), tmp_path / "scratch")
    show.begin()
    with (
        pytest.raises(
            CommandFailed, match=r"late: For ever: node/node-1 Shining: not reached within 1m0s\nlate: .*Synced"
        ),
        failing(),
    ):
        show.simulate(show.story.steps[0])


def test_a_folder_of_stories_names_them_and_a_folder_without_manifests_says_so(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"holds 3 stories and is none; .*job-image-change/replace"), failing():
        read_scenario(EXAMPLES / "job-image-change")
    (tmp_path / "README.md").touch()
    with pytest.raises(CommandFailed, match=r"holds no file that is one of \.yaml"), failing():
        read_scenario(tmp_path)
