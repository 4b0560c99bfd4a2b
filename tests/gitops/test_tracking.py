"""Tracking as recorded from upstream (behaviours 63, 64, 85)."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.gitops.tracking import Instance, Tracking, TrackingError, TrackingMethod, parse_instance, truncate_label


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
    assert Tracking(TrackingMethod.LABEL).is_self_referenced("shop", live, None)


def test_a_long_label_ends_in_a_letter_or_digit() -> None:
    assert truncate_label("a" * 62 + "-x") == "a" * 62
