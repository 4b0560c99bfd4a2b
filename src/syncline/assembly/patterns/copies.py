"""Reads repositories and charts of which copies lie on this machine, and asks no host for any other.

A rehearsal of a pattern reads so: public addresses are those of copies that an administrator names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from syncline.assembly.patterns.checkouts import Checkouts
from syncline.assembly.sources.reading import GitSourceReader, renderers_with
from syncline.base.masking import mask_credentials
from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj
from syncline.patterns.installing.reading import Found, Wanted
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext
from syncline.sources.revision import Version, parse_constraint

HEAD: Final = "HEAD"


@dataclass(frozen=True, slots=True)
class Copy:
    """A Git repository that stands for an address. ``path``: of the chart in it; ``version``: of that chart, empty for
    a repository that is none."""

    repository: Path
    path: str = "."
    version: str = ""


class NoCopyError(Exception):
    """No copy stands for an address; one sentence with the fix."""


class CopiedReader(GitSourceReader):
    """A reader of repositories that reads copies alone. ``copies`` by address: of a repository, or of a registry and
    the name of a chart, joined by a slash."""

    def __init__(self, cache_directory: Path, copies: Mapping[str, Copy]) -> None:
        super().__init__(cache_directory, allow_local=True, renderers=renderers_with(None))
        self.copies = {_plain(address): copy for address, copy in copies.items()}

    def read(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        wanted: int = 0,
    ) -> Manifests:
        try:
            mine = tuple(self._local(one) for one in sources)
        except NoCopyError as error:
            return Manifests((), (), (), now, error=str(error))
        return super().read(mine, (HEAD,) * len(mine), now, context, wanted=wanted)

    def poll(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        since: datetime | None,
        wanted: int = 0,
    ) -> Manifests:
        return self.read(sources, revisions, now, context, wanted=wanted)

    def checkout(self, wanted: Wanted, now: datetime) -> Found:
        """As :class:`~syncline.patterns.installing.reading.CheckoutReader`."""
        copy = self.copies.get(_plain(wanted.url))
        if copy is None:
            return Found(now, error=_missing(wanted.url, ""))
        return Checkouts(self.sources).checkout(Wanted(str(copy.repository), HEAD, wanted.names), now)

    def _local(self, source: Obj) -> Obj:
        """Return the source of a copy. Raises :class:`NoCopyError`."""
        url, chart = str(source.get("repoURL") or ""), str(source.get("chart") or "")
        copy = self.copies.get(_plain(f"{url.rstrip('/')}/{chart}") if chart else _plain(url))
        if copy is None:
            raise NoCopyError(_missing(url, f"{chart} {source.get('targetRevision') or ''}".strip()))
        made = {key: value for key, value in source.items() if key != "chart"}
        made |= {"repoURL": str(copy.repository), "targetRevision": HEAD}
        if chart:
            _check_version(chart, str(source.get("targetRevision") or ""), copy.version)
            made["path"] = copy.path
        return made


def _check_version(chart: str, asked: str, found: str) -> None:
    """Raise :class:`NoCopyError` if a copy is of a version that the source does not ask for."""
    fits, version = parse_constraint(asked or "*"), Version.parse(found)
    if asked != found and (fits is None or version is None or not fits(version)):
        raise NoCopyError(f"chart {chart}: the copy is version {found}, asked is {asked or '*'}")


def _missing(url: str, chart: str) -> str:
    what = f"chart {chart} of {mask_credentials(url)}" if chart else mask_credentials(url)
    return f"{what} is not read in a rehearsal, which asks no host; name a copy of it on this machine"


def _plain(address: str) -> str:
    """Return an address as it is compared: without the ending that Git hosts leave to people."""
    return address.rstrip("/").removesuffix(".git").lower()
