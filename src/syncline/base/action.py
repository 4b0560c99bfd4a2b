"""What a plan is made of, seen from below: any room may declare its own closed union of actions.

``control`` knows how to run plans made of any :class:`Action`; the Kubernetes actions stand in
``control/plan.py``, a room's own beside its planner. ``assembly`` registers one handler per action type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

__all__ = ["Action", "Handler", "Late", "Purpose", "Unfinished", "Work"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(ABC):
    """A frozen dataclass that names its target, why it is done, and where."""

    cluster: str = field(default="", repr=False)
    """Name of the cluster; empty: the loop's own."""
    user: str = field(default="", repr=False)
    """Who is impersonated; empty: no user."""
    if TYPE_CHECKING:

        @property
        def reason(self) -> str:
            """A field of each: as a property here it would be that field's default."""

    @abstractmethod
    def describe(self) -> str:
        """``create apps/Deployment/demo/web``: one line for plans, journals and dry runs."""

    @property
    def address(self) -> str:
        """Ends :meth:`describe` where the action is for another cluster, or done as another user."""
        return (f" on {self.cluster}" if self.cluster else "") + (f" as {self.user}" if self.user else "")


class Purpose(StrEnum):
    """The kind of work. Each purpose has places of its own, so none waits behind another."""

    SOURCES = "sources"
    """Reading users' repositories, and rendering what they hold."""
    EVALUATION = "evaluation"
    """Scripts and expressions of users, in processes for that."""
    MACHINES = "machines"
    """Starting containers, and what is done to machines."""
    PLANNING = "planning"
    """Plans made of so much that they would hold the loop."""
    OTHER = "other"


class Unfinished:
    """The driver's answer in place of the result of work that takes long."""


@dataclass(frozen=True, slots=True)
class Late:
    """Leave to answer with :class:`Unfinished` after ``after_s`` seconds. The work continues, ``keep`` is called with
    its result or its exception in the loop's own thread, and then its key is planned again."""

    after_s: float
    keep: Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Work:
    """A blocking function that a handler asks its driver to run.

    The live driver runs it in a thread, the virtual one in place (virtual time stands still but for ``takes_s``).
    ``label`` names it in journals and waiting lists. ``project`` (a team's project, a namespace) and ``hosts`` are
    whose shares of the places it takes; empty where it belongs to none.
    """

    label: str
    run: Callable[[], Any]
    purpose: Purpose = Purpose.OTHER
    project: str = ""
    hosts: tuple[str, ...] = ()
    late: Late | None = None
    answered: Callable[[Any], bool] = bool
    """Whether a result says that the hosts answered."""
    takes_s: float = 0.0
    """What it costs in virtual time, as data: what takes longer than ``late`` allows ends so much later there."""


class Handler(Protocol):
    """Turns one action into requests: a generator that yields ``kube.client.Request`` or :class:`Work`, is sent the
    answer, and returns the result to be recorded. It raises what the request raised, if it cannot deal with it."""

    def handle(self, action: Any) -> Generator[Any, Any, Any]: ...
