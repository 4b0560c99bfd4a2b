"""What the controllers of the pull model share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from syncline.control.plan import Plan, Requeue
from syncline.fleet.pull.names import Variant
from syncline.kube.objects import (
    Obj,
)

UNLISTED_S: Final = 1.0
"""Seconds until a key is looked at again at the start of the process, when not everything was listed yet."""


@dataclass(frozen=True, slots=True)
class PullSettings:
    """``variant``: whose rules apply; None: by namespace (``observe.variant_of``). ``argo_namespace``: where Argo CD's
    objects live on the hub."""

    variant: Variant | None = None
    argo_namespace: str = "argocd"


def comes_or_goes(old: Obj | None, new: Obj | None) -> bool:
    """Return whether an object was added or deleted."""
    return old is None or new is None


def awaiting(kind: str) -> Plan:
    """Return the plan of a key that needs the first list of a kind."""
    return Plan((), Requeue(UNLISTED_S, kind), f"waiting for the first list of {kind}")
