"""Describe one finished request, for metrics and the audit log.

``serve`` creates an :class:`Answered` once a status is known; ``metrics`` and ``audit`` read it. It holds no bodies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from syncline.cluster.access.users import UserInfo
from syncline.cluster.resources.routes import Route, route_of, verb_of
from syncline.kube.client import Request


@dataclass(frozen=True, slots=True)
class Answered:
    """``user`` is anonymous if the credentials were refused; ``address`` is the caller's; ``annotations`` come from
    admission."""

    request: Request
    user: UserInfo
    status: int
    began: datetime
    ended: datetime
    address: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def route(self) -> Route:
        return route_of(self.request.path)

    @property
    def verb(self) -> str:
        return verb_of(self.request.method, self.route, self.request.query or {})
