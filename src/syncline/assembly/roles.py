"""Which controllers the cluster itself runs, and who performs their actions; those of GitOps stand in
``assembly/gitops.py``, so that a bare API server imports nothing of them.

The live cluster and the virtual world take the same lists: what a rehearsal shows is what will run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.base.journal import Journal
from syncline.cluster.access.users import UserInfo
from syncline.cluster.builtin import BuiltinSettings, builtin_controllers
from syncline.cluster.builtin import handlers as builtin_handlers
from syncline.control.controller import Controller
from syncline.control.executor import kube_handlers
from syncline.control.loop import ControlLoop
from syncline.kube.mapper import Mapper

__all__ = ["CONTROLLER_MANAGER", "cluster_loop"]

CONTROLLER_MANAGER = UserInfo("system:kube-controller-manager", ("system:masters", "system:authenticated"))


def cluster_loop(
    clock: Clock,
    journal: Journal,
    settings: BuiltinSettings,
    *,
    only: tuple[str, ...] | None = None,
    extra: tuple[Controller[Any], ...] = (),
    handlers: Callable[[Mapper], dict[type, Handler]] = lambda _mapper: {},
    strict: bool = False,
) -> ControlLoop:
    """The loop of the cluster itself: built-in controllers, scheduler, and the machines' (``extra``)."""
    mapper = Mapper()
    chosen = [c for c in (*builtin_controllers(settings), *extra) if only is None or c.name in only]
    mine = (
        builtin_handlers(mapper, settings) | kube_handlers(mapper, clock, "kube-controller-manager") | handlers(mapper)
    )
    return ControlLoop(chosen, mapper=mapper, handlers=mine, clock=clock, journal=journal, strict=strict)
