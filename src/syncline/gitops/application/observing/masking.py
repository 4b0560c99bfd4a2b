"""Masks values of Secrets in the status, Events and reasons of an Application.

The controller calls it with each plan and each write of the status. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from typing import Any

from syncline.argo.application import AppView
from syncline.base.action import Action
from syncline.control.plan import Emit, Plan, Requeue, Retry, Stalled
from syncline.kube.objects import Obj

GIVEN = ("operation", "source", "sources", "comparedTo", "history")
"""Parts of a status that repeat the spec or the request; the readers of the one may read the other."""


def masked_status(view: AppView, status: Obj) -> Obj:
    """Return ``status`` with masked messages. Where only the mask differs, transition times stay."""
    if status == view.status:
        return status

    @cache
    def known() -> frozenset[str]:
        return frozenset(_messages(view.status))

    masked: Obj = _masked(status, view.status, view, known)
    if masked == status:
        return status
    times = {_named(one): one.get("lastTransitionTime") for one in view.status.get("conditions") or ()}
    if masked.get("conditions"):
        masked["conditions"] = [
            {**one, "lastTransitionTime": times.get(_named(one)) or one.get("lastTransitionTime")}
            for one in masked["conditions"]
        ]
    if not view.refresh and timeless(masked) == timeless(view.status):
        return view.status
    return masked


def _named(condition: Obj) -> tuple[object, object]:
    return condition.get("type"), condition.get("message")


def _messages(value: Any) -> Iterator[str]:
    """Yield the messages that the object already holds, at any depth."""
    if isinstance(value, list):
        for part in value:
            yield from _messages(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            if key == "message" and isinstance(part, str):
                yield part
            elif key not in GIVEN:
                yield from _messages(part)


def _masked(value: Any, before: Any, view: AppView, known: Callable[[], frozenset[str]]) -> Any:
    """Mask ``value``, but not parts equal to those in the status ``before``. Unchanged parts are returned as the same
    objects, so a status of a thousand rows is seldom copied."""
    if value == before:
        return value
    if isinstance(value, list):
        old = before if isinstance(before, list) else []
        parts = [_masked(part, each, view, known) for part, each in zip_longest(value, old[: len(value)])]
        return parts if any(new is not part for new, part in zip(parts, value)) else value
    if not isinstance(value, dict):
        return value
    made, there = {}, before if isinstance(before, dict) else {}
    for key, part in value.items():
        if key == "message" and isinstance(part, str):
            masked = view.mask(part)
            made[key] = part if masked != part and part in known() else masked
        else:
            made[key] = part if key in GIVEN else _masked(part, there.get(key), view, known)
    return made if any(made[key] is not part for key, part in value.items()) else value


def masked_plan(view: AppView, plan: Plan) -> Plan:
    """Return the plan with masked Events and reasons; :func:`app_patch` masks its status."""
    outcome = plan.outcome
    match outcome:
        case Requeue():
            outcome = replace(outcome, why=view.mask(outcome.why))
        case Retry():
            outcome = Retry(view.mask(outcome.error))
        case Stalled():
            outcome = Stalled(view.mask(outcome.reason), outcome.fix)
        case _:
            pass
    return replace(
        plan,
        steps=tuple(tuple(_said(view, action) for action in step) for step in plan.steps),
        status=tuple(_said(view, action) for action in plan.status),
        outcome=outcome,
        why=view.mask(plan.why),
    )


def _said(view: AppView, action: Action) -> Action:
    return replace(action, message=view.mask(action.message)) if isinstance(action, Emit) else action


def timeless(status: Obj) -> Obj:
    """Return the status without ``reconciledAt``."""
    return {key: value for key, value in status.items() if key != "reconciledAt"}
