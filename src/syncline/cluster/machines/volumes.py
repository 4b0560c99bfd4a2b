"""The files of a pod's volumes, as data: written by the process runtime below the pod's directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from syncline.cluster.machines.containers import Order
from syncline.cluster.machines.environment import field_value, object_data, resource_value
from syncline.kube.objects import Obj, dig, name_of

__all__ = ["TokenWish", "Volume", "VolumeError", "token_wish", "volumes_of"]


DEFAULT_MODE = 0o644


class VolumeError(Exception):
    """A volume that the process runtime does not offer; the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Volume:
    """``files`` by path below the volume, ``modes`` where one has another than ``mode``; ``writable`` volumes belong to
    the pod."""

    name: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    writable: bool = False
    mode: int = DEFAULT_MODE
    modes: Mapping[str, int] = field(default_factory=dict)

    def mode_of(self, path: str) -> int:
        """The owner can always read it."""
        return self.modes.get(path, self.mode) & 0o777 | 0o400


@dataclass(frozen=True, slots=True)
class TokenWish:
    """What a projected service-account token asks for."""

    audience: str
    lifetime_s: int


def token_wish(pod: Obj) -> TokenWish | None:
    """The first projected token of the pod; None if it has none."""
    for volume in dig(pod, "spec", "volumes", default=[]):
        for source in dig(volume, "projected", "sources", default=[]):
            wish = source.get("serviceAccountToken")
            if wish:
                return TokenWish(str(wish.get("audience") or ""), int(wish.get("expirationSeconds") or 3600))
    return None


def volumes_of(order: Order, token: str) -> dict[str, Volume]:
    """All volumes by name; raises VolumeError for kinds that would reach outside the sandbox."""
    objects = {(str(each.get("kind")), name_of(each)): object_data(each) for each in order.objects}
    return {
        str(volume.get("name")): _volume(volume, order, objects, token)
        for volume in dig(order.pod, "spec", "volumes", default=[])
    }


_OF_FILES = ("configMap", "secret", "downwardAPI", "projected")
_Objects = Mapping[tuple[str, str], Mapping[str, bytes]]


def _volume(volume: Obj, order: Order, objects: _Objects, token: str) -> Volume:
    name = str(volume.get("name"))
    if "emptyDir" in volume:
        return Volume(name, writable=True)
    source = next(
        (volume[kind] for kind in ("configMap", "secret", "downwardAPI", "projected") if kind in volume), None
    )
    if source is not None:
        parts = source.get("sources") or () if "projected" in volume else (_as_source(volume),)
        files: dict[str, bytes] = {}
        modes: dict[str, int] = {}
        for part in parts:
            files |= _projected(part, order, objects, token)
            modes |= _modes(part)
        mode = source.get("defaultMode")
        return Volume(name, files, mode=DEFAULT_MODE if mode is None else int(mode), modes=modes)
    kind = next((key for key in volume if key != "name"), "")
    raise VolumeError(
        f'volume "{name}": {kind} volumes are not given to local processes; '
        "use emptyDir, configMap, secret, downwardAPI or projected"
    )


def _as_source(volume: Obj) -> Obj:
    """A volume of one source in the words of a projected one."""
    if "secret" in volume:
        return {"secret": volume["secret"] | {"name": volume["secret"].get("secretName")}}
    return {kind: volume[kind] for kind in ("configMap", "downwardAPI") if kind in volume}


def _modes(source: Obj) -> dict[str, int]:
    """Modes of single files."""
    return {
        str(item["path"]): int(item["mode"])
        for part in source.values()
        if isinstance(part, dict)
        for item in part.get("items") or ()
        if item.get("mode") is not None
    }


def _chosen(source: Obj, data: Mapping[str, bytes]) -> dict[str, bytes]:
    """All entries, or those of ``items`` at their paths."""
    items = source.get("items")
    if not items:
        return dict(data)
    return {str(item["path"]): data[item["key"]] for item in items if item.get("key") in data}


def _projected(source: Obj, order: Order, objects: _Objects, token: str) -> dict[str, bytes]:
    if "serviceAccountToken" in source:
        return {str(source["serviceAccountToken"].get("path") or "token"): token.encode()}
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
