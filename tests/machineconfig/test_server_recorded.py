"""Answers of the config server as the Machine Config Operator gave them (``conformance/machineconfig``: serve)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.machineconfig.recordings import cases, judge

from syncline.ignition.dataurl import decode_data_url
from syncline.kube.objects import name_of
from syncline.machineconfig.server.answering import Answer, Request, served
from syncline.machineconfig.server.world import World


@pytest.mark.parametrize("case", cases("serve"), ids=lambda case: case["id"])
def test_machines_that_join_are_answered_as_upstream_would(case: dict[str, Any]) -> None:
    given = case["input"]
    world = World(
        {name_of(each): each for each in given["pools"]},
        {name_of(each): each for each in given["machineConfigs"]},
        given.get("controllerConfig"),
        given.get("kubeconfig") or "",
        given.get("machineOSConfigs") or (),
        given.get("machineOSBuilds") or (),
        bootstrap=given.get("bootstrap", False),
    )
    got = []
    for asked in given["requests"]:
        request = Request(asked["method"], asked["path"], asked.get("accept") or "")
        answer = served(request, world)
        wanted = case["expect"]["answers"][len(got)]
        got.append(_told(request, answer, like=wanted))
    judge(case, got == case["expect"]["answers"], got)


def _told(request: Request, answer: Answer, like: dict[str, Any]) -> dict[str, Any]:
    """In the recording's form: files whose contents it shows as JSON are decoded."""
    told: dict[str, Any] = {"status": answer.status}
    if answer.content_type:
        told["contentType"] = answer.content_type
    if answer.location:
        told["location"] = answer.location
    if "body" not in like or request.method == "HEAD":
        return told | {"bodyEmpty": not answer.body or request.method == "HEAD"}
    body = json.loads(answer.body) if answer.body else None
    expected = like["body"].get("storage", {}).get("files", [])
    for file, shown in zip((body or {}).get("storage", {}).get("files", []), expected, strict=False):
        if "json" in shown.get("contents", {}):
            file["contents"]["json"] = json.loads(decode_data_url(file["contents"].pop("source")))
    return told | {"body": body}
