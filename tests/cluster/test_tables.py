"""Rows say what kubectl's users expect to read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.cluster.world import World

from syncline.base.clock import EPOCH, format_time
from syncline.cluster.columns.column import human_duration
from syncline.cluster.resources.registry import Registry
from syncline.cluster.resources.tables import table_of
from syncline.cluster.storage.store import Store
from syncline.kube.client import Request
from syncline.kube.objects import GVK

REGISTRY = Registry(Store())
MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 5, "2m5s"),
        (10 * MINUTE + 5, "10m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"),
        (8 * HOUR + 5 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (9 * DAY, "9d"),
        (2 * 365 * DAY, "2y"),
        (3 * 365 * DAY + DAY, "3y1d"),
        (9 * 365 * DAY, "9y"),
    ],
)
def test_an_age_shows_at_most_two_units(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


def row(gvk: GVK, **obj: Any) -> list[Any]:
    resource = REGISTRY.of_kind(gvk)
    assert resource is not None
    metadata = {"name": "x", "creationTimestamp": format_time(EPOCH), **obj.pop("metadata", {})}
    table = table_of(resource, [{"metadata": metadata, **obj}], {}, EPOCH + timedelta(minutes=5))
    cells: list[Any] = table["rows"][0]["cells"]
    unnamed = gvk.kind == "IPAddress"  # Kubernetes prints its age without a column.
    assert len(cells) == len(table["columnDefinitions"]) + unnamed
    return cells


POD = GVK("", "v1", "Pod")
SPEC = {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}, "Init:0/1"),
        (
            {"initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 3}}}]},
            "Init:ExitCode:3",
        ),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "ImagePullBackOff",
        ),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"signal": 9}}}]}, "Signal:9"),
        ({"phase": "Running", "containerStatuses": [{"ready": True, "state": {"running": {}}}]}, "Running"),
        ({"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}, "SchedulingGated"),
    ],
)
def test_a_pod_says_what_holds_it(status: dict[str, Any], shown: str) -> None:
    assert row(POD, spec=SPEC, status=status)[2] == shown


def test_restarts_tell_when_the_last_one_was() -> None:
    ended = {"lastState": {"terminated": {"finishedAt": format_time(EPOCH)}}, "restartCount": 2}
    assert row(POD, spec={"containers": [{"name": "c"}]}, status={"containerStatuses": [ended]})[3] == "2 (5m ago)"


@pytest.mark.parametrize(
    ("gvk", "obj", "cells"),
    [
        (
            GVK("", "v1", "Node"),
            {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            ["x", "Ready,SchedulingDisabled", "<none>", "5m"],
        ),
        (
            GVK("", "v1", "PersistentVolumeClaim"),
            {"spec": {"volumeName": "v"}, "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"]}},
            ["x", "Bound", "v", "", "RWO"],
        ),
        (
            GVK("networking.k8s.io", "v1", "Ingress"),
            {"spec": {"rules": [{"host": "a"}, {"host": "b"}, {"host": "c"}, {"host": "d"}], "tls": [{}]}},
            ["x", "<none>", "a,b,c + 1 more...", "", "80, 443", "5m"],
        ),
        (
            GVK("policy", "v1", "PodDisruptionBudget"),
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}},
            ["x", "50%", "N/A", 1, "5m"],
        ),
        (
            GVK("rbac.authorization.k8s.io", "v1", "RoleBinding"),
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "namespace": "n", "name": "s"}, {"kind": "User", "name": "u"}],
            },
            ["x", "Role/r", "5m", "u", "", "n/s"],
        ),
    ],
)
def test_columns_of_a_kind(gvk: GVK, obj: dict[str, Any], cells: list[Any]) -> None:
    assert row(gvk, **obj)[: len(cells)] == cells


def test_every_served_kind_can_be_printed_with_nothing_but_a_name() -> None:
    for resource in REGISTRY.resources():
        assert row(resource.gvk)[-1] is not None or resource.info.kind


def _table(world: World, path: str) -> Any:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    return world.transport.send(Request("GET", path, {}, {"accept": accept}, None)).obj


def test_columns_are_described_by_the_fields_that_they_show() -> None:
    world = World()
    shown = {c["name"]: c for c in _table(world, "/apis/apps/v1/deployments")["columnDefinitions"]}
    assert shown["Available"]["description"].startswith("Total number of available non-terminating pods")
    assert shown["Ready"]["description"] == "Number of the pod with ready state"
    assert shown["Age"]["description"].startswith("CreationTimestamp is a timestamp")
    other = [c["name"] for c in _table(world, "/api/v1/limitranges")["columnDefinitions"]]
    assert other == ["Name", "Created At"]


def test_devices_and_scales_have_rows_of_their_own() -> None:
    world = World()
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": []}}}
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    world.post(claims, claim)
    assert _table(world, claims)["rows"][0]["cells"][:2] == ["c", "pending"]
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    sets = "/apis/apps/v1/namespaces/default/replicasets"
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    world.post(sets, {"metadata": {"name": "rs"}, "spec": spec})
    table = _table(world, f"{sets}/rs/scale")
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"][:3] == ["rs", 3, 0]
