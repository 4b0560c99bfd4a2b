"""The work agent on two embedded clusters in virtual time; the numbers are those of the reference of the pull model.

The tests share a fleet: each has works and objects of its own names.
"""

from __future__ import annotations

import pytest
from tests.fleet.agents import (
    APPLIED,
    HUB_URL,
    VERBS,
    Place,
    config,
    custom,
    definition,
    deployment,
    executor,
    maps,
    namespace,
    path,
)
from tests.fleet.world import Fleet, config_map

from syncline.fleet.spoke.work.deletion import hub_hash
from syncline.kube.objects import Obj, dig, finalizers, owner_references


@pytest.fixture(scope="module")
def shared() -> Place:
    return Place(Fleet("c1"))


@pytest.fixture
def place(shared: Place) -> Place:
    return shared


def test_b48_the_finalizer_is_there_before_any_object(place: Place) -> None:
    mark = len(place.both)
    place.work("b48", config_map("b48"))
    assert finalizers(place.get("b48")) == ["cluster.open-cluster-management.io/manifest-work-cleanup"]
    writes = [one for one in place.both[mark:] if "b48" in one or "POST" in one]
    assert writes == [
        f"PATCH {path('b48')}",
        f"POST {APPLIED}",
        f"PATCH {APPLIED}/{hub_hash(HUB_URL)}-b48/status",
        f"GET {maps('b48')}",
        "POST /api/v1/namespaces/default/configmaps",
        f"PATCH {APPLIED}/{hub_hash(HUB_URL)}-b48/status",
        f"PATCH {path('b48')}/status",
    ]


def test_b49_a_definition_comes_before_what_it_defines_and_ordinals_stay(place: Place) -> None:
    place.work("b49", custom("Widget", "a", "b49"), definition("widgets", "Widget"), namespace("b49"))
    place.settle(2)
    status = place.get("b49")["status"]
    assert [one["resourceMeta"]["ordinal"] for one in status["resourceStatus"]["manifests"]] == [0, 1, 2]
    assert status["resourceStatus"]["manifests"][0]["resourceMeta"]["kind"] == "Widget"
    assert place.condition("b49", "Applied") == ("True", "AppliedManifestWorkComplete")
    assert place.there("/apis/example.io/v1/namespaces/b49/widgets/a") is not None


def test_b50_one_invalid_manifest_does_not_stop_the_others(place: Place) -> None:
    bad = {**config_map("b50-bad"), "data": {"a": 1}}
    place.work("b50", config_map("b50-a"), bad, config_map("b50-b"))
    assert place.condition("b50", "Applied") == ("False", "AppliedManifestWorkFailed")
    assert place.condition("b50", "Applied", 1) == ("False", "AppliedManifestFailed")
    assert place.there(maps("b50-a")) is not None
    assert place.there(maps("b50-b")) is not None
    assert place.condition("b50", "Available") == ("False", "ResourcesNotAvailable")
    place.delete("b50")


def test_b51_available_means_that_it_exists(place: Place) -> None:
    place.work("b51", deployment("b51", replicas=0))
    assert place.condition("b51", "Available") == ("True", "ResourcesAvailable")


def test_b52_an_object_that_is_deleted_on_the_cluster_comes_back_at_once(place: Place) -> None:
    place.work("b52", config_map("b52", a="1"))
    with place.requests() as seen:
        place.member.send("DELETE", maps("b52"))
        place.settle(1)
    assert place.there(maps("b52")) is not None
    assert not seen["hub"]


def test_an_idle_work_costs_no_request(place: Place) -> None:
    place.work("idle", config_map("idle-a"), deployment("idle-b", 0))
    place.settle(60)
    with place.requests() as seen:
        place.settle(600)
    assert [one for one in seen["own"] if "idle" in one] == []
    assert [one for one in seen["hub"] if "idle" in one] == []


def test_b53_create_only_never_updates(place: Place) -> None:
    only = config("configmaps", "b53", updateStrategy={"type": "CreateOnly"})
    place.work("b53", config_map("b53", a="1"), manifestConfigs=[only])
    place.manifests("b53", config_map("b53", a="2"))
    place.settle(400)
    assert dig(place.there(maps("b53")), "data", "a") == "1"


def test_b54_read_only_writes_nothing_reports_and_stays(place: Place) -> None:
    place.member.send("POST", maps(""), config_map("b54", a="7"))
    rule = {"type": "JSONPaths", "jsonPaths": [{"name": "a", "path": ".data.a"}]}
    read = config("configmaps", "b54", updateStrategy={"type": "ReadOnly"}, feedbackRules=[rule])
    place.work("b54", config_map("b54", a="1"), manifestConfigs=[read])
    assert place.values("b54") == {"a": "7"}
    place.delete("b54")
    place.settle(30)
    assert place.gone("b54")
    live = place.there(maps("b54")) or {}
    assert (dig(live, "data", "a"), owner_references(live)) == ("7", [])


