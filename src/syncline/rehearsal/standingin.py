"""What controllers and people do that are not in a rehearsed world, as far as a roll-out waits for it:
:class:`StandIns`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from syncline.apply.health.check import health_of
from syncline.apply.health.verdict import HealthStatus
from syncline.cluster.builtin.storage.provisioner import standard_class
from syncline.control.executor import run_in_place
from syncline.kube import client
from syncline.kube.client import Transport
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, ResourceInfo, dig, gvk_of, meta, name_of, namespace_of
from syncline.rehearsal.record import Recorder, Version

INGRESS, SERVICE = GroupKind("networking.k8s.io", "Ingress"), GroupKind("", "Service")
CLAIM, POD = GroupKind("", "PersistentVolumeClaim"), GroupKind("", "Pod")
CLASS, SECRET = GVK("storage.k8s.io", "v1", "StorageClass"), GVK("", "v1", "Secret")
OWN = ("argoproj.io/Application", "argoproj.io/ApplicationSet", "apiextensions.k8s.io/CustomResourceDefinition")
OWN_GROUPS = ("machineconfiguration.openshift.io", "syncline.dev", "open-cluster-management.io")
"""Kinds and groups whose controllers are here."""
TRUE = ("Ready", "Accepted", "Programmed", "ResolvedRefs", "Available", "Synced", "Admitted", "Healthy", "Deployed")
PATIENCE = timedelta(minutes=1)
"""How long a pod waits for a Secret before it is made: what the commit brings is there by then."""
MAX_NAMED = 5
MAX_TRIES = 20
"""Statuses that an object gets: one that no status makes healthy stays as it is."""


@dataclass
class StandIns:
    """Looks at what was written since the last look. ``addresses``: whether Ingresses and Services of type LoadBalancer
    get one; ``others``: whether objects of controllers that are not here become healthy; ``invented``: whether the
    world is not a person's, so that storage classes and Secrets that are named are supposed to be there."""

    transport: Transport
    recorder: Recorder
    addresses: bool
    others: bool
    invented: bool
    binding: Mapping[str, str] = field(default_factory=dict)
    """``volumeBindingMode`` by name of a storage class, as far as manifests of the repository say it."""
    _seen: int = 0
    _count: int = 0
    _kinds: set[str] = field(default_factory=set)
    _made: dict[str, set[str]] = field(default_factory=dict)
    _pending: dict[ObjectRef, tuple[datetime, Obj]] = field(default_factory=dict)
    _tries: Counter[ObjectRef] = field(default_factory=Counter)
    _known: Mapper | None = None

    def __post_init__(self) -> None:
        self._seen = len(self.recorder.versions)  # what a cluster held before is as it is

    def look(self, now: datetime) -> bool:
        """Return whether something was done."""
        versions, writes = self.recorder.versions, self.recorder.changes
        if self._seen == len(versions) and not self._pending:
            return False
        new: dict[ObjectRef, Version] = {one.ref: one for one in versions[self._seen :]}
        self._seen = len(versions)
        for ref, one in new.items():
            self._pending.pop(ref, None)
            if not one.gone:
                self._one(ref.group_kind, one)
        if self.invented:
            self._secrets(now)
        return self.recorder.changes != writes

    def notes(self) -> tuple[str, ...]:
        """Return what was done, in sentences."""
        found = []
        if self._count:
            found.append("Ingresses and Services of type LoadBalancer get an address at once")
        if self._kinds:
            found.append(f"controllers that are not here make their objects healthy at once: {_named(self._kinds)}")
        for kind, names in sorted(self._made.items()):
            found.append(f"{kind} that nothing makes are there: {_named(names)}")
        return tuple(found)

    def _one(self, kind: GroupKind, version: Version) -> None:
        obj = version.obj
        if kind == INGRESS or (kind == SERVICE and dig(obj, "spec", "type") == "LoadBalancer"):
            if self.addresses and not dig(obj, "status", "loadBalancer", "ingress"):
                self._count += 1
                ingress = [{"ip": f"192.0.2.{self._count % 254 + 1}"}]
                self._set(obj, {"loadBalancer": {"ingress": ingress}})
        elif kind == CLAIM and self.invented:
            self._class(str(dig(obj, "spec", "storageClassName") or ""))
        elif kind == POD and self.invented:
            if dig(obj, "status", "phase") == "Pending":
                self._pending[version.ref] = version.at, obj
        elif self.others and "." in kind.group and not _is_own(kind):
            status = healthy_status(obj) if self._tries[version.ref] < MAX_TRIES else None
            self._tries[version.ref] += status is not None
            if status is not None and self._set(obj, status):
                self._kinds.add(f"{kind.kind}.{kind.group}")

    def _set(self, obj: Obj, status: Obj) -> bool:
        info = self._info(gvk_of(obj))
        if info is None:
            return False
        below = "status" if "status" in info.subresources else ""
        place = (namespace_of(obj), name_of(obj))
        merge = client.PatchType.MERGE
        return self.transport.send(client.patch(info, *place, merge, {"status": status}, subresource=below)).ok

    def _info(self, gvk: GVK) -> ResourceInfo | None:
        found = self._known.find(gvk) if self._known is not None else None
        if found is None:  # definitions come with commits
            self._known = Mapper(run_in_place(discover(), self.transport))
            found = self._known.find(gvk)
        return found

    def _class(self, name: str) -> None:
        if name:
            made = standard_class() | {"metadata": {"name": name}}
            made["volumeBindingMode"] = self.binding.get(name, made["volumeBindingMode"])
            self._make(CLASS, "storage classes", "", made)

    def _secrets(self, now: datetime) -> None:
        late = [ref for ref, (since, _) in self._pending.items() if now - since >= PATIENCE]
        for ref in late:
            _, pod = self._pending.pop(ref)
            for name, keys in _wanted(pod).items():
                data = dict.fromkeys(keys, "cmVoZWFyc2Vk")
                secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
                self._make(SECRET, "Secrets that pods wait for and", ref.namespace, secret)

    def _make(self, gvk: GVK, said: str, namespace: str, obj: Obj) -> None:
        info = self._info(gvk)
        name = f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)
        if info is None:
            return
        if self.transport.send(client.get(info, namespace, name_of(obj))).ok:
            if name in self._made.get(said, ()) and obj.get("data"):  # another pod reads other keys
                more = client.patch(info, namespace, name_of(obj), client.PatchType.MERGE, {"data": obj["data"]})
                self.transport.send(more)
            return
        placed = obj | {"metadata": {**meta(obj), **({"namespace": namespace} if namespace else {})}}
        if self.transport.send(client.create(info, placed)).ok:
            self._made.setdefault(said, set()).add(name)


