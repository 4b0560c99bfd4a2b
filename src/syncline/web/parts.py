"""What the services are made of: :class:`Parts`, put together by :mod:`syncline.web.server`."""

from __future__ import annotations

from dataclasses import dataclass

from syncline.base.clock import Clock
from syncline.web.access import Access
from syncline.web.content import Content
from syncline.web.destinations import Destinations
from syncline.web.state import State


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that services share; each takes those that it needs."""

    state: State
    access: Access
    clock: Clock
    content: Content
    destinations: Destinations
