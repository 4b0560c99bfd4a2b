#!/usr/bin/env python3
"""A hub and a cluster in four combinations of Open Cluster Management's own programs and ours, with the same stories.

    python -m tools.compare_fleet --programs DIR [--combination ours/theirs] [--only STORY] [--show] [--keep FOLDER]

DIR holds ``registration``, ``work``, ``placement`` and ``addon`` of upstream, built; nothing is fetched or built here.
``--combination`` names hub and agent; without it all four run, one after the other. Each has an embedded API of ours
for the hub, another for the cluster, and nothing else. The stories are ``fleet/stories.yaml``, and two in
``fleet/playing.py``: a cluster joins; it falls silent, comes back, is denied and deleted. After each step all objects
concerned are read, without times, ids, zeros and drawn names; the others are compared with the outcome of upstream's
hub with upstream's agent. ``--recorded FILE`` keeps outcomes, so that one combination can run again.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from tools.fleet.playing import joining, leaving, play
from tools.fleet.sides import OURS, THEIRS, Obj, Unmet, world_of

COMBINATIONS = {f"{hub}/{agent}": (hub, agent) for hub in (THEIRS, OURS) for agent in (THEIRS, OURS)}
KNOWN = Path(__file__).with_name("fleet") / "known.yaml"
MEASURE = f"{THEIRS}/{THEIRS}"


def run(combination: str, programs: Path, folder: Path, only: frozenset[str]) -> Obj:
    """What was seen, by story and step; a story that ended too early says why."""
    hub, agent = COMBINATIONS[combination]
    found: Obj = {}
    begun = time.perf_counter()
    with world_of(hub, agent, programs, folder) as world:
        for name, story in (("joining", joining), ("", None), ("leaving", leaving)):
            if story is None:
                found |= play(world, only)
            elif not only or name in only or name == "joining":
                try:
                    found[name] = story(world)
                except Unmet as unmet:
                    found[name] = {"unmet": str(unmet)}
                    if name == "joining":
                        break
            print(f"{combination:<14} {name or 'stories':<10} {time.perf_counter() - begun:6.1f} s", flush=True)
        spent = {end: (each.cpu_s(), each.resident_mib()) for end, each in world.running.items()}
    for end, (cpu_s, mib) in spent.items():
        print(f"{combination:<14} {end:<10} {cpu_s:6.1f} s of CPU, {mib:.0f} MiB", flush=True)
    return found


def lines_of(value: Any, place: str = "") -> list[str]:
    """One line for each scalar, with its path."""
    if isinstance(value, dict) and value:
        return [line for key in sorted(value) for line in lines_of(value[key], f"{place}.{key}")]
    if isinstance(value, list) and value:
        return [line for number, each in enumerate(value) for line in lines_of(each, f"{place}[{_name(each, number)}]")]
    return [f"{place[1:]}: {json.dumps(value)}"]


def _name(value: Any, number: int) -> str:
    if isinstance(value, dict):
        for key in ("type", "name", "ordinal"):
            if isinstance(value.get(key), str):
                return str(value[key])
    return str(number)


def meant(story: str, lines: list[str]) -> list[str]:
    """Those of the lines that ``fleet/known.yaml`` gives a reason for."""
    known = [re.compile(each["lines"]) for each in yaml.safe_load(KNOWN.read_text())]
    return [line for line in lines if any(each.search(f".{story}.{line[1:]}") for each in known)]


def differences(theirs: Any, mine: Any) -> list[str]:
    """Lines that only one has, theirs with a minus."""
    found = difflib.unified_diff(lines_of(theirs), lines_of(mine), lineterm="", n=0)
    return [line for line in found if not line.startswith(("---", "+++", "@@"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, metavar="DIR", help="folder of upstream's programs")
    parser.add_argument("--combination", action="append", choices=sorted(COMBINATIONS), help="HUB/AGENT; repeatable")
    parser.add_argument("--only", action="append", default=[], metavar="STORY", help="this story alone; repeatable")
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="outcomes, kept and read")
    parser.add_argument("--show", action="store_true", help="print each difference")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep logs here")
    chosen = parser.parse_args()
    found = json.loads(chosen.recorded.read_text()) if chosen.recorded and chosen.recorded.exists() else {}
    with tempfile.TemporaryDirectory(prefix="fleet-") as temporary:
        for combination in chosen.combination or COMBINATIONS:
            place = (chosen.keep or Path(temporary)) / combination.replace("/", "-")
            shutil.rmtree(place, ignore_errors=True)
            seen = run(combination, chosen.programs, place, frozenset(chosen.only))
            found[combination] = (found.get(combination, {}) | seen) if chosen.only else seen
            if chosen.recorded:
                chosen.recorded.write_text(json.dumps(found, indent=1, sort_keys=True))
    return _table(found, chosen)


def _table(found: Obj, chosen: argparse.Namespace) -> int:
    if MEASURE not in found:
        print(f"no outcome of {MEASURE} to compare with; run it, with --recorded FILE to keep it")
        return 2
    others = [each for each in COMBINATIONS if each in found and each != MEASURE]
    print(f"{'':<24}" + "".join(f"{each:>14}" for each in others))
    differ, shown = 0, {}
    for story, expected in found[MEASURE].items():
        if chosen.only and story not in chosen.only:
            continue
        cells = []
        for each in others:
            lines = differences(expected, found[each].get(story))
            known = meant(story, lines)
            differ += len(known) < len(lines)
            cells.append(f"{_verdict(len(lines) - len(known), len(known)):>14}")
            if chosen.show:
                shown[f"{each} {story}"] = [line for line in lines if line not in known]
        print(f"{story:<24}" + "".join(cells))
    for what, lines in shown.items():
        print("".join(f"{what} {line}\n" for line in lines), end="")
    return 1 if differ else 0


def _verdict(unknown: int, known: int) -> str:
    if unknown:
        return f"{unknown} lines"
    return "meant" if known else "equal"


if __name__ == "__main__":
    sys.exit(main())
