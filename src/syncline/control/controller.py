"""A controller as one frozen value, :class:`Controller`: a kind, watches, an ``observe`` and a ``plan`` function.

A :class:`~syncline.control.loop.ControlLoop` runs it on a cluster. State is stored in API objects; anything else that a
controller remembers is bounded and may be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from syncline.control.cache import IndexFn, Snapshot
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, Obj, ObjectRef, meta, owner_references, ref_of, split_api_version

S = TypeVar("S")

HOME, EVERY = "", "*"
"""The loop's own cluster, and every cluster of the loop. Any other text is the name of a cluster."""

MapToKeys = Callable[[Obj, Snapshot], Iterable[ObjectRef]]
"""Returns the keys to reconcile after a change of an object. Called with the old and with the new state."""


Predicate = Callable[[Obj | None, Obj | None], bool]
"""Returns True if a change from old (None: added) to new (None: deleted) may matter."""


METADATA = frozenset({"metadata"})
"""Labels, annotations, owners, finalizers and the time of deletion."""
SPEC = frozenset({"spec"})
ANYTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Watch:
    """Watch ``kind`` too (None: every kind that can be listed and watched) and map its changes to our keys.

    ``when`` filters out changes that do not matter to the controller (None: all matter).
    """

    kind: GroupKind | None
    keys: MapToKeys
    when: Predicate | None = None
    cluster: str = HOME
    """The watched cluster: a name, :data:`HOME` or :data:`EVERY`. Keys belong to the cluster of the controller."""
    wanted: bool = True
    """False: only changes of kinds count that are watched for another reason."""
    reads: frozenset[str] = ANYTHING
    """The parts of an object that ``keys`` reads, besides who it is (:data:`METADATA`, :data:`SPEC`): it is called once
    for an update that leaves them alone."""
    gather_s: float = 0.0
    """Seconds from a change here to the reconcile, so that it covers those that follow; ``debounce_s`` if longer."""


def differ(*reads: Callable[[Obj], Any]) -> Predicate:
    """Return a predicate that is true for additions, deletions, and changes of the result of one of ``reads``."""

    def differs(old: Obj | None, new: Obj | None) -> bool:
        return old is None or new is None or any(read(old) != read(new) for read in reads)

    return differs


def _metadata_part(name: str) -> Callable[[Obj], Any]:
    return lambda obj: meta(obj).get(name)


comes_or_goes = differ()
"""True for additions and deletions alone."""
spec_differs = differ(*map(_metadata_part, ("generation", "uid", "deletionTimestamp", "labels", "ownerReferences")))
"""True unless only status or annotations changed; for kinds that count generations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller(Generic[S]):
    """A reconciler of one kind: ``observe`` reads one object and its surroundings, ``plan`` decides.

    Derive variants with :func:`dataclasses.replace` and functions that wrap those of another controller, not by
    subclassing. ``S`` is the result of ``observe``.
    """

    name: str
    """Appears in journals and Events; unique within a loop."""
    kind: GroupKind
    """The kind of its keys."""
    cluster: str = HOME
    """The cluster of its objects: a name, :data:`HOME`, or :data:`EVERY`, where each key has the cluster of its
    object."""
    reaches: Callable[[str, Snapshot], Iterable[ObjectRef]] | None = None
    """The keys at home to reconcile when a cluster is complete for the first time, was lost, or is back."""
    observe: Callable[[Snapshot, ObjectRef], S | None]
    """Everything the plan needs, frozen; None if there is nothing to plan."""
    plan: Callable[[S, datetime], Plan]
    """Pure."""
    settle: Callable[[S, Plan, tuple[Result, ...], datetime], tuple[S, Plan] | None] | None = None
    """Pure: given the results of the actions, returns the new observation and a further plan, which is performed at
    once and settled again; None if nothing is left to do."""
    watches: tuple[Watch, ...] = ()
    reads: tuple[GroupKind, ...] = ()
    """Kinds that ``observe`` reads but whose changes do not trigger a reconcile."""
    indices: Mapping[str, IndexFn] = field(default_factory=dict)
    """The loop declares them on its cache."""
    predicate: Predicate | None = None
    """Like ``when`` of :class:`Watch`, for objects of its own kind."""
    debounce_s: float = 0.0
    """Seconds from the first of several changes to the reconcile, so that one plan covers all of them."""
    urgent: Callable[[Obj], bool] | None = None
    """Returns True if an object in this state goes first in the queue, because something begun must continue."""
    at_rest: Callable[[Obj], bool] | None = None
    """Returns True if a reconcile that wrote only its own object, so that it is as given, leaves nothing to do: its own
    write does not trigger another one."""
    beside: Callable[[S], str | None] | None = None
    """Returns the project for whose share the driver plans in a thread, if planning would block the loop for more than
    ten milliseconds; None: plan in place. The observation must not change meanwhile."""
    stimulus: Callable[[S], object] | None = None
    """Everything that can change the result of a failed reconcile. While it stays equal the back-off holds, whichever
    change triggers the key: a reconcile that undoes its own writes does not trigger itself."""


def owner_of_kind(kind: GroupKind) -> MapToKeys:
    """Return a function that maps an object to its controlling owner of ``kind``."""

    def keys(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        namespace = ref_of(obj).namespace
        for owner in owner_references(obj):
            group, _ = split_api_version(str(owner.get("apiVersion") or ""))
            if owner.get("controller") and owner.get("kind") == kind.kind and group == kind.group:
                yield ObjectRef(group, kind.kind, namespace, str(owner.get("name")))

    return keys
