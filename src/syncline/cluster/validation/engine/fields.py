"""Checks that many kinds share: counts, percentages, selectors, text templates.

The validators of this package call it with values and their paths, and get causes. Source: Kubernetes
``apimachinery/pkg/apis/meta/v1/validation`` and ``pkg/apis/core/validation``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import forbidden, invalid, required
from syncline.cluster.validation.engine.metadata import label_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.selectors import Selector, SelectorError, label_selector_from

NATURAL = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def each(owner: Any, key: str, path: str) -> Iterable[tuple[str, Obj]]:
    """Return ``(path[i], entry)`` for a list of objects; nothing if it is missing or malformed."""
    listed = owner.get(key) if isinstance(owner, dict) else None
    if not listed or not isinstance(listed, list):
        return ()
    start = f"{path}.{key}"
    return [(f"{start}[{index}]", entry) for index, entry in enumerate(listed) if isinstance(entry, dict)]


def natural_numbers(owner: Obj, path: str, *keys: str) -> list[FieldCause]:
    """Refuse negative numbers in the given fields."""
    return [
        invalid(f"{path}.{key}", owner[key], NATURAL)
        for key in keys
        if isinstance(owner.get(key), int) and owner[key] < 0
    ]


def immutable(new: Obj, old: Obj, path: str, *keys: str) -> list[FieldCause]:
    return [
        invalid(f"{path}.{key}" if path else key, new.get(key), IMMUTABLE)
        for key in keys
        if new.get(key) != old.get(key)
    ]


def count_or_percent(value: Any, path: str) -> list[FieldCause]:
    """Validate a value such as ``3`` or ``25%``."""
    if isinstance(value, str):
        return [] if re.fullmatch("[0-9]+%", value) else [invalid(path, value, PERCENT)]
    return [invalid(path, value, NATURAL)] if isinstance(value, int) and value < 0 else []


def at_most_100_percent(value: Any, path: str) -> list[FieldCause]:
    percent = re.fullmatch("([0-9]+)%", value) if isinstance(value, str) else None
    return [invalid(path, value, "must not be greater than 100%")] if percent and int(percent[1]) > 100 else []


def amount_of(value: Any) -> int:
    """Return the number in ``3`` or ``25%``, for comparisons with zero."""
    if isinstance(value, str):
        percent = re.fullmatch("([0-9]+)%", value)
        return int(percent[1]) if percent else 0
    return value if isinstance(value, int) else 0


def label_selector_causes(selector: Any, path: str) -> list[FieldCause]:
    """Validate a LabelSelector object (``matchLabels``, ``matchExpressions``)."""
    if not isinstance(selector, dict):
        return []
    causes = label_causes(selector.get("matchLabels"), f"{path}.matchLabels")
    for where, term in each(selector, "matchExpressions", path):
        causes += _expression_causes(term, where)
    return causes


def _expression_causes(term: Obj, where: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    operator, values = term.get("operator", ""), term.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            causes.append(required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(forbidden(f"{where}.values", why))
    else:
        causes.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
    key = str(term.get("key", ""))
    causes += [invalid(f"{where}.key", key, problem) for problem in names.qualified_name(key)]
    for index, value in enumerate(values):
        causes += [invalid(f"{where}.values[{index}]", value, problem) for problem in names.label_value(str(value))]
    return causes


def selector_or_none(selector: Any) -> Selector | None:
    """Return the selector of a LabelSelector object, or None if it is malformed."""
    try:
        return label_selector_from(selector if isinstance(selector, dict) else None)
    except SelectorError:
        return None
