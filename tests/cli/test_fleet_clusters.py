"""``syncline fleet`` and ``syncline cluster accept``: the tables word for word (``golden/fleet/``), of what hub and
agents wrote in virtual time; and which requests a person's acceptance approves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.fleethub import golden
from tests.fleet.hub.hubs import BOOTSTRAP, agent, csr
from tests.fleet.world import Fleet, config_map, managed_cluster

from syncline.assembly.inspection.clusters import READ, ClusterState, Counted, cluster_states, counted
from syncline.assembly.inspection.fleet import fleet_snapshot
from syncline.cli.remotes.cluster import managed_cluster as destination
from syncline.cli.remotes.cluster import merged
from syncline.cli.views.fleet.clusters import (
    describe_cluster,
    fleet_obj,
    fleet_summary,
    fleet_table,
    request_table,
    set_rows,
)
from syncline.cli.views.repository import Destination, cluster_rows
from syncline.control.executor import run_in_place
from syncline.fleet.hub.registration.pending import acceptance, pending_requests
from syncline.kube.client import Request
from syncline.kube.kinds.managedclusters import CLUSTER_SET, CLUSTER_SET_BINDING, MANAGED_CLUSTER
from syncline.kube.objects import Obj

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """One cluster that works, one whose agent is cut off, one that asks, one that was denied."""
    made = Fleet("eu-1", "eu-2")
    made.hub.send(
        "POST", "/apis/cluster.open-cluster-management.io/v1/managedclusters", managed_cluster("new", accepted=False)
    )
    as_bootstrap = made.hub.core.transport(BOOTSTRAP)
    as_bootstrap.send(Request("POST", CSRS, body=csr("new", "new-1"))).or_raise()
    made.hub.send("POST", CSRS, csr("new", "odd-1"))
    made.add("old", accepted=True)
    made.time.advance(30)
    made.work("eu-1", "shop", config_map("menu"))
    made.members["eu-2"].hub_cable.cut()
    made.hub.send(
        "PATCH",
        "/apis/cluster.open-cluster-management.io/v1/managedclusters/old",
        {"spec": {"hubAcceptsClient": False}},
    )
    made.time.advance(400)
    return made


def states(fleet: Fleet) -> list[ClusterState]:
    return cluster_states(run_in_place(fleet_snapshot(READ), fleet.hub.admin).cache)


def state(fleet: Fleet, name: str) -> ClusterState:
    return next(one for one in states(fleet) if one.name == name)


def test_the_fleet_is_one_table(fleet: Fleet) -> None:
    found = states(fleet)
    golden("fleet", fleet_table(found, fleet.clock.now(), wide=False) + "\n" + fleet_summary(found))


def test_one_cluster_shows_conditions_works_taints_and_requests(fleet: Fleet) -> None:
    golden("cluster-get", describe_cluster(state(fleet, "eu-2"), fleet.clock.now()))
    assert fleet_obj(state(fleet, "new"))["requests"][0]["passedOver"] == ""


def test_pending_requests_say_what_acceptance_does(fleet: Fleet) -> None:
    found = run_in_place(fleet_snapshot(READ), fleet.hub.admin).cache.objects(READ[-1])
    golden("cluster-requests", request_table(pending_requests(found), fleet.clock.now()))


def test_sets_show_members_and_the_namespaces_that_select_from_them(fleet: Fleet) -> None:
    kinds = [one.group_kind for one in (CLUSTER_SET, MANAGED_CLUSTER, CLUSTER_SET_BINDING)]
    cache = run_in_place(fleet_snapshot(kinds), fleet.hub.admin).cache
    golden("cluster-sets", set_rows(*(cache.objects(kind) for kind in kinds), wide=True))


def test_a_cluster_in_both_senses_has_one_row(fleet: Fleet) -> None:
    declared = [Destination("https://eu-1:6443", "eu-1"), Destination("https://other", "other")]
    rows = merged(declared, [destination(one.obj) for one in states(fleet)])
    assert [(one.name, one.registered, one.joined) for one in rows] == [
        ("eu-1", True, "joined"),
        ("other", True, ""),
        ("eu-2", False, "joined"),
        ("new", False, "pending"),
        ("old", False, "denied"),
    ]
    assert "eu-1    v1.36.0" not in cluster_rows(rows) and rows[0].status == "Successful"


def test_what_may_not_be_read_is_a_question_mark_and_not_nothing(fleet: Fleet) -> None:
    cache = run_in_place(fleet_snapshot([MANAGED_CLUSTER.group_kind]), fleet.hub.admin).cache
    for kind in READ[1:]:
        cache.mark_unread(kind, "forbidden")
    table = fleet_table(cluster_states(cache), fleet.clock.now(), wide=False).splitlines()
    assert [line.split().count("?") for line in table] == [0, 4, 4, 4, 4]
    assert fleet_obj(cluster_states(cache)[0])["works"] is None


def test_works_count_as_applied_only_at_their_generation() -> None:
    def work(generation: int, **status: str) -> Obj:
        conditions = [{"type": kind, "status": one, "observedGeneration": 1} for kind, one in status.items()]
        return {"metadata": {"generation": generation}, "status": {"conditions": conditions}}

    works = [
        work(1, Applied="True"),
        work(2, Applied="True"),
        work(1, Applied="False"),
        work(1, Applied="True", Available="False"),
    ]
    assert counted(works) == Counted(4, 2, 2)


# -- acceptance ------------------------------------------------------------------------------------------------------


def asked(name: str = "r1", cluster: str = "c1", *, user: str = BOOTSTRAP.name, of: str = "", **given: Any) -> Obj:
    """A request as the server stores it, with its user; ``of``: a group of the user."""
    made = csr(cluster, name, **given)
    made["spec"] |= {"username": user, "groups": [of]}
    return made


def decide(cluster: Obj, *requests: Obj, **given: Any) -> tuple[list[str], bool, str]:
    found = acceptance(cluster, pending_requests(requests), **{"again": False, **given})
    return [one.name for one in found.approve], found.accept, found.refused


C1 = managed_cluster("c1", accepted=False)
JOINED = managed_cluster("c1") | {"status": {"conditions": [{"type": "ManagedClusterJoined", "status": "True"}]}}


def test_a_request_of_an_agent_is_approved_and_the_cluster_accepted() -> None:
    assert decide(C1, asked(), asked("r2", "c2")) == (["r1"], True, "")
    assert decide(managed_cluster("c1"), asked()) == (["r1"], False, "")
    assert decide(C1) == ([], True, "")


def test_of_two_requests_for_one_name_a_person_chooses() -> None:
    approve, accept, refused = decide(C1, asked("r1"), asked("r2"))
    assert (approve, accept) == (
        [],
        False,
    ) and "2 requests with different keys ask for its name: r1 (agent a1)" in refused
    assert decide(C1, asked("r1"), asked("r2"), chosen=["r2"]) == (["r2"], True, "")


def test_a_name_that_has_joined_gets_no_second_certificate_by_mistake() -> None:
    assert "it has joined already, and request r1 asks for its name again" in decide(JOINED, asked())[2]
    assert decide(JOINED, asked(), again=True) == (["r1"], False, "")


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (asked(common_name="system:open-cluster-management:c2:a1"), "its common name is"),
        (asked(groups=["system:masters"]), "its organizations are ['system:masters']"),
        (
            asked(user="kubernetes-admin", of="system:masters"),
            "user 'kubernetes-admin' is not one that agents join with",
        ),
        (asked(signerName="kubernetes.io/kubelet-serving"), "its signer is"),
        (asked(user=agent("c1").name), "it renews a certificate"),
        (asked(request="!"), "its PEM block type"),
        (asked(request="A" * 20000), "its request is longer than"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_request_that_is_no_agents_is_passed_over_with_the_reason(request_: Obj, why: str) -> None:
    found = acceptance(C1, pending_requests([request_]), again=False)
    assert not found.approve and found.accept and why in found.passed_over[0].refused
    chosen = acceptance(C1, pending_requests([request_]), ["r1"], again=False)
    assert not chosen.approve and not chosen.accept and why in chosen.refused


def test_decided_requests_and_those_of_add_ons_do_not_count() -> None:
    decided = asked() | {"status": {"conditions": [{"type": "Denied", "status": "True"}]}}
    addon = asked("r2")
    addon["metadata"]["labels"]["open-cluster-management.io/addon-name"] = "a"
    assert pending_requests([decided, addon]) == []


def test_a_bootstrap_token_of_clusteradm_counts() -> None:
    token = asked(user="system:bootstrap:abc", of="system:bootstrappers:managedcluster")
    assert decide(C1, token) == (["r1"], True, "")


def test_goldens_have_their_views() -> None:
    used = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    for path in (Path(__file__).parent / "golden" / "fleet").glob("*.txt"):
        assert f'golden("{path.stem}"' in used, path
