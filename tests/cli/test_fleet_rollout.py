"""What people see of a roll-out (``golden/fleet/``): a hub, real agents, one cluster after the other."""

from __future__ import annotations

import pytest
from tests.cli.fleethub import golden
from tests.fleet.world import Fleet, config_map

from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.cli.views.cause import describe_cause
from syncline.cli.views.fleet.work import outlook_table, work_rows
from syncline.control.executor import run_in_place
from syncline.explain.fleet.replicasets import outlook
from syncline.explain.graph import explain_object
from syncline.explain.view import View
from syncline.kube.kinds.manifestworks import MANIFEST_WORK, REPLICA_SET
from syncline.kube.kinds.syncline import BUDGET
from syncline.kube.objects import GVK, Obj

CLUSTERS = "/apis/cluster.open-cluster-management.io"
SETS = "/apis/work.open-cluster-management.io/v1alpha1/namespaces/default/manifestworkreplicasets"
GOING = {
    "condition": "Progressing",
    "type": "CEL",
    "celExpressions": ["object.data.state == 'going'"],
    "messageExpression": "'state is ' + object.data.state",
}


def replica_set(**strategy: object) -> Obj:
    config = {"resource": "configmaps", "namespace": "default", "name": "shop"}
    template = {
        "workload": {"manifests": [config_map("shop", state="going")]},
        "manifestConfigs": [{"resourceIdentifier": config, "conditionRules": [GOING]}],
    }
    rollout = {"type": "Progressive", "progressive": {"maxConcurrency": 1, **strategy}}
    return {
        "apiVersion": REPLICA_SET.api_version,
        "kind": REPLICA_SET.kind,
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"placementRefs": [{"name": "web", "rolloutStrategy": rollout}], "manifestWorkTemplate": template},
    }


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return rolling_out()


def rolling_out() -> Fleet:
    """Three clusters, a budget of one, and a roll-out that has reached the first."""
    made = Fleet("eu-1", "eu-2", "us-1")
    budget = {"clusterSelector": {}, "maxUnavailable": 1}
    made.hub.send(
        "POST",
        f"/apis/{BUDGET.api_version}/fleetdisruptionbudgets",
        {"apiVersion": BUDGET.api_version, "kind": BUDGET.kind, "metadata": {"name": "one"}, "spec": budget},
    )
    space = "/namespaces/default"
    for path, kind, name, spec in (
        (f"v1beta2{space}/managedclustersetbindings", "ManagedClusterSetBinding", "global", {"clusterSet": "global"}),
        (f"v1beta1{space}/placements", "Placement", "web", {}),
    ):
        metadata = {"name": name, "namespace": "default"}
        obj = {"apiVersion": f"cluster.open-cluster-management.io/{path.split('/')[0]}", "kind": kind}
        made.hub.send("POST", f"{CLUSTERS}/{path}", {**obj, "metadata": metadata, "spec": spec})
    made.time.advance(20)
    made.hub.send("POST", SETS, replica_set())
    made.time.advance(30)
    return made


def look(fleet: Fleet) -> View:
    return View(run_in_place(snapshot_of_cluster({}), fleet.hub.admin).cache, fleet.clock.now())


def one(view: View, gvk: GVK) -> Obj:
    (found,) = view.cluster.objects(gvk.group_kind)
    return found


def test_a_roll_out_shows_whose_turn_it_is_and_what_the_others_wait_for(fleet: Fleet) -> None:
    view = look(fleet)
    obj = one(view, REPLICA_SET)
    found = explain_object(view, obj)
    rows = outlook(view, obj).clusters
    golden("rollout-explain", f"{describe_cause(found.cause, view.now)}\n\n{outlook_table(rows)}")
    assert not found.blocked, "it goes on"


def test_a_budget_names_who_holds_its_places(fleet: Fleet) -> None:
    view = look(fleet)
    golden("budget-explain", describe_cause(explain_object(view, one(view, BUDGET)).cause, view.now))


def test_a_work_that_progresses_says_so(fleet: Fleet) -> None:
    view = look(fleet)
    works = view.cluster.objects(MANIFEST_WORK.group_kind)
    golden("rollout-works", work_rows(works, view.now, wide=False))
    assert "state is going" in describe_cause(explain_object(view, works[0]).cause, view.now)


def test_a_set_whose_placement_selects_nothing_leads_to_the_placement(fleet: Fleet) -> None:
    view = look(fleet)
    empty = replica_set() | {"metadata": {"name": "empty", "namespace": "default"}}
    empty["spec"]["placementRefs"] = [{"name": "missing"}]
    found = explain_object(view, empty)
    assert found.blocked and "Placement missing does not exist" in describe_cause(found.cause, view.now)


def test_a_roll_out_that_waits_for_a_lost_cluster_leads_to_it() -> None:
    fleet = rolling_out()
    fleet.members["us-1"].hub_cable.cut()
    fleet.time.advance(400)
    late = replica_set() | {"metadata": {"name": "late", "namespace": "default"}}
    fleet.hub.send("POST", SETS, late)
    fleet.time.advance(20)
    view = look(fleet)
    obj = next(one for one in view.cluster.objects(REPLICA_SET.group_kind) if one["metadata"]["name"] == "late")
    found = explain_object(view, obj)
    golden("rollout-explain-lost", describe_cause(found.cause, view.now))
    assert found.blocked
