"""Questions of generators are asked beside the loop, and their answers shared."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from syncline.appset.asking import AnswerStore, Asking, AskRows, RowsHandler, Secrets, Unreadable, subject
from syncline.appset.questions import (
    Answer,
    DirectoriesQuestion,
    GitFiles,
    GitPaths,
    PluginQuestion,
    PullRequestsQuestion,
    Question,
    RepositoriesQuestion,
    Value,
)
from syncline.base.action import Unfinished, Work
from syncline.base.clock import VirtualClock
from syncline.base.secret import Secret
from syncline.kube.objects import ObjectRef
from syncline.sources.errors import Problem, SourceError
from syncline.sources.providers.model import ProviderError, SecretReference

REPO = DirectoriesQuestion("https://me:pass@git.example/r.git", "main", "default")
ONE, TWO = (ObjectRef("argoproj.io", "ApplicationSet", "argocd", name) for name in ("one", "two"))


PATHS = GitPaths("c1", ("a",))


class Reader:
    """Answers with what it is given, or raises it."""

    def __init__(self, answer: Value | Exception) -> None:
        self.answer = answer
        self.asked: list[datetime | None] = []

    def moment(self) -> int:
        return 7

    def rows(
        self,
        question: Question,
        secrets: Mapping[SecretReference, Secret],
        now: datetime,
        *,
        since: datetime | None,
        wanted: int,
    ) -> Value:
        self.asked.append(since)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Room:
    """A store, a handler and what was woken."""

    def __init__(self, answer: Value | Exception = PATHS, secrets: Secrets = lambda _one: {}) -> None:
        self.clock = VirtualClock()
        self.reader, self.store = Reader(answer), AnswerStore()
        self.woken: list[ObjectRef] = []
        self.store.wake = self.woken.append
        self.handler = RowsHandler(self.reader, self.store, secrets, self.clock)

    def begin(self, ref: ObjectRef = ONE, **more: Any) -> tuple[Any, Work]:
        doing = self.handler.handle(AskRows(ref, REPO, "it is missing", **more))
        return doing, next(doing)

    def end(self, doing: Any, result: Any) -> Any:
        with pytest.raises(StopIteration) as ended:
            doing.send(result)
        return ended.value.value

    def ask(self, ref: ObjectRef = ONE, **more: Any) -> Any:
        doing, work = self.begin(ref, **more)
        return self.end(doing, work.run())

    def at_once(self, ref: ObjectRef = ONE, **more: Any) -> Any:
        """The result of a question for which no work is done."""
        with pytest.raises(StopIteration) as ended:
            next(self.handler.handle(AskRows(ref, REPO, "it is missing", **more)))
        return ended.value.value


def test_an_answer_is_kept_for_all_sets_and_names_the_requests_that_it_answered() -> None:
    room = Room()
    found = room.ask(fresh="r1")
    assert found == room.store.known()[REPO] == Answer(room.clock.now(), GitPaths("c1", ("a",)), answers=("r1",))
    before = room.store.known()
    room.clock.advance(5)
    assert room.ask(TWO, fresh="r2").answers == ("r1", "r2")
    assert before[REPO].answers == ("r1",), "a plan's view of the answers does not change below it"


def test_a_refresh_request_asks_the_host_and_a_poll_takes_what_others_got() -> None:
    room = Room()
    room.ask(fresh="r1")
    room.ask(may_be_old_s=30.0)
    assert room.reader.asked == [None, room.clock.now() - timedelta(seconds=30)]


def test_a_question_that_is_being_asked_is_not_asked_twice_and_all_who_wait_are_woken() -> None:
    room = Room()
    doing, work = room.begin()
    waiting = room.at_once(TWO)
    assert isinstance(waiting, Asking) and waiting.since == room.clock.now()
    assert room.store.waiting([REPO]) == (waiting,)
    assert isinstance(room.end(doing, work.run()), Answer)
    assert (room.woken, room.store.waiting([REPO])) == ([TWO], ())


def test_a_slow_answer_is_waited_for_in_words_and_kept_when_it_comes() -> None:
    room = Room()
    doing, work = room.begin()
    found = room.end(doing, Unfinished())
    assert isinstance(found, Asking)
    assert found.text.startswith("waiting since") and "a turn to ask directories of https://" in found.text
    assert work.late is not None
    work.late.keep(work.run())
    assert room.store.known()[REPO].value == GitPaths("c1", ("a",))
    assert room.store.waiting([REPO]) == ()


@pytest.mark.parametrize("result", [ValueError("a bug"), MemoryError()])
def test_a_late_failure_of_any_kind_is_an_answer_with_an_error(result: Exception) -> None:
    room = Room()
    doing, work = room.begin()
    room.end(doing, Unfinished())
    assert work.late is not None
    work.late.keep(result)
    assert room.store.known()[REPO].error.startswith(type(result).__name__)


def test_a_cancelled_reconcile_leaves_no_question_behind() -> None:
    room = Room()
    doing, _work = room.begin()
    room.at_once(TWO)
    doing.close()
    assert (room.store.waiting([REPO]), room.woken) == ((), [ONE, TWO])


def test_errors_are_answers_and_a_host_that_wants_no_request_gets_none() -> None:
    room = Room(SourceError(Problem.UNREACHABLE, "https://me:pass@git.example: no such host"))
    assert "pass" not in room.ask().error
    later = room.clock.now() + timedelta(minutes=5)
    room.reader.answer = ProviderError(Problem.DENIED, "rate limit", not_found=True, retry_at=later)
    first = room.ask()
    assert (first.not_found, first.retry_at, len(room.reader.asked)) == (True, later, 2)
    assert room.at_once(fresh="r1").answers == ("r1",)
    assert len(room.reader.asked) == 2
    room.clock.set(later)
    room.ask()
    assert len(room.reader.asked) == 3


def test_a_secret_that_cannot_be_used_is_an_error_and_nothing_is_asked() -> None:
    def refuse(_question: Question) -> Mapping[SecretReference, Secret]:
        raise Unreadable("secret team/t is not a valid SCM creds secret")

    room = Room(secrets=refuse)
    found = room.at_once()
    assert (found.error, found.unasked, room.reader.asked) == (
        "secret team/t is not a valid SCM creds secret",
        True,
        [],
    )


def test_an_older_answer_that_ends_later_does_not_replace_a_newer_one() -> None:
    room = Room()
    slow, work = room.begin()
    room.end(slow, Unfinished())
    old = work.run()
    room.store.forget(room.store.running(REPO))  # type: ignore[arg-type]
    room.clock.advance(1)
    room.reader.answer = GitPaths("c2", ("b",))
    new = room.ask()
    assert work.late is not None
    work.late.keep(old)
    assert room.store.known()[REPO] == new


def test_answers_are_bounded_by_number_and_by_the_size_of_their_files() -> None:
    store = AnswerStore(limit=3, text=100)
    now = VirtualClock().now()

    def keep(number: int, text: str) -> None:
        question = DirectoriesQuestion(f"https://git.example/{number}", "main", "default")
        running = store.begin(AskRows(ONE, question, ""), now)
        store.end(running, Answer(now, GitFiles("c", {"f": text})), "", ONE)

    for number in range(5):
        keep(number, "x" * 10)
    assert [one.repo_url[-1] for one in store.known()] == ["2", "3", "4"]  # type: ignore[union-attr]
    keep(9, "x" * 95)
    assert len(store.known()) == 1


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (REPO, "directories of https://***@git.example/r.git@main"),
        (PluginQuestion("http://u:p@plugin", "{}", SecretReference("a", "b", "c")), "plugin http://***@plugin"),
        (RepositoriesQuestion('{"cloneProtocol":"ssh","github":{"organization":"o"}}', "argocd"), "github"),
        (
            PullRequestsQuestion('{"gitlab":{"api":"https://lab.example","project":"1"}}', "a"),
            "gitlab https://lab.example",
        ),
    ],
)
def test_what_is_asked_is_named_without_credentials(question: Question, text: str) -> None:
    assert subject(question) == text
