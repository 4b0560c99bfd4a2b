"""Plays scenarios twice, in virtual time and on a served cluster in real time, and compares what happened.

    python tools/compare_live.py examples/shop examples/pool-pause …
    python tools/compare_live.py --programs FOLDER examples/shop …     # the second time on a real control plane

The courses of all objects are compared (``rehearsal/reality/course.py``), and the order in which the journals of the
controllers have each object applied for the first time. Names of commits count by their order.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from real_plane import SALT, Plane, on_plane

from syncline.assembly.embedded.live import LiveCluster
from syncline.assembly.machines.virtual import sandbox_problem
from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.base.clock import SystemClock
from syncline.base.journal import Entry
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.serving.demo import Showing
from syncline.cli.serving.running import run_cluster
from syncline.rehearsal.reading import read_scenario
from syncline.rehearsal.reality.course import Course, Step, course_of, first_differences, undated
from syncline.rehearsal.reality.redacting import Redaction
from syncline.rehearsal.record import Ending, Record, Recorder
from syncline.rehearsal.scenario import Scenario, ScenarioError
from syncline.rehearsal.simulation import Simulation

REST_S = 5.0
"""How long both go on after the last step, so that what it set off has ended: hooks that are deleted, for instance."""
SHA = re.compile(r"\b[0-9a-f]{12}\b")
SHORT = re.compile(r"-[0-9a-f]{7}-(presync|sync|postsync|syncfail|predelete|postdelete)\b")


def virtual(story: Scenario, scratch: Path) -> Record:
    show = Simulation(story, scratch)
    recorder = Recorder(show.world.clock)
    show.world.core.store.subscribe(recorder.note)
    show.begin()
    began = show.world.clock.now()
    for step in story.steps:
        show.simulate(step)
    show.world.driver.advance(REST_S)
    entries = tuple(entry for entry in show.world.journal if entry.when >= began)
    return Record(began, show.world.clock.now(), Ending.DONE, None, entries, tuple(recorder.versions), ())


def live(story: Scenario, scratch: Path) -> Record:
    clock, found = SystemClock(), list[Record]()
    problem = sandbox_problem()
    commands = RunCommands.OFF if problem else RunCommands.SANDBOXED
    settings = ClusterSettings(port=0, nodes=0 if story.nodes else 1, run_commands=commands)

    async def body(cluster: LiveCluster, _stop: asyncio.Event) -> int:
        recorder, journal = Recorder(clock), list[Entry]()
        cluster.core.store.subscribe(recorder.note)
        cluster.journal.listen(journal.append)
        show = Showing(story, scratch, clock)
        await show.begin(cluster, problem)
        began = clock.now()
        for step in story.steps:
            await show.simulate(cluster, step)
        await asyncio.sleep(REST_S)
        entries = tuple(entry for entry in journal if entry.when >= began)
        found.append(Record(began, clock.now(), Ending.DONE, None, entries, tuple(recorder.versions), ()))
        return 0

    run_cluster(settings, body, scratch / "kubeconfig")
    return found[0]


def redacted(record: Record) -> Record:
    """Return a record as ``syncline record`` keeps it."""
    redaction = Redaction(SALT)
    return replace(record, versions=tuple(replace(each, obj=redaction.of(each.obj)) for each in record.versions))


def named(course: Course) -> dict[str, tuple[Step, ...]]:
    """Return the course with commits by their order, and hooks without theirs."""
    order: dict[str, str] = {}

    def plain(text: str) -> str:
        text = SHORT.sub(r"-\1", text)
        return SHA.sub(lambda found: order.setdefault(found[0], f"commit {len(order) + 1}"), text)

    return {SHORT.sub(r"-\1", key): tuple(Step(s.at_s, plain(s.what)) for s in steps) for key, steps in course.items()}


def applied(journal: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """Yield each object that a sync applied, once, in order, with the Application."""
    seen: set[tuple[str, str]] = set()
    for entry in journal:
        verb, _, ref = entry.what.partition(" ")
        key = entry.subject, SHORT.sub(r"-\1", undated(ref))
        if verb == "apply" and key not in seen:
            seen.add(key)
            yield key


def compare(folder: Path, plane: Plane | None) -> bool:
    """Play and compare one scenario. ``plane``: where it is live; None: on the embedded cluster."""
    story = read_scenario(folder.resolve())
    scratch = Path(tempfile.mkdtemp(prefix="compare-live-"))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            played = virtual(story, scratch / "play")
            shutil.rmtree(scratch / "play")  # at the same place, so that addresses are equal
            if plane is None:
                was = live(story, scratch / "play")
            else:
                was = on_plane(plane, story, scratch / "play", REST_S).record()
                played = redacted(played)
    except (CommandFailed, ScenarioError) as error:
        print(f"DIFFERS  {story.name}: one of them does not end: {error}", flush=True)
        return False
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    then, now = named(course_of(was)), named(course_of(played))
    found = first_differences(then, now, by=played)
    one, other = list(applied(was.journal)), list(applied(played.journal))
    steps, applies = sum(map(len, then.values())), len(one)
    agrees = not found and one == other
    took = f"{(was.ended - was.began).total_seconds():.0f} s live, {played.seconds(played.ended):.0f} s virtual"
    print(f"{'agrees ' if agrees else 'DIFFERS'}  {story.name}: {steps} steps, {applies} applied; {took}", flush=True)
    for each in found:
        print(f"    +{each.at_s:.0f}s {each} ({each.why})")
    if one != other:
        print(f"    live applies  {one}\n    virtual       {other}")
    return agrees


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a story.yaml, or with manifests")
    parser.add_argument("--programs", type=Path, help="folder with the programs of a real control plane")
    parser.add_argument("--port", type=int, default=27500, help="first of five ports of the real control plane")
    parser.add_argument("--keep", type=Path, help="folder for records and repositories of the real control plane")
    given = parser.parse_args()
    plane = Plane(given.programs.resolve(), given.port, given.keep) if given.programs is not None else None
    agrees = [compare(folder, plane) for folder in given.folders]
    return 0 if all(agrees) else 1


if __name__ == "__main__":
    sys.exit(main())
