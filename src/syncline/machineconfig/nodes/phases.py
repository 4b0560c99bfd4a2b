"""Conditions of a MachineConfigNode, which show the progress of a node's update; pure. Entry point: :func:`advance`.

The drain controller writes cordon, drain and uncordon, the node agent all others. A phase has a parent condition and
sometimes a child; ``Updated`` resets all others. Source: Machine Config Operator ``pkg/upgrademonitor``, reference
machine-config 6.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_time
from syncline.kube.objects import Obj, annotations_of, dig
from syncline.machineconfig.names import CURRENT, CURRENT_IMAGE, DESIRED, DESIRED_IMAGE, NOT_YET_SET

IMAGE_MODE_GATE = "ImageModeStatusReporting"
_BEFORE_FILES = (
    "UpdatePrepared",
    "UpdateExecuted",
    "UpdatePostActionComplete",
    "UpdateComplete",
    "Resumed",
    "Drained",
)
_AFTER_FILES = ("Cordoned", "RebootedNode", "Updated", "Uncordoned")
_SINGLETONS = ("PinnedImageSetsDegraded", "PinnedImageSetsProgressing")
"""Conditions that are written even if they do not change."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A condition to set. ``status``: True, False or Unknown."""

    type: str
    status: str
    reason: str
    message: str

    def at(self, now: datetime) -> Obj:
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": format_time(now),
        }


def _all_types(image_mode: bool) -> tuple[str, ...]:
    files = ("AppliedFiles", "AppliedOSImage") if image_mode else ("AppliedFilesAndOS",)
    pulled = ("ImagePulledFromRegistry",) if image_mode else ()
    return (*_BEFORE_FILES, *files, *_AFTER_FILES, *pulled, "NodeDegraded", *_SINGLETONS)


def advance(
    mcn: Obj, node: Obj, parent: Phase, child: Phase | None, now: datetime, *, image_mode: bool = False
) -> Obj | None:
    """Return the MachineConfigNode's status with the phase, or None if nothing changes.

    If the parent's status and message are equal, the child is ignored, as upstream.
    """
    status: Obj = dict(mcn.get("status") or {})
    old = status.get("conditions")
    if not old:
        conditions: list[Obj] | None = _first(parent, child, now, image_mode)
    else:
        conditions = _next(old, mcn, parent, child, now)
    if conditions is None:
        return None
    status["conditions"] = conditions
    status["configVersion"] = _version(status.get("configVersion") or {}, node, parent)
    if image_mode:
        found = annotations_of(node)
        images = {"currentImage": found.get(CURRENT_IMAGE, ""), "desiredImage": found.get(DESIRED_IMAGE, "")}
        status["configImage"] = {key: value for key, value in images.items() if value}
    return None if status == (mcn.get("status") or {}) else status


def _first(parent: Phase, child: Phase | None, now: datetime, image_mode: bool) -> list[Obj]:
    """Return the first conditions, all at once; phases that have not occurred are False."""
    found = [parent.at(now)] + ([child.at(now)] if child is not None else [])
    known = {each["type"] for each in found}
    for kind in _all_types(image_mode):
        if kind not in known:
            text = f"This node has not yet entered the {kind} phase"
            found.append(Phase(kind, "False", "NotYetOccurred", text).at(now))
    return found


def _next(old: list[Obj], mcn: Obj, parent: Phase, child: Phase | None, now: datetime) -> list[Obj] | None:
    reset = parent.type == "Updated"
    found: list[Obj] = []
    has_child = has_parent = False
    for condition in old:
        kind = condition.get("type")
        if kind == "Updated" and condition.get("status") == "True" and not reset:
            found.append(condition)
        elif child is not None and kind == child.type:
            has_child = True
            found.append(child.at(now))
        elif kind == parent.type:
            has_parent = True
            if kind not in _SINGLETONS and _same(condition, parent):
                return None
            found.append(parent.at(now))
        elif reset and condition.get("status") != "False":
            found.append(_put_back(condition, mcn, now))
        else:
            found.append(condition)
    found += [child.at(now)] if child is not None and not has_child else []
    return found if has_parent else [*found, parent.at(now)]


def _same(condition: Obj, phase: Phase) -> bool:
    return (condition.get("status"), condition.get("message") or "") == (phase.status, phase.message)


def _put_back(condition: Obj, mcn: Obj, now: datetime) -> Obj:
    target = str(dig(mcn, "spec", "configVersion", "desired", default="") or "")
    desired = dig(mcn, "spec", "configImage", "desiredImage", default="") or ""
    if desired != (dig(mcn, "status", "configImage", "currentImage", default="") or ""):
        target = desired or "disable image mode"
    message = f"Action during update to {target}: {condition.get('message') or ''}"
    return condition | {"status": "False", "message": message, "lastTransitionTime": format_time(now)}


def _version(old: Obj, node: Obj, parent: Phase) -> Obj:
    """Return the configVersion; desired stays unknown until the update was found compatible."""
    found = annotations_of(node)
    prepares = parent.type == "UpdatePrepared"
    known = parent.status == "True" if prepares else bool(found.get(DESIRED))
    version = dict(old) | {"desired": found.get(DESIRED, "") if known else NOT_YET_SET}
    return version | ({"current": found[CURRENT]} if found.get(CURRENT) else {})
