"""Writes the effective node disruption policies into the status of MachineConfiguration ``cluster``.

Agents use them once ``observedGeneration`` equals the object's generation. Source: reference machine-config 1.8.
"""

from __future__ import annotations

from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Plan, set_status
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIGURATION
from syncline.kube.objects import Obj, ObjectRef, dig, meta
from syncline.machineconfig.policies.model import effective_policies


def plan_policies(configuration: Obj) -> Plan:
    """Return the plan of one reconcile; pure."""
    policies = effective_policies(dig(configuration, "spec", "nodeDisruptionPolicy"))
    status: Obj = dict(configuration.get("status") or {})
    status |= {
        "nodeDisruptionPolicyStatus": {"clusterPolicies": policies},
        "observedGeneration": int(meta(configuration).get("generation") or 0),
    }
    done = set_status(configuration, status, "the effective policies")
    return Plan(status=done, why=f"{len(policies['files'])} policies for files are in force")


def _observe(cache: Snapshot, ref: ObjectRef) -> Obj | None:
    return cache.get(ref) if ref.name == "cluster" else None


def _plan(observed: Obj, now: datetime) -> Plan:
    return plan_policies(observed)


POLICY_CONTROLLER = Controller(
    name="machine-config-policies",
    kind=MACHINE_CONFIGURATION.group_kind,
    observe=_observe,
    plan=_plan,
)
"""Kind MachineConfiguration."""
