"""Views of races between operators: text for people, and a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from syncline.cli.frame.output import table
from syncline.kube.objects import Obj
from syncline.kube.text.durations import format_seconds
from syncline.patterns.operators.racing.pairs import Found, Race, race_to_obj
from syncline.rehearsal.races.examining import Answer, Examined, Tried
from syncline.rehearsal.races.forcing import Once
from syncline.rehearsal.races.orders import Explored, drawn


def describe_races(answer: Answer) -> str:
    """Return the pairs as a table, then each with its reason, schedules and orderings, then what is not known."""
    found = answer.found
    said = f"of {len(found.operators)} operators, which read {found.looks} things once"
    lines = [f"{answer.outcome}: pairs whose outcome depends on their order: {len(found.races)}, {said}"]
    if answer.examined:
        rows = [
            (
                one.race.reader.package,
                f"{one.race.look.kind.kind} {one.race.best.name}",
                _maker(one.race),
                str(one.explored.schedules),
                str(one.explored.bad(one.race.good)),
                _cure(one),
            )
            for one in answer.examined
        ]
        lines += ["", table(("READER", "READS ONCE", "MADE BY", "SCHEDULES", "END BADLY", "RULED OUT BY"), rows)]
    for one in answer.examined:
        lines += ["", *_described(one)]
    lines += ["", *_rest(found), *(f"not tried: {text}" for text in answer.not_tried)]
    return "\n".join(lines)


def _maker(one: Race) -> str:
    return f"{one.maker.package}{f' (of {one.maker.brought_by})' if one.maker.brought_by else ''}"


def _cure(one: Examined) -> str:
    if one.ruled_out:
        return "the order of the pattern"
    return one.cure.ordering.name if one.cure is not None else "nothing that was tried"


def _described(one: Examined) -> Iterator[str]:
    race, good = one.race, one.race.good
    yield f"{race.reason}; {race.consequence}."
    sources = dict.fromkeys((race.look.source or race.line.source, race.best.source))
    yield f"  sources: {', '.join(sources)}"
    if race.circle:
        said = f"{race.maker.package} waits for {race.circle}, which {race.reader.package} brings itself"
        yield f"  no order gives it for sure: {said}; {race.target.name} can be there before"
    yield f"  as it is: {_counted(one.explored, good)}"
    if one.seed is not None:
        yield f"  schedule of seed {one.seed}: {'; '.join(drawn(one.course, one.seed)[0])}"
    yield from _plays(one.plays)
    for each in one.tried:
        yield from _tried(each, good, smallest=each is one.cure)


def _counted(found: Explored, good: frozenset[str]) -> str:
    bad, stuck = found.bad(good), found.stuck
    text = f"{found.schedules} schedules in {found.states} distinct states: "
    if not found.whole:
        return f"{text}not all of them were explored"
    ends = f"{bad} end badly" if bad else "none ends badly"
    return f"{text}{ends}" + (f", {stuck} never end: {', '.join(found.stuck_at)}" if stuck else "")


def _plays(plays: Sequence[Once]) -> Iterator[str]:
    for play in plays:
        order = " before ".join(play.order)
        if play.taken:
            yield f"    rehearsed, {order}: it takes {play.taken} after {format_seconds(round(play.after_s))}"
        else:
            yield f"    rehearsed, {order}: it did not look within {format_seconds(round(play.after_s))}"
            yield from (f"      {wait}" for wait in play.waits)


def _tried(one: Tried, good: frozenset[str], *, smallest: bool) -> Iterator[str]:
    count = f"{len(one.ordering.edits)} edit{'s' if len(one.ordering.edits) != 1 else ''}"
    verdict = "is not proved" if one.plays else "is not enough"
    if one.rules_out(good):
        verdict = "rules it out, the smallest" if smallest else "rules it out" if one.plays else "would rule it out"
    yield f"  {one.ordering.name} ({count}) {verdict}: {one.ordering.text}"
    yield f"    {one.wrong or _counted(one.explored, good)}"
    if smallest:
        yield from (f"    {edit}" for edit in one.ordering.edits)
    yield from _plays(one.plays)


def _rest(found: Found) -> Iterator[str]:
    for one in found.waiting:
        yield f"{one.reader} waits for {one.what} of {one.maker}: no order is needed"
    for package, why in sorted(found.unresolved.items()):
        yield f"what {package} requires is not known: {why}"


def races_document(answer: Answer) -> dict[str, Any]:
    """Return the answer as JSON; equal questions return equal bytes."""
    return {
        "outcome": str(answer.outcome),
        "races": [race_to_obj(one.race) | _examined(one) for one in answer.examined],
        "waiting": [{"reader": one.reader, "maker": one.maker, "what": one.what} for one in answer.found.waiting],
        "operators": [one.package for one in answer.found.operators],
        "unknown": list(answer.found.unknown),
        "unresolved": dict(answer.found.unresolved),
        "looks": answer.found.looks,
        "notTried": list(answer.not_tried),
    }


def _examined(one: Examined) -> Obj:
    good = one.race.good
    cure = one.cure
    return {
        "ruledOut": one.ruled_out,
        "explored": _counts(one.explored, good),
        "seed": one.seed,
        "order": drawn(one.course, one.seed)[0] if one.seed is not None else [],
        "rehearsed": [_once(each) for each in one.plays],
        "cure": cure.ordering.name if cure is not None else "",
        "orderings": [
            {
                "name": each.ordering.name,
                "text": each.ordering.text,
                "edits": [str(edit) for edit in each.ordering.edits],
                "values": each.ordering.layer,
                "rulesOut": each.rules_out(good),
                "explored": _counts(each.explored, good),
                "rehearsed": [_once(play) for play in each.plays],
                "wrong": each.wrong,
            }
            for each in one.tried
        ],
    }


def _counts(found: Explored, good: frozenset[str]) -> Obj:
    return {
        "schedules": found.schedules,
        "taken": dict(found.taken),
        "states": found.states,
        "bad": found.bad(good),
        "stuck": found.stuck,
        "stuckAt": list(found.stuck_at),
        "whole": found.whole,
    }


def _once(one: Once) -> Obj:
    return {"order": list(one.order), "taken": one.taken, "afterSeconds": one.after_s, "waits": list(one.waits)}
