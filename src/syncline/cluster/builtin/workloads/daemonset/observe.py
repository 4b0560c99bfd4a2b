"""Observe a DaemonSet with its pods, nodes and revisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from syncline.cluster.builtin.pods import created_at
from syncline.cluster.builtin.workloads.daemonset.placing import node_of, placement
from syncline.cluster.builtin.workloads.shares import share
from syncline.control.plan import Patch
from syncline.kube.objects import Obj, dig, is_terminating, name_of


@dataclass(frozen=True)
class Observed:
    """``nodes`` are all nodes; ``pods`` are claimed, ``patches`` write adoptions and releases."""

    daemonset: Obj
    pods: tuple[Obj, ...]
    patches: tuple[Patch, ...]
    nodes: tuple[Obj, ...]
    revisions: tuple[Obj, ...]

    @property
    def min_ready_s(self) -> int:
        return int(dig(self.daemonset, "spec", "minReadySeconds", default=0))

    @cached_property
    def _by_node(self) -> Mapping[str, list[Obj]]:
        found: dict[str, list[Obj]] = {}
        for pod in self.pods:
            found.setdefault(node_of(pod), []).append(pod)
        return {node: sorted(pods, key=lambda p: (created_at(p), name_of(p))) for node, pods in found.items()}

    def on(self, node: str) -> list[Obj]:
        """Return the pods of a node, oldest first."""
        return self._by_node.get(node, [])

    def lasting_on(self, node: str) -> list[Obj]:
        """Return the pods of a node that are not terminating."""
        return [pod for pod in self.on(node) if not is_terminating(pod)]

    @property
    def rolls(self) -> bool:
        return bool(dig(self.daemonset, "spec", "updateStrategy", "type", default="RollingUpdate") == "RollingUpdate")

    @property
    def surges(self) -> bool:
        """Return True if an update may run a new pod beside the old one (``maxSurge``)."""
        return self.rolls and self._rolling("maxSurge", 0) not in (0, "0%")

    @cached_property
    def places(self) -> tuple[tuple[str, bool, bool], ...]:
        """Return name, whether a pod should start, and whether one may stay, for each node."""
        judge = placement(self.daemonset)
        return tuple((name_of(node), *judge(node)) for node in self.nodes)

    @cached_property
    def wanted(self) -> tuple[str, ...]:
        """Names of the nodes that should have a pod."""
        return tuple(name for name, starts, _ in self.places if starts)

    @property
    def max_surge(self) -> int:
        return share(self._rolling("maxSurge", 0), len(self.wanted), up=True) if self.rolls else 0

    @property
    def max_unavailable(self) -> int:
        """Limit of unavailable pods. Both limits are rounded up; one of them is at least one."""
        missing = share(self._rolling("maxUnavailable", 1), len(self.wanted), up=True)
        return 1 if missing == 0 and self.max_surge == 0 else missing

    def _rolling(self, field: str, otherwise: int) -> int | str:
        value: int | str = dig(self.daemonset, "spec", "updateStrategy", "rollingUpdate", field, default=otherwise)
        return value
