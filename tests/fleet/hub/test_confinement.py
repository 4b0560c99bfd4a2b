"""What an agent, and who joins, may do at a hub: each verb on each kind, its own and those of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.fleet.hub.hubs import BOOTSTRAP, CLUSTER, CSRS, LEASE, MERGE, RBAC, Hub, agent, csr, hub_of
from tests.fleet.hub.test_admission import cluster, config_map, work

from syncline.cluster.access.users import UserInfo
from syncline.kube.client import Request, Transport
from syncline.kube.objects import Obj

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
ADDON, CLUSTERS = "addon.open-cluster-management.io/v1alpha1", "cluster.open-cluster-management.io"
WORK, RBAC_GROUP = "work.open-cluster-management.io", "rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
OWN: dict[tuple[str, str], str] = {
    (f"{WORK}/v1", "manifestworks"): "get list watch update patch",
    (f"{WORK}/v1", "manifestworks/status"): "update patch",
    (f"{WORK}/v1alpha1", "manifestworkreplicasets"): "",
    ("coordination.k8s.io/v1", "leases"): "get list watch update",
    (ADDON, "managedclusteraddons"): "get list watch",
    (ADDON, "managedclusteraddons/status"): "update patch",
    (f"{CLUSTERS}/v1alpha1", "addonplacementscores"): "",
    (f"{CLUSTERS}/v1beta1", "placements"): "",
    (f"{CLUSTERS}/v1beta1", "placementdecisions"): "",
    (f"{CLUSTERS}/v1beta2", "managedclustersetbindings"): "",
    ("v1", "events"): "create update patch",
    ("events.k8s.io/v1", "events"): "create update patch",
    ("v1", "secrets"): "",
    ("v1", "configmaps"): "",
    (RBAC_GROUP, "rolebindings"): "",
}
"""Verbs that an agent has in the namespace of its cluster, by kind; in those of others it has none."""
UNSCOPED: dict[tuple[str, str], tuple[str, str]] = {
    (f"{CLUSTERS}/v1", "managedclusters"): ("get list watch update", ""),
    (f"{CLUSTERS}/v1", "managedclusters/status"): ("update patch", ""),
    (f"{CLUSTERS}/v1beta2", "managedclustersets"): ("", ""),
    (ADDON, "clustermanagementaddons"): ("", ""),
    ("certificates.k8s.io/v1", "certificatesigningrequests"): ("get list watch create", "get list watch create"),
    ("certificates.k8s.io/v1", "certificatesigningrequests/approval"): ("", ""),
    ("certificates.k8s.io/v1", "certificatesigningrequests/status"): ("", ""),
    ("v1", "namespaces"): ("", ""),
    (RBAC_GROUP, "clusterroles"): ("", ""),
    ("apiextensions.k8s.io/v1", "customresourcedefinitions"): ("", ""),
    ("admissionregistration.k8s.io/v1", "validatingadmissionpolicies"): ("", ""),
}
"""The same of kinds without a namespace: of the object with the name of its cluster, and of another one. RBAC cannot
say which requests are its own; what it may write of them is for the policies."""
JOINS: dict[tuple[str, str], str] = {
    (f"{CLUSTERS}/v1", "managedclusters"): "get list watch create",
    ("certificates.k8s.io/v1", "certificatesigningrequests"): "get list watch create",
}
CASES = [
    *((version, resource, space, "x", verbs if space == "c1" else "") for (version, resource), verbs in OWN.items()
      for space in ("c1", "c2")),
    *((version, resource, "", name, verbs[name == "c2"]) for (version, resource), verbs in UNSCOPED.items()
      for name in ("c1", "c2")),
]  # fmt: skip
JOINING = [
    *((version, resource, space, "x", "") for version, resource in OWN for space in ("c1", "default")),
    *((*kind, "", "c1", JOINS.get(kind, "")) for kind in UNSCOPED),
]


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    made = hub_of()
    for name in ("c1", "c2"):
        made.send("POST", CLUSTER, cluster(name, hubAcceptsClient=True))
    yield made


def allowed(hub: Hub, user: UserInfo, version: str, resource: str, space: str, name: str) -> list[str]:
    """The verbs that access reviews allow a user."""
    plural, _, part = resource.partition("/")
    group = version.rpartition("/")[0]
    found = []
    for verb in VERBS:
        where = {"namespace": space, "group": group, "resource": plural, "subresource": part, "name": name}
        spec = {"user": user.name, "groups": list(user.groups), "resourceAttributes": {"verb": verb, **where}}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        if hub.admin.send(Request("POST", REVIEWS, body=body)).or_raise()["status"]["allowed"]:
            found.append(verb)
    return found


def carried_out(
    transport: Transport, version: str, resource: str, space: str, name: str, verbs: Sequence[str] = VERBS
) -> list[str]:
    """The verbs of real requests that are not answered with 403."""
    plural, _, part = resource.partition("/")
    api = f"/apis/{version}" if "/" in version else f"/api/{version}"
    every = f"{api}/namespaces/{space}/{plural}" if space else f"{api}/{plural}"
    one = f"{every}/{name}" + (f"/{part}" if part else "")
    only = {"fieldSelector": f"metadata.name={name}"}
    asks = {
        "get": Request("GET", one),
        "list": Request("GET", every, only),
        "watch": Request("GET", every, {**only, "watch": "true"}),
        "create": Request("POST", one if part else every, body={}),
        "update": Request("PUT", one, body={}),
        "patch": Request("PATCH", one, headers=MERGE, body={}),
        "delete": Request("DELETE", one, {"dryRun": "All"}),
        "deletecollection": Request("DELETE", every, {"dryRun": "All", **only}),
    }
    found = []
    for verb in ("get", "update", "patch") if part else verbs:
        answer = transport.send(asks[verb])
        if answer.stream is not None:
            answer.stream.close()
        if answer.status != 403:
            found.append(verb)
    return found


@pytest.mark.parametrize(("version", "resource", "space", "name", "verbs"), CASES)
def test_b11_an_agent_has_these_rights_and_no_others(
    hub: Hub, version: str, resource: str, space: str, name: str, verbs: str
) -> None:
    place = (version, resource, space, name)
    assert sorted(allowed(hub, agent("c1"), *place)) == sorted(verbs.split())
    assert sorted(carried_out(hub.core.transport(agent("c1")), *place)) == sorted(verbs.split())


@pytest.mark.parametrize(("version", "resource", "space", "name", "verbs"), JOINING)
def test_b1_who_joins_has_these_rights_and_no_others(
    hub: Hub, version: str, resource: str, space: str, name: str, verbs: str
) -> None:
    wanted = verbs.split() if resource != "configmaps" else ["get"]
    place = (version, resource, space, name)
    assert sorted(allowed(hub, BOOTSTRAP, *place)) == sorted(wanted)
    assert sorted(carried_out(hub.core.transport(BOOTSTRAP), *place)) == sorted(wanted)


def test_b2_before_its_cluster_is_accepted_an_agent_may_only_read_it() -> None:
    hub = hub_of()
    hub.join(accepted=False)
    hub.send("POST", CSRS, csr("c1"))
    assert allowed(hub, agent("c1"), f"{CLUSTERS}/v1", "managedclusters", "", "c1") == []
    condition = {"type": "Approved", "status": "True", "reason": "R", "message": ""}
    hub.send("PATCH", f"{CSRS}/r1/approval", {"status": {"conditions": [condition]}})
    for version, resource, space, name, _ in CASES:
        wanted = ["get", "list", "watch"] if (resource, name) == ("managedclusters", "c1") else []
        assert allowed(hub, agent("c1"), version, resource, space, name) == wanted, (resource, name)


WRITES: list[tuple[str, str, Obj]] = [
    ("POST", "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks", work(config_map())),
    ("PATCH", "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks/w/status", {"status": {}}),
    ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/{}/leases/managed-cluster-lease", {"spec": {}}),
    ("PATCH", CLUSTER + "/{}", {"metadata": {"annotations": {"a": "b"}}}),
    ("PATCH", CLUSTER + "/{}/status", {"status": {"version": {"kubernetes": "v1"}}}),
    (
        "POST",
        f"/apis/{ADDON}/namespaces/{{}}/managedclusteraddons",
        {"apiVersion": ADDON, "kind": "ManagedClusterAddOn", "metadata": {"name": "a"}, "spec": {}},
    ),
    ("PATCH", f"/apis/{ADDON}/namespaces/{{}}/managedclusteraddons/a/status", {"status": {}}),
    (
        "POST",
        f"/apis/{CLUSTERS}/v1alpha1/namespaces/{{}}/addonplacementscores",
        {"apiVersion": f"{CLUSTERS}/v1alpha1", "kind": "AddOnPlacementScore", "metadata": {"name": "a"}},
    ),
    ("DELETE", "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks/w", {}),
]


def _in(namespace: str, body: Obj) -> Obj:
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


def test_b11_policies_keep_agents_at_home_whatever_rbac_grants_by_mistake(hub: Hub) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:open-cluster-management:c1"}
    binding = {"apiVersion": RBAC_GROUP, "kind": "ClusterRoleBinding", "metadata": {"name": "mistake"}}
    hub.send("POST", f"{RBAC}/clusterrolebindings", {**binding, "roleRef": role, "subjects": [group]})
    try:
        for verb, path, body in WRITES:  # the administrator makes what agents then try to change
            if verb == "POST":
                hub.send(verb, path.format("c2"), _in("c2", body))
        for user in (agent("c1"), UserInfo("someone", ("system:open-cluster-management:c1", "system:authenticated"))):
            for verb, path, body in WRITES:
                answer = hub.asks(user, verb, path.format("c2"), _in("c2", body) if verb == "POST" else body)
                assert answer.status == 403, (verb, path)
                assert "of cluster c1 may not write" in str(answer.refusal())
        for verb, path, body in WRITES:
            hub.asks(agent("c1"), verb, path.format("c1"), _in("c1", body) if verb == "POST" else body).or_raise()
    finally:
        hub.send("DELETE", f"{RBAC}/clusterrolebindings/mistake")


def test_b11_an_agent_of_two_clusters_is_of_none(hub: Hub) -> None:
    both = ("system:open-cluster-management:c1", "system:open-cluster-management:c2", "system:authenticated")
    answer = hub.asks(UserInfo("x", both), "PUT", LEASE, hub.get(LEASE))
    assert "of cluster  may not write" in str(answer.refusal())


def test_b11_an_agent_renews_its_lease_and_reports_on_its_works(hub: Hub) -> None:
    works = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks"
    made = work(config_map())
    made["metadata"] = {"name": "mine", "namespace": "c1"}
    hub.send("POST", works, made)
    hub.asks(agent("c1"), "PUT", LEASE, hub.get(LEASE)).or_raise()
    hub.asks(agent("c1"), "PATCH", f"{works}/mine", {"metadata": {"finalizers": ["a.b/c"]}}).or_raise()
    hub.asks(agent("c1"), "PATCH", f"{works}/mine/status", {"status": {"conditions": []}}).or_raise()
    answer = hub.asks(agent("c1"), "PATCH", f"{works}/mine", {"spec": {"workload": {"manifests": [config_map("z")]}}})
    assert "may not change what a ManifestWork says" in str(answer.refusal())


REQUESTS: list[tuple[str, UserInfo, Obj, Any]] = [
    ("of itself", agent("c1"), csr("c1", "q1"), True),
    ("of another cluster", agent("c1"), csr("c2", "q2"), False),
    ("labelled as another cluster's", agent("c1"), csr("c1", "q3", label="c2"), False),
    ("of another agent of its cluster", agent("c1", "a2"), csr("c1", "q4"), False),
    ("of a node", agent("c1"), csr("c1", "q5", signerName="kubernetes.io/kube-apiserver-client-kubelet"), False),
    ("of a server", agent("c1"), csr("c1", "q6", signerName="kubernetes.io/kubelet-serving"), False),
    ("of who joins, for a cluster", BOOTSTRAP, csr("c9", "q7"), True),
    ("of who joins, for an administrator", BOOTSTRAP, csr("c9", "q8", common_name="admin", groups=["admins"]), False),
    ("of who joins, for another signer", BOOTSTRAP, csr("c9", "q9", signerName="example.com/a"), False),
]


@pytest.mark.parametrize(("what", "user", "made", "ok"), REQUESTS)
def test_b8_requests_of_agents_and_of_who_joins(hub: Hub, what: str, user: UserInfo, made: Obj, ok: bool) -> None:
    assert (hub.asks(user, "POST", CSRS, made).status == 201) is ok, what
