"""What a controller is: a kind, watches, an observer and a planner, as one frozen value.

A :class:`~syncline.control.loop.ControlLoop` binds it to a cluster. State lives in API objects; what a controller
remembers beside them is bounded and may be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from syncline.control.cache import IndexFn, Snapshot
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, Obj, ObjectRef, meta, owner_references, ref_of, split_api_version

__all__ = ["EVERY", "HOME", "Controller", "Predicate", "Watch", "differ", "owner_of_kind", "spec_differs"]

S = TypeVar("S")

HOME, EVERY = "", "*"
"""The loop's own cluster; that one and every other that the loop has joined. Any other text is a cluster's name."""

MapToKeys = Callable[[Obj, Snapshot], Iterable[ObjectRef]]
"""From a changed object to the keys that should reconcile again. Called with the old and with the new state."""


Predicate = Callable[[Obj | None, Obj | None], bool]
"""Whether a change from old (None: an arrival) to new (None: a departure) may make a difference."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Watch ``kind`` too (None: every kind that can be listed and watched) and map its changes to keys of ours.

    ``when`` leaves out changes that make no difference to the controller (None: all may).
    """

    kind: GroupKind | None
    keys: MapToKeys
    when: Predicate | None = None
    cluster: str = HOME
    """Where: by name, :data:`HOME` or :data:`EVERY`. The keys are of the cluster that the controller works on."""


def differ(*reads: Callable[[Obj], Any]) -> Predicate:
    """True for arrivals and departures, and where one of ``reads`` tells the new state from the old."""

    def differs(old: Obj | None, new: Obj | None) -> bool:
        return old is None or new is None or any(read(old) != read(new) for read in reads)

    return differs


def _metadata_part(name: str) -> Callable[[Obj], Any]:
    return lambda obj: meta(obj).get(name)


spec_differs = differ(*map(_metadata_part, ("generation", "uid", "deletionTimestamp", "labels", "ownerReferences")))
"""Everything but status and annotations, for kinds that count generations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller(Generic[S]):
    """One kind, what is observed of one object of it, and one plan made from that; a value.

    Variants are made with :func:`dataclasses.replace` around the functions of another one, not by subclasses. ``S`` is
    what ``observe`` returns.
    """

    name: str
    """Appears in journals and Events; unique within a loop."""
    kind: GroupKind
    """Its keys are objects of this kind."""
    cluster: str = HOME
    """Whose objects: of one cluster by name, of :data:`HOME`, or of :data:`EVERY`, where a key has the cluster of its
    object."""
    reaches: Callable[[str, Snapshot], Iterable[ObjectRef]] | None = None
    """The keys at home that look again when a cluster was seen whole for the first time, was lost, or is back."""
    observe: Callable[[Snapshot, ObjectRef], S | None]
    """Everything the plan needs, frozen; None: there is nothing to plan for."""
    plan: Callable[[S, datetime], Plan]
    """Pure."""
    settle: Callable[[S, Plan, tuple[Result, ...], datetime], tuple[S, Plan] | None] | None = None
    """Pure: what is known after the actions have answered, and a further plan, performed at once and settled again;
    None when there is nothing to add."""
    watches: tuple[Watch, ...] = ()
    reads: tuple[GroupKind, ...] = ()
    """Kinds that ``observe`` reads without being woken by them."""
    indices: Mapping[str, IndexFn] = field(default_factory=dict)
    """The loop declares them on its cache."""
    predicate: Predicate | None = None
    """As ``when`` of :class:`Watch`, for objects of its own kind."""
    debounce_s: float = 0.0
    """Seconds from the first of several changes until it plans, so that what arrives together is one plan."""
    urgent: Callable[[Obj], bool] | None = None
    """Whether an object of its kind in this state comes before the others in the queue, since something that was begun
    continues."""
    at_rest: Callable[[Obj], bool] | None = None
    """Whether a reconcile that wrote only this status of its own object leaves nothing to another one, so that its own
    write does not wake it."""
    beside: Callable[[S], str | None] | None = None
    """Whether a plan is made of so much that it would hold the loop for more than ten milliseconds: the project on
    whose account the driver then plans in a thread; None: in place. What was observed must not change meanwhile."""
    stimulus: Callable[[S], object] | None = None
    """What can change the fate of a reconcile that failed. While it stays equal the back-off holds, whichever change
    wakes the key: a reconcile that undoes what it did does not wake itself."""


def owner_of_kind(kind: GroupKind) -> MapToKeys:
    """Map an object to its controlling owner of ``kind``."""

    def keys(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        namespace = ref_of(obj).namespace
        for owner in owner_references(obj):
            group, _ = split_api_version(str(owner.get("apiVersion") or ""))
            if owner.get("controller") and owner.get("kind") == kind.kind and group == kind.group:
                yield ObjectRef(group, kind.kind, namespace, str(owner.get("name")))

    return keys
