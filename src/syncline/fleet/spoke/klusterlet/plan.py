"""Plans what a Klusterlet needs: its agent, its namespaces, its status, and the end of all that; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.base.secret import Secret
from syncline.control.plan import Create, Delete, Patch, Plan, Requeue, Retry, set_status
from syncline.fleet.conditions import with_conditions
from syncline.fleet.spoke.klusterlet.conditions import conditions_of, unsupported
from syncline.fleet.spoke.klusterlet.model import (
    ADD_ON_NAMESPACE,
    HUB_SECRET,
    AgentState,
    EndAgent,
    KeepCredentials,
    RunAgent,
    namespace_for,
    wanted_by,
)
from syncline.kube.kinds.manifestworks import APPLIED_FINALIZER
from syncline.kube.objects import GVK, Obj, dig, finalizers, gvk_of, is_terminating, meta, name_of, uid_of

FINALIZER: Final = "operator.open-cluster-management.io/klusterlet-cleanup"
SPACE_LABEL: Final = "operator.open-cluster-management.io/klusterlet"
LOOK_S: Final = 60.0
"""Seconds after which the Secret of the agent is looked at again."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A Klusterlet, its cluster and its agent. ``bootstrap`` None: ``problem`` says why; ``applied``: all
    AppliedManifestWorks, of a Klusterlet that ends; ``alone``: no other Klusterlet is there."""

    klusterlet: Obj
    bootstrap: Secret | None
    problem: str
    namespaces: frozenset[str]
    state: AgentState | None
    applied: tuple[Obj, ...] = ()
    alone: bool = True
    unread: str = ""
    """Why the AppliedManifestWorks cannot be read, or ""."""


def plan_klusterlet(observed: Observed, now: datetime) -> Plan:
    klusterlet = observed.klusterlet
    if is_terminating(klusterlet):
        return _plan_end(observed)
    if FINALIZER not in finalizers(klusterlet):
        body = _finalizers(klusterlet, [*finalizers(klusterlet), FINALIZER])
        return Plan(
            ((_patch(klusterlet, body, "it is cleaned up before it goes"),),), why="nothing without a finalizer"
        )
    steps = () if unsupported(klusterlet) else _steps(observed)
    live = klusterlet.get("status") or {}
    new = conditions_of(klusterlet, observed.problem, observed.state)
    kept = [one for one in live.get("conditions") or () if one.get("type") in {each["type"] for each in new}]
    generation = meta(klusterlet).get("generation")
    status = {**live, "conditions": with_conditions(kept, new, now), "observedGeneration": generation}
    why = "the agent that the Klusterlet asks for"
    again = Requeue(LOOK_S, "a look at the agent's Secret", background=True)
    return Plan(steps, again, why, set_status(klusterlet, status, "what became of the Klusterlet"))


def _steps(observed: Observed) -> tuple[tuple[Action, ...], ...]:
    klusterlet, state = observed.klusterlet, observed.state
    name, namespace = name_of(klusterlet), namespace_for(klusterlet)
    spaces: tuple[Action, ...] = tuple(
        Create(_namespace(one, name), f"klusterlet {name} needs it")
        for one in (namespace, ADD_ON_NAMESPACE)
        if one not in observed.namespaces
    )
    if observed.bootstrap is None and state is None:
        return (spaces,) if spaces else ()
    wanted = wanted_by(klusterlet, observed.bootstrap) if observed.bootstrap is not None else None
    if wanted is not None and (state is None or state.wanted != wanted):
        why = "nothing runs for it" if state is None else "it asks for another agent"
        return (*((spaces,) if spaces else ()), (RunAgent(wanted, why),))
    if state is not None and state.has_credentials:
        why = "they survive the process" if not state.kept else "the Secret may be gone"
        return (*((spaces,) if spaces else ()), (KeepCredentials(name, namespace, why),))
    return (spaces,) if spaces else ()


def _plan_end(observed: Observed) -> Plan:
    klusterlet = observed.klusterlet
    name, uid, namespace = name_of(klusterlet), uid_of(klusterlet), namespace_for(klusterlet)
    if FINALIZER not in finalizers(klusterlet):
        return Plan(why="others keep it")
    end = EndAgent(name, uid, "the Klusterlet is deleted")
    if observed.state is not None:
        return Plan(((end,),), Requeue(1.0, "the agent ends"), "the agent ends first")
    if observed.unread:
        return Plan(
            outcome=Retry(f"what the agent applied cannot be read: {observed.unread}"), why="nothing is guessed"
        )
    why = "the Klusterlet is deleted"
    mine = [one for one in observed.applied if dig(one, "spec", "agentID") == uid]
    releases: tuple[Action, ...] = tuple(
        _patch(one, _finalizers(one, [each for each in finalizers(one) if each != APPLIED_FINALIZER]), why)
        for one in mine
        if APPLIED_FINALIZER in finalizers(one)
    )
    spaces = (namespace, *((ADD_ON_NAMESPACE,) if observed.alone else ()))
    rest: tuple[Action, ...] = (
        Delete(GVK("", "v1", "Secret"), namespace, HUB_SECRET, why),
        *(Delete(GVK("", "v1", "Namespace"), "", one, why) for one in spaces if one in observed.namespaces),
    )
    own = [each for each in finalizers(klusterlet) if each != FINALIZER]
    last = _patch(klusterlet, _finalizers(klusterlet, own), "everything of it is gone")
    return Plan(((end,), *((releases,) if releases else ()), rest, (last,)), why=why)


def _namespace(name: str, klusterlet: str) -> Obj:
    labels = {SPACE_LABEL: klusterlet}
    notes = {"workload.openshift.io/allowed": "management"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels, "annotations": notes},
    }


def _finalizers(obj: Obj, names: list[str]) -> Obj:
    version = meta(obj).get("resourceVersion")
    return {"metadata": {"finalizers": names, "uid": uid_of(obj), "resourceVersion": version}}


def _patch(obj: Obj, body: Obj, reason: str) -> Patch:
    return Patch(gvk_of(obj), "", name_of(obj), body, reason)
