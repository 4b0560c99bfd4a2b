"""Normalizes an object like Kubernetes' typed encoding: which fields are omitted when empty, and which always exist.

Called by :mod:`syncline.kube.defaults.fill` before a kind's defaults; see :func:`as_typed`. Kubernetes stores Go
structs, so a null or an empty list disappears, a plain struct is always written, and a list that is not optional
becomes null. The marks of Go's types are in ``protobuf.json.xz`` (built by ``tools/build_protobuf.py``); each type is
compiled once into a :class:`_Plan`. This module knows nothing about the meaning of fields and refuses nothing:
:mod:`syncline.kube.patching.fields` has refused values that do not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from syncline.kube.objects import Obj
from syncline.kube.schema import store
from syncline.kube.text.quantity import QuantityError, parse_quantity

MAX_DEPTH = 100
"""Deeper than any built-in kind; deeper input is not changed here and refused elsewhere."""

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_SCALAR_ZEROS: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0, "bytes": None}
_OWN_FORM: dict[str, Any] = {
    f"{_META}.Time": None,
    f"{_META}.MicroTime": None,
    f"{_META}.Duration": "0s",
    f"{_META}.FieldsV1": None,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": None,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": 0,
    _QUANTITY: "0",
}
"""Types with their own JSON encoding in Go, and their zero values."""

Change = Callable[[Any, int, Any], Any]
"""Given a value, its depth and what a normalized object has there, returns the normalized value, or the value itself if
nothing changes."""


def canonical(value: Any) -> Any:
    """Return the canonical quantity; an invalid one is left for a later error."""
    if value is None:
        return "0"
    try:
        return str(parse_quantity(value.strip() if isinstance(value, str) else value))
    except (QuantityError, TypeError):
        return value


_NOTHING: Obj = {}

_EMPTY_IS_SAID = {("HPAScalingRules", "policies")}
"""Lists with a default that replaces a missing list but not an empty one."""


class _Plan:
    """One Go struct: fields that may be omitted, fields always written, fields with nested structs."""

    __slots__ = ("always", "below", "vanishing")

    def __init__(self) -> None:
        self.vanishing: dict[str, tuple[Any, ...]] = {}
        """The values of a field that are omitted."""
        self.always: list[tuple[str, Any, str]] = []
        """A field with its zero value, or the message whose zero value it has."""
        self.below: dict[str, Change] = {}


def as_typed(message: str, obj: Obj, *, stored: bool = True, known: Obj | None = None) -> None:
    """Normalize ``obj``, of the named definition, in place. The caller owns it.

    ``stored``: as read back from storage (protobuf), which does not distinguish empty from missing lists, so that an
    empty list that is not optional becomes null; otherwise it stays empty. ``known``: a normalized object with which it
    shares parts; these are not looked at.
    """
    if message in store.protobuf_table():
        _object(_plan(message, stored), obj, 0, known)


def _object(plan: _Plan, obj: Obj, depth: int, known: Any) -> None:
    vanishing, below = plan.vanishing, plan.below
    before = known if isinstance(known, dict) else _NOTHING
    gone: list[str] = []
    for key, value in obj.items():
        was = before.get(key)
        if value is was and value is not None:
            continue
        empty = vanishing.get(key)
        if value is None or (empty is not None and not value and value in empty):
            gone.append(key)
        elif key in below:
            changed = below[key](value, depth, was)
            if changed is not value:
                obj[key] = changed
    for key in gone:
        del obj[key]
    for key, zero, message in plan.always:
        if key not in obj:
            obj[key] = _zero(message) if message else zero


def _zero(message: str) -> Obj:
    made: Obj = {}
    _object(_plan(message), made, 0, None)
    return made


@cache
def _plan(message: str, stored: bool = True) -> _Plan:
    plan = _Plan()
    for _, name, kind, marks in store.protobuf_table()[message]:
        if "~" in marks and kind not in _OWN_FORM:
            inner = _plan(kind, stored)
            plan.vanishing |= inner.vanishing
            plan.below |= inner.below
            if "*" not in marks:
                plan.always += inner.always
            continue
        change = _change(kind, marks, stored)
        if change is not None:
            plan.below[name] = change
        if (message.rpartition(".")[2], name) not in _EMPTY_IS_SAID:
            _emptiness(plan, name, kind, marks, stored)
    return plan


def _emptiness(plan: _Plan, name: str, kind: str, marks: str, stored: bool) -> None:
    """Add when a field is omitted, and its value otherwise (Go's encoder: ``omitempty``, ``omitzero``)."""
    optional = "?" in marks or "0" in marks
    if "{" in marks or "[" in marks or _is_list(kind):
        if optional or stored:
            plan.vanishing[name] = ([], {})
        if not optional:
            plan.always.append((name, None, ""))
    elif "*" in marks:
        if not optional:
            plan.always.append((name, None, ""))
    elif kind in _SCALAR_ZEROS:
        if optional:
            plan.vanishing[name] = (_SCALAR_ZEROS[kind], "")
        else:
            plan.always.append((name, _SCALAR_ZEROS[kind], ""))
    elif "0" in marks:
        plan.vanishing[name] = ({},)
    elif kind in _OWN_FORM:
        # omitempty never omits a struct.
        plan.always.append((name, _OWN_FORM[kind], ""))
    elif kind in store.protobuf_table():
        plan.always.append((name, None, kind))


def _is_list(kind: str) -> bool:
    """Return True for a Go list type that protobuf must wrap in a message."""
    return any("=" in marks for _, _, _, marks in store.protobuf_table().get(kind, ()))


def _change(kind: str, marks: str, stored: bool) -> Change | None:
    if kind == _QUANTITY:
        if "{" in marks:
            return _quantities
        return _quantity_list if "[" in marks else lambda value, _depth, _known: canonical(value)
    if kind == "string" and ("{" in marks or "[" in marks):
        return _texts
    if kind in _OWN_FORM or kind in _SCALAR_ZEROS or kind not in store.protobuf_table() or _is_list(kind):
        return None
    if "{" in marks:
        return _map_of(kind, stored)
    return _list_of(kind, stored) if "[" in marks else _one_of(kind, stored)


def _quantities(value: Any, _depth: int, _known: Any) -> Any:
    if isinstance(value, dict):
        for name, amount in value.items():
            value[name] = canonical(amount)
    return value


def _texts(value: Any, _depth: int, _known: Any) -> Any:
    """Replace null by an empty text in lists and maps of texts."""
    if isinstance(value, dict):
        for name in [name for name, text in value.items() if text is None]:
            value[name] = ""
    elif None in value:
        return [text or "" for text in value]
    return value


def _quantity_list(value: Any, _depth: int, _known: Any) -> Any:
    return [canonical(one) for one in value] if isinstance(value, list) else value


def _one_of(kind: str, stored: bool) -> Change:
    def change(value: Any, depth: int, known: Any) -> Any:
        if isinstance(value, dict) and depth < MAX_DEPTH:
            _object(_plan(kind, stored), value, depth + 1, known)
        return value

    return change


def _list_of(kind: str, stored: bool) -> Change:
    def change(value: Any, depth: int, known: Any) -> Any:
        if isinstance(value, list) and depth < MAX_DEPTH:
            plan, before = _plan(kind, stored), known if isinstance(known, list) else ()
            for index, one in enumerate(value):
                if one is None:
                    one = value[index] = {}
                was = before[index] if index < len(before) else None
                if isinstance(one, dict) and one is not was:
                    _object(plan, one, depth + 1, was)
        return value

    return change


def _map_of(kind: str, stored: bool) -> Change:
    def change(value: Any, depth: int, known: Any) -> Any:
        if isinstance(value, dict) and depth < MAX_DEPTH:
            plan, before = _plan(kind, stored), known if isinstance(known, dict) else _NOTHING
            for name, one in value.items():
                was = before.get(name)
                if isinstance(one, dict) and one is not was:
                    _object(plan, one, depth + 1, was)
        return value

    return change
