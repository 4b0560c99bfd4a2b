"""``status.details`` of a replicated policy: the history of each template, at most ten entries; pure. Rules of
upstream's status sync; histories come from the templates' own status, so that nothing hangs on Events that expire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from syncline.base.clock import format_time, time_or_none
from syncline.kube.objects import Obj, dig
from syncline.patterns.policies.names import MOST_HISTORY, State, state_of_message

_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_SIMILAR_NS: Final = 5_000
"""Equal messages nearer to one another count once."""


def event_name(policy: str, moment: datetime) -> str:
    """Return the name of an event: that of the policy, and the nanoseconds since 1970 in hexadecimal."""
    return f"{policy}.{_nanos(moment):x}"


def _nanos(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def history_of(template: Obj | None, policy: str) -> list[Obj]:
    """Return the history that the object of a template tells of itself."""
    made = []
    for one in dig(template or {}, "status", "history") or ():
        moment = time_or_none(one.get("lastTimestamp"))
        if moment is not None and one.get("message"):
            made.append(entry(policy, moment, str(one["message"]).strip()))
    return made


def entry(policy: str, moment: datetime, message: str) -> Obj:
    return {"eventName": event_name(policy, moment), "lastTimestamp": format_time(moment), "message": message}


def latest_message(details: Sequence[Obj], index: int) -> str:
    """Return the last message of a template, or ""."""
    history = (details[index].get("history") or ()) if index < len(details) else ()
    return str(history[0].get("message") or "") if history else ""


def detail(name: str, entries: Iterable[Obj], before: Obj | None) -> Obj:
    """Return the details of a template: its new entries and those of ``before``, the last first."""
    merged = {str(one.get("eventName")): one for one in (*((before or {}).get("history") or ()), *entries)}
    ordered = sorted(merged.values(), key=lambda one: -_moment(one))
    history: list[Obj] = []
    for at, one in enumerate(ordered):
        near = at > 0 and abs(_moment(ordered[at - 1]) - _moment(one)) < _SIMILAR_NS
        if len(history) < MOST_HISTORY and not (near and ordered[at - 1].get("message") == one.get("message")):
            history.append(one)
    made: Obj = {"templateMeta": {"creationTimestamp": None, "name": name}, "history": history}
    if history:
        made["compliant"] = str(state_of_message(str(history[0].get("message"))))
    return made


def _moment(one: Obj) -> int:
    try:
        return int(str(one.get("eventName")).rpartition(".")[2], 16)
    except ValueError:
        moment = time_or_none(one.get("lastTimestamp"))
        return _nanos(moment) if moment is not None else 0


def found_in(details: Iterable[Obj], name: str) -> Obj | None:
    return next((one for one in details if dig(one, "templateMeta", "name") == name), None)


def compliance(details: Sequence[Obj], before: State) -> State:
    """Return the state of the policy: NonCompliant before Pending; Compliant only if all are; else what it was."""
    states = [one.get("compliant") or "" for one in details]
    if State.NON_COMPLIANT in states:
        return State.NON_COMPLIANT
    if State.PENDING in states:
        return State.PENDING
    return State.COMPLIANT if all(one == State.COMPLIANT for one in states) else before
