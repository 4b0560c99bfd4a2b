"""Shows of an answer only what a caller of REST asks for: ``?fields=items.metadata.name,items.spec``. Pure.

Rule: the forwarders of upstream (argoproj/pkg ``grpc/http``): a field is kept with its parents and all below it; a
leading ``-`` drops the named fields instead. Lists add nothing to a path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import msgspec

from syncline.kube.protobuf.writing import Encoded

MAX_KEPT = 4
"""Choices that are kept of one object: pages ask for the same fields again and again."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The fields of one request, as paths."""

    fields: frozenset[str]
    exclude: bool
    parents: frozenset[str]
    """Every beginning of a path."""


def chosen(query: str) -> Choice | None:
    """Return what a query asks to see, None for all."""
    if "fields=" not in query:
        return None
    text = parse_qs(query).get("fields", [""])[0]
    if not text:
        return None
    fields = frozenset(text.removeprefix("-").split(","))
    parents = frozenset(
        ".".join(parts[:end]) for parts in (field.split(".") for field in fields) for end in range(1, len(parts))
    )
    return Choice(fields, text.startswith("-"), parents)


def project(value: Any, choice: Choice, path: str = "") -> Any:
    """Return what ``choice`` leaves of a JSON value. An object that is kept encoded keeps what is chosen of it."""
    if type(value) is Encoded:
        return msgspec.Raw(_kept(value, choice, path))
    if isinstance(value, list):
        return [project(item, choice, path) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for name, item in value.items():
        at = f"{path}.{name}" if path else name
        if at in choice.fields:
            if not choice.exclude:
                made[name] = item
        elif choice.exclude or at in choice.parents:
            made[name] = project(item, choice, at)
    return made


def _kept(value: Encoded, choice: Choice, path: str) -> bytes:
    found = value.parts.get((choice, path))
    if found is None:
        if len(value.parts) >= MAX_KEPT:
            value.parts.clear()
        found = msgspec.json.encode(project(msgspec.json.decode(value.json), choice, path))
        value.parts[(choice, path)] = found
    return found
