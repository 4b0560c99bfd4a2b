"""To whom an action is addressed: another cluster, or the same as somebody else.

Plans of an Application wrap what they do to its destination; the handler sends the wrapped action's requests there.
An action for the cluster at home in the controllers' own name is not wrapped.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from syncline.base.action import Action, Handler
from syncline.kube.client import Request

__all__ = ["Addressed", "AddressedHandler", "addressed"]

IMPERSONATE = "impersonate-user"


@dataclass(frozen=True, slots=True)
class Addressed:
    """``cluster``: server of the destination, empty at home; ``user``: who is impersonated, empty for nobody."""

    action: Action
    cluster: str = ""
    user: str = ""

    @property
    def reason(self) -> str:
        return self.action.reason

    def describe(self) -> str:
        where = f" on {self.cluster}" if self.cluster else ""
        return f"{self.action.describe()}{where}" + (f" as {self.user}" if self.user else "")


def addressed(steps: tuple[tuple[Action, ...], ...], cluster: str, user: str) -> tuple[tuple[Action, ...], ...]:
    """The same steps, addressed; their shape stays."""
    if not cluster and not user:
        return steps
    return tuple(tuple(Addressed(action, cluster, user) for action in step) for step in steps)


class AddressedHandler:
    """``handlers_of`` a cluster, by type of action. Raises what sending raises; an unknown cluster is an OSError."""

    def __init__(self, handlers_of: Callable[[str], Mapping[type, Handler]]) -> None:
        self._of = handlers_of

    def handle(self, action: Addressed) -> Generator[Any, Any, Any]:
        steps = self._of(action.cluster)[type(action.action)].handle(action.action)
        headers = {IMPERSONATE: action.user} if action.user else {}
        answer: Any = None
        failure: BaseException | None = None
        while True:
            try:
                wanted = steps.throw(failure) if failure is not None else steps.send(answer)
            except StopIteration as end:
                return end.value
            failure, answer = None, None
            if isinstance(wanted, Request):
                wanted = replace(wanted, cluster=action.cluster, headers={**wanted.headers, **headers})
            try:
                answer = yield wanted
            except Exception as error:  # the wrapped generator deals with it, or raises it again
                failure = error
