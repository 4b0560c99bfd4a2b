"""Decides whether a node needs an update, and from which to which config; pure. Entry point: :func:`update_due`.

Inputs are its annotations, the named MachineConfigs and the disk's record. The disk takes precedence, since a cluster
restored from a backup is older than its machines. Source: Machine Config Operator ``prepUpdateFromCluster``,
``getStateAndConfigs`` and ``isInDesiredConfig``.
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


class DueError(ValueError):
    """The desired state of the node cannot be determined; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class OnDisk:
    """The content of ``currentconfig`` and ``currentimage``. ``image``: of image mode, else empty."""

    config: Obj
    image: str = ""


@dataclass(frozen=True, slots=True)
class Reported:
    """The current and the desired config of a node, according to its annotations."""

    current: Obj
    desired: Obj
    state: str
    current_image: str = ""
    desired_image: str = ""

    @property
    def arrived(self) -> bool:
        """Return whether current and desired are equal."""
        return (name_of(self.current), self.current_image) == (name_of(self.desired), self.desired_image)

    @property
    def label(self) -> str:
        """Return the current config and image as text for people and metrics."""
        image = f" / Image: {self.current_image}" if self.current_image else ""
        return f"MachineConfig: {name_of(self.current)}{image}"


@dataclass(frozen=True, slots=True)
class Due:
    """An update. ``old`` is the disk's record, or the node's annotation if the disk has none."""

    old: Obj
    new: Obj
    old_image: str = ""
    new_image: str = ""

    @property
    def arrived(self) -> bool:
        """Return whether the disk already has the new config and only the annotation lags."""
        return (name_of(self.old), self.old_image) == (name_of(self.new), self.new_image)

    @property
    def embedded(self) -> tuple[Obj, Obj]:
        """Return both configs with their images of image mode inserted."""
        return embedded(self.old, self.old_image), embedded(self.new, self.new_image)


def reported_by(node: Obj, configs: Mapping[str, Obj]) -> Reported:
    """Return a node's annotations after a boot, before the disk is checked. Raises DueError."""
    current, desired = _said(node, CURRENT), _said(node, DESIRED)
    now = _config(configs, current)
    notes = annotations_of(node)
    state = notes.get(STATE) or DONE  # machines of old releases joined without a state
    wanted = now if current == desired else _config(configs, desired)
    return Reported(now, wanted, state, notes.get(CURRENT_IMAGE, ""), notes.get(DESIRED_IMAGE, ""))


def update_due(node: Obj, configs: Mapping[str, Obj], disk: OnDisk | None) -> Due | None:
    """Return the update, or None if the node has its desired config and reports Done. ``configs`` by name; ``disk``:
    None if it has no record. Raises DueError."""
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
    """Return whether a requested drain or uncordon is not done yet; the agent does nothing else before."""
    notes = annotations_of(node)
    asked = notes.get(DESIRED_DRAIN, "")
    return bool(asked) and asked != notes.get(LAST_DRAIN, "")


def _noted(node: Obj) -> Mapping[str, str]:
    if dig(node, "metadata", "annotations") is None:
        raise DueError("node object is nil")
    return annotations_of(node)


def _said(node: Obj, key: str) -> str:
    """Return a required annotation, which may be empty. Raises DueError."""
    found = _noted(node).get(key)
    if found is None:
        raise DueError(f"{key} annotation not found on node '{name_of(node)}'")
    return found


def _config(configs: Mapping[str, Obj], name: str) -> Obj:
    found = configs.get(name)
    if found is None:
        raise DueError(f'machineconfig.machineconfiguration.openshift.io "{name}" not found')
    return found
