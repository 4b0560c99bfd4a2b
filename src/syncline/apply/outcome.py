"""The outcome of an action on a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from syncline.kube.objects import Obj


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
    """Why an object was refused, which decides whether an earlier object of the sync may change that."""

    CONTENT = "content"
    """Its content, judged by the schema of its kind."""
    RIGHTS = "rights"
    STATE = "state"
    """The cluster's state: quotas, service accounts, namespaces, webhooks, policies."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one action.

    ``pending``: not done yet, with what it waits for; the next reconcile tries again (an object must disappear first, a
    kind is not served yet, a new namespace lacks its service account). ``obj``: the object that a
    read found, or as a write left it: what is decided next waits until the watch shows that version.
    """

    ok: bool
    message: str = ""
    not_found: bool = False
    pending: WaitKind | None = None
    obj: Obj | None = field(default=None, repr=False)
    refusal: Refusal = Refusal.CONTENT
    """Only meaningful if not ``ok``."""
