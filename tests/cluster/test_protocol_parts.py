"""Parts of the protocol that the conformance suite of Kubernetes looks at: strict decoding, tables, definitions' lives,
scales without a count, and lists that were open for too long."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.cluster.test_api import Cluster

DEPLOYMENTS = "/apis/apps/v1/namespaces/demo/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOATS = "/apis/example.com/v1/namespaces/demo/boats"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def definition(schema: dict[str, Any] | None = None, **version: Any) -> dict[str, Any]:
    root = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "boats", "kind": "Boat"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}} | version
            ],
        },
    }


# --- strict decoding -----------------------------------------------------------------------------------------------

DEPLOYMENT = (
    '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","unknownMeta":1},"spec":{'
    '"unknownField":{"a":1,"a":2},"replicas":1,"replicas":2,"unknownField":3,'
    '"template":{"spec":{"late":true}},"template":{"metadata":{"labels":{"a":"b","a":"c"}}}}}'
)
IN_ORDER = (
    'unknown field "metadata.unknownMeta", unknown field "spec.unknownField", duplicate field "spec.replicas", '
    'unknown field "spec.template.spec.late", duplicate field "spec.template", '
    'duplicate field "spec.template.metadata.labels.a"'
)


def test_strict_errors_come_in_the_order_of_the_document(cluster: Cluster) -> None:
    answer = cluster.send("POST", f"{DEPLOYMENTS}?fieldValidation=Strict", DEPLOYMENT.encode())
    assert answer.obj["message"].endswith(f"strict decoding error: {IN_ORDER}")


@pytest.mark.parametrize(
    ("media", "body", "problems"),
    [
        ("merge-patch", '{"data":{"a":"1","a":"2"}}', 'duplicate field "data.a"'),
        ("strategic-merge-patch", '{"data":{"a":"1","a":"2"}}', 'duplicate field "data.a"'),
        (
            "strategic-merge-patch",
            '{"data":{"a":"1","a":"2"},"more":1}',
            'duplicate field "data.a", unknown field "more"',
        ),
        (
            "json-patch",
            '[{"op":"add","path":"/data","value":{"a":"1"},"op":"add","why":1}]',
            'json patch duplicate field "[0].op", json patch unknown field "[0].why"',
        ),
        (
            "json-patch",
            '[{"op":"add","path":"/more","value":{},"why":1}]',
            'json patch unknown field "[0].why", unknown field "more"',
        ),
    ],
)
def test_a_patch_is_refused_for_all_that_it_and_its_result_have_too_much(
    cluster: Cluster, media: str, body: str, problems: str
) -> None:
    cluster.make("/api/v1/namespaces/demo/configmaps", "settings")
    path = "/api/v1/namespaces/demo/configmaps/settings?fieldValidation=Strict"
    answer = cluster.send("PATCH", path, body.encode(), {"content-type": f"application/{media}+json"})
    assert answer.status == 422
    assert answer.obj["message"].endswith(f"strict decoding error: {problems}")


def test_what_decodes_itself_may_repeat_its_fields(cluster: Cluster) -> None:
    body = '{"metadata":{"name":"one"},"revision":1,"data":{"a":1,"a":2}}'
    path = "/apis/apps/v1/namespaces/demo/controllerrevisions?fieldValidation=Strict"
    assert cluster.send("POST", path, body.encode()).status == 201


# --- tables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/api/v1/namespaces/demo/serviceaccounts/default/token",
        "/api/v1/namespaces/demo/pods/web/eviction",
    ],
)
def test_what_is_no_stored_object_is_no_table(cluster: Cluster, path: str) -> None:
    answer = cluster.send("POST", path, {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}, TABLE)
    assert (answer.status, answer.obj["reason"]) == (406, "NotAcceptable")
    also = {"accept": f"{TABLE['accept']}, application/json"}
    assert cluster.send("POST", path, {"spec": {}}, also).status != 406


def test_only_the_first_event_of_a_watched_table_describes_its_columns(cluster: Cluster) -> None:
    stream = cluster.send("GET", "/api/v1/namespaces/demo/configmaps?watch=true", headers=TABLE).stream
    assert stream is not None
    for name in ("one", "two"):
        cluster.make("/api/v1/namespaces/demo/configmaps", name)
    tables = [msgspec.json.decode(frame)["object"] for frame in stream.take()]
    assert [bool(table["columnDefinitions"]) for table in tables] == [True, False]
    assert tables[1]["rows"]


# --- definitions ---------------------------------------------------------------------------------------------------


def conditions(event: bytes) -> list[tuple[str, str, str]]:
    listed = json.loads(event)["object"]["status"].get("conditions") or []
    return [(one["type"], one["status"], one["reason"]) for one in listed]


def test_a_definition_is_established_and_ended_in_writes_that_watchers_see(cluster: Cluster) -> None:
    stream = cluster.send("GET", f"{DEFINITIONS}?watch=true").stream
    assert stream is not None
    cluster.send("POST", DEFINITIONS, definition()).or_raise()
    names, established = ("NamesAccepted", "True", "NoConflicts"), ("Established", "True", "InitialNamesAccepted")
    assert [conditions(event) for event in stream.take()] == [
        [],
        [names, ("Established", "False", "Installing")],
        [names, established],
    ]
    cluster.send("DELETE", f"{DEFINITIONS}/boats.example.com").or_raise()
    events = stream.take()
    assert [json.loads(event)["type"] for event in events] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert [conditions(event)[-1] for event in events] == [
        ("Terminating", "True", "InstanceDeletionPending"),
        ("Terminating", "True", "InstanceDeletionInProgress"),
        ("Terminating", "False", "InstanceDeletionCompleted"),
    ]


def swagger(cluster: Cluster) -> Any:
    return cluster.send("GET", "/openapi/v2").obj["definitions"]["com.example.v1.Boat"]


def test_a_root_that_keeps_unknown_fields_is_any_object_in_swagger(cluster: Cluster) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}}
    cluster.send("POST", DEFINITIONS, definition(schema)).or_raise()
    found = swagger(cluster)
    assert found.pop("x-kubernetes-group-version-kind")
    assert found == {"type": "object"}


def test_swagger_leaves_types_open_where_readers_would_refuse_values(cluster: Cluster) -> None:
    properties = {
        "free": {
            "type": "object",
            "description": "anything",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"a": {"type": "string"}},
        },
        "maybe": {"type": "string", "nullable": True},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
    }
    schema = {"type": "object", "required": ["maybe", "free"], "properties": properties}
    cluster.send("POST", DEFINITIONS, definition(schema)).or_raise()
    found = swagger(cluster)
    assert found["required"] == ["free"]
    assert found["properties"]["free"] == {"description": "anything", "x-kubernetes-preserve-unknown-fields": True}
    assert found["properties"]["maybe"] == {}
    assert found["properties"]["inner"]["required"] == ["kind", "apiVersion"]
    assert found["properties"]["metadata"]["description"].startswith("Standard object's metadata.")


# --- scale ---------------------------------------------------------------------------------------------------------

SCALED = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
COUNTED = {"type": "object", "properties": {"spec": FREE, "status": FREE}}


@pytest.mark.parametrize(
    ("method", "body", "media"),
    [
        ("PUT", {"metadata": {"name": "ark", "namespace": "demo"}, "spec": {"replicas": 3}}, "application/json"),
        ("PATCH", {"spec": {"replicas": 3}}, "application/merge-patch+json"),
        (
            "PATCH",
            {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "ark"}, "spec": {"replicas": 3}},
            "application/apply-patch+yaml",
        ),
    ],
)
def test_a_custom_resource_without_a_count_can_be_given_one(
    cluster: Cluster, method: str, body: dict[str, Any], media: str
) -> None:
    cluster.send("POST", DEFINITIONS, definition(COUNTED, subresources=SCALED)).or_raise()
    boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "ark"}, "spec": {"color": "red"}}
    cluster.send("POST", BOATS, boat).or_raise()
    assert cluster.send("GET", f"{BOATS}/ark/scale").status == 500
    empty = cluster.send("PATCH", f"{BOATS}/ark/scale", {}, {"content-type": "application/merge-patch+json"})
    assert empty.obj["message"] == 'the spec replicas field ".spec.replicas" cannot be empty'
    answer = cluster.send(method, f"{BOATS}/ark/scale?fieldManager=test", body, {"content-type": media})
    assert answer.or_raise()["spec"] == {"replicas": 3}
    assert cluster.send("GET", f"{BOATS}/ark").obj["spec"] == {"color": "red", "replicas": 3}


# --- lists that were open for long ---------------------------------------------------------------------------------


def test_an_expired_token_leads_to_one_that_goes_on_inconsistently(cluster: Cluster) -> None:
    maps = "/api/v1/namespaces/demo/configmaps"
    for name in "abcd":
        cluster.make(maps, name)
    first = cluster.send("GET", f"{maps}?limit=1").obj["metadata"]
    cluster.make(maps, "e")
    cluster.store.close_lists(cluster.store.revision)
    expired = cluster.send("GET", f"{maps}?limit=2&continue={first['continue']}")
    assert (expired.status, expired.obj["reason"]) == (410, "Expired")
    then = cluster.send("GET", f"{maps}?limit=2&continue={expired.obj['metadata']['continue']}").or_raise()
    assert [one["metadata"]["name"] for one in then["items"]] == ["b", "c"]
    assert then["metadata"]["resourceVersion"] != first["resourceVersion"]
    assert then["metadata"]["remainingItemCount"] == 2
    stream = cluster.send("GET", f"{maps}?watch=true&resourceVersion={first['resourceVersion']}").stream
    assert stream is not None and len(stream.take()) == 1, "a watch still reaches back"


# --- stored objects of definitions that changed --------------------------------------------------------------------


def typed(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": fields}}}


def a_boat(cluster: Cluster, spec: dict[str, Any], version: str = "v1") -> Any:
    boat = {"apiVersion": f"example.com/{version}", "kind": "Boat", "metadata": {"name": "ark"}, "spec": spec}
    return cluster.send("POST", BOATS.replace("v1", version), boat)


def change_definition(cluster: Cluster, changed: dict[str, Any]) -> None:
    path = f"{DEFINITIONS}/boats.example.com"
    cluster.send("PATCH", path, {"spec": changed["spec"]}, MERGE_PATCH).or_raise()


MERGE_PATCH = {"content-type": "application/merge-patch+json"}
TEXT, RED = {"type": "string"}, {"type": "string", "default": "red"}


def test_stored_objects_are_read_by_the_schema_of_today(cluster: Cluster) -> None:
    cluster.send("POST", DEFINITIONS, definition(typed(name=TEXT, old=TEXT))).or_raise()
    a_boat(cluster, {"name": "Ark", "old": "x"}).or_raise()
    stream = cluster.send("GET", f"{BOATS}?watch=true&resourceVersion=1").stream
    change_definition(cluster, definition(typed(name=TEXT, color=RED)))
    wanted = {"name": "Ark", "color": "red"}
    assert cluster.send("GET", f"{BOATS}/ark").obj["spec"] == wanted
    listed = cluster.send("GET", BOATS)
    assert json.loads(listed.raw)["items"][0]["spec"] == wanted == listed.obj["items"][0]["spec"]
    assert stream is not None
    cluster.send("PATCH", f"{BOATS}/ark", {"metadata": {"finalizers": ["example.com/x"]}}, MERGE_PATCH).or_raise()
    cluster.send("DELETE", f"{BOATS}/ark").or_raise()
    assert cluster.send("GET", f"{BOATS}/ark").obj["spec"] == wanted


def test_each_version_shows_the_fields_that_it_has(cluster: Cluster) -> None:
    two = definition(typed(name=TEXT, color=RED))
    other = {**two["spec"]["versions"][0], "name": "v2", "storage": False}
    two["spec"]["versions"].append({**other, "schema": {"openAPIV3Schema": typed(name=TEXT, weight=TEXT)}})
    cluster.send("POST", DEFINITIONS, two).or_raise()
    a_boat(cluster, {"name": "Ark", "weight": "1t"}, "v2").or_raise()
    assert cluster.send("GET", f"{BOATS}/ark").obj["spec"] == {"name": "Ark", "color": "red"}
    assert cluster.send("GET", f"{BOATS.replace('v1', 'v2')}/ark").obj["spec"] == {"name": "Ark"}


def test_what_only_a_webhook_can_convert_is_refused_and_not_taken_for_another_version(cluster: Cluster) -> None:
    two = definition(typed(name=TEXT))
    two["spec"]["versions"].append({**two["spec"]["versions"][0], "name": "v2", "storage": False})
    client = {"url": "https://127.0.0.1:1/convert"}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    two["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    cluster.send("POST", DEFINITIONS, two).or_raise()
    refused = a_boat(cluster, {"name": "Ark"}, "v2")
    assert refused.status == 500 and refused.obj["message"].startswith("conversion webhook for example.com/v2")
    later = BOATS.replace("v1", "v2")
    stream = cluster.send("GET", f"{later}?watch=true").stream
    a_boat(cluster, {"name": "Ark"}).or_raise()
    assert cluster.send("GET", f"{BOATS}/ark").status == 200
    assert [cluster.send("GET", path).status for path in (later, f"{later}/ark")] == [500, 500]
    assert stream is not None
    assert [json.loads(frame)["type"] for frame in stream.take()] == ["ERROR"] and stream.ended


def test_a_key_that_an_applied_document_repeats_is_named_with_its_line(cluster: Cluster) -> None:
    text = "\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: one\n  a: two\n"
    path = "/api/v1/namespaces/demo/configmaps/one?fieldManager=test&fieldValidation="
    headers = {"content-type": "application/apply-patch+yaml"}
    refused = cluster.send("PATCH", f"{path}Strict", text.encode(), headers)
    assert refused.obj["message"].endswith('yaml: unmarshal errors:\n  line 8: key "a" already set in map')
    warned = cluster.send("PATCH", f"{path}Warn", text.encode(), headers)
    assert (warned.status, 'line 8: key \\"a\\" already set in map' in warned.headers["warning"]) == (201, True)
