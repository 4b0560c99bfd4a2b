"""Which pass of which controller reads and writes which fields of which objects: :class:`Trace` follows one run.

The trace changes nothing: controllers get copies of the cached objects that note what is looked up, and writes are
what the store holds before and after. What is read otherwise (the clock, machines, Git) does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from syncline.cluster.storage.store import Event, EventType, Key, Store, Stored
from syncline.control.cache import Snapshot
from syncline.control.controller import HOME, Controller
from syncline.control.loop import ControlLoop
from syncline.kube.objects import GroupKind, Obj, ObjectRef, ref_of
from syncline.rehearsal.fingerprint import LEFT_OUT
from syncline.rehearsal.seams import Step

T = TypeVar("T")

MAX_DEPTH = 3
"""Depth of a field: one annotation, one condition list, one field of a spec."""
MAX_TURNS = 20_000
"""Maximum passes and foreign writes of a trace; later ones are not kept."""
COUNTED = frozenset({"resourceVersion", "managedFields", "generation", "creationTimestamp"})
"""Metadata that the API keeps by itself."""
LEASES = "coordination.k8s.io/leases"
"""Heartbeats, by which nothing of a run is ordered."""
CLUSTER = ""
"""The process of everything that is not a process of the world: the built-in controllers, kubelets, people."""

Path = tuple[str, ...]


class Place(NamedTuple):
    """A field of an object, or with an empty path all of it. ``what``: ``[CLUSTER: ]GROUP/PLURAL [NAMESPACE/]NAME``."""

    what: str
    path: Path = ()

    def __str__(self) -> str:
        return f"{self.what} {'.'.join(self.path)}".rstrip()

    @property
    def kind(self) -> str:
        """The kind of the object: GROUP/PLURAL."""
        cluster, _, kind = self.what.rpartition(" ")[0].rpartition(": ")
        return kind or cluster

    def meets(self, other: Place) -> bool:
        """Return whether one of both is part of the other."""
        shorter = min(len(self.path), len(other.path))
        return self.what == other.what and self.path[:shorter] == other.path[:shorter]


@dataclass(frozen=True, slots=True)
class Turn:
    """One pass of a controller, or one write of the cluster itself (``who`` empty, no reads). ``after``: the steps that
    were before it; ``writes``: what each step of it changed; of the cluster: at the last step before."""

    who: str
    controller: str
    after: int
    reads: frozenset[Place]
    writes: tuple[tuple[int, frozenset[Place]], ...]


@dataclass
class _Begun:
    who: str
    controller: str
    after: int
    reads: set[Place] = field(default_factory=set)
    writes: dict[int, set[Place]] = field(default_factory=dict)


class Trace:
    """The accesses of one run, to the stores of its clusters by name (empty: the only one). Attach it before the run
    begins."""

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self._begun: list[_Begun] = []
        self._pass: dict[str, _Begun] = {}
        """The last pass of each process: its writes are those of this one."""
        self._step: Step | None = None
        """The step under way, whose write comes next."""
        self._steps = 0
        self._known: dict[tuple[str, Key], Obj] = {}
        for name, store in stores.items():
            for resource in store.resources():
                self._known |= {(name, stored.key): stored.obj for stored in store.list(resource)}
            store.subscribe(partial(self._stored, name))

    def follow(self, who: str, loop: ControlLoop, stores: Mapping[str, str] = MappingProxyType({})) -> None:
        """Note the reads of a process from now on. ``stores``: those of the loop's clusters by name, if several."""
        for name, controller in loop.controllers.items():
            loop.controllers[name] = self._noting(who, controller, loop, stores)

    def _noting(
        self, who: str, controller: Controller[Any], loop: ControlLoop, stores: Mapping[str, str]
    ) -> Controller[Any]:
        def observe(cache: Snapshot, ref: ObjectRef) -> Any:
            begun = _Begun(who, controller.name, self._steps)
            if len(self._begun) < MAX_TURNS:
                self._begun.append(begun)
            self._pass[who] = begun
            cluster = next((name for name, one in loop.joined.items() if one.cache is cache), HOME)
            store = stores.get(cluster, "")
            return controller.observe(_Noting(cache, store, begun.reads), ref)

        return replace(controller, observe=observe)

    def begins(self, step: Step) -> None:
        """A process is about to write; a change of a machine is one of its agent alone."""
        self._step, self._steps = step, step.number
        if step.on_host:
            self._write(frozenset({Place(f"machine {step.node}", (step.path or step.text.partition(" ")[0],))}))
            self._step = None

    def _stored(self, store: str, event: Event) -> None:
        stored: Stored = event.stored
        key, old = stored.key, self._known.get((store, stored.key))
        if event.type is EventType.DELETED:
            self._known.pop((store, key), None)
        else:
            self._known[store, key] = stored.obj
        if key.resource in LEFT_OUT or key.resource == LEASES:
            self._step = None
            return
        what = _what(store, key.resource, key.namespace, key.name)
        whole = old is None or event.type is EventType.DELETED
        paths = [()] if whole else list(_changed(old or {}, stored.obj))
        self._write(frozenset(Place(what, path) for path in paths))
        self._step = None

    def _write(self, places: frozenset[Place]) -> None:
        if not places:
            return
        begun = self._pass.get(self._step.who) if self._step is not None else None
        if begun is None:
            begun = _Begun(CLUSTER, "", self._steps)
            if len(self._begun) < MAX_TURNS:
                self._begun.append(begun)
        begun.writes.setdefault(self._steps, set()).update(places)

    def turns(self) -> tuple[Turn, ...]:
        """Return what was noted, in order."""
        return tuple(
            Turn(
                one.who,
                one.controller,
                one.after,
                frozenset(one.reads),
                tuple((step, frozenset(places)) for step, places in one.writes.items()),
            )
            for one in self._begun
        )


