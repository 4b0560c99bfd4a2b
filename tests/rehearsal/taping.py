"""Records of virtual operations: what ``syncline record`` would have written, without a server and without waiting."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.control.executor import run_in_place
from syncline.kube.objects import Obj, ref_of
from syncline.rehearsal.playing import Play
from syncline.rehearsal.reality.recording import Recording, Tape, recording_of
from syncline.rehearsal.reality.redacting import Redaction


@dataclass
class Taping:
    """A tape beside a rehearsal that is under way."""

    play: Play
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tape = Tape(self.lines.append, Redaction(b"salt"))
        self.tape.head("virtual")
        found = run_in_place(snapshot_of_cluster({}), self.play.world.admin).cache
        now, self._last = self.play.world.clock.now(), dict[object, Obj]()
        for info in found.mapper.all():
            for obj in found.objects(info.group_kind):
                whole = {"apiVersion": info.api_version, "kind": info.kind, **obj}
                self._last[ref_of(whole)] = whole
                self.tape.change(now, None, whole)
        self.tape.begin(now, {})
        self.play.world.core.store.subscribe(self._note)

    def _note(self, event: object) -> None:
        obj: Obj = event.stored.obj  # type: ignore[attr-defined]
        old, gone = self._last.get(ref_of(obj)), event.type == "DELETED"  # type: ignore[attr-defined]
        self._last[ref_of(obj)] = obj
        self.tape.change(self.play.world.clock.now(), old or (obj if gone else None), None if gone else obj)

    def recording(self) -> Recording:
        """Return what is recorded so far."""
        self.tape.write(f'{{"ended": "{self.play.world.clock.now().isoformat()}", "why": "test"}}\n')
        return recording_of([line.encode() for line in self.lines], "record")


def taped(play: Play, does: Callable[[Play], None], until: timedelta = timedelta(hours=6)) -> Recording:
    """Record what follows from ``does``, until it is done or nothing moves."""
    tape = Taping(play)
    does(play)
    play.run(until)
    return tape.recording()


def clone_of(scratch: Path) -> Path:
    """One repository with the commits of all that a rehearsal committed below its folder."""
    clone = scratch / "clone"
    subprocess.run(["git", "init", "-q", "-b", "nothing", str(clone)], check=True)
    for place in sorted(scratch.glob("repository-*")):
        fetch = ["fetch", "-q", str(place), f"+main:refs/heads/{place.name}"]
        subprocess.run(["git", "-C", str(clone), *fetch], check=True)
    return clone
