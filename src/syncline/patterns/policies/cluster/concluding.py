"""The status of a ConfigurationPolicy after an evaluation: :func:`concluded`; pure. Texts and rules are upstream's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from syncline.base.clock import format_micro_time, format_time, time_or_none
from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.errors import TemplateError
from syncline.kube.gotemplate.sprig.library import sprig_functions
from syncline.kube.gotemplate.template import Limits, parse
from syncline.kube.objects import Obj, copied, generation, is_terminating
from syncline.patterns.policies.cluster.actions import Evaluated
from syncline.patterns.policies.cluster.reasons import CLEANUP_ERROR, Verdict
from syncline.patterns.policies.names import MOST_HISTORY, State

MOST_MESSAGE: Final = 4096
_TRUNCATED: Final = "...[truncated]"
_LIMITS: Final = Limits(steps=100_000, output=1 << 16)


@dataclass(frozen=True, slots=True)
class News:
    """One state that the policy went through: its compliance and message."""

    state: State
    message: str


@dataclass(slots=True)
class _Status:
    """The status as it is built up."""

    policy: Obj
    now: datetime
    status: Obj
    news: list[News] = field(default_factory=list)

    @property
    def details(self) -> list[Obj]:
        found: list[Obj] = self.status.setdefault("compliancyDetails", [])
        return found

    def set(self, index: int, verdict: Verdict) -> bool:
        """Set the condition of a template (-1: the only one of the policy); return whether it is another one."""
        state, kind = _state_of(verdict)
        message = verdict.message + _never(self.policy, verdict.compliant)
        alone, index, details = index == -1, max(index, 0), self.details
        while len(details) <= index:
            details.append({"Validity": {}, "conditions": []})
        entry = details[index]
        condition = {"type": kind, "status": "True", "reason": verdict.reason, "message": message}
        old = (entry.get("conditions") or [{}])[-1]
        changed = entry.get("Compliant") != state or any((old.get(key) or "") != one for key, one in condition.items())
        if changed:
            stamped = {**condition, "lastTransitionTime": format_time(self.now)}
            kept = {key: one for key, one in stamped.items() if one}
            details[index] = {"Compliant": str(state), "Validity": {}, "conditions": [kept]}
        if alone:
            del details[1:]
        return changed

    def tell(self, changed: bool) -> None:
        """Conclude the state of the whole policy; note it in the history if it is another one."""
        states = [one.get("Compliant") for one in self.details]
        if is_terminating(self.policy):
            state = State.TERMINATING
        elif not states:
            state = State.UNKNOWN
        else:
            state = State.NON_COMPLIANT if State.NON_COMPLIANT in states else State.COMPLIANT
        again = self.status.get("lastEvaluatedGeneration") != generation(self.policy)
        changed |= (self.status.get("compliant") or "") != state or again
        if state:
            self.status["compliant"] = str(state)
        else:
            self.status.pop("compliant", None)
        self.status["lastEvaluatedGeneration"] = generation(self.policy)
        message = cut(_message(self.policy, self.status, state, self.now))
        history = self.status.get("history") or []
        if changed or not history or history[0].get("message") != message:
            stamp = format_micro_time(self._moment(history))
            self.status["history"] = [{"lastTimestamp": stamp, "message": message}, *history][:MOST_HISTORY]
            self.news.append(News(state, message))

    def _moment(self, history: Sequence[Obj]) -> datetime:
        """Return the time of the next entry: times distinguish entries, and order them."""
        last = time_or_none(history[0].get("lastTimestamp")) if history else None
        return self.now if last is None else max(self.now, last + timedelta(microseconds=1))


def concluded(policy: Obj, found: Evaluated, now: datetime) -> tuple[Obj, tuple[News, ...]]:
    """Return the new status, and the states to tell of in order of time."""
    made = _Status(policy, now, copied(policy.get("status") or {}))
    if found.whole is not None:
        changed = made.set(-1, found.whole)
    else:
        changed = _templates(made, found)
    if found.related:
        made.status["relatedObjects"] = list(found.related)
    elif found.related is not None:
        made.status.pop("relatedObjects", None)
    made.tell(changed)
    made.status["lastEvaluated"] = format_time(now)
    return made.status, tuple(made.news)


def _templates(made: _Status, found: Evaluated) -> bool:
    del made.details[len(found.templates) :]
    changed = False
    for index, one in enumerate(found.templates):
        verdicts = one.verdicts
        if len(verdicts) > 1 and not verdicts[-1].compliant and not _would_change(made, index, verdicts[-1]):
            continue  # it fails again as before: no news
        for at, verdict in enumerate(verdicts):
            if made.set(index, verdict):
                changed = True
                if at < len(verdicts) - 1:
                    made.tell(True)
    return changed


def _would_change(made: _Status, index: int, verdict: Verdict) -> bool:
    return _Status(made.policy, made.now, copied(made.status)).set(index, verdict)


def terminating(policy: Obj, left: Sequence[str], now: datetime) -> tuple[Obj, tuple[News, ...]]:
    """Return the status of a policy that cannot go yet, because objects are left."""
    made = _Status(policy, now, copied(policy.get("status") or {}))
    changed = made.set(-1, Verdict(False, CLEANUP_ERROR, "Failed to delete objects: " + ", ".join(left)))
    made.tell(changed)
    return made.status, tuple(made.news)


def _state_of(verdict: Verdict) -> tuple[State, str]:
    if verdict.reason == CLEANUP_ERROR:
        return State.TERMINATING, "violation"
    return (State.COMPLIANT, "notification") if verdict.compliant else (State.NON_COMPLIANT, "violation")


def _never(policy: Obj, compliant: bool) -> str:
    name = "compliant" if compliant else "noncompliant"
    if ((policy.get("spec") or {}).get("evaluationInterval") or {}).get(name) != "never":
        return ""
    return f'. This policy will not be evaluated again due to spec.evaluationInterval.{name} being set to "never".'


# -- messages ----------------------------------------------------------------------------------------------------------


def _message(policy: Obj, status: Obj, state: State, now: datetime) -> str:
    default = default_message(status, state)
    name = "compliant" if state is State.COMPLIANT else "noncompliant"
    custom = ((policy.get("spec") or {}).get("customMessage") or {}).get(name)
    if not custom:
        return default
    data = {"DefaultMessage": default, "Policy": {**policy, "status": status}}
    try:
        made = _rendered(str(custom), data, now)
    except TemplateError as error:
        return f"{default} (failure processing the custom message: {error})"
    return made if made.startswith(f"{state}; ") else f"{state}; {made}"


def _rendered(text: str, data: Mapping[str, Any], now: datetime) -> str:
    """Render a custom message. Raises TemplateError with upstream's beginning."""
    known = sprig_functions(lambda: now, Entropy("message"))
    try:
        template = parse("custom-msg", text, known, limits=_LIMITS)
    except TemplateError as error:
        raise TemplateError(f"failed to parse custom template: {error}") from error
    try:
        return template.render(dict(data))
    except TemplateError as error:
        raise TemplateError(f"failed to execute: {error}") from error


def default_message(status: Obj, state: State) -> str:
    """Return ``NonCompliant; violation - namespaces [x] not found``."""
    if state is State.UNKNOWN:
        return "ComplianceState is still unknown"
    made = str(state)
    for one in status.get("compliancyDetails") or ():
        conditions = one.get("conditions") or ()
        made += "; " + (f"{conditions[0]['type']} - {conditions[0]['message']}" if conditions else "")
    return made


def cut(message: str) -> str:
    """Return a message that is not longer than upstream's."""
    data = message.encode()
    if len(data) <= MOST_MESSAGE:
        return message
    return data[: MOST_MESSAGE - len(_TRUNCATED)].decode("utf-8", "ignore") + _TRUNCATED
