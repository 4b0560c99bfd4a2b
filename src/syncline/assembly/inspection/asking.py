"""Answers the questions of generators in place, with the handler of the controller: :func:`asker`."""

from __future__ import annotations

from syncline.appset.asking import AnswerStore, AskRows, RowReader, RowsHandler
from syncline.appset.observing.observe import Surroundings
from syncline.appset.questions import Answer, Question
from syncline.appset.tokens import read_references, references_of
from syncline.assembly.inspection.sets import Ask
from syncline.base.clock import Clock
from syncline.control.cache import Cache
from syncline.control.executor import run_in_place
from syncline.kube.client import Request, Response
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.objects import ObjectRef


def asker(reader: RowReader, cache: Cache, control: str, clock: Clock) -> Ask:
    """Return a function that answers one question, blocking; tokens are read from the Secrets in ``cache``."""
    strict = Surroundings(control).settings(cache).strict_tokens
    handler = RowsHandler(
        reader,
        AnswerStore(),
        lambda question: read_references(cache, references_of(question, control), strict=strict),
        clock,
    )

    def ask(question: Question) -> Answer:
        action = AskRows(ObjectRef(*APPLICATION_SET.group_kind, "", "command"), question, "a command asks")
        found = run_in_place(handler.handle(action), _Nowhere())
        assert isinstance(found, Answer), "nothing else asks the same question"
        return found

    return ask


class _Nowhere:
    """A transport for work that sends no request to the API."""

    def send(self, request: Request) -> Response:
        raise AssertionError(f"reading rows asks the API for {request.path}")
