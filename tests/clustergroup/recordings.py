"""What the recorded renderings of both charts have in common: values files in, a stage or objects out."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.recorded import CONFORMANCE, Case

from syncline.clustergroup.defaults import layered
from syncline.clustergroup.errors import RenderFailed, ValuesRefused
from syncline.kube.yaml.loading import load_all
from syncline.sources.helm.strvals import set_text, set_with, typed
from syncline.sources.helm.values import escaped

ROOM = "patterns"


@cache
def pool(kind: str) -> Any:
    return json.loads((CONFORMANCE / ROOM / f"{kind}-pool.json").read_text())


def outcome(case: Case, render: Callable[[dict[str, Any]], list[Any]]) -> Any:
    """Return what the files of a case give: a stage with what matters of it, or objects."""
    try:
        given = layered(_file(one, case["kind"]) for one in case["files"])
    except ValueError:
        return "values", None
    for one in case.get("set") or ():
        text = f"{one['name']}={escaped(one['value'])}"
        if one.get("forceString"):
            set_text(given, text)
        else:
            set_with(given, text, typed)
    try:
        return "ok", render(given)
    except ValuesRefused as refused:
        return "schema", {one.path for one in refused.violations}
    except RenderFailed as failed:
        return ("yaml", failed.part) if failed.unreadable else ("template", None)


def _file(one: Any, kind: str) -> dict[str, Any]:
    text = one["yaml"] if "yaml" in one else pool(kind)["files"][one["yaml_ref"]]
    loaded = load_all(text, file=one["name"], by_lines=False)
    value = next((document.value for document in loaded.documents), None)
    if loaded.report.errors or not isinstance(value, dict | None):
        raise ValueError(one["name"])
    return value or {}


def expected(case: Case) -> Any:
    wanted, kind = case["expect"], case["kind"]
    if wanted["ok"]:
        return "ok", [pool(kind)["objects"][one] if isinstance(one, str) else one for one in wanted["objects"]]
    if wanted["stage"] == "schema":
        return "schema", {path for path, _ in wanted["violations"]}
    part = wanted.get("template", "").removeprefix(f"{kind}/templates/").removesuffix(".yaml")
    return wanted["stage"], part if wanted["stage"] == "yaml" else None


def without_pictures(value: Any) -> Any:
    """Return a value in which all pictures of ConsoleLinks are equal, also of those inside policies."""
    if isinstance(value, dict):
        return {key: "a picture" if key == "imageURL" else without_pictures(one) for key, one in value.items()}
    return [without_pictures(one) for one in value] if isinstance(value, list) else value
