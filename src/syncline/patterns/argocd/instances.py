"""What runs for an ``ArgoCD`` object: the GitOps controllers of its namespace, as frozen data and actions.

They act as the service account that upstream's controller of the instance has. What it may do is what bindings give it:
an ArgoCD object gives no rights. ``assembly`` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from syncline.base.action import Action, Handler

ACCOUNT_SUFFIX: Final = "-argocd-application-controller"
MAX_INSTANCES: Final = 20
"""Instances of one process: each watches the cluster by itself."""


@dataclass(frozen=True, slots=True, order=True)
class Instance:
    """The controllers of one control namespace."""

    namespace: str
    name: str

    @property
    def account(self) -> str:
        return f"{self.name}{ACCOUNT_SUFFIX}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class RunInstance(Action):
    """Run the controllers of an instance."""

    instance: Instance
    reason: str

    def describe(self) -> str:
        return f"run the GitOps controllers of {self.instance}"


@dataclass(frozen=True, slots=True)
class StopInstance(Action):
    """Stop the controllers of an instance."""

    instance: Instance
    reason: str

    def describe(self) -> str:
        return f"stop the GitOps controllers of {self.instance}"


class Instances(Protocol):
    """Runs instances in this process; ``assembly`` provides it."""

    def running(self) -> frozenset[Instance]:
        """Return the instances whose controllers run, or are being started."""
        ...

    @property
    def why_not(self) -> str:
        """Return why this process runs none; empty if it does."""
        ...

    def handlers(self) -> Mapping[type, Handler]:
        """Return the handlers of :class:`RunInstance` and :class:`StopInstance`."""
        ...

    def stop(self) -> None:
        """Stop all of them."""
        ...


Bound = Callable[[str, str], bool]
"""Whether a service account (namespace, name) has a binding."""
