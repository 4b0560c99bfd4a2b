"""Compute the files of a pod's volumes; the process runtime writes them into sandboxes or below the pod's folder.

Files from ConfigMaps, Secrets and the pod are updated when those change (:func:`shown_of`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from syncline.base.secret import Secret
from syncline.cluster.machines.containers import Order
from syncline.cluster.machines.processes.environment import field_value, object_data, resource_value
from syncline.kube.objects import Obj, annotations_of, dig, generation, labels_of, name_of, resource_version, uid_of
from syncline.kube.text.quantity import QuantityError, parse_quantity

DEFAULT_MODE = 0o644
MOST_TOKENS = 16
"""Different tokens per pod: each is a request before a container starts."""


class VolumeError(Exception):
    """The process runtime does not support the volume; the message names it and the remedy."""


@dataclass(frozen=True, slots=True)
class Volume:
    """``files`` by path in the volume; ``modes`` and ``owners`` of files that differ from ``mode`` and root;
    ``writable`` volumes belong to the pod; ``memory``: not on a disk; ``most``: size limit."""

    name: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    writable: bool = False
    mode: int = DEFAULT_MODE
    modes: Mapping[str, int] = field(default_factory=dict)
    owners: Mapping[str, int] = field(default_factory=dict)
    memory: bool = False
    most: int = 0

    def mode_of(self, path: str) -> int:
        return self.modes.get(path, self.mode) & 0o777


@dataclass(frozen=True, slots=True)
class TokenWish:
    """The parameters of a projected service-account token."""

    audience: str
    lifetime_s: int


def token_wishes(pod: Obj) -> tuple[TokenWish, ...]:
    """Return the different tokens in the pod's volumes, up to the limit."""
    sources = (
        source
        for volume in dig(pod, "spec", "volumes", default=[])
        for source in dig(volume, "projected", "sources", default=[])
        if source.get("serviceAccountToken")
    )
    return tuple(dict.fromkeys(_wish(each["serviceAccountToken"]) for each in sources))[:MOST_TOKENS]


def _wish(projection: Obj) -> TokenWish:
    return TokenWish(str(projection.get("audience") or ""), int(projection.get("expirationSeconds") or 3600))


def shown_of(pod: Obj, objects: tuple[Obj, ...]) -> str:
    """Return a fingerprint of the sources of a pod's volumes, "" without such volumes; it changes with the files. An
    immutable object counts by its name only: the kubelet does not read it again."""
    volumes = [each for each in dig(pod, "spec", "volumes", default=[]) if any(kind in each for kind in _OF_FILES)]
    if not volumes:
        return ""
    known = {(str(each.get("kind")), name_of(each)): each for each in objects}
    found: list[object] = []
    for part in (part for volume in volumes for part in _parts(volume)):
        for kind, field_, key in (("ConfigMap", "configMap", "name"), ("Secret", "secret", "name")):
            if field_ in part:
                obj = known.get((kind, str(part[field_].get(key))))
                version = "" if obj is None else f"{uid_of(obj)}/{resource_version(obj)}"
                found.append((kind, part[field_].get(key), "immutable" if obj and obj.get("immutable") else version))
        if "downwardAPI" in part:
            found.append((labels_of(pod), annotations_of(pod), generation(pod)))
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:32]


def _parts(volume: Obj) -> tuple[Obj, ...]:
    """Return its sources in the format of a projected volume."""
    return tuple(volume["projected"].get("sources") or ()) if "projected" in volume else (_as_source(volume),)


def volumes_of(
    order: Order, tokens: Mapping[TokenWish, Secret], user: int | None = None, group: int | None = None
) -> dict[str, Volume]:
    """Return all volumes by name; raise VolumeError for kinds that would reach outside the sandbox. ``user``: of all
    containers; ``group``: the volumes' group."""
    known = _Tokens(tokens, user, group)
    objects = {(str(each.get("kind")), name_of(each)): object_data(each) for each in order.objects}
    return {
        str(volume.get("name")): _volume(volume, order, objects, known)
        for volume in dig(order.pod, "spec", "volumes", default=[])
    }


