"""Answers the questions of generators on this machine, with the reader and the handler of the controller."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from syncline.appset.asking import AnswerStore, AskRows, RowsHandler
from syncline.appset.observing.observe import Surroundings
from syncline.appset.questions import Answer, DirectoriesQuestion, FilesQuestion, Question
from syncline.appset.tokens import read_references, references_of
from syncline.assembly.inspection.sets import Ask
from syncline.assembly.sources.generating import git_value
from syncline.base.clock import SystemClock
from syncline.cli.access.folder import DiskTree
from syncline.cli.access.snapshots import source_reader
from syncline.cli.appset.stage import Stage
from syncline.control.executor import run_in_place
from syncline.kube.client import Request, Response
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.objects import ObjectRef
from syncline.sources.errors import SourceError

LOCAL = "local"
"""Stands for the commit of a folder."""


@contextlib.contextmanager
def rows(stage: Stage, folder: Path | None) -> Iterator[Ask]:
    """Yield a function that answers one question. ``folder`` stands for every Git repository."""
    strict = Surroundings(stage.control).settings(stage.cache).strict_tokens
    tree = DiskTree(folder.resolve()) if folder is not None else None
    with source_reader(stage.link, stage.cache, stage.control) as sources:
        handler = RowsHandler(
            sources,
            AnswerStore(),
            lambda question: read_references(stage.cache, references_of(question, stage.control), strict=strict),
            SystemClock(),
        )

        def ask(question: Question) -> Answer:
            if tree is not None and isinstance(question, DirectoriesQuestion | FilesQuestion):
                return _of_folder(tree, question, stage)
            action = AskRows(ObjectRef(*APPLICATION_SET.group_kind, "", "command"), question, "a command asks")
            found = run_in_place(handler.handle(action), _Nowhere())
            assert isinstance(found, Answer), "nothing else asks the same question"
            return found

        yield ask


def _of_folder(tree: DiskTree, question: DirectoriesQuestion | FilesQuestion, stage: Stage) -> Answer:
    try:
        return Answer(stage.now, git_value(tree, LOCAL, question))
    except SourceError as error:
        return Answer(stage.now, error=str(error))


class _Nowhere:
    """A transport for work that sends no request to the API."""

    def send(self, request: Request) -> Response:
        raise AssertionError(f"reading rows asks the API for {request.path}")
