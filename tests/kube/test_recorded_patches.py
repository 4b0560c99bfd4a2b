"""The recorded PATCH conversations, replayed on the bodies alone: no server, no defaults."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.recorded import CONFORMANCE, absent

from syncline.kube.errors import ApiError
from syncline.kube.objects import gvk_of
from syncline.kube.patching.patches import json_merge_patch, json_patch
from syncline.kube.patching.strategic import strategic_merge_patch
from syncline.kube.schema.model import schema_for

RECORDED = CONFORMANCE / "recorded"
KINDS = {"json", "merge", "strategic"}
SERVERS_WORK = re.compile(r"generation|revisionHistoryLimit|^status|spec\.strategy$")


def apply(kind: str, doc: Any, body: Any) -> Any:
    if kind == "json":
        return json_patch(doc, body)
    if kind == "merge":
        return json_merge_patch(doc, body)
    return strategic_merge_patch(doc, body, schema_for(gvk_of(doc)))


def at(doc: Any, path: str) -> Any:
    """The value at a path of the recordings: dots, ``[0]``, ``[*]`` and ``[name=x]``."""
    here = doc
    for index, step in enumerate(tokens := re.findall(r"[^.\[\]]+|\[[^\]]*\]", path)):
        if here is None:
            return None
        if step == "[*]":
            return [at(item, ".".join(tokens[index + 1 :])) for item in here]
        if step.startswith("["):
            key, equals, value = step[1:-1].partition("=")
            here = next(item for item in here if item[key] == value) if equals else here[int(key)]
        else:
            here = here.get(step)
    return here


def agrees(ours: Any, recorded: Any) -> bool:
    """Whether the recording is ours with a server's defaults added."""
    if isinstance(ours, dict) and isinstance(recorded, dict):
        return all(key in recorded and agrees(value, recorded[key]) for key, value in ours.items())
    if isinstance(ours, list) and isinstance(recorded, list):
        return len(ours) == len(recorded) and all(map(agrees, ours, recorded))
    return ours == recorded or (not ours and recorded is None) or recorded == "<time>"


@pytest.mark.skipif(not RECORDED.is_dir(), reason=absent(RECORDED))
@pytest.mark.parametrize("name", ["patch-json", "patch-merge", "patch-strategic"])
def test_recorded_patches_give_the_recorded_objects(name: str) -> None:
    steps = json.loads((RECORDED / f"{name}.json").read_text())["steps"]
    doc = steps[0]["body"]
    compared = 0
    for step in steps:
        if step.get("type") not in KINDS or isinstance(step["body"], str):
            continue
        expect = step["expect"]
        try:
            made = apply(step["type"], doc, step["body"])
        except ApiError as error:
            assert (error.code, error.reason) == (expect["status"], expect["body"].get("reason", "")), step["id"]
            compared += 1
            continue
        if expect["status"] != 200:
            continue  # the patch applies; validating its result is the server's work
        doc = made
        for path, value in expect["body"].items():
            if not SERVERS_WORK.search(path):
                assert agrees(at(doc, path), value), (step["id"], path)
                compared += 1
    assert compared >= 5