def _what(store: str, resource: str, namespace: str, name: str) -> str:
    named = f"{resource.lstrip('/')} {namespace}/{name}" if namespace else f"{resource.lstrip('/')} {name}"
    return f"{store}: {named}" if store else named


def _named(store: str, ref: ObjectRef, cache: Snapshot) -> str:
    info = cache.mapper.preferred(ref.group_kind)
    return _what(store, f"{ref.group}/{info.plural if info is not None else ref.kind}", ref.namespace, ref.name)


def _changed(old: Any, new: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the fields that differ, at most :data:`MAX_DEPTH` deep."""
    if old == new:
        return
    if not (isinstance(old, dict) and isinstance(new, dict)) or len(path) == MAX_DEPTH:
        yield path
        return
    for name in sorted({*old, *new}):
        if path != ("metadata",) or name not in COUNTED:
            yield from _changed(old.get(name), new.get(name), (*path, str(name)))


class _Traced(dict[str, Any]):
    """An object that notes the fields that are looked up."""

    def __init__(self, inner: Obj, path: Path, note: Callable[[Path], object]) -> None:
        super().__init__(inner)
        self._path, self._note = path, note

    def _seen(self, name: Any, value: Any) -> Any:
        path = (*self._path, str(name))
        if isinstance(value, dict) and value and len(path) < MAX_DEPTH:
            return _Traced(value, path, self._note)
        self._note(path[:MAX_DEPTH])
        return value

    def __getitem__(self, name: str) -> Any:
        return self._seen(name, super().get(name)) if name in dict.keys(self) else super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self._seen(name, super().get(name, default))

    def __contains__(self, name: object) -> bool:
        self._note((*self._path, str(name))[:MAX_DEPTH])
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        self._note(self._path)
        return super().__iter__()

    def keys(self) -> Any:
        self._note(self._path)
        return super().keys()

    def items(self) -> Any:
        self._note(self._path)
        return super().items()

    def values(self) -> Any:
        self._note(self._path)
        return super().values()

    def copy(self) -> dict[str, Any]:
        self._note(self._path)
        return dict(super().items())


class _Noting:
    """A snapshot whose objects note what is looked up; that one is not there is noted, too."""

    def __init__(self, inner: Snapshot, store: str, reads: set[Place]) -> None:
        self._inner, self._store, self._reads = inner, store, reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _of(self, obj: Obj) -> Obj:
        what, reads = _named(self._store, ref_of(obj), self._inner), self._reads
        return _Traced(obj, (), lambda path: reads.add(Place(what, path)))

    def _all(self, found: list[Obj]) -> list[Obj]:
        return [self._of(obj) for obj in found]

    def get(self, ref: ObjectRef) -> Obj | None:
        found = self._inner.get(ref)
        if found is not None:
            return self._of(found)
        self._reads.add(Place(_named(self._store, ref, self._inner)))
        return None

    def objects(self, kind: GroupKind, namespace: str = "") -> list[Obj]:
        return self._all(self._inner.objects(kind, namespace))

    def owned(self, uid: str, kind: GroupKind | None = None) -> list[Obj]:
        return self._all(self._inner.owned(uid, kind))

    def indexed(self, index: str, value: str) -> list[Obj]:
        return self._all(self._inner.indexed(index, value))

    def first(self, index: str, value: str) -> Obj | None:
        found = self._inner.first(index, value)
        return self._of(found) if found is not None else None

    def views(self, kind: GroupKind, view: Callable[[Obj], T]) -> list[T]:
        return [view(obj) for obj in self.objects(kind)]

    def selected(self, kind: GroupKind, namespace: str, selector: Any) -> list[Obj]:
        return self._all(self._inner.selected(kind, namespace, selector))

    def uncontrolled(self, kind: GroupKind, namespace: str) -> list[Obj]:
        return self._all(self._inner.uncontrolled(kind, namespace))
