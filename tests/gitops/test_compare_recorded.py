"""Whole comparisons as Argo CD makes them (``conformance/gitops/compare.jsonl``; behaviours 33 to 39, 52 to 55, 68 to
72)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.gitops.evaluating import ANSWERS
from tests.gitops.recordings import cases, judge
from tests.gitops.widget import schema_of

from syncline.apply.diff import DiffSettings, Override
from syncline.apply.diff.model import DEFAULT_OVERRIDES
from syncline.apply.health.overrides import HealthScript, checked_with
from syncline.apply.lua import Guarded
from syncline.argo.excluded import ResourceFilter
from syncline.argo.tracking import Tracking, TrackingMethod
from syncline.gitops.comparison.compare import Comparison, ComparisonInput, compare
from syncline.gitops.sync.kinds import KindTable
from syncline.kube.objects import ResourceInfo, ref_of
from syncline.kube.schema.resources import builtin_resources

PERMISSIVE = {
    "metadata": {"name": "default"},
    "spec": {
        "sourceRepos": ["*"],
        "destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
    },
}
EMPTY_ROW = {
    "group": "",
    "namespace": "",
    "name": "",
    "status": "",
    "hook": False,
    "requiresPruning": False,
    "requiresDeletionConfirmation": False,
    "syncWave": 0,
    "health": None,
}


def _input(given: dict[str, Any]) -> ComparisonInput:
    kinds = {info.gvk: info for info in builtin_resources()}
    for entry in given.get("kinds") or ():
        parts = (entry.get("group", ""), entry["version"], entry["kind"], entry["plural"], entry["namespaced"])
        info = ResourceInfo(*parts)
        kinds[info.gvk] = info
    overrides = {key: Override.parse(entry) for key, entry in (given.get("resourceOverrides") or {}).items()}
    exclusions, inclusions = given.get("resourceExclusions") or [], given.get("resourceInclusions") or []
    return ComparisonInput(
        app=given["app"],
        targets=tuple(given["targets"]),
        live={ref_of(obj): obj for obj in given["live"]},
        project=given.get("project") or PERMISSIVE,
        kinds=KindTable(kinds),
        tracking=Tracking(
            TrackingMethod.parse(given.get("trackingMethod", "annotation")),
            installation_id=given.get("installationID", ""),
        ),
        overrides={**DEFAULT_OVERRIDES, **overrides},
        excluded=ResourceFilter.parse(exclusions, inclusions),
        diff=DiffSettings(schema_of=schema_of, jq=ANSWERS),
        health=checked_with(_scripts(given), Guarded()),
    )


def _scripts(given: dict[str, Any]) -> dict[str, HealthScript]:
    entries = given.get("resourceOverrides") or {}
    return {key: HealthScript(entry.get("healthLua", "")) for key, entry in entries.items()}


def _answer(found: Comparison) -> dict[str, Any]:
    rows = [{**EMPTY_ROW, **row} for row in found.resources]
    for row in rows:
        if row["health"]:
            row["health"] = {"message": "", **row["health"]}
    return {
        "sync": str(found.status),
        "health": str(found.health.status),
        "healthMessage": found.health.message,
        "resources": rows,
        "hooks": [str(ref_of(hook)) for hook in found.hooks],
        "hasPreDeleteHooks": found.has_pre_delete_hooks,
        "hasPostDeleteHooks": found.has_post_delete_hooks,
        "conditions": [{"type": condition.type, "message": condition.message} for condition in found.conditions],
    }


def _named(message: str) -> tuple[set[str], int]:
    """The resources that a health message names; with ``<any N>`` only their number counts."""
    listed = re.sub(r" and \d+ more$", "", message.removeprefix("Caused by "))
    unnamed = re.fullmatch(r"<any (\d+)>", listed)
    names = set(listed.split(", "))
    return (set(), int(unnamed[1])) if unnamed else (names, len(names))


def _same_message(mine: str, theirs: str) -> bool:
    rest = [re.findall(r" and \d+ more$", message) for message in (mine, theirs)]
    names, number = _named(theirs)
    own, own_number = _named(mine)
    return rest[0] == rest[1] and number == own_number and (own == names or not names)


def _same_conditions(mine: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> bool:
    mine, theirs = ([*sorted(both, key=lambda c: (c["type"], c["message"]))] for both in (mine, theirs))
    if [condition["type"] for condition in mine] != [condition["type"] for condition in theirs]:
        return False
    return all(
        a["message"].startswith(b["messagePrefix"]) if "messagePrefix" in b else a["message"] == b["message"]
        for a, b in zip(mine, theirs, strict=True)
    )


def _same_rows(mine: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> bool:
    """With ``messagePrefix`` only the beginning of a health message counts."""
    if len(mine) != len(theirs):
        return False
    for a, b in zip(mine, theirs, strict=True):
        health = b["health"] or {}
        if "messagePrefix" in health and a["health"]:
            if not a["health"]["message"].startswith(health["messagePrefix"]):
                return False
            b = {**b, "health": {**a["health"], "status": health["status"]}}
        if a != b:
            return False
    return True


def _agrees(got: dict[str, Any], expect: dict[str, Any]) -> bool:
    def key(row: dict[str, Any]) -> tuple[str, ...]:
        return row["group"], row["kind"], row["namespace"], row["name"]

    plain = ("sync", "health", "hasPreDeleteHooks", "hasPostDeleteHooks")
    return (
        all(got[name] == expect[name] for name in plain)
        and _same_rows(sorted(got["resources"], key=key), sorted(expect["resources"], key=key))
        and sorted(got["hooks"]) == sorted(expect["hooks"])
        and _same_message(got["healthMessage"], expect["healthMessage"])
        and _same_conditions(got["conditions"], expect["conditions"])
    )


@pytest.mark.parametrize("case", cases("compare"), ids=lambda case: f"{case['id']}-{case['about']}")
def test_an_application_compares_as_upstream_compares_it(case: dict[str, Any]) -> None:
    got = _answer(compare(_input(case["input"])))
    judge(case, _agrees(got, case["expect"]), got)
