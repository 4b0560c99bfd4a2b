"""What counts as a difference (behaviours 41 to 50)."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from tests.gitops.evaluating import ANSWERS

from syncline.gitops.diff import DiffError, DiffMode, DiffSettings, IgnoreRule, compare_objects, respect_ignored
from syncline.gitops.diff.hide import hide_secret
from syncline.gitops.sync.three_way import with_last_applied

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