def test_b55_a_field_of_another_manager_is_a_failed_manifest(place: Place) -> None:
    place.member.send("POST", maps(""), config_map("b55", a="1"))
    applied = config("configmaps", "b55", updateStrategy={"type": "ServerSideApply"})
    place.work("b55", config_map("b55", a="2"), manifestConfigs=[applied])
    assert place.condition("b55", "Applied", 0) == ("False", "AppliedManifestFailed")
    forced = config("configmaps", "b55", updateStrategy={"type": "ServerSideApply", "serverSideApply": {"force": True}})
    place.patch("b55", {"manifestConfigs": [forced]})
    assert place.condition("b55", "Applied", 0) == ("True", "AppliedManifestComplete")
    assert dig(place.there(maps("b55")), "data", "a") == "2"


def test_b56_what_the_cluster_changes_in_an_ignored_field_stays_until_the_hub_changes(place: Place) -> None:
    ignored = [{"condition": "OnSpokeChange", "jsonPaths": [".operation"]}]
    strategy = {"type": "ServerSideApply", "serverSideApply": {"force": True, "ignoreFields": ignored}}
    one = config("gadgets", "b56", "example.io", updateStrategy=strategy)
    wanted = custom("Gadget", "b56", operation={"sync": "1"})
    place.work("b56", wanted, definition("gadgets", "Gadget"), manifestConfigs=[one])
    place.settle(2)
    gadget = "/apis/example.io/v1/namespaces/default/gadgets/b56"
    place.member.send("PATCH", gadget, {"operation": None})
    place.settle(600)
    assert "operation" not in (place.there(gadget) or {})
    place.manifests("b56", {**wanted, "operation": {"sync": "2"}}, definition("gadgets", "Gadget"))
    assert dig(place.there(gadget), "operation", "sync") == "2"


def test_b57_b58_feedback_reports_what_it_can_read(place: Place) -> None:
    paths = [{"name": "no", "path": ".data.no"}, {"name": "a", "path": ".data.a"}]
    rules = [{"type": "JSONPaths", "jsonPaths": paths}]
    place.work("b57", config_map("b57", a="x"), manifestConfigs=[config("configmaps", "b57", feedbackRules=rules)])
    assert (place.values("b57"), place.condition("b57", "StatusFeedbackSynced", 0)) == (
        {"a": "x"},
        ("True", "StatusFeedbackSynced"),
    )
    known = config("configmaps", "b58", feedbackRules=[{"type": "WellKnownStatus"}])
    place.work("b58", config_map("b58"), manifestConfigs=[known])
    assert place.condition("b58", "StatusFeedbackSynced", 0) == ("False", "StatusFeedbackSyncFailed")


def test_feedback_follows_what_others_add_which_stays_until_the_resync(place: Place) -> None:
    rule = {"type": "JSONPaths", "jsonPaths": [{"name": "more", "path": ".data.more"}]}
    place.work("fed", config_map("fed", a="1"), manifestConfigs=[config("configmaps", "fed", feedbackRules=[rule])])
    place.settle(1)
    place.member.send("PATCH", maps("fed"), {"data": {"more": "2"}})
    place.settle(0.5)
    assert place.values("fed") == {"more": "2"}
    place.settle(400)
    assert dig(place.there(maps("fed")), "data") == {"a": "1"}
    assert place.values("fed") == {}


def ready(name: str, kind: str, value: str) -> Obj:
    rule = {"type": "CEL", "condition": kind, "celExpressions": [f"object.data.a == '{value}'"]}
    return config("configmaps", name, conditionRules=[rule])


def test_b59_b60_b61_rules_make_conditions_of_the_work_and_take_them_away(place: Place) -> None:
    place.work("b59", config_map("b59-a", a="1"), config_map("b59-b", a="2"))
    assert place.condition("b59", "Progressing") is None
    rules = [ready("b59-a", "Progressing", "1"), ready("b59-b", "Progressing", "1")]
    place.patch("b59", {"manifestConfigs": rules})
    assert place.condition("b59", "Progressing") == ("True", "ConditionRulesAggregated")
    place.patch("b59", {"manifestConfigs": [ready("b59-a", "Mine", "1"), ready("b59-b", "Mine", "1")]})
    assert place.condition("b59", "Mine") == ("False", "ConditionRulesAggregated")
    assert place.condition("b59", "Progressing") is None
    place.patch("b59", {"manifestConfigs": None})
    assert place.condition("b59", "Mine") is None
    assert place.condition("b59", "Mine", 0) is None


