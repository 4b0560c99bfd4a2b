"""Remember reported Events, so that a controller does not repeat them in each reconcile.

In memory only: after a restart they are reported once more, as by Kubernetes' recorders.
"""

from __future__ import annotations

from dataclasses import replace

from syncline.base.action import Action
from syncline.control.plan import Emit, Plan

MAX_OBJECTS = 10_000
"""Objects whose last messages are cached."""


class Said:
    """The last messages by object, by reason."""

    def __init__(self) -> None:
        self._last: dict[str, dict[str, str]] = {}

    def once(self, uid: str, plan: Plan, reasons: frozenset[str]) -> Plan:
        """Return ``plan`` without Events of ``reasons`` that repeat the last message for their reason, and record the
        others."""
        known = self._last.pop(uid, {})
        self._last[uid] = known
        if len(self._last) > MAX_OBJECTS:
            del self._last[next(iter(self._last))]

        def is_new(action: Action) -> bool:
            if not isinstance(action, Emit) or action.event_reason not in reasons:
                return True
            if known.get(action.event_reason) == action.message:
                return False
            known[action.event_reason] = action.message
            return True

        steps = tuple(tuple(action for action in step if is_new(action)) for step in plan.steps)
        status = tuple(action for action in plan.status if is_new(action))
        return replace(plan, steps=tuple(step for step in steps if step), status=status)
