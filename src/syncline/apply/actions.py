"""The actions of a sync, as a closed union of data types.

Made by the planner, printed by ``syncline plan``, turned into requests by ``handler.py``. Each names its target and its
reason. Objects may be Secrets, so no text and no ``repr`` contains them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from syncline.base.action import Action
from syncline.kube.objects import GVK, Obj, ObjectRef


class ApplyMode(StrEnum):
    """The ways to apply a manifest."""

    CLIENT_SIDE = "apply"
    """Three-way patch against the last-applied annotation, as ``kubectl apply`` does."""
    SERVER_SIDE = "server-side apply"
    REPLACE = "replace"
    UPDATE = "update"
    """PUT of a CRD or a Namespace, which must never be deleted in between."""
    CREATE = "create"
    RECREATE = "recreate"
    """Delete, wait for the deletion, create."""


@dataclass(frozen=True, slots=True)
class ApplyObject(Action):
    """Apply one manifest. ``live``: the observed object, None if there is none."""

    ref: ObjectRef
    target: Obj = field(repr=False)
    live: Obj | None = field(repr=False)
    mode: ApplyMode
    reason: str
    force: bool = False
    validate: bool = True
    migrate_from: str = ""
    """Field manager whose fields move to server-side apply first."""
    kind_may_appear: bool = False
    """This operation creates the CRD of its kind: wait while the kind is unknown."""
    propagation: str = "Foreground"
    observed: bool = False
    """``live`` comes from a working watch in the manifest's version, so it need not be read first."""
    new: bool = False
    """What exists is deleted first: an object of an earlier operation that the watch did not show is not changed."""

    def describe(self) -> str:
        moved = f" (field manager {self.migrate_from} moved first)" if self.migrate_from else ""
        return f"{self.mode} {self.ref}{moved}"


@dataclass(frozen=True, slots=True)
class DryRun(Action):
    """Check whether an apply would be accepted; changes nothing."""

    of: ApplyObject
    reason: str
    as_new: bool = False
    """The live object is deleted before the apply: check whether a new one would be accepted."""

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
    """Delete the object of a hook, by its delete policy.

    ``ending``: it is terminating already, so no request is sent (another one would restore the finalizer of a
    foreground deletion and wake clients that watch the object).
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
    """Remove the hook finalizer from ``live``, so that the object can be deleted."""

    ref: ObjectRef
    gvk: GVK
    live: Obj = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"release hook {self.ref}"


@dataclass(frozen=True, slots=True)
class ReadObject(Action):
    """Read an object that is missing from the comparison."""

    ref: ObjectRef
    gvk: GVK
    reason: str

    def describe(self) -> str:
        return f"read {self.ref}"


@dataclass(frozen=True, slots=True)
class AfterWave(Action):
    """Notify the driver that a wave is done."""

    phase: str
    wave: int
    final: bool
    reason: str

    def describe(self) -> str:
        return f"after wave {self.wave} of {self.phase}"


SyncAction: TypeAlias = ApplyObject | DryRun | PruneObject | DeleteHook | RemoveHookFinalizer | ReadObject | AfterWave
