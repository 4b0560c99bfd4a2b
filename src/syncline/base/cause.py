"""Why something is stuck, as data: :class:`Cause`.

Rooms return causes about their own objects (``gitops`` about a wave, the scheduler about a pod); ``explain`` joins them
into a chain. See DESIGN: nothing waits silently.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

OR = "; or "
"""Separates the alternatives in :attr:`Cause.next_action`; one of them is enough."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why ``subject`` is stuck: an ObjectRef text (``apps/Deployment/demo/web``) or a plain name.

    ``because`` are deeper causes, most important first. ``next_action`` is what a person can do, alternatives joined by
    :data:`OR`; empty if nothing.
    """

    subject: str
    state: str
    message: str
    since: datetime | None = None
    until: datetime | None = None
    then: str = ""
    next_action: str = ""
    evidence: tuple[tuple[str, str], ...] = ()
    because: tuple[Cause, ...] = field(default=())
