"""Operators on the embedded cluster in virtual time: from a Subscription to an operator that is up, upgraded, gone."""

from __future__ import annotations

from tests.patterns.operating import Operators, bundle, channel, package

WIDGET = "Widget.v1.example.com"


def one_version() -> Operators:
    return Operators(
        package("widgets"), channel("widgets", "stable", "widgets.v1.0.0"), bundle("widgets", "1.0.0", WIDGET)
    )


def test_a_subscription_brings_its_operator_up() -> None:
    world = one_version()
    world.namespace("team", "team")
    world.subscribe("team", "widgets", channel="stable")
    world.until("team", "widgets.v1.0.0")
    status = world.subscription("team", "widgets")["status"]
    assert (status["state"], status["installedCSV"]) == ("AtLatestKnown", "widgets.v1.0.0")
    assert world.condition("team", "widgets", "CatalogSourcesUnhealthy")["status"] == "False"
    (plan,) = world.plans("team")
    assert plan["status"]["phase"] == "Complete"
    assert status["installPlanRef"]["name"] == plan["metadata"]["name"]
    assert world.get("/apis/apps/v1/namespaces/team/deployments/widgets")["status"]["availableReplicas"] == 1
    assert world.get("/apis/example.com/v1/widgets")["items"] == []
