"""Define the kubelet's controller for all simulated machines."""

from __future__ import annotations

from dataclasses import replace

from syncline.cluster.builtin.pods import is_finished
from syncline.cluster.machines.containers import ContainerTable
from syncline.cluster.machines.kubelet import observe as observing
from syncline.cluster.machines.kubelet import plan as planning
from syncline.cluster.machines.kubelet.admit import AskedCache
from syncline.cluster.machines.kubelet.observe import NODE, POD, SERVICE, EndsWithUs, Observed, pods_referring
from syncline.cluster.machines.simulated import Machines
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.kube.objects import GroupKind, Obj, ObjectRef, is_terminating

KUBELET = "kubelet"
"""Name of the controller."""

CONFIG_MAP, SECRET = GroupKind("", "ConfigMap"), GroupKind("", "Secret")


def _at_rest(obj: Obj) -> bool:
    """Return False for terminating and finished pods, which may have containers to stop."""
    return not is_terminating(obj) and not is_finished(obj)


def kubelet_controller(machines: Machines, table: ContainerTable, ends_with_us: EndsWithUs) -> Controller[Observed]:
    """Return one controller for all machines; its key is a pod."""
    asked = AskedCache()

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        observed = observing.observe(cache, ref, machines, table, ends_with_us, asked)
        if observed is None or all(cache.has_synced(each) for each in (CONFIG_MAP, SECRET, SERVICE)):
            return observed
        return replace(observed, complete=False)

    return Controller(
        name=KUBELET,
        kind=POD,
        watches=(Watch(CONFIG_MAP, pods_referring), Watch(SECRET, pods_referring)),
        reads=(NODE, SERVICE),
        indices=observing.indices(),
        observe=observe,
        plan=planning.plan,
        settle=planning.settle,
        at_rest=_at_rest,
    )