def _size(text: object) -> int:
    """Return bytes; 0 means no limit."""
    try:
        return parse_quantity(str(text)).value() if text else 0
    except QuantityError:
        return 0


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Tokens of the service account, with their owner."""

    issued: Mapping[TokenWish, Secret]
    user: int | None
    group: int | None


_OF_FILES = ("configMap", "secret", "downwardAPI", "projected")
_Objects = Mapping[tuple[str, str], Mapping[str, bytes]]


def _volume(volume: Obj, order: Order, objects: _Objects, tokens: _Tokens) -> Volume:
    name = str(volume.get("name"))
    if "emptyDir" in volume:
        about = volume["emptyDir"] or {}
        return Volume(name, writable=True, memory=about.get("medium") == "Memory", most=_size(about.get("sizeLimit")))
    source = next((volume[kind] for kind in _OF_FILES if kind in volume), None)
    if source is not None:
        files: dict[str, bytes] = {}
        modes: dict[str, int] = {}
        owners: dict[str, int] = {}
        for part in _parts(volume):
            files |= _projected(part, order, objects, tokens.issued)
            modes |= _modes(part)
            if "serviceAccountToken" in part and (tokens.user is not None or tokens.group is not None):
                path = str(part["serviceAccountToken"].get("path") or "token")
                modes |= {path: 0o600}
                owners |= {path: tokens.user or 0}
        mode = source.get("defaultMode")
        return Volume(name, files, mode=DEFAULT_MODE if mode is None else int(mode), modes=modes, owners=owners)
    kind = next((key for key in volume if key != "name"), "")
    raise VolumeError(
        f'volume "{name}": {kind} volumes are not given to local processes; '
        "use emptyDir, configMap, secret, downwardAPI or projected"
    )


def _as_source(volume: Obj) -> Obj:
    """Return a volume of one source in the format of a projected one."""
    if "secret" in volume:
        return {"secret": volume["secret"] | {"name": volume["secret"].get("secretName")}}
    return {kind: volume[kind] for kind in ("configMap", "downwardAPI") if kind in volume}


def _modes(source: Obj) -> dict[str, int]:
    """Return the modes of single files."""
    return {
        str(item["path"]): int(item["mode"])
        for part in source.values()
        if isinstance(part, dict)
        for item in part.get("items") or ()
        if item.get("mode") is not None
    }


def _chosen(source: Obj, data: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return all entries, or those in ``items`` at their paths."""
    items = source.get("items")
    if not items:
        return dict(data)
    return {str(item["path"]): data[item["key"]] for item in items if item.get("key") in data}


def _projected(source: Obj, order: Order, objects: _Objects, tokens: Mapping[TokenWish, Secret]) -> dict[str, bytes]:
    if "serviceAccountToken" in source:
        token = tokens.get(_wish(source["serviceAccountToken"]))
        if token is None:
            raise VolumeError(f"the pod asks for more than {MOST_TOKENS} different tokens; give it fewer")
        return {str(source["serviceAccountToken"].get("path") or "token"): token.reveal().encode()}
    if "configMap" in source:
        return _chosen(source["configMap"], objects.get(("ConfigMap", source["configMap"]["name"]), {}))
    if "secret" in source:
        return _chosen(source["secret"], objects.get(("Secret", source["secret"]["name"]), {}))
    if "downwardAPI" in source:
        return _downward(source["downwardAPI"], order)
    return {}


def _downward(source: Obj, order: Order) -> dict[str, bytes]:
    return {str(item["path"]): _item(item, order).encode() for item in source.get("items") or ()}


def _item(item: Obj, order: Order) -> str:
    if "resourceFieldRef" in item:
        return resource_value(item["resourceFieldRef"], order)
    return field_value(str(dig(item, "fieldRef", "fieldPath", default="")), order)
