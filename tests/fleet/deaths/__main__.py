"""``python -m tests.fleet.deaths``: every death at every write of an ordered roll-out, and drawn schedules."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.fleet.deaths.faults import DEATHS, KINDS
from tests.fleet.deaths.world import EXPLORER, ROLL_OUT, branched, calm_facts

from syncline.rehearsal.explore import shrunk
from syncline.rehearsal.faults import Schedule, drawn, read
from syncline.rehearsal.seams import Step
from syncline.rehearsal.verdict import Verdict


def main() -> int:
    options = _options()
    calm_facts()
    count: Counter[str] = Counter()
    began = time.monotonic()
    broken: list[Verdict] = []

    def take(verdict: Verdict) -> None:
        count["schedules"] += 1
        count["checks"] += verdict.checks
        count["cpu"] += int(verdict.cpu_s * 100)
        count["longest"] = max(count["longest"], int(verdict.took_s))
        if not verdict.held:
            broken.append(verdict)
        if options.verbose or not verdict.held:
            say(verdict.line())

    def simulated(schedule: Schedule) -> Verdict:
        return next(iter(EXPLORER.each_alone([schedule], {})))

    for line in options.replay:
        schedule = read(line, KINDS)
        found = simulated(schedule)
        say(found.line())
        if options.shrink and found.first:
            law = found.first
            say(f"shrunk  {shrunk(schedule, lambda one, law=law: law in simulated(one).broken)}")  # type: ignore[misc]
    if not options.replay:
        kinds = list(DEATHS)

        def chosen(step: Step, kind: str) -> bool:
            return (step.number + kinds.index(kind)) % options.every == options.part % options.every

        calm, *found = branched(kinds if options.every else (), chosen)
        say(calm.line())
        for one in found:
            take(one)
        for seed in range(options.first, options.first + options.seeds):
            take(simulated(drawn(ROLL_OUT, seed, calm.steps, KINDS)))
        took = f"{time.monotonic() - began:.0f} s, {count['cpu'] / 100:.0f} s of CPU"
        say(f"{dict(count)}, {len(broken)} broken; {took}")
    return 1 if broken else 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.deaths", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="each death only at every n-th write; 0: none")
    parser.add_argument("--part", type=int, default=0, help="which ones of these: 0 to every - 1")
    parser.add_argument("--seeds", type=int, default=0, help="drawn schedules")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--replay", nargs="*", default=[], help="schedules as printed: 'roll-out; kill@12, lost@30:c2'")
    parser.add_argument("--shrink", action="store_true", help="of --replay: a shorter one that breaks the same law")
    parser.add_argument("--verbose", action="store_true", help="print every schedule")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
