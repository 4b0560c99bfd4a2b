"""The rollout state of a cluster, as its child ManifestWork says it: :func:`state_of`.

Rules: ``clusterRolloutStatusFunc`` of upstream. Until the agent has applied this generation and said how it goes,
nothing that the work said before counts.
"""

from __future__ import annotations

from syncline.base.clock import time_or_none
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.rollout.model import ClusterState, State
from syncline.kube.objects import Obj, dig, generation, namespace_of


def state_of(work: Obj) -> ClusterState:
    """Return the state of the cluster whose namespace holds the work.

    Without a condition ``Progressing`` of this generation it stays ToApply; a work has one only through
    ``conditionRules``.
    """
    conditions = dig(work, "status", "conditions") or ()
    applied, progressing, degraded = (
        find_condition(conditions, kind) for kind in ("Applied", "Progressing", "Degraded")
    )
    cluster = namespace_of(work)
    current = all(one.get("observedGeneration") == generation(work) for one in (applied, progressing, degraded) if one)
    if not current or not progressing or not applied or applied.get("status") != "True":
        return ClusterState(cluster, State.TO_APPLY)
    runs = progressing.get("status") != "False"
    fails = progressing.get("status") == "True" and (degraded or {}).get("status") == "True"
    state = State.FAILED if fails else State.PROGRESSING if runs else State.SUCCEEDED
    said = degraded if fails and degraded else progressing
    return ClusterState(cluster, state, since=time_or_none(said.get("lastTransitionTime")))


def says_progress(work: Obj) -> bool:
    """Return whether a condition rule of the work says how it progresses."""
    configs = dig(work, "spec", "manifestConfigs") or ()
    rules = (rule for config in configs for rule in config.get("conditionRules") or ())
    return any(rule.get("condition") == "Progressing" for rule in rules)


def is_settled(work: Obj) -> bool:
    """Return whether a work disturbs its cluster no longer, so that a place in a disruption budget may be given back.

    It has succeeded; or, where no condition rule of it can say so (its state stays ToApply for ever), this generation
    is applied and everything in it is there. Failure settles nothing, neither does a deadline that has passed.
    """
    if state_of(work).state is State.SUCCEEDED:
        return True
    if says_progress(work):
        return False
    conditions = dig(work, "status", "conditions") or ()
    found = [find_condition(conditions, kind) or {} for kind in ("Applied", "Available")]
    return (
        all(one.get("status") == "True" and one.get("observedGeneration") == generation(work) for one in found)
        and (find_condition(conditions, "Degraded") or {}).get("status") != "True"
    )
