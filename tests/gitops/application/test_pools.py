"""Pools that an operation leaves paused are named: in Events, in notes, in explanations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.explain.asking import ask, folder, told
from tests.scenes.scenes import Stage, application

from syncline.gitops.application.operating.pools import (
    AT_START,
    LEFT,
    STAYS,
    begin_notes,
    end_notes,
    left_paused,
    still_left,
)
from syncline.kube.objects import Obj, annotations_of

START, END, LATER = "2026-01-01T00:00:10Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"
HOOK_KEY = "argocd.argoproj.io/hook"
POOLS = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"


def pool(name: str, paused: bool, written: str = START, manager: str = "oc") -> Obj:
    entry = {"manager": manager, "time": written, "fieldsV1": {"f:spec": {"f:paused": {}}}}
    return {"metadata": {"name": name, "managedFields": [entry]}, "spec": {"paused": paused}}


def app(noted: Any = None, *, hooks: bool = True, left: Any = None) -> Obj:
    annotations = {key: json.dumps(value) for key, value in ((AT_START, noted), (LEFT, left)) if value is not None}
    rows = [{"kind": "Job", "hookType": "PreSync"}] if hooks else [{"kind": "ConfigMap"}]
    state = {"phase": "Failed", "startedAt": START, "finishedAt": END, "syncResult": {"resources": rows}}
    return {"metadata": {"name": "app", "annotations": annotations}, "status": {"operationState": state}}


def hook(pool: str) -> Obj:
    """A Job that pauses a pool, as people write it."""
    command = ["sh", "-c", 'oc patch --type=merge --patch=\'{"spec":{"paused":true}}\' machineconfigpool/$MCP']
    container = {"name": "oc", "command": command, "env": [{"name": "MCP", "value": pool}]}
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"metadata": {"name": f"pause-{pool}", "annotations": {HOOK_KEY: "PreSync"}}, "spec": spec}


@pytest.mark.parametrize(
    ("given", "pools", "expected"),
    [
        pytest.param(app({"w": False}), [pool("w", True)], ["w"], id="running before, paused by a hook"),
        pytest.param(app({"w": True}), [pool("w", True)], [], id="paused before already"),
        pytest.param(app({"w": False}), [pool("w", False)], [], id="resumed by a hook"),
        pytest.param(app({"w": False}), [pool("w", True, LATER)], [], id="paused after the end by somebody else"),
        pytest.param(app({"w": False}, hooks=False), [pool("w", True)], [], id="no hook ran"),
        pytest.param(app(), [pool("w", True)], [], id="no note of the begin"),
        pytest.param(app([1]), [pool("w", True)], [], id="a note that is no object"),
        pytest.param(
            app({"b": False, "a": False}), [pool("b", True), pool("a", True)], ["a", "b"], id="several, by name"
        ),
    ],
)
def test_a_pool_is_left_behind_if_a_hook_of_this_operation_paused_it(
    given: Obj, pools: list[Obj], expected: list[str]
) -> None:
    assert [one.pool for one in left_paused(given, pools, [hook("a"), hook("b"), hook("w")])] == expected


@pytest.mark.parametrize(
    "hooks",
    [
        pytest.param([], id="no hook"),
        pytest.param([{"metadata": {"annotations": {HOOK_KEY: "PreSync"}}, "spec": {}}], id="a hook that says nothing"),
        pytest.param([hook("other")], id="a hook for another pool"),
        pytest.param([{"spec": hook("w")["spec"]}], id="no hook, although it speaks of it"),
    ],
)
def test_what_somebody_else_paused_meanwhile_is_not_ours(hooks: list[Obj]) -> None:
    assert left_paused(app({"w": False}), [pool("w", True)], hooks) == ()


def test_a_pool_that_was_left_behind_stays_ours_until_somebody_writes_it() -> None:
    left = left_paused(app({"w": False}), [pool("w", True)], [hook("w")])
    noted = json.loads(end_notes(left)[LEFT] or "")
    assert noted == {"w": START}
    again = app(left=noted)
    assert [one.pool for one in still_left(again, [pool("w", True)])] == ["w"]
    assert still_left(again, [pool("w", True, LATER)]) == ()
    assert json.loads(begin_notes(again, [pool("w", True), pool("x", True)])[AT_START] or "") == {"w": False, "x": True}


def test_without_pools_nothing_is_noted() -> None:
    assert begin_notes(app(), []) == {AT_START: None}
    assert end_notes(()) == {LEFT: None}


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "machineconfigpools.machineconfiguration.openshift.io"},
    "spec": {
        "group": "machineconfiguration.openshift.io",
        "scope": "Cluster",
        "names": {"kind": "MachineConfigPool", "plural": "machineconfigpools", "singular": "machineconfigpool"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
HOOK = """apiVersion: batch/v1
kind: Job
metadata: {name: pause, annotations: {argocd.argoproj.io/hook: PreSync}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {syncline.dev/run-seconds: "20", syncline.dev/exit-code: "%s"}}
    spec:
      restartPolicy: Never
      containers:
        - {name: one, image: i, command: [oc, patch, mcp/worker, --type=merge, -p, '{"spec":{"paused":true}}']}
