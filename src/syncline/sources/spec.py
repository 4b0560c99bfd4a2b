"""``spec.source`` of an Application as renderers take it.

Read by ``sources/renderer.py`` and the tools. A tool's own block is kept as it is written; the tool reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from syncline.sources.directory import DirectoryOptions
from syncline.sources.environment import RenderContext, build_environment
from syncline.sources.errors import Problem, SourceError

__all__ = ["SourceSpec", "SourceType", "parse_source"]


class SourceType(StrEnum):
    """The tools by their names in ``status.sourceType``."""

    DIRECTORY = "Directory"
    HELM = "Helm"
    KUSTOMIZE = "Kustomize"
    PLUGIN = "Plugin"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """``spec.source``, as far as rendering needs it. ``explicit`` names the given tool block, ``block`` is what it
    holds, as written. ``sha`` is the commit that is rendered, filled in when it is known."""

    repo_url: str
    path: str = "."
    revision: str = "HEAD"
    directory: DirectoryOptions = field(default_factory=DirectoryOptions)
    explicit: SourceType | None = None
    block: Mapping[str, Any] = field(default_factory=dict)
    context: RenderContext = field(default_factory=RenderContext)
    sha: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """``$ARGOCD_APP_…`` of this source."""
        return build_environment(
            self.context, url=self.repo_url, path=self.path, revision=self.revision, sha=self.sha
        )


_BLOCKS = {
    "helm": SourceType.HELM,
    "kustomize": SourceType.KUSTOMIZE,
    "directory": SourceType.DIRECTORY,
    "plugin": SourceType.PLUGIN,
}


def parse_source(source: Mapping[str, Any], context: RenderContext = RenderContext()) -> SourceSpec:
    """Read ``spec.source`` or an entry of ``spec.sources``; raises :class:`SourceError` for what cannot be rendered."""
    given = [name for name in _BLOCKS if source.get(name)]
    if len(given) > 1:
        names = ",".join(_BLOCKS[name].value for name in sorted(given))
        raise SourceError(Problem.INVALID, f"multiple application sources defined: {names}", field="spec.source")
    if source.get("chart"):
        raise SourceError(
            Problem.UNSUPPORTED,
            f"chart {source['chart']}: Helm chart repositories are not supported yet",
            field="spec.source.chart",
            fix="keep the chart in a Git repository",
        )
    block = source[given[0]] if given else {}
    if not isinstance(block, dict):
        raise SourceError(
            Problem.INVALID, f"spec.source.{given[0]} is not a mapping", field=f"spec.source.{given[0]}"
        )
    explicit = _BLOCKS[given[0]] if given else None
    listing = block if explicit is SourceType.DIRECTORY else {}
    return SourceSpec(
        repo_url=str(source.get("repoURL") or ""),
        path=str(source.get("path") or "."),
        revision=str(source.get("targetRevision") or "HEAD"),
        directory=DirectoryOptions(
            bool(listing.get("recurse")), str(listing.get("include") or ""), str(listing.get("exclude") or "")
        ),
        explicit=explicit,
        block=block,
        context=context,
    )
