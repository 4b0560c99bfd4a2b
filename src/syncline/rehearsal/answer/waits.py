"""Every wait with its reason: what ``syncline explain`` said of it while it lasted. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncline.base.cause import Cause
from syncline.explain.wording import next_step, subject_text
from syncline.rehearsal.answer.answer import Wait
from syncline.rehearsal.record import Record

MAX_CHAIN = 8
_UNREAD = re.compile(r"repository (?P<git>\S+) is not reachable|chart repository (?P<chart>https?://\S+)")


def waits_of(record: Record) -> tuple[Wait, ...]:
    """Return the waits in order of their begin; one whose reason changes is several."""
    found: list[Wait] = []
    open_: dict[tuple[str, tuple[str, ...]], Wait] = {}
    for sample in record.samples:
        at = record.seconds(sample.at)
        waits = [_wait(cause, at) for cause in sample.causes]
        now = {(each.subject, each.chain): each for each in waits if not _is_repeated(each, waits)}
        for key in [key for key in open_ if key not in now]:
            found.append(_ended(open_.pop(key), at))
        open_ |= {key: wait for key, wait in now.items() if key not in open_}
    return tuple(sorted([*found, *open_.values()], key=lambda wait: (wait.since_s, wait.subject)))


def _is_repeated(wait: Wait, others: list[Wait]) -> bool:
    """Return whether the wait only repeats one of something deeper, as an Application repeats that of its pool."""
    return any(each.chain[0] in wait.chain[1:] for each in others)


def _wait(cause: Cause, at: float) -> Wait:
    return Wait(subject_text(cause.subject), cause.state, at, None, chain_of(cause), _advice(cause))


def _advice(cause: Cause) -> str:
    """Return what to do next; where a repository cannot be read, a copy helps a rehearsal."""
    for each in _down(cause):
        unread = _UNREAD.search(each.message)
        if unread:
            url = (unread["git"] or unread["chart"]).rstrip(":/")
            if unread["git"]:
                return f"make {url} reachable, or name a copy on this machine: --repository {url}=FOLDER"
            return f"make {url} reachable; for a chart that an Application names a copy will do (--repository)"
    return next_step(cause)


def _ended(wait: Wait, at: float) -> Wait:
    return Wait(wait.subject, wait.state, wait.since_s, at, wait.chain, wait.next_action)


def chain_of(cause: Cause) -> tuple[str, ...]:
    """Return the most important causes, from the object that waits down to what holds it."""
    return tuple(_said(each) for each in _down(cause))[:MAX_CHAIN]


def _said(cause: Cause) -> str:
    message = f": {cause.message}" if cause.message else ""
    return f"{subject_text(cause.subject)} {cause.state}{message}"


def _down(cause: Cause) -> Iterator[Cause]:
    at: Cause | None = cause
    while at is not None:
        yield at
        at = at.because[0] if at.because else None
