"""The role of the cluster itself: built-in controllers, scheduler, and the machines of its nodes."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.assembly.roles import Follow, Role, follow_nothing
from syncline.cluster.access.users import UserInfo
from syncline.cluster.builtin import BuiltinSettings, builtin_controllers
from syncline.cluster.builtin import handlers as builtin_handlers
from syncline.cluster.machines.room import MachinesRoom
from syncline.kube.objects import Obj

CONTROLLER_MANAGER = UserInfo("system:kube-controller-manager", ("system:masters", "system:authenticated"))


def cluster_role(
    settings: BuiltinSettings,
    room: MachinesRoom | None = None,
    *,
    only: tuple[str, ...] | None = None,
    objects: Sequence[Obj] = (),
    follow: Follow = follow_nothing,
) -> Role:
    """Return the role. ``only``: names of the controllers that run; None: all."""
    every = (*builtin_controllers(settings), *(room.controllers() if room is not None else ()))
    return Role(
        name="cluster",
        controllers=tuple(each for each in every if only is None or each.name in only),
        user=CONTROLLER_MANAGER,
        manager="kube-controller-manager",
        handlers=lambda cache, _clock: {
            **builtin_handlers(cache.mapper, settings),
            **(room.handlers() if room is not None else {}),
        },
        objects=tuple(objects),
        follow=follow,
    )
