"""``--rights managed-by`` against an API: the rights of ``deploy/managed-by.yaml``, and a process that has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner
from tests.assembly.controllers import APPS, MAP, MAPS, Cluster, start
from tests.assembly.test_deploy import manifests
from tests.live import served_cluster
from tests.sources.conftest import Upstream

from syncline.apply.managed import ACCOUNT
from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.rights import Rights, managed_by_objects
from syncline.assembly.settings import ClusterSettings
from syncline.base.secret import Secret
from syncline.cli.serving.controller import controller
from syncline.control.executor import run_in_place
from syncline.control.leader import LeaderSettings
from syncline.gitops.managed.plan import role_in
from syncline.kube import client
from syncline.kube.client import Request
from syncline.kube.objects import Obj, dig
from syncline.kube.transport.kubeconfig import load_kubeconfig

NAMESPACE = "openshift-gitops"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"


def _bindings(namespace: str) -> list[Obj]:
    """What an administrator binds in a managed namespace where no operator does."""
    found = [
        one for one in manifests("managed-by.yaml") if one["metadata"]["name"].startswith("syncline:managed-namespace")
    ]
    return [
        {**one, "metadata": {**one["metadata"], "namespace": namespace}}
        for one in found
        if one["kind"] == "RoleBinding"
    ]


def test_the_manifests_grant_the_account_what_the_embedded_cluster_grants_it() -> None:
    granted = manifests("managed-by.yaml")
    for wanted in managed_by_objects(NAMESPACE):
        assert wanted in granted
    (managed,) = [
        one
        for one in granted
        if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", "syncline:managed-namespace")
    ]
    assert managed["rules"] == role_in("any", None)["rules"][1:], "it reads everything by another role"


def test_the_process_may_be_exactly_that_account_and_nothing_else() -> None:
    granted = [
        (rule["verbs"], rule["resources"], rule.get("resourceNames"))
        for one in manifests("managed-by.yaml")
        if one["metadata"]["name"] in ("syncline:impersonate", "syncline:install")
        for rule in one.get("rules", ())
    ]
    assert granted == [
        (["impersonate"], ["serviceaccounts"], [ACCOUNT]),
        (["create", "get"], ["appprojects"], None),
        (["create", "get"], ["customresourcedefinitions"], None),
        (["get"], ["namespaces"], [NAMESPACE]),
    ]


def test_a_process_acts_as_the_account_and_writes_where_it_is_bound(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit({"a/map.yaml": MAP.format(name="a")})
    with served_cluster(tmp_path, ClusterSettings()) as served:
        cluster = Cluster(served)
        run_in_place(ensure_objects(manifests("managed-by.yaml")), cluster.api)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"{ACCOUNTS}/syncline-application-controller/token"
        token = cluster.ask(Request("POST", path, body=request))["status"]["token"]
        access = load_kubeconfig(served.kubeconfig)
        mine = replace(access, token=Secret(token), certificate_pem="", key_pem=None)
        leader = LeaderSettings("a", NAMESPACE)
        running = start(served, tmp_path / "cache", leader, access=mine, namespace=NAMESPACE, rights=Rights.MANAGED_BY)
        try:
            spec = {
                "project": "default",
                "source": {"repoURL": str(upstream.path), "path": "a"},
                "destination": {"name": "in-cluster", "namespace": "demo"},
                "syncPolicy": {"automated": {}, "syncOptions": ["CreateNamespace=true"], "retry": {"limit": -1}},
            }
            app = {
                "apiVersion": APPS.api_version,
                "kind": "Application",
                "metadata": {"name": "a", "namespace": NAMESPACE},
            }
            cluster.ask(client.create(APPS, {**app, "spec": spec}))
            refused = cluster.watch_until(
                APPS,
                NAMESPACE,
                "a",
                lambda one: "forbidden" in dig(one, "status", "operationState", "message", default=""),
            )
            assert (
                f'configmaps is forbidden: User "{USER}" cannot create resource "configmaps" in API group "" '
                'in the namespace "demo"'
            ) in refused["status"]["operationState"]["message"]
            for binding in _bindings("demo"):
                cluster.ask(Request("POST", RBAC.format("demo"), body=binding))
            cluster.watch_until(APPS, NAMESPACE, "a", lambda one: dig(one, "status", "sync", "status") == "Synced")
        finally:
            running.end()
        assert cluster.ask(client.get(MAPS, "demo", "a"))["data"] == {"a": "1"}


def test_rights_without_the_role_gitops_are_refused() -> None:
    result = CliRunner().invoke(controller, ["--roles", "hub", "--rights", "managed-by"])
    assert "--rights managed-by: these are rights of the role gitops" in str(result.exception)
