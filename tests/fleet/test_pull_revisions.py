"""Branches and tags of ordered Applications are resolved on the hub: once for all groups, with a bound, and said."""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commanding import Repository

from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.action import Work
from syncline.base.clock import EPOCH, VirtualClock
from syncline.fleet.pull.order.revisions import (
    POLL_S,
    Looks,
    Resolution,
    ResolveRevision,
    RevisionHandler,
    RevisionStore,
    Tracked,
    pinned,
    unresolved,
)
from syncline.kube.objects import ObjectRef

MAIN = Tracked("default", "https://user:word@git.example/app.git", revision="main")
COMMIT = "a" * 40
ONE, TWO = (ObjectRef("syncline.dev", "FleetRollout", "argocd", name) for name in ("one", "two"))
LATER = EPOCH + timedelta(seconds=POLL_S)


def looks(found: Resolution | None = None, asking: bool = False) -> Looks:
    return Looks({MAIN: found} if found else {}, {MAIN: EPOCH} if asking else {})


@pytest.mark.parametrize(
    ("known", "now", "fresh", "asks", "next_at"),
    [
        (looks(), EPOCH, False, True, LATER),
        (looks(asking=True), EPOCH, False, False, None),
        (looks(Resolution(EPOCH, COMMIT)), EPOCH, False, False, LATER),
        (looks(Resolution(EPOCH, COMMIT)), LATER, False, True, LATER + timedelta(seconds=POLL_S)),
        (looks(Resolution(EPOCH, COMMIT)), EPOCH, True, True, LATER),
        (looks(Resolution(EPOCH, error="refused")), EPOCH, False, False, LATER),
    ],
    ids=[
        "an unknown revision is looked for",
        "a look that runs is not repeated",
        "a known one waits for the poll interval",
        "after the poll interval it is looked for again",
        "a refresh asks at once",
        "a failed look waits for the poll interval, too",
    ],
)
def test_a_look_is_due(known: Looks, now: datetime, fresh: bool, asks: bool, next_at: datetime | None) -> None:
    due = known.due([MAIN, MAIN], ONE, now, POLL_S, fresh=fresh)
    assert ([one.tracked for one in due.actions], due.next_at) == ([MAIN] if asks else [], next_at)


def test_a_commit_needs_no_look_and_a_chart_version_does() -> None:
    fixed, chart = Tracked("p", "https://git.example/app", revision=COMMIT), Tracked("p", "https://c", "web", "1.x")
    assert Looks().due([fixed, chart], ONE, EPOCH, POLL_S).actions[0].tracked == chart
    assert Looks().commit(fixed) == COMMIT and Looks().commit(chart) == ""


def test_what_travels_names_the_commit_and_keeps_the_rest() -> None:
    source = {"repoURL": "https://git.example/app", "path": "web", "targetRevision": "1.x", "tagPrefix": "web-"}
    assert pinned(source, COMMIT) == {"repoURL": source["repoURL"], "path": "web", "targetRevision": COMMIT}


def test_a_problem_says_since_when_and_what_clusters_have_meanwhile_without_credentials() -> None:
    failed = Resolution(LATER, COMMIT, "connection refused", EPOCH)
    assert looks(failed).problem(MAIN) == (
        "https://***@git.example/app.git@main cannot be resolved since 2026-01-01T00:00:00Z: connection refused; "
        f"clusters stay at {COMMIT[:12]}"
    )
    assert unresolved([MAIN], looks(failed)) == "", "its last commit is known"
    assert unresolved([MAIN], looks(asking=True)) == (
        "https://***@git.example/app.git@main is being resolved since 2026-01-01T00:00:00Z"
    )


class Answers:
    """A reader whose next answers are given."""

    def __init__(self, *answers: Resolution) -> None:
        self.answers, self.asked = list(answers), 0

    def resolve(self, tracked: Tracked, now: datetime, *, since: datetime | None, wanted: int) -> Resolution:
        self.asked += 1
        return self.answers.pop(0)

    def moment(self) -> int:
        return 0


def _handled(handler: RevisionHandler, asker: ObjectRef = ONE) -> Generator[Work, Any, None]:
    return handler.handle(ResolveRevision(MAIN, asker, "not known yet", POLL_S))


def _finish(running: Generator[Work, Any, None]) -> None:
    work = next(running)
    with pytest.raises(StopIteration):
        running.send(work.run())


def test_two_groups_share_a_look_and_both_are_planned_again_when_it_ends() -> None:
    store, woken = RevisionStore(), list[ObjectRef]()
    store.wake = woken.append
    reader = Answers(Resolution(EPOCH, COMMIT))
    handler = RevisionHandler(reader, store, VirtualClock())
    first, second = _handled(handler), _handled(handler, TWO)
    work = next(first)
    assert list(second) == [], "the second one waits for the look of the first"
    assert store.looks([MAIN]).asking == {MAIN: EPOCH}
    with pytest.raises(StopIteration):
        first.send(work.run())
    assert (woken, reader.asked, store.looks([MAIN]).commit(MAIN)) == ([ONE, TWO], 1, COMMIT)


def test_who_asked_is_planned_again_when_the_look_says_something_new() -> None:
    store, woken = RevisionStore(), list[ObjectRef]()
    store.wake = woken.append
    answers = (Resolution(EPOCH, COMMIT), Resolution(LATER, COMMIT), Resolution(LATER, "b" * 40))
    handler = RevisionHandler(Answers(*answers), store, VirtualClock())
    found = []
    for _ in answers:
        _finish(_handled(handler))
        found.append(len(woken))
    assert found == [1, 1, 2]


def test_a_failed_look_keeps_the_last_commit_and_says_since_when_it_fails() -> None:
    later = LATER + timedelta(seconds=POLL_S)
    answers = (Resolution(EPOCH, COMMIT), Resolution(LATER, error="one"), Resolution(later, error="two"))
    store = RevisionStore()
    handler = RevisionHandler(Answers(*answers), store, VirtualClock())
    for _ in answers:
        _finish(_handled(handler))
    assert store.looks([MAIN]).known[MAIN] == Resolution(later, COMMIT, "two", LATER)


def test_a_look_that_ends_by_an_exception_is_made_again() -> None:
    store = RevisionStore()
    handler = RevisionHandler(Answers(), store, VirtualClock())
    running = _handled(handler)
    next(running)
    with pytest.raises(OSError):
        running.throw(OSError("the queue is full"))
    assert not store.looks([MAIN]).asking


def test_the_store_is_bounded() -> None:
    store = RevisionStore(limit=2)
    for number in range(5):
        store.end(Tracked("p", "u", revision=str(number)), Resolution(EPOCH, COMMIT))
    assert len(store.looks(Tracked("p", "u", revision=str(number)) for number in range(5)).known) == 2


def test_a_reader_resolves_branches_and_says_what_is_wrong(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    commit = repo.commit(a="kind: ConfigMap\n")
    reader = GitSourceReader(tmp_path / "mirrors", allow_local=True)
    url = f"file://{tmp_path / 'repo'}"

    def look(revision: str) -> Resolution:
        return reader.resolve(Tracked("", url, revision=revision), EPOCH, since=None, wanted=reader.moment())

    assert look("HEAD") == look("main") == Resolution(EPOCH, commit)
    assert "nowhere" in look("nowhere").error
