"""The kind FleetRollout as the hub serves it, and the annotations of the order as policy sentences."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.fleet.test_pull_controllers import application, hub
from tests.fleet.world import Fleet

from syncline.fleet.pull.order.annotations import (
    CLUSTER_WAVE,
    DEPENDS_ON,
    HEALTHY_FOR,
    PIN_REVISIONS,
    asked_of,
    asks_for_order,
    wave_of_cluster,
)
from syncline.kube.client import Request
from syncline.kube.errors import Invalid
from syncline.kube.objects import Obj

ROLLOUTS = "/apis/syncline.dev/v1alpha1/namespaces/argocd/fleetrollouts"


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return hub()


def _rollout(name: str, **spec: object) -> Obj:
    of = {"kind": "ApplicationSet", "name": name}
    version = {"apiVersion": "syncline.dev/v1alpha1", "kind": "FleetRollout"}
    return {**version, "metadata": {"name": name, "namespace": "argocd"}, "spec": {"of": of, **spec}}


def test_a_rollout_is_served_with_its_columns(fleet: Fleet) -> None:
    fleet.hub.send("POST", ROLLOUTS, _rollout("web", stopped={"reason": "a holiday"}))
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    found = fleet.hub.admin.send(Request("GET", ROLLOUTS, headers=table)).or_raise()
    columns = {one["name"]: one["priority"] for one in found["columnDefinitions"] if one["name"] != "Name"}
    assert columns == {"Release": 0, "Phase": 0, "Wave": 0, "Done": 0, "Failed": 0, "Age": 0, "Message": 1}


def test_the_rollout_of_an_application_has_its_name_and_app(fleet: Fleet) -> None:
    body = _rollout("alone.app")
    fleet.hub.send("POST", ROLLOUTS, {**body, "spec": {"of": {"kind": "Application", "name": "alone"}}})
    assert fleet.hub.send("POST", ROLLOUTS, _rollout("set.app"))["spec"]["of"]["name"] == "set.app"


def test_whose_rollout_it_is_never_changes(fleet: Fleet) -> None:
    fleet.hub.send("POST", ROLLOUTS, _rollout("moved"))
    with pytest.raises(Invalid, match="immutable"):
        fleet.hub.send("PATCH", f"{ROLLOUTS}/moved", {"spec": {"of": {"name": "other"}}})


def test_who_may_only_write_the_spec_permits_nothing(fleet: Fleet) -> None:
    status = {"clusters": [{"cluster": "c1", "application": "web", "permitted": "abc"}]}
    made = fleet.hub.send("POST", ROLLOUTS, {**_rollout("forged"), "status": status})
    assert "status" not in made
    assert "status" not in fleet.hub.send("PATCH", f"{ROLLOUTS}/forged", {"status": status})


@pytest.mark.parametrize(
    "spec",
    [
        {"of": {"kind": "Deployment", "name": "x"}},
        {"of": {"kind": "ApplicationSet", "name": "another"}},
        {"of": {"kind": "Application", "name": "odd"}},
        {"skip": [{"cluster": "c1", "release": "not hexadecimal"}]},
        {"skip": [{"cluster": f"c{number}", "release": "a"} for number in range(501)]},
        {"rollBack": {"reason": "which release?"}},
        {"stopped": {"reason": "x" * 1025}},
    ],
)
def test_what_is_beyond_the_bounds_is_refused(fleet: Fleet, spec: Obj) -> None:
    with pytest.raises(Invalid):
        fleet.hub.send("POST", ROLLOUTS, _rollout("odd", **spec))


@pytest.mark.parametrize(
    ("annotations", "wave", "healthy", "pins", "problem"),
    [
        ({}, None, 0, True, ""),
        ({CLUSTER_WAVE: " 2 ", HEALTHY_FOR: "10m"}, 2, 600, True, ""),
        ({CLUSTER_WAVE: "-1"}, -1, 0, True, ""),
        ({CLUSTER_WAVE: "canary"}, None, 0, True, "'canary'; allowed is an integer"),
        ({CLUSTER_WAVE: "1" * 7}, None, 0, True, "at most six digits"),
        ({HEALTHY_FOR: "721h"}, None, 721 * 3600, True, "from 0s to 720h"),
        ({HEALTHY_FOR: "-1s"}, None, -1, True, "from 0s to 720h"),
        ({HEALTHY_FOR: "soon"}, None, 0, True, "allowed is a duration"),
        ({PIN_REVISIONS: "False"}, None, 0, False, ""),
    ],
)
def test_what_an_application_asks_for(
    annotations: dict[str, str], wave: int | None, healthy: int, pins: bool, problem: str
) -> None:
    found = asked_of({"metadata": {"annotations": annotations}})
    assert (found.wave, found.healthy_for, found.pins) == (wave, timedelta(seconds=healthy), pins)
    assert problem in found.problem
    assert bool(found.problem) == bool(problem)


def test_the_label_of_a_cluster_gives_its_wave() -> None:
    assert wave_of_cluster(None) == (None, "")
    assert wave_of_cluster({"metadata": {"labels": {CLUSTER_WAVE: "3"}}}) == (3, "")
    number, problem = wave_of_cluster({"metadata": {"labels": {CLUSTER_WAVE: "last"}}})
    assert number is None
    assert "'last'" in problem


@pytest.mark.parametrize(("key", "asks"), [(CLUSTER_WAVE, True), (HEALTHY_FOR, True), (DEPENDS_ON, True), ("x", False)])
def test_which_annotations_put_applications_in_order(key: str, asks: bool) -> None:
    assert asks_for_order(application("web", metadata={"annotations": {key: "1"}, "name": "web"})) is asks
