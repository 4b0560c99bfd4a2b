"""Decisions about the manifests of a work, as sentences; the numbers are those of the reference of the pull model."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.apply.diff.jq import Answers, Unknown
from syncline.control.plan import Apply, Create, Delete, Patch, Replace
from syncline.fleet.hub.works.admission import WorkRefused, check_manifests, executor_review
from syncline.fleet.spoke.work.aggregation import aggregate, pruned
from syncline.fleet.spoke.work.conditionrules import conditions_of
from syncline.fleet.spoke.work.deletion import applied_work, delete_applied, hub_hash, next_inventory, untracked
from syncline.fleet.spoke.work.executor import Target, reviews
from syncline.fleet.spoke.work.feedback import feedback
from syncline.fleet.spoke.work.manifests.applying import applied_condition, plan_manifest
from syncline.fleet.spoke.work.manifests.ignoring import IgnoreFieldError, without_ignored
from syncline.fleet.spoke.work.ordering import in_order
from syncline.fleet.spoke.work.ownership import Ownership, owned_by_work, reference_to
from syncline.kube.errors import Conflict
from syncline.kube.objects import Obj

OURS = reference_to({"metadata": {"name": "hub-w", "uid": "u1"}})
OTHER = reference_to({"metadata": {"name": "hub-other", "uid": "u2"}})
NO_ANSWERS = Answers()


def config_map(**metadata: Any) -> Obj:
    named = {"name": "x", "namespace": "n", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"a": "1"}}


def resource(**fields: Any) -> Obj:
    return {"group": "", "version": "v1", "resource": "configmaps", "namespace": "n", "name": "x", "uid": "o"} | fields


def plan(manifest: Obj, live: Obj | None, kind: str, owned: bool = True, **settings: Any) -> Any:
    strategy = {"type": kind, "serverSideApply": settings}
    return plan_manifest(manifest, live, strategy, Ownership(OURS, owned), NO_ANSWERS)


def test_b49_definitions_and_namespaces_come_before_custom_resources_and_ordinals_stay() -> None:
    kinds = ["Widget", "Deployment", "CustomResourceDefinition", "Role", "Namespace", "Gadget"]
    found = in_order([{"kind": kind} for kind in kinds])
    assert [number for number, _ in found] == [2, 4, 3, 1, 0, 5]


def test_b53_create_only_leaves_the_live_object_but_for_its_owner() -> None:
    found = plan(config_map(), {**config_map(uid="o", resourceVersion="7"), "data": {"a": "2"}}, "CreateOnly").write
    assert isinstance(found, Patch)
    assert found.body == {"metadata": {"ownerReferences": [OURS], "uid": "o", "resourceVersion": "7"}}
    owned = {**config_map(ownerReferences=[OURS]), "data": {"a": "2"}}
    assert plan(config_map(), owned, "CreateOnly").write is None


@pytest.mark.parametrize("live", [None, {**config_map(), "data": {}}])
def test_b54_read_only_never_writes(live: Obj | None) -> None:
    assert plan(config_map(), live, "ReadOnly").write is None


def test_b55_a_conflict_of_server_side_apply_is_a_failed_manifest() -> None:
    found = applied_condition(Conflict('Apply failed with 1 conflict: conflict with "other": .data.a'), 3)
    assert (found["status"], found["reason"], found["observedGeneration"]) == ("False", "AppliedManifestFailed", 3)
    assert found["message"].startswith("Failed to apply manifest: Apply failed with 1 conflict")


def test_an_expression_of_ignore_fields_that_fails_has_a_reason_of_its_own() -> None:
    assert applied_condition(IgnoreFieldError("x"), 1)["reason"] == "AppliedManifestSSAIgnoreFieldError"
    assert applied_condition(None, 1)["reason"] == "AppliedManifestComplete"


def test_b56_on_spoke_change_applies_again_only_when_the_hub_content_changes() -> None:
    ignored = [{"condition": "OnSpokeChange", "jsonPaths": [".operation"]}]
    manifest = {**config_map(), "operation": {"sync": {}}}
    first = plan(manifest, None, "ServerSideApply", ignoreFields=ignored).write
    assert isinstance(first, Apply)
    live = {**first.obj, "operation": {}}
    live["metadata"] = {**live["metadata"], "ownerReferences": [OURS]}
    assert plan(manifest, live, "ServerSideApply", ignoreFields=ignored).write is None
    changed = {**manifest, "operation": {"sync": {"revision": "2"}}}
    assert isinstance(plan(changed, live, "ServerSideApply", ignoreFields=ignored).write, Apply)


def test_fields_ignored_on_spoke_present_are_sent_only_at_first() -> None:
    ignored = [{"condition": "OnSpokePresent", "jsonPointers": ["/data/a"]}]
    first = plan(config_map(), None, "ServerSideApply", ignoreFields=ignored).write
    later = plan(config_map(), config_map(), "ServerSideApply", ignoreFields=ignored).write
    assert (first.obj["data"], later.obj["data"]) == ({"a": "1"}, {})


def test_a_jq_expression_is_a_question_before_anything_is_planned() -> None:
    fields = [{"condition": "OnSpokePresent", "jqPathExpressions": [".data.a"]}]
    with pytest.raises(Unknown) as raised:
        without_ignored(config_map(), fields, NO_ANSWERS)
    assert raised.value.questions[0].expressions == (".data.a",)


def test_a_path_to_a_top_level_field_removes_it() -> None:
    fields = [{"condition": "OnSpokePresent", "jsonPaths": [".data", ".metadata.name.deep", ".x["]}]
    assert "data" not in without_ignored(config_map(), fields, NO_ANSWERS)


def test_update_merges_metadata_keeps_finalizers_and_names_the_version_it_saw() -> None:
    live = {**config_map(labels={"keep": "1", "gone": "1"}, finalizers=["f"], resourceVersion="7"), "data": {}}
    found = plan(config_map(labels={"new": "1", "gone-": ""}, uid="x"), live, "Update").write
    assert isinstance(found, Replace)
    metadata = found.obj["metadata"]
    assert metadata["labels"] == {"keep": "1", "new": "1"}
    assert (metadata["finalizers"], metadata["resourceVersion"], "uid" in metadata) == (["f"], "7", False)
    assert plan(config_map(), config_map(ownerReferences=[OURS]), "Update").write is None


def test_an_unknown_strategy_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="use one of Update, CreateOnly, ReadOnly, ServerSideApply"):
        plan(config_map(), None, "Merge")


def test_b57_b58_what_cannot_be_read_fails_the_feedback_but_not_its_other_values() -> None:
    obj = {**config_map(), "status": {"map": {}, "n": 1}}
    paths = [{"name": name, "path": f".status.{name}"} for name in ("missing", "map", "n")]
    values, condition = feedback(obj, [{"type": "JSONPaths", "jsonPaths": paths}, {"type": "WellKnownStatus"}])
    assert values == [{"name": "n", "fieldValue": {"type": "Integer", "integer": 1}}]
    assert condition["reason"] == "StatusFeedbackSyncFailed"
    assert condition["message"] == (
        "Sync status feedback failed with error [the type map[string]interface {} of the value for map is not found, "
        "cannot find the wellknown statuses for resource with gvk /v1, Kind=ConfigMap]"
    )
    assert feedback(obj, [{"type": "JSONPaths", "jsonPaths": paths[:1]}])[1]["reason"] == "StatusFeedbackSynced"
    assert feedback(obj, [])[1]["reason"] == "NoStatusFeedbackSynced"


def test_raw_values_write_numbers_as_go_does() -> None:
    rule = {"type": "JSONPaths", "jsonPaths": [{"name": "v", "path": ".status"}]}
    values, _ = feedback({**config_map(), "status": {"b": 1.0, "a": 0.5}}, [rule], raw=True)
    assert values[0]["fieldValue"]["jsonRaw"] == '{"a":0.5,"b":1}'


def test_b59_without_rules_a_work_has_only_available() -> None:
    listed = [{"conditions": [{"type": kind, "status": "True", "reason": "R"}]} for kind in ("Available", "Applied")]
    assert [one["type"] for one in aggregate(1, listed)] == ["Available"]


@pytest.mark.parametrize(
    ("kind", "statuses", "status"),
    [
        ("Progressing", ("False", "True"), "True"),
        ("Progressing", ("False", "Unknown"), "Unknown"),
        ("Degraded", ("False", "True"), "False"),
        ("Mine", ("True", "Unknown"), "Unknown"),
        ("Mine", ("True", "True"), "True"),
    ],
)
def test_b60_progressing_is_true_by_one_others_are_false_by_one(kind: str, statuses: Any, status: str) -> None:
    rule = {"type": kind, "reason": "ConditionRuleEvaluated"}
    made = aggregate(1, [{"conditions": [{**rule, "status": each}]} for each in statuses])
    assert {one["type"]: one["status"] for one in made}[kind] == status


def test_b61_conditions_of_a_former_generation_go() -> None:
    old = {"type": "Mine", "reason": "ConditionRuleEvaluated", "observedGeneration": 1}
    assert pruned([old, {"type": "Applied", "reason": "R", "observedGeneration": 1}], 2)[0]["type"] == "Applied"


def test_rules_of_one_manifest_share_a_limit_of_steps() -> None:
    loop = "object.l.all(a, object.l.all(b, object.l.all(c, a + b + c >= 0)))"
    rules = [{"type": "CEL", "condition": f"C{number}", "celExpressions": [loop]} for number in range(4)]
    found = conditions_of({"l": list(range(60))}, rules)
    assert {one["reason"] for one in found} == {"ConditionRuleExpressionError"}
    assert found[-1]["message"] == "CEL evaluation budget exceeded"


def test_b63_b64_what_is_orphaned_has_no_owner() -> None:
    one = resource()
    rule = {name: one[name] for name in ("group", "resource", "namespace", "name")}
    selective = {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": [rule]}}
    assert not owned_by_work(one, {"propagationPolicy": "Orphan"})
    assert not owned_by_work(one, selective)
    assert owned_by_work(resource(name="y"), selective)
    found = plan(config_map(), config_map(ownerReferences=[OTHER, OURS]), "Update", owned=False).write
    assert found.obj["metadata"]["ownerReferences"] == [OTHER]
    created = plan(config_map(), None, "Update", owned=False).write
    assert isinstance(created, Create)
    assert "ownerReferences" not in created.obj["metadata"]


def test_b65_what_leaves_the_work_is_deleted_unless_another_work_owns_it() -> None:
    gone = untracked([resource(), resource(name="y")], [resource(name="y", version="v2")])
    assert [one["name"] for one in gone] == ["x"]
    ours = delete_applied(gone, lambda _: config_map(uid="o", ownerReferences=[OURS]), OURS, "why")
    assert [type(one) for one in ours.actions] == [Delete]
    assert ours.pending == tuple(gone)
    shared = delete_applied(gone, lambda _: config_map(uid="o", ownerReferences=[OURS, OTHER]), OURS, "why")
    assert [type(one) for one in shared.actions] == [Patch]
    assert not shared.pending


@pytest.mark.parametrize(
    ("live", "pending"),
    [
        (None, False),
        (config_map(uid="o"), False),
        (config_map(uid="another", ownerReferences=[OURS]), False),
        (config_map(uid="o", ownerReferences=[OURS], deletionTimestamp="2026-01-01T00:00:00Z"), True),
    ],
)
def test_nothing_is_deleted_that_is_not_exactly_what_was_applied(live: Obj | None, pending: bool) -> None:
    found = delete_applied([resource()], lambda _: live, OURS, "why")
    assert not found.actions
    assert bool(found.pending) is pending


def test_the_inventory_has_what_is_applied_and_what_still_goes() -> None:
    found = next_inventory([resource(name="b", uid="new")], [resource(name="a"), resource(name="b")])
    assert [(one["name"], one["uid"]) for one in found] == [("a", "o"), ("b", "new")]
    made = applied_work(hub_hash("https://hub"), "agent", "w")
    assert made["metadata"]["name"] == f"{hub_hash('https://hub')}-w"
    assert made["spec"] == {"hubHash": hub_hash("https://hub"), "agentID": "agent", "manifestWorkName": "w"}


def test_b66_the_right_to_delete_is_asked_only_for_what_the_work_owns() -> None:
    executor = {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "ns", "name": "sa"}}}
    target = Target("rbac.authorization.k8s.io", "v1", "roles", "n", "x")
    verbs = [one["resourceAttributes"]["verb"] for one in reviews(executor, target, owned=False)]
    assert verbs == ["create", "update", "patch", "get"]
    assert target.grants
    assert "permission escalation, will try again in 1m0s" in target.escalation


def test_b67_an_unchanged_executor_is_not_asked_for_again() -> None:
    executor = {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "ns", "name": "sa"}}}
    work = {"metadata": {"name": "w", "namespace": "c1"}, "spec": {"executor": executor}}
    assert executor_review(work, work, {"username": "bob"}) is None
    asked = executor_review(work, {"spec": {}}, {"username": "bob", "groups": ["g"]})
    assert asked is not None
    assert (asked["user"], asked["groups"], asked["resourceAttributes"]["verb"]) == ("bob", ["g"], "execute-as")


@pytest.mark.parametrize(
    ("manifests", "sentence"),
    [
        ([config_map(), config_map()], "duplicate manifest for resource n/x with resource type v1.ConfigMap"),
        ([config_map(generateName="x-")], "generateName must not be set in manifest"),
        ([{**config_map(), "data": {"a": "x" * 512000}}], "bytes which exceeds the 512000 limit"),
    ],
)
def test_b68_b69_works_are_refused_in_upstreams_sentences(manifests: list[Obj], sentence: str) -> None:
    with pytest.raises(WorkRefused, match=sentence):
        check_manifests({"spec": {"workload": {"manifests": manifests}}})
