"""Whether a node is to be updated, from what and to what; pure.

Its annotations, the MachineConfigs that they name and what the disk says it has come in. The disk is always right: a
cluster restored from a backup tells of times that the machine has left behind. Source: Machine Config Operator
``prepUpdateFromCluster``, ``getStateAndConfigs`` and ``isInDesiredConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.agent.staging.imagemode import embedded
from syncline.machineconfig.names import (
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_DRAIN,
    DESIRED_IMAGE,
    DONE,
    LAST_DRAIN,
    STATE,
)

__all__ = ["Due", "DueError", "OnDisk", "drain_is_open", "reported_by", "update_due"]


class DueError(ValueError):
    """A node whose desired state cannot be determined; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class OnDisk:
    """What ``currentconfig`` and ``currentimage`` hold. ``image``: of image mode, else empty."""

    config: Obj
    image: str = ""


@dataclass(frozen=True, slots=True)
class Reported:
    """What the cluster says that a node has, and is to have."""

    current: Obj
    desired: Obj
    state: str
    current_image: str = ""
    desired_image: str = ""

    @property
    def arrived(self) -> bool:
        """It has what it is to have."""
        return (name_of(self.current), self.current_image) == (name_of(self.desired), self.desired_image)

    @property
    def label(self) -> str:
        """For people and metrics."""
        image = f" / Image: {self.current_image}" if self.current_image else ""
        return f"MachineConfig: {name_of(self.current)}{image}"


@dataclass(frozen=True, slots=True)
class Due:
    """An update. ``old`` is what the disk has, or what the node says where the disk says nothing."""

    old: Obj
    new: Obj
    old_image: str = ""
    new_image: str = ""

    @property
    def arrived(self) -> bool:
        """The disk has it already: only the node does not say so yet."""
        return (name_of(self.old), self.old_image) == (name_of(self.new), self.new_image)

    @property
    def embedded(self) -> tuple[Obj, Obj]:
        """Both configs with the images that they come with."""
        return embedded(self.old, self.old_image), embedded(self.new, self.new_image)


def reported_by(node: Obj, configs: Mapping[str, Obj]) -> Reported:
    """What a node says after a boot, before the disk is examined. Raises DueError."""
    current, desired = _said(node, CURRENT), _said(node, DESIRED)
    now = _config(configs, current)
    notes = annotations_of(node)
    state = notes.get(STATE) or DONE  # machines of old releases joined without one
    wanted = now if current == desired else _config(configs, desired)
    return Reported(now, wanted, state, notes.get(CURRENT_IMAGE, ""), notes.get(DESIRED_IMAGE, ""))


def update_due(node: Obj, configs: Mapping[str, Obj], disk: OnDisk | None) -> Due | None:
    """``configs`` by name; ``disk``: None where it says nothing. None: the node has what it is to have, and says so;
    one that says anything but Done is updated again. Raises DueError."""
    wanted = _noted(node).get(DESIRED, "")
    desired = _config(configs, wanted)
    current = _config(configs, _said(node, CURRENT))
    state = _said(node, STATE)
    image = annotations_of(node).get(DESIRED_IMAGE, "")
    if disk is not None and name_of(disk.config) != name_of(current):
        return Due(disk.config, desired, disk.image, image)
    if disk is None:
        try:
            report = reported_by(node, configs)
        except DueError as error:
            raise DueError(f"could not get the state: {error}") from error
        disk = OnDisk(report.current, report.current_image)
    if state == DONE and wanted == name_of(current) and image == disk.image:
        return None
    return Due(disk.config, desired, disk.image, image)


def drain_is_open(node: Obj) -> bool:
    """A drain or uncordon was asked for that has not been done: nothing else is examined before."""
    notes = annotations_of(node)
    asked = notes.get(DESIRED_DRAIN, "")
    return bool(asked) and asked != notes.get(LAST_DRAIN, "")


def _noted(node: Obj) -> Mapping[str, str]:
    if dig(node, "metadata", "annotations") is None:
        raise DueError("node object is nil")
    return annotations_of(node)


def _said(node: Obj, key: str) -> str:
    """An annotation that has to be there, be it empty."""
    found = _noted(node).get(key)
    if found is None:
        raise DueError(f"{key} annotation not found on node '{name_of(node)}'")
    return found


def _config(configs: Mapping[str, Obj], name: str) -> Obj:
    found = configs.get(name)
    if found is None:
        raise DueError(f'machineconfig.machineconfiguration.openshift.io "{name}" not found')
    return found
