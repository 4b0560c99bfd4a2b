"""PackageManifests: read-only, computed from CatalogSources, visible where upstream's package server shows them."""

from __future__ import annotations

import pytest
from tests.patterns.operating import OLM, Operators, bundle, channel, package

from syncline.cluster.access.users import UserInfo
from syncline.kube.client import Request
from syncline.kube.objects import Obj
from syncline.patterns.operators.catalogs.reading import read_catalog

PACKAGES = "/apis/packages.operators.coreos.com/v1"


def catalog(name: str, *versions: str, **properties: object) -> list[Obj]:
    entries = [f"{name}.v{one}" for one in versions]
    chain = [{"name": one, "replaces": before} for one, before in zip(entries[1:], entries, strict=False)]
    return [
        package(name),
        channel(name, "stable", entries[0], *chain),
        *(bundle(name, one, f"{name.title()}.v1.example.com", **properties) for one in versions),
    ]


@pytest.fixture(scope="module")
def world() -> Operators:
    """Two catalogues: ``cat`` for all namespaces, ``own`` of namespace team."""
    made = Operators(*catalog("widgets", "1.0.0", "1.10.0", "1.9.0"))
    made.catalogs.catalogs["team/own"] = read_catalog(catalog("gadgets", "2.0.0"))  # type: ignore[index]
    for name in ("team", "other"):
        made.namespace(name, group=False)
    spec = {"sourceType": "grpc", "image": "own:1", "displayName": "Our own", "publisher": "us"}
    body = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "spec": spec}
    metadata = {"name": "own", "labels": {"tier": "gold"}}
    made.send("POST", f"{OLM}/team/catalogsources", body | {"metadata": metadata})
    return made


def names(world: Operators, namespace: str, query: str = "") -> list[tuple[str, str]]:
    where = f"/namespaces/{namespace}" if namespace else ""
    answer = world.admin.send(Request("GET", f"{PACKAGES}{where}/packagemanifests", {"labelSelector": query}))
    items: list[Obj] = answer.or_raise()["items"]
    return [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in items]


def test_a_global_catalogue_is_visible_in_every_namespace_and_another_one_in_its_own_alone(world: Operators) -> None:
    assert names(world, "other") == [("other", "widgets")]
    assert names(world, "team") == [("team", "gadgets"), ("team", "widgets")]
    assert names(world, "openshift-marketplace") == [("openshift-marketplace", "widgets")]
    assert names(world, "") == [("openshift-marketplace", "widgets"), ("team", "gadgets")]


def test_label_selectors_name_the_catalogue_and_its_own_labels(world: Operators) -> None:
    assert names(world, "team", "catalog=own") == [("team", "gadgets")]
    assert names(world, "team", "tier=gold") == [("team", "gadgets")]
    assert names(world, "team", "catalog-namespace=openshift-marketplace") == [("team", "widgets")]
    assert names(world, "other", "catalog=own") == []


def test_channels_name_their_newest_version_and_all_entries_newest_first(world: Operators) -> None:
    status = world.get(f"{PACKAGES}/namespaces/other/packagemanifests/widgets")["status"]
    assert (status["defaultChannel"], status["catalogSourceNamespace"]) == ("stable", "openshift-marketplace")
    (stable,) = status["channels"]
    assert stable["currentCSV"] == "widgets.v1.9.0"
    assert [one["version"] for one in stable["entries"]] == ["1.10.0", "1.9.0", "1.0.0"]
    described = stable["currentCSVDesc"]
    assert (described["displayName"], described["version"]) == ("Widgets", "1.9.0")
    (owned,) = described["customresourcedefinitions"]["owned"]
    assert owned["kind"] == "Widgets"
    assert described["relatedImages"] == ["example.com/widgets:1.9.0"]


def test_kubectl_gets_a_table_with_the_catalogue(world: Operators) -> None:
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    path = f"{PACKAGES}/namespaces/team/packagemanifests"
    table = world.admin.send(Request("GET", path, {"limit": "1"}, accept)).or_raise()
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Catalog", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["gadgets", "Our own"], ["widgets", "cat"]]


def test_discovery_says_that_they_are_read_only(world: Operators) -> None:
    (one,) = world.get(PACKAGES)["resources"]
    assert (one["name"], one["verbs"]) == ("packagemanifests", ["get", "list"])
    stored = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/packagemanifests.packages.operators.coreos.com"
    assert world.absent(stored)
    body = {"apiVersion": "packages.operators.coreos.com/v1", "kind": "PackageManifest", "metadata": {"name": "x"}}
    path = f"{PACKAGES}/namespaces/team/packagemanifests"
    assert world.admin.send(Request("POST", path, body=body)).status == 405
    assert world.admin.send(Request("DELETE", f"{path}/widgets")).status == 405
    assert world.admin.send(Request("GET", path, {"watch": "true"})).status == 405


def test_a_tenant_sees_the_catalogues_of_its_namespace_and_no_others(world: Operators) -> None:
    tenant = world.core.transport(UserInfo("ann", ("system:authenticated",)))
    rbac = "rbac.authorization.k8s.io"
    body = {
        "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "ann"}],
    }
    world.send("POST", f"/apis/{rbac}/v1/namespaces/other/rolebindings", body)
    seen = tenant.send(Request("GET", f"{PACKAGES}/namespaces/other/packagemanifests")).or_raise()
    assert [one["metadata"]["name"] for one in seen["items"]] == ["widgets"]
    for path in ("/namespaces/team/packagemanifests", "/namespaces/team/packagemanifests/gadgets", "/packagemanifests"):
        assert tenant.send(Request("GET", PACKAGES + path)).status == 403
    assert tenant.send(Request("GET", f"{PACKAGES}/namespaces/other/packagemanifests/gadgets")).status == 404


def test_a_catalogue_that_is_not_there_offers_nothing_and_the_namespace_can_still_be_deleted() -> None:
    world = Operators(*catalog("widgets", "1.0.0"))
    world.namespace("team", group=False)
    world.send("DELETE", f"{OLM}/openshift-marketplace/catalogsources/cat")
    assert names(world, "team") == []
    world.send("DELETE", "/api/v1/namespaces/team")
    world.time.advance(60)
    assert world.absent("/api/v1/namespaces/team")
