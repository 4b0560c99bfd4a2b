"""Shows of an answer only what a caller of REST asks for: ``?fields=items.metadata.name,items.spec``. Pure.

Rule: the forwarders of upstream (argoproj/pkg ``grpc/http``): a field is kept with its parents and all below it; a
leading ``-`` drops the named fields instead. Lists add nothing to a path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs


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
    """Return what ``choice`` leaves of a JSON value."""
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
