"""What a plan is made of, seen from below: any room may declare its own closed union of actions.

``control`` knows how to run plans made of anything that satisfies :class:`Action`; the Kubernetes actions stand in
``control/plan.py``, a room's own beside its planner. ``assembly`` registers one performer per action type.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Action", "Performer", "Work"]


class Action(Protocol):
    """A frozen dataclass that names its target and why it is done."""

    @property
    def reason(self) -> str: ...

    def describe(self) -> str:
        """``create apps/Deployment/demo/web``: one line for plans, journals and dry runs."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """A blocking function that a performer asks its driver to run.

    The live driver runs it in a worker thread, the virtual one in place (virtual time stands still). ``label`` names
    it in journals and waiting lists.
    """

    label: str
    run: Callable[[], Any]


class Performer(Protocol):
    """Turns one action into requests: a generator that yields ``kube.client.Request`` or :class:`Work`, is sent the
    answer, and returns the result to be recorded. It raises what the request raised, if it cannot deal with it."""

    def perform(self, action: Any) -> Generator[Any, Any, Any]: ...
