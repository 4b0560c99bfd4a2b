"""Destinations: which cluster is meant, and what is said when none is."""

from __future__ import annotations

import base64

import pytest

from syncline.argo.application import AppView
from syncline.argo.clusters import (
    HERE,
    IN_CLUSTER_SERVER,
    Cluster,
    ClusterError,
    cluster_access,
    clusters_of,
    resolve_destination,
)
from syncline.argo.spec import validate_spec
from syncline.kube.objects import Obj


def secret(name: str, server: str, kind: str = "cluster") -> Obj:
    data = {"name": name, "server": server, "config": "{}"}
    return {
        "metadata": {"name": f"cluster-{name}", "labels": {"argocd.argoproj.io/secret-type": kind}},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


FAR = secret("prod", "https://prod:6443")


def test_the_cluster_that_applications_live_in_is_known_without_a_secret() -> None:
    assert clusters_of([]) == (HERE,)
    assert resolve_destination({"name": "in-cluster"}, clusters_of([FAR])) == HERE
    assert resolve_destination({"server": IN_CLUSTER_SERVER + "/"}, clusters_of([FAR])) == HERE


def test_a_secret_may_give_it_another_name() -> None:
    known = clusters_of([secret("home", IN_CLUSTER_SERVER), secret("not-one", "https://x", kind="repository")])
    assert known == (Cluster(IN_CLUSTER_SERVER, "home"),)
    assert resolve_destination({"name": "home"}, known) == known[0]
    assert resolve_destination({"name": "in-cluster"}, known) == "there are no clusters with this name: in-cluster"
    app = {"kind": "Application", "metadata": {"name": "a"}, "spec": {"destination": {"name": "home"}}}
    assert AppView(app).is_in(known)
    assert not AppView(app).in_cluster


@pytest.mark.parametrize(
    "secrets", [[], [secret("home", IN_CLUSTER_SERVER)], [secret("home", IN_CLUSTER_SERVER + "/")]]
)
def test_a_disabled_cluster_is_no_destination_under_any_name(secrets: list[Obj]) -> None:
    known = clusters_of([*secrets, FAR], here=False)
    disabled = f'error getting cluster by server "{IN_CLUSTER_SERVER}": cluster "{IN_CLUSTER_SERVER}" is disabled'
    assert resolve_destination({"server": IN_CLUSTER_SERVER}, known) == disabled
    assert resolve_destination({"server": IN_CLUSTER_SERVER + "/"}, known) == disabled
    for name in ("in-cluster", "home"):
        assert resolve_destination({"name": name}, known) == f"there are no clusters with this name: {name}"
    assert resolve_destination({"name": "prod"}, known) == Cluster("https://prod:6443", "prod")


@pytest.mark.parametrize(
    ("destination", "told"),
    [
        ({}, "Destination server missing from app spec"),
        ({"name": "x"}, "there are no clusters with this name: x"),
        ({"server": "https://x"}, 'error getting cluster by server "https://x": cluster "https://x" not found'),
    ],
)
def test_a_destination_that_nobody_declared_is_told_in_upstreams_words(destination: Obj, told: str) -> None:
    assert resolve_destination(destination, clusters_of([FAR])) == told


def test_6_a_destination_with_name_and_server_is_refused() -> None:
    told = resolve_destination({"name": "prod", "server": "https://prod:6443"}, clusters_of([FAR]))
    assert told == "application destination can't have both name and server defined: prod https://prod:6443"


def test_7_a_name_that_two_clusters_have_is_refused_with_both() -> None:
    told = resolve_destination({"name": "prod"}, clusters_of([FAR, secret("prod", "https://other:6443")]))
    assert told == "there are 2 clusters with the same name: [https://other:6443 https://prod:6443]"


def test_a_declared_cluster_elsewhere_is_a_destination_like_any_other() -> None:
    app = {
        "kind": "Application",
        "metadata": {"name": "a", "namespace": "argocd"},
        "spec": {"destination": {"name": "prod", "namespace": "x"}, "source": {"repoURL": "https://h/r", "path": "."}},
    }
    far = {"server": "https://prod:6443", "namespace": "*"}
    project = {"metadata": {"name": "default"}, "spec": {"sourceRepos": ["*"], "destinations": [far]}}
    assert validate_spec(app, project, control_namespace="argocd", clusters=clusters_of([FAR])) == []
    home = {"metadata": {"name": "default"}, "spec": {"sourceRepos": ["*"], "destinations": [{"name": "in-cluster"}]}}
    (told,) = validate_spec(app, home, control_namespace="argocd", clusters=clusters_of([FAR]))
    assert "server 'https://prod:6443' and namespace 'x' do not match" in told.message


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("{", "its config is no JSON"),
        ('{"execProviderConfig": {"command": "aws"}}', "execProviderConfig runs a program"),
        ('{"awsAuthConfig": {"clusterName": "c"}}', "awsAuthConfig runs a program"),
        ('{"username": "u", "password": "hidden"}', "user name and password are not supported"),
        ('{"tlsClientConfig": {"insecure": true, "caData": "eA=="}}', "both insecure and caData"),
    ],
)
def test_credentials_that_cannot_be_used_are_named_and_not_shown(config: str, told: str) -> None:
    broken = secret("prod", "https://prod:6443")
    broken["data"]["config"] = base64.b64encode(config.encode()).decode()
    with pytest.raises(ClusterError, match=told) as raised:
        cluster_access(broken)
    assert "hidden" not in str(raised.value)


def test_credentials_are_read_from_the_config_of_a_secret() -> None:
    made = secret("prod", "https://prod:6443/")
    config = '{"bearerToken": "t", "tlsClientConfig": {"caData": "Y2E=", "serverName": "api"}, "proxyUrl": "http://p"}'
    made["data"]["config"] = base64.b64encode(config.encode()).decode()
    found = cluster_access(made)
    assert (found.server, found.ca_pem, found.tls_server_name, found.proxy_url) == (
        "https://prod:6443",
        "ca",
        "api",
        "http://p",
    )
    assert found.token is not None and found.token.reveal() == "t"
