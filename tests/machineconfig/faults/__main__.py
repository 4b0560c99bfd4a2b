"""``python -m tests.machineconfig.faults``: every fault at every step of the stories, and random schedules."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from zlib import crc32

from tests.machineconfig.faults.schedule import KINDS, read
from tests.machineconfig.faults.stories import EXPLORER, STORIES, traced

from syncline.base.interpreter import tune_interpreter
from syncline.rehearsal.explore import shrunk
from syncline.rehearsal.faults import Fault, On, Schedule
from syncline.rehearsal.guided.batches import MAX_PROCESSES, Batch, Exploration, Way, broken_of, figures_of
from syncline.rehearsal.guided.keeping import Kept
from syncline.rehearsal.seams import Step
from syncline.rehearsal.verdict import Verdict

TOLD = 3
"""Schedules of one kind that break the same laws and are printed."""


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    tune_interpreter()
    if options.replay:
        outcome = EXPLORER.simulate(read(options.replay))
        say(outcome.line())
        if options.shrink and outcome.first:
            law = outcome.first
            say(f"shrunk  {shrunk(read(options.replay), lambda each: law in EXPLORER.simulate(each).broken)}")
        return 0 if outcome.held else 1
    if options.explore or options.conflicts:
        return max(explored(name, options) for name in options.stories)
    tally = Tally(options.verbose, options.record)
    explorer = replace(EXPLORER, states=None) if options.whole else EXPLORER
    steps: dict[str, int] = {}
    for number, name in enumerate(options.stories):

        def chosen(step: Step, kind: str, number: int = number, name: str = name) -> bool:
            fits = (step.number + list(KINDS).index(kind) + number) % options.every == options.part % options.every
            return fits and not tally.knows(Schedule(name, (Fault(kind, step.number),)))

        def then(schedule: Schedule) -> bool:
            return len(schedule.faults) == 2 and crc32(str(schedule).encode()) % 1000 < options.pairs

        undisturbed = explorer.branched(name, options.kinds, chosen, tally.take, then=then if options.pairs else None)
        tally.take(undisturbed)
        steps[name] = undisturbed.steps
    for name in options.stories:
        seeds = range(1, options.seeds + 1)
        schedules = EXPLORER.drawn(name, steps[name], seeds, options.budget, tally.spent_s)
        for outcome in EXPLORER.each_alone((each for each in schedules if not tally.knows(each)), steps):
            tally.take(outcome)
    tally.show(steps)
    return 1 if tally.broken else 0


def explored(name: str, options: argparse.Namespace) -> int:
    """Explore a story in batches; ``--resume FOLDER`` goes on where it was killed."""
    exploration = Exploration(EXPLORER, name, traced, options.seed, Way(options.way), options.processes)
    if options.conflicts:
        say("\n".join([f"{name}: {len(exploration.conflicts)} pairs", *map(str, exploration.conflicts)]))
    kept: Kept[Batch] = Kept(exploration.about())
    file = options.resume / f"{name}.jsonl" if options.resume else None
    if file is not None:
        file.parent.mkdir(exist_ok=True)
        kept = Kept.read(file.read_text() if file.exists() else "", exploration.about(), Batch.of_obj)
        file.write_text(kept.text())
    began = time.monotonic()
    for batch in exploration.batches(options.explore, kept.parts, lambda: time.monotonic() - began > options.budget):
        line = kept.add(batch)
        if file is not None:
            with file.open("a") as out:
                out.write(line)
    batches = list(kept.parts.values())
    broken = broken_of(batches)
    for place, verdict in list(broken.items())[:TOLD]:
        say(f"{place}: {verdict.line()}")
    left = exploration.untried(sum(batch.schedules for batch in batches))
    say(
        f"{name} ({options.way}, seed {options.seed}): {figures_of(batches)}; not tried: {len(left)} of "
        f"{len(exploration.conflicts)} pairs"
    )
    return 1 if broken else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.machineconfig.faults", description=__doc__)
    parser.add_argument("--stories", nargs="*", default=list(STORIES), choices=list(STORIES))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--every", type=int, default=1, help="each kind only at every n-th step")
    parser.add_argument("--part", type=int, default=0, help="which ones of these: 0 to every - 1")
    parser.add_argument("--record", type=Path, help="a file of outcomes: what it has is not run again, but counted")
    parser.add_argument("--seeds", type=int, default=20, help="random schedules of each story")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds after which no more of them are begun")
    parser.add_argument("--replay", help="one schedule, as it was printed: 'update; kill@12, clock+86400@30'")
    parser.add_argument("--shrink", action="store_true", help="of --replay: a shorter one that breaks the same law")
    parser.add_argument("--pairs", type=int, default=0, help="of 1,000 pairs of faults, how many are run, too")
    parser.add_argument("--explore", type=int, default=0, help="so many schedules of each story, in batches")
    parser.add_argument(
        "--way", default=Way.GUIDED, choices=list(map(str, Way)), help="of --explore: how they are drawn"
    )
    parser.add_argument("--seed", type=int, default=1, help="of --explore")
    parser.add_argument("--processes", type=int, default=1, choices=range(1, MAX_PROCESSES + 1), help="of --explore")
    parser.add_argument("--resume", type=Path, help="of --explore: a folder that keeps what was done, to go on later")
    parser.add_argument("--conflicts", action="store_true", help="print the pairs of accesses whose order could matter")
    parser.add_argument("--whole", action="store_true", help="run on also where a state is known already")
    parser.add_argument("--verbose", action="store_true", help="print every schedule")
    return parser.parse_args(arguments)


class Tally:
    """``record``: a file that outcomes are appended to, one a line, so that a run of hours can be made in parts."""

    def __init__(self, verbose: bool, record: Path | None = None) -> None:
        self._verbose = verbose
        self.runs: dict[str, Counter[str]] = defaultdict(Counter)
        self.broken: list[Verdict] = []
        self.longest: dict[str, float] = defaultdict(float)
        self.checks = self.merged = self.same = self.states = 0
        self._told: Counter[tuple[str, ...]] = Counter()
        self._began = time.monotonic()
        self._cpu_s = 0.0
        self._record, self._known = record, set[str]()
        if record is not None and record.exists():
            for line in record.read_text().splitlines():
                self._count(Verdict.of_obj(json.loads(line)))

    def spent_s(self) -> float:
        return time.monotonic() - self._began

    def knows(self, schedule: Schedule) -> bool:
        return str(schedule) in self._known

    def take(self, outcome: Verdict) -> None:
        if outcome.schedule in self._known:
            return
        self._count(outcome)
        if self._record is not None:
            with self._record.open("a") as out:
                out.write(json.dumps(outcome.to_obj()) + "\n")

    def _count(self, outcome: Verdict) -> None:
        self._known.add(outcome.schedule)
        kind, story = _kind_of(outcome), outcome.schedule.partition("; ")[0]
        self.runs[kind][story.partition("/")[0]] += 1
        self.longest[kind] = max(self.longest[kind], outcome.took_s)
        self.checks += outcome.checks
        self.merged += outcome.merged
        self.same += outcome.same
        self.states += outcome.states
        self._cpu_s += outcome.cpu_s
        if not outcome.held:
            self.broken.append(outcome)
        known = self._told[kind, *outcome.broken]
        self._told[kind, *outcome.broken] += 1
        if self._verbose or (not outcome.held and known < TOLD):
            say(outcome.line())

    def show(self, steps: dict[str, int]) -> None:
        stories = list(steps)
        say(f"{'fault':14} {'strikes at':22} " + " ".join(f"{name:>8}" for name in stories) + "  broken  longest")
        bad = Counter(_kind_of(each) for each in self.broken)
        for kind, counts in self.runs.items():
            where = KINDS[kind].on if kind in KINDS else On.ANY if kind == "several" else ""
            row = " ".join(f"{counts[name]:8}" for name in stories)
            say(f"{kind:14} {where:22} {row}  {bad[kind]:6}  {self.longest[kind]:6.0f} s")
        total = sum(sum(counts.values()) for counts in self.runs.values())
        counted = ", ".join(f"{name} {number}" for name, number in steps.items())
        ended = f"{self.merged} of them came to one of {self.states} known states"
        if self.same:
            ended += f" ({self.same:,} of two faults end as one with the second alone)"
        known = ended if self.merged else "each to its end"
        judged = f"{self.checks} checks of laws, {len(self.broken)} broken"
        say(f"{total} schedules, {known} ({counted} steps undisturbed), {judged}")
        say(f"{self.spent_s():.0f} s, {self._cpu_s + time.process_time():.0f} s of CPU")


def _kind_of(outcome: Verdict) -> str:
    faults = outcome.schedule.partition("; ")[2]
    return "several" if faults.count("@") > 1 else faults.partition("@")[0]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
