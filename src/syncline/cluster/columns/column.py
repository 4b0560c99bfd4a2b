"""Define a table column, and the cell formats that many kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from syncline.base.clock import parse_time
from syncline.kube.objects import Obj, dig
from syncline.kube.schema.store import column_table, descriptions
from syncline.kube.selectors import SelectorError, label_selector_from

NONE, UNKNOWN = "<none>", "<unknown>"


@dataclass(frozen=True, slots=True)
class Column:
    """metav1 TableColumnDefinition; ``priority`` 1 shows with ``-o wide`` only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def to_obj(self) -> Obj:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


Row = Callable[[Obj, datetime], list[Any]]


@cache
def columns_of(group: str, kind: str) -> tuple[Column, ...]:
    """Return the columns of a built-in kind, with the descriptions of their source fields."""
    table = column_table()
    return tuple(
        Column(name, kind, form, priority, _described(source))
        for name, kind, form, priority, source in table.get(f"{group}/{kind}", table[""])
    )


def _described(source: str) -> str:
    if not source.startswith("$"):
        return source
    definition, _, field = source[1:].rpartition(".")
    return descriptions()[definition][field]


# --- times ---------------------------------------------------------------------------------------------------------

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 86400 * 365


def human_duration(seconds: int) -> str:
    """Return a duration in at most two units: ``5m30s``, ``3d4h`` (apimachinery ``duration.HumanDuration``)."""
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_unit}{rest}{small_unit}" if rest else f"{seconds // large}{large_unit}"


def since(text: Any, now: datetime) -> str:
    if not isinstance(text, str) or not text:
        return UNKNOWN
    try:
        return human_duration(int((now - parse_time(text)).total_seconds()))
    except ValueError:
        return UNKNOWN


def age(obj: Obj, now: datetime) -> str:
    return since(dig(obj, "metadata", "creationTimestamp"), now)


# --- selectors and containers --------------------------------------------------------------------------------------


def labels_text(labels: Any) -> str:
    """Return ``a=b,c=d``, sorted; ``<none>`` if empty."""
    if not isinstance(labels, dict) or not labels:
        return NONE
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def selector_text(selector: Any) -> str:
    """Return a LabelSelector as ``metav1.FormatLabelSelector`` prints it."""
    try:
        text = str(label_selector_from(selector))
    except SelectorError:
        return "<error>"
    return text or NONE


def containers_and_images(pod_spec: Any) -> list[str]:
    containers: Sequence[Any] = dig(pod_spec, "containers", default=[])
    return [_joined(containers, "name"), _joined(containers, "image")]


def _joined(containers: Iterable[Any], field: str) -> str:
    return ",".join(str(container.get(field, "")) for container in containers)
