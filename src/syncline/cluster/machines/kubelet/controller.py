"""Binds the kubelet of all simulated machines to pods."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from syncline.cluster.builtin.pods import is_finished
from syncline.cluster.machines.containers import ContainerTable
from syncline.cluster.machines.kubelet import observe as observing
from syncline.cluster.machines.kubelet import plan as planning
from syncline.cluster.machines.kubelet.admit import AskedBook
from syncline.cluster.machines.kubelet.observe import NODE, POD, EndsWithUs, Observed, pods_referring
from syncline.cluster.machines.simulated import Machines
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, Obj, ObjectRef, is_terminating

__all__ = ["KubeletController"]

CONFIG_MAP, SECRET = GroupKind("", "ConfigMap"), GroupKind("", "Secret")


class KubeletController:
    """One for all machines; its keys are pods."""

    name = "kubelet"
    kind = POD
    watches: tuple[Watch, ...] = (Watch(CONFIG_MAP, pods_referring), Watch(SECRET, pods_referring))
    reads: tuple[GroupKind, ...] = (NODE,)
    indices = observing.indices()

    def __init__(self, machines: Machines, table: ContainerTable, ends_with_us: EndsWithUs) -> None:
        self._machines = machines
        self._table = table
        self._ends_with_us = ends_with_us
        self._asked = AskedBook()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        seen = observing.observe(cache, ref, self._machines, self._table, self._ends_with_us, self._asked)
        if seen is None or (cache.has_synced(CONFIG_MAP) and cache.has_synced(SECRET)):
            return seen
        return replace(seen, complete=False)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return planning.plan(seen, now)

    def at_rest(self, obj: Obj) -> bool:
        """A pod that goes or has ended may have something left to stop."""
        return not is_terminating(obj) and not is_finished(obj)

    def settle(
        self, seen: Observed, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[Observed, Plan] | None:
        return planning.settle(seen, plan, results, now)
