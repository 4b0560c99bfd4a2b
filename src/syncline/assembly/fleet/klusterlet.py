"""The role of Klusterlets: runs the agents that the Klusterlets of a cluster ask for, and keeps their status.

``syncline up`` runs it on the embedded cluster, ``syncline controller --roles klusterlet`` on any API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from syncline.assembly.fleet.objects import spoke_objects
from syncline.assembly.roles import Role, Wake
from syncline.cluster.access.users import UserInfo
from syncline.control.loop import ControlLoop
from syncline.fleet.spoke.klusterlet.controller import KLUSTERLET_CONTROLLER, SCOPES, klusterlet_controller
from syncline.fleet.spoke.klusterlet.model import KLUSTERLETS, Agents
from syncline.kube.kinds.klusterlets import klusterlet_crd
from syncline.kube.objects import Obj, ObjectRef

KLUSTERLET_MANAGER: Final = "klusterlet"
"""Field manager, as upstream's operator."""
OPERATOR: Final = UserInfo(KLUSTERLET_MANAGER, ("system:masters", "system:authenticated"))
"""The user on an embedded cluster: an agent applies whatever its hub sends, as upstream's."""


def foreign_klusterlet_objects() -> tuple[Obj, ...]:
    """Return what the role needs on another team's cluster, whose owner grants its rights."""
    return (klusterlet_crd(), *spoke_objects())


def klusterlet_role(agents: Agents, objects: tuple[Obj, ...] = ()) -> Role:
    """Return the role; ``objects``: what must exist first."""

    def follow(_loop: ControlLoop, wake: Wake) -> Callable[[], None]:
        return agents.follow(lambda name: wake(KLUSTERLET_CONTROLLER, ObjectRef(*KLUSTERLETS, "", name)))

    return Role(
        name="klusterlet",
        controllers=(klusterlet_controller(agents),),
        handlers=lambda _cache, _clock: agents.handlers(),
        user=OPERATOR,
        manager=KLUSTERLET_MANAGER,
        objects=objects,
        follow=follow,
        scopes=SCOPES,
    )
