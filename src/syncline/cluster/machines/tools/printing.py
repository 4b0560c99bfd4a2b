"""Print objects: ``-o json|yaml|name|jsonpath=…|wide`` and the server's tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from syncline.cluster.machines.tools.steps import CommandError
from syncline.kube.objects import Obj, gvk_of, labels_of, meta, name_of
from syncline.kube.text.jsonpath import JsonPath, JsonPathError, compile_template
from syncline.kube.yaml.loading import dump

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PLAIN = ("json", "yaml", "name", "wide", "")
JSONPATH = ("jsonpath=", "jsonpath-as-json=")
COLUMNS = "custom-columns="


def check_format(form: str) -> None:
    """Raise CommandError for an unsupported format."""
    if form not in PLAIN and not form.startswith((*JSONPATH, COLUMNS)):
        raise CommandError(
            f'error: unable to match a printer suitable for the output format "{form}", '
            "allowed formats are: custom-columns,json,jsonpath,name,wide,yaml"
        )


def shown(value: Any, form: str, headers: bool = True) -> str:
    """Return an object or a list in a format that needs no server table."""
    if form.startswith(COLUMNS):
        return _columns(value["items"] if _is_list(value) else [value], form.removeprefix(COLUMNS), headers)
    if form == "json":
        return json.dumps(_bare(value), indent=4, ensure_ascii=False) + "\n"
    if form == "yaml":
        return dump(_bare(value))
    if form == "name":
        return "".join(_name(item) + "\n" for item in (value["items"] if _is_list(value) else [value]))
    text = form.partition("=")[2]
    try:
        template = compile_template(text if "{" in text else "{" + text + "}")
        if form.startswith("jsonpath-as-json="):
            return json.dumps(template.find(value), indent=4, ensure_ascii=False) + "\n"
        return template.render(value)
    except JsonPathError as error:
        raise CommandError(f"error: error executing jsonpath {text!r}: {error}") from error


def _columns(objects: Sequence[Obj], spec: str, headers: bool) -> str:
    """Print ``TITLE:.path,…`` of each object, in aligned columns (kubectl ``get/customcolumn.go``)."""
    titles: list[str] = []
    templates: list[JsonPath] = []
    for part in spec.split(","):
        title, colon, path = part.partition(":")
        if not colon or not path:
            raise CommandError(f"error: unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>")
        inner = path.removeprefix("{").removesuffix("}")
        try:
            templates.append(compile_template("{" + ("" if inner.startswith((".", "[", "$")) else ".") + inner + "}"))
        except JsonPathError as error:
            raise CommandError(f"error: unexpected path string, expected a 'name1.name2' form: {error}") from error
        titles.append(title)
    try:
        rows = [[",".join(map(_go_text, one.find(obj))) or "<none>" for one in templates] for obj in objects]
    except JsonPathError as error:
        raise CommandError(f"error: {error}") from error
    return _aligned([titles, *rows] if headers else rows)


def _go_text(value: Any) -> str:
    """Format a value as Go's default format does."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go_text, value)) + "]"
    return "<nil>" if value is None else _cell(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("items"), list)


def _name(obj: Obj) -> str:
    gvk = gvk_of(obj)
    return f"{gvk.kind.lower()}{'.' if gvk.group else ''}{gvk.group}/{name_of(obj)}"


def _bare(value: Any) -> Any:
    """Return the value without managedFields, as kubectl shows objects."""
    if _is_list(value):
        return {**value, "items": [_bare(item) for item in value["items"]]}
    if isinstance(value, dict) and "managedFields" in meta(value):
        kept = {key: item for key, item in meta(value).items() if key != "managedFields"}
        return {**value, "metadata": kept}
    return value


def table_text(
    table: Obj, *, wide: bool, headers: bool, with_namespace: bool, show_labels: bool, prefix: str = ""
) -> str:
    """Print a ``meta.k8s.io/v1`` Table in aligned columns."""
    columns = [
        (index, str(column["name"]).upper())
        for index, column in enumerate(table.get("columnDefinitions") or ())
        if wide or not column.get("priority")
    ]
    rows = []
    for row in table.get("rows") or ():
        obj = row.get("object") or {}
        cells = [_cell(row["cells"][index]) for index, _ in columns]
        if prefix and cells:
            cells[0] = prefix + cells[0]
        if with_namespace:
            cells.insert(0, str(meta(obj).get("namespace") or ""))
        if show_labels:
            cells.append(",".join(f"{key}={value}" for key, value in sorted(labels_of(obj).items())) or "<none>")
        rows.append(cells)
    titles = [*(["NAMESPACE"] if with_namespace else []), *(title for _, title in columns)]
    titles += ["LABELS"] if show_labels else []
    return _aligned([titles, *rows] if headers else rows)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<none>" if value is None else str(value)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))] if rows else []
    lines = []
    for row in rows:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths)]
        lines.append("   ".join([*padded, row[-1]]).rstrip())
    return "".join(line + "\n" for line in lines)
