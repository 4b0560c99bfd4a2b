"""The actions of the work agent on its cluster, as data, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from syncline.base.action import Action
from syncline.fleet.spoke.work.manifests.applying import Depth
from syncline.fleet.spoke.work.ownership import Ownership
from syncline.kube.objects import GroupKind, Obj, ObjectRef, ResourceInfo


@dataclass(frozen=True, slots=True)
class Known:
    """How an object was when it was looked at last."""

    version: str = ""
    """Its resourceVersion; empty: it did not exist."""
    generation: int = 0
    """Its generation when its content was right; 0: its kind has none."""
    digest: str = ""
    """Of the manifest that it was right by."""


@dataclass(frozen=True, slots=True)
class Look(Action):
    """Read the object of a manifest; unless ``depth`` is READ, make it what the manifest says.

    With an executor its rights are asked before anything is written, and always if ``depth`` is FULL. ``known``: how
    it was when it was right last; an object of that version is left alone.
    """

    ordinal: int
    ref: ObjectRef
    info: ResourceInfo
    manifest: Obj = field(repr=False)
    strategy: Mapping[str, Any] | None
    ownership: Ownership
    depth: Depth
    reason: str
    executor: Obj | None = None
    known: Known | None = None
    digest: str = ""

    def describe(self) -> str:
        return f"{'read' if self.depth is Depth.READ else 'apply'} {self.ref}"


@dataclass(frozen=True, slots=True)
class Looked:
    """What a :class:`Look` found.

    ``obj``: the object after all writes, None if it does not exist. ``error``: why it is not as the manifest says.
    ``unread``: why it could not be read. ``refused``: the executor lacks a right, or another work has it.
    ``contested``: a field belongs to another manager, which trying again does not change. ``added``: others have added
    to its content. ``tried``: it was compared with its manifest.
    """

    obj: Obj | None = field(default=None, repr=False)
    error: Exception | None = None
    unread: str = ""
    refused: bool = False
    contested: bool = False
    added: bool = False
    wrote: bool = False
    tried: bool = False


@dataclass(frozen=True, slots=True)
class Drop(Action):
    """Delete what a work applied; with ``orphan`` only take the reference of the work away.

    ``resource``: an entry of ``status.appliedResources``; ``reference``: the owner reference of the work.
    """

    resource: Obj
    reference: Obj
    reason: str
    orphan: bool = False

    def describe(self) -> str:
        group, plural = self.resource.get("group"), self.resource.get("resource")
        what = f"{plural}.{group}" if group else str(plural)
        place = "/".join(filter(None, (self.resource.get("namespace"), self.resource.get("name"))))
        return f"{'release' if self.orphan else 'delete'} {what} {place}"


@dataclass(frozen=True, slots=True)
class Dropped:
    """``pending``: the object still exists and stays in the inventory. ``error``: why nothing could be done."""

    pending: bool = False
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Follow(Action):
    """Watch these kinds of the cluster, metadata only, and no others beside what controllers watch."""

    kinds: frozenset[GroupKind]
    reason: str

    def describe(self) -> str:
        return f"follow {len(self.kinds)} kinds"