"""


def _played(tmp_path: Path, exit_code: int, *, resumed: bool = False, stays: bool = False) -> Stage:
    """A sync whose hook pauses the pool (by the test's hand) and ends with ``exit_code``."""
    stage = Stage(tmp_path)
    stage.world.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    stage.world.driver.advance(5)
    worker = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": "worker"},
        "spec": {"paused": False},
    }
    stage.world.send("POST", POOLS, worker)
    made = application(folder(tmp_path, hook=HOOK % exit_code), "app")
    if stays:
        made["metadata"]["annotations"] = {STAYS: "true"}
    stage.create(made)
    stage.world.driver.advance(5)
    stage.sync()
    stage.world.driver.advance(10)
    for paused in (True, False) if resumed else (True,):
        body = {"spec": {"paused": paused}}
        stage.world.send("PATCH", f"{POOLS}/worker", body, "application/merge-patch+json")
    stage.finish()
    stage.world.driver.advance(5)
    return stage


def test_an_operation_that_ends_with_a_paused_pool_says_so_where_it_shall_stay(tmp_path: Path) -> None:
    stage = _played(tmp_path, 1, stays=True)
    assert json.loads(annotations_of(stage.app())[AT_START]) == {"worker": False}
    assert list(json.loads(annotations_of(stage.app())[LEFT])) == ["worker"]
    events = [e for e in stage.items("/api/v1/namespaces/argocd/events") if e["reason"] == "LeftBehind"]
    assert [(e["type"], e["involvedObject"]["name"]) for e in events] == [("Warning", "app")]
    assert "MachineConfigPool worker is left paused" in events[0]["message"]
    found = ask(stage, tmp_path)
    text = told(stage, found)
    assert found.blocked
    assert "MachineConfigPool worker left paused" in text and "kubectl patch machineconfigpool worker" in text


def test_a_pool_that_a_hook_left_paused_is_resumed_and_an_event_says_so(tmp_path: Path) -> None:
    stage = _played(tmp_path, 1)
    assert LEFT not in annotations_of(stage.app())
    assert stage.world.send("GET", f"{POOLS}/worker")["spec"]["paused"] is False
    events = [e for e in stage.items("/api/v1/namespaces/argocd/events") if e["reason"] == "PoolResumed"]
    assert len(events) == 1 and "MachineConfigPool worker is resumed" in events[0]["message"]


def test_an_operation_that_resumed_its_pool_leaves_nothing(tmp_path: Path) -> None:
    stage = _played(tmp_path, 0, resumed=True)
    assert LEFT not in annotations_of(stage.app())
    assert not [e for e in stage.items("/api/v1/namespaces/argocd/events") if e["reason"] == "LeftBehind"]
