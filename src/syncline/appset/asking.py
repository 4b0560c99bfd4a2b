"""Asks what generation lacks: :class:`AskRows`, its handler, and the answers that all sets share.

A plan that misses an answer, or has an old one, has an :class:`AskRows` for each question. A quick answer is there when
the same reconcile plans again; a slow one continues in the background, the plan reports what it waits for, and its end
wakes every set that waits for it. Answers are lost with the process, and asked again by the next reconciles.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, runtime_checkable
from urllib.parse import urlsplit

from syncline.appset.questions import (
    Answer,
    DirectoriesQuestion,
    FilesQuestion,
    GitFiles,
    PluginQuestion,
    Question,
    Value,
)
from syncline.base.action import Action, Late, Purpose, Work
from syncline.base.clock import Clock, format_time
from syncline.base.secret import Secret
from syncline.kube.objects import ObjectRef
from syncline.sources.errors import SourceError, mask_credentials
from syncline.sources.providers.model import ProviderError, SecretReference
from syncline.sources.remote.address import host_of

MAX_ANSWERS = 5_000
"""Answers that are kept; the one that was given longest ago makes room."""
MAX_TEXT = 256_000_000
"""Characters of files in all kept answers together."""
MAX_REQUESTS = 100
"""Refresh requests remembered per answer."""
PATIENCE_S = 2.0
"""Seconds a reconcile waits for an answer; a longer one continues in the background."""
READ_LIMIT_S = 900.0
"""Limit of one question in seconds; the first read of a large repository takes minutes."""


@dataclass(frozen=True, slots=True)
class AskRows(Action):
    """Ask one question for a set."""

    set: ObjectRef
    question: Question = field(repr=False)
    reason: str
    fresh: str = ""
    """The refresh request that wants an answer from now on; empty: one that other readers of the same repository got
    within the last ``may_be_old_s`` is as good."""
    project: str = ""
    may_be_old_s: float = 0.0

    def describe(self) -> str:
        return f"ask {subject(self.question)} for {self.set}"


@dataclass(frozen=True, slots=True)
class Asking:
    """A question that is being asked in the background."""

    question: Question
    since: datetime
    begun: datetime | None = None
    """When it started; None: it is queued."""

    @property
    def text(self) -> str:
        """Return a sentence: what is waited for, since when and until when."""
        until = format_time((self.begun or self.since) + timedelta(seconds=READ_LIMIT_S))
        if self.begun is not None:
            return f"waiting for {subject(self.question)} since {format_time(self.since)}, at most until {until}"
        return (
            f"waiting since {format_time(self.since)} for a turn to ask {subject(self.question)}, at most until {until}"
        )


Asked: TypeAlias = Answer | Asking
"""The result of :class:`AskRows`."""


def subject(question: Question) -> str:
    """Return what a question is about, for people: without credentials, as ``directories of URL@REVISION``."""
    match question:
        case DirectoriesQuestion():
            return f"directories of {mask_credentials(question.repo_url)}@{question.revision or 'HEAD'}"
        case FilesQuestion():
            return f"files of {mask_credentials(question.repo_url)}@{question.revision or 'HEAD'}"
        case PluginQuestion():
            return f"plugin {mask_credentials(question.base_url)}"
        case _:
            name, api = _provider(question.decoded)
            return f"{name} {mask_credentials(api)}".strip()


def _provider(spec: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field that names the provider, and its address; empty: the public host."""
    found = ((name, value) for name, value in sorted(spec.items()) if isinstance(value, Mapping))
    return next(((name, str(value.get("api") or "")) for name, value in found), ("provider", ""))


def host_asked(question: Question) -> str:
    """Return the host whose share the question counts against; empty: a public provider."""
    match question:
        case DirectoriesQuestion() | FilesQuestion():
            return host_of(question.repo_url)
        case PluginQuestion():
            return urlsplit(question.base_url).hostname or ""
        case _:
            name, api = _provider(question.decoded)
            return urlsplit(api).hostname or name


@runtime_checkable
class RowReader(Protocol):
    """Answers questions, blocking, in a worker; ``assembly`` provides the implementation."""

    def rows(
        self,
        question: Question,
        secrets: Mapping[SecretReference, Secret],
        now: datetime,
        *,
        since: datetime | None,
        wanted: int,
    ) -> Value:
        """Return the value. ``since``: an answer of a Git host to another reader from then on is reused; None: the host
        is asked. ``wanted``: the ``moment()`` of the need. Raises SourceError, and ProviderError for a host that wants
        no request yet."""
        ...

    def moment(self) -> int:
        """Return a number for the present moment; later moments have higher numbers."""
        ...


class Unreadable(Exception):
    """A Secret or ConfigMap that a question names cannot be used; one sentence."""


Secrets = Callable[[Question], Mapping[SecretReference, Secret]]
"""Reads what a question names. Raises :class:`Unreadable`."""


