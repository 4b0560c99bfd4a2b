"""Every example folder is played in virtual time and tells what stands in its ``expected.txt``.

``pytest tests/examples --update-golden`` writes these files anew. Stories whose Jobs really have to do something
(``examples/pool-pause``) are played live as well, by the command that their README names.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.scenes.scenes import APPS, Stage

from syncline.cli.story import Repository, Step, Story, application, masked, over, prerequisites, read_story, transcript
from syncline.cluster.machines.launching import sandbox_problem
from syncline.control.executor import run_in_place
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import gvk_of, name_of, namespace_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIVE = ("pool-pause",)
"""Played live alone: their Jobs have to do something."""
STORIES = sorted(path.parent for path in EXAMPLES.rglob("story.yaml") if path.parent.name not in LIVE)


def tell(story: Story, folder: Path) -> str:
    """The transcripts of all steps, masked."""
    stage = Stage(folder)
    for obj in prerequisites(story):
        mapper = Mapper(run_in_place(discover(), stage.world.admin))
        info = mapper.find(gvk_of(obj))
        assert info is not None, obj
        stage.world.send("POST", info.path(namespace_of(obj)), obj)
        stage.world.driver.settle()
    repository = Repository(story, folder / story.name)
    told, commits = "", []
    for step in story.steps:
        commits.append(repository.commit(step))
        if step.change:
            stage.refresh(story.name)
        else:
            stage.create(application(story, repository))

        def ended(step: Step = step, commit: str = commits[-1]) -> bool:
            return over(story, step, commit, {name_of(app): app for app in stage.items(APPS)})

        stage.world.driver.until(ended, limit_s=900)
        told += transcript(story, step, [stage.app(name) for name in story.waited_for()], stage.items) + "\n"
    return masked(told, commits)


def transcripts_in(printed: str) -> str:
    """What ``syncline demo`` printed of each step, without the progress between."""
    parts = re.findall(r"^(# .*?)\n(?=\nApplication )", printed, re.MULTILINE | re.DOTALL)
    return masked("".join(part + "\n\n" for part in parts), [])


@pytest.mark.parametrize("folder", STORIES, ids=lambda path: path.name)
def test_an_example_tells_what_its_folder_promises(folder: Path, tmp_path: Path, update_golden: bool) -> None:
    told = tell(read_story(folder), tmp_path)
    expected = folder / "expected.txt"
    if update_golden:
        expected.write_text(told)
    assert told == expected.read_text()


@pytest.mark.parametrize("name", LIVE)
def test_an_example_told_by_the_command_of_its_readme(name: str, update_golden: bool) -> None:
    problem = sandbox_problem()
    if problem:
        pytest.skip(f"commands cannot be sandboxed here: {problem}")
    folder = EXAMPLES / name
    command = [sys.executable, "-c", "import sys; from syncline.cli.main import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, "demo", "--example", str(folder), "--exit"],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = transcripts_in(done.stdout)
    expected = folder / "expected.txt"
    if update_golden:
        expected.write_text(told)
    assert told == expected.read_text()
