"""Delete old signing requests, at the ages of Kubernetes' csrcleaner."""

from __future__ import annotations

from datetime import datetime, timedelta

from syncline.base.clock import time_or_none
from syncline.cluster.builtin.access.certificates.requests import is_issued
from syncline.cluster.builtin.pods import condition, created_at
from syncline.control.plan import Delete, Plan, Requeue
from syncline.kube.objects import Obj, dig

DECIDED = timedelta(hours=1)
"""Age since the request was denied, failed, or was approved and issued."""
PENDING = timedelta(hours=24)
"""Age since creation of a request without a decision."""


def plan(csr: Obj, now: datetime) -> Plan:
    """Keep requests that are approved but not issued: the signer may be offline."""
    due = _due(csr)
    if due is None:
        return Plan(why="its signer has not answered yet")
    if now < due:
        return Plan(outcome=Requeue((due - now).total_seconds(), "is the request old?", background=True))
    return Plan(((Delete.of(csr, "the request is old"),),), why="the request is old")


def _due(csr: Obj) -> datetime | None:
    if not dig(csr, "status", "conditions", default=[]) and not is_issued(csr):
        return created_at(csr) + PENDING
    ends = ("Denied", "Failed", "Approved") if is_issued(csr) else ("Denied", "Failed")
    for found in (condition(csr, kind) for kind in ends):
        if found is not None:
            return (time_or_none(found.get("lastUpdateTime")) or created_at(csr)) + DECIDED
    return None
