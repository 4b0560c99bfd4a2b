"""The controllers of operators die at any moment, and their requests fail: what is installed is the same."""

from __future__ import annotations

import pytest
from tests.patterns.operating import OLM, Flaky, Operators, bundle, channel, package

from syncline.patterns.operators.foreign import upstream_manager

ENTRIES = (
    {"name": "widgets.v1.0.0"},
    {"name": "widgets.v1.1.0", "replaces": "widgets.v1.0.0"},
)
VERSIONS = [bundle("widgets", f"1.{minor}.0", "Widget.v1.example.com") for minor in range(2)]
DOCUMENTS = (package("widgets"), channel("widgets", "stable", *ENTRIES), *VERSIONS)


def installed(world: Operators) -> None:
    """One version is up, each upgrade had one InstallPlan, and nothing of the old version is left."""
    assert world.phase("team", "widgets.v1.1.0") == "Succeeded"
    assert world.phase("team", "widgets.v1.0.0") == "absent"
    names = [one["spec"]["clusterServiceVersionNames"] for one in world.plans("team")]
    assert names == [["widgets.v1.0.0"], ["widgets.v1.1.0"]]
    assert {one["status"]["phase"] for one in world.plans("team")} == {"Complete"}
    assert world.subscription("team", "widgets")["status"]["state"] == "AtLatestKnown"


@pytest.mark.parametrize("every", [2, 3, 5])
def test_an_upgrade_ends_the_same_when_each_nth_write_fails(every: int) -> None:
    world = Operators(*DOCUMENTS, wrap=lambda inner: Flaky(inner, every))
    world.namespace("team", "team")
    world.subscribe("team", "widgets", startingCSV="widgets.v1.0.0")
    world.time.advance(120)
    installed(world)


@pytest.mark.parametrize("seconds", [0.3, 1.1])
def test_an_upgrade_ends_the_same_when_the_controllers_are_killed_again_and_again(seconds: float) -> None:
    world = Operators(*DOCUMENTS)
    world.namespace("team", "team")
    world.subscribe("team", "widgets", startingCSV="widgets.v1.0.0")
    for _ in range(8):
        world.time.advance(seconds)
        world.restart()
    world.time.advance(120)
    installed(world)


JUNK = ("x", 7, ["x"], {"containers": "x"}, {"containers": [7]}, {"containers": [{"name": "c", "env": "x"}]})


@pytest.mark.parametrize("pod", [one for one in JUNK if isinstance(one, dict)])
def test_a_strategy_that_cannot_be_read_fails_its_operator_alone(pod: dict[str, object]) -> None:
    world = Operators(*DOCUMENTS)
    world.namespace("team", "team")
    deployment = {"name": "d", "spec": {"selector": {}, "template": {"spec": pod}}}
    install = {"strategy": "deployment", "spec": {"deployments": [deployment]}}
    modes = [{"type": "OwnNamespace", "supported": True}]
    body = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "hostile"},
        "spec": {"displayName": "hostile", "install": install, "installModes": modes},
    }
    world.send("POST", f"{OLM}/team/clusterserviceversions", body)
    world.time.advance(10)
    assert world.reason("team", "hostile") == "InvalidInstallStrategy"


@pytest.mark.parametrize("value", [*JUNK, "{", '{"properties": 7}', '{"properties": [{"type": "olm.constraint"}]}'])
def test_properties_that_cannot_be_read_stop_the_resolution_with_a_reason(value: object) -> None:
    world = Operators(*DOCUMENTS)
    world.namespace("team", "team")
    text = value if isinstance(value, str) else '{"properties": [{"type": "olm.constraint", "value": 7}]}'
    body = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "hostile", "annotations": {"operatorframework.io/properties": text}},
        "spec": {"displayName": "hostile", "install": {"strategy": "deployment", "spec": {"deployments": []}}},
    }
    world.send("POST", f"{OLM}/team/clusterserviceversions", body)
    world.subscribe("team", "widgets")
    world.time.advance(10)
    assert world.condition("team", "widgets", "ResolutionFailed")["reason"] == "ErrorPreventedResolution"


@pytest.mark.parametrize("manifest", ["", "{", "[]", "7", '{"kind": "Pod"}', '{"kind": 7, "metadata": {"name": "a"}}'])
def test_a_step_that_cannot_be_read_fails_its_install_plan(manifest: str) -> None:
    world = Operators(*DOCUMENTS)
    world.namespace("team", "team")
    body = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "InstallPlan",
        "metadata": {"name": "hostile"},
        "spec": {"approval": "Automatic", "approved": True, "clusterServiceVersionNames": []},
    }
    world.send("POST", f"{OLM}/team/installplans", body)
    names = dict.fromkeys(("group", "kind", "name", "sourceName", "sourceNamespace", "version"), "x")
    step = {"resolving": "x", "status": "Unknown", "resource": {**names, "manifest": manifest}}
    status = {"phase": "Installing", "catalogSources": [], "plan": [step]}
    world.send("PATCH", f"{OLM}/team/installplans/hostile/status", {"status": status})
    world.time.advance(120)
    after = world.get(f"{OLM}/team/installplans/hostile")["status"]
    assert (after["phase"], after["message"]) == ("Failed", "error parsing step manifest: x")


def upstreams(world: Operators) -> None:
    """Install what shows that upstream's OLM is on the cluster."""
    world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "olm"}})
    labels = {"app": "olm-operator"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "olm", "image": "olm:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "olm-operator", "labels": labels}}
    world.send("POST", "/apis/apps/v1/namespaces/olm/deployments", {**body, "spec": spec})


def test_where_upstreams_manager_is_ours_does_nothing_and_says_so() -> None:
    world = Operators(*DOCUMENTS)
    upstreams(world)
    world.namespace("team", "team")
    world.subscribe("team", "widgets")
    world.time.advance(30)
    assert world.subscription("team", "widgets").get("status") is None
    assert world.plans("team") == []
    events = world.get("/api/v1/namespaces/team/events")["items"]
    (said,) = {one["message"] for one in events if one["reason"] == "LeftToUpstream"}
    assert "Deployment olm/olm-operator is there" in said
    world.send("DELETE", "/apis/apps/v1/namespaces/olm/deployments/olm-operator")
    world.until("team", "widgets.v1.1.0")


def test_a_deployment_of_its_name_elsewhere_stops_nothing() -> None:
    labels = {"app": "olm-operator"}
    deployment = {"metadata": {"name": "olm-operator", "namespace": "team", "labels": labels}}
    service = {"metadata": {"name": "v1.packages.operators.coreos.com"}, "spec": {}}
    assert upstream_manager([deployment], [service]) == ""
    served = {**service, "spec": {"service": {"namespace": "olm", "name": "packageserver-service"}}}
    assert upstream_manager([], [served]).endswith("is served by olm/packageserver-service")
