"""OpenAPI documents over the API: forms, hashes, and what a new definition changes."""

from __future__ import annotations

from typing import Any

from tests.cluster.test_api import Cluster

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
CREWS: dict[str, Any] = {
    "group": "example.com",
    "scope": "Namespaced",
    "names": {"plural": "crews", "singular": "crew", "kind": "Crew", "listKind": "CrewList"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": SCHEMA}],
}


def test_openapi_v2_is_protobuf_for_those_who_ask_also_right_after_a_definition_was_added() -> None:
    cluster = Cluster()
    before = cluster.send("GET", "/openapi/v2", headers={"accept": PROTOBUF})
    assert before.headers["content-type"] == PROTOBUF.replace("@", ".")
    assert before.raw.startswith(b"\x0a\x032.0")
    cluster.make(DEFINITIONS, "crews.example.com", spec=CREWS)
    after = cluster.send("GET", "/openapi/v2", headers={"accept": PROTOBUF})
    assert b"com.example.v1.Crew" in after.raw and b"com.example.v1.Crew" not in before.raw
    assert after.headers["etag"] != before.headers["etag"]
    known = {"accept": PROTOBUF, "if-none-match": after.headers["etag"]}
    assert cluster.send("GET", "/openapi/v2", headers=known).status == 304
    assert cluster.send("GET", "/openapi/v2", headers={"accept": "text/plain"}).status == 406


def test_an_openapi_v3_address_with_an_old_hash_leads_to_the_current_one() -> None:
    cluster = Cluster()
    current = cluster.send("GET", "/openapi/v3").obj["paths"]["apis/apps/v1"]["serverRelativeURL"]
    found = cluster.send("GET", current)
    assert (found.status, found.headers["cache-control"]) == (200, "public, immutable")
    old = cluster.send("GET", "/openapi/v3/apis/apps/v1?hash=ABC")
    assert (old.status, old.headers["location"]) == (301, current)


def test_aggregated_discovery_is_not_sent_again_to_who_knows_it() -> None:
    cluster = Cluster()
    accept = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    first = cluster.send("GET", "/apis", headers=accept)
    again = cluster.send("GET", "/apis", headers={**accept, "if-none-match": first.headers["etag"]})
    assert (first.status, again.status, again.raw) == (200, 304, b"")
