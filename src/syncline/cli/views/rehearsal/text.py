"""Formats the answer of a rehearsal for people: the verdict and the one thing to do first. Values in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from syncline.base.cause import OR
from syncline.cli.frame.output import table
from syncline.cli.frame.terminal import one_cell
from syncline.kube.text.durations import format_seconds
from syncline.rehearsal.answer.answer import Answer, Bar, Cure, Doing, Outcome, Wait
from syncline.rehearsal.undoing import IN_ORDER

WIDTH = 40
"""Characters of the time axis."""
MARKS = {
    Doing.SYNC: "─",
    Doing.WAVE: "▒",
    Doing.HOOK: "▓",
    Doing.POOL: "─",
    Doing.WAITS: "·",
    Doing.DRAINS: "▒",
    Doing.REBOOTS: "█",
    Doing.IN_PLACE: "▓",
    Doing.PLAYS: "▚",
    Doing.SETTLES: "╌",
    Doing.ROLLS: "─",
}
MAX_ROWS = 40
"""Bars of the text; ``-o json`` has all."""
MAX_WAITS = 6
LEAST_S = 60.0
"""Shortest axis of what does not end."""


def describe_answer(answer: Answer) -> str:
    """Return the whole text, without escape sequences."""
    parts = [[*_head(answer)], [*_timeline(answer)], [*_path(answer)], [*_waits(answer)], [*_outages(answer)]]
    parts += [[*_laws(answer)], [*_explored(answer)], [*_cures(answer)], [*_assumed(answer)]]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def describe_compared(answers: Sequence[Answer], names: Sequence[str]) -> str:
    """Return what differs between answers, then the last one."""
    rows = [
        ("verdict", *(str(each.outcome) for each in answers)),
        ("done", *(offset(each.done_s) for each in answers)),
        ("waits for ever", *(_count(wait.until_s is None for wait in each.waits) for each in answers)),
        ("outages", *(str(len(each.outages)) for each in answers)),
        ("broken laws", *(", ".join(breach.law for breach in each.breaches) or "none" for each in answers)),
        ("reboots", *(_count(bar.doing is Doing.REBOOTS for bar in each.bars) for each in answers)),
    ]
    typed = [note.removeprefix(IN_ORDER) for each in answers for note in each.assumed if note.startswith(IN_ORDER)]
    steps = "\n".join(("TO ROLL BACK IN ORDER", *(f"  {each}" for each in typed), "", "")) if typed else ""
    return f"{table(('', *names), rows)}\n\n{steps}{names[-1]}\n{describe_answer(answers[-1])}"


def _count(found: Iterable[bool]) -> str:
    return str(sum(found))


def offset(seconds: float | None) -> str:
    """Return ``+1h2m3s``; ``…`` for what lasts."""
    return "…" if seconds is None else f"+{format_seconds(round(seconds))}"


def axis_end(answer: Answer) -> float:
    """Return the seconds that a picture shows: to the end of the last bar, or a little further than anything begins or
    ends if a bar lasts."""
    times = [time for bar in answer.bars for time in (bar.began_s, bar.ends_s) if time is not None]
    times += [time for each in answer.outages for time in (each.since_s, each.until_s) if time is not None]
    lasts = any(bar.ends_s is None for bar in answer.bars) or any(each.until_s is None for each in answer.outages)
    return max(max([*times, 0.0]) * 1.5, LEAST_S) if lasts else max([*times, 1.0])


def _head(answer: Answer) -> Iterator[str]:
    yield one_cell(f"{str(answer.outcome).upper():<8} {answer.name}: {answer.headline}{_range(answer)}")
    best = next((cure for cure in answer.cures if cure.proved), None)
    if best is not None:
        yield one_cell(f"do       {best.text} ({best.file}); rehearsed: {best.outcome}, {best.headline}")
    elif answer.advice:
        yield from (one_cell(f"{word:<8} {way}") for word, way in zip(("do", "or", "or"), answer.advice.split(OR)))


def _range(answer: Answer) -> str:
    if answer.quickest_s is None or answer.slowest_s is None:
        return ""
    guessed = any(each.origin == "guessed" for each in answer.durations)
    ends = f"{format_seconds(round(answer.quickest_s))} to {format_seconds(round(answer.slowest_s))}"
    return f" ({ends}{', durations guessed' if guessed else ''})"


def _timeline(answer: Answer) -> Iterator[str]:
    bars = [bar for bar in answer.bars if bar.doing is not Doing.WAVE or bar.length_s(answer.played_s) > 0]
    if not bars:
        return
    end = axis_end(answer)
    lasts = "; what lasts then lasts on" if any(bar.ends_s is None for bar in bars) else ""
    yield f"TIMELINE  from the commit to {offset(end)}{lasts}"
    rows = [
        (bar.row, str(bar.doing), offset(bar.began_s), offset(bar.ends_s), bar.state, _drawn(bar, end))
        for bar in bars[:MAX_ROWS]
    ]
    yield table(("WHAT", "DOES", "BEGINS", "ENDS", "IS", ""), [[*row[:5], row[5] or " "] for row in rows])
    if len(bars) > MAX_ROWS:
        yield f"{len(bars) - MAX_ROWS} more bars are not shown; -o json has all"


def _drawn(bar: Bar, end_s: float) -> str:
    begin = min(int(bar.began_s / end_s * WIDTH), WIDTH - 1)
    end = WIDTH if bar.ends_s is None else int(bar.ends_s / end_s * WIDTH)
    return " " * begin + MARKS[bar.doing] * max(min(end, WIDTH) - begin, 1) + ("›" if bar.ends_s is None else "")


def _path(answer: Answer) -> Iterator[str]:
    if answer.outcome is not Outcome.SAFE or not answer.path:
        return
    total = max(answer.done_s or 0.0, 1.0)
    longer = [(bar, bar.length_s(answer.played_s)) for bar in answer.path]
    if any(length >= 1 for _, length in longer):
        yield "CRITICAL PATH  what decides the end"
    for bar, length in longer:
        if length >= 1:
            share = min(round(100 * length / total), 100)
            yield one_cell(
                f"  {offset(bar.began_s):<9} {bar.row} {bar.doing} {format_seconds(round(length))} ({share} %)"
            )
    if answer.shorter:
        yield one_cell(f"  shorter: {answer.shorter}")


def _waits(answer: Answer) -> Iterator[str]:
    lasting = [wait for wait in answer.waits if wait.until_s is None]
    ended = [wait for wait in answer.waits if wait.until_s is not None]
    if lasting:
        yield "WAITS FOR EVER" if answer.outcome is Outcome.BLOCKED else "STILL WAITS"
        alike: dict[tuple[str, ...], list[Wait]] = {}
        for wait in lasting:
            alike.setdefault((_bare(wait), *wait.chain[1:]), []).append(wait)
        for waits in list(alike.values())[:MAX_WAITS]:
            yield from _chain(waits[0], waits[1:])
        if len(alike) > MAX_WAITS:
            yield f"  {len(alike) - MAX_WAITS} more waits are not shown; -o json has all"
    if ended:
        yield f"WAITED  {len(ended)} {'wait' if len(ended) == 1 else 'waits'} that ended"
        for wait in sorted(ended, key=lambda each: each.since_s - (each.until_s or 0.0))[:MAX_WAITS]:
            text = wait.chain[-1] if len(wait.chain) > 1 else _bare(wait)
            yield one_cell(f"  {offset(wait.since_s)} to {offset(wait.until_s)}  {wait.subject}: {text}")


def _bare(wait: Wait) -> str:
    """Return what a wait says of itself, without who waits."""
    return wait.chain[0].replace(f"{wait.subject} ", "", 1)


def _chain(wait: Wait, alike: Sequence[Wait]) -> Iterator[str]:
    for depth, link in enumerate(wait.chain):
        since = f"since {offset(wait.since_s)}  " if depth == 0 else ""
        yield one_cell(f"  {'  ' * depth}{since}{link}")
    if alike:
        some = ", ".join(each.subject for each in alike[:MAX_WAITS])
        more = f" and {len(alike) - MAX_WAITS} more" if len(alike) > MAX_WAITS else ""
        yield one_cell(f"    so do {some}{more}")


def _outages(answer: Answer) -> Iterator[str]:
    if not answer.outages:
        return
    yield "UNAVAILABLE"
    rows = [
        (each.subject, offset(each.since_s), offset(each.until_s), f"{each.least} of {each.had}")
        for each in answer.outages
    ]
    yield table(("WHO", "FROM", "UNTIL", "READY"), rows)


def _laws(answer: Answer) -> Iterator[str]:
    held = [name for name in answer.checked if name not in {breach.law for breach in answer.breaches}]
    if answer.breaches:
        yield "BROKEN LAWS"
        for breach in answer.breaches:
            yield one_cell(f"  {breach.law} at {offset(breach.at_s)}: {breach.found}; demanded: {breach.demand}")
    yield f"LAWS HELD  {', '.join(held) or 'none'}"


def _explored(answer: Answer) -> Iterator[str]:
    if answer.schedule:
        yield f"FAULTS  {answer.schedule}"
    found = answer.explored
    if found is None:
        return
    courses = f"{found.distinct} distinct courses with the undisturbed one"
    counts = f"{found.schedules} schedules of faults at {found.steps} writes, {courses}"
    left = f"{found.left} of {found.pairs} pairs of accesses whose order could matter were not tried"
    yield f"EXPLORED  {counts}; {len(found.broken)} end worse; {left}"
    for one in found.broken:
        yield one_cell(f"  {one.schedule}: {str(one.outcome).upper()}, {one.headline}")
        if one.schedule != one.shrunk_from:
            yield one_cell(f"    shortened from {one.shrunk_from}")


def _cures(answer: Answer) -> Iterator[str]:
    proved = [cure for cure in answer.cures if cure.proved]
    others = [cure for cure in answer.cures if not cure.proved]
    if answer.outcome is not Outcome.SAFE and not answer.cures:
        yield "CURES  none is known to this program; the waits above say what holds it"
    for number, cure in enumerate(proved, 1):
        yield one_cell(f"CURE {number}  {cure.text}: rehearsed, {cure.outcome}, {cure.headline}{_meanwhile(cure)}")
        yield from (one_cell(f"  {line}") for line in cure.diff.splitlines())
    if others:
        yield "TRIED AND REJECTED"
        yield from _rejected(others)


def _meanwhile(cure: Cure) -> str:
    """Return who has no ready pod meanwhile, if anyone."""
    down = [each for each in cure.outages if each.least == 0]
    return f", but {down[0].subject} is without a ready pod from {offset(down[0].since_s)}" if down else ""


def _rejected(cures: Sequence[Cure]) -> Iterator[str]:
    for cure in cures:
        yield one_cell(f"  {cure.text}: {str(cure.outcome).upper()}, {cure.headline}")


def _assumed(answer: Answer) -> Iterator[str]:
    yield "ASSUMED"
    for text in answer.assumed:
        yield one_cell(f"  {text}")
    yield one_cell(f"  durations: {', '.join(map(str, answer.durations))}; seed {answer.seed}")
