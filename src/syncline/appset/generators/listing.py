"""The ``list`` generator: elements as written, and those of a YAML text."""

from __future__ import annotations

from typing import Any

from syncline.appset.generators.context import Context, Row, Rows
from syncline.appset.generators.errors import GenerationError
from syncline.appset.generators.reading import Element
from syncline.appset.rendering.goforms import GoError, decoded_map, yaml_maps


def rows_of_list(element: Element, context: Context) -> Rows:
    """Return one row for each of ``elements``, then of ``elementsYaml``, which are not flattened."""
    try:
        found = [decoded_map(item) for item in element.items("elements")]
    except GoError as error:
        raise GenerationError(f"error unmarshling list element {error}") from None
    rows = found if context.go else [_flat(row) for row in found]
    text = element.text("elementsYaml")
    if text:
        try:
            rows += yaml_maps(text)
        except GoError as error:
            raise GenerationError(f"error unmarshling decoded ElementsYaml {error}") from None
    return rows


def _flat(found: Row) -> Row:
    row: Row = {}
    for key, value in found.items():
        if key != "values":
            row[key] = _text(value)
        elif isinstance(value, dict):
            row.update({f"values.{name}": _text(item) for name, item in value.items()})
        else:
            raise GenerationError("error parsing values map")
    return row


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise GenerationError("error parsing value as string %!w(<nil>)")
    return value
