"""Controllers that leave a cluster to upstream's OLM as soon as it is there, and say so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from syncline.base.action import Action
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Emit, Plan, Requeue, Result, awaiting_lists
from syncline.kube.objects import Obj, ObjectRef, generation
from syncline.patterns.operators.controllers.looking import DEPLOYMENTS, MANAGER, SERVICES_OF_APIS, unlisted
from syncline.patterns.operators.foreign import upstream_manager

AGAIN_S: Final = 60.0
"""Seconds until a controller looks whether upstream's OLM is gone."""
_KINDS: Final = (DEPLOYMENTS, SERVICES_OF_APIS)


@dataclass(frozen=True, slots=True)
class Held:
    """``found``: what shows that upstream's OLM is here."""

    obj: Obj | None
    found: str = ""
    unlisted: tuple[str, ...] = ()


def _held(cache: Snapshot, ref: ObjectRef) -> Held | None:
    if missing := unlisted(cache, _KINDS):
        return Held(None, unlisted=missing)
    found = upstream_manager(cache.objects(DEPLOYMENTS), cache.objects(SERVICES_OF_APIS))
    return Held(cache.get(ref), found) if found else None


def _plan(held: Held) -> Plan:
    if held.unlisted:
        return Plan(*awaiting_lists(held.unlisted))
    why = f"the Operator Lifecycle Manager works on this cluster ({held.found}), so this role does nothing"
    said: tuple[Action, ...] = ()
    if held.obj is not None and generation(held.obj):
        said = (Emit(held.obj, "LeftToUpstream", why, MANAGER, warning=True, limited=True),)
    return Plan(outcome=Requeue(AGAIN_S, why, background=True), why=why, status=said)


def yielding(controller: Controller[Any]) -> Controller[Any]:
    """Return the controller, which plans nothing while upstream's OLM is on the cluster."""
    observe, plan = controller.observe, controller.plan
    settle, beside = controller.settle, controller.beside

    def looked(cache: Snapshot, ref: ObjectRef) -> Any:
        return _held(cache, ref) or observe(cache, ref)

    def planned(looked: Any, now: datetime) -> Plan:
        return _plan(looked) if isinstance(looked, Held) else plan(looked, now)

    def settled(looked: Any, done: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Any, Plan] | None:
        return None if settle is None or isinstance(looked, Held) else settle(looked, done, results, now)

    def share(looked: Any) -> str | None:
        return None if beside is None or isinstance(looked, Held) else beside(looked)

    reads = tuple(dict.fromkeys((*controller.reads, *_KINDS)))
    return replace(
        controller,
        observe=looked,
        plan=planned,
        settle=settled if settle is not None else None,
        beside=share if beside is not None else None,
        reads=reads,
    )
