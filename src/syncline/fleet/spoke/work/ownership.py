"""Who owns an object on the spoke: references to AppliedManifestWorks, added and removed; pure.

An object that a work owns is deleted with it; one that several works own, with the last of them. An orphaned one keeps
no reference. Rules: ``pkg/work/helper`` of upstream (reference ocm-pull-model §6.8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from syncline.control.plan import Patch
from syncline.kube.kinds.manifestworks import APPLIED_WORK
from syncline.kube.objects import (
    Obj,
    dig,
    gvk_of,
    name_of,
    namespace_of,
    owner_references,
    resource_version,
    split_api_version,
    uid_of,
)

_IDENTITY: Final = ("group", "resource", "namespace", "name")


@dataclass(frozen=True, slots=True)
class Ownership:
    """The reference to a work's AppliedManifestWork, and whether an object shall have it."""

    reference: Obj
    owned: bool = True

    def applied_to(self, references: Sequence[Obj]) -> list[Obj]:
        """Return the references with ours in place, or without it. One of the same name and kind is ours: its uid is
        that of a former AppliedManifestWork."""
        others = [one for one in references if not _same_owner(one, self.reference)]
        if not self.owned:
            return others
        if len(others) == len(references):
            return [*others, self.reference]
        return [self.reference if _same_owner(one, self.reference) else one for one in references]


def reference_to(applied_work: Obj) -> Obj:
    """Return the owner reference to an AppliedManifestWork; it is no controller's, since several works may own."""
    version = f"{APPLIED_WORK.group}/{APPLIED_WORK.version}"
    return {
        "apiVersion": version,
        "kind": APPLIED_WORK.kind,
        "name": name_of(applied_work),
        "uid": uid_of(applied_work),
    }


def _same_owner(one: Obj, other: Obj) -> bool:
    groups = [split_api_version(str(each.get("apiVersion") or ""))[0] for each in (one, other)]
    return groups[0] == groups[1] and all(one.get(name) == other.get(name) for name in ("kind", "name"))


def owned_by_work(resource: Obj, delete_option: Obj | None) -> bool:
    """Return whether an object is deleted with its work. ``resource``: its group, resource, namespace and name;
    ``delete_option``: ``deleteOption`` of the work."""
    if delete_option is None:
        return True
    match delete_option.get("propagationPolicy"):
        case "Foreground":
            return True
        case "Orphan":
            return False
    rules = dig(delete_option, "selectivelyOrphans", "orphaningRules") or ()
    return not any(all((rule.get(name) or "") == (resource.get(name) or "") for name in _IDENTITY) for rule in rules)


def owner_patch(live: Obj, ownership: Ownership, reason: str) -> Patch | None:
    """Return the merge patch that gives an object its references, conditional on its uid and version; None if it has
    them."""
    before = owner_references(live)
    after = ownership.applied_to(before)
    if after == before:
        return None
    guards = {"uid": uid_of(live), "resourceVersion": resource_version(live)}
    body = {"metadata": {"ownerReferences": after, **{name: value for name, value in guards.items() if value}}}
    return Patch(gvk_of(live), namespace_of(live), name_of(live), body, reason)


def has_other_works(live: Obj, reference: Obj) -> bool:
    """Return whether another AppliedManifestWork owns the object."""
    return bool(other_works(live, str(reference["uid"])))


def earlier_work(references: Sequence[Obj], reference: Obj) -> str:
    """Return the name of the AppliedManifestWork that owned an object before the one of a reference; empty: that is the
    first one. One of the same work is no other: its hub had another address then. Whether it still counts, its object
    says (:func:`is_left`)."""
    name = _work(reference)
    first = next((one for one in references if _is_work(one)), None)
    return "" if first is None or _work(first) == name else str(first.get("name") or "")


def is_left(applied: Obj | None) -> bool:
    """Return whether an AppliedManifestWork holds nothing any more: it is gone, or its work is no longer on its hub."""
    return applied is None or bool(dig(applied, "status", "evictionStartTime"))


def _work(one: Obj) -> str:
    """Return the name of the work: that of the inventory begins with the hash of its hub."""
    return str(one.get("name") or "").partition("-")[2]


def _is_work(one: Obj) -> bool:
    return (
        one.get("apiVersion") == f"{APPLIED_WORK.group}/{APPLIED_WORK.version}" and one.get("kind") == APPLIED_WORK.kind
    )


def other_works(live: Obj, uid: str) -> list[str]:
    """Return the names of the AppliedManifestWorks that own an object, but for the one with ``uid``."""
    return [str(one.get("name") or "") for one in owner_references(live) if _is_work(one) and one.get("uid") != uid]
