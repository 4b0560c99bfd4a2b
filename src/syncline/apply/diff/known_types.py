"""Normalizes fields of custom resources that hold Kubernetes types.

Called by normalization with the settings of the object's kind; then ``1000m`` and ``1`` are the same quantity. Pure.
Rules: Argo CD ``util/argo/normalizers/knowntypes_normalizer.go``; a value that does not fit its type stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syncline.apply.diff.model import KnownTypeField
from syncline.apply.diff.typed import retyped
from syncline.kube.objects import GroupKind, Obj
from syncline.kube.schema.model import definition
from syncline.kube.text.durations import DurationError, format_duration, parse_duration
from syncline.kube.text.quantity import QuantityError, parse_quantity

BUILT_IN = {GroupKind("argoproj.io", "Rollout"): (KnownTypeField("spec.template.spec", "core/v1/PodSpec"),)}
"""Fields that are known without a setting."""
API = "io.k8s.api."
RESOURCE_LIST = "core/v1/ResourceList"


def spelled(obj: Obj, fields: Iterable[KnownTypeField]) -> Obj:
    """Return ``obj`` with each of these fields in canonical form; a path covers all items of a list."""
    for known in fields:
        obj = _at(obj, known.field.split("."), known.type)
    return obj


def _at(value: Any, path: list[str], type_name: str) -> Any:
    if not path:
        return _canonical(value, type_name)
    if isinstance(value, list):
        return [_at(item, path, type_name) for item in value]
    if isinstance(value, dict) and path[0] in value:
        return value | {path[0]: _at(value[path[0]], path[1:], type_name)}
    return value


def _quantities(value: Any) -> Any:
    """Normalize a map of quantities, which has no schema; unchanged if a value is not a quantity."""
    try:
        return {key: str(parse_quantity(one)) for key, one in value.items()} if isinstance(value, dict) else value
    except (QuantityError, TypeError, AttributeError):
        return value


def _canonical(value: Any, type_name: str) -> Any:
    try:
        if type_name == "core/Quantity":
            return str(parse_quantity(value))
        if type_name == "meta/v1/Duration":
            return format_duration(parse_duration(value))
    except (QuantityError, DurationError, TypeError, AttributeError):
        return value
    if isinstance(value, list):
        return [_canonical(item, type_name) for item in value]
    if type_name == RESOURCE_LIST:
        return _quantities(value)
    schema = definition(API + type_name.replace("/", "."))
    return value if schema is None or not isinstance(value, dict) else retyped(value, schema)
