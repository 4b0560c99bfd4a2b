"""How an action on a cluster ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from syncline.kube.objects import Obj

__all__ = ["Outcome", "Refusal", "WaitKind"]


class WaitKind(StrEnum):
    HEALTH = "healthy state"
    HOOK = "completion of a hook"
    DELETION = "deletion"
    CONFIRMATION = "confirmation of pruning"
    DEFINITION = "definition of its kind"
    ACCOUNT = "default service account of its namespace"
    CONDITION = "condition that it names"
    RESULTS = "results to be kept"


class Refusal(StrEnum):
    """The reason of a refused object; it decides whether an earlier object of the sync may change the verdict."""

    CONTENT = "content"
    """What it says, judged by the schema of its kind."""
    RIGHTS = "rights"
    STATE = "state"
    """What the cluster holds now: quotas, service accounts, namespaces, webhooks, policies."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one action ended.

    ``pending``: not done yet and to be tried again in the next reconcile, and what it waits for (an object that must
    vanish first, a kind that is not served yet, the service account of a namespace that was just made). ``obj`` is the
    object that a read found.
    """

    ok: bool
    message: str = ""
    not_found: bool = False
    pending: WaitKind | None = None
    obj: Obj | None = field(default=None, repr=False)
    refusal: Refusal = Refusal.CONTENT
    """Only where it is not ``ok``."""
