"""Plays a race in an order that is forced: the real controllers in virtual time, and what the reader takes.

What has to come later takes longer: a line is carried out so much later after what triggers it, and a catalogue offers
a package so much later. All else that operators do is done at once, since only the order counts, and what holds an
operator still holds it. A ConfigMap beside what the reader makes keeps what it saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from syncline.kube.client import PatchType, Request
from syncline.kube.objects import Obj, dig, name_of
from syncline.patterns.installing.report import Wait
from syncline.patterns.operators.behaving import Behaviour, Behaviours, Line
from syncline.patterns.operators.controllers.looking import GLOBAL_NAMESPACE
from syncline.patterns.operators.racing.pairs import NOTHING, Race
from syncline.rehearsal.installing.playing import STEP_S, Installation, Playing
from syncline.rehearsal.races.orders import line_event, made_event

WITNESS: Final = "rehearsed-race"
APART: Final = timedelta(minutes=2)
"""Between two events that are forced into an order: an operator is up seconds after its Subscription."""
_SOURCES: Final = f"/apis/operators.coreos.com/v1alpha1/namespaces/{GLOBAL_NAMESPACE}/catalogsources"
QUICK: Final = timedelta(seconds=5)
"""Of all other lines."""
LIMIT: Final = timedelta(minutes=75)
"""Virtual time within which the reader has to look: a wait without a pod ends after an hour."""


@dataclass(frozen=True, slots=True)
class Once:
    """One rehearsal. ``order``: of the look and of what it would find; ``taken``: what the reader took, "" if it did
    not look; ``after_s``: virtual seconds from the pattern to the look, or to the end; ``waits``: what was waited for
    at the end, where it did not look."""

    order: tuple[str, ...]
    taken: str
    after_s: float
    waits: tuple[str, ...] = ()


def forced(asked: Installation, race: Race, order: Sequence[str]) -> Installation:
    """Return the installation with the events of a race in this order."""
    ranked = [name for name in order if name in _events(race)]
    later = {name: APART * rank for rank, name in enumerate(ranked)}
    made = {one.package: _timed(one, race, later) for one in asked.behaviours.by_package.values()}
    late = {one.who.package: later[made_event(one)] for one in race.made if one.line is None}
    return replace(asked, behaviours=Behaviours(made), late=late)


def _timed(behaviour: Behaviour, race: Race, later: Mapping[str, timedelta]) -> Behaviour:
    lines: list[Line] = []
    for one in behaviour.lines:
        after = later.get(line_event(behaviour.package, one), min(one.after, QUICK))
        reads = behaviour.package == race.reader.package and one == race.line
        lines.append(replace(_witnessed(one, race) if reads else one, after=after))
    return replace(behaviour, lines=tuple(lines))


def _witnessed(line: Line, race: Race) -> Line:
    metadata = {"name": WITNESS, "namespace": "${namespace}"}
    seen: Obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"taken": f"${{{race.look.name}}}"},
    }
    return replace(line, creates=(*line.creates, seen))


def play_once(asked: Installation, race: Race, order: Sequence[str], scratch: Path) -> Once:
    """Rehearse the installation with the events of a race in an order, until the reader has looked. Raises
    ScenarioError."""
    asked = forced(asked, race, order)
    playing = Playing(asked, scratch)
    playing.install()
    path = f"/api/v1/namespaces/{race.reader.subscription.namespace}/configmaps/{WITNESS}"
    late, taken = sorted(set(asked.late.values()) - {timedelta()}), ""
    while not taken and playing.world.clock.now() < playing.began + LIMIT:
        playing.world.driver.advance(STEP_S)
        if late and playing.world.clock.now() >= playing.began + late[0]:
            late.pop(0)
            _offer_again(playing, len(late))
        answer = playing.world.admin.send(Request("GET", path))
        if answer.ok:
            taken = str(dig(answer.obj, "data", "taken") or NOTHING)
    took = (playing.world.clock.now() - playing.began).total_seconds()
    waits = () if taken else tuple(f"{one.who}: {one.what}" for one in _waits(playing))
    return Once(tuple(name for name in order if name in _events(race)), taken, took, waits)


def _offer_again(playing: Playing, left: int) -> None:
    """Make namespaces resolve their Subscriptions again: catalogues offer more, which no object says by itself."""
    for one in playing.world.send("GET", _SOURCES)["items"]:
        path = f"{_SOURCES}/{name_of(one)}"
        playing.world.send("PATCH", path, {"spec": {"priority": -1 - left}}, PatchType.MERGE)


def _waits(playing: Playing) -> list[Wait]:
    playing.advance(STEP_S)
    return [one for one in playing.played(calm=False).waits if one.until is None]


def _events(race: Race) -> set[str]:
    return {line_event(race.reader.package, race.line), *map(made_event, race.made)}
