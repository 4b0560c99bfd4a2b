"""``syncline work`` and ``syncline explain`` of a fleet, word for word (``golden/fleet/``): from the manifest on the
hub to the refusal on the cluster."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.cli.fleethub import bound_set, cluster, golden, placement
from tests.fleet.world import config_map, manifest_work

from syncline.assembly.inspection.fleet import offline_fleet
from syncline.base.clock import format_time, parse_time
from syncline.cli.views.cause import describe_cause
from syncline.cli.views.fleet.work import describe_work, work_obj, work_rows, work_tree
from syncline.control.cache import Cache
from syncline.explain.graph import explain_object
from syncline.explain.view import Found, View
from syncline.fleet.hub.works.explaining import advice_for, manifest_states
from syncline.kube.objects import Obj, ObjectRef

NOW = parse_time("2026-03-01T12:00:00Z")
SEEN = "cluster.open-cluster-management.io/manifest-work-cleanup"
DEPLOYMENT: Obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
EXECUTOR = {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "shop", "name": "deployer"}}}
REFUSED = (
    "Failed to apply manifest: not allowed to apply the resource apps deployments, shop web, will try again in 1m0s"
)


def said(kind: str, status: str, message: str = "", *, reason: str = "", at: str = "11:59:30", of: int = 1) -> Obj:
    stamp = f"2026-03-01T{at}Z"
    return {
        "type": kind,
        "status": status,
        "reason": reason or f"{kind}{status}",
        "message": message,
        "lastTransitionTime": stamp,
        "observedGeneration": of,
    }


def entry(ordinal: int, manifest: Obj, *conditions: Obj, **values: Any) -> Obj:
    group = manifest["apiVersion"].rpartition("/")[0]
    names = {"name": manifest["metadata"]["name"], "namespace": manifest["metadata"].get("namespace", "")}
    meta = {"ordinal": ordinal, "group": group, "kind": manifest["kind"], "resource": manifest["kind"].lower() + "s"}
    fed = [{"name": key, "fieldValue": {"type": "Integer", "integer": value}} for key, value in values.items()]
    return {"resourceMeta": meta | names, "conditions": list(conditions), "statusFeedback": {"values": fed}}


def stored(work: Obj, *entries: Obj, conditions: tuple[Obj, ...] = (), generation: int = 1, **metadata: Any) -> Obj:
    """The work as the hub has it when its agent has said this."""
    made = {"generation": generation, "creationTimestamp": "2026-03-01T11:00:00Z", "finalizers": [SEEN], **metadata}
    status = {"conditions": list(conditions), "resourceStatus": {"manifests": list(entries)}}
    return work | {"metadata": work["metadata"] | made, "status": status}


APPLIED, AVAILABLE = said("Applied", "True"), said("Available", "True")
GOOD = stored(
    manifest_work("eu-1", "shop", config_map("menu", "shop"), DEPLOYMENT),
    entry(0, config_map("menu", "shop"), APPLIED, AVAILABLE),
    entry(1, DEPLOYMENT, APPLIED, AVAILABLE, ReadyReplicas=2),
    conditions=(said("Applied", "True", "Apply manifest work complete"), AVAILABLE),
    labels={
        "work.open-cluster-management.io/manifestworkreplicaset": "fleet.shop",
        "work.open-cluster-management.io/placementname": "web",
    },
)
DENIED = stored(
    manifest_work("eu-2", "shop", config_map("menu", "shop"), DEPLOYMENT, executor=EXECUTOR),
    entry(0, config_map("menu", "shop"), APPLIED, AVAILABLE),
    entry(1, DEPLOYMENT, said("Applied", "False", REFUSED, reason="AppliedManifestFailed"), said("Available", "False")),
    conditions=(said("Applied", "False", "Failed to apply manifest work"), said("Available", "False")),
)
NEW = stored(manifest_work("eu-1", "new", config_map("a")), finalizers=[])
OLD = stored(manifest_work("eu-1", "old", config_map("a")), conditions=(APPLIED,), generation=2)


def joined(name: str, status: str = "True", message: str = "Managed cluster is available", **more: Any) -> Obj:
    available = said("ManagedClusterConditionAvailable", status, message, at="11:50:00")
    accepted = said("HubAcceptedManagedCluster", "True")
    conditions = [accepted, said("ManagedClusterJoined", "True"), available]
    made = cluster(name)
    return made | {"metadata": made["metadata"] | more, "status": {"conditions": conditions}}


def hub(*objects: Obj) -> Cache:
    return offline_fleet(objects).cache


def explained(obj: Obj, *others: Obj) -> Found:
    return explain_object(View(hub(obj, *others), NOW), obj)


def text(obj: Obj, *others: Obj) -> str:
    return describe_cause(explained(obj, *others).cause, NOW)


def test_a_list_counts_what_is_applied_and_available_and_says_what_made_it() -> None:
    golden("work-list", work_rows([GOOD, NEW, OLD, DENIED], NOW, wide=True))


def test_a_work_shows_each_manifest_with_feedback_and_message() -> None:
    golden("work-get", describe_work(GOOD, NOW))
    assert work_obj(GOOD)["manifests"][1]["feedback"] == {"ReadyReplicas": "2"}


def test_a_tree_leads_from_the_work_to_its_objects() -> None:
    golden("work-tree", "\n".join((*work_tree(GOOD), *work_tree(DENIED))))


def test_b66_a_refused_executor_names_the_missing_right_and_the_binding() -> None:
    found = explained(DENIED, joined("eu-2"))
    golden("work-explain-executor", describe_cause(found.cause, NOW))
    advice = advice_for(DENIED, manifest_states(DENIED)[1], NOW)
    golden("work-explain-binding", "---\n".join(yaml.safe_dump(one) for one in advice.objects).rstrip())
    assert advice.until is not None and format_time(advice.until) == "2026-03-01T12:00:30Z", "every minute"


def test_rights_of_the_whole_cluster_and_escalation_are_named() -> None:
    escalates = REFUSED.replace("shop web,", " reader, error: permission escalation,").replace(
        "apps deployments", "rbac.authorization.k8s.io clusterroles"
    )
    work = stored(DENIED, entry(1, DEPLOYMENT, said("Applied", "False", escalates)), conditions=())
    role, binding = advice_for(work, manifest_states(work)[1], NOW).objects
    assert (role["kind"], binding["kind"]) == ("ClusterRole", "ClusterRoleBinding")
    assert {"escalate", "bind"} <= set(role["rules"][0]["verbs"])


def test_what_the_agent_itself_may_not_do_is_granted_by_an_aggregated_role() -> None:
    user = "system:serviceaccount:open-cluster-management-agent:agent"
    message = (
        f'User "{user}" cannot create resource "applications" in API group "argoproj.io" in the namespace "argocd"'
    )
    work = stored(manifest_work("c", "w", DEPLOYMENT), entry(0, DEPLOYMENT, said("Applied", "False", message)))
    (role,) = advice_for(work, manifest_states(work)[0], NOW).objects
    assert role["metadata"]["labels"] == {"open-cluster-management.io/aggregate-to-work": "true"}
    assert role["rules"][0]["resources"] == ["applications"] and role["rules"][0]["apiGroups"] == ["argoproj.io"]


def test_an_object_that_several_works_write_is_named() -> None:
    shared = said("syncline.dev/Shared", "True", "works a, b have this object, too")
    work = stored(manifest_work("eu-1", "w", DEPLOYMENT), entry(0, DEPLOYMENT, APPLIED, AVAILABLE, shared))
    work["status"]["conditions"] = [APPLIED, AVAILABLE]
    assert "ManifestWork eu-1/w Shared" in text(
        work, joined("eu-1")
    ) and "works a, b have this object" in describe_work(work, NOW)


def test_a_cluster_that_does_not_answer_is_the_cause_of_everything_on_it() -> None:
    away = joined("eu-2", "Unknown", "Registration agent stopped updating its lease.")
    golden("work-explain-unreachable", text(DENIED, away))


@pytest.mark.parametrize(
    ("work", "others", "words"),
    [
        (NEW, [joined("eu-1")], "Waiting for 60m: its agent has not seen it yet"),
        (OLD, [joined("eu-1")], "its agent has applied generation 1, and not yet 2"),
        (GOOD, [joined("eu-1")], "Applied for 30s: 2 of 2 applied, 2 of 2 available"),
        (GOOD, [], "ManagedCluster eu-1 missing: the hub has no such cluster"),
        (GOOD, [cluster("eu-1", accepted=False)], "NotAccepted"),
        (
            GOOD | {"metadata": GOOD["metadata"] | {"deletionTimestamp": "2026-03-01T11:58:00Z"}},
            [joined("eu-1")],
            "Terminating for 2m",
        ),
    ],
    ids=["new", "old", "good", "missing", "not accepted", "deleted"],
)
def test_a_work_says_what_it_waits_for(work: Obj, others: list[Obj], words: str) -> None:
    assert words in text(work, *others)


def test_a_manifest_of_an_earlier_generation_says_nothing_about_this_one() -> None:
    changed = stored(GOOD, *GOOD["status"]["resourceStatus"]["manifests"], generation=2)
    assert [one.status("Applied") for one in manifest_states(changed)] == ["-", "-"]
    assert work_rows([changed], NOW, wide=False).splitlines()[1].split()[2:6] == ["2", "0/2", "0/2", "Waiting"]


# -- clusters and Placements -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (cluster("a", accepted=False), "next: if it shall join: syncline cluster accept a"),
        (cluster("a"), "the hub has not given it its rights yet"),
        (joined("a", "Unknown", "Registration agent stopped updating its lease."), "Unreachable for 10m"),
        (joined("a", "False", "The kube-apiserver is not ok"), "Unavailable for 10m: The kube-apiserver is not ok"),
        (joined("a"), "Available for 10m: Managed cluster is available"),
    ],
    ids=["pending", "accepted", "unreachable", "unavailable", "available"],
)
def test_a_cluster_says_how_far_it_is_and_what_to_do(obj: Obj, words: str) -> None:
    assert words in text(obj)


def test_a_cluster_that_leaves_names_the_works_it_waits_for() -> None:
    away = joined("eu-2", "Unknown", deletionTimestamp="2026-03-01T11:40:00Z", finalizers=["x"])
    golden("explain-leaving", text(away, DENIED))
    assert not explained(away | {"status": joined("eu-2")["status"]}, DENIED).blocked, "its agent is at it"


def test_a_placement_without_clusters_says_why_each_is_left_out() -> None:
    wanted = placement("web", numberOfClusters=5)
    offline = hub(*bound_set(), cluster("eu-1"), cluster("eu-2", taints=[{"key": "k", "effect": "NoSelect"}]), wanted)
    decision = {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "PlacementDecision",
        "metadata": {
            "name": "web-decision-1",
            "namespace": "default",
            "labels": {"cluster.open-cluster-management.io/placement": "web"},
        },
        "status": {"decisions": [{"clusterName": "eu-1"}]},
    }
    offline.put(ObjectRef(decision["apiVersion"].split("/")[0], "PlacementDecision", "", "").group_kind, decision)
    found = explain_object(View(offline, NOW), wanted)
    golden("explain-placement", describe_cause(found.cause, NOW))
    assert found.blocked


def test_a_placement_in_a_namespace_without_bindings_says_what_to_bind() -> None:
    said = text(placement("web"), cluster("eu-1"))
    assert "NoManagedClusterSetBindings" in said and "create a ManagedClusterSetBinding in default" in said
