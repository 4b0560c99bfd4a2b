"""What counts as a difference (behaviours 41 to 50)."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from tests.gitops.evaluating import ANSWERS

from syncline.apply.diff import (
    DiffError,
    DiffMode,
    DiffSettings,
    IgnoreRule,
    Override,
    compare_objects,
    respect_ignored,
)
from syncline.apply.diff.hide import hide_secret
from syncline.apply.last_applied import with_last_applied
from syncline.kube.schema.model import schema_for

WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "web:1", "resources": {"limits": {"memory": "1024Mi"}}}]},
        },
    },
}


def _live(**spec: Any) -> dict[str, Any]:
    """As the server holds it after an apply of WEB: with defaults, and with fields of others."""
    live = copy.deepcopy(with_last_applied(WEB))
    live["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    live["spec"] |= {"revisionHistoryLimit": 10, "progressDeadlineSeconds": 600} | spec
    pod = live["spec"]["template"]["spec"]
    pod |= {"dnsPolicy": "ClusterFirst", "restartPolicy": "Always"}
    pod["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    pod["containers"][0]["resources"]["limits"]["memory"] = "1Gi"
    live["status"] = {"replicas": 2}
    return live


def test_defaults_spelling_and_fields_of_others_are_no_difference_a041() -> None:
    assert not compare_objects(WEB, _live()).modified


def test_a_changed_field_is_a_difference_and_its_prediction_shows_it() -> None:
    found = compare_objects(WEB, _live(replicas=5))
    assert found.modified
    assert found.predicted is not None
    assert found.predicted["spec"]["replicas"] == 2


def test_a_field_that_left_the_manifest_is_a_difference_only_if_it_was_applied() -> None:
    target = copy.deepcopy(WEB)
    del target["spec"]["replicas"]
    assert compare_objects(target, _live()).modified
    foreign = _live()
    foreign["metadata"]["labels"] = {"somebody": "else"}
    assert not compare_objects(WEB, foreign).modified


def test_an_ignored_field_is_no_difference_a048() -> None:
    settings = DiffSettings(ignore=(IgnoreRule(group="apps", kind="Deployment", json_pointers=("/spec/replicas",)),))
    assert not compare_objects(WEB, _live(replicas=5), settings).modified
    assert respect_ignored(WEB, _live(replicas=5), settings)["spec"]["replicas"] == 5


def test_a_rule_for_another_object_does_not_apply() -> None:
    rule = IgnoreRule(group="apps", kind="Deployment", name="api", json_pointers=("/spec/replicas",))
    assert compare_objects(WEB, _live(replicas=5), DiffSettings(ignore=(rule,))).modified


def test_a_rule_that_cannot_be_read_is_an_error_not_silence() -> None:
    rule = IgnoreRule(group="apps", kind="Deployment", jq_expressions=(".spec[",))
    with pytest.raises(DiffError, match="failed to create diff normalizer"):
        compare_objects(WEB, _live(), DiffSettings(ignore=(rule,), jq=ANSWERS))


def test_comparing_changes_no_input() -> None:
    target, live = copy.deepcopy(WEB), _live(replicas=5)
    before = json.dumps([target, live])
    for mode in DiffMode:
        with contextlib.suppress(DiffError):
            compare_objects(target, live, DiffSettings(mode=mode))
    assert json.dumps([target, live]) == before


def test_a_claim_template_without_its_kind_is_no_difference() -> None:
    claim = {"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}}
    target = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {"selector": {}, "serviceName": "db", "template": {}, "volumeClaimTemplates": [claim]},
    }
    live = copy.deepcopy(target)
    live["spec"]["volumeClaimTemplates"][0] |= {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "status": {"phase": "Pending"},
    }
    assert not compare_objects(target, live, DiffSettings(mode=DiffMode.STRUCTURED_MERGE)).modified


def test_no_value_of_a_secret_is_shown() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    live = with_last_applied({**secret, "data": {"password": "aHVudGVyMg=="}})
    shown = json.dumps(hide_secret(secret, live))
    assert "hunter2" not in shown
    assert "aHVudGVyMg" not in shown


def test_what_a_type_requires_is_no_default_where_it_was_taken_out() -> None:
    scaler: dict[str, Any] = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}},
    }
    whole = IgnoreRule.parse({"group": "autoscaling", "kind": "HorizontalPodAutoscaler", "jsonPointers": ["/spec"]})
    live = with_last_applied(scaler) | {"spec": scaler["spec"] | {"maxReplicas": 5}}
    found = compare_objects(scaler, live, DiffSettings(ignore=(whole,), jq=ANSWERS))
    assert not found.modified and found.live is not None
    assert not {"maxReplicas", "scaleTargetRef"} & set(found.live.get("spec") or {})


def test_a_service_account_that_goes_does_not_come_back_by_its_old_name() -> None:
    named = copy.deepcopy(WEB)
    named["spec"]["template"]["spec"]["serviceAccountName"] = "robot"
    live = with_last_applied(named)
    live["spec"] = copy.deepcopy(live["spec"])
    live["spec"]["template"]["spec"]["serviceAccount"] = "robot"
    found = compare_objects(WEB, live, DiffSettings(jq=ANSWERS))
    assert found.modified and found.predicted is not None
    assert "serviceAccountName" not in found.predicted["spec"]["template"]["spec"]


@pytest.mark.parametrize("note", ["{}", '{"apiVersion":"apps/v1"}'])
def test_a_note_of_the_last_apply_without_a_kind_is_none(note: str) -> None:
    live = copy.deepcopy(WEB)
    live["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": note}
    live["spec"]["template"]["spec"]["containers"][0]["terminationMessagePolicy"] = "File"
    assert not compare_objects(WEB, live, DiffSettings(jq=ANSWERS)).modified


def _scaled_by(manager: str) -> dict[str, Any]:
    live = _live(replicas=5)
    entry = {"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1"}
    live["metadata"]["managedFields"] = [{**entry, "fieldsV1": {"f:spec": {"f:replicas": {}}}}]
    return live


@pytest.mark.parametrize(
    ("key", "trusted"), [("apps/Deployment", True), ("*/*", True), ("apps/*", False), ("*/Deployment", False)]
)
def test_managers_of_the_settings_are_trusted_under_the_kinds_own_key_or_for_all(key: str, trusted: bool) -> None:
    override = Override.parse({"ignoreDifferences": {"managedFieldsManagers": ["hpa"]}})
    settings = DiffSettings(overrides={key: override}, schema_of=schema_for, jq=ANSWERS)
    assert compare_objects(WEB, _scaled_by("hpa"), settings).modified is not trusted


def test_a_name_of_a_service_is_no_default_where_all_is_ignored() -> None:
    target = copy.deepcopy(WEB) | {"kind": "StatefulSet"}
    whole = IgnoreRule.parse({"group": "apps", "kind": "StatefulSet", "jsonPointers": ["/spec"]})
    live = with_last_applied(target) | {"spec": target["spec"] | {"replicas": 5}}
    found = compare_objects(target, live, DiffSettings(ignore=(whole,), jq=ANSWERS))
    assert not found.modified and found.live is not None
    assert "serviceName" not in found.live.get("spec", {})


def test_a_spec_whose_fields_a_trusted_manager_owns_all_stays_as_an_empty_one() -> None:
    budget: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1},
    }
    live = with_last_applied(budget) | {"spec": {"maxUnavailable": 0}}
    entry = {"manager": "hpa", "operation": "Update", "apiVersion": "policy/v1", "fieldsType": "FieldsV1"}
    live["metadata"]["managedFields"] = [{**entry, "fieldsV1": {"f:spec": {"f:maxUnavailable": {}}}}]
    trusted = IgnoreRule.parse({"group": "policy", "kind": "*", "managedFieldsManagers": ["hpa"]})
    found = compare_objects(budget, live, DiffSettings(ignore=(trusted,), schema_of=schema_for, jq=ANSWERS))
    assert not found.modified and found.live is not None
    assert found.live["spec"] == {}


def test_an_ignored_field_is_not_taken_over_into_a_map_that_the_manifest_does_not_have() -> None:
    live = _live()
    live["metadata"]["annotations"] |= {"team/note": "x", "other": "y"}
    rule = IgnoreRule.parse(
        {"group": "apps", "kind": "Deployment", "jsonPointers": ["/metadata/annotations/team~1note"]}
    )
    settings = DiffSettings(ignore=(rule,), jq=ANSWERS)
    assert "annotations" not in respect_ignored(WEB, live, settings)["metadata"]
    noted = copy.deepcopy(WEB)
    noted["metadata"]["annotations"] = {"mine": "z"}
    assert respect_ignored(noted, live, settings)["metadata"]["annotations"] == {"mine": "z", "team/note": "x"}


def _answered(change: dict[str, Any]) -> DiffSettings:
    """The API server's answer to an apply of WEB, with what a webhook changed beside it."""
    answer = _live()
    fields = {"f:spec": {"f:replicas": {}, "f:selector": {}}}
    entry = {"manager": "argocd-controller", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1"}
    answer["metadata"]["managedFields"] = [{**entry, "fieldsV1": fields}]
    answer["spec"] |= change
    return DiffSettings(mode=DiffMode.SERVER_SIDE, dry_run=answer, schema_of=schema_for, jq=ANSWERS)


@pytest.mark.parametrize(
    ("field", "told"), [("colour", "field not declared in schema"), ("paused", "expected boolean")]
)
def test_an_answer_that_fits_no_schema_is_an_error_and_no_silence(field: str, told: str) -> None:
    with pytest.raises(DiffError, match=rf"error converting predicted live state .* \.spec\.{field}: {told}"):
        compare_objects(WEB, _live(), _answered({field: 7}))


@pytest.mark.parametrize("mode", [DiffMode.SERVER_SIDE, DiffMode.THREE_WAY])
def test_what_is_ignored_is_shown_of_objects_that_come_or_go_where_the_server_compares(mode: DiffMode) -> None:
    rule = IgnoreRule.parse({"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]})
    settings = DiffSettings(mode=mode, ignore=(rule,), jq=ANSWERS)
    made, gone = compare_objects(WEB, None, settings), compare_objects(None, _live(), settings)
    assert made.predicted is not None and gone.live is not None
    for one in (made.predicted, gone.live):
        assert ("replicas" in one["spec"]) is (mode is DiffMode.SERVER_SIDE)


def test_a_map_that_is_ignored_whole_is_no_difference_where_the_server_compares() -> None:
    secret: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "YQ=="}}
    rule = IgnoreRule.parse({"group": "", "kind": "Secret", "jqPathExpressions": [".data[]?"]})
    entry = {"manager": "argocd-controller", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    answer = copy.deepcopy(secret)
    answer["metadata"]["managedFields"] = [{**entry, "fieldsV1": {"f:data": {}}}]
    settings = DiffSettings(mode=DiffMode.SERVER_SIDE, ignore=(rule,), dry_run=answer, schema_of=schema_for, jq=ANSWERS)
    assert not compare_objects(secret, secret, settings).modified


def test_a_structure_that_loses_all_its_fields_is_shown_as_an_empty_one() -> None:
    quota: dict[str, Any] = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {}}
    live = quota | {"spec": {"hard": {"pods": "1"}}}
    entry = {"manager": "argocd-controller", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    answer = copy.deepcopy(quota)
    answer["metadata"]["managedFields"] = [{**entry, "fieldsV1": {"f:spec": {}}}]
    settings = DiffSettings(mode=DiffMode.SERVER_SIDE, dry_run=answer, schema_of=schema_for, jq=ANSWERS)
    found = compare_objects(quota, live, settings)
    assert found.modified and found.predicted is not None
    assert found.predicted["spec"] == {}


def test_a_map_whose_fields_a_trusted_manager_owns_stays_as_an_empty_one() -> None:
    limits = {"f:limits": {"f:memory": {}}}
    container = {"f:containers": {'k:{"name":"c"}': {"f:resources": limits}}}
    live = copy.deepcopy(WEB)
    live["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] = "2Gi"
    entry = {"manager": "sizer", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1"}
    entry["fieldsV1"] = {"f:spec": {"f:template": {"f:spec": container}}}  # type: ignore[assignment]
    live["metadata"]["managedFields"] = [entry]
    trusted = IgnoreRule.parse({"group": "apps", "kind": "Deployment", "managedFieldsManagers": ["sizer"]})
    found = compare_objects(WEB, live, DiffSettings(ignore=(trusted,), schema_of=schema_for, jq=ANSWERS))
    assert not found.modified and found.live is not None
    assert found.live["spec"]["template"]["spec"]["containers"][0]["resources"] == {}


def test_a_custom_resource_is_compared_at_the_version_of_its_manifest() -> None:
    stored = {"apiVersion": "a.example.com/v1", "kind": "Tap", "metadata": {"name": "t"}, "spec": {"open": True}}
    manifest = stored | {"apiVersion": "a.example.com/v1beta1"}
    assert not compare_objects(manifest, stored).modified
    assert compare_objects(manifest | {"spec": {"open": False}}, stored).modified
    assert compare_objects(manifest | {"kind": "Valve"}, stored).modified
