"""Convert objects to the table rows that kubectl prints.

``answers`` calls :func:`table_of` if a Table is accepted. Columns of built-in kinds are in ``columns/``; those of
custom resources come from ``additionalPrinterColumns``. Ages are relative to ``now``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from syncline.base.clock import format_time
from syncline.cluster.columns import core, devices, pods, policies, storage, workloads
from syncline.cluster.columns.column import Column, Row, columns_of, since
from syncline.cluster.resources.registry import Resource
from syncline.kube.objects import Obj, dig, meta
from syncline.kube.text.jsonpath import JsonPath, compile_path

_ROWS: dict[tuple[str, str], Row] = {
    **devices.TABLES,
    **pods.TABLES,
    **workloads.TABLES,
    **core.TABLES,
    **storage.TABLES,
    **policies.TABLES,
}


def _by_name(obj: Obj, now: datetime) -> list[Any]:
    return [meta(obj).get("name", ""), dig(obj, "metadata", "creationTimestamp", default=format_time(now))]


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
    """Return a ``meta.k8s.io`` Table. ``include`` is None, Metadata (the default) or Object. ``headed``: include the
    column definitions."""
    scale = bool(objs) and objs[0].get("kind") == "Scale" and resource.custom is None
    if resource.custom is not None:
        columns, row = _custom_table(resource)
    else:
        group, kind = ("autoscaling", "Scale") if scale else (resource.info.group, resource.info.kind)
        columns, row = columns_of(group, kind), _ROWS.get((group, kind), _by_name)
    rows = [{"cells": row(obj, now), **_row_object(obj, include, version)} for obj in objs]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": [column.to_obj() for column in columns] if headed else None,
        "rows": rows,
    }


def _row_object(obj: Obj, include: str, version: str) -> Obj:
    if include == "None":
        return {"object": None}
    if include == "Object":
        return {"object": obj}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": meta(obj)}
    return {"object": partial}


# --- custom resources ----------------------------------------------------------------------------------------------


CELL_STEPS, SPARE_STEPS = 40, 50_000
"""Step limits of one cell's path, and of a table's paths beyond that: a JSON path may search whole objects. Cells
beyond the limits are empty."""


def _custom_table(resource: Resource) -> tuple[Sequence[Column], Row]:
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

    return shown, row


@lru_cache(maxsize=512)
def _custom_columns(resource: Resource) -> tuple[tuple[Column, ...], list[tuple[JsonPath, str]]]:
    assert resource.custom is not None
    created = columns_of("", "")[1].description
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "description": created}
    given = resource.custom.columns or [age]
    shown = (columns_of("", "")[0], *(_custom_column(column) for column in given))
    return shown, [(compile_path(_braced(column["jsonPath"])), str(column["type"])) for column in given]


def _braced(path: str) -> str:
    return path if path.startswith("{") else "{" + path + "}"


def _custom_column(column: Obj) -> Column:
    described = column.get("description")
    text = described or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
    return Column(column["name"], column["type"], column.get("format", ""), int(column.get("priority") or 0), text)


def _cell(path: JsonPath, kind: str, obj: Obj, now: datetime, limit: int) -> tuple[Any, int]:
    """Return the cell's value and the steps used, at most ``limit``."""
    took: list[int] = []
    try:
        found = path.find(obj, limit=limit, spent=took.append)
    except ValueError:
        return None, took[0]
    return _typed(found, kind, now), took[0]


def _typed(found: list[Any], kind: str, now: datetime) -> Any:
    """Return the first value found if it has the column's type (apiextensions ``tableconvertor``)."""
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
