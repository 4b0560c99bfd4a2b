"""The base types of plans: :class:`Action`, :class:`Work` and :class:`Handler`.

``control`` runs plans of any :class:`Action`. The Kubernetes actions are defined in ``control/plan.py``; every other
room defines its actions beside its planner. ``assembly`` registers one handler per action type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(ABC):
    """One change that a plan wants: a frozen dataclass with a target, a reason and a cluster."""

    cluster: str = field(default="", repr=False)
    """Name of the cluster; empty: the loop's own."""
    user: str = field(default="", repr=False)
    """The user to impersonate; empty: no impersonation."""
    if TYPE_CHECKING:

        @property
        def reason(self) -> str:
            """Why the action is done. Each subclass declares it as a field; a property here would become the field's
            default."""

    @abstractmethod
    def describe(self) -> str:
        """Return one line for plans, journals and dry runs, such as ``create apps/Deployment/demo/web``."""

    @property
    def address(self) -> str:
        """Return the suffix of :meth:`describe` for another cluster (`` on NAME``) or an impersonated user (`` as
        USER``)."""
        return (f" on {self.cluster}" if self.cluster else "") + (f" as {self.user}" if self.user else "")


class Purpose(StrEnum):
    """The kind of work. Each purpose has its own threads, so none waits for another."""

    SOURCES = "sources"
    """Reading users' repositories, and rendering what they hold."""
    EVALUATION = "evaluation"
    """Scripts and expressions of users, in processes for that."""
    MACHINES = "machines"
    """Starting containers and operating machines."""
    PLANNING = "planning"
    """Plans that take so long that they would block the loop."""
    ANSWERS = "answers"
    """Answering what people ask about a cluster: reads it, and renders."""
    OTHER = "other"


class Unfinished:
    """The driver sends this to a handler in place of a result when the work takes longer than :class:`Late` allows."""


@dataclass(frozen=True, slots=True)
class Late:
    """Let the driver return :class:`Unfinished` after ``after_s`` seconds. The work continues; at its end the loop's
    thread calls ``keep`` with the result or the exception, and the key is planned again."""

    after_s: float
    keep: Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Work:
    """A blocking function that a handler asks its driver to run.

    The live driver runs it in a thread, the virtual one in place, where it takes ``takes_s`` seconds of virtual time.
    ``label`` names it in journals and waiting lists. ``project`` (a team's project, a namespace) and ``hosts`` name the
    shares whose limits the work counts against; empty: none.
    """

    label: str
    run: Callable[[], Any]
    purpose: Purpose = Purpose.OTHER
    project: str = ""
    hosts: tuple[str, ...] = ()
    late: Late | None = None
    answered: Callable[[Any], bool] = bool
    """Return True if a result shows that the hosts responded."""
    takes_s: float = 0.0
    """Its duration in virtual time. Work that takes longer than ``late`` allows ends that much later."""


class Handler(Protocol):
    """Turns one action into requests: a generator that yields ``kube.client.Request`` or :class:`Work`, receives the
    response, and returns the result to record. It raises the errors of requests that it cannot handle."""

    def handle(self, action: Any) -> Generator[Any, Any, Any]: ...
