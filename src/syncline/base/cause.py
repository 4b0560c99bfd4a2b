"""Why something is stuck, as data.

Rooms return causes about their own objects (``gitops`` about a wave, the scheduler about a pod); ``explain`` only
joins them into a chain. See DESIGN: nothing waits silently.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

__all__ = ["OR", "Cause"]

OR = "; or "
"""Between ways out in :attr:`Cause.next_action`, of which one is enough."""


@dataclass(frozen=True, slots=True)
class Cause:
    """``subject`` is an ObjectRef text (``apps/Deployment/demo/web``) or a plain name.

    ``because`` are deeper causes, most important first. ``next_action`` is what a person can do, several ways
    joined by :data:`OR`, empty if nothing.
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
