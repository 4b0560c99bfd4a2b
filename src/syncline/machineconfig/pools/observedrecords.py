"""Parts of a MachineConfigNode that a pool's status needs, read once per version; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from syncline.kube.objects import Obj, dig, name_of


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """Facts of a record. ``speaks``: it has conditions. ``degraded``: its message if it reports Degraded, else None.
    ``pinned``: all images to pin are pulled."""

    name: str
    speaks: bool
    degraded: str | None
    pinned: bool


class ObservedRecord(dict[str, Any]):
    """An immutable MachineConfigNode, equal to its object, with its facts."""

    __slots__ = ("facts",)

    def __init__(self, record: Obj) -> None:
        super().__init__(record)
        self.facts = _read(record)


def record_facts(record: Obj) -> RecordFacts:
    return record.facts if type(record) is ObservedRecord else _read(record)


def _read(record: Obj) -> RecordFacts:
    conditions = dig(record, "status", "conditions", default=[])
    degraded = [each for each in conditions if each.get("type") == "NodeDegraded" and each.get("status") == "True"]
    message = str(degraded[0].get("message") or "") if degraded else None
    sets = dig(record, "status", "pinnedImageSets", default=[])
    return RecordFacts(name_of(record), bool(conditions), message, all(_pinned(each) for each in sets))


def _pinned(image_set: Obj) -> bool:
    desired = int(image_set.get("desiredGeneration") or 0)
    return desired > 0 and int(image_set.get("currentGeneration") or 0) == desired
