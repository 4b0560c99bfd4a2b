"""Owner references, adoption and release.

Every controller with children uses it. The rule is that of Kubernetes' ControllerRefManager: a controller owns the
objects that name its uid as their controller; it adopts matching objects without a controller and releases its own that
stopped matching, unless it is terminating.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from syncline.control.cache import Snapshot
from syncline.control.controller import differ
from syncline.control.plan import Patch
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    finalizers,
    gvk_of,
    is_terminating,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
    resource_version,
    uid_of,
)
from syncline.kube.selectors import NOTHING, Selector, SelectorError, label_selector_from, selector_from_labels

_PLAIN_SELECTORS = ("ReplicationController", "Service")
"""Kinds whose selector is a map of labels; an empty one selects nothing."""

MAX_SELECTORS = 4096
"""Cached parsed selectors."""

_selectors: dict[int, tuple[Obj, Selector]] = {}
"""Cache by identity of the selector object: cached objects are immutable, and a status write shares the spec."""


@dataclass(frozen=True, slots=True)
class Claim:
    """``owned``: the controller's objects; ``patches``: adoptions and releases to write."""

    owned: tuple[Obj, ...]
    patches: tuple[Patch, ...]


def controller_of(obj: Obj) -> Obj | None:
    """Return the owner reference that is marked as controller."""
    for owner in owner_references(obj):
        if owner.get("controller"):
            return owner
    return None


ownership_differs = differ(
    *(
        lambda obj, part=part: meta(obj).get(part)
        for part in ("uid", "ownerReferences", "finalizers", "deletionTimestamp")
    )
)
"""Update filter: a change of what owners, and those that wait for the deletion, need to know."""


def owner_reference(owner: Obj) -> Obj:
    """Return a controlling reference that blocks the owner's deletion."""
    gvk = gvk_of(owner)
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def set_owners(obj: Obj, owners: list[Obj], reason: str, holds: list[str] | None = None) -> Patch:
    """Replace the owners, and the finalizers if given, with uid and resourceVersion as preconditions."""
    metadata: Obj = {
        "uid": uid_of(obj),
        "resourceVersion": resource_version(obj),
        "ownerReferences": owners or None,
    }
    if holds is not None:
        metadata["finalizers"] = holds or None
    body = {"metadata": metadata}
    return Patch(gvk_of(obj), namespace_of(obj), name_of(obj), body, reason)


def selector_of(owner: Obj) -> Selector:
    """Return ``spec.selector``; a malformed one selects nothing."""
    said = dig(owner, "spec", "selector")
    if not isinstance(said, dict):
        return NOTHING
    known = _selectors.get(id(said))
    if known is not None and known[0] is said:
        return known[1]
    selector = _selector(said, plain=gvk_of(owner).kind in _PLAIN_SELECTORS)
    if len(_selectors) >= MAX_SELECTORS:
        _selectors.clear()
    _selectors[id(said)] = (said, selector)
    return selector


def _selector(said: Obj, *, plain: bool) -> Selector:
    if plain:
        return selector_from_labels(said) if said else NOTHING
    try:
        return label_selector_from(said)
    except SelectorError:
        return NOTHING


def candidates(cache: Snapshot, kind: GroupKind, owner: Obj) -> list[Obj]:
    """Return objects that may belong to ``owner``: its own and those without a controller, by name."""
    namespace = namespace_of(owner)
    found = {name_of(each): each for each in cache.owned(uid_of(owner), kind) if namespace_of(each) == namespace}
    found |= {name_of(each): each for each in cache.uncontrolled(kind, namespace)}
    return [found[name] for name in sorted(found)]


def claim(owner: Obj, candidates: Iterable[Obj], *, finalizer: str = "") -> Claim:
    """Divide candidates of one kind and namespace into owned, to adopt and to release. ``finalizer`` is added on
    adoption and removed on release."""
    selector, uid = selector_of(owner), uid_of(owner)
    owned: list[Obj] = []
    patches: list[Patch] = []
    for obj in candidates:
        controller = controller_of(obj)
        if controller is not None and controller.get("uid") != uid:
            continue
        matches = selector.matches(labels_of(obj))
        if controller is not None:
            if matches or is_terminating(owner):
                owned.append(obj)
            else:
                patches.append(_release(owner, obj, finalizer))
        elif matches and not is_terminating(owner) and not is_terminating(obj):
            patches.append(_adopt(owner, obj, finalizer))
            owned.append(obj)
    return Claim(tuple(owned), tuple(patches))


def _adopt(owner: Obj, obj: Obj, finalizer: str) -> Patch:
    held = finalizers(obj)
    wanted = [*held, finalizer] if finalizer and finalizer not in held else None
    return set_owners(obj, [*owner_references(obj), owner_reference(owner)], f"adopted by {ref_of(owner)}", wanted)


def _release(owner: Obj, obj: Obj, finalizer: str) -> Patch:
    left = [reference for reference in owner_references(obj) if reference.get("uid") != uid_of(owner)]
    held = finalizers(obj)
    wanted = [each for each in held if each != finalizer] if finalizer in held else None
    return set_owners(obj, left, f"no longer matches the selector of {ref_of(owner)}", wanted)


def selecting_owners(kind: GroupKind) -> Callable[[Obj, Snapshot], Iterable[ObjectRef]]:
    """Return a map from an object to its controller of ``kind``, or without one to those whose selector matches."""

    def keys(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        controller = controller_of(obj)
        namespace = namespace_of(obj)
        if controller is not None:
            if controller.get("kind") == kind.kind:
                yield ObjectRef(kind.group, kind.kind, namespace, str(controller.get("name")))
            return
        for owner in cache.objects(kind, namespace):
            if selector_of(owner).matches(labels_of(obj)):
                yield ref_of(owner)

    return keys
