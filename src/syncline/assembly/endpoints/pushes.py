"""Finds the Applications that a push leaves unchanged, by Git's own diff.

A push to a shared repository concerns all its Applications by name, but few by content. The host is queried once, the
commit fetched, and its diff to the rendered commits decides: an Application without a changed file needs no refresh.
Unknown counts as changed: a source that reads outside its folder, several sources, one with signature checks, one not
read here yet, a slow host.
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

FEW = 3
"""Up to this many Applications are refreshed without a query, which would cost as much."""
PATIENCE_S = 5.0
"""Seconds for a host to respond and deliver the commit; after that all are refreshed."""
LIMITS = Limits(4, {"host": 1})


class _Source(NamedTuple):
    """One query to a host."""

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
    """``last_read`` returns the last render of an Application here, or None."""

    reader: GitSourceReader
    last_read: Callable[[Obj], Manifests | None]
    now: Callable[[], datetime]
    _threads: Threads = field(default_factory=lambda: Threads("webhooks", LIMITS))

    async def left_alone(self, apps: Iterable[Obj]) -> frozenset[ObjectRef]:
        """Return the Applications for which the newest commit of the source changes nothing."""
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
    """Return whether one of these files is in the folder; None: the changes are unknown, which counts as yes."""
    if changed is None:
        return True
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    prefix = "".join(f"{part}/" for part in parts)
    return any(path.startswith(prefix) or f"{path}/" == prefix for path in changed)
