"""A cache of applied manifests, which saves applies that would change nothing.

The handler of one destination holds it. An entry is evidence only with a live object from a working watch: the same
object, and either the version that the apply left or, after a server-side apply, the same fields owned by us (any
client that changes their values takes them over). Lost with the process; bounded.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import msgspec

from syncline.apply.actions import ApplyMode, ApplyObject
from syncline.kube.objects import Obj, ObjectRef, meta, resource_version, uid_of

MAX_KEPT = 50_000
"""Cached objects, of about 300 bytes each."""

_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class _Entry:
    manifest: bytes
    uid: str
    version: str
    owned: bytes


class Applied:
    """Entries by object. ``manager``: the field manager of applies."""

    def __init__(self, manager: str, limit: int = MAX_KEPT) -> None:
        self._manager = manager
        self._limit = limit
        self._kept: OrderedDict[ObjectRef, _Entry] = OrderedDict()

    def note(self, action: ApplyObject, left: Any) -> None:
        """Record an object after its apply, or one that needed none."""
        if not isinstance(left, dict) or not uid_of(left) or not resource_version(left):
            return
        owned = self._owned(left) if action.mode is ApplyMode.SERVER_SIDE else b""
        self._kept[action.ref] = _Entry(_manifest(action), uid_of(left), resource_version(left), owned)
        self._kept.move_to_end(action.ref)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def holds(self, action: ApplyObject) -> bool:
        """Return whether this manifest was applied to the live object, which is unchanged since."""
        kept, live = self._kept.get(action.ref), action.live
        if kept is None or live is None or uid_of(live) != kept.uid:
            return False
        same = resource_version(live) == kept.version or (kept.owned != b"" and self._owned(live) == kept.owned)
        return same and _manifest(action) == kept.manifest

    def _owned(self, obj: Obj) -> bytes:
        """Return a hash of our entry in the managed fields; empty without one."""
        for entry in meta(obj).get("managedFields") or ():
            if (entry.get("manager"), entry.get("operation")) == (self._manager, "Apply"):
                return _digest([entry.get("apiVersion"), entry.get("fieldsV1")])
        return b""


def _manifest(action: ApplyObject) -> bytes:
    return _digest([action.mode, action.validate, action.target])


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(_encode(value), digest_size=16).digest()
