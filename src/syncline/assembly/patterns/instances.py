"""Runs the GitOps controllers of the namespaces that ``ArgoCD`` objects name, each under its own service account."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from syncline.base.action import Handler, Work
from syncline.patterns.argocd.instances import Instance, RunInstance, StopInstance

Begin = Callable[[Instance], Callable[[], None]]
"""Starts the controllers of an instance, and returns the function that stops them."""


@dataclass(slots=True)
class RunningInstances:
    """``begin`` None: this process runs no instances."""

    begin: Begin | None
    _stops: dict[Instance, Callable[[], None]] = field(default_factory=dict)

    @property
    def why_not(self) -> str:
        return "" if self.begin is not None else "this process runs the controllers of its own namespace alone"

    def running(self) -> frozenset[Instance]:
        return frozenset(self._stops)

    def handlers(self) -> Mapping[type, Handler]:
        return {RunInstance: _Run(self), StopInstance: _Stop(self)}

    def run(self, instance: Instance) -> None:
        if self.begin is not None and instance not in self._stops:
            self._stops[instance] = self.begin(instance)

    def end(self, instance: Instance) -> None:
        if stop := self._stops.pop(instance, None):
            stop()

    def stop(self) -> None:
        for instance in sorted(self._stops):
            self.end(instance)


@dataclass(frozen=True, slots=True)
class _Run:
    instances: RunningInstances

    def handle(self, action: RunInstance) -> Generator[Work, Any, None]:
        self.instances.run(action.instance)
        return
        yield


@dataclass(frozen=True, slots=True)
class _Stop:
    instances: RunningInstances

    def handle(self, action: StopInstance) -> Generator[Work, Any, None]:
        self.instances.end(action.instance)
        return
        yield
