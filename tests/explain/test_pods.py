"""What a Pod's own status says, as a cause; cases are statuses as kubelet and scheduler write them."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.apply.causes.pods import explain_pod
from syncline.base.clock import EPOCH
from syncline.control.cache import Cache
from syncline.explain.view import View
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj


def pod(status: Obj, **spec: Any) -> Obj:
    metadata = {"name": "p", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "n", **spec},
        "status": status,
    }


def waiting(reason: str, message: str = "", **more: Any) -> Obj:
    state = {"waiting": {"reason": reason} | ({"message": message} if message else {})}
    return {"phase": "Pending", "containerStatuses": [{"name": "c", "image": "i", "state": state, **more}]}


def ended(code: int, reason: str = "Error", phase: str = "Failed") -> Obj:
    state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": "2026-01-01T00:00:09Z"}}
    return {"phase": phase, "containerStatuses": [{"name": "c", "image": "i", "state": state}]}


def unplaced(message: str, reason: str = "Unschedulable") -> Obj:
    return {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}],
    }


@pytest.mark.parametrize(
    ("status", "spec", "state", "said", "advice"),
    [
        (
            unplaced("0/3 nodes are available: 3 Insufficient memory."),
            {"nodeName": ""},
            "Pending",
            "Insufficient memory",
            "free or add memory",
        ),
        (
            unplaced("1 node(s) had untolerated taint {k: v}"),
            {"nodeName": ""},
            "Pending",
            "taint {k: v}",
            "tolerate the taint",
        ),
        (
            unplaced("Scheduling is blocked due to non-empty scheduling gates", "SchedulingGated"),
            {"nodeName": ""},
            "Pending",
            "gates",
            "take the scheduling gate off",
        ),
        (
            waiting("ErrImagePull", "not found"),
            {},
            "ErrImagePull",
            'container "c" (image i): not found',
            "correct the image",
        ),
        (
            waiting("CreateContainerConfigError", 'configmap "x" not found'),
            {},
            "CreateContainerConfigError",
            "not found",
            "create configmap x",
        ),
        (
            waiting("ContainerCreating", 'MountVolume.SetUp failed: secret "x" not found'),
            {},
            "Pending",
            "MountVolume",
            "create secret x",
        ),
        (
            waiting(
                "CrashLoopBackOff",
                "back-off",
                restartCount=4,
                lastState={"terminated": {"exitCode": 2, "reason": "Error"}},
            ),
            {},
            "CrashLoopBackOff",
            'restarted 4 times; container "c" ended with exit code 2',
            "correct what its log says",
        ),
        (ended(137, "OOMKilled"), {}, "Failed", "exit code 137 (OOMKilled)", 'raise the memory limit of container "c"'),
        (ended(1, phase="Running"), {}, "Failing", "exit code 1", "correct what its log says"),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"},
            {},
            "Failed",
            "low on memory",
            "",
        ),
    ],
)
def test_trouble_is_repeated_in_kubernetes_words_with_advice(
    status: Obj, spec: Obj, state: str, said: str, advice: str
) -> None:
    view = View(Cache(Mapper()), EPOCH, lambda *_: ("boom",))
    found = explain_pod(view, pod(status, **spec))
    assert found.blocked
    assert found.cause.state == state and said in found.cause.message
    assert found.cause.next_action.startswith(advice)


@pytest.mark.parametrize(
    ("status", "spec", "state"),
    [
        ({"phase": "Succeeded"}, {}, "Succeeded"),
        ({"phase": "Pending"}, {"nodeName": ""}, "Pending"),
        (waiting("ContainerCreating"), {}, "Pending"),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, {}, "NotReady"),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, {}, "Running"),
        ({"phase": "Running"}, {"restartPolicy": "Never"}, "Running"),
        ({}, {}, "Unknown"),
    ],
)
def test_what_is_under_way_blocks_nothing(status: Obj, spec: Obj, state: str) -> None:
    found = explain_pod(View(Cache(Mapper()), EPOCH), pod(status, **spec))
    assert (found.blocked, found.cause.state) == (False, state)


def test_a_failing_probe_is_known_from_the_newest_event_about_this_very_pod() -> None:
    cache = Cache(Mapper())
    for number, (uid, text) in enumerate([("u", "older"), ("u", "Readiness probe failed: 503"), ("other", "no")]):
        event = {
            "metadata": {"name": f"e{number}", "namespace": "ns"},
            "type": "Warning",
            "reason": "Unhealthy",
            "message": text,
            "involvedObject": {"kind": "Pod", "name": "p", "uid": uid},
            "lastTimestamp": f"2026-01-01T00:00:0{number}Z",
        }
        cache.put(GroupKind("", "Event"), event)
    unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    found = explain_pod(View(cache, EPOCH), pod(unready))
    assert found.blocked and found.cause.message == "Readiness probe failed: 503"
