"""Where a captured MachineConfig lands: on the machines of a pool in virtual time, and in a tree by the node agent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.pool import APIS, PoolOfMachines

from syncline.assembly.machines.simulatedhosts import SimulatedHosts
from syncline.control.virtual import NotIdleError
from syncline.kube.objects import Obj, annotations_of
from syncline.machineconfig.agent.host import HostError
from syncline.machineconfig.names import REASON, STATE
from syncline.sources.ansible.judging import Captured

EQUAL = "equal"
UNITS = "/etc/systemd/system"
WITHIN_S = 4 * 3600.0
MOVED = (("/usr/local/", "/var/usrlocal/"), ("/root/", "/var/roothome/"))
"""Links of a CoreOS: what a root reaches by the first lies below the second."""


@dataclass(frozen=True, slots=True)
class Left:
    """A file as a way of applying it leaves it."""

    content: bytes
    mode: int
    uid: int
    gid: int

    def unlike(self, other: Left) -> str:
        """What differs from the other; empty: nothing does."""
        words = "another content" if self.content != other.content else ""
        mine, theirs = (f"{one.mode:04o} {one.uid}:{one.gid}" for one in (self, other))
        return ", ".join(filter(None, (words, f"{mine} instead of {theirs}" if mine != theirs else "")))


def below(root: Path, path: str) -> Path:
    for link, real in MOVED:
        path = path.replace(link, real, 1) if path.startswith(link) else path
    return root / path.lstrip("/")


def in_tree(root: Path, path: str) -> Left | None:
    place = below(root, path)
    if place.is_symlink() or not place.is_file():
        return None
    found = place.stat()
    return Left(place.read_bytes(), found.st_mode & 0o7777, found.st_uid, found.st_gid)


def apply_to_tree(config: Obj, root: Path) -> str:
    """Run ``syncline node-agent apply``; returns what it says. Raises :class:`RuntimeError` if it fails."""
    (root / "usr").mkdir(exist_ok=True)
    if not (root / "usr/local").exists():
        (root / "usr/local").symlink_to("../var/usrlocal")
    file = root.parent / f"{root.name}.json"
    file.write_text(json.dumps(config))
    program = (sys.executable, "-c", "import sys; from syncline.cli.main import main; sys.exit(main())")
    command = [*program, "node-agent", "apply", "-f", str(file), "--root", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"node-agent apply failed: {done.stderr.strip()}")
    return done.stdout.strip()


class Pool:
    """Two simulated workers, one updated at a time, in virtual time."""

    def __init__(self) -> None:
        self._pool = PoolOfMachines(2, 1)
        machines = self._pool.world.machines.room.machines
        self._hosts = SimulatedHosts(machines, self._pool.world.clock)
        self.names = sorted(machines.names())

    def apply(self, config: Obj) -> float:
        """Returns the virtual seconds until both nodes are Done. Raises :class:`RuntimeError` if they never are."""
        pool, before, began = self._pool, self._pool.target, self._pool.world.clock.now()
        pool.world.send("POST", f"{APIS}/machineconfigs", config)
        try:
            pool.world.driver.until(lambda: pool.target != before, limit_s=300)
            pool.world.driver.until(lambda: pool.at(pool.target), limit_s=WITHIN_S)
        except NotIdleError:
            raise RuntimeError("; ".join(self._said()) or "the pool renders no config of it") from None
        return (pool.world.clock.now() - began).total_seconds()

    def _said(self) -> Iterator[str]:
        for name in self.names:
            notes = annotations_of(self._pool.world.send("GET", f"/api/v1/nodes/{name}"))
            yield f"{name} {notes.get(STATE, '')}: {notes.get(REASON, '')}"

    def left(self, name: str, path: str) -> Left | None:
        host = self._hosts.host(name)
        found = host.stat(path)
        if found is None or found.kind != "file":
            return None
        try:
            return Left(host.read(path), found.mode, found.uid, found.gid)
        except HostError:
            return None


def paths_of(captured: Captured) -> list[str]:
    """The files that a MachineConfig of it writes: its own, units, drop-ins."""
    paths = [each.path for each in captured.files]
    for unit in captured.units:
        paths += [f"{UNITS}/{unit.name}"] if unit.contents is not None else []
        paths += [f"{UNITS}/{unit.name}.d/{name}" for name, _ in unit.dropins]
    return sorted(paths)


def judged(found: Left | None, alone: Left | None) -> str:
    """How a file stands to that of ansible-playbook alone; ``equal``: so are content, mode and owner."""
    if found is None:
        return "no such file"
    return "not left by ansible-playbook alone" if alone is None else found.unlike(alone) or EQUAL


def compared(captured: Captured, config: Obj, alone: Path, tree: Path) -> tuple[list[str], int]:
    """Apply the config in both ways. Returns the lines of a table, and how many cells are not equal."""
    pool, paths = Pool(), paths_of(captured)
    said, took = apply_to_tree(config, tree), pool.apply(config)
    ways: dict[str, Callable[[str], Left | None]] = {"node-agent apply": lambda path: in_tree(tree, path)}
    ways |= {name: partial(pool.left, name) for name in pool.names}
    lines = [said.splitlines()[-1].replace(str(tree), "DIR"), f"both workers Done after {took:.0f} s of virtual time"]
    wrong = 0
    table = [("FILE", *ways)]
    for path in paths:
        cells = [judged(left(path), in_tree(alone, path)) for left in ways.values()]
        wrong += sum(cell != EQUAL for cell in cells)
        table.append((path, *cells))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return lines, wrong
