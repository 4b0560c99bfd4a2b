"""Tracking data as Argo CD writes and reads it (``conformance/gitops/tracking.jsonl``)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from tests.gitops.recordings import cases, judge

from syncline.argo.tracking import (
    INSTANCE_LABEL,
    Instance,
    Tracking,
    TrackingError,
    TrackingMethod,
    instance_name,
    parse_instance,
    truncate_label,
)


def _parsed(text: str) -> dict[str, Any]:
    try:
        return asdict(parse_instance(text))
    except TrackingError as error:
        return {"error": str(error)}


def _truncated(text: str) -> dict[str, Any]:
    try:
        return {"value": truncate_label(text)}
    except TrackingError as error:
        return {"error": str(error)}


def _names(given: dict[str, Any]) -> dict[str, Any]:
    app = {"metadata": {"name": given["app"], "namespace": given["appNamespace"]}}
    instance = instance_name(app, "argocd")
    qualified = f"{given['appNamespace']}/{given['app']}" if given["appNamespace"] else given["app"]
    return {"instanceName": instance, "qualifiedName": qualified}


def _with_object(given: dict[str, Any]) -> dict[str, Any]:
    tracking = Tracking(
        TrackingMethod.parse(given["method"]), given.get("labelKey", INSTANCE_LABEL), given.get("installationID", "")
    )
    obj = given.get("object")
    match given["op"]:
        case "get":
            found = tracking.instance(obj)
            return {"appName": tracking.app_name(obj), "instance": found and asdict(found)}
        case "set":
            return {"object": tracking.stamp(obj, given["app"], given["namespace"])}
        case "remove":
            return {"object": tracking.unstamp(obj)}
        case "normalize":
            live = given["live"]
            return {"object": obj, "live": tracking.normalized(obj, live) if obj and live else live}
        case "self-referenced":
            return {"selfReferenced": tracking.is_self_referenced(given["app"], given["live"], obj)}
    raise AssertionError(given["op"])


def _answer(given: dict[str, Any]) -> dict[str, Any]:
    match given["op"]:
        case "parse":
            return _parsed(given["value"])
        case "build":
            return {"value": str(Instance(**given["instance"]))}
        case "truncate-label":
            return _truncated(given["value"])
        case "instance-name":
            return _names(given)
    return _with_object(given)


@pytest.mark.parametrize("case", cases("tracking"), ids=lambda case: case["id"])
def test_tracking_data_is_upstreams(case: dict[str, Any]) -> None:
    got, expect = _answer(case["input"]), dict(case["expect"])
    for name in ("rbacName", "qualifiedName"):
        if name in expect and case["input"]["op"] == "instance-name":
            expect.pop(name)
            got.pop(name, None)
    judge(case, got == expect, got)
