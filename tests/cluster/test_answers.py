"""Answers to the word: requests and what a Kubernetes 1.36.3 control plane answered, causes in their order, warnings,
values of internal types and owners of fields included.

The rows of ``answers.json`` were played to it (etcd and API server, no controllers): what to make before, the request,
the answer without what no two servers share. The replayed conversations leave the order of causes, printed structures
and owners out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cluster.test_api import Cluster

ROWS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("answers.json").read_text())
OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"kube-api-access-[a-z0-9]{5}"), "kube-api-access-x"),
)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items() if key not in OWN}
    if isinstance(value, list):
        return [plain(part) for part in value]
    for pattern, name in VARYING if isinstance(value, str) else ():
        value = pattern.sub(name, value)
    return value


def shown(code: int, body: Any, warnings: list[str]) -> dict[str, Any]:
    answer: dict[str, Any] = {"code": code} | ({"warnings": warnings} if warnings else {})
    if body.get("kind") == "Status":
        causes = (body.get("details") or {}).get("causes")
        fields = {"fields": [cause.get("field", "") for cause in causes]} if causes else {}
        return answer | {"message": plain(body.get("message", ""))} | fields
    owners = body["metadata"].get("managedFields") or []
    named = [[one.get("manager"), one["operation"], one.get("subresource", ""), one["fieldsV1"]] for one in owners]
    rest = {key: part for key, part in plain(body).items() if key not in ("apiVersion", "kind")}
    return answer | {"owned": sorted(named, key=json.dumps), "object": rest}


@pytest.mark.parametrize("row", ROWS, ids=[row["about"] for row in ROWS])
def test_the_answer_is_that_of_a_control_plane(row: dict[str, Any]) -> None:
    cluster = Cluster()
    for path, body in row["before"]:
        cluster.send("POST", path, body).or_raise()
    answer = cluster.send(row["method"], row["path"], row["body"], {"content-type": row["type"]})
    told = [msgspec.json.decode(one.split(" ", 2)[2]) for one in answer.headers.get("warning", "").split("\n") if one]
    found = shown(answer.status, msgspec.to_builtins(answer.obj), told)
    expected = row["answer"]
    if "owned" in expected:
        expected = expected | {"owned": sorted(expected["owned"], key=json.dumps)}
    assert found == expected
