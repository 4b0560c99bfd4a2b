"""The sources room as the Application controller wants it: sources at revisions in, manifests or one sentence out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj
from syncline.sources.errors import SourceError
from syncline.sources.git import Git, GitSettings
from syncline.sources.render_cache import RenderCache
from syncline.sources.renderer import DEFAULT_RENDERERS, Rendered, Renderer, parse_source, render

__all__ = ["GitSourceReader"]


class GitSourceReader:
    """Reads every source of an application in order. Blocking; called in a driver's worker."""

    def __init__(
        self, cache_directory: Path, *, allow_local: bool, renderers: Sequence[Renderer] = DEFAULT_RENDERERS
    ) -> None:
        self._git = Git(GitSettings(cache_directory, allow_local=allow_local))
        self._cache = RenderCache()
        self._renderers = renderers

    def read(self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime) -> Manifests:
        """Never raises for what a repository may contain."""
        rendered: list[Rendered] = []
        try:
            for source, revision in zip(sources, revisions, strict=True):
                rendered.append(self._read_one(source, revision))
        except SourceError as error:
            return Manifests((), (), (), now, error=str(error))
        return Manifests(
            revisions=tuple(one.sha for one in rendered),
            objects=tuple(obj for one in rendered for obj in one.manifests),
            source_types=tuple(str(one.source_type) for one in rendered),
            resolved_at=now,
            warnings=tuple(warning for one in rendered for warning in one.warnings),
        )

    def _read_one(self, source: Obj, revision: str) -> Rendered:
        spec = parse_source(source)
        repository = self._git.repository(spec.repo_url)
        resolved = repository.resolve(revision or "HEAD")
        return render(spec, repository, revision=resolved, cache=self._cache, renderers=self._renderers)
