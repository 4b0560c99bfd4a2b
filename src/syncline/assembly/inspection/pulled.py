"""A lazy cache for one command: it reads each object or list from the cluster on first use, and once.

Commands use it, not :func:`snapshot_of_cluster`, for one Application or object: a user with rights in one namespace may
not list whole kinds, and listing a large cluster takes long. A forbidden read is recorded as a missing right and counts
as *unread*, never as absent. It only reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TypeVar

from syncline.argo.excluded import ResourceFilter
from syncline.control.cache import Cache, IndexFn
from syncline.control.executor import run_in_place
from syncline.gitops.application.content import INDICES as CONTENT_INDICES
from syncline.gitops.application.observing.observe import INSTANCE_INDEX
from syncline.kube import client
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import ApiError, Forbidden, Unauthorized
from syncline.kube.kinds.content import AGENT_NAMESPACE, CONTENT
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.mapper import Mapper, discover, server_version
from syncline.kube.objects import GroupKind, Obj, ObjectRef, ResourceInfo, dig, ref_of, uid_of
from syncline.kube.rights import Right, ask_for

PAGE = 500
"""Objects per request, as kubectl requests them."""
MAX_PAGES = 2000
"""A million objects of one kind: more than such a cluster holds, so an endless list is a fault."""
SINGLE = 3
"""Objects of a kind and namespace that are read one by one; beyond that they are listed."""
MAX_REFUSED = 20
"""Objects of a kind and namespace that are still read one by one after each was refused."""
POOL = GroupKind("machineconfiguration.openshift.io", "MachineConfigPool")
SECRET = GroupKind("", "Secret")
ASIDE = (HOLD.group_kind, POOL, SECRET)
"""Kinds read for rare needs: pools and Holds for machine configs, Secrets for masking and credentials. A refused list
is reported only if the result needs it."""
POD = GroupKind("", "Pod")
JOB = GroupKind("batch", "Job")
REPLICA_SET = GroupKind("apps", "ReplicaSet")
REVISION = GroupKind("apps", "ControllerRevision")
CLAIM = GroupKind("", "PersistentVolumeClaim")
CHILDREN: Mapping[GroupKind, tuple[GroupKind, ...]] = {
    GroupKind("apps", "Deployment"): (REPLICA_SET,),
    REPLICA_SET: (POD,),
    GroupKind("", "ReplicationController"): (POD,),
    GroupKind("apps", "StatefulSet"): (POD, REVISION, CLAIM),
    GroupKind("apps", "DaemonSet"): (POD, REVISION),
    GroupKind("batch", "CronJob"): (JOB,),
    JOB: (POD,),
    GroupKind("", "Service"): (GroupKind("discovery.k8s.io", "EndpointSlice"),),
    POD: (CLAIM, GroupKind("resource.k8s.io", "ResourceClaim")),
}
"""Kinds of commonly owned objects. Others may be owned too; they are searched in the kinds that may be listed."""
_Place = tuple[GroupKind, str]
"""A kind in a namespace; empty: all namespaces."""
T = TypeVar("T")


def listed(
    info: ResourceInfo, namespace: str = "", *, metadata: bool = False, pages: int = MAX_PAGES
) -> Generator[Request, Response, list[Obj]]:
    """Return all objects of a kind; ``metadata``: no more of them. A list whose token expires is restarted. Raises the
    ApiError of a refusal, and of a list that does not end after ``pages``."""
    found: list[Obj] = []
    token = ""
    for _ in range(pages):
        answer = yield client.list_(info, namespace, limit=PAGE, continue_=token, metadata=metadata)
        if token and answer.status == 410:
            found, token = [], ""
            continue
        body = answer.or_raise()
        typed = {"apiVersion": info.api_version, "kind": info.kind}
        found += [item | typed if metadata else typed | item for item in body.get("items") or ()]
        token = str((body.get("metadata") or {}).get("continue") or "")
        if not token:
            return found
    raise ApiError(f"the list of {info.plural} did not end after {pages} pages of {PAGE}")


def pulled(transport: Transport, indices: Mapping[str, IndexFn]) -> PulledCache:
    """Run discovery and return the cache; it reads objects on demand. Raises the ApiError of a failed discovery."""
    mapper = Mapper(run_in_place(discover(), transport))
    mapper.version = run_in_place(server_version(), transport)
    return PulledCache(mapper, indices, transport)


class PulledCache(Cache):
    """A cache that returns given objects unchanged and reads each other object once."""

    def __init__(self, mapper: Mapper, indices: Mapping[str, IndexFn], transport: Transport) -> None:
        super().__init__(mapper, indices)
        self.followed: list[Obj] = []
        """Applications whose objects are read when the tracking index is used."""
        self.secrets_of: str | None = None
        """The one namespace whose Secrets are listed with their values; None: those of all are."""
        self._transport = transport
        self._held: set[ObjectRef] = set()
        """Objects put or removed by the code that uses this cache."""
        self._got: set[ObjectRef] = set()
        self._single: Counter[_Place] = Counter()
        self._refused: Counter[_Place] = Counter()
        self._whole: set[_Place] = set()
        self._why: dict[ObjectRef, str] = {}
        self._why_list: dict[_Place, str] = {}
        self._missing: dict[Right, bool] = {}
        """Refused rights; False: no needed read depends on them."""
        self._troubles: dict[str, None] = {}
        self._homes: dict[str, ObjectRef] = {}
        """Owners by uid, to find what they own."""

    # -- writing -------------------------------------------------------------------------------------------------

    def put(self, kind: GroupKind, obj: Obj) -> Obj | None:
        self._held.add(ref_of(obj))
        return self._keep(kind, obj)

    def drop(self, kind: GroupKind, namespace: str, name: str) -> Obj | None:
        self._held.add(ObjectRef(kind.group, kind.kind, namespace, name))
        return super().drop(kind, namespace, name)

    def _keep(self, kind: GroupKind, obj: Obj) -> Obj | None:
        if uid_of(obj):
            self._homes[uid_of(obj)] = ref_of(obj)
        return super().put(kind, obj)

    def _take(self, kind: GroupKind, obj: Obj) -> None:
        ref = ref_of(obj)
        if ref not in self._held and super().get(ref) is None:
            self._keep(kind, obj)

    # -- reading -------------------------------------------------------------------------------------------------

    def get(self, ref: ObjectRef) -> Obj | None:
        known = super().get(ref)
        if known is not None or ref in self._held or ref in self._got or not ref.name:
            return known
        info = self.mapper.preferred(ref.group_kind)
        if info is None or info.namespaced != bool(ref.namespace):
            return None
        self._got.add(ref)
        place = (ref.group_kind, ref.namespace)
        if not self._is_listed(place):
            several = self._single[place] >= SINGLE and not _is_bare(place, self.secrets_of)
            several = several and self._list(info, ref.namespace, needed=False)
            if not several:
                self._single[place] += 1
                self._get_one(info, ref)
        return super().get(ref)

    def objects(self, kind: GroupKind, namespace: str = "") -> list[Obj]:
        self._pull(kind, namespace)
        return super().objects(kind, namespace)

    def owned(self, uid: str, kind: GroupKind | None = None) -> list[Obj]:
        home = self._homes.get(uid)
        if home is not None and kind is not None:
            self._pull(kind, home.namespace)
        elif home is not None:
            self._pull_owned(home)
        return super().owned(uid, kind)

    def indexed(self, index: str, value: str) -> list[Obj]:
        self._pull_tracked(index)
        return super().indexed(index, value)

    def count(self, index: str, value: str) -> int:
        self._pull_tracked(index)
        return super().count(index, value)

    def first(self, index: str, value: str) -> Obj | None:
        self._pull_tracked(index)
        return super().first(index, value)

    def views(self, kind: GroupKind, view: Callable[[Obj], T]) -> list[T]:
        self._pull(kind, "")
        return super().views(kind, view)

    def uncontrolled(self, kind: GroupKind, namespace: str) -> list[Obj]:
        self._pull(kind, namespace)
        return super().uncontrolled(kind, namespace)

    def kinds(self) -> Iterator[GroupKind]:
        yield from sorted({info.group_kind for info in self.mapper.all() if _is_looked_at(info)})

    def has_synced(self, kind: GroupKind) -> bool:
        self._pull(kind, "")
        return super().has_synced(kind)

    def unread(self, ref: ObjectRef) -> str:
        if not ref.name:
            return self._why_list.get((ref.group_kind, ref.namespace), "")
        self.get(ref)
        return self._why.get(ref, "")

    def reads_all(self) -> bool:
        return not (self._why or self._why_list)

    def sentences(self, *, aside: bool = False) -> list[str]:
        """Return sentences on what could not be read, with the rights to request. ``aside``: also reads beyond the
        objects themselves, such as credentials and Holds."""
        return [*ask_for(right for right, needed in self._missing.items() if needed or aside), *self._troubles]

    def note(self, sentence: str) -> None:
        """Add a sentence to report with these."""
        self._troubles[sentence] = None

    # -- requests ------------------------------------------------------------------------------------------------

    def _is_listed(self, place: _Place) -> bool:
        return place in self._whole or (place[0], "") in self._whole

    def _pull(self, kind: GroupKind, namespace: str, *, needed: bool = True) -> None:
        info = self.mapper.preferred(kind)
        if info is not None and (info.namespaced or not namespace):
            self._list(info, namespace, needed=needed and kind not in ASIDE)

    def _list(self, info: ResourceInfo, namespace: str, *, needed: bool) -> bool:
        """List a kind; return whether all its objects are known now."""
        place = (info.group_kind, namespace)
        if self._is_listed(place):
            return True
        if "list" not in info.verbs:
            return False
        if place in self._why_list:
            self._refuse(info, Right(namespace, info.group, info.plural, "list"), needed)
            return False
        try:
            found = run_in_place(listed(info, namespace, metadata=_is_bare(place, self.secrets_of)), self._transport)
        except ApiError as error:
            if error.code != 404:
                self._why_list[place] = self._noted(info, "list", namespace, "", error, needed=needed)
                return False
            found = []
        for obj in found:
            self._take(info.group_kind, obj)
        self._whole.add(place)
        if not namespace:
            self.mark_synced(info.group_kind)
        return True

    def _get_one(self, info: ResourceInfo, ref: ObjectRef) -> None:
        place = (ref.group_kind, ref.namespace)
        if self._refused[place] >= MAX_REFUSED:
            self._why[ref] = f"{info.group_resource} in {ref.namespace or 'the cluster'} may not be read"
            return
        answer = self._transport.send(client.get(info, ref.namespace, ref.name))
        if answer.ok:
            self._take(ref.group_kind, {"apiVersion": info.api_version, "kind": info.kind} | answer.obj)
        elif answer.status != 404:
            self._refused[place] += 1
            self._why[ref] = self._noted(info, "get", ref.namespace, ref.name, answer.refusal(), needed=True)

    def _noted(self, info: ResourceInfo, verb: str, namespace: str, name: str, error: ApiError, *, needed: bool) -> str:
        """Record a refusal and return it as a sentence. Raises Unauthorized, as then nothing can be read."""
        if isinstance(error, Unauthorized):
            raise error
        if isinstance(error, Forbidden):
            self._refuse(info, Right(namespace, info.group, info.plural, verb, name), needed)
        elif needed:
            self._troubles[f"{info.group_resource} could not be read: {error}"] = None
        return str(error)

    def _refuse(self, info: ResourceInfo, right: Right, needed: bool) -> None:
        self._missing[right] = needed or self._missing.get(right, False)

    def _pull_owned(self, home: ObjectRef) -> None:
        """List everything that an object may own: in its namespace, for a cluster-scoped one everywhere."""
        known = CHILDREN.get(home.group_kind, ())
        if not home.namespace and (not home.group or home.group.endswith(".k8s.io")):
            return
        for info in self.mapper.all():
            if _is_looked_at(info) and (info.namespaced or not home.namespace):
                self._list(info, home.namespace, needed=info.group_kind in known)

    def _pull_tracked(self, index: str) -> None:
        """Read the objects in an Application's status; if it was never compared, all of the kinds in its manifests."""
        if index in CONTENT_INDICES:
            self._pull(CONTENT.group_kind, AGENT_NAMESPACE, needed=False)
        if index != INSTANCE_INDEX:
            return
        for app in self.followed:
            for row in dig(app, "status", "resources", default=[]):
                self.get(ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name"))))
            if not dig(app, "status", "sync", "status"):
                for kind, namespace in list(self._single):
                    if not _is_bare((kind, namespace), self.secrets_of):
                        self._pull(kind, namespace, needed=False)


def _is_looked_at(info: ResourceInfo) -> bool:
    return "list" in info.verbs and not ResourceFilter().excludes(info.group, info.kind, "")


def _is_bare(place: _Place, secrets_of: str | None) -> bool:
    """Return whether a list of this kind and namespace has metadata only."""
    return place[0] == SECRET and secrets_of not in (None, place[1])
