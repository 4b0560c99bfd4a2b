"""The sources room as the Application controller wants it: sources at revisions in, manifests or one sentence out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj
from syncline.sources.credentials import CredentialBook
from syncline.sources.environment import NO_CONTEXT, RenderContext
from syncline.sources.errors import SourceError
from syncline.sources.git import Git, GitSettings
from syncline.sources.render_cache import RenderCache
from syncline.sources.renderer import DEFAULT_RENDERERS, Rendered, Renderer, parse_source, render_source

__all__ = ["GitSourceReader"]


class GitSourceReader:
    """Reads every source of an application in order. Blocking; called in a driver's worker."""

    def __init__(
        self, cache_directory: Path, *, allow_local: bool, renderers: Sequence[Renderer] = DEFAULT_RENDERERS
    ) -> None:
        self._git = Git(GitSettings(cache_directory, allow_local=allow_local))
        self._cache = RenderCache()
        self._renderers = renderers

    def learn(self, book: CredentialBook) -> None:
        """From now on remotes are reached with these credentials."""
        self._git.learn(book)

    def read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        """Never raises for what a repository may contain."""
        rendered: list[Rendered] = []
        try:
            for source, revision in zip(sources, revisions, strict=True):
                rendered.append(self._read_one(source, revision, context))
        except SourceError as error:
            return Manifests((), (), (), now, error=str(error))
        return Manifests(
            revisions=tuple(one.sha for one in rendered),
            objects=tuple(obj for one in rendered for obj in one.manifests),
            source_types=tuple(str(one.source_type) for one in rendered),
            resolved_at=now,
            warnings=tuple(warning for one in rendered for warning in one.warnings),
        )

    def _read_one(self, source: Obj, revision: str, context: RenderContext) -> Rendered:
        spec = parse_source(source, context)
        repository = self._git.repository(spec.repo_url, context.project)
        resolved = repository.resolve(revision or "HEAD")
        return render_source(
            source, repository, context=context, revision=resolved, cache=self._cache, renderers=self._renderers
        )
