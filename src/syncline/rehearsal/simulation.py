"""Runs a scenario in virtual time: the real controllers, no socket, and waiting takes no real time.

Entry point: :class:`Simulation`. A step returns a :class:`StepResult`, or raises :class:`NotReached`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from syncline.assembly.sources.playbooks import Playbooks
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.cause import Cause
from syncline.control.virtual import NotIdleError
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.objects import Obj
from syncline.kube.text.durations import format_duration
from syncline.rehearsal.repository import Repository, application
from syncline.rehearsal.scenario import Scenario, ScenarioError, Step
from syncline.rehearsal.stage import Stage
from syncline.rehearsal.world import World

START_S = 600.0
"""Virtual seconds until the machines of a scenario must be up."""
CALM_S = 10.0
"""Virtual seconds between the preparation and the first step."""


class NotReached(ScenarioError):
    """A step did not end within the scenario's time limit. ``causes``: why, for each Application."""

    def __init__(self, message: str, causes: dict[str, Cause], now: datetime) -> None:
        super().__init__(message)
        self.causes, self.now = causes, now


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a finished step. ``took_s``: virtual seconds; None if no machines are updated."""

    step: Step
    began: datetime
    took_s: int | None = None


class Simulation:
    """Runs a scenario. ``scratch``: a folder for the repository and its mirror. Raises :class:`NotReached`, and
    :class:`ScenarioError` if the cluster refuses a request."""

    def __init__(self, story: Scenario, scratch: Path, seed: int = 1) -> None:
        self.story = story
        self.repository = Repository(story, scratch / story.name)
        reader = GitSourceReader(scratch / "mirrors", allow_local=True)
        nodes = 0 if story.nodes else 1
        self.world = World(reader, seed=seed, nodes=nodes, settings=AppSettings(poll_s=60))
        self.world.playbooks = Playbooks(reader.sources)
        self.stage = Stage(story, self.world.admin, self.world.clock, reader)
        self.commits: list[str] = []
        self.world.driver.settle()

    def begin(self) -> list[str]:
        """Create machines, controllers and the administrator's objects; return the names of these objects."""
        if self.story.machine_config:
            self.world.start_machine_config()
        self.stage.add_nodes()
        self._until(self.stage.stands, START_S, f"its machines are not up within {START_S:g} s")
        made = self.stage.prepare()
        self.world.driver.advance(CALM_S)
        self.stage.news()  # earlier Events do not belong to the scenario
        return made

    def simulate(self, step: Step) -> StepResult:
        """Run one step to its end."""
        self.commit(step)
        return self.carry_out(step)

    def commit(self, step: Step) -> None:
        """Make the step's commit, if it has one, without notifying the controllers."""
        if self.story.commits(step):
            self.commits.append(self.repository.commit(step))

    def application(self) -> Obj:
        """Return the Application as a user would write it."""
        return application(self.story, self.repository)

    def carry_out(self, step: Step) -> StepResult:
        """Run the step without its commit."""
        began = self.world.clock.now()
        self.stage.begin(step, self.application())
        took = self._reached(step, self.commits[-1])
        self.world.driver.advance(step.rests.total_seconds())
        return StepResult(step, began, took if self.story.machine_config else None)

    def _reached(self, step: Step, commit: str) -> int:
        """Advance time until the step has ended; return the virtual seconds that it took."""
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
            raise NotReached(f"{self.story.name}: {late}", self.stage.causes(), self.world.clock.now()) from error
