"""The plans of an add-on's registration on its cluster: which certificates are kept, what the hub is shown; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.control.plan import Done, Plan, Requeue, Result, set_status
from syncline.fleet.addons import hosted
from syncline.fleet.conditions import find_condition, with_condition
from syncline.fleet.spoke.addons.credentials import secrets_of, wanted_of
from syncline.fleet.spoke.addons.keeping import Keep, Sweep
from syncline.fleet.spoke.registration.rotation import POLL_S, Progress
from syncline.kube.kinds.addonversions import CLIENT_SIGNER
from syncline.kube.objects import Obj, dig, is_terminating

DRIVER: Final = "csr"
SWEEP_S: Final = 600.0


def plan_registration(addon: Obj, _now: datetime) -> Plan:
    """Keep the certificates of an add-on. While it is being deleted they stay: its agent may have to clean up."""
    wanted = wanted_of(addon)
    if not wanted:
        return Plan(why="the add-on registers nothing")
    if hosted(addon):
        return Plan(why=f"the agent of the add-on runs on cluster {hosted(addon)}, which this agent does not reach")
    if is_terminating(addon):
        return Plan(why="the add-on is being deleted")
    status: Obj = addon.get("status") or {}
    client = any(one.get("signerName") == CLIENT_SIGNER for one in dig(status, "registrations") or ())
    if client and status.get("kubeClientDriver") != DRIVER:
        why = "agents of add-ons have certificates here"
        return Plan((), Done(), why, set_status(addon, {**status, "kubeClientDriver": DRIVER}, why))
    why = "the certificates of the add-on"
    keeping = tuple(Keep(one, why) for one in wanted)
    return Plan((keeping,), Requeue(POLL_S, why, background=True), why)


def settle_registration(addon: Obj, _plan: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Obj, Plan] | None:
    """Say on the hub what became of the certificates, and look again when the first of them needs it."""
    kept = [one for one in results if isinstance(one.action, Keep)]
    if not kept:
        return None
    status: Obj = addon.get("status") or {}
    conditions, again, whys = list(status.get("conditions") or ()), [], []
    for one in kept:
        progress = one.value if isinstance(one.value, Progress) else Progress(str(one.error))
        again.append(progress.again_s)
        whys.append(progress.why)
        new = progress.condition
        if new is not None and not _says(conditions, new):
            conditions = with_condition(conditions, new, now)
    why = "; ".join(dict.fromkeys(whys))
    written = set_status(addon, {**status, "conditions": conditions}, why) if conditions else ()
    return addon, Plan((), Requeue(min(again), why, background=True), why, written)


def _says(conditions: list[Obj], new: Obj) -> bool:
    before = find_condition(conditions, str(new["type"]))
    return before is not None and before.items() >= new.items()


@dataclass(frozen=True, slots=True)
class Kept:
    """The add-ons of a cluster; ``listed``: they are known."""

    addons: tuple[Obj, ...]
    listed: bool


def plan_sweep(observed: Kept, _now: datetime) -> Plan:
    """Delete the Secrets of add-ons that are gone, and of places that add-ons have left."""
    if not observed.listed:
        return Plan((), Requeue(POLL_S, "add-ons"), "the add-ons of the cluster are not listed yet")
    why = "Secrets of add-ons that are gone"
    sweep = Sweep(secrets_of(observed.addons), why)
    return Plan(((sweep,),), Requeue(SWEEP_S, why, background=True), why)
