"""Names of upstream's machine config objects: kinds, annotations, states, taint.

Shared by the packages of ``machineconfig``. Source: reference machine-config 1.10; constants of the Machine Config
Operator. Names under ``syncline.dev`` are ours (docs/extensions.md).
"""

from __future__ import annotations

from syncline.kube.kinds import machineconfiguration as kinds
from syncline.kube.kinds.machineconfiguration import GROUP
from syncline.kube.objects import Obj

__all__ = [
    "ARBITER",
    "CONTROLLER_CONFIG",
    "CONTROLLER_CONFIG_NAME",
    "CURRENT",
    "CURRENT_IMAGE",
    "DESIRED",
    "DESIRED_DRAIN",
    "DESIRED_IMAGE",
    "DONE",
    "ENCAPSULATED",
    "FAILED_STATES",
    "FIRST_PIVOT",
    "GENERATED_BY",
    "GENERATED_VERSION",
    "GROUP",
    "INSTALLED",
    "LABELS_APPLIED",
    "LAST_DRAIN",
    "MACHINE_CONFIG",
    "MACHINE_CONFIG_NODE",
    "MASTER",
    "NODE_ANNOTATIONS",
    "NOT_YET_SET",
    "OVERRIDDEN",
    "POOL",
    "REASON",
    "RELEASE",
    "ROLE",
    "STATE",
    "TOPOLOGY",
    "UPDATE_TAINT",
    "WORKER",
    "annotation",
]

POOL = kinds.MACHINE_CONFIG_POOL.group_kind
MACHINE_CONFIG = kinds.MACHINE_CONFIG.group_kind
MACHINE_CONFIG_NODE = kinds.MACHINE_CONFIG_NODE.group_kind
CONTROLLER_CONFIG = kinds.CONTROLLER_CONFIG.group_kind
CONTROLLER_CONFIG_NAME = "machine-config-controller"
"""The only ControllerConfig."""


def annotation(suffix: str) -> str:
    """Return the full key of one of upstream's annotations."""
    return f"{GROUP}/{suffix}"


CURRENT = annotation("currentConfig")
DESIRED = annotation("desiredConfig")
CURRENT_IMAGE = annotation("currentImage")
DESIRED_IMAGE = annotation("desiredImage")
STATE = annotation("state")
REASON = annotation("reason")
DESIRED_DRAIN = annotation("desiredDrain")
LAST_DRAIN = annotation("lastAppliedDrain")
FIRST_PIVOT = annotation("firstPivotConfig")
LABELS_APPLIED = annotation("customPoolLabelsApplied")
TOPOLOGY = annotation("controlPlaneTopology")

ROLE = annotation("role")
"""Label of a MachineConfig: the pool that it is meant for."""
GENERATED_BY = annotation("generated-by-controller-version")
"""Annotation of a generated MachineConfig: the build hash of its controller."""
GENERATED_VERSION = annotation("generated-by-version")
"""Annotation of a ControllerConfig: the version of its creator."""
RELEASE = annotation("release-image-version")
OVERRIDDEN = annotation("os-image-url-overridden")
"""Annotation of a rendered config: a user's MachineConfig sets the OS image."""

ENCAPSULATED = "/etc/ignition-machine-config-encapsulated.json"
"""The MachineConfig of the first boot as the config server sends it, without its files."""
NODE_ANNOTATIONS = "/etc/machine-config-daemon/node-annotations.json"
"""The first annotations of a joining machine's node."""
INSTALLED = "/etc/mcs-machine-config-content.json"
"""The complete MachineConfig that a machine was installed with."""

DONE = "Done"
FAILED_STATES = ("Degraded", "Unreconcilable")
"""States after a failed update."""
NOT_YET_SET = "not-yet-set"
"""Value of an unknown pool or config in a MachineConfigNode."""
MASTER, WORKER, ARBITER = "master", "worker", "arbiter"
UPDATE_TAINT: Obj = {"key": "UpdateInProgress", "effect": "PreferNoSchedule"}
