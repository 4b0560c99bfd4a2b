"""From a record to an answer: :func:`answer_of`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import dig, name_of
from syncline.kube.text.durations import format_seconds
from syncline.rehearsal.answer.answer import Answer, Bar, Breach, Doing, Outcome, Wait
from syncline.rehearsal.answer.availability import outages_of
from syncline.rehearsal.answer.laws import BUILT_IN, RecordLaw, breaches_of
from syncline.rehearsal.answer.timeline import bars_of, operations_of
from syncline.rehearsal.answer.waits import waits_of
from syncline.rehearsal.given.durations import Duration
from syncline.rehearsal.record import Ending, Record

BROKEN = ("ComparisonError", "InvalidSpecError")
MAX_LINK = 130
"""Characters of a link in a headline."""
MOST_NOTES = 10
NEAR_S = 1.0
"""Bars that begin within it after another one ended follow it."""
BEHIND, LINKS = " ← ", 3
"""Between an effect and its cause, and how many links of a chain a headline has."""
LEAF = (Doing.WAVE, Doing.HOOK, Doing.DRAINS, Doing.REBOOTS, Doing.IN_PLACE, Doing.PLAYS, Doing.SETTLES)


def answer_of(
    record: Record,
    *,
    name: str,
    seed: int,
    durations: Sequence[Duration],
    assumed: Sequence[str],
    laws: Sequence[RecordLaw] = BUILT_IN,
) -> Answer:
    """Return what the record says, without range and cures, which need further rehearsals."""
    bars, waits = bars_of(record), waits_of(record)
    path = critical_path(bars)
    breaches = breaches_of(record, laws)
    lasting = tuple(wait for wait in waits if wait.until_s is None)
    failed = _failed(record)
    outcome = _outcome(record, breaches, failed)
    notes = [*assumed, *_idle(record), *record.notes[:MOST_NOTES]]
    if len(record.notes) > MOST_NOTES:
        notes.append(f"{len(record.notes) - MOST_NOTES} more objects of the world are left out")
    if record.overflow:
        notes.append(f"{record.overflow} versions of objects were not kept: laws have not seen them")
    return Answer(
        name,
        seed,
        outcome,
        _headline(outcome, record, breaches, failed, lasting),
        _advice(lasting) if outcome is not Outcome.SAFE else "",
        record.seconds(record.ended),
        None if record.done is None else record.seconds(record.done),
        None,
        None,
        bars,
        path,
        waits,
        outages_of(record),
        breaches,
        tuple(law.name for law in laws),
        (),
        tuple(notes),
        tuple(durations),
        shortening(bars, path),
    )


def _outcome(record: Record, breaches: Sequence[Breach], failed: Sequence[str]) -> Outcome:
    if breaches:
        return Outcome.UNSAFE
    if failed:
        return Outcome.FAILED
    return Outcome.SAFE if record.ending is Ending.DONE else Outcome.BLOCKED


def _failed(record: Record) -> tuple[str, ...]:
    """Return a sentence for each Application whose last sync failed, or whose source or spec is broken."""
    found = []
    for app in record.last(APPLICATION.group_kind):
        broken = [c for c in dig(app, "status", "conditions", default=[]) if c.get("type") in BROKEN]
        if dig(app, "status", "operationState", "phase") in ("Failed", "Error"):
            message = dig(app, "status", "operationState", "message", default="")
            found.append(f"the sync of {name_of(app)} fails: {message}")
        elif broken:
            found.append(f"Application {name_of(app)} cannot be synced: {broken[0].get('message')}")
    return tuple(found)


def _idle(record: Record) -> Iterator[str]:
    """Yield a sentence for each Application that the commit does not move."""
    for ref, versions in record.histories(APPLICATION.group_kind):
        compared = dig(versions[-1].obj, "status", "sync", "status") == "Synced"
        if compared and not versions[-1].gone and not operations_of(record, versions):
            yield f"Application {ref.name} starts no sync: nothing of it differs, hooks aside"


def _headline(
    outcome: Outcome, record: Record, breaches: Sequence[Breach], failed: Sequence[str], lasting: Sequence[Wait]
) -> str:
    match outcome:
        case Outcome.UNSAFE:
            first = breaches[0]
            return f"{first.found}, at +{format_seconds(round(first.at_s))} (law {first.law})"
        case Outcome.FAILED:
            below = next((wait.chain[1:][-LINKS:] for wait in lasting if len(wait.chain) > 1), ())
            return _linked((failed[0], *below))
        case Outcome.SAFE:
            return f"done after {format_seconds(round(record.seconds(record.done or record.ended)))}"
    if not lasting:
        return f"not done after {format_seconds(round(record.seconds(record.ended)))}"
    first_wait = lasting[0]
    word = "waits for ever" if record.ending is Ending.STUCK else "still waits at the limit"
    links = first_wait.chain[1:][-LINKS:] or (first_wait.chain[0].removeprefix(f"{first_wait.subject} "),)
    return f"{first_wait.subject} {word}: {_linked(links)}"


def _linked(links: Sequence[str]) -> str:
    """Return links of a chain in one line, each cut: the waits have all of them."""
    return BEHIND.join(link if len(link) <= MAX_LINK else f"{link[: MAX_LINK - 1]}…" for link in links)


def _advice(lasting: Sequence[Wait]) -> str:
    return next((wait.next_action for wait in lasting if wait.next_action), "")


def shortening(bars: Sequence[Bar], path: Sequence[Bar]) -> str:
    """Return what would shorten the path, estimated: nodes that reboot one after the other could do so in pairs."""
    serial = [bar for bar in path if bar.doing is Doing.REBOOTS]
    total = sum(bar.length_s(0) for bar in serial)
    pool = next((bar.row.removeprefix("pool/") for bar in bars if bar.doing is Doing.POOL and bar.ends_s), "")
    if len(serial) <= 1 or not pool:
        return ""
    saved = format_seconds(round(total * (len(serial) // 2) / len(serial)))
    rows = len(serial)
    return (
        f"pool {pool} reboots {rows} nodes one after the other; maxUnavailable 2 would save about {saved} (estimated)"
    )


def critical_path(bars: Sequence[Bar]) -> tuple[Bar, ...]:
    """Return the bars that decide the end: from the one that ends last back to the commit, each the last to end before
    the next one begins."""
    left = [bar for bar in bars if bar.doing in LEAF]
    path: list[Bar] = []
    ended = [bar for bar in left if bar.ends_s is not None]
    at = max(ended, key=lambda bar: (bar.ends_s or 0.0, -bar.began_s), default=None)
    while at is not None:
        path.append(at)
        before = [bar for bar in ended if (bar.ends_s or 0.0) <= at.began_s + NEAR_S and bar.began_s < at.began_s]
        at = max(before, key=lambda bar: (bar.ends_s or 0.0, -bar.began_s), default=None)
    return tuple(reversed(path))
