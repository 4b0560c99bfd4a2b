"""What happens as soon as the cluster is in a state: :class:`Waiting` looks whenever all that is due has been done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from syncline.kube.objects import Obj, ObjectRef, ref_of
from syncline.rehearsal.record import disclosed
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.seams import Agenda
from syncline.rehearsal.testing.case import Happening
from syncline.rehearsal.testing.states import Seen, Wanting
from syncline.rehearsal.world import World


class Waiting:
    """The happenings of a world that wait for a state. ``happen`` carries one out; what heals does so later."""

    def __init__(self, world: World, happenings: Sequence[Happening], happen: Callable[[Happening], None]) -> None:
        self._world, self._happen = world, happen
        self._began = world.clock.now()
        self._left = [(each, Wanting(each.once)) for each in happenings if each.once is not None]
        self._there: dict[ObjectRef, Seen] = {}
        self._moved = False
        self._why = ""
        self.heals = Agenda(world.clock)
        if self._left:
            for resource in world.core.store.resources():
                for stored in world.core.store.list(resource):
                    self._see(stored.obj, gone=False)
            world.core.store.subscribe(self._note)
            world.driver.looks.append(self._look)
            world.driver.add(self.heals)

    @property
    def last(self) -> datetime | None:
        """Return when the last of what has happened heals; None: nothing is to heal."""
        return self.heals.last

    def end(self) -> None:
        """Raise ScenarioError if something has not happened, since it never came to its state."""
        if self._left:
            happening = self._left[0][0]
            raise ScenarioError(f"{happening.where}: {happening.text}: it never came to that: {self._why}")

    def _note(self, event: Any) -> None:
        self._see(event.stored.obj, gone=event.type == "DELETED")

    def _see(self, obj: Obj, *, gone: bool) -> None:
        ref = ref_of(obj)
        if not any(wanting.names(ref) for _, wanting in self._left):
            return
        before = self._there.pop(ref, None)
        if not gone:
            at_s = (self._world.clock.now() - self._began).total_seconds()
            self._there[ref] = disclosed(obj), before[0] if before is not None else None, at_s
        self._moved = True

    def _look(self) -> None:
        if not self._moved:
            return
        self._moved, fired = False, False
        for each, wanting in list(self._left):
            self._why = wanting.wrong({ref: seen for ref, seen in self._there.items() if wanting.names(ref)})
            if not self._why:
                self._left.remove((each, wanting))
                self._happen(each)
                fired = True
                if each.then is not None:
                    self._heal_later(each.then)
        if fired:
            self._world.driver.settle()

    def _heal_later(self, then: Happening) -> None:
        self.heals.after(then.at.total_seconds(), lambda: self._happen(then))
