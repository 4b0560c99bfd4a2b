"""Converts objects to the form they have after decoding into Kubernetes' Go types.

Called by the diff for both sides, so that spelling (quantities, empty fields, defaults) is never a difference. Objects
are never changed; other kinds are returned unchanged. Rules: gitops-engine ``pkg/diff`` (``remarshal``, ``applyPatch``)
and its ``jsonutil``.
"""

from __future__ import annotations

from typing import Any

from syncline.kube.defaults import fill_defaults
from syncline.kube.defaults.shape import ZERO_DROPPED
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, copied, gvk_of
from syncline.kube.schema.model import Schema, schema_for
from syncline.kube.text.quantity import QuantityError, parse_quantity

FOREIGN_GROUPS = ("apiextensions.k8s.io", "apiregistration.k8s.io")
"""Groups that every cluster serves but the comparison has no types for: compared like custom resources."""
EMPTY_DEFAULTS = ("securityContext", "emptyDir")
"""Structures that defaults add without content."""
CONVERTED = ("serviceAccount", "serviceAccountName")
"""Fields that the server sets in version conversion: not defaults, so not restored when removed."""
WRITTEN_EMPTY = ("serviceName",)
"""Optional texts that the server writes even when empty: not defaults."""
ALWAYS_WRITTEN = ("rules", "sources")
"""Optional lists that Go writes even when empty."""
STRUCTURES = ("resources", "spec", "strategy", "template", "updateStrategy")
"""Fields that are Go values, not pointers: null means an empty one."""
POINTERS_TO_TEXT = (
    "apiGroup",
    "holderIdentity",
    "ingressClassName",
    "service",
    "storageClassName",
    "volumeAttributesClassName",
)
POINTERS_TO_NUMBER = ("collisionCount", "terminatingReplicas")
OMITTED_COUNTS = (
    "active",
    "failed",
    "fullyLabeledReplicas",
    "numberAvailable",
    "numberUnavailable",
    "readyReplicas",
    "succeeded",
    "updatedNumberScheduled",
    "updatedReplicas",
)
"""Status counts that Go omits when zero; Deployments omit all of theirs."""
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"


class _Misfit(Exception):
    """A value that does not fit its Go type, or a field that the type does not have."""


def builtin_schema(obj: Obj) -> Schema | None:
    """Return the schema of a built-in kind; None for other kinds."""
    gvk = gvk_of(obj)
    return None if gvk.group in FOREIGN_GROUPS else schema_for(gvk)


def remarshal(obj: Obj) -> Obj:
    """Return ``obj`` in canonical spelling, without additions; unchanged if it does not fit its type."""
    schema = builtin_schema(obj)
    return obj if schema is None else retyped(obj, schema)


def retyped(value: Obj, schema: Schema) -> Obj:
    """As :func:`remarshal`, for any value and its type."""
    try:
        return keep_fields(value, _typed(value, schema, strict=True))
    except _Misfit:
        return value


def with_defaults(obj: Obj) -> Obj:
    """Return ``obj`` with Kubernetes' defaults; nothing is dropped, not even unknown fields. Unchanged if a value does
    not fit its type."""
    schema = builtin_schema(obj)
    if schema is None:
        return obj
    try:
        before: Obj = _typed(obj, schema, strict=False)
        after = copied(before)
        fill_defaults(gvk_of(after), after, stored=False)
    except (_Misfit, ApiError):
        return obj
    return _overlaid(obj, before, after, schema, top=True)


def _overlaid(obj: Obj, before: Obj, after: Obj, schema: Schema | None, *, top: bool = False) -> Obj:
    """Apply the differences between ``before`` and ``after`` to ``obj``; list items match by position, as defaults
    never move them."""
    made = dict(obj)
    for key, value in after.items():
        old, field = before.get(key), schema.field(key) if schema is not None else None
        if top and key == "status":
            made |= _status(obj, value)
        elif key not in before:
            filled = None if key in CONVERTED else _filled(key, value, schema)
            if filled is not None:
                made[key] = filled
        elif isinstance(value, dict) and isinstance(old, dict):
            made[key] = _overlaid(obj[key], old, value, field)
        elif isinstance(value, list) and isinstance(old, list) and len(value) == len(old) == len(obj[key]):
            items = field.items if field is not None else None
            made[key] = [_overlaid_item(*trio, items) for trio in zip(obj[key], old, value, strict=True)]
        elif value != old:
            made[key] = value
    return made


