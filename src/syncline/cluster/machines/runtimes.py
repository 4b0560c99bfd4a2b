"""Map containers to runtimes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from syncline.cluster.machines.containers import Container, Order, Runtime
from syncline.kube.objects import Obj, annotations_of

Behaves = Callable[[Obj], Mapping[str, str]]
"""From a pod to annotations of :mod:`syncline.cluster.machines.scripted.stages`; empty: those it has."""


@dataclass(slots=True)
class Runtimes:
    """``by_name`` has at least ``staged``; the first of ``choices`` that accepts an order names its runtime. Both are
    read on each call, since runtimes may be added while the loop runs."""

    by_name: Mapping[str, Runtime]
    choices: Sequence[tuple[str, Callable[[Order], bool]]] = field(default=())
    behaviours: Sequence[Behaves] = field(default=())
    """Annotations of stages that pods have besides their own, and in place of them."""

    def behaving(self, order: Order) -> Order:
        """Return the order with the annotations that its pod has by ``behaviours``."""
        notes = {key: value for each in self.behaviours for key, value in each(order.pod).items()}
        if not notes:
            return order
        metadata = {**order.pod["metadata"], "annotations": {**annotations_of(order.pod), **notes}}
        return replace(order, pod={**order.pod, "metadata": metadata})

    def choose(self, order: Order) -> Runtime:
        for name, takes in self.choices:
            if name in self.by_name and takes(order):
                return self.by_name[name]
        return self.by_name["staged"]

    def of(self, container: Container) -> Runtime:
        """Return the runtime of a container."""
        return self.by_name.get(container.runtime, self.by_name["staged"])

    def forget(self, pod_uid: str) -> None:
        for runtime in self.by_name.values():
            runtime.forget(pod_uid)
