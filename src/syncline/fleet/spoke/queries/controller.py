"""The controller that answers what the hub lets people ask about Applications of this cluster.

The agent answers for an Application that a work of its hub brought, and for nothing else. It has no clock for
expirations: the hub deletes questions, and what is not there is not answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from syncline.base.clock import format_time
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, differ
from syncline.control.plan import Plan, Requeue, Result, set_status
from syncline.fleet.pull import names
from syncline.fleet.pull.queries.model import Phase, Question, phase_of, question_of
from syncline.fleet.spoke.applications.controller import APPS, WORKS, application_in
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.fleet.spoke.queries.answering import Answer, Answered
from syncline.fleet.spoke.work.deletion import hub_hash
from syncline.kube.kinds.applicationqueries import MAX_TEXT, QUERY
from syncline.kube.kinds.manifestworks import APPLIED_WORK
from syncline.kube.objects import Obj, ObjectRef, dig, is_terminating, name_of, owner_references, ref_of

QUERIES: Final = QUERY.group_kind
AWAY_S: Final = 5.0
"""Seconds between two looks for a cluster that does not answer its agent."""


@dataclass(frozen=True)
class Asking:
    """A question that the hub accepted, and the Application on the cluster. ``error``: why there is no answer;
    ``waits``: why there is none yet."""

    query: Obj = field(repr=False)
    question: Question
    app: Obj | None = field(default=None, repr=False)
    error: str = ""
    waits: str = ""


def query_controller(link: Link) -> Controller[Asking]:
    """Return the controller. Where the hub does not serve the kind it does nothing."""

    def observe(hub: Snapshot, ref: ObjectRef) -> Asking | None:
        query = hub.get(ref)
        if query is None or is_terminating(query) or phase_of(query) != Phase.ACCEPTED:
            return None
        question = question_of(query)
        if question is None or ref.namespace != link.cluster:
            return None
        return _asking(link, hub, query, question)

    def all_queries(_cluster: str, hub: Snapshot) -> Iterable[ObjectRef]:
        return map(ref_of, hub.objects(QUERIES))

    return Controller(
        name="application-queries",
        kind=QUERIES,
        predicate=differ(phase_of, is_terminating),
        reaches=all_queries,
        observe=observe,
        plan=plan_query,
        settle=settle_query,
    )


def _asking(link: Link, hub: Snapshot, query: Obj, question: Question) -> Asking:
    named = f"{question.namespace}/{question.name}"
    work = hub.get(ObjectRef(*WORKS, link.cluster, str(dig(query, "status", "work") or "")))
    spoke = link.spoke()
    if work is None or names.hub_application(work) != (question.namespace, question.name):
        return Asking(query, question, error=f"no work of the hub brings Application {named} to cluster {link.cluster}")
    where = application_in(work)
    if where is None:
        return Asking(query, question, error=f"ManifestWork {name_of(work)} carries no Application")
    if spoke is None or link.problem():
        return Asking(query, question, waits=link.problem() or "the cluster is being read for the first time")
    app, refused = spoke.get(ObjectRef(*APPS, *where)), spoke.unread(ObjectRef(*APPS, *where))
    place = f"Application {'/'.join(where)} on cluster {link.cluster}"
    if app is None:
        return Asking(query, question, error=f"{place}: {refused}" if refused else f"{place} does not exist (yet)")
    inventory = f"{hub_hash(link.hub_url)}-{name_of(work)}"
    if not any((one.get("kind"), one.get("name")) == (APPLIED_WORK.kind, inventory) for one in owner_references(app)):
        return Asking(query, question, error=f"{place} was not brought by ManifestWork {name_of(work)} of this hub")
    return Asking(query, question, app)


def plan_query(seen: Asking, now: datetime) -> Plan:
    """Plan the answer, or say why there is none."""
    if seen.waits:
        return Plan(outcome=Requeue(AWAY_S, seen.waits), why=seen.waits)
    if seen.app is None:
        return _written(seen.query, Phase.FAILED, {"error": seen.error}, now)
    why = f"{seen.question.asked_by} asks for {seen.question.what}"
    answer = Answer(name_of(seen.query), seen.question, seen.app, why, cluster=SPOKE)
    return Plan(((answer,),), why=why)


def settle_query(seen: Asking, plan: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Asking, Plan] | None:
    """Plan the status write that carries what was found."""
    if not any(isinstance(one, Answer) for one in plan.actions):
        return None
    (result,) = results
    if not isinstance(result.value, Answered):
        error = str(result.value or result.error)
        return seen, _written(seen.query, Phase.FAILED, {"error": error[:MAX_TEXT]}, now)
    found: Answered = result.value
    status: Obj = {"rows": list(found.rows)}
    status |= {"notes": list(found.notes)} if found.notes else {}
    status |= {"next": found.next} if found.next else {}
    return seen, _written(seen.query, Phase.ANSWERED, status, now)


def _written(query: Obj, phase: Phase, status: Obj, now: datetime) -> Plan:
    why = str(status.get("error") or f"the answer to {name_of(query)}")
    known = query.get("status") or {}
    made = {**known, **status, "phase": str(phase), "answeredAt": format_time(now)}
    return Plan((set_status(query, made, why),), why=why)
