"""Policies of a hub on two clusters, in virtual time."""

from __future__ import annotations

import pytest
from tests.patterns.policies.world import Policies, namespace, policy, template


@pytest.fixture
def fleet() -> Policies:
    return Policies("c1", "c2")


def test_a_missing_namespace_is_made_on_both_clusters_and_reported(fleet: Policies) -> None:
    fleet.post(policy("shop", template("shop-config", namespace("shop"))))
    fleet.bind("shop")
    fleet.time.advance(30)
    for name in ("c1", "c2"):
        assert not fleet.members[name].absent("/api/v1/namespaces/shop")
        assert fleet.messages("shop", name)[-2:] == [
            "Compliant; notification - namespaces [shop] was created successfully",
            "NonCompliant; violation - namespaces [shop] not found",
        ]
    root = fleet.root("shop")["status"]
    assert root["compliant"] == "Compliant"
    assert [(one["clustername"], one["compliant"]) for one in root["status"]] == [
        ("c1", "Compliant"),
        ("c2", "Compliant"),
    ]
    assert root["placement"] == [{"placement": "all", "placementBinding": "shop"}]
