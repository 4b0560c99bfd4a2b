"""What Kubernetes' own types make of an object: the shape it has after a trip through them.

Called by the diff for both sides, so that spelling (quantities, empty fields, defaults) is never a difference. Objects
are never changed; a kind that Kubernetes does not define itself comes back as it is. Rules: gitops-engine
``pkg/diff`` (``remarshal``, ``applyPatch``) and its ``jsonutil``.
"""

from __future__ import annotations

import copy
from typing import Any

from syncline.kube.defaults import fill_defaults
from syncline.kube.defaults.shape import tidy
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, gvk_of
from syncline.kube.quantity import QuantityError, parse_quantity
from syncline.kube.schema.model import Schema, schema_for

__all__ = ["builtin_schema", "keep_fields", "keep_list_fields", "remarshal", "with_defaults"]

FOREIGN_GROUPS = ("apiextensions.k8s.io", "apiregistration.k8s.io")
"""Served by every cluster, but not among the types that the comparison knows: compared like custom resources."""
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"


class _Misfit(Exception):
    """A value that does not fit its Go type, or a field that the type does not have."""


def builtin_schema(obj: Obj) -> Schema | None:
    """The schema of a kind that Kubernetes defines itself, None for all others."""
    gvk = gvk_of(obj)
    return None if gvk.group in FOREIGN_GROUPS else schema_for(gvk)


def remarshal(obj: Obj) -> Obj:
    """``obj`` spelled as Kubernetes spells it; nothing is added. As it is if it does not fit its type."""
    schema = builtin_schema(obj)
    if schema is None:
        return obj
    try:
        typed = _typed(obj, schema, strict=True)
    except _Misfit:
        return obj
    tidy(typed)
    return keep_fields(obj, typed)


def with_defaults(obj: Obj) -> Obj:
    """``obj`` with everything that Kubernetes fills in and without what it does not know.

    Raises ValueError where a value does not fit its type.
    """
    schema = builtin_schema(obj)
    if schema is None:
        return obj
    try:
        typed: Obj = _typed(obj, schema, strict=False)
        fill_defaults(gvk_of(typed), typed)
    except (_Misfit, ApiError) as error:
        raise ValueError(str(error)) from error
    return typed


def _typed(value: Any, schema: Schema, *, strict: bool) -> Any:
    """A fresh copy of ``value`` as its type would hold it."""
    if value is None:
        return None
    if schema.name == QUANTITY:
        return _quantity(value)
    if isinstance(value, dict):
        return _typed_map(value, schema, strict)
    if isinstance(value, list):
        if schema.type not in ("array", "") or schema.int_or_string:
            raise _Misfit("a list is not expected here")
        items = schema.items
        return [copy.deepcopy(item) if items is None else _typed(item, items, strict=strict) for item in value]
    _check_scalar(value, schema)
    return value


def _typed_map(value: Obj, schema: Schema, strict: bool) -> Obj:
    if schema.type not in ("object", ""):
        raise _Misfit("an object is not expected here")
    if not schema.properties and schema.additional is None:
        return copy.deepcopy(value)
    made: Obj = {}
    for key, item in value.items():
        field = schema.field(key)
        if field is None:
            if strict:
                raise _Misfit(f'unknown field "{key}"')
            continue
        made[key] = "" if item is None and _is_text_of_map(key, schema, field) else _typed(item, field, strict=strict)
    return made


def _is_text_of_map(key: str, schema: Schema, field: Schema) -> bool:
    """Go reads a null as the empty text where texts are the values of a map."""
    return key not in schema.properties and field.type == "string"


def _quantity(value: Any) -> str:
    try:
        return str(parse_quantity(value))
    except (QuantityError, TypeError) as error:
        raise _Misfit(str(error)) from error


def _check_scalar(value: Any, schema: Schema) -> None:
    kind = schema.type
    if kind in ("object", "array"):
        fits = False
    elif kind == "boolean":
        fits = isinstance(value, bool)
    elif kind == "integer":
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)
    elif kind == "number":
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif kind == "string" and schema.format != "int-or-string":
        fits = isinstance(value, str)
    else:
        fits = True
    if not fits:
        raise _Misfit(f"expected {kind}")


def keep_fields(wanted: Obj, obj: Obj) -> Obj:
    """``obj`` without the fields that ``wanted`` does not have, at any depth; list items go by position."""
    return {key: _kept(item, obj[key]) for key, item in wanted.items() if key in obj}


def keep_list_fields(wanted: list[Any], items: list[Any]) -> list[Any]:
    """The same for lists; surplus items stay as they are."""
    kept = [_kept(one, item) for one, item in zip(wanted, items)]
    return kept + items[len(kept) :]


def _kept(wanted: Any, value: Any) -> Any:
    if isinstance(wanted, dict) and isinstance(value, dict):
        return keep_fields(wanted, value)
    if isinstance(wanted, list) and isinstance(value, list):
        return keep_list_fields(wanted, value)
    return value
