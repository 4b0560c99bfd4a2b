"""One snapshot of a whole cluster in a cache, for commands: everything that can be listed.

Called by ``plan`` and ``explain`` with a connection, by tests with a virtual world. A generator of requests; a kind
that the user may not list is named, not an error. It never writes and never watches.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, replace

from syncline.argo.settings import System
from syncline.assembly.inspection.pulled import listed
from syncline.assembly.scripts.expressions import AnswersNow
from syncline.control.cache import Cache, IndexFn
from syncline.gitops.application.content import INDICES as CONTENT_INDICES
from syncline.gitops.application.observing.observe import INSTANCE_INDEX, AppSettings
from syncline.gitops.application.observing.system import SystemCache
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError
from syncline.kube.mapper import Mapper, discover, server_version
from syncline.kube.objects import GroupKind


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """Objects of a cluster. ``unreadable``: kinds that could not be listed, with the server's reason."""

    cache: Cache
    unreadable: tuple[str, ...] = ()


def application_indices(settings: AppSettings) -> Mapping[str, IndexFn]:
    """Return the indices that observing an Application needs, as its controller declares them."""
    return {INSTANCE_INDEX: SystemCache(settings).instances, **CONTENT_INDICES}


def index_as(home: Cache, other: Cache, settings: AppSettings) -> None:
    """Index another cluster's cache by the tracking settings of the local ``argocd-cm``."""
    book = SystemCache(settings)
    book.of(home)
    other.use_index(INSTANCE_INDEX, book.instances)


def system_of(cache: Cache, settings: AppSettings) -> System:
    """Return the settings of ``argocd-cm`` for one snapshot, and set the cache's index by them."""
    book = SystemCache(settings)
    found = replace(book.of(cache), answers=AnswersNow())
    cache.use_index(INSTANCE_INDEX, book.instances)
    return found


def snapshot_of_cluster(
    indices: Mapping[str, IndexFn], only: Collection[GroupKind] | None = None
) -> Generator[Request, Response, ClusterSnapshot]:
    """Run discovery, then list every kind (``only``: these) once in its preferred version. Raises the ApiError of a
    failed discovery."""
    mapper = Mapper((yield from discover()))
    mapper.version = yield from server_version()
    cache = Cache(mapper, indices)
    unreadable: list[str] = []
    for info in mapper.all():
        if "list" not in info.verbs or (only is not None and info.group_kind not in only):
            continue
        try:
            found = yield from listed(info)
        except ApiError as error:
            unreadable.append(f"{info.group_resource}: {error}")
            cache.mark_unread(info.group_kind, str(error))
            continue
        for item in found:
            cache.put(info.group_kind, item)
        cache.mark_synced(info.group_kind)
    return ClusterSnapshot(cache, tuple(unreadable))
