"""Renders of sources that lie in a Git repository, as the controllers render what they have opened."""

from __future__ import annotations

from typing import Any

from syncline.sources.git.mirrors import Repository
from syncline.sources.rendering.renderer import Rendered, SourceSpec, render_opened, render_tree
from syncline.sources.revision import ResolvedRevision

__all__ = ["render", "render_source"]


def render(
    spec: SourceSpec, repository: Repository, *, revision: ResolvedRevision | None = None, **more: Any
) -> Rendered:
    """The objects of ``spec`` at ``revision``, or at what ``spec.revision`` names now."""
    resolved = revision or repository.resolve(spec.revision)
    return render_tree(spec, repository.tree(resolved, spec.path), resolved.sha, **more)


def render_source(source: dict[str, Any], repository: Repository, **more: Any) -> Rendered:
    """The objects of a source as it is written, with the overrides that lie in its folder."""
    resolved = repository.resolve(str(source.get("targetRevision") or ""))
    return render_opened(source, repository.tree(resolved, str(source.get("path") or "")), resolved.sha, **more)
