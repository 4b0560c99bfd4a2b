"""The health of an add-on by the lease that its agent renews on the cluster; pure but for :class:`LeaseReader`.

Rules: ``pkg/registration/spoke/addon/lease_controller.go`` of upstream. An agent may also renew its lease on the hub,
in the namespace of the cluster, as older ones do.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from syncline.base.action import Action
from syncline.base.clock import time_or_none
from syncline.control.plan import Plan, Requeue, Result, set_status
from syncline.fleet.addons import AVAILABLE, hosted, install_namespace
from syncline.fleet.conditions import condition, with_condition
from syncline.fleet.spoke.addons.keeping import at_spoke
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj, ResourceInfo, dig, name_of, namespace_of

LEASES: Final = ResourceInfo("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)
GRACE: Final = timedelta(seconds=5 * 60)
LOOK_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class ReadLease(Action):
    """Read the lease of an add-on: on the cluster, else on the hub. The result is the lease, or None."""

    namespace: str
    name: str
    hub_namespace: str
    reason: str

    def describe(self) -> str:
        return f"read the lease of add-on {self.name} in namespace {self.namespace}"


class LeaseReader:
    """Handler of :class:`ReadLease`."""

    def handle(self, action: ReadLease) -> Generator[Request, Response, Obj | None]:
        found = yield at_spoke(client.get(LEASES, action.namespace, action.name))
        if found.status != 404:
            return dict(found.or_raise())
        found = yield client.get(LEASES, action.hub_namespace, action.name)
        return None if found.status == 404 else dict(found.or_raise())


def plan_lease(addon: Obj, _now: datetime) -> Plan:
    """Look at the lease, where nothing else tells how the add-on is."""
    if dig(addon, "status", "healthCheck", "mode") == "Customized":
        return Plan(why="the manager of the add-on on the hub looks after its health")
    if hosted(addon):
        return Plan(why=f"the agent of the add-on runs on cluster {hosted(addon)}, which this agent does not see")
    why = "the lease of the add-on"
    look = ReadLease(install_namespace(addon), name_of(addon), namespace_of(addon), why)
    return Plan(((look,),), Requeue(LOOK_S, why, background=True), why)


def settle_lease(addon: Obj, plan: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Obj, Plan] | None:
    """Say on the hub what the lease says. One that cannot be read changes nothing."""
    if not results or not isinstance(results[-1].action, ReadLease) or not results[-1].ok:
        return None
    new = health(name_of(addon), results[-1].value, now)
    live: Obj = addon.get("status") or {}
    status = {**live, "conditions": with_condition(live.get("conditions") or (), new, now)}
    written = set_status(addon, status, "the lease of the add-on")
    return (addon, Plan((), plan.outcome, plan.why, written)) if written else None


def health(addon: str, lease: Obj | None, now: datetime) -> Obj:
    """Return the condition Available of an add-on with this lease."""
    if lease is None:
        text = f"The status of {addon} add-on is unknown."
        return condition(AVAILABLE, "Unknown", "ManagedClusterAddOnLeaseNotFound", text)
    renewed = time_or_none(dig(lease, "spec", "renewTime"))
    if renewed is not None and now < renewed + GRACE:
        return condition(AVAILABLE, "True", "ManagedClusterAddOnLeaseUpdated", f"{addon} add-on is available.")
    text = f"{addon} add-on is not available."
    return condition(AVAILABLE, "False", "ManagedClusterAddOnLeaseUpdateStopped", text)