class AnswerStore:
    """Answers by question, and the questions being asked. Bounded; used by the loop's thread alone."""

    def __init__(self, limit: int = MAX_ANSWERS, text: int = MAX_TEXT) -> None:
        self._kept: OrderedDict[Question, Answer] = OrderedDict()
        self._known: Mapping[Question, Answer] | None = MappingProxyType({})
        self._asking: dict[Question, _Running] = {}
        self._limit, self._text_limit, self._text = limit, text, 0
        self.wake: Callable[[ObjectRef], None] = lambda _ref: None
        """Reconciles a set that waited for an answer which another one asked for."""

    def known(self) -> Mapping[Question, Answer]:
        """Return all answers; the mapping never changes afterwards."""
        if self._known is None:
            self._known = MappingProxyType(dict(self._kept))
        return self._known

    def waiting(self, questions: Iterable[Question]) -> tuple[Asking, ...]:
        """Return those of the questions that are being asked now."""
        found = (self._asking.get(question) for question in questions)
        return tuple(one.asking for one in found if one is not None)

    def begin(self, action: AskRows, now: datetime) -> _Running:
        running = self._asking[action.question] = _Running(action.question, now)
        return self.join(action, running)

    def running(self, question: Question) -> _Running | None:
        return self._asking.get(question)

    def join(self, action: AskRows, running: _Running) -> _Running:
        """Let a set wait for the same answer. A refresh request that came after the question began is not answered by
        it: its set asks again."""
        running.sets.add(action.set)
        return running

    def end(self, running: _Running, found: Answer, request: str, asker: ObjectRef) -> Answer:
        """Keep an answer, unless a later one is known, and wake the other sets that wait for it."""
        question = running.question
        if self._asking.get(question) is running:
            del self._asking[question]
        before = self._kept.get(question)
        answers = (*(before.answers if before is not None else ()), *((request,) if request else ()))
        if before is not None and before.at > found.at:
            found = before
        found = replace(found, answers=answers[-MAX_REQUESTS:])
        self._keep(question, found)
        for ref in sorted(running.sets - {asker}):
            self.wake(ref)
        return found

    def forget(self, running: _Running) -> None:
        """A question ended without an answer, since its reconcile was cancelled: the sets that wait ask again."""
        if self._asking.get(running.question) is running:
            del self._asking[running.question]
            for ref in sorted(running.sets):
                self.wake(ref)

    def _keep(self, question: Question, answer: Answer) -> None:
        before = self._kept.pop(question, None)
        self._text += _text_of(answer) - (_text_of(before) if before is not None else 0)
        self._kept[question] = answer
        while len(self._kept) > 1 and (len(self._kept) > self._limit or self._text > self._text_limit):
            _, gone = self._kept.popitem(last=False)
            self._text -= _text_of(gone)
        self._known = None


@dataclass(slots=True)
class _Running:
    question: Question
    since: datetime
    begun: list[datetime] = field(default_factory=list)
    """Written by the worker thread when it starts."""
    sets: set[ObjectRef] = field(default_factory=set)

    @property
    def asking(self) -> Asking:
        return Asking(self.question, self.since, next(iter(self.begun), None))


def _text_of(answer: Answer) -> int:
    value = answer.value
    return sum(map(len, value.texts.values())) if isinstance(value, GitFiles) else 0


class RowsHandler:
    """Performs :class:`AskRows` in a worker thread."""

    def __init__(
        self, reader: RowReader, store: AnswerStore, secrets: Secrets, clock: Clock, patience_s: float = PATIENCE_S
    ) -> None:
        self._reader, self._store, self._secrets = reader, store, secrets
        self._clock, self._patience_s = clock, patience_s

    def handle(self, action: AskRows) -> Generator[Work, Any, Asked]:
        now = self._clock.now()
        running = self._store.running(action.question)
        if running is not None:
            return self._store.join(action, running).asking
        resting = self._store.known().get(action.question)
        running = self._store.begin(action, now)
        if resting is not None and resting.retry_at is not None and resting.retry_at > now:
            return self._store.end(running, resting, action.fresh, action.set)
        try:
            secrets = self._secrets(action.question)
        except Unreadable as error:
            return self._store.end(running, Answer(now, error=str(error), unasked=True), action.fresh, action.set)
        host = host_asked(action.question)
        try:
            found = yield Work(
                action.describe(),
                partial(self._read, action, now, running, secrets, self._reader.moment()),
                Purpose.SOURCES,
                project=action.project,
                hosts=(host,) if host else (),
                late=Late(self._patience_s, partial(self._keep_late, action, running, now)),
                answered=lambda result: isinstance(result, Answer) and not result.error,
            )
        except BaseException:
            self._store.forget(running)
            raise
        return self._end(action, running, now, found) if isinstance(found, Answer) else running.asking

    def _read(
        self,
        action: AskRows,
        now: datetime,
        running: _Running,
        secrets: Mapping[SecretReference, Secret],
        wanted: int,
    ) -> Answer:
        """Ask, in the worker thread, once it has a turn."""
        begun = self._clock.now()
        running.begun.append(begun)
        if begun > now + timedelta(seconds=READ_LIMIT_S):
            return Answer(begun, error=f"no turn to ask {subject(action.question)} within {READ_LIMIT_S:g} s")
        since = None if action.fresh else now - timedelta(seconds=action.may_be_old_s)
        try:
            value = self._reader.rows(action.question, secrets, now, since=since, wanted=wanted)
        except ProviderError as error:
            return Answer(now, error=str(error), not_found=error.not_found, retry_at=error.retry_at)
        except SourceError as error:
            return Answer(now, error=str(error))
        return Answer(now, value)

    def _keep_late(self, action: AskRows, running: _Running, now: datetime, found: Any) -> None:
        self._end(action, running, now, found)

    def _end(self, action: AskRows, running: _Running, now: datetime, found: Any) -> Answer:
        if not isinstance(found, Answer):  # a bug of ours, or a full queue: asked again as after errors
            found = Answer(now, error=f"{type(found).__name__}: {found}")
        return self._store.end(running, found, action.fresh, action.set)
