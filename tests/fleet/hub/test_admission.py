"""Admission of ManagedClusters, bindings and works by the role, with upstream's sentences."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json
from tests.fleet.hub.hubs import CLUSTER, GROUP, RBAC, WORKS, Hub, hub_of

from syncline.assembly.fleet.hub import HubSettings
from syncline.base.clock import format_time
from syncline.cluster.access.users import UserInfo
from syncline.fleet.hub.confinement import KEPT_KINDS
from syncline.fleet.hub.registration.taints import UNREACHABLE
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj, labels_of

SET = "cluster.open-cluster-management.io/clusterset"
BOB = UserInfo("bob", ("system:authenticated",))
HOOKS = "/apis/admissionregistration.k8s.io/v1"
WHO = 'admission webhook "{}.open-cluster-management.io" denied the request: '
CLUSTERS_SAY = WHO.format("managedclustervalidators.admission.cluster")
TAINTS_SAY = WHO.format("managedclustermutators.admission.cluster")
BINDINGS_SAY = WHO.format("managedclustersetbindingvalidators.admission.cluster")
WORKS_SAY = WHO.format("manifestworkvalidators.admission.work")


@pytest.fixture
def hub() -> Hub:
    return hub_of()


def grant(hub: Hub, name: str, group: str, resources: str, *verbs: str, names: tuple[str, ...] = ()) -> None:
    """Grant bob a right."""
    rule: Obj = {"apiGroups": [group], "resources": [resources], "verbs": list(verbs)}
    if names:
        rule["resourceNames"] = list(names)
    api = "rbac.authorization.k8s.io"
    kind = {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    hub.send("POST", f"{RBAC}/clusterroles", {**kind, "rules": [rule]})
    refers = {"apiGroup": api, "kind": "ClusterRole", "name": name}
    subjects = [{"apiGroup": api, "kind": "User", "name": "bob"}]
    hub.send(
        "POST",
        f"{RBAC}/clusterrolebindings",
        {**kind, "kind": "ClusterRoleBinding", "roleRef": refers, "subjects": subjects},
    )


def cluster(name: str = "c1", labels: Obj | None = None, **spec: Any) -> Obj:
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
    return {**kind, "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def refusal(answer: Response) -> tuple[int, str]:
    error = answer.refusal()
    return answer.status, str(error)


@pytest.fixture
def bobs(hub: Hub) -> Hub:
    """A hub with cluster c1 of set s1, where bob may write clusters, and nothing more."""
    hub.join(accepted=False)
    grant(hub, "clusters", "cluster.open-cluster-management.io", "managedclusters", "*")
    return hub


def test_b4_who_may_not_accept_may_only_deny(bobs: Hub) -> None:
    where = 'managedclusters/accept.cluster.open-cluster-management.io "c1" is forbidden: '
    wanted = f'{CLUSTERS_SAY}{where}user "bob" cannot update the HubAcceptsClient field'
    accept = {"spec": {"hubAcceptsClient": True}}
    assert refusal(bobs.asks(BOB, "PATCH", f"{CLUSTER}/c1", accept)) == (403, wanted)
    bobs.accept(True)
    bobs.asks(BOB, "PATCH", f"{CLUSTER}/c1", {"spec": {"hubAcceptsClient": False}}).or_raise()
    grant(bobs, "accept", "register.open-cluster-management.io", "managedclusters/accept", "update", names=("c1",))
    bobs.asks(BOB, "PATCH", f"{CLUSTER}/c1", accept).or_raise()


def test_b5_a_cluster_whose_namespace_is_terminating_is_not_accepted(hub: Hub) -> None:
    metadata = {"name": "c1", "finalizers": ["a.b/c"]}
    hub.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    hub.admin.send(Request("DELETE", "/api/v1/namespaces/c1")).or_raise()
    hub.join(accepted=False)
    answer = hub.admin.send(
        Request("PUT", f"{CLUSTER}/c1", body=hub.get(f"{CLUSTER}/c1") | {"spec": {"hubAcceptsClient": True}})
    )
    where = 'managedclusters/accept.cluster.open-cluster-management.io "c1" is forbidden: '
    assert refusal(answer) == (403, f'{CLUSTERS_SAY}{where}cluster namespace "c1" is terminating')


def test_b19_times_of_taints_are_the_hubs(hub: Hub) -> None:
    given = {"key": "a.b/c", "effect": "NoSelect", "timeAdded": "2020-01-01T00:00:00Z"}
    hub.send("POST", CLUSTER, cluster(taints=[given]))
    added = [one for one in hub.get(f"{CLUSTER}/c1")["spec"]["taints"] if one["key"] == "a.b/c"]
    assert added == [{**given, "timeAdded": format_time(hub.clock.now())}]
    said = f'{TAINTS_SAY}It is not allowed to set TimeAdded of Taint "a.b/c".'
    answer = hub.asks(hub_admin(), "PATCH", f"{CLUSTER}/c1", {"spec": {"taints": [given]}})
    assert refusal(answer) == (400, said)


def hub_admin() -> UserInfo:
    return UserInfo("admin", ("system:masters",))


def test_b19_taints_of_the_hub_itself_get_their_time(hub: Hub) -> None:
    hub.join(accepted=True)
    [taint] = hub.get(f"{CLUSTER}/c1")["spec"]["taints"]
    assert taint["key"] == UNREACHABLE
    assert taint["timeAdded"] == format_time(hub.clock.now())
    before = taint["timeAdded"]
    hub.time.advance(90)
    other = {"key": "a.b/c", "effect": "NoSelect"}
    hub.send("PATCH", f"{CLUSTER}/c1", {"spec": {"taints": [taint, other]}})
    times = {one["key"]: one["timeAdded"] for one in hub.get(f"{CLUSTER}/c1")["spec"]["taints"]}
    assert times == {UNREACHABLE: before, "a.b/c": format_time(hub.clock.now())}


@pytest.mark.parametrize("labels", [None, {SET: ""}, {"a": "b"}])
def test_b20_a_cluster_without_a_set_is_in_the_default_set(hub: Hub, labels: Obj | None) -> None:
    hub.send("POST", CLUSTER, cluster(labels=labels))
    assert labels_of(hub.get(f"{CLUSTER}/c1")) == {**(labels or {}), SET: "default"}


def test_b21_moving_a_cluster_needs_the_right_on_both_sets(bobs: Hub) -> None:
    move = {"metadata": {"labels": {SET: "s2"}}}
    group, join = "cluster.open-cluster-management.io", "managedclustersets/join"
    where = f"{join}.{group}"
    said = 'user "bob" cannot add/remove a ManagedCluster to/from ManagedClusterSet'
    for name, wanted in (("s2", "s1"), ("s1", "")):
        grant(bobs, f"join-{name}", group, join, "create", names=(name,))
        answer = bobs.asks(BOB, "PATCH", f"{CLUSTER}/c1", move)
        if wanted:
            assert refusal(answer) == (403, f'{CLUSTERS_SAY}{where} "{wanted}" is forbidden: {said} "{wanted}"')
        else:
            answer.or_raise()


def test_b27_a_set_is_bound_by_who_may_bind_it_under_its_own_name(hub: Hub) -> None:
    group = "cluster.open-cluster-management.io"
    grant(hub, "bindings", group, "managedclustersetbindings", "*")
    path = f"{GROUP}/v1beta2/namespaces/default/managedclustersetbindings"
    kind = {"apiVersion": f"{group}/v1beta2", "kind": "ManagedClusterSetBinding"}
    made = {**kind, "metadata": {"name": "s1", "namespace": "default"}, "spec": {"clusterSet": "s1"}}
    said = f'managedclustersets/bind.{group} "s1" is forbidden: user "bob" is not allowed to bind cluster set "s1"'
    assert refusal(hub.asks(BOB, "POST", path, made)) == (403, BINDINGS_SAY + said)
    grant(hub, "bind", group, "managedclustersets/bind", "create")
    other = {**made, "spec": {"clusterSet": "s2"}}
    said = "The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet"
    assert refusal(hub.asks(BOB, "POST", path, other)) == (400, BINDINGS_SAY + said)
    hub.asks(BOB, "POST", path, made).or_raise()


def test_the_name_of_the_group_of_all_agents_is_no_name_of_a_cluster(hub: Hub) -> None:
    status, said = refusal(hub.asks(hub_admin(), "POST", CLUSTER, cluster("managed-clusters")))
    assert (status, "is reserved" in said) == (400, True)


def work(*manifests: Obj, **spec: Any) -> Obj:
    kind = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork"}
    body = {"workload": {"manifests": list(manifests)}, **spec}
    return {**kind, "metadata": {"name": "w", "namespace": "c1"}, "spec": body}


def config_map(name: str = "a", size: int = 0, **metadata: str) -> Obj:
    """A ConfigMap that takes exactly ``size`` bytes of JSON, if given."""
    obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "b", **metadata}}
    if size:
        obj["data"] = {"a": ""}
        obj["data"]["a"] = "x" * (size - len(json.encode(obj)))
    return obj


def executor(name: str) -> Obj:
    return {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": name}}}


def test_b67_an_executor_needs_the_right_to_execute_as_it(hub: Hub) -> None:
    hub.join(accepted=True)
    works = "work.open-cluster-management.io"
    grant(hub, "works", works, "manifestworks", "create", "get", "update", "patch")
    said = "user bob cannot manipulate the Manifestwork with executor n/e in namespace c1"
    assert refusal(hub.asks(BOB, "POST", WORKS, work(config_map(), executor=executor("e")))) == (400, WORKS_SAY + said)
    hub.send("POST", WORKS, work(config_map(), executor=executor("e")))
    hub.asks(BOB, "PATCH", f"{WORKS}/w", {"metadata": {"labels": {"a": "b"}}}).or_raise()
    change = {"spec": {"executor": executor("f")}}
    assert hub.asks(BOB, "PATCH", f"{WORKS}/w", change).status == 400
    grant(hub, "as", works, "manifestworks", "execute-as", names=("system:serviceaccount:n:f",))
    hub.asks(BOB, "PATCH", f"{WORKS}/w", change).or_raise()


def test_b68_a_work_is_bounded_as_encoded(hub: Hub) -> None:
    hub.join(accepted=True)
    said = "the size of manifests is 512001 bytes which exceeds the 512000 limit"
    assert refusal(hub.asks(hub_admin(), "POST", WORKS, work(config_map(size=511997)))) == (400, WORKS_SAY + said)
    hub.asks(hub_admin(), "POST", WORKS, work(config_map(size=511996))).or_raise()


def test_b68_the_bound_is_a_setting() -> None:
    hub = hub_of(HubSettings(manifest_limit=1000))
    hub.join(accepted=True)
    status, said = refusal(hub.asks(hub_admin(), "POST", WORKS, work(config_map(size=1000))))
    assert (status, said.endswith("exceeds the 1000 limit")) == (400, True)


@pytest.mark.parametrize(
    ("manifests", "said"),
    [
        ((config_map(), config_map()), "duplicate manifest for resource b/a with resource type v1.ConfigMap"),
        ((config_map(generateName="x-"),), "generateName must not be set in manifest"),
        ((), "manifests should not be empty"),
    ],
)
def test_b69_manifests_are_named_once(hub: Hub, manifests: tuple[Obj, ...], said: str) -> None:
    hub.join(accepted=True)
    assert refusal(hub.asks(hub_admin(), "POST", WORKS, work(*manifests))) == (400, WORKS_SAY + said)


@pytest.mark.parametrize("kind", KEPT_KINDS)
def test_what_guards_the_hub_is_written_again_when_somebody_changes_or_deletes_it(hub: Hub, kind: Any) -> None:
    path = f"{HOOKS}/{kind.kind.lower()}s".replace("policys", "policies")
    found = hub.get(path)["items"]
    assert found
    for one in found:
        mine, name = one, f"{path}/{one['metadata']['name']}"
        if "webhooks" in one:
            hub.send("PATCH", name, {"webhooks": [{**one["webhooks"][0], "failurePolicy": "Ignore"}]})
        elif kind.kind.endswith("Binding"):
            hub.send("PATCH", name, {"spec": {"validationActions": ["Audit"]}})
        else:
            hub.send("PATCH", name, {"spec": {"matchConstraints": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}})
        fields = {key: value for key, value in mine.items() if key in ("spec", "webhooks")}
        live = hub.get(name)
        assert {key: live[key] for key in fields} == fields
        hub.send("DELETE", name)
        assert hub.get(name)["metadata"]["uid"] != one["metadata"]["uid"]