def test_a_completed_work_reports_what_it_applied_whatever_its_spec_becomes(place: Place) -> None:
    rule = {"type": "CEL", "condition": "Complete", "celExpressions": ["object.data.a == 'done'"]}
    done = config("configmaps", "first", conditionRules=[rule])
    place.work("w", config_map("first", a="done"), manifestConfigs=[done])
    place.manifests("w", config_map("second"))
    assert place.condition("w", "Complete") == ("True", "ConditionRulesAggregated")
    (entry,) = dig(place.get("w"), "status", "resourceStatus", "manifests")
    assert entry["resourceMeta"]["name"] == "first"
    assert place.there(maps("second")) is None


def test_b62_a_complete_manifest_is_not_updated(place: Place) -> None:
    rule = {"type": "CEL", "condition": "Complete", "celExpressions": ["object.data.a == 'done'"]}
    done = config("configmaps", "b62", conditionRules=[rule])
    place.work("b62", config_map("b62", a="done"), manifestConfigs=[done])
    assert place.condition("b62", "Complete") == ("True", "ConditionRulesAggregated")
    place.manifests("b62", config_map("b62", a="again"))
    place.settle(400)
    assert dig(place.there(maps("b62")), "data", "a") == "done"


def test_b63_an_orphaned_object_stays_without_an_owner(place: Place) -> None:
    place.work("b63", config_map("b63"), deleteOption={"propagationPolicy": "Orphan"})
    assert owner_references(place.there(maps("b63")) or {}) == []
    place.delete("b63")
    place.settle(30)
    assert place.gone("b63")
    assert place.applied("b63") is None
    assert place.there(maps("b63")) is not None


def test_b64_only_the_selected_object_survives(place: Place) -> None:
    rule = {"group": "", "resource": "configmaps", "namespace": "default", "name": "b64-a"}
    option = {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": [rule]}}
    place.work("b64", config_map("b64-a"), config_map("b64-b"))
    place.patch("b64", {"deleteOption": option})
    place.delete("b64")
    place.settle(30)
    assert place.gone("b64")
    assert place.there(maps("b64-a")) is not None
    assert place.there(maps("b64-b")) is None


def test_an_option_set_in_the_moment_of_deletion_counts(place: Place) -> None:
    place.work("late", config_map("late"))
    place.fleet.stop_agent("c1")
    place.patch("late", {"deleteOption": {"propagationPolicy": "Orphan"}})
    place.delete("late")
    place.restart()
    place.settle(30)
    assert place.gone("late")
    assert place.there(maps("late")) is not None


def test_b65_what_leaves_the_work_goes_unless_another_work_has_it(place: Place) -> None:
    place.work("b65", config_map("b65-a"), config_map("b65-b"), config_map("b65-c"))
    place.work("b65-other", config_map("b65-b"))
    assert place.condition("b65-other", "syncline.dev/Shared", 0) == ("True", "OwnedByOtherWorks")
    place.manifests("b65", config_map("b65-c"))
    place.settle(2)
    assert place.there(maps("b65-a")) is None
    left = place.there(maps("b65-b")) or {}
    assert [one["name"].rpartition("-b65")[2] for one in owner_references(left)] == ["-other"]
    resources = dig(place.applied("b65"), "status", "appliedResources")
    assert [one["name"] for one in resources] == ["b65-c"]


RBAC = "/apis/rbac.authorization.k8s.io/v1"


def allow(place: Place, account: str, *rules: Obj) -> None:
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    place.member.send("POST", f"{RBAC}/clusterroles", {**kind, "metadata": {"name": account}, "rules": list(rules)})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account}
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": account}
    bound = {**kind, "kind": "ClusterRoleBinding", "metadata": {"name": account}, "roleRef": reference}
    place.member.send("POST", f"{RBAC}/clusterrolebindings", {**bound, "subjects": [subject]})


def test_b66_an_executor_without_a_right_is_tried_again_every_minute(place: Place) -> None:
    place.work("b66", config_map("b66"), executor=executor("b66"))
    assert place.condition("b66", "Applied", 0) == ("False", "AppliedManifestFailed")
    assert place.there(maps("b66")) is None
    with place.requests() as seen:
        place.settle(50)
    assert not [one for one in seen["own"] if "subjectaccessreviews" in one]
    allow(place, "b66", {"apiGroups": [""], "resources": ["configmaps"], "verbs": VERBS})
    place.settle(15)
    assert place.there(maps("b66")) is not None
    assert place.condition("b66", "Applied", 0) == ("True", "AppliedManifestComplete")


