"""Applications whose destination is another cluster, declared by a cluster Secret."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, JOBS, MAPS, MERGE, PROJECTS, Simulation, config, job
from tests.gitops.behaviours.test_deletion import CASCADE

from syncline.argo.clusters import Cluster
from syncline.cluster.access.users import UserInfo
from syncline.kube.client import Request
from syncline.kube.objects import Obj, dig, name_of

FAR = "https://far.example:6443"
SECRETS = "/api/v1/namespaces/argocd/secrets"


def declared(sim: Simulation, server: str = FAR, name: str = "far", **more: str) -> None:
    data = {"server": server, "name": name, "config": '{"bearerToken": "canary"}'} | more
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"cluster-{name}", "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }
    sim.world.send("POST", SECRETS, secret)
    sim.driver.settle()


class Far:
    """A play whose Application goes to a second cluster."""

    def __init__(self, *objects: Obj, destination: Obj | None = None, **more: Any) -> None:
        self.sim = Simulation(*objects, spec={"destination": destination or {"server": FAR, "namespace": "default"}})
        self.sim.world.add_cluster(FAR)
        self.ask(
            "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        )
        declared(self.sim, **more)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"content-type": MERGE} if method == "PATCH" else {}
        answer = self.sim.world.others[FAR].send(Request(method, path, headers=headers, body=body))
        return answer.obj

    def names(self, path: str) -> list[str]:
        return sorted(name_of(obj) for obj in self.ask("GET", path)["items"] if name_of(obj) != "kube-root-ca.crt")


def test_objects_are_applied_there_and_nowhere_else() -> None:
    far = Far(config("a"), config("hook", hook="PreSync"))
    assert far.sim.sync()["phase"] == "Succeeded"
    assert (far.names(MAPS), far.sim.maps()) == (["a", "hook"], [])
    far.sim.driver.settle()
    assert far.sim.sync_status() == "Synced"


def test_a_destination_may_be_named() -> None:
    far = Far(config("a"), destination={"name": "far", "namespace": "default"})
    assert far.sim.sync()["phase"] == "Succeeded"
    assert far.names(MAPS) == ["a"]


def test_drift_there_is_seen_at_once() -> None:
    far = Far(config("a"))
    far.sim.sync()
    far.sim.driver.settle()
    far.ask("PATCH", f"{MAPS}/a", {"data": {"k": "drift"}})
    far.sim.driver.settle()
    assert far.sim.sync_status() == "OutOfSync"


def test_objects_there_are_pruned_and_go_with_the_application() -> None:
    far = Far(config("a"), config("b"))
    far.sim.patch(f"{APPS}/app", {"metadata": {"finalizers": [CASCADE]}})
    far.sim.sync()
    far.sim.source.commit(config("a"))
    assert far.sim.sync({"prune": True})["phase"] == "Succeeded"
    assert far.names(MAPS) == ["a"]
    far.sim.world.send("DELETE", f"{APPS}/app")
    far.sim.driver.advance(60)
    assert (far.names(MAPS), far.sim.get(f"{APPS}/app")) == ([], None)


def test_a_cluster_that_is_not_there_is_named_and_another_is_not_disturbed() -> None:
    sim = Simulation(config("a"))
    declared(sim, "https://gone.example", "gone")
    sim.create("lost", {"destination": {"name": "gone", "namespace": "default"}})
    assert "https://gone.example" in sim.conditions("lost")["ComparisonError"]
    assert sim.sync_status("lost") == "Unknown"
    assert sim.sync()["phase"] == "Succeeded"


def test_an_undeclared_cluster_is_found_once_its_secret_comes() -> None:
    sim = Simulation(config("a"), spec={"destination": {"server": FAR, "namespace": "default"}})
    assert "not found" in sim.conditions()["InvalidSpecError"]
    sim.world.add_cluster(FAR)
    declared(sim)
    sim.driver.advance(1)
    assert "InvalidSpecError" not in sim.conditions()
    assert sim.sync_status() == "OutOfSync"


def test_credentials_that_cannot_be_used_are_told_without_them() -> None:
    far = Far(config("a"), config='{"awsAuthConfig": {"clusterName": "canary"}}')
    text = far.sim.conditions()["ComparisonError"]
    assert "awsAuthConfig runs a program" in text and "canary" not in text


def test_a_secret_may_keep_a_cluster_to_some_namespaces() -> None:
    far = Far(config("a"), namespaces="other")
    text = 'Failed to load live state: namespace "default" for ConfigMap "a" is not managed'
    state = far.sim.sync()
    assert (state["phase"], state["message"]) == ("Error", f"ComparisonError: {text}")
    far.sim.driver.settle()
    assert far.sim.conditions()["ComparisonError"] == text and far.sim.sync_status() == "Unknown"
    (row,) = far.sim.app()["status"]["resources"]
    assert (row["status"], row["health"]) == (
        "Unknown",
        {"status": "Missing", "message": 'namespace "default" for ConfigMap "a" is not managed'},
    )
    spaces = base64.b64encode(b"other, default").decode()
    far.sim.patch(f"{SECRETS}/cluster-far", {"data": {"namespaces": spaces}})
    far.sim.driver.advance(120)
    assert far.sim.sync()["phase"] == "Succeeded" and far.sim.sync_status() == "Synced"


@pytest.mark.parametrize(
    ("cluster", "of", "why"),
    [
        ({}, ("Deployment", "a", "web"), ""),
        ({"namespaces": ("a",)}, ("Deployment", "a", "web"), ""),
        ({"namespaces": ("a",)}, ("Deployment", "b", "web"), 'namespace "b" for Deployment "web" is not managed'),
        (
            {"namespaces": ("a",)},
            ("Namespace", "", "a"),
            'cluster level Namespace "a" can not be managed when in namespaced mode',
        ),
        ({"namespaces": ("a",), "cluster_resources": True}, ("Namespace", "", "a"), ""),
        (
            {"namespaces": ("a",), "cluster_resources": True},
            ("Deployment", "b", "web"),
            'namespace "b" for Deployment "web" is not managed',
        ),
        ({"cluster_resources": False}, ("Namespace", "", "a"), ""),
    ],
    ids=[
        "a secret without namespaces keeps nothing out",
        "a namespace of its list is managed",
        "any other namespace is not",
        "objects of the cluster are not",
        "unless it says so",
        "which opens no namespace",
        "clusterResources alone says nothing",
    ],
)
def test_what_the_secret_of_a_cluster_leaves_out(cluster: Obj, of: tuple[str, str, str], why: str) -> None:
    assert Cluster(FAR, "far", **cluster).refuses(*of) == why


def test_a_project_may_permit_its_own_clusters_only_a023() -> None:
    far = Far(config("a"), project="other")
    far.sim.patch(f"{PROJECTS}/default", {"spec": {"permitOnlyProjectScopedClusters": True}})
    far.sim.driver.settle()
    assert "do not match any of the allowed destinations" in far.sim.conditions()["InvalidSpecError"]


def test_no_credential_is_printed_anywhere() -> None:
    far = Far(config("a"), job("hook", hook="PreSync"))
    far.sim.begin()
    far.sim.driver.advance(60)
    assert "canary" not in str(far.sim.app()) + str([(e.what, e.why) for e in far.sim.world.journal])
    assert dig(far.ask("GET", f"{JOBS}/hook"), "metadata", "name") == "hook"


# -- a token that may read some namespaces only ------------------------------------------------------------------------

RBAC = "rbac.authorization.k8s.io"


class Narrow(Far):
    """A cluster whose token may do everything in ``open``, and nothing else."""

    def __init__(self, *objects: Obj, open: tuple[str, ...] = ("default",), **more: Any) -> None:
        self.sim = Simulation(*objects, spec={"destination": {"server": FAR, "namespace": "default"}})
        self.core = self.sim.world.add_cluster(FAR)
        self.admin = self.core.transport()
        self.sim.world.others[FAR] = self.core.transport(UserInfo("narrow", ("system:authenticated",)))
        for name in ("default", "other", "closed"):
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.admin.send(Request("POST", "/api/v1/namespaces", body=made))
        for name in open:
            self.permit(name)
        declared(self.sim, **more)

    def permit(self, namespace: str) -> None:
        rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        base = f"/apis/{RBAC}/v1/namespaces/{namespace}"
        made = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": "all"}}
        self.admin.send(Request("POST", f"{base}/roles", body={**made, "kind": "Role", "rules": [rule]}))
        subject = {"kind": "User", "apiGroup": RBAC, "name": "narrow"}
        role = {"apiGroup": RBAC, "kind": "Role", "name": "all"}
        body = {**made, "kind": "RoleBinding", "subjects": [subject], "roleRef": role}
        self.admin.send(Request("POST", f"{base}/rolebindings", body=body))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"content-type": MERGE} if method == "PATCH" else {}
        return self.admin.send(Request(method, path, headers=headers, body=body)).obj


def in_space(obj: Obj, namespace: str) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def test_a_token_for_some_namespaces_works_where_the_secret_names_them() -> None:
    far = Narrow(config("a"), in_space(config("b"), "other"), open=("default", "other"), namespaces="default,other")
    assert far.sim.sync({"syncOptions": ["CreateNamespace=true"]})["phase"] == "Succeeded"
    far.sim.driver.settle()
    assert far.sim.sync_status() == "Synced" and far.sim.conditions() == {}
    assert far.names(MAPS) == ["a"]
    far.ask("PATCH", f"{MAPS}/a", {"data": {"k": "drift"}})
    far.sim.driver.settle()
    assert far.sim.sync_status() == "OutOfSync", "each namespace is watched"
    far.sim.source.commit(config("a"))
    assert far.sim.sync({"prune": True})["phase"] == "Succeeded"
    assert far.names(MAPS.replace("default", "other")) == []


def test_without_namespaces_in_its_secret_such_a_token_reads_nothing_and_that_is_said() -> None:
    far = Narrow(config("a"))
    text = far.sim.conditions()["ComparisonError"]
    assert 'namespaces is forbidden: User "narrow" cannot list resource "namespaces"' in text
    assert far.sim.sync_status() == "Unknown"


def test_a_namespace_that_may_not_be_read_is_named_and_is_not_empty() -> None:
    """An Application of other namespaces does not notice."""
    both = (config("a"), in_space(config("b"), "closed"))
    far = Narrow(*both, open=("default", "closed", "other"), namespaces="default,closed,other")
    assert far.sim.sync()["phase"] == "Succeeded"
    path = f"/apis/{RBAC}/v1/namespaces/closed/rolebindings/all"
    far.admin.send(Request("DELETE", path))
    far.sim.driver.advance(5)
    far.sim.source.commit(config("a"))  # b would be pruned
    declared_again = {"data": {"name": base64.b64encode(b"far").decode(), "x": base64.b64encode(b"1").decode()}}
    far.sim.patch(f"{SECRETS}/cluster-far", declared_again)  # all is listed again
    far.sim.create("mine", {"destination": {"server": FAR, "namespace": "other"}})
    far.sim.driver.advance(300)
    text = far.sim.conditions()["ComparisonError"]
    assert 'configmaps is forbidden: User "narrow" cannot list resource "configmaps"' in text
    assert 'in the namespace "closed"' in text
    assert (far.sim.sync_status(), far.sim.sync_status("mine")) == ("Unknown", "OutOfSync")
    assert far.sim.conditions("mine") == {}
    state = far.sim.sync({"prune": True})
    assert state["phase"] == "Error" and 'in the namespace "closed"' in state["message"]
    assert far.names(MAPS.replace("default", "closed")) == ["b"], "what can't be read is not gone"
    far.permit("closed")
    far.ask("PATCH", f"{MAPS}/a", {"metadata": {"labels": {"seen": "1"}}})  # what is refused is asked for again
    far.sim.driver.advance(300)
    assert far.sim.sync({"prune": True})["phase"] == "Succeeded"
    assert far.names(MAPS.replace("default", "closed")) == []


def test_more_namespaces_than_are_watched_are_refused_by_number() -> None:
    far = Narrow(config("a"), namespaces=",".join(f"n{number}" for number in range(60)))
    text = far.sim.conditions()["ComparisonError"]
    assert "its Secret names 60 namespaces, and 50 are watched at most" in text
