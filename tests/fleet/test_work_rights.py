"""The rights of ``deploy/agent.yaml`` are enough for what works may contain, and no more is read than they allow."""

from __future__ import annotations

from typing import Any

import pytest
from tests.assembly.test_deploy import manifests
from tests.fleet.agents import (
    VERBS,
    Place,
    config,
    custom,
    definition,
    deployment,
    executor,
    maps,
    namespace,
)
from tests.fleet.world import Fleet, config_map

from syncline.assembly.embedded.install import ensure_objects
from syncline.cluster.access.users import service_account_user
from syncline.control.executor import run_in_place
from syncline.kube.objects import Obj, dig

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PARTS = "/apis/example.io/v1/namespaces/default/parts"


@pytest.fixture(scope="module")
def place() -> Place:
    fleet = Fleet("c1")
    member = fleet.members["c1"]
    run_in_place(ensure_objects(manifests("agent.yaml")), member.admin)
    fleet.time.settle()
    member.own_cable.inner = member.core.transport(
        service_account_user("open-cluster-management-agent", "syncline-agent")
    )
    return Place(fleet)


def grant(place: Place, plural: str) -> None:
    """Let works contain a kind, but not watch it, as a cluster's owner does."""
    rule = {"apiGroups": ["example.io"], "resources": [plural], "verbs": VERBS}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [rule]}
    label = {"open-cluster-management.io/aggregate-to-work": "true"}
    place.member.send("POST", f"{RBAC}/clusterroles", {**kind, "metadata": {"name": plural, "labels": label}})


def role(name: str, **rule: Any) -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}


def test_the_account_carries_what_works_usually_contain(place: Place) -> None:
    reader = role("r", apiGroups=[""], resources=["secrets"], verbs=["get"])
    inside = {**config_map("x"), "metadata": {"name": "x", "namespace": "team"}}
    place.work("usual", namespace("team"), inside, deployment("usual", 0), reader, definition("things", "Thing"))
    assert place.condition("usual", "Applied") == ("True", "AppliedManifestWorkComplete")
    with place.requests() as seen:
        place.member.send("DELETE", maps("x", "team"))
        place.settle(300)
    assert place.there(maps("x", "team")) is not None
    assert len(seen["own"]) < 5
    place.delete("usual")
    place.settle(60)
    assert place.gone("usual")


def test_an_executor_is_judged_with_these_rights(place: Place) -> None:
    reader = role("granted", apiGroups=[""], resources=["secrets"], verbs=["get"])
    place.work("judged", reader, executor=executor("stranger"))
    message = dig(place.get("judged"), "status", "resourceStatus", "manifests", 0, "conditions", 0, "message")
    assert message.startswith("Failed to apply manifest: not allowed to apply the resource")


def test_kinds_of_ones_own_are_refused_until_their_role_has_the_label(place: Place) -> None:
    place.work("own", definition("gadgets", "Gadget"), custom("Gadget", "g", v="1"))
    place.settle(5)
    assert place.condition("own", "Applied", 1) == ("False", "AppliedManifestFailed")
    grant(place, "gadgets")
    place.settle(300)
    assert place.condition("own", "Applied", 1) == ("True", "AppliedManifestComplete")


def test_a_kind_that_may_not_be_watched_is_read_at_upstreams_interval(place: Place) -> None:
    rule = {"type": "JSONPaths", "jsonPaths": [{"name": "state", "path": ".state"}]}
    grant(place, "parts")
    place.work("polled", definition("parts", "Part"), custom("Part", "p", v="1"))
    place.patch("polled", {"manifestConfigs": [config("parts", "p", "example.io", feedbackRules=[rule])]})
    place.settle(20)
    place.member.send("PATCH", f"{PARTS}/p", {"state": "good"})
    place.settle(20)
    assert place.values("polled", 1) == {"state": "good"}
    with place.requests() as seen:
        place.settle(190)
    assert 10 <= len([one for one in seen["own"] if one == f"GET {PARTS}/p"]) <= 20
    place.member.send("DELETE", f"{PARTS}/p")
    place.settle(20)
    assert place.there(f"{PARTS}/p") is not None
