"""Events about a set, with upstream's reasons and messages; of many Applications not each is reported, as upstream."""

from __future__ import annotations

from typing import Final

from syncline.control.plan import Emit
from syncline.kube.objects import Obj

COMPONENT: Final = "applicationset-controller"


def written(appset: Obj, verb: str, name: str) -> Emit:
    """Return the Event of an Application that was ``created`` or ``updated``."""
    return Emit(appset, verb, f'{verb} Application "{name}"', COMPONENT, limited=True)


def deleted(appset: Obj, name: str) -> Emit:
    return Emit(appset, "Deleted", f'Deleted Application "{name}"', COMPONENT, limited=True)


def orphaned(appset: Obj, name: str) -> Emit:
    """Return the Event of an Application that loses its finalizer, since its destination is gone."""
    message = f'Updated Application "{name}" finalizer before deletion, because application has an invalid destination'
    return Emit(appset, "Updated", message, COMPONENT, limited=True)


def warned(appset: Obj, reason: str, message: str) -> Emit:
    return Emit(appset, reason, message, COMPONENT, warning=True)
