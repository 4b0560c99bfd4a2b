"""The hub's controllers are killed after each of their writes: clusters end in the same state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.fleet.hub.hubs import BOOTSTRAP, CLUSTER, CSRS, RBAC, Hub, agent, csr, hub_of
from tests.fleet.hub.test_admission import cluster

from syncline.assembly.fleet.hub import HubSettings
from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import finalizers, labels_of, name_of
from syncline.rehearsal.seams import Killed

TRUSTING = HubSettings(auto_approve_users=(BOOTSTRAP.name,))
MOST_WRITES = 80
"""More than the story has."""


class Crash:
    """A transport that ends the process at the n-th write: before the server gets it, or before its answer arrives."""

    def __init__(self, inner: Transport, left: list[int], *, lost: bool) -> None:
        self._inner, self._left, self._lost = inner, left, lost

    def send(self, request: Request) -> Response:
        if request.method == "GET" or self._left[0] == 0:
            return self._inner.send(request)
        self._left[0] -= 1
        if self._left[0]:
            return self._inner.send(request)
        if not self._lost:
            self._inner.send(request)
        raise Killed(request.describe())


def story(hub: Hub) -> list[Callable[[], Any]]:
    """Cluster c1 joins automatically, renews, gets works, and leaves; c2 is accepted, denied and accepted again."""
    ask = hub.core.transport
    delete = Request("PATCH", "", headers={"content-type": "application/merge-patch+json"}, body={})

    def send(verb: str, path: str, body: Any = None) -> None:
        hub.admin.send(Request(verb, path, headers=delete.headers if verb == "PATCH" else {}, body=body)).or_raise()

    def work(name: str, priority: str) -> None:
        hub.admin.send(Request("POST", WORKS, body=manifest_work(name, priority))).or_raise()

    def released(name: str) -> None:
        send("PATCH", f"{WORKS}/{name}", {"metadata": {"finalizers": []}})

    def accept(value: bool) -> None:
        send("PATCH", f"{CLUSTER}/c2", {"spec": {"hubAcceptsClient": value}})

    return [
        lambda: send("POST", CLUSTER, cluster("c1")),
        lambda: ask(BOOTSTRAP).send(Request("POST", CSRS, body=csr("c1"))).or_raise(),
        lambda: ask(agent("c1")).send(Request("POST", CSRS, body=csr("c1", "r2"))).or_raise(),
        lambda: send("POST", CLUSTER, cluster("c2")),
        lambda: accept(True),
        lambda: (work("a", ""), work("b", "50")),
        lambda: accept(False),
        lambda: send("DELETE", f"{CLUSTER}/c1"),
        lambda: accept(True),
        lambda: released("a"),
        lambda: released("b"),
    ]


WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks"


def manifest_work(name: str, priority: str) -> dict[str, Any]:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
    notes = {"open-cluster-management.io/cleanup-priority": priority} if priority else {}
    metadata = {"name": name, "namespace": "c1", "finalizers": ["a.b/agent"], "annotations": notes}
    kind = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork"}
    return {**kind, "metadata": metadata, "spec": {"workload": {"manifests": [manifest]}}}


def state(hub: Hub) -> Any:
    """What is left, without times and versions."""

    def listed(path: str) -> list[dict[str, Any]]:
        return list(hub.admin.send(Request("GET", path)).or_raise()["items"])

    label = "open-cluster-management.io/cluster-name"
    rights = [
        one for kind in ("clusterroles", "clusterrolebindings", "rolebindings") for one in listed(f"{RBAC}/{kind}")
    ]
    return {
        "clusters": [
            (
                name_of(one),
                labels_of(one),
                finalizers(one),
                [(taint["key"], "timeAdded" in taint) for taint in one["spec"].get("taints", ())],
                sorted((each["type"], each["status"], each["reason"]) for each in one["status"]["conditions"]),
            )
            for one in listed(CLUSTER)
        ],
        "requests": [(name_of(one), [each["reason"] for each in one["status"]["conditions"]]) for one in listed(CSRS)],
        "rights": sorted((name_of(one), repr(one.get("rules"))) for one in rights if label in labels_of(one)),
        "works": [name_of(one) for one in listed(WORKS)],
        "leases": [one["metadata"]["namespace"] for one in listed("/apis/coordination.k8s.io/v1/leases")],
    }


def run(hub: Hub, left: list[int], *, lost: bool) -> Any:
    def wrap(inner: Transport) -> Transport:
        return Crash(inner, left, lost=lost)

    hub.start(wrap)
    for step in [lambda: None, *story(hub)]:
        step()
        try:
            hub.time.advance(6)
        except Killed:
            hub.start()
            hub.time.advance(12)
    hub.time.advance(60)
    return state(hub)


@pytest.fixture(scope="module")
def calm() -> Any:
    return run(hub_of(TRUSTING), [0], lost=False)


def test_the_story_ends_as_it_should_without_faults(calm: Any) -> None:
    [(name, _, held, _, conditions)] = calm["clusters"]
    assert (name, len(held)) == ("c2", 2)
    assert ("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted") in conditions
    assert calm["requests"] == [(name, ["AutoApprovedByHubCSRApprovingController"]) for name in ("r1", "r2")]
    assert (calm["works"], calm["leases"]) == ([], ["c1", "c2"])


def test_killed_at_every_third_write_the_hub_ends_in_the_same_state(
    calm: Any, figure: Callable[[str, str], None]
) -> None:
    """In turns before the server gets the write, and before its answer arrives."""
    number = runs = 0
    for number in range(1, MOST_WRITES, 3):
        left, runs = [number], runs + 1
        assert run(hub_of(TRUSTING), left, lost=bool(runs % 2)) == calm, number
        if left[0]:
            break
    assert 30 < number < MOST_WRITES - 3
    figure(
        "hub", f"hub: killed at {runs} of about {number} writes of joining, denial and departure; all ended the same"
    )
