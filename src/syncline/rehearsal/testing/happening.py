"""Plays a scenario: its commit, and what happens at its times; faults at 0s strike before the commit. Entry point:
:func:`played`."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import assert_never

from syncline.base.interpreter import seldom_collecting
from syncline.control.executor import run_in_place
from syncline.explain.naming import NamingError
from syncline.kube.client import Request
from syncline.kube.errors import ApiError
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import name_of, namespace_of
from syncline.rehearsal.mishaps import Mishaps
from syncline.rehearsal.playing import Asked, Play, Then, reach
from syncline.rehearsal.record import Record
from syncline.rehearsal.scenario import Act, AddNode, ScenarioError
from syncline.rehearsal.testing.case import Acts, Commit, Happening, Strike, Sync, Terminate
from syncline.rehearsal.testing.waiting import Waiting

PATTERN = frozenset("*?[")


@seldom_collecting()
def played(asked: Asked, happenings: tuple[Happening, ...], scratch: Path) -> Record:
    """Play it to its end. Raises ScenarioError if the world cannot be made, or something cannot happen."""
    scratch.mkdir(parents=True, exist_ok=True)
    struck = [each.change.mishap for each in happenings if isinstance(each.change, Strike)]
    run = Play(asked, scratch, processes=any(each.of_process for each in struck))
    run.prepare()
    clock = run.world.clock
    began = clock.now()
    mishaps = run.disturb()
    happen = partial(_happen, run, mishaps)
    timed = [each for each in happenings if each.once is None]
    first = [each for each in timed if isinstance(each.change, Strike) and not each.at]
    for each in first:
        happen(each)
    waiting = Waiting(run.world, happenings, happen)
    run.commit(asked.files)
    for each in [each for each in timed if each not in first]:
        reach(run, began + each.at)
        happen(each)
    ending, done = run.run(began + asked.until - clock.now())
    while (heals := waiting.last) is not None and heals <= began + asked.until:
        reach(run, heals)
        ending, done = run.run(began + asked.until - clock.now())
    waiting.end()
    return run.record(began, ending, done)


def _happen(run: Play, mishaps: Mishaps, happening: Happening) -> None:
    try:
        _change(run, mishaps, happening)
    except (ScenarioError, ApiError, NamingError) as error:
        raise ScenarioError(f"{happening.where}: {happening.text}: {error}") from error


def _change(run: Play, mishaps: Mishaps, happening: Happening) -> None:
    match happening.change:
        case Strike(mishap=mishap, heals=heals):
            mishaps.switch(mishap, on=not heals)
        case Commit(files=files):
            run.commit(files)
        case Acts(acts=acts):
            for act in acts:
                run.act(_resolved(run, act))
        case Sync(application=name):
            run.sync(name)
        case Terminate(application=name):
            run.turn(Then.ABORT, name)
        case _ as never:
            assert_never(never)


def _resolved(run: Play, act: Act) -> Act:
    """Return the act on the first object, by name, that its pattern names; a plain name stays."""
    if isinstance(act, AddNode) or not PATTERN & set(act.target):
        return act
    kind, *space, name = act.target.split("/")
    info = Mapper(run_in_place(discover(), run.world.admin)).by_name(kind)
    if info is None:
        raise ScenarioError(f"the cluster serves no kind {kind!r}")
    items = run.world.admin.send(Request("GET", info.path(""))).or_raise()["items"]
    found = sorted(
        (namespace_of(obj), name_of(obj))
        for obj in items
        if fnmatchcase(name_of(obj), name) and (not space or fnmatchcase(namespace_of(obj), space[0]))
    )
    if not found:
        raise ScenarioError(f"{act.target}: there is no such object")
    return replace(act, target="/".join(filter(None, (kind, *found[0]))))
