"""Watches a whole cluster and keeps what happens on a :class:`Tape`: :func:`recorded`. Live only; it never
writes to the cluster, and holds the objects that it saw last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from syncline.base.clock import Clock
from syncline.base.journal import Journal
from syncline.control.cache import Cache
from syncline.control.informer import Change, Scope
from syncline.control.loop import TWINS, Spaces
from syncline.control.manager import LiveWatches, Port
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, dig, name_of
from syncline.rehearsal.reality.recording import LEFT_OUT, Tape

FULL, STOPPED, DONE = "the record is full", "it was stopped", "the sync is done"


class Everything:
    """All kinds of a cluster that can be watched, as :class:`~syncline.control.loop.Watched`."""

    def __init__(self, tape: Tape, clock: Clock) -> None:
        self.mapper = Mapper()
        self.cache = Cache(self.mapper)
        self.scopes: Mapping[GroupKind, Scope | None] = MappingProxyType({})
        self.spaces = Spaces()
        self.wanted_changed: Callable[[], None] = lambda: None
        self.unreadable: dict[str, str] = {}
        self._tape, self._clock = tape, clock

    def wanted_kinds(self) -> set[GroupKind]:
        able = {info.group_kind for info in self.mapper.all() if {"list", "watch"} <= set(info.verbs)}
        return {kind for kind in able - TWINS if kind.kind not in LEFT_OUT}

    def needed_kinds(self) -> set[GroupKind]:
        return set()

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None:
        info, now = self.mapper.preferred(kind), self._clock.now()
        typed = {"apiVersion": info.api_version, "kind": info.kind} if info is not None else {}
        for each in changes:
            old, new = (None if obj is None else typed | obj for obj in (each.old, each.new))
            self._tape.change(now, old, new)

    def unread(self, kind: GroupKind, why: str, space: str = "") -> None:
        if why:
            self.unreadable[str(kind)] = why


async def recorded(
    port: Port, clock: Clock, tape: Tape, stop: asyncio.Event, *, until: str = "", journal: Journal | None = None
) -> str:
    """Record until ``stop``, until a sync of the Application of this name (``NAME`` or ``NAMESPACE/NAME``) has ended,
    or until the tape is full; return which. ``journal``: of controllers in this process."""
    watched, moved = Everything(tape, clock), asyncio.Event()
    watches = LiveWatches(watched, port, clock, moved.set, where="the recorded cluster")
    if journal is not None:
        journal.listen(tape.entry)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in (_watching(watches), stop.wait(), watches.listed.wait())]
        _, stopping, listed = tasks
        await asyncio.wait((stopping, listed), return_when=asyncio.FIRST_COMPLETED)
        before = _ended(watched.cache, until)
        if not stop.is_set():
            tape.begin(clock.now(), watched.unreadable)
        while not (stop.is_set() or tape.full or _ended(watched.cache, until) - before):
            moving = group.create_task(moved.wait())
            await asyncio.wait((moving, stopping), return_when=asyncio.FIRST_COMPLETED)
            moving.cancel()
            moved.clear()
        for task in tasks:
            task.cancel()
    return FULL if tape.full else STOPPED if stop.is_set() else DONE


async def _watching(watches: LiveWatches) -> None:
    async with asyncio.TaskGroup() as group:
        await watches.run(group)


def _ended(cache: Cache, name: str) -> frozenset[str]:
    """Return when the last sync of each Application of this name began, if it has ended, and what it made is there or
    has failed."""
    namespace, _, own = name.rpartition("/")
    apps = cache.objects(APPLICATION.group_kind, namespace) if own else ()
    return frozenset(
        str(dig(app, "status", "operationState", "startedAt"))
        for app in apps
        if name_of(app) == own
        and not app.get("operation")
        and dig(app, "status", "operationState", "finishedAt")
        and not (
            dig(app, "status", "operationState", "phase") == "Succeeded"
            and dig(app, "status", "health", "status") == "Progressing"
        )
    )
