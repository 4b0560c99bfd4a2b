"""Which Applications a push leaves alone, as Git itself says.

A push to a repository of many concerns all of them by its name, and one or two by what it changes. The host is asked
once what it has, the commit is brought, and what differs from the commits that were rendered last decides: an
Application of which nothing was touched needs no refresh. What is not known counts as touched: a source that reads
beyond its folder, several sources, one whose signatures are checked, one that was never read here, a host that does not
answer soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from syncline.argo.application import AppView
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.places import Crowded, Limits
from syncline.base.threads import Threads
from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj, ObjectRef
from syncline.sources.remote.address import host_of

__all__ = ["Touched"]

FEW = 3
"""So many Applications are refreshed without a question: it would cost as much."""
PATIENCE_S = 5.0
"""For a host to say what it has and to give it; then all are refreshed as if nothing were known."""
LIMITS = Limits(4, {"host": 1})


class _Source(NamedTuple):
    """One question to a host."""

    url: str
    revision: str
    tag_prefix: str
    project: str


class _Read(NamedTuple):
    ref: ObjectRef
    commit: str
    folder: str


@dataclass(slots=True)
class Touched:
    """``last_read``: what an Application was last rendered from here, if that is known."""

    reader: GitSourceReader
    last_read: Callable[[Obj], Manifests | None]
    now: Callable[[], datetime]
    _threads: Threads = field(default_factory=lambda: Threads("webhooks", LIMITS))

    async def left_alone(self, apps: Iterable[Obj]) -> frozenset[ObjectRef]:
        """Applications whose source's newest commit changes nothing."""
        known: dict[_Source, list[_Read]] = {}
        for app in apps:
            view = AppView(app)
            found = self.last_read(app) if len(view.sources) == 1 else None
            if found is None or found.error or not found.own_folder or len(found.revisions) != 1:
                continue
            source, revision = view.sources[0], view.revisions_wanted[0]
            asked = _Source(
                str(source.get("repoURL") or ""), revision, str(source.get("tagPrefix") or ""), view.project
            )
            known.setdefault(asked, []).append(_Read(view.ref, found.revisions[0], str(source.get("path") or "")))
        many = [(source, reads) for source, reads in known.items() if len(reads) > FEW]
        answers = await asyncio.gather(*(self._left_alone(source, reads) for source, reads in many))
        return frozenset[ObjectRef]().union(*answers)

    async def _left_alone(self, source: _Source, reads: list[_Read]) -> frozenset[ObjectRef]:
        commits = tuple(sorted({read.commit for read in reads}))

        def ask() -> dict[str, tuple[str, ...] | None]:
            return self.reader.changed_since(
                source.url, source.revision, source.tag_prefix, source.project, commits, self.now()
            )

        try:
            async with asyncio.timeout(PATIENCE_S):
                changed = await self._threads.start(ask, ("host", host_of(source.url)))
        except (TimeoutError, Crowded):
            return frozenset()
        return frozenset(read.ref for read in reads if not _touches(changed.get(read.commit), read.folder))


def _touches(changed: tuple[str, ...] | None, folder: str) -> bool:
    """Whether one of these files lies in the folder; None: it is not known what changed."""
    if changed is None:
        return True
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    prefix = "".join(f"{part}/" for part in parts)
    return any(path.startswith(prefix) or f"{path}/" == prefix for path in changed)
