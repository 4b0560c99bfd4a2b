"""Reads the values of Secret objects for the masker: :func:`secret_masker`.

Called by rooms that repeat texts of programs, APIs and repositories. Pure; tolerates what a manifest may contain: wrong
types, ``stringData``, misspelt fields, and the last-applied annotation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from syncline.base.masking import Masker, credential_values, decoded
from syncline.kube.objects import Obj, annotations_of, gvk_of, name_of, namespace_of

PLAIN_FIELDS = ("apiVersion", "kind", "metadata", "type", "immutable")
"""Fields of a Secret without secret values."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_DEPTH = 20


def is_secret(obj: Obj) -> bool:
    """Return True if the object is a Secret of the core group."""
    gvk = gvk_of(obj)
    return (gvk.group, gvk.kind) == ("", "Secret")


def secret_values(obj: Obj, hidden: Iterable[str] = ()) -> Iterator[str]:
    """Yield every secret text of an object, decoded; ``hidden`` names annotations that are secret as well."""
    secret = obj.get("kind") == "Secret" and is_secret(obj)
    if not secret and not hidden:
        return
    annotations = annotations_of(obj)
    yield from (str(annotations[name]) for name in hidden if annotations.get(name))
    if not secret:
        return
    yield from _values(obj)
    try:
        note = json.loads(annotations.get(LAST_APPLIED) or "null")
    except (ValueError, RecursionError):
        return
    if isinstance(note, dict):
        yield from _values(note)


def _values(obj: Obj) -> Iterator[str]:
    for field, value in obj.items():
        if field not in PLAIN_FIELDS:
            for text in _texts(value, MAX_DEPTH):
                yield text
                plain = decoded(text) if field == "data" else ""
                if plain:
                    yield plain
                yield from credential_values(plain or text)


def _texts(value: Any, depth: int) -> Iterator[str]:
    if depth and isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part, depth - 1)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def secret_masker(objects: Callable[[], Iterable[Obj]], hidden: Iterable[str] = ()) -> Masker:
    """Return a masker of the Secrets among ``objects``, which are read at the first text. Names, namespaces and kinds
    of the objects are not masked, even if a Secret contains them."""

    def values() -> Iterator[str]:
        for obj in objects():
            yield from secret_values(obj, hidden)

    def plain() -> set[str]:
        return {text for obj in objects() for text in (name_of(obj), namespace_of(obj), str(obj.get("kind") or ""))}

    return Masker(values, plain)
