"""Objects as the rows that kubectl prints.

Called by ``answers`` when a Table is accepted. Columns of built-in kinds stand in ``columns/``; those of custom
resources come from ``additionalPrinterColumns``. Ages are counted from ``now``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from syncline.base.clock import format_time
from syncline.cluster.columns import core, pods, policies, storage, workloads
from syncline.cluster.columns.column import CREATED_AT, NAME, Column, Table, since
from syncline.cluster.resources.registry import Resource
from syncline.kube.objects import Obj, dig, meta
from syncline.kube.text.jsonpath import JsonPath, compile_path

__all__ = ["table_of"]

_TABLES: dict[tuple[str, str], Table] = {
    **pods.TABLES,
    **workloads.TABLES,
    **core.TABLES,
    **storage.TABLES,
    **policies.TABLES,
}


def _by_name(obj: Obj, now: datetime) -> list[Any]:
    return [meta(obj).get("name", ""), dig(obj, "metadata", "creationTimestamp", default=format_time(now))]


_DEFAULT = Table((NAME, CREATED_AT), _by_name)


def table_of(
    resource: Resource,
    objs: Sequence[Obj],
    metadata: Obj,
    now: datetime,
    include: str = "",
    version: str = "v1",
    *,
    headed: bool = True,
) -> Obj:
    """A ``meta.k8s.io`` Table. ``include`` is None, Metadata (the default) or Object. ``headed``: it says what its
    columns are."""
    table = _table_for(resource)
    rows = [{"cells": table.row(obj, now), **_row_object(obj, include, version)} for obj in objs]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": [column.to_obj() for column in table.columns] if headed else None,
        "rows": rows,
    }


def _row_object(obj: Obj, include: str, version: str) -> Obj:
    if include == "None":
        return {"object": None}
    if include == "Object":
        return {"object": obj}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": meta(obj)}
    return {"object": partial}


def _table_for(resource: Resource) -> Table:
    if resource.custom is not None:
        return _custom_table(resource)
    return _TABLES.get((resource.info.group, resource.info.kind), _DEFAULT)


# --- custom resources ----------------------------------------------------------------------------------------------

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


CELL_STEPS, SPARE_STEPS = 40, 50_000
"""What the path of a cell may look at, and what those of a whole table may beside: a path of a definition may search
whole objects. Cells beyond that are empty."""


def _custom_table(resource: Resource) -> Table:
    shown, paths = _custom_columns(resource)
    spare = SPARE_STEPS

    def row(obj: Obj, now: datetime) -> list[Any]:
        nonlocal spare
        cells = [meta(obj).get("name", "")]
        for path, kind in paths:
            cell, steps = _cell(path, kind, obj, now, CELL_STEPS + spare)
            cells.append(cell)
            spare -= max(steps - CELL_STEPS, 0)
        return cells

    return Table(shown, row)


@lru_cache(maxsize=512)
def _custom_columns(resource: Resource) -> tuple[tuple[Column, ...], list[tuple[JsonPath, str]]]:
    assert resource.custom is not None
    given = resource.custom.columns or [_AGE]
    shown = (NAME, *(_custom_column(column) for column in given))
    return shown, [(compile_path(_braced(column["jsonPath"])), str(column["type"])) for column in given]


def _braced(path: str) -> str:
    return path if path.startswith("{") else "{" + path + "}"


def _custom_column(column: Obj) -> Column:
    described = column.get("description")
    text = described or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
    return Column(column["name"], column["type"], column.get("format", ""), int(column.get("priority") or 0), text)


def _cell(path: JsonPath, kind: str, obj: Obj, now: datetime, limit: int) -> tuple[Any, int]:
    """What stands in the column, and how many steps that took: at most ``limit``."""
    took: list[int] = []
    try:
        found = path.find(obj, limit=limit, spent=took.append)
    except ValueError:
        return None, took[0]
    return _typed(found, kind, now), took[0]


def _typed(found: list[Any], kind: str, now: datetime) -> Any:
    """The first value found, if it is of the column's type (apiextensions ``tableconvertor``)."""
    if not found or found[0] is None:
        return None
    value = found[0]
    match kind:
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return since(value, now)
        case _:
            return _text(found)


def _text(found: list[Any]) -> str:
    value = found[0]
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return msgspec.json.encode(value, order="sorted").decode()
    return str(value)
