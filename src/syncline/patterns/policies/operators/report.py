"""The status of an OperatorPolicy as it is built up (:class:`Report`); pure. Its rules are upstream's: a kind's related
objects replace those of the same kind, and a history entry is written for each state before and after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from syncline.base.clock import format_micro_time, format_time, time_or_none
from syncline.kube.objects import Obj, copied, dig, generation
from syncline.patterns.policies.cluster.concluding import News, cut
from syncline.patterns.policies.names import MOST_HISTORY, State
from syncline.patterns.policies.operators import words
from syncline.patterns.policies.operators.words import Condition


class Report:
    """The next status of a policy, and the states to tell of."""

    def __init__(self, policy: Obj, now: datetime) -> None:
        self.status: Obj = copied(policy.get("status") or {})
        self._policy, self._now = policy, now
        self._spec: Mapping[str, Any] = policy.get("spec") or {}
        self._early: list[Condition] = []
        self.changed = not self.status.get("compliant")

    def has(self, kind: str) -> bool:
        return any(one.get("type") == kind for one in self.status.get("conditions") or ())

    def entries(self, kind: str) -> list[Obj]:
        """Return the related objects of a kind."""
        return [one for one in self.status.get("relatedObjects") or () if dig(one, "object", "kind") == kind]

    def set(self, condition: Condition, *related: Obj) -> bool:
        """Set a condition and the related objects of its kind (none: they stay); return whether anything is new."""
        changed = self._condition(condition)
        changed = self._related(related) or changed
        self._condition(self.verdict())
        if self.status.get("observedGeneration") != generation(self._policy):
            self.status["observedGeneration"] = generation(self._policy)
            changed = True
        good = self.verdict().status == "True"
        self.status["compliant"] = str(State.COMPLIANT if good else State.NON_COMPLIANT)
        self.changed |= changed
        return changed

    def before_change(self, changed: bool) -> None:
        """Note the present state, if it is new, as one that was before something is done about it."""
        if changed:
            self._early.append(self.verdict())

    def forget_early(self, count: int) -> None:
        del self._early[count:]

    @property
    def early(self) -> int:
        return len(self._early)

    def _condition(self, condition: Condition) -> bool:
        made = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
        listed: list[Obj] = self.status.setdefault("conditions", [])
        at = next((index for index, one in enumerate(listed) if one.get("type") == condition.type), None)
        if at is not None and all((listed[at].get(key) or "") == one for key, one in made.items()):
            return False
        if at is None:
            listed.append({})
            at = len(listed) - 1
        listed[at] = {**made, "lastTransitionTime": format_time(self._now)}
        listed.sort(key=lambda one: str(one.get("type")))
        return True

    def _related(self, related: Sequence[Obj]) -> bool:
        if not related:
            return False
        kind = dig(related[0], "object", "kind")
        before = {dig(one, "object", "metadata", "name"): one for one in self.entries(str(kind))}
        made, changed = [], len(before) != len(related)
        for one in related:
            old = before.get(dig(one, "object", "metadata", "name"))
            if old is None:
                changed = True
            else:
                one, differs = _continued(old, one)
                changed |= differs
            made.append(one)
        if changed:
            others = [one for one in self.status.get("relatedObjects") or () if dig(one, "object", "kind") != kind]
            self.status["relatedObjects"] = sorted((*others, *made), key=_order)
        return changed

    # -- the state of the policy -------------------------------------------------------------------------------------

    def verdict(self) -> Condition:
        """Return the condition of the whole policy."""
        found = {str(one.get("type")): one for one in self.status.get("conditions") or ()}
        validity = found.get(words.VALID)
        if validity is not None and validity.get("status") != "True":
            said = str(validity.get("message") or "")
            if not said.lower().startswith(words.NO_NAMESPACE):
                return _verdict(False, said)
        good, messages = True, []
        for kind in words.ORDER:
            one = found.get(kind)
            if one is not None:
                messages.append(str(one.get("message") or ""))
            good &= one is not None and one.get("status") == ("False" if kind == words.CATALOG else "True")
        for kind, key, always in (
            (words.DEPRECATIONS, "deprecationsPresent", True),
            (words.CHANNELS, "minorChannelUpgradeAvailable", False),
        ):
            if is_unwanted(self._spec) or dig(self._spec, "complianceConfig", key) != State.NON_COMPLIANT:
                continue
            one = found.get(kind)
            fine = one is not None and one.get("status") == "True"
            if one is not None and (always or not fine):
                messages.append(str(one.get("message") or ""))
            good &= fine
        return _verdict(good, ", ".join(messages))

    def concluded(self) -> tuple[News, ...]:
        """Write the history; return what is new in it."""
        news = []
        for one in (*self._early, *((self.verdict(),) if self.changed else ())):
            state = State.COMPLIANT if one.status == "True" else State.NON_COMPLIANT
            news.append(News(state, one.message))
            history = self.status.get("history") or []
            if history and history[0].get("message") == one.message:
                continue
            last = time_or_none(history[0].get("lastTimestamp")) if history else None
            when = self._now if last is None else max(self._now, last + timedelta(microseconds=1))
            made = {"lastTimestamp": format_micro_time(when), "message": one.message}
            self.status["history"] = [made, *history][:MOST_HISTORY]
        return tuple(news)


def is_unwanted(spec: Mapping[str, Any]) -> bool:
    return str(spec.get("complianceType") or "").lower() == "mustnothave"


def _verdict(good: bool, message: str) -> Condition:
    state = State.COMPLIANT if good else State.NON_COMPLIANT
    return Condition(words.COMPLIANT, "True" if good else "False", str(state), cut(f"{state}; {message}"))


def _continued(old: Obj, new: Obj) -> tuple[Obj, bool]:
    """Return an entry with what is known of who made its object, and whether it says something else."""
    differs = any((old.get(key) or "") != (new.get(key) or "") for key in ("compliant", "reason"))
    before, after = old.get("properties"), new.get("properties")
    if before and after:
        if before.get("uid") != after.get("uid"):
            return new, True
        if "createdByPolicy" in before:
            new = {**new, "properties": {**after, "createdByPolicy": before["createdByPolicy"]}}
    return new, differs


def _order(one: Obj) -> tuple[str, str]:
    return str(dig(one, "object", "kind")), str(dig(one, "object", "metadata", "name"))
