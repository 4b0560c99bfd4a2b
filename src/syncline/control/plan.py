"""The decision of a controller as data: :class:`Plan`.

Planners return it; the executor performs it; dry runs, timelines and journals print it. Nothing here acts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from syncline.base.action import Action
from syncline.kube.client import PatchType
from syncline.kube.objects import GVK, Obj, ObjectRef, gvk_of, meta, name_of, namespace_of, ref_of


@dataclass(frozen=True, slots=True)
class Create(Action):
    """POST. If the object exists (AlreadyExists), the key is planned again at once."""

    obj: Obj
    reason: str
    dry_run: bool = False

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.obj)

    def describe(self) -> str:
        return f"create {self.target}"


@dataclass(frozen=True, slots=True)
class Replace(Action):
    """PUT of the whole object; the resourceVersion in it is the precondition."""

    obj: Obj
    reason: str
    subresource: str = ""
    dry_run: bool = False

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.obj)

    def describe(self) -> str:
        return f"replace {self.target}" + (f"/{self.subresource}" if self.subresource else "")


@dataclass(frozen=True, slots=True)
class Patch(Action):
    """One patch of one object. Put uid and resourceVersion into a merge patch's metadata to make it conditional."""

    gvk: GVK
    namespace: str
    name: str
    body: Any
    reason: str
    kind: PatchType = PatchType.MERGE
    subresource: str = ""
    dry_run: bool = False
    manager: str = ""
    """The field manager; empty: that of the process."""

    @property
    def target(self) -> ObjectRef:
        return ObjectRef(self.gvk.group, self.gvk.kind, self.namespace, self.name)

    def describe(self) -> str:
        return f"patch {self.target}" + (f"/{self.subresource}" if self.subresource else "")


@dataclass(frozen=True, slots=True)
class Apply(Action):
    """Server-side apply by ``manager``."""

    obj: Obj
    manager: str
    reason: str
    force: bool = False
    dry_run: bool = False
    subresource: str = ""

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.obj)

    def describe(self) -> str:
        return f"apply {self.target}"


@dataclass(frozen=True, slots=True)
class Delete(Action):
    """DELETE with preconditions; a missing object is a success."""

    gvk: GVK
    namespace: str
    name: str
    reason: str
    uid: str = ""
    resource_version: str = ""
    propagation: str = ""
    grace_period_s: int | None = None

    @classmethod
    def of(cls, obj: Obj, reason: str, *, propagation: str = "", grace_period_s: int | None = None) -> Delete:
        """Return the deletion of exactly this object: its uid is the precondition."""
        return cls(
            gvk_of(obj),
            namespace_of(obj),
            name_of(obj),
            reason,
            uid=str(meta(obj).get("uid") or ""),
            propagation=propagation,
            grace_period_s=grace_period_s,
        )

    @property
    def target(self) -> ObjectRef:
        return ObjectRef(self.gvk.group, self.gvk.kind, self.namespace, self.name)

    def describe(self) -> str:
        return f"delete {self.target}"


@dataclass(frozen=True, slots=True)
class Evict(Action):
    """POST pods/NAME/eviction."""

    namespace: str
    name: str
    reason: str
    uid: str = ""

    @property
    def target(self) -> ObjectRef:
        return ObjectRef("", "Pod", self.namespace, self.name)

    def describe(self) -> str:
        return f"evict {self.target}"


@dataclass(frozen=True, slots=True)
class SetStatus(Action):
    """Change only ``status``, from ``old`` (as observed) to ``new``; the observed resourceVersion is the precondition.

    ``subresource`` is empty for kinds whose CRD has no status subresource (Application).
    """

    gvk: GVK
    namespace: str
    name: str
    old: Obj
    new: Obj
    reason: str
    resource_version: str = ""
    uid: str = ""
    subresource: str = "status"

    @property
    def target(self) -> ObjectRef:
        return ObjectRef(self.gvk.group, self.gvk.kind, self.namespace, self.name)

    def describe(self) -> str:
        return f"set status {self.target}"


@dataclass(frozen=True, slots=True)
class Emit(Action):
    """A Kubernetes Event about ``regarding``, an object or at least its apiVersion, kind and metadata.

    ``event_action`` is the activity of the component (``Scheduling``), if it reports one; ``field_path`` the part of
    the object (``spec.containers{web}``).
    """

    regarding: Obj
    event_reason: str
    message: str
    component: str
    warning: bool = False
    reason: str = "tell people"
    event_action: str = ""
    field_path: str = ""
    limited: bool = False
    """True if it may be dropped where its component writes many about one object (``control/events.py``)."""

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.regarding)

    def describe(self) -> str:
        kind = "Warning" if self.warning else "Normal"
        return f"event {kind} {self.event_reason} on {self.target}"


KubeAction: TypeAlias = Create | Replace | Patch | Apply | Delete | Evict | SetStatus | Emit


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing to do until an object changes."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """Plan again after ``after_s`` seconds, or earlier after a change. A virtual world with only ``background``
    requeues (polls, resyncs) counts as idle."""

    after_s: float
    why: str
    background: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """A temporary failure; the queue's back-off decides when to try again."""

    error: str


@dataclass(frozen=True, slots=True)
class Stalled:
    """A failure that lasts until a person changes something."""

    reason: str
    fix: str


Outcome: TypeAlias = Done | Requeue | Retry | Stalled


@dataclass(frozen=True, slots=True)
class Plan:
    """The frozen decision of one reconcile.

    ``steps`` are performed in order. The actions of a step are independent and all tried; a failure stops later steps.
    ``status`` is performed last, also after a failure. ``why`` is one sentence for the timeline.
    """

    steps: tuple[tuple[Action, ...], ...] = ()
    outcome: Outcome = field(default_factory=Done)
    why: str = ""
    status: tuple[Action, ...] = ()
    together: bool = False
    """True if a driver may perform the actions of a step concurrently; their results stay in order."""

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(action for step in self.steps for action in step) + self.status

    @property
    def empty(self) -> bool:
        return not self.status and not any(self.steps)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one action. ``value`` is what the handler returned (for Kubernetes actions the object)."""

    action: Action
    ok: bool
    value: Any = None
    error: Exception | None = None


UNLISTED_S = 1.0
"""Seconds until a key is looked at again at the start of the process, when not everything was listed yet."""


def awaiting_lists(kinds: Iterable[str]) -> tuple[tuple[()], Requeue, str]:
    """Return steps, outcome and reason of a plan that needs the first list of ``kinds``: nothing follows from objects
    that are missing before it."""
    why = f"waiting for the first list of {', '.join(kinds)}"
    return (), Requeue(UNLISTED_S, why), why


def set_status(obj: Obj, status: Obj, reason: str, *, subresource: str = "status") -> tuple[SetStatus, ...]:
    """Return one SetStatus, or nothing if ``status`` equals that of the object (style rule 11)."""
    old = obj.get("status") or {}
    if old == status:
        return ()
    return (
        SetStatus(
            gvk_of(obj),
            namespace_of(obj),
            name_of(obj),
            old,
            status,
            reason,
            resource_version=str(meta(obj).get("resourceVersion") or ""),
            uid=str(meta(obj).get("uid") or ""),
            subresource=subresource,
        ),
    )
