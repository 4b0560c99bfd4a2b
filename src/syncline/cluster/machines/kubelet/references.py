"""Find the ConfigMaps and Secrets that a pod refers to, and report missing ones as the kubelet does.

A missing volume blocks all containers of the pod; a missing variable blocks its container. Messages are those of
Kubernetes (``pkg/volume``, ``pkg/kubelet/kubelet_pods.go``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from syncline.control.cache import Snapshot
from syncline.kube.objects import Obj, ObjectRef, dig, namespace_of

REFERENCES = "kubelet/references"
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
"""Fields of a pod's spec."""


class Reference(msgspec.Struct, frozen=True):
    """A reference to a ConfigMap or Secret, and to some of its keys."""

    kind: str
    name: str
    keys: tuple[str, ...] = ()
    optional: bool = False

    def found(self, namespace: str, cache: Snapshot) -> Obj | None:
        return cache.get(ObjectRef("", self.kind, namespace, self.name))


@dataclass(frozen=True, slots=True)
class Missing:
    """``volumes`` are messages about volumes, in order; ``variables`` are messages by container name."""

    volumes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


def _volume_references(volume: Obj) -> Iterator[Reference]:
    if "configMap" in volume:
        yield _reference("ConfigMap", volume["configMap"], "name")
    if "secret" in volume:
        yield _reference("Secret", volume["secret"], "secretName")
    for source in dig(volume, "projected", "sources", default=[]):
        if "configMap" in source:
            yield _reference("ConfigMap", source["configMap"], "name")
        if "secret" in source:
            yield _reference("Secret", source["secret"], "name")


def _reference(kind: str, source: Obj, name: str) -> Reference:
    keys = tuple(str(item.get("key")) for item in source.get("items") or ())
    return Reference(kind, str(source.get(name) or ""), keys, bool(source.get("optional")))


def _variable_references(container: Obj) -> Iterator[Reference]:
    """Yield references in the kubelet's order: ``envFrom`` first."""
    for source in container.get("envFrom") or ():
        for field_, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if source.get(field_):
                yield _reference(kind, source[field_], "name")
    for variable in container.get("env") or ():
        for field_, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            wanted = dig(variable, "valueFrom", field_)
            if wanted:
                optional = bool(wanted.get("optional"))
                yield Reference(kind, str(wanted.get("name") or ""), (str(wanted.get("key")),), optional)


def _containers(pod: Obj) -> list[Obj]:
    return [each for part in CONTAINERS for each in dig(pod, "spec", part, default=[])]


def _all(pod: Obj) -> Iterator[Reference]:
    for volume in dig(pod, "spec", "volumes", default=[]):
        yield from _volume_references(volume)
    for container in _containers(pod):
        yield from _variable_references(container)


def refers_to(obj: Obj) -> Iterable[str]:
    """Index keys: ``Kind/namespace/name`` of everything a pod on a node refers to."""
    if obj.get("kind") != "Pod" or not dig(obj, "spec", "nodeName"):
        return ()
    return sorted({f"{each.kind}/{namespace_of(obj)}/{each.name}" for each in _all(obj)})


def referred(pod: Obj, cache: Snapshot) -> Iterator[Obj]:
    """Yield the existing objects, each once."""
    for kind, name in dict.fromkeys((each.kind, each.name) for each in _all(pod)):
        found = cache.get(ObjectRef("", kind, namespace_of(pod), name))
        if found is not None:
            yield found


def missing_of(pod: Obj, cache: Snapshot) -> Missing:
    """Return what is missing now."""
    namespace = namespace_of(pod)
    volumes = []
    for volume in dig(pod, "spec", "volumes", default=[]):
        for each in _volume_references(volume):
            problem = _volume_problem(each, namespace, cache)
            if problem:
                volumes.append(f'MountVolume.SetUp failed for volume "{volume.get("name")}" : {problem}')
    variables = {}
    for container in _containers(pod):
        problems = (_variable_problem(each, namespace, cache) for each in _variable_references(container))
        first = next((problem for problem in problems if problem), "")
        if first:
            variables[str(container.get("name"))] = first
    return Missing(tuple(volumes), variables)


def _absent(reference: Reference) -> str:
    return f'{reference.kind.lower()} "{reference.name}" not found'


def _lacking(reference: Reference, found: Obj) -> list[str]:
    known = {*(found.get("data") or {}), *(found.get("binaryData") or {})}
    return [key for key in reference.keys if key not in known]


def _volume_problem(reference: Reference, namespace: str, cache: Snapshot) -> str:
    found = reference.found(namespace, cache)
    if reference.optional:
        return ""
    if found is None:
        return _absent(reference)
    lacking = _lacking(reference, found)
    return f"references non-existent config key: {lacking[0]}" if lacking else ""


def _variable_problem(reference: Reference, namespace: str, cache: Snapshot) -> str:
    found = reference.found(namespace, cache)
    if reference.optional:
        return ""
    if found is None:
        return _absent(reference)
    lacking = _lacking(reference, found)
    return f"couldn't find key {lacking[0]} in {reference.kind} {namespace}/{reference.name}" if lacking else ""
