"""Recorded renderings of the clusterGroup chart by Helm: ours are the same.

One thing differs in every case with a ConsoleLink: its picture is ours.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import CONFORMANCE, Case, cases_of, judge_by, known

from syncline.clustergroup.defaults import layered
from syncline.clustergroup.errors import RenderFailed, ValuesRefused
from syncline.clustergroup.render import render, values_of
from syncline.kube.yaml.loading import load, load_all
from syncline.sources.helm.strvals import set_text, set_with, typed
from syncline.sources.helm.values import escaped

KNOWN = Path(__file__).with_name("known.json")
ROOM, KIND = "patterns", "clustergroup"


@cache
def pool() -> Any:
    return json.loads((CONFORMANCE / ROOM / f"{KIND}-pool.json").read_text())


def outcome(case: Case) -> Any:
    """Return what the files of a case give: a stage with what matters of it, or objects."""
    try:
        given = layered(_file(one) for one in case["files"])
    except ValueError:
        return "values", None
    for one in case.get("set") or ():
        text = f"{one['name']}={escaped(one['value'])}"
        if one.get("forceString"):
            set_text(given, text)
        else:
            set_with(given, text, typed)
    try:
        return "ok", render(values_of([given]))
    except ValuesRefused as refused:
        return "schema", {one.path for one in refused.violations}
    except RenderFailed as failed:
        return ("yaml", failed.part) if failed.unreadable else ("template", None)


def _file(one: Any) -> dict[str, Any]:
    text = one["yaml"] if "yaml" in one else pool()["files"][one["yaml_ref"]]
    loaded = load_all(text, file=one["name"], by_lines=False)
    value = next((document.value for document in loaded.documents), None)
    if loaded.report.errors or not isinstance(value, dict | None):
        raise ValueError(one["name"])
    return value or {}


def expected(case: Case) -> Any:
    wanted = case["expect"]
    if wanted["ok"]:
        return "ok", [pool()["objects"][one] if isinstance(one, str) else one for one in wanted["objects"]]
    if wanted["stage"] == "schema":
        return "schema", {path for path, _ in wanted["violations"]}
    part = wanted.get("template", "").removeprefix("clustergroup/templates/").removesuffix(".yaml")
    return wanted["stage"], part if wanted["stage"] == "yaml" else None


def comparable(obj: Any, recorded: Any) -> Any:
    """Return an object without its picture, and with the values of a ConfigMap as values."""
    if obj.get("kind") == "ConsoleLink":
        menu = {**obj["spec"]["applicationMenu"], "imageURL": "a picture"}
        return {**obj, "spec": {**obj["spec"], "applicationMenu": menu}}
    text = (obj.get("data") or {}).get("values.yaml") if obj.get("kind") == "ConfigMap" else None
    if text is None:
        return obj
    skipped = "not compared" in str((recorded.get("data") or {}).get("values.yaml"))[:80]
    return {**obj, "data": {"values.yaml": "not compared" if skipped else load(text)}}


@pytest.mark.parametrize("case", cases_of(ROOM, KIND), ids=lambda case: case["id"])
def test_cluster_group_is_rendered_as_recorded(case: Case) -> None:
    (stage, got), (wanted_stage, wanted) = outcome(case), expected(case)
    if stage == wanted_stage == "ok" and len(got) == len(wanted):
        got = [comparable(*pair) for pair in zip(got, wanted, strict=True)]
        wanted = [comparable(one, one) for one in wanted]
    judge_by(known(KNOWN), case, (stage, got) == (wanted_stage, wanted), (stage, got))
