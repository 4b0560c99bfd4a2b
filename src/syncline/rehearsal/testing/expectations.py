"""Reads what a scenario expects: :func:`expectation`. Each error names the path, what was found and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.answer.condition import OF_END, OF_OBJECT, condition_of
from syncline.rehearsal.fields import Field
from syncline.rehearsal.testing.case import (
    AtEnd,
    Done,
    Expectation,
    Laws,
    Moment,
    Order,
    State,
    Verdict,
    Waits,
    Wanted,
    When,
)

MAX_COUNT, MAX_FIELDS, MAX_MOMENTS, MAX_TARGET = 10_000, 50, 50, 300
ENDS = {"begins": True, "ends": False}
STATE = ("object", "is", "must", "absent", "count", "at", "within", "always")


def expectation(at: Field) -> Expectation:
    """Return one entry of ``expect``. Raises ScenarioError."""
    found = [key for key in READERS if key in at.map()]
    main = "object" if "object" in found else found[0] if len(found) == 1 else ""
    if not main:
        raise at.wrong(", ".join(map(str, at.map())) or "nothing", f"one of {', '.join(READERS)}")
    wanted = READERS[main](at)
    return Expectation(at.where, json.dumps(at.value, ensure_ascii=False, default=str), wanted)


def _verdict(at: Field) -> Wanted:
    named = at.known("verdict")["verdict"]
    texts = (named.value,) if isinstance(named.value, str) else named.texts()
    known = [str(each) for each in Outcome]
    for text in texts:
        if text not in known:
            raise named.wrong(repr(text), ", ".join(known))
    if not texts:
        raise named.wrong("no verdict", ", ".join(known))
    return Verdict(tuple(Outcome(text) for text in texts))


def _done(at: Field) -> Wanted:
    return Done(at.known("done")["done"].known("within")["within"].duration(timedelta(0)))


def _laws(at: Field) -> Wanted:
    named = at.known("laws")["laws"].known("broken", "held")
    found = Laws(named["broken"].texts(), named["held"].texts())
    if not found.broken and not found.held:
        raise named.wrong("no law", "broken: [NAME], held: [NAME], or both")
    return found


def _state(at: Field) -> State:
    named = at.known(*STATE)["object"]
    target = named.target()
    if len(target) > MAX_TARGET:
        raise named.wrong(f"{len(target)} characters", f"at most {MAX_TARGET}")
    fields = at["is"].map()
    if len(fields) > MAX_FIELDS:
        raise at["is"].wrong(f"{len(fields)} fields", f"at most {MAX_FIELDS}")
    text, absent, count = at["must"].text(), at["absent"].flag(), at["count"].value
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_COUNT):
        raise at["count"].wrong(repr(count), f"a number from 0 to {MAX_COUNT}")
    if absent and (fields or text or count is not None):
        raise at.wrong("absent with is, must or count", "absent alone")
    condition = condition_of(at["must"], text, OF_OBJECT) if text else None
    return State(target, _when(at), fields, condition, absent, count)


def once(at: Field) -> State:
    """Return a state that is waited for. Raises ScenarioError."""
    at.known("object", "is", "must", "absent", "count")
    at.needed("object", "KIND/NAME or KIND/NAMESPACE/NAME")
    return _state(at)


def _when(at: Field) -> When:
    given = [key for key in ("at", "within", "always") if at[key].value not in (None, False)]
    if len(given) > 1:
        raise at.wrong(" and ".join(given), "one of at, within and always; without them it is looked at at the end")
    return When(
        moment(at["at"]) if "at" in given else None,
        at["within"].duration(timedelta(0)) if "within" in given else None,
        at["always"].flag(),
    )


def moment(at: Field) -> timedelta:
    """Return a time since the commit, which may be 0s."""
    return timedelta(0) if at.value in (0, "0", "0s") else at.duration(timedelta(0))


def _order(at: Field) -> Wanted:
    found = at.known("order")["order"]
    texts = found.texts()
    if not 2 <= len(texts) <= MAX_MOMENTS:
        raise found.wrong(f"{len(texts)} moments", f"2 to {MAX_MOMENTS}, each not after the next one")
    return Order(tuple(_moment(one) for one in found.each()))


def _moment(at: Field) -> Moment:
    row, _, word = str(at.value).strip().rpartition(" ")
    if word not in ENDS or not row or len(row) > MAX_TARGET:
        raise at.wrong(repr(at.value), "WHAT begins, or WHAT ends, WHAT as in a timeline: node/worker-1 reboots ends")
    return Moment(row.strip(), ENDS[word])


def _waits(at: Field) -> Wanted:
    at.known("waits", "for", "forever", "never")
    forever, never = at["forever"].flag(), at["never"].flag()
    if forever and never:
        raise at.wrong("forever and never", "one of them")
    subject = at.needed("waits", "what waits, such as MachineConfigPool worker")
    return Waits(subject, at["for"].text(), forever, never)


def _end(at: Field) -> Wanted:
    text = at.known("must").needed("must", "an expression in CEL that is true at the end")
    return AtEnd(condition_of(at["must"], text, OF_END))


READERS: Mapping[str, Callable[[Field], Any]] = {
    "verdict": _verdict,
    "done": _done,
    "laws": _laws,
    "object": _state,
    "order": _order,
    "waits": _waits,
    "must": _end,
}
"""By the key that says what is expected."""
