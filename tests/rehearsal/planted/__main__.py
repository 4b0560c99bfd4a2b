"""``python -m tests.rehearsal.planted``: after how many schedules each planted bug is found, guided and blind."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from tests.rehearsal.planted.planting import BUGS, Bug

from syncline.base.interpreter import tune_interpreter
from syncline.rehearsal.guided.batches import Exploration, Way

SIZE = 8
"""Schedules of one batch, after which an exploration that found the bug ends."""


def exploration_of(bug: Bug, seed: int, way: Way) -> Exploration[Any]:
    """Return an exploration of the bug's world, in which it is planted already. Worlds are judged until they are done,
    and at rest only where the bug shows there alone."""
    if bug.world == "machines":
        import tests.machineconfig.faults.stories as machines

        return Exploration(
            replace(machines.EXPLORER, rests=bug.rests), bug.scenario, machines.traced, seed, way, size=SIZE
        )
    import tests.fleet.deaths.world as fleet

    fleet.calm_facts(small=True)
    return Exploration(replace(fleet.EXPLORER, rests=bug.rests), bug.scenario, fleet.traced, seed, way, size=SIZE)


def found(bug: Bug, seed: int, way: Way, most: int) -> tuple[int, str]:
    """Return the number of the first schedule that breaks a law, and its verdict; ``most`` + 1: none of so many."""
    for batch in exploration_of(bug, seed, way).batches(most, {}):
        if batch.broken:
            place = min(batch.broken)
            return place, batch.broken[place].line()
    return most + 1, ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rehearsal.planted", description=__doc__)
    names = [bug.name for bug in BUGS]
    parser.add_argument("--bugs", nargs="*", default=names, choices=names)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--most", type=int, default=64, help="schedules after which a search is given up")
    parser.add_argument("--record", type=Path, help="a file of what was found: it is not searched again")
    options = parser.parse_args(arguments)
    tune_interpreter()
    known: dict[tuple[str, int, str], int] = {}
    if options.record is not None and options.record.exists():
        for line in options.record.read_text().splitlines():
            bug_name, seed, way, place = json.loads(line)
            known[bug_name, seed, way] = place
    for seed in range(1, options.seeds + 1):
        for bug in BUGS:
            for way in Way if bug.name in options.bugs else ():
                if (bug.name, seed, str(way)) in known:
                    continue
                with bug.planted():
                    place, line = found(bug, seed, way, options.most)
                known[bug.name, seed, str(way)] = place
                sys.stderr.write(f"{bug.name} {way} {seed}: {place} {line[:300]}\n")
                if options.record is not None:
                    with options.record.open("a") as out:
                        out.write(json.dumps([bug.name, seed, str(way), place]) + "\n")
    sys.stdout.write(table([bug for bug in BUGS if bug.name in options.bugs], known, options.most))
    return 0


def table(bugs: list[Bug], known: Mapping[tuple[str, int, str], int], most: int) -> str:
    """Return the medians over the seeds that were searched both ways."""
    rows = [f"{'bug':8} {'law':10} {'seeds':>5}  {'guided':>16}  {'blind':>16}"]
    for bug in bugs:
        ways = [
            {seed: place for (name, seed, its), place in known.items() if (name, its) == (bug.name, way)} for way in Way
        ]
        seeds = sorted(ways[0].keys() & ways[1].keys())
        cells = [_cell([way[seed] for seed in seeds], most) for way in ways]
        rows.append(f"{bug.name:8} {bug.law:10} {len(seeds):5}  {cells[0]:>16}  {cells[1]:>16}")
    return "\n".join(rows) + "\n"


def _cell(places: list[int], most: int) -> str:
    if not places:
        return "-"
    said = [f">{most}" if place > most else f"{place:g}" for place in (median(places), min(places), max(places))]
    return f"{said[0]} ({said[1]} to {said[2]})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
