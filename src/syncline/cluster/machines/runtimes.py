"""Map containers to runtimes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from syncline.cluster.machines.containers import Container, Order, Runtime


@dataclass(slots=True)
class Runtimes:
    """``by_name`` has at least ``staged``; the first of ``choices`` that accepts an order names its runtime. Both are
    read on each call, since runtimes may be added while the loop runs."""

    by_name: Mapping[str, Runtime]
    choices: Sequence[tuple[str, Callable[[Order], bool]]] = field(default=())

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
