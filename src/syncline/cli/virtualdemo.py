"""A story in virtual time: the same controllers, no socket, and an hour of waiting costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from syncline.assembly.reading import GitSourceReader
from syncline.cli.failure import BLOCKED, CommandFailed
from syncline.cli.story import Step, Story
from syncline.cli.storyrepo import Repository, application
from syncline.cli.storystage import Stage
from syncline.cli.storyview import transcript
from syncline.control.virtual import NotIdleError
from syncline.gitops.application.observe import AppSettings
from syncline.kube.durations import format_duration
from syncline.kube.objects import Obj
from syncline.rehearsal.world import World

__all__ = ["VirtualShowing"]

START_S = 600.0
"""Until the machines of a story have to be up."""
CALM_S = 10.0
"""Between what was there before and the first step."""


class VirtualShowing:
    """``scratch``: a folder for the repository and its mirror. Raises :class:`CommandFailed` for what does not come
    about in the time that the story gives it."""

    def __init__(self, story: Story, scratch: Path, seed: int = 1) -> None:
        self.story = story
        self.repository = Repository(story, scratch / story.name)
        reader = GitSourceReader(scratch / "mirrors", allow_local=True)
        nodes = 0 if story.nodes else 1
        self.world = World(reader, seed=seed, nodes=nodes, settings=AppSettings(poll_s=60))
        self.stage = Stage(story, self.world.admin, self.world.clock, reader)
        self.commits: list[str] = []
        self.world.driver.settle()

    def begin(self) -> list[str]:
        """Machines, controllers, and what an administrator applied before: names of it."""
        if self.story.machine_config:
            self.world.start_machine_config()
        self.stage.add_nodes()
        self._until(self.stage.stands, START_S, f"its machines are not up within {START_S:g} s")
        made = self.stage.prepare()
        self.world.driver.advance(CALM_S)
        self.stage.news()  # what was told before is not of the story
        return made

    def play(self, step: Step) -> str:
        """One step; what there is to see after it."""
        self.commit(step)
        return self.carry_out(step)

    def commit(self, step: Step) -> None:
        """Make the step's commit, if it has one; nobody is told of it yet."""
        if self.story.commits(step):
            self.commits.append(self.repository.commit(step))

    def application(self) -> Obj:
        """As a person would write it."""
        return application(self.story, self.repository)

    def carry_out(self, step: Step) -> str:
        """All of the step but its commit; what there is to see then."""
        stage, began = self.stage, self.world.clock.now()
        stage.begin(step, self.application())
        took = self._reached(step, self.commits[-1])
        self.world.driver.advance(step.rests.total_seconds())
        return transcript(stage, step, began, took if self.story.machine_config else None)

    def _reached(self, step: Step, commit: str) -> int:
        """Let time pass until the step is over; the seconds that it took."""
        left = step.within.total_seconds()
        waits: list[tuple[str, Callable[[], bool]]] = [("its Applications", lambda: self.stage.is_over(step, commit))]
        waits += [(str(each), partial(self.stage.is_so, each)) for each in step.until]
        for what, reached in waits:
            late = f"{step.say}: {what}: not reached within {format_duration(step.within)}"
            left -= self._until(reached, left, late)
        return int(step.within.total_seconds() - left)

    def _until(self, reached: Callable[[], bool], limit_s: float, late: str) -> float:
        try:
            return self.world.driver.until(reached, limit_s=limit_s)
        except NotIdleError as error:
            raise CommandFailed(f"{self.story.name}: {late}\n{self.stage.reasons()}", BLOCKED) from error