def test_a_refused_manifest_is_tried_again_although_its_kind_was_read_in_between() -> None:
    """The first work of an agent: its kind is polled until it is watched."""
    test_b66_an_executor_without_a_right_is_tried_again_every_minute(Place(Fleet("c1")))


def test_an_executor_cannot_grant_rights_that_it_lacks(place: Place) -> None:
    allow(place, "grantor", {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": VERBS})
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": [rule]}
    place.work("grants", {**role, "metadata": {"name": "grants", "namespace": "default"}}, executor=executor("grantor"))
    message = dig(place.get("grants"), "status", "resourceStatus", "manifests", 0, "conditions", 0, "message")
    assert "permission escalation, will try again in 1m0s" in message


def test_a_refused_manifest_reports_no_values(place: Place) -> None:
    place.member.send("POST", maps(""), config_map("secretive", a="hidden"))
    rule = {"type": "JSONPaths", "jsonPaths": [{"name": "a", "path": ".data.a"}]}
    read = config("configmaps", "secretive", updateStrategy={"type": "ReadOnly"}, feedbackRules=[rule])
    place.work("secretive", config_map("secretive"), manifestConfigs=[read], executor=executor("nothing"))
    place.settle(30)
    assert place.values("secretive") == {}


@pytest.mark.parametrize(
    "manifest",
    [
        {
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "AppliedManifestWork",
            "metadata": {"name": "mine"},
            "spec": {"hubHash": "x", "manifestWorkName": "y"},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "hub-kubeconfig-secret", "namespace": "open-cluster-management-agent"},
        },
    ],
    ids=["inventory", "credentials"],
)
def test_a_work_may_not_have_what_is_the_agents_own(place: Place, manifest: Obj) -> None:
    name = f"own-{manifest['kind'].lower()}"
    place.work(name, manifest, config_map(name))
    found = dig(place.get(name), "status", "resourceStatus", "manifests", 0, "conditions", 0)
    assert found["message"].startswith("Failed to apply manifest: a work may not contain ")
    assert place.there(maps(name)) is not None
    place.delete(name)


def test_deletion_waits_for_what_holds_an_object(place: Place) -> None:
    place.work("held", {**config_map("held"), "metadata": {"name": "held", "namespace": "default"}})
    place.member.send("PATCH", maps("held"), {"metadata": {"finalizers": ["example.io/hold"]}})
    place.settle(2)
    place.delete("held")
    place.settle(60)
    assert place.condition("held", "Deleting") == ("True", "WorkDeleting")
    assert place.applied("held") is not None
    place.member.send("PATCH", maps("held"), {"metadata": {"finalizers": None}})
    place.settle(60)
    assert place.gone("held")
    assert place.applied("held") is None


def test_what_others_write_is_undone_less_and_less_often(place: Place) -> None:
    place.work("fight", config_map("fight", a="ours"))
    undone = 0
    for _ in range(120):
        place.member.send("PATCH", maps("fight"), {"data": {"a": "theirs"}})
        place.settle(5)
        undone += dig(place.there(maps("fight")), "data", "a") == "ours"
    assert 4 <= undone <= 10


def test_an_inventory_whose_work_is_gone_is_evicted_after_an_hour(place: Place) -> None:
    place.work("lost", config_map("lost"))
    place.fleet.stop_agent("c1")
    place.delete("lost")
    place.fleet.hub.send("PATCH", path("lost"), {"metadata": {"finalizers": None}})
    place.restart()
    place.settle(3500)
    assert dig(place.applied("lost"), "status", "evictionStartTime")
    assert place.there(maps("lost")) is not None
    place.settle(200)
    assert place.applied("lost") is None
    assert place.there(maps("lost")) is None


def test_a_work_whose_inventory_cannot_be_written_says_so(place: Place) -> None:
    name = "long" + "g" * 200
    place.work(name, config_map("long"))
    place.settle(60)
    assert place.condition(name, "Applied") == ("False", "AppliedManifestWorkFailed")
    text = place.get(name)["status"]["conditions"][0]["message"]
    assert text.startswith("Failed to apply manifest work: the inventory of the work cannot be written: ")
    place.delete(name)
    place.settle(60)
    assert place.gone(name)


def test_an_inventory_that_is_deleted_comes_back_with_its_objects(place: Place) -> None:
    place.work("again", config_map("again"))
    before = place.applied("again") or {}
    place.member.send("DELETE", f"{APPLIED}/{hub_hash(HUB_URL)}-again")
    place.settle(60)
    after = place.applied("again") or {}
    assert before["metadata"]["uid"] != after["metadata"]["uid"]
    assert [one["name"] for one in dig(after, "status", "appliedResources")] == ["again"]
    owners = owner_references(place.there(maps("again")) or {})
    assert [one["uid"] for one in owners] == [after["metadata"]["uid"]]
