"""Answers the questions of generators on this machine, with the reader and the handler of the controller."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from syncline.appset.questions import Answer, DirectoriesQuestion, FilesQuestion, Question
from syncline.assembly.inspection.asking import asker
from syncline.assembly.inspection.sets import Ask
from syncline.assembly.sources.generating import git_value
from syncline.base.clock import SystemClock
from syncline.cli.access.folder import DiskTree
from syncline.cli.access.snapshots import source_reader
from syncline.cli.appset.stage import Stage
from syncline.sources.errors import SourceError

LOCAL = "local"
"""Stands for the commit of a folder."""


@contextlib.contextmanager
def rows(stage: Stage, folder: Path | None) -> Iterator[Ask]:
    """Yield a function that answers one question. ``folder`` stands for every Git repository."""
    tree = DiskTree(folder.resolve()) if folder is not None else None
    with source_reader(stage.link, stage.cache, stage.control) as sources:
        asks = asker(sources, stage.cache, stage.control, SystemClock())

        def ask(question: Question) -> Answer:
            if tree is not None and isinstance(question, DirectoriesQuestion | FilesQuestion):
                return _of_folder(tree, question, stage)
            return asks(question)

        yield ask


def _of_folder(tree: DiskTree, question: DirectoriesQuestion | FilesQuestion, stage: Stage) -> Answer:
    try:
        return Answer(stage.now, git_value(tree, LOCAL, question))
    except SourceError as error:
        return Answer(stage.now, error=str(error))
