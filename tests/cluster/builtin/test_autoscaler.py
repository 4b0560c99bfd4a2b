"""Autoscalers without metrics: what a look at one leads to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from syncline.base.clock import parse_time
from syncline.cluster.builtin.actions import FindScale
from syncline.cluster.builtin.workloads.autoscaler import Observed, plan, settle
from syncline.control.plan import Emit, Patch, Plan, Requeue, Result, SetStatus
from syncline.kube.errors import NotFound
from syncline.kube.objects import Obj, ObjectRef

MADE = "2026-01-01T00:00:00Z"
NOW = parse_time(MADE) + timedelta(seconds=15)
LOOK = FindScale(ObjectRef("apps", "Deployment", "d", "w"), "")
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def autoscaler(**spec: Any) -> Obj:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "d", "uid": "u", "creationTimestamp": MADE},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4, "metrics": [CPU], **spec},
    }


def scale(replicas: int, selector: str = "a=b") -> Obj:
    return {"spec": {"replicas": replicas}, "status": {"replicas": replicas, "selector": selector}}


def after(found: Obj, *rivals: str) -> Plan:
    settled = settle(Observed(autoscaler(), ("h", *rivals)), (Result(LOOK, ok=True, value=found),), NOW)
    assert settled is not None
    return settled[1]


def status_of(made: Plan) -> Obj:
    return next(action.new for action in made.actions if isinstance(action, SetStatus))


def test_the_first_look_comes_a_period_after_creation() -> None:
    made = plan(Observed(autoscaler(), ("h",)), NOW - timedelta(seconds=5))
    assert not list(made.actions)
    assert made.outcome == Requeue(5.0, "an autoscaler looks every period")


def test_its_own_writes_do_not_bring_the_next_look_forward() -> None:
    made = plan(Observed(autoscaler(), ("h",), looked=NOW), NOW + timedelta(seconds=1))
    assert not list(made.actions)


@pytest.mark.parametrize(("replicas", "wanted"), [(1, 2), (6, 4)])
def test_a_target_beyond_a_bound_is_brought_back_and_what_is_wanted_is_kept_first(replicas: int, wanted: int) -> None:
    first, second = after(scale(replicas)).actions
    assert isinstance(first, SetStatus)
    assert first.new["desiredReplicas"] == wanted
    assert isinstance(second, Patch)
    assert (second.subresource, second.body) == ("scale", {"spec": {"replicas": wanted}})


@pytest.mark.parametrize(
    ("found", "rivals", "reason"),
    [
        (scale(0), (), "ScalingDisabled"),
        (scale(3), (), "FailedGetResourceMetric"),
        (scale(3, selector=""), (), "InvalidSelector"),
        (scale(3), ("i",), "AmbiguousSelector"),
    ],
)
def test_why_it_does_not_scale_is_said(found: Obj, rivals: tuple[str, ...], reason: str) -> None:
    able, active = status_of(after(found, *rivals))["conditions"]
    assert (able["type"], able["status"], able["reason"]) == ("AbleToScale", "True", "SucceededGetScale")
    assert (active["type"], active["status"], active["reason"]) == ("ScalingActive", "False", reason)


def test_a_target_that_cannot_be_found_is_named() -> None:
    error = NotFound('deployments.apps "w" not found')
    settled = settle(Observed(autoscaler(), ("h",)), (Result(LOOK, ok=False, error=error),), NOW)
    assert settled is not None
    (condition,) = status_of(settled[1])["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "FailedGetScale")
    assert condition["message"].endswith('current scale: deployments.apps "w" not found')
    assert [action.event_reason for action in settled[1].actions if isinstance(action, Emit)] == ["FailedGetScale"]