def _is_own(kind: GroupKind) -> bool:
    return f"{kind.group}/{kind.kind}" in OWN or kind.group.endswith(OWN_GROUPS)


def healthy_status(obj: Obj) -> Obj | None:
    """Return a status with which an object that is Progressing is Healthy, as Argo CD judges its kind; None: it is not,
    or none is known."""
    found = health_of(obj)
    if found is None or found.status is not HealthStatus.PROGRESSING or meta(obj).get("deletionTimestamp"):
        return None
    for status in _statuses(obj):
        judged = health_of(obj | {"status": {**(obj.get("status") or {}), **status}})
        if judged is not None and judged.status is HealthStatus.HEALTHY:
            return status
    return None


def _statuses(obj: Obj) -> Iterator[Obj]:
    """Yield what controllers write of objects that they are done with, in the order of how common it is."""
    generation = meta(obj).get("generation", 1)
    said = {"status": "True", "reason": "Rehearsed", "message": "supposed in a rehearsal"}
    moment = meta(obj).get("creationTimestamp")
    conditions = [{"type": one, **said, "observedGeneration": generation, "lastTransitionTime": moment} for one in TRUE]
    seen = {"observedGeneration": generation}
    yield {**seen, "conditions": conditions[:1]}
    yield {**seen, "conditions": conditions}
    parents = dig(obj, "spec", "parentRefs") or dig(obj, "spec", "targetRefs") or [{"name": "rehearsed"}]
    above = [{"controllerName": "rehearsed.example/controller", "conditions": conditions[1:4]}]
    yield {"parents": [{"parentRef": one, **above[0]} for one in parents]}
    yield {"ancestors": [{"ancestorRef": one, **above[0]} for one in parents]}
    yield {"ingress": [{"host": dig(obj, "spec", "host") or "", "conditions": [conditions[TRUE.index("Admitted")]]}]}
    healthy = {"type": "CatalogSourcesUnhealthy", **said, "status": "False"}
    yield {"state": "AtLatestKnown", "conditions": [healthy]}
    for phase in ("Cluster in healthy state", "Ready", "Running", "Available", "Healthy", "Succeeded", "Bound"):
        yield {**seen, "phase": phase, "conditions": conditions}
    yield {**seen, "state": "ready", "conditions": conditions}


def _wanted(pod: Obj) -> dict[str, set[str]]:
    """Return the Secrets that a pod cannot start without, each with the keys that it reads."""
    found: dict[str, set[str]] = {}
    spec = pod.get("spec") or {}
    for volume in spec.get("volumes") or ():
        for one in (volume.get("secret"), *(part.get("secret") for part in dig(volume, "projected", "sources") or ())):
            if one and not one.get("optional"):
                keys = found.setdefault(str(one.get("secretName") or one.get("name")), set())
                keys |= {str(item["key"]) for item in one.get("items") or ()}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for one in container.get("envFrom") or ():
            if one.get("secretRef") and not one["secretRef"].get("optional"):
                found.setdefault(str(one["secretRef"].get("name")), set())
        for one in container.get("env") or ():
            key = dig(one, "valueFrom", "secretKeyRef")
            if key and not key.get("optional"):
                found.setdefault(str(key.get("name")), set()).add(str(key.get("key")))
    return found


def _named(names: set[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - MAX_NAMED} more" if len(shown) > MAX_NAMED else ""
    return f"{', '.join(shown[:MAX_NAMED])}{more}"