def _overlaid_item(item: Any, before: Any, after: Any, schema: Schema | None) -> Any:
    if isinstance(item, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _overlaid(item, before, after, schema)
    return item


def _status(obj: Obj, status: Any) -> Obj:
    """Return the default of a status: only the first phase is one; the rest is Go's form of an empty status."""
    old = obj.get("status")
    if isinstance(status, dict) and "phase" in status and not (isinstance(old, dict) and old.get("phase")):
        return {"status": (old or {}) | {"phase": status["phase"]}}
    return {}


def _filled(key: str, value: Any, parent: Schema | None) -> Any:
    """Return the fields that a default adds, without those that Go merely writes empty: required fields and structures.
    None if nothing is left."""
    if not isinstance(value, dict):
        required = parent is not None and key in parent.required
        empty = value == "" or (value == 0 and value is not False)
        return None if empty and (required or key in WRITTEN_EMPTY) else value
    field = parent.field(key) if parent is not None else None
    kept = {name: _filled(name, item, field) for name, item in value.items()}
    kept = {name: item for name, item in kept.items() if item is not None}
    return kept if kept or key in EMPTY_DEFAULTS else None


def _typed(value: Any, schema: Schema, *, strict: bool) -> Any:
    """Return a new copy of ``value`` as its type would hold it."""
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
        return [copied(item) if items is None else _typed(item, items, strict=strict) for item in value]
    _check_scalar(value, schema)
    return value


def _typed_map(value: Obj, schema: Schema, strict: bool) -> Obj:
    if schema.type not in ("object", ""):
        raise _Misfit("an object is not expected here")
    if not schema.properties and schema.additional is None:
        fresh: Obj = copied(value)
        return fresh
    made: Obj = {}
    for key, item in value.items():
        field = schema.field(key)
        if field is None:
            if strict:
                raise _Misfit(f'unknown field "{key}"')
            continue
        if item is None and key in STRUCTURES:
            held: Any = _zero(field)
        elif item is None and _is_text_of_map(key, schema, field):
            held = ""
        else:
            held = _typed(item, field, strict=strict)
        if key not in schema.properties or not _vanishes(key, held, schema, field):
            made[key] = held
    return made


def _zero(schema: Schema) -> Any:
    """Return Go's JSON of an empty structure."""
    if schema.properties:
        fields = ((key, schema.field(key)) for key in schema.required)
        return {key: _zero(field) for key, field in fields if field is not None}
    return None


def _vanishes(key: str, value: Any, parent: Schema, field: Schema) -> bool:
    """Return whether Go omits the field: it is empty, optional and no pointer."""
    if key in parent.required or key in ALWAYS_WRITTEN:
        return False
    if value is None or (isinstance(value, list) and not value):
        return True
    if isinstance(value, dict):
        return not value and field.is_map
    if value == "" and isinstance(value, str):
        return key not in POINTERS_TO_TEXT
    zero = value is False or (value == 0 and not isinstance(value, bool))
    counted = key in OMITTED_COUNTS and parent.name.endswith("Status")
    return zero and (key in ZERO_DROPPED or counted or _is_deployment_count(key, parent))


def _is_deployment_count(key: str, parent: Schema) -> bool:
    return parent.name.endswith(".DeploymentStatus") and key not in POINTERS_TO_NUMBER


def _is_text_of_map(key: str, schema: Schema, field: Schema) -> bool:
    """Return whether the value is a text in a map, where Go reads null as the empty text."""
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
    """Return ``obj`` without fields missing in ``wanted``, at any depth; list items match by position."""
    return {key: _kept(item, obj[key]) for key, item in wanted.items() if key in obj}


def keep_list_fields(wanted: list[Any], items: list[Any]) -> list[Any]:
    """As :func:`keep_fields` for lists; surplus items stay."""
    kept = [_kept(one, item) for one, item in zip(wanted, items)]
    return kept + items[len(kept) :]


def _kept(wanted: Any, value: Any) -> Any:
    if isinstance(wanted, dict) and isinstance(value, dict):
        return keep_fields(wanted, value)
    if isinstance(wanted, list) and isinstance(value, list):
        return keep_list_fields(wanted, value)
    return value
