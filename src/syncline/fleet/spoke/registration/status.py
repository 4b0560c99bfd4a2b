"""The status of a cluster as its agent writes it on the hub; pure.

Rules: ``pkg/registration/spoke/managedcluster`` of upstream (reference ocm-pull-model §1.2, §1.6, §1.7). The handler of
:class:`Probe` is in ``probing.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Emit, Plan, Requeue, Result, set_status
from syncline.fleet.conditions import condition, find_condition, is_true, with_condition
from syncline.fleet.hub.registration.leases import ACCEPTED, AVAILABLE, CLOCK_SYNCED, JOINED, SKIP_CLOCK
from syncline.fleet.spoke.registration.claims import TRUNCATED, Claims
from syncline.fleet.spoke.registration.health import EVERY, Health
from syncline.fleet.spoke.registration.resources import Resources
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import Obj, annotations_of, dig, name_of, uid_of

COMPONENT: Final = "registration-agent"
CLOCK_DIFFERS: Final = (
    "the managed cluster's clock is out of sync, the agent will not be able to update the status of managed cluster"
)
"""Upstream's sentence."""


@dataclass(frozen=True, slots=True)
class Probe(Action):
    """Ask the API server of the cluster whether it works; the result is the new :class:`Health`."""

    reason: str

    def describe(self) -> str:
        return "probe the cluster's API server"


UNANSWERED_S: Final = 1.0
"""Seconds until the status is looked at again while the hub has not seen the lease renewed."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A ManagedCluster on the hub, and what is known of the cluster itself. ``resources``, ``claims`` None: not known,
    so what the hub has stays."""

    cluster: Obj
    health: Health
    resources: Resources | None = None
    claims: Claims | None = None
    answered: bool = True
    """The lease was renewed since the hub found that it was not (:func:`~.beats.answers`)."""


def clock_differs(cluster: Obj) -> bool:
    """Return whether the hub sees another time than the agent, so that the agent may not write the status."""
    found = find_condition(dig(cluster, "status", "conditions") or (), CLOCK_SYNCED)
    skipped = annotations_of(cluster).get(SKIP_CLOCK) == "true"
    return found is not None and found.get("status") == "False" and not skipped


def plan_status(observed: Observed, now: datetime) -> Plan:
    """Plan one look at the cluster: a probe when one is due, and what follows from the last one."""
    if not is_true(dig(observed.cluster, "status", "conditions") or (), ACCEPTED):
        return Plan(why="the cluster is not accepted by the hub")
    due = observed.health.next_probe()
    if due is None or due <= now or due - now > EVERY:  # the last: the clock was set back
        why = "the cluster's API server was not asked for a while"
        return Plan(((Probe(why),),), Requeue(EVERY.total_seconds(), why, background=True), why)
    again = Requeue((due - now).total_seconds(), "the next probe", background=True)
    if clock_differs(observed.cluster):
        return Plan((), again, CLOCK_DIFFERS)
    if not observed.answered:
        return Plan((), Requeue(UNANSWERED_S, "the renewal of the lease"), "the lease is renewed before anything else")
    status = reported(observed, now)
    why = "the status of the cluster"
    written = set_status(observed.cluster, status, why)
    # Events after the write: one that loses a conflict is planned again, and would say everything twice.
    return Plan((written, _events(observed, status)) if written else (), again, why)


def settle_status(
    observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime
) -> tuple[Observed, Plan] | None:
    """Go on from a probe."""
    if not results or not isinstance(results[-1].action, Probe) or not isinstance(results[-1].value, Health):
        return None
    known = replace(observed, health=results[-1].value)
    return known, plan_status(known, now)


def reported(observed: Observed, now: datetime) -> Obj:
    """Return the status to write. A cluster that does not answer keeps what it had."""
    live: Obj = observed.cluster.get("status") or {}
    status, conditions = dict(live), list(live.get("conditions") or ())
    if not is_true(conditions, JOINED):
        conditions = with_condition(conditions, condition(JOINED, "True", JOINED, "Managed cluster joined"), now)
    judged = observed.health.judged()
    if judged is not None:
        conditions = with_condition(conditions, judged, now)
    status["conditions"] = conditions
    if judged is None or judged["status"] != "True":
        return status
    answer = observed.health.answer
    if answer is not None and answer.version:
        status["version"] = {"kubernetes": answer.version}
    if observed.resources is not None:
        status["capacity"] = {**(live.get("capacity") or {}), **observed.resources.capacity}  # others write keys too
        status["allocatable"] = observed.resources.allocatable
    if observed.claims is not None:
        status["clusterClaims"] = list(observed.claims.shown)
    return {key: value for key, value in status.items() if value or key in live}


def _events(observed: Observed, status: Obj) -> tuple[Action, ...]:
    """Return the Events that a new status is worth, in the namespace of the cluster."""
    cluster, name = observed.cluster, name_of(observed.cluster)
    metadata = {"name": name, "namespace": name, "uid": uid_of(cluster)}
    regarding = {"apiVersion": MANAGED_CLUSTER.api_version, "kind": MANAGED_CLUSTER.kind, "metadata": metadata}
    made: list[Action] = []
    was, now_is = (_availability(one.get("conditions") or ()) for one in (cluster.get("status") or {}, status))
    if was != now_is and now_is == "True":
        text = f"The {name} is successfully imported, and it is managed by the hub cluster. Its apieserver is available"
        made.append(Emit(regarding, "Available", text, COMPONENT, event_action="Available"))
    elif was != now_is and now_is == "False":
        text = f"The {name} is successfully imported. However, its Kube API server is unavailable"
        made.append(Emit(regarding, "Unavailable", text, COMPONENT, warning=True, event_action="Unavailable"))
    claims = observed.claims
    if claims is not None and claims.dropped and dig(cluster, "status", "clusterClaims") != status.get("clusterClaims"):
        made.append(Emit(regarding, TRUNCATED, claims.dropped, COMPONENT, warning=True, limited=True))
    return tuple(made)


def _availability(conditions: Sequence[Obj]) -> str:
    return str((find_condition(conditions, AVAILABLE) or {}).get("status") or "")
