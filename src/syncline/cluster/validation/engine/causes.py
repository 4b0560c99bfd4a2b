"""Create the causes for which Kubernetes refuses a field, in its words.

Every validator of this package calls it with a path and a value, and gets a :class:`FieldCause`, whose ``message`` is
the part after ``field: ``. Source: Kubernetes apimachinery ``pkg/util/validation/field``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from syncline.kube.errors import FieldCause


def go_text(value: Any) -> str:
    """Format a value as Go does in an error: JSON unless it is a plain number or word."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def required(path: str, why: str = "") -> FieldCause:
    return FieldCause("FieldValueRequired", f"Required value: {why}" if why else "Required value", path)


def invalid(path: str, value: Any, why: str) -> FieldCause:
    detail = f": {why}" if why else ""
    return FieldCause("FieldValueInvalid", f"Invalid value: {go_text(value)}{detail}", path)


def invalid_whole(path: str, why: str) -> FieldCause:
    """Return an invalid cause without the value (``OmitValueType``)."""
    return FieldCause("FieldValueInvalid", f"Invalid value: {why}", path)


def forbidden(path: str, why: str) -> FieldCause:
    return FieldCause("FieldValueForbidden", f"Forbidden: {why}", path)


def unsupported(path: str, value: Any, allowed: Iterable[str]) -> FieldCause:
    """Return an unsupported cause; allowed values appear in the given order, which is Kubernetes' own per field."""
    listed = ", ".join(go_text(one) for one in allowed)
    return FieldCause(
        "FieldValueNotSupported", f"Unsupported value: {go_text(value)}: supported values: {listed}", path
    )


def duplicate(path: str, value: Any) -> FieldCause:
    return FieldCause("FieldValueDuplicate", f"Duplicate value: {go_text(value)}", path)


def not_found(path: str, value: Any) -> FieldCause:
    return FieldCause("FieldValueNotFound", f"Not found: {go_text(value)}", path)


def too_long(path: str, most_bytes: int) -> FieldCause:
    return FieldCause("FieldValueTooLong", f"Too long: may not be more than {most_bytes} bytes", path)


def too_many(path: str, found: int, most: int) -> FieldCause:
    things = "item" if most == 1 else "items"
    return FieldCause("FieldValueTooMany", f"Too many: {found}: must have at most {most} {things}", path)
