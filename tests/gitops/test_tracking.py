"""Tracking as recorded from upstream (behaviours 63, 64, 85)."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.argo.tracking import (
    INSTANCE_LABEL,
    LEGACY_LABEL,
    TRACKING_ID,
    Instance,
    Tracking,
    TrackingError,
    TrackingMethod,
    parse_instance,
    truncate_label,
)


def test_a_tracking_id_round_trips_also_with_colons_in_the_name_s085() -> None:
    text = "shop:rbac.authorization.k8s.io/ClusterRole:web/system:x"
    assert str(parse_instance(text)) == text
    assert parse_instance(text) == Instance("shop", "rbac.authorization.k8s.io", "ClusterRole", "web", "system:x")


@pytest.mark.parametrize("text", ["shop", "a:b", "a:b/c:d", "a:b/c/d:e/f"])
def test_an_unreadable_tracking_id_is_an_error(text: str) -> None:
    with pytest.raises(TrackingError):
        parse_instance(text)


def test_stamping_changes_no_input() -> None:
    obj: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "annotations": {"a": "b"}},
    }
    stamped = Tracking().stamp(obj, "shop", "dest")
    assert stamped["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] == "shop:/ConfigMap:dest/c"
    assert obj["metadata"]["annotations"] == {"a": "b"}


def test_a_copied_object_is_not_ours_s064() -> None:
    live = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "copy",
            "namespace": "web",
            "annotations": {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:web/original"},
        },
    }
    assert not Tracking().is_self_referenced("shop", live, None)
    assert Tracking().is_copied(live)
    assert Tracking(TrackingMethod.LABEL).is_self_referenced("shop", live, None)
    assert not Tracking(TrackingMethod.LABEL).is_copied(live)


def test_a_long_label_ends_in_a_letter_or_digit() -> None:
    assert truncate_label("a" * 62 + "-x") == "a" * 62


def test_a_copy_in_another_namespace_is_not_ours_by_its_manifest_either() -> None:
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "other"}}
    target = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "web"}}
    assert not Tracking().is_self_referenced("shop", live, target)


def test_the_tracking_id_of_another_installation_describes_nothing_of_ours() -> None:
    marks = {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:web/original"}
    live = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "web", "annotations": marks},
    }
    assert not Tracking().is_self_referenced("shop", live, None)
    assert Tracking(installation_id="one").is_self_referenced("shop", live, None)


def test_a_label_that_is_not_ours_goes_from_the_live_object_whatever_the_manifest_is_annotated_with() -> None:
    live = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {INSTANCE_LABEL: "shop"}}}
    target = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    assert Tracking().normalized(target, live)["metadata"] == {"name": "s", "annotations": {TRACKING_ID: ""}}
    definition = live | {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    assert Tracking().normalized(target, definition) == definition


def test_marks_are_taken_off_and_nothing_else_changes() -> None:
    obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {}, "annotations": None}}
    assert Tracking(TrackingMethod.ANNOTATION_AND_LABEL).unstamp(obj) == obj


def test_the_label_of_old_is_on_pods_as_well_and_in_no_selector() -> None:
    template = {"metadata": {"labels": {"app": "web"}}}
    obj = {
        "apiVersion": "apps/v1beta1",
        "kind": "Deployment",
        "metadata": {"name": "w"},
        "spec": {"template": template},
    }
    made = Tracking(TrackingMethod.LABEL, LEGACY_LABEL).stamp(obj, "shop", "web")
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "web", LEGACY_LABEL: "shop"}
    assert made["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert template == {"metadata": {"labels": {"app": "web"}}}
