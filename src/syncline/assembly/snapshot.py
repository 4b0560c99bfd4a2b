"""One look at a whole cluster, for commands that ask and go: everything that can be listed, in a cache.

Called by ``plan`` and ``explain`` with a connection, by tests with a virtual world. A generator of requests; what a
person may not list is named, not an error. It never writes and never watches.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass

from syncline.assembly.lua_worker import LuaWorker
from syncline.control.cache import Cache, IndexFn
from syncline.gitops.application.observe import INSTANCE_INDEX, AppSettings
from syncline.gitops.application.system import SystemBook
from syncline.gitops.system import System
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.mapper import Mapper, discover, server_version
from syncline.kube.objects import GroupKind, Obj, ResourceInfo

__all__ = ["ClusterLook", "application_indices", "index_as", "look_at_cluster", "system_of"]

PAGE = 500
"""Objects per request, as kubectl asks for them."""
MAX_PAGES = 2000
"""A million objects of one kind: more than a cluster of one machine holds, so a list that goes on is broken."""


@dataclass(frozen=True, slots=True)
class ClusterLook:
    """What was there. ``unreadable``: kinds that could not be listed, with the server's reason."""

    cache: Cache
    unreadable: tuple[str, ...] = ()


def application_indices(settings: AppSettings) -> Mapping[str, IndexFn]:
    """The indices that observing an Application needs, as its controller declares them."""
    return {INSTANCE_INDEX: SystemBook(settings).instances}


def index_as(home: Cache, other: Cache, settings: AppSettings) -> None:
    """The cache of another cluster finds objects by what ``argocd-cm`` at home says."""
    book = SystemBook(settings)
    book.of(home)
    other.use_index(INSTANCE_INDEX, book.instances)


def system_of(cache: Cache, settings: AppSettings) -> System:
    """What ``argocd-cm`` says, for one look; the index of a cache of ours follows it."""
    book = SystemBook(settings, LuaWorker())
    found = book.of(cache)
    cache.use_index(INSTANCE_INDEX, book.instances)
    return found


def look_at_cluster(
    indices: Mapping[str, IndexFn], only: Collection[GroupKind] | None = None
) -> Generator[Request, Response, ClusterLook]:
    """Discover, then list every kind (``only``: these) once in its preferred version. Raises the ApiError of a failed
    discovery."""
    mapper = Mapper((yield from discover()))
    mapper.version = yield from server_version()
    cache = Cache(mapper, indices)
    unreadable: list[str] = []
    for info in mapper.all():
        if "list" not in info.verbs or (only is not None and info.group_kind not in only):
            continue
        problem = yield from _list(cache, info)
        if problem:
            unreadable.append(problem)
        else:
            cache.mark_synced(info.group_kind)
    return ClusterLook(cache, tuple(unreadable))


def _list(cache: Cache, info: ResourceInfo) -> Generator[Request, Response, str]:
    """Why the kind cannot be read, empty when it was. A list whose token expires begins again."""
    found: list[Obj] = []
    token = ""
    for _ in range(MAX_PAGES):
        answer = yield client.list_(info, limit=PAGE, continue_=token)
        if token and answer.status == 410:
            found, token = [], ""
            continue
        if not answer.ok:
            return f"{info.group_resource}: {_message(answer.obj)}"
        found += answer.obj.get("items") or ()
        token = str((answer.obj.get("metadata") or {}).get("continue") or "")
        if not token:
            for item in found:
                cache.put(info.group_kind, {"apiVersion": info.api_version, "kind": info.kind} | item)
            return ""
    return f"{info.group_resource}: the list did not end after {MAX_PAGES} pages"


def _message(body: object) -> str:
    return str(body.get("message") or "refused") if isinstance(body, dict) else "refused"
