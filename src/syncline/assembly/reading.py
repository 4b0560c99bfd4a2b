"""The sources room as the Application controller wants it: sources at revisions in, manifests or one sentence out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj
from syncline.sources.credentials import CredentialBook
from syncline.sources.environment import NO_CONTEXT, RenderContext
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git import Git, GitSettings, GitTree
from syncline.sources.render_cache import RenderCache
from syncline.sources.renderer import DEFAULT_RENDERERS, Rendered, Renderer, SourceType, parse_source, render_source

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

    def requests(self) -> list[tuple[str, str, bool, int]]:
        """Calls of remotes until now: address, command, success, how many."""
        return self._git.requests()

    def read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        """Never raises for what a repository may contain."""
        rendered: list[Rendered] = []
        try:
            pairs = list(zip(sources, revisions, strict=True))
            refs = {str(one["ref"]): self._tree(one, revision, context) for one, revision in pairs if one.get("ref")}
            for source, revision in pairs:
                rendered.append(self._read_one(source, revision, context, refs))
        except SourceError as error:
            return Manifests((), (), (), now, error=str(error))
        return Manifests(
            revisions=tuple(one.sha for one in rendered),
            objects=tuple(obj for one in rendered for obj in one.manifests),
            source_types=tuple(str(one.source_type) for one in rendered),
            resolved_at=now,
            warnings=tuple(warning for one in rendered for warning in one.warnings),
        )

    def _tree(self, source: Obj, revision: str, context: RenderContext) -> GitTree:
        """The whole repository of a source that lends files to others."""
        if source.get("chart"):
            message = f"source with ref {source['ref']!r} has a `chart` field, which lends no files"
            raise SourceError(Problem.INVALID, message, field="spec.sources")
        repository = self._git.repository(str(source.get("repoURL") or ""), context.project)
        return repository.tree(repository.resolve(revision or "HEAD"))

    def _read_one(self, source: Obj, revision: str, context: RenderContext, refs: Mapping[str, GitTree]) -> Rendered:
        if source.get("ref") and not source.get("path"):
            # It only lends its files.
            return Rendered((), refs[str(source["ref"])].sha, SourceType.DIRECTORY, "")
        spec = parse_source(source, context)
        repository = self._git.repository(spec.repo_url, context.project)
        resolved = repository.resolve(revision or "HEAD")
        return render_source(
            source,
            repository,
            context=context,
            revision=resolved,
            refs=refs,
            cache=self._cache,
            renderers=self._renderers,
        )
