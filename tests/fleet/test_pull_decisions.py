"""A set that is made before its Placement has decided finds the clusters when its generator says so."""

from __future__ import annotations

from tests.fleet.rollingout import APPS, PLACEMENTS, SETS, RollOut

from syncline.kube.objects import name_of


def test_a_set_that_finds_no_decision_looks_again_after_the_seconds_of_its_generator() -> None:
    run = RollOut("c1")
    run.keeps = False
    placement, found = (run.fleet.hub.get(path) for path in (f"{PLACEMENTS}/p", f"{SETS}/set"))
    for path in (f"{SETS}/set", f"{PLACEMENTS}/p"):
        run.do("DELETE", path)
    run.go(200)
    assert run.items(APPS) == []
    run.do("POST", SETS, {**found, "metadata": {"name": "set"}, "status": {}})
    run.go(5)
    (error,) = [
        one for one in run.fleet.hub.get(f"{SETS}/set")["status"]["conditions"] if one["type"] == "ErrorOccurred"
    ]
    assert error["message"] == "no clusterDecisionResources found"
    run.do("POST", PLACEMENTS, {**placement, "metadata": {"name": "p", "namespace": "argocd"}, "status": {}})
    run.go(31)
    assert [name_of(one) for one in run.items(APPS)] == ["web-c1"]
