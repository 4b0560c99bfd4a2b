"""Fingerprints of a world at an instant at which everything due was done: equal ones have equal futures.

:class:`Fingerprints` of a world are compared by ``explore.py``: a schedule whose world comes to a state that another
schedule was in ends like that one. What counts is what controllers decide by: the objects of the store, the machines
with their files, what waits in queues and for how long, faults that are still to strike or to heal, and what the laws
remember. Left out are Events, versions and times in objects, and background requeues: a wait under way counts by the
rest of it, which a queue has, not by when it began. Memory of controllers is left out, as it may be lost at any time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b

from syncline.cluster.machines.machine import MachineState
from syncline.cluster.machines.simulated import SimulatedMachine
from syncline.cluster.storage.store import Event, EventType, Key, Stored
from syncline.control.virtual import LoopActor
from syncline.rehearsal.injecting import Injector
from syncline.rehearsal.world import World

LEFT_OUT = frozenset({"/events", "events.k8s.io/events"})
"""Resources by which nothing is decided."""
SIZE = 16
_MOVING = re.compile(rb'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"|"resourceVersion":"\d+"')


class Fingerprints:
    """Fingerprints of one world; what did not change since the last one is not looked at again. ``memory`` returns what
    the laws remember, in a form whose ``repr`` says all."""

    def __init__(self, world: World, injector: Injector, memory: Callable[[], object]) -> None:
        self._world, self._injector, self._memory = world, injector, memory
        self._sum = 0
        self._parts: dict[Key, int] = {}
        self._changed: dict[Key, Stored | None] = {}
        self._roots: dict[str, tuple[object, int, bytes]] = {}
        """Of each machine: its tree, the revision of that, and the digest."""
        store = world.core.store
        for resource in store.resources():
            self._changed |= {stored.key: stored for stored in store.list(resource)}
        store.subscribe(self._note)

    def _note(self, event: Event) -> None:
        stored = event.stored
        self._changed[stored.key] = None if event.type is EventType.DELETED else stored

    def each(self, look: Callable[[], object]) -> None:
        """Call ``look`` at each instant at which everything due has been done."""
        self._world.driver.looks.append(look)

    def take(self) -> bytes | None:
        """Return the fingerprint; None where something is under way that does not show: events that are withheld, work
        that ends later, order that is drawn by chance."""
        world, injector = self._world, self._injector
        loops = [actor for actor in world.driver.actors if isinstance(actor, LoopActor)]
        if world.order is not None or not all(actor.is_current for actor in loops):
            return None
        if any(process.transport.withholds for process in injector.processes.values()):
            return None
        now = world.clock.now()
        parts = (
            self._objects(),
            tuple(self._machines(now)),
            sorted(actor.loop.queue.waiting(actor.loop.now()) for actor in loops),
            sorted((who, one.transport.armed()) for who, one in injector.processes.items()),
            sorted((who, clock.off_s) for who, clock in injector.clocks.items()),
            injector.refusing(),
            injector.faults,
            [(after_s, _named(do)) for after_s, do in injector.agenda.waiting()],
            self._memory(),
        )
        return blake2b(repr(parts).encode(), digest_size=SIZE).digest()

    def _objects(self) -> int:
        for key, stored in self._changed.items():
            self._sum -= self._parts.pop(key, 0)
            if stored is not None and key.resource not in LEFT_OUT:
                text = repr(key).encode() + _MOVING.sub(b"", stored.raw)
                self._parts[key] = int.from_bytes(blake2b(text, digest_size=SIZE).digest())
                self._sum += self._parts[key]
        self._changed.clear()
        return self._sum

    def _machines(self, now: datetime) -> Iterator[tuple[str, object, bytes]]:
        registry = self._world.machines.room.machines
        for machine in filter(None, map(registry.get, registry.names())):
            state: MachineState = replace(machine.state, booted_at=None, stopped_at=None, changes_at=None)
            changes = machine.state.changes_at
            left_s = None if changes is None else round((changes - now).total_seconds())
            yield machine.name, (state, left_s), self._root(machine)

    def _root(self, machine: SimulatedMachine) -> bytes:
        tree = machine.root
        known = self._roots.get(machine.name)
        if known is not None and known[0] is tree and known[1] == tree.revision:
            return known[2]
        found = repr([(path, tree.read(path)) for path in tree.paths()])
        digest = blake2b(_MOVING.sub(b"", found.encode()), digest_size=SIZE).digest()
        self._roots[machine.name] = (tree, tree.revision, digest)
        return digest


def _named(do: Callable[[], object]) -> tuple[object, ...]:
    """Return what an action of the agenda will do: its place in the code, and the plain values that it has."""
    code = getattr(do, "__code__", None)
    if code is None:
        return (repr(do),)
    held = [cell.cell_contents for cell in getattr(do, "__closure__", None) or ()]
    values = (*held, *(getattr(do, "__defaults__", None) or ()))
    return (code.co_filename, code.co_firstlineno, *(one for one in values if isinstance(one, str | float | int)))
