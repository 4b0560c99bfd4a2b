"""A sandbox's mounts of a pod's volumes, as data for its launcher. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from syncline.cluster.machines.containers import Order
from syncline.cluster.machines.processes.accounts import Accounts
from syncline.cluster.machines.processes.environment import expanded
from syncline.cluster.machines.processes.volumes import Volume, VolumeError


def files(volumes: Mapping[str, Volume], accounts: Accounts, most: int, stamp: str) -> dict[str, dict[str, Any]]:
    """Return files that process 1 writes to the sandbox's memory, where they vanish with the sandbox."""
    kept = [volume for volume in volumes.values() if not volume.writable]
    if sum(len(content) for volume in kept for content in volume.files.values()) > most:
        raise VolumeError(f"the files of all volumes are larger than {most >> 20} MiB together; give the pod fewer")
    return {
        volume.name: {
            "stamp": stamp,
            "group": accounts.shared,
            "files": [
                (path, encoded(content), volume.mode_of(path), volume.owners.get(path, 0))
                for path, content in volume.files.items()
            ],
        }
        for volume in kept
    }


def bounds(order: Order, volumes: Mapping[str, Volume]) -> dict[str, int]:
    """Return the size limits by mount path, if the pod has any."""
    shown = order.container.get("volumeMounts") or ()
    found = {str(each["mountPath"]).rstrip("/"): volumes[str(each["name"])].most for each in shown}
    return {place: most for place, most in found.items() if most}


def mounts(
    order: Order, places: Mapping[str, Path], volumes: Mapping[str, Volume], variables: Mapping[str, str]
) -> list[tuple[str, str, bool, str]]:
    """Return the mounts, outer paths before inner ones. The launcher resolves a subPath, so that no link can redirect
    it. A source that is not a path is a volume of the launcher's files."""
    found = []
    for mount in order.container.get("volumeMounts") or ():
        volume = volumes.get(str(mount.get("name")))
        if volume is None:
            raise VolumeError(f'container "{order.container["name"]}": there is no volume "{mount.get("name")}"')
        below = str(mount.get("subPath") or "") or expanded(str(mount.get("subPathExpr") or ""), variables)
        if ".." in below.split("/") or below.startswith("/"):
            raise VolumeError(f'volume "{volume.name}": subPath {below} leads out of the volume')
        source = str(places[volume.name]) if volume.writable else volume.name
        writable = volume.writable and not mount.get("readOnly")
        found.append((source, str(mount["mountPath"]).rstrip("/"), writable, below))
    return sorted(found, key=lambda each: each[1].count("/"))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
