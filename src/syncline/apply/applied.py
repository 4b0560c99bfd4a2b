"""What was applied last, so that an apply that would change nothing is not sent.

Kept by the handler of one destination. An entry is evidence only beside a live object that a working watch shows: the
same object, and either the very version that the apply left, or, where it was applied server-side, the same fields in
our name (who changes a value of them takes them over). Lost with the process; bounded.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import msgspec

from syncline.apply.actions import ApplyMode, ApplyObject
from syncline.kube.objects import Obj, ObjectRef, meta, resource_version, uid_of

__all__ = ["Applied"]

MAX_KEPT = 50_000
"""Objects, at some 300 bytes each."""

_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class _Entry:
    manifest: bytes
    uid: str
    version: str
    owned: bytes


class Applied:
    """By object. ``manager``: in whose name fields are applied."""

    def __init__(self, manager: str, limit: int = MAX_KEPT) -> None:
        self._manager = manager
        self._limit = limit
        self._kept: OrderedDict[ObjectRef, _Entry] = OrderedDict()

    def note(self, action: ApplyObject, left: Any) -> None:
        """The object as the apply left it, or as it was found to need none."""
        if not isinstance(left, dict) or not uid_of(left) or not resource_version(left):
            return
        owned = self._owned(left) if action.mode is ApplyMode.SERVER_SIDE else b""
        self._kept[action.ref] = _Entry(_manifest(action), uid_of(left), resource_version(left), owned)
        self._kept.move_to_end(action.ref)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def holds(self, action: ApplyObject) -> bool:
        """Whether this very manifest was applied to what is live, and nothing was done to it since."""
        kept, live = self._kept.get(action.ref), action.live
        if kept is None or live is None or uid_of(live) != kept.uid:
            return False
        same = resource_version(live) == kept.version or (kept.owned != b"" and self._owned(live) == kept.owned)
        return same and _manifest(action) == kept.manifest

    def _owned(self, obj: Obj) -> bytes:
        """Our entry of the managed fields, empty without one."""
        for entry in meta(obj).get("managedFields") or ():
            if (entry.get("manager"), entry.get("operation")) == (self._manager, "Apply"):
                return _digest([entry.get("apiVersion"), entry.get("fieldsV1")])
        return b""


def _manifest(action: ApplyObject) -> bytes:
    return _digest([action.mode, action.validate, action.target])


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(_encode(value), digest_size=16).digest()
