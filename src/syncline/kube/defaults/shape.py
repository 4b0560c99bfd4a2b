"""Helpers for the defaults of all kinds, such as :func:`default` and :func:`drop_empty`.

Called after :mod:`syncline.kube.defaults.typed` has normalized the object. They know nothing about the meaning of
fields.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Any

from syncline.kube.errors import BadRequest
from syncline.kube.objects import GVK, Obj
from syncline.kube.text.quantity import QuantityError, from_milli, parse_quantity

ZERO_DROPPED = frozenset(
    {
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "stdin",
        "stdinOnce",
        "tty",
        "readOnly",
        "paused",
        "unschedulable",
        "publishNotReadyAddresses",
        "minReadySeconds",
        "hostPort",
        "nodePort",
        "initialDelaySeconds",
        "observedGeneration",
        "deprecatedCount",
        "generation",
    }
)
"""Plain booleans and numbers with ``omitempty``: false and zero are dropped (but not from pointers)."""


def default(obj: Obj, key: str, value: Any) -> None:
    """Set ``key`` if it is missing, null or an empty text."""
    if obj.get(key) in (None, ""):
        obj[key] = value


def default_number(obj: Obj, key: str, value: int) -> None:
    """Set a number that is missing or zero, which Go cannot distinguish."""
    if not obj.get(key):
        obj[key] = value


def drop_empty(obj: Obj, *keys: str) -> None:
    """Remove empty texts."""
    for key in keys:
        if obj.get(key) == "":
            del obj[key]


def structure(obj: Obj, key: str) -> Obj:
    """Return the structure under ``key``, created if missing; any other value is left for validation."""
    entry = obj.get(key)
    if entry is None:
        entry = obj[key] = {}
    return entry if isinstance(entry, dict) else {}


def items(obj: Any, *path: str) -> Iterator[Obj]:
    """Yield the objects of a list at a path; nothing if it is missing or malformed."""
    here = obj
    for key in path:
        here = here.get(key) if isinstance(here, dict) else None
    for entry in here if isinstance(here, list) else ():
        if isinstance(entry, dict):
            yield entry


def always(obj: Obj, **fields: Any) -> None:
    """Add fields that the encoding never omits."""
    for key, value in fields.items():
        if obj.get(key) is None:
            obj[key] = value


def null_times(conditions: Iterable[Obj], *keys: str) -> None:
    """Set missing times of conditions to null, as older kinds print them."""
    for condition in conditions:
        for key in keys:
            condition.setdefault(key, None)


def undecodable(gvk: GVK, why: str) -> BadRequest:
    """Return the error for a body that does not fit its Go type."""
    return BadRequest(f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {why}')


def canonical_quantity(gvk: GVK, obj: Obj, key: str) -> None:
    """Normalize one quantity; raises BadRequest if it is invalid."""
    if obj.get(key) is None:
        return
    try:
        obj[key] = str(parse_quantity(obj[key]))
    except (QuantityError, TypeError) as error:
        raise undecodable(gvk, str(error)) from error


def canonical_quantities(gvk: GVK, obj: Any, *keys: str) -> None:
    """Normalize resource lists (maps of quantities); raises BadRequest."""
    for key in keys:
        amounts = obj.get(key) if isinstance(obj, dict) else None
        if isinstance(amounts, dict):
            for name in amounts:
                if amounts[name] is None:
                    amounts[name] = "0"
                canonical_quantity(gvk, amounts, name)
                amounts[name] = _rounded(amounts[name])


def _rounded(text: str) -> str:
    """Round an amount up to a thousandth (``SetDefaults_ResourceList``)."""
    amount = parse_quantity(text)
    return text if amount.is_whole_milli() else str(from_milli(amount.milli()))


def canonical_base64(gvk: GVK, obj: Obj, key: str) -> None:
    """Check a map of base64 texts; raises BadRequest for an invalid one."""
    encoded = obj.get(key)
    if not isinstance(encoded, dict):
        return
    for name in encoded:
        text = encoded[name]
        if text is None:
            encoded[name] = ""
            continue
        try:
            raw = base64.b64decode(str(text).replace("\n", "").replace("\r", ""), validate=True)
        except (binascii.Error, ValueError) as error:
            raise undecodable(gvk, "illegal base64 data at input byte " + str(_first_bad(str(text)))) from error
        encoded[name] = base64.b64encode(raw).decode()


def _first_bad(text: str) -> int:
    """Return the position where Go's decoder stops: the first character outside the alphabet, or the end."""
    alphabet = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n")
    return next((index for index, char in enumerate(text) if char not in alphabet), len(text))
