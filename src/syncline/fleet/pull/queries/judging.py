"""Which questions a hub lets a cluster's agent answer, and when it deletes them; pure.

A question is accepted after an Event on its Application has said who asks what; where the API refuses the Event, the
audit log alone has it.
Each expires, whether it was answered or not; how many are open is bounded for a cluster and for a person.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from syncline.base.action import Action
from syncline.base.clock import format_time, time_or_none
from syncline.control.plan import Delete, Done, Emit, Outcome, Plan, Requeue, set_status
from syncline.fleet.pull.queries.model import Phase, Question, phase_of, question_of
from syncline.kube.objects import Obj, dig, name_of

LIFE: Final = timedelta(minutes=5)
MAX_OPEN: Final = 20
"""Questions to one cluster that wait for an answer."""
MAX_OPEN_OF_ONE: Final = 5
"""Those of them of one person."""
MAX_KEPT: Final = 100
"""Questions to one cluster that exist at all; newer ones are deleted."""
COMPONENT: Final = "syncline-pull-controller"
ASKED: Final = "AskedThroughAgent"
"""Reason of the Event that says who asked what."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a cluster. ``app``: its Application if that cluster pulls it, else None; ``work``: the name of the
    ManifestWork that carries it; empty: there is none yet."""

    query: Obj = field(repr=False)
    app: Obj | None = field(default=None, repr=False)
    work: str = ""


@dataclass(frozen=True, slots=True)
class AskedOf:
    """All questions to one cluster. ``unlisted``: a kind that is not known yet."""

    cluster: str
    asked: Sequence[Asked]
    unlisted: str = ""


def plan_queries(seen: AskedOf, now: datetime) -> Plan:
    """Accept, refuse or delete each question. The oldest come first."""
    ordered = sorted(seen.asked, key=lambda one: (_created(one.query), name_of(one.query)))
    gone = [one for one in ordered if _ends(one.query, now) <= now]
    kept = [one for one in ordered if _ends(one.query, now) > now]
    steps: list[tuple[Action, ...]] = [(Delete.of(one.query, "the question has expired"),) for one in gone]
    why = f"cluster {seen.cluster} has {MAX_KEPT} questions: no more are kept"
    steps += [(Delete.of(one.query, why),) for one in kept[MAX_KEPT:]]
    kept = kept[:MAX_KEPT]
    open_ones = Counter(_asker(one.query) for one in kept if phase_of(one.query) == Phase.ACCEPTED)
    for one in kept:
        if phase_of(one.query):
            continue
        question = question_of(one.query)
        refusal = _refusal(seen.cluster, one, question, open_ones)
        if refusal or question is None or one.app is None:
            steps.append(_phase(one.query, Phase.REFUSED, refusal, now))
            continue
        open_ones[_asker(one.query)] += 1
        steps += [(_event(seen.cluster, one.app, question),), _phase(one.query, Phase.ACCEPTED, "", now, one.work)]
    return Plan(tuple(steps), _next(kept, now), f"{len(kept)} questions to cluster {seen.cluster}")


def _created(query: Obj) -> str:
    return str(dig(query, "metadata", "creationTimestamp") or "")


def _ends(query: Obj, now: datetime) -> datetime:
    """Return when a question expires; one without a time of creation has expired."""
    created = time_or_none(_created(query))
    return now if created is None else created + LIFE


def _asker(query: Obj) -> str:
    return str(dig(query, "spec", "askedBy") or "")


def _refusal(cluster: str, one: Asked, question: Question | None, open_ones: Counter[str]) -> str:
    """Return why a question is not passed on; empty: it is."""
    if question is None:
        return "spec.ask is none of resources, manifests, diff, logs"
    if one.app is None:
        return f"cluster {cluster} pulls no Application {question.namespace}/{question.name} of this hub"
    if not one.work:
        return f"Application {question.namespace}/{question.name} has not been carried to cluster {cluster} yet"
    mine, every = open_ones[question.asked_by], open_ones.total()
    if mine >= MAX_OPEN_OF_ONE:
        return (
            f"{question.asked_by} has {mine} open questions to cluster {cluster}, at most {MAX_OPEN_OF_ONE} are "
            "allowed; delete one, or wait until it expires"
        )
    if every >= MAX_OPEN:
        return f"cluster {cluster} has {every} open questions, at most {MAX_OPEN} are allowed; ask again in a minute"
    return ""


def _phase(query: Obj, phase: Phase, error: str, now: datetime, work: str = "") -> tuple[Action, ...]:
    status: Obj = {"phase": str(phase), "expiresAt": format_time(_ends(query, now))}
    status |= {"error": error} if error else {"work": work, "acceptedAt": format_time(now)}
    return set_status(query, status, error or "the agent may answer")


def _event(cluster: str, app: Obj, question: Question) -> Emit:
    text = f"{question.what} on cluster {cluster}, asked by {question.asked_by}"
    return Emit(app, ASKED, text, COMPONENT)


def _next(kept: Iterable[Asked], now: datetime) -> Outcome:
    ends = min((_ends(one.query, now) for one in kept), default=None)
    if ends is None:
        return Done()
    return Requeue(max((ends - now).total_seconds(), 1.0), "questions expire", background=True)
