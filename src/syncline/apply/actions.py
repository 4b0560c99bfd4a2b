"""What a sync does, as data: the closed union of its actions.

Made by the planner, printed by ``syncline plan``, turned into requests by ``handle.py``. Each names its target and
why it is done. Objects may be Secrets: they are in no text and no ``repr``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from syncline.base.action import Action
from syncline.kube.objects import GVK, Obj, ObjectRef

__all__ = [
    "AfterWave",
    "ApplyMode",
    "ApplyObject",
    "DeleteHook",
    "DryRun",
    "PruneObject",
    "ReadObject",
    "RemoveHookFinalizer",
    "SyncAction",
]


class ApplyMode(StrEnum):
    """How a manifest reaches the cluster."""

    CLIENT_SIDE = "apply"
    """Three-way patch against the last-applied annotation, as ``kubectl apply`` does."""
    SERVER_SIDE = "server-side apply"
    REPLACE = "replace"
    UPDATE = "update"
    """PUT of a definition or a Namespace, which must never be deleted on the way."""
    CREATE = "create"
    RECREATE = "recreate"
    """Delete, wait until it is gone, create."""


@dataclass(frozen=True, slots=True)
class ApplyObject(Action):
    """Bring one manifest to the cluster. ``live`` is the object as it was observed, None where there is none."""

    ref: ObjectRef
    target: Obj = field(repr=False)
    live: Obj | None = field(repr=False)
    mode: ApplyMode
    reason: str
    force: bool = False
    validate: bool = True
    migrate_from: str = ""
    """Field manager whose fields go over to server-side apply first."""
    kind_may_appear: bool = False
    """The definition of its kind comes with this operation: an unknown kind is waited for."""
    propagation: str = "Foreground"
    observed: bool = False
    """``live`` is what a working watch shows, in the version of the manifest: it need not be read first."""

    def describe(self) -> str:
        moved = f" (field manager {self.migrate_from} moved first)" if self.migrate_from else ""
        return f"{self.mode} {self.ref}{moved}"


@dataclass(frozen=True, slots=True)
class DryRun(Action):
    """Ask whether an apply would be accepted; changes nothing."""

    of: ApplyObject
    reason: str
    as_new: bool = False
    """The live object is deleted first when it comes to it: ask whether a new one would be accepted."""

    @property
    def ref(self) -> ObjectRef:
        return self.of.ref

    def describe(self) -> str:
        return f"dry run: {self.of.describe()}"


@dataclass(frozen=True, slots=True)
class PruneObject(Action):
    """Delete an object that is no longer in the source."""

    ref: ObjectRef
    gvk: GVK
    uid: str
    propagation: str
    reason: str

    def describe(self) -> str:
        return f"prune {self.ref}"


@dataclass(frozen=True, slots=True)
class DeleteHook(Action):
    """Delete the object of a hook, as its delete policy says.

    ``ending``: it is being deleted already, so nothing is asked again (another request would put back the finalizer of
    a foreground deletion, and wake a client that reads the object).
    """

    ref: ObjectRef
    gvk: GVK
    uid: str
    propagation: str
    reason: str
    ending: bool = False

    def describe(self) -> str:
        return f"delete hook {self.ref}"


@dataclass(frozen=True, slots=True)
class RemoveHookFinalizer(Action):
    """Take the hook finalizer off ``live``, so that the object may go."""

    ref: ObjectRef
    gvk: GVK
    live: Obj = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"release hook {self.ref}"


@dataclass(frozen=True, slots=True)
class ReadObject(Action):
    """Read an object that the comparison does not show."""

    ref: ObjectRef
    gvk: GVK
    reason: str

    def describe(self) -> str:
        return f"read {self.ref}"


@dataclass(frozen=True, slots=True)
class AfterWave(Action):
    """Tell the driver that a wave is through."""

    phase: str
    wave: int
    final: bool
    reason: str

    def describe(self) -> str:
        return f"after wave {self.wave} of {self.phase}"


SyncAction: TypeAlias = ApplyObject | DryRun | PruneObject | DeleteHook | RemoveHookFinalizer | ReadObject | AfterWave
