"""Finds fields that a variant forbids in the result of a translation: :func:`forbidden`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from syncline.ignition.butane.places import Finding, error
from syncline.ignition.butane.variants import Spec
from syncline.ignition.report import Path
from syncline.ignition.schema import Object, schema


def forbidden(spec: Spec, config: dict[str, Any], prefix: Path) -> Iterator[Finding]:
    """Yield findings for forbidden fields with a value, in the order of the result.

    ``config`` is canonical; ``prefix`` is its path in the result, and filters are paths from the root of the result.
    """
    if spec.filters:
        named = tuple(str(step) for step in prefix)
        yield from _walk(spec, schema(spec.base - 1).root, config, prefix, named)


def _walk(spec: Spec, kind: Object, value: dict[str, Any], path: Path, named: tuple[str, ...]) -> Iterator[Finding]:
    objects = schema(spec.base - 1).objects
    for name, known in kind.fields.items():
        part = value.get(name)
        if part is None:
            continue
        inner = (*named, name)
        message = spec.filters.get(inner)
        if message is not None:
            if part not in ([], {}) and not (part == "" and inner in spec.ignored_zeros):
                yield error((*path, name), message, result=True)
            continue
        if known.scalar:
            continue
        if known.many:
            for index, item in enumerate(part):
                yield from _walk(spec, objects[known.type], item, (*path, name, index), inner)
        else:
            yield from _walk(spec, objects[known.type], part, (*path, name), inner)
