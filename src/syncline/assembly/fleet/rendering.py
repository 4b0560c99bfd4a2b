"""Renders for the pull model with the reader, the workers and the cache that GitOps controllers have."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from syncline.base.clock import Clock
from syncline.fleet.pull.content.rendering import Question, RenderContent, Rendering
from syncline.gitops.application.manifests import ManifestStore, Render, RenderHandler, SourceReader
from syncline.sources.rendering.environment import RenderContext, plain_version

MAX_KEPT = 5_000
"""Renderings that are kept."""


class HubRenderings:
    """Renderings of one process; as :class:`~syncline.fleet.pull.content.rendering.Renderings`."""

    def __init__(self) -> None:
        self.store = ManifestStore(MAX_KEPT)

    def latest(self, question: Question) -> Rendering | None:
        found = self.store.get(question.sources, question.revisions, context_of(question))
        if found is None:
            return None
        kept = found.revisions, found.source_types, found.objects, found.error, found.answers, found.own_folder
        return Rendering(found.resolved_at, *kept)

    def waiting(self, question: Question) -> str:
        found = self.store.reading(question.sources, question.revisions, context_of(question))
        return found.text if found is not None else ""


def context_of(question: Question) -> RenderContext:
    return RenderContext(
        question.application,
        question.project,
        question.namespace,
        plain_version(question.kube_version),
        question.api_versions,
        question.reader,
        question.source,
    )


class ContentRenderer:
    """Performs :class:`RenderContent`."""

    def __init__(self, reader: SourceReader, kept: HubRenderings, clock: Clock) -> None:
        self._handler = RenderHandler(reader, kept.store, clock)

    def handle(self, action: RenderContent) -> Generator[Any, Any, Any]:
        question = action.question
        render = Render(
            question.reader,
            question.sources,
            question.revisions,
            action.reason,
            action.answers,
            context_of(question),
            action.may_be_old_s,
            bool(action.answers),
        )
        return (yield from self._handler.handle(render))
