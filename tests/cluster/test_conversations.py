"""Requests that clients write by hand or by mistake, and what a control plane of 1.36.3 answered to each."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cluster.world import World

from syncline.kube.client import Request, Response

MAPS = "/api/v1/namespaces/default/configmaps"
ONE = f"{MAPS}/one"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLAINS = "/apis/example.org/v1/plains"
JSON, YAML = "application/json", "application/yaml"
MERGE, STEPS, STRATEGIC = (
    f"application/{kind}+json" for kind in ("merge-patch", "json-patch", "strategic-merge-patch")
)
APPLY = "application/apply-patch+yaml"
NO_TYPE = "couldn't get version/kind; json parse error: "
META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
FORMS = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
UNKNOWN = f"the body of the request was in an unknown format - accepted media types include: {FORMS}"
UNUSABLE = f"only the following media types are accepted: {FORMS}"


@pytest.fixture
def world() -> World:
    world = World()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "plains", "kind": "Plain"}
    spec = {"group": "example.org", "scope": "Cluster", "names": names, "versions": [version]}
    world.post(DEFINITIONS, {"metadata": {"name": "plains.example.org"}, "spec": spec})
    world.post(MAPS, {"metadata": {"name": "one"}, "data": {"a": "1"}})
    world.post(PLAINS, {"apiVersion": "example.org/v1", "kind": "Plain", "metadata": {"name": "one"}})
    world.post(LEASES, {"metadata": {"name": "one"}})
    return world


def ask(world: World, method: str, path: str, body: Any = None, content: str = JSON, accept: str = "") -> Response:
    path, _, text = path.partition("?")
    query = dict(part.split("=", 1) for part in text.split("&") if part)
    headers = {"content-type": content} if body is not None else {}
    raw = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
    return world.transport.send(Request(method, path, query, headers | ({"accept": accept} if accept else {}), raw))


def unrecognized(kind: str, why: str, shown: str) -> str:
    return f"the object provided is unrecognized (must be of type {kind}): {why} ({shown})"


BODIES = [
    (
        "a body that breaks off",
        "POST",
        MAPS,
        "{",
        JSON,
        400,
        unrecognized("ConfigMap", f"{NO_TYPE}unexpected end of JSON input", "{"),
    ),
    (
        "a list for an object",
        "POST",
        PLAINS,
        "[]",
        JSON,
        400,
        unrecognized("Plain", f"{NO_TYPE}json: cannot unmarshal array into Go value of type {META}", "5b5d"),
    ),
    (
        "YAML that is called JSON",
        "POST",
        REVIEWS,
        "- a",
        JSON,
        400,
        unrecognized("SelfSubjectAccessReview", f"{NO_TYPE}invalid character ' ' in numeric literal", "2d2061"),
    ),
    (
        "null for a custom resource",
        "POST",
        PLAINS,
        "null",
        JSON,
        400,
        unrecognized("Plain", "Object 'Kind' is missing in 'null'", "6e756c6c"),
    ),
    (
        "a review that is a Pod",
        "POST",
        REVIEWS,
        '{"kind":"Pod","apiVersion":"v1"}',
        JSON,
        400,
        'Pod in version "v1" cannot be handled as a SelfSubjectAccessReview: converting (v1.Pod) to '
        "(authorization.SelfSubjectAccessReview): unknown conversion",
    ),
    ("a media type with an empty parameter", "POST", MAPS, "{}", "application/json;;", 415, UNKNOWN),
    ("two media types", "PUT", ONE, "{}", "application/json, application/yaml", 415, UNKNOWN),
    ("an applied configuration that is posted", "POST", MAPS, "{}", APPLY, 415, UNKNOWN),
    (
        "a media type in capitals",
        "POST",
        f"{MAPS}?dryRun=Some",
        "{",
        "APPLICATION/JSON",
        422,
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    ),
    (
        "a merge patch that is a list",
        "PATCH",
        ONE,
        "[]",
        MERGE,
        400,
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
    ),
    ("a merge patch of nothing", "PATCH", ONE, "null", MERGE, 400, "Invalid JSON Patch"),
    (
        "a JSON patch that is an object",
        "PATCH",
        ONE,
        "{}",
        STEPS,
        400,
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    ),
    (
        "a strategic patch with more behind it",
        "PATCH",
        ONE,
        "{} x",
        STRATEGIC,
        400,
        "invalid character 'x' after top-level value",
    ),
    (
        "an applied configuration that is a word",
        "PATCH",
        f"{ONE}?fieldManager=m",
        "x",
        APPLY,
        400,
        "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go "
        "value of type map[string]interface {}",
    ),
    (
        "an applied configuration of nothing",
        "PATCH",
        f"{ONE}?fieldManager=m",
        "",
        APPLY,
        400,
        "invalid object type: /, Kind=",
    ),
    (
        "a strategic patch of a custom resource",
        "PATCH",
        f"{PLAINS}/one",
        "{}",
        "text/plain",
        415,
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    ),
    (
        "a patch that unsets the version of what needs one",
        "PATCH",
        f"{PLAINS}/one",
        '{"metadata":{"resourceVersion":null}}',
        MERGE,
        422,
        'plains.example.org "one" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an '
        "update",
    ),
    (
        "a patch to a version that is no number",
        "PATCH",
        ONE,
        '{"metadata":{"resourceVersion":"abc"}}',
        MERGE,
        500,
        'strconv.ParseUint: parsing "abc": invalid syntax',
    ),
    (
        "all wrong options of a patch",
        "PATCH",
        f"{ONE}?dryRun=Some&fieldValidation=Bad",
        "{}",
        APPLY,
        422,
        'PatchOptions.meta.k8s.io "" is invalid: [fieldManager: Required value: is required for apply patch, '
        'dryRun: Unsupported value: ["Some"]: supported values: "All", fieldValidation: Unsupported value: "Bad": '
        'supported values: "", "Ignore", "Strict", "Warn"]',
    ),
    (
        "a deletion without a policy in words",
        "DELETE",
        ONE,
        {"propagationPolicy": ""},
        JSON,
        422,
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "": supported values: '
        '"Foreground", "Background", "Orphan", "nil"',
    ),
    (
        "a deletion with a wrong type",
        "DELETE",
        ONE,
        {"gracePeriodSeconds": "x"},
        JSON,
        400,
        "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
    ),
    (
        "a deletion that is a Pod",
        "DELETE",
        ONE,
        {"kind": "Pod", "apiVersion": "v1"},
        JSON,
        400,
        'no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
    ),
]


BODIES += [
    ("a PUT with a wrong option first", "PUT", f"{ONE}?dryRun=Some", "{}", "text/json", 422,
     'UpdateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'),
    ("a patch of what is not there", "PATCH", f"{MAPS}/none", "{", STEPS, 404, 'configmaps "none" not found'),
    ("no envelope", "POST", MAPS, "ab", "application/vnd.kubernetes.protobuf", 400,
     unrecognized("ConfigMap", "provided data does not appear to be a protobuf message, expected prefix "
                  "[107 56 115 0]", "6162")),
    ("YAML that breaks off", "POST", MAPS, "{", YAML, 400,
     unrecognized("ConfigMap", "yaml: line 1: did not find expected node content", "{")),
    ("YAML with two values on a line", "PATCH", f"{ONE}?fieldManager=m", "a: b: c", APPLY, 400,
     "error decoding YAML: error converting YAML to JSON: yaml: mapping values are not allowed in this context"),
    ("a custom resource without a kind", "POST", PLAINS, '{"apiVersion":"v1"}', JSON, 400,
     unrecognized("Plain", "Object 'Kind' is missing in '{\"apiVersion\":\"v1\"}'", '{"apiVersion":"v1"}')),
    ("a subresource below a subresource", "GET", f"{PLAINS}/one/a/b", None, JSON, 404,
     'plains.example.org "one" not found'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "content", "status", "message"),
    [row[1:] for row in BODIES],
    ids=[row[0] for row in BODIES],
)
def test_a_wrong_body_is_refused_in_the_words_of_its_decoder(
    world: World, method: str, path: str, body: Any, content: str, status: int, message: str
) -> None:
    answer = ask(world, method, path, body, content)
    assert (answer.status, answer.obj.get("message")) == (status, message)


LISTS = [
    ("limit=2.5&resourceVersionMatch=Bad", 400, 'strconv.ParseInt: parsing "2.5": invalid syntax'),
    ("limit=x&labelSelector=a in b", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    ("fieldSelector=nope=1&continue=bad", 400, "field label not supported: nope"),
    (
        "resourceVersion=-1&continue=bad==",
        400,
        "invalid continue token: continue key is not valid: illegal base64 data at input byte 3",
    ),
    (
        "continue=NONE",
        400,
        "invalid continue token: continue key is not valid: invalid character '\u00e3' after top-level value",
    ),
    (
        "watch=1&resourceVersion=x&continue=x",
        500,
        'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
    ),
    (
        "watch=1&continue=x",
        422,
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden '
        "when continue is provided",
    ),
]


@pytest.mark.parametrize(("query", "status", "message"), LISTS)
def test_of_several_wrong_parameters_the_first_of_kubernetes_order_is_named(
    world: World, query: str, status: int, message: str
) -> None:
    answer = ask(world, "GET", f"{PLAINS if 'nope' in query else MAPS}?{query}")
    assert (answer.status, answer.obj["message"]) == (status, message)


FORMATS = [
    (
        "what the router lets through",
        ONE,
        "application/*",
        406,
        f"406: Not Acceptable\n\nAvailable representations: {FORMS}",
    ),
    (
        "a collection can be watched",
        MAPS,
        "text/html",
        406,
        f"406: Not Acceptable\n\nAvailable representations: {FORMS}, application/json;stream=watch, "
        "application/vnd.kubernetes.protobuf;stream=watch",
    ),
    ("a custom resource has no router", f"{PLAINS}/one", "text/html", 406, UNUSABLE),
    (
        "a list that is one object",
        f"{PLAINS}/one",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        500,
        "content is not a list",
    ),
]


@pytest.mark.parametrize(
    ("path", "accept", "status", "message"), [row[1:] for row in FORMATS], ids=[row[0] for row in FORMATS]
)
def test_what_cannot_be_accepted_is_refused_by_who_looks_first(
    world: World, path: str, accept: str, status: int, message: str
) -> None:
    answer = ask(world, "GET", path, accept=accept)
    assert (answer.status, answer.obj["message"]) == (status, message)


def test_refusals_and_deletions_come_in_yaml_where_that_is_asked_for(world: World) -> None:
    missing = ask(world, "GET", f"{MAPS}/nope", accept="application/json;q=0.5, application/yaml")
    assert missing.status == 404 and missing.headers["content-type"] == YAML and b"reason: NotFound" in missing.raw
    gone = ask(world, "DELETE", ONE, accept=YAML)
    assert gone.headers["content-type"] == YAML and b"status: Success" in gone.raw


def test_a_deletion_keeps_the_order_of_finalizers_that_it_does_not_change(world: World) -> None:
    held = ["orphan", "example.org/kept"]
    world.post(MAPS, {"metadata": {"name": "held", "finalizers": held}})
    answer = ask(world, "DELETE", f"{MAPS}/held", {"orphanDependents": True})
    assert answer.obj["metadata"]["finalizers"] == held


def test_who_asks_in_the_old_way_that_dependents_go_first_is_told_to_wait(world: World) -> None:
    world.post(MAPS, {"metadata": {"name": "held", "finalizers": ["example.org/kept"]}})
    assert ask(world, "DELETE", f"{MAPS}/held", {"orphanDependents": False}).status == 202
    assert ask(world, "DELETE", f"{MAPS}/held", {}).status == 200


def test_nothing_depends_on_an_event(world: World) -> None:
    event = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": {"namespace": "default"}}
    world.post("/api/v1/namespaces/default/events", event)
    path = "/api/v1/namespaces/default/events/e"
    assert ask(world, "DELETE", f"{path}?propagationPolicy=Orphan").obj["status"] == "Success"
    assert ask(world, "GET", path).status == 404


def test_lists_of_custom_resources_say_that_they_do_not_go_on(world: World) -> None:
    assert ask(world, "GET", PLAINS).obj["metadata"]["continue"] == ""
    assert "continue" not in ask(world, "GET", MAPS).obj["metadata"]


def test_a_row_without_its_object_says_so(world: World) -> None:
    table = ask(world, "GET", f"{ONE}?includeObject=None", accept="application/json;as=Table;v=v1;g=meta.k8s.io").obj
    assert table["rows"][0]["object"] is None


def test_of_several_yaml_documents_the_first_counts(world: World) -> None:
    two = "metadata: {name: first}\n---\nmetadata: {name: second}\n"
    assert ask(world, "POST", MAPS, two, YAML).obj["metadata"]["name"] == "first"


@pytest.mark.parametrize(
    ("path", "label", "status"),
    [
        ("/api/v1/events", "regarding.name", 400),
        ("/api/v1/events", "involvedObject.name", 200),
        ("/apis/events.k8s.io/v1/events", "regarding.name", 200),
        ("/apis/events.k8s.io/v1/events", "source", 400),
    ],
)
def test_events_are_selected_by_the_fields_of_their_version(world: World, path: str, label: str, status: int) -> None:
    assert ask(world, "GET", f"{path}?fieldSelector={label}=x").status == status


def test_an_applied_object_that_is_new_keeps_what_updates_do_not_write(world: World) -> None:
    request = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "c"}}
    request |= {"spec": {"request": "bm8=", "signerName": "example.org/s", "usages": ["client auth"]}}
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests/c?fieldManager=m"
    answer = ask(world, "PATCH", path, request, APPLY)
    assert answer.status == 422 and [c["field"] for c in answer.obj["details"]["causes"]] == ["spec.request"]


def test_who_writes_a_definition_owns_its_defaults(world: World) -> None:
    owned = ask(world, "GET", f"{DEFINITIONS}/plains.example.org").obj["metadata"]["managedFields"]
    spec = next(entry["fieldsV1"]["f:spec"] for entry in owned if "f:spec" in entry["fieldsV1"])
    assert spec["f:conversion"] == {".": {}, "f:strategy": {}} and "f:listKind" in spec["f:names"]


POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SETS = "/apis/apps/v1/namespaces/default"


@pytest.mark.parametrize(("count", "read"), [(2**40, 0), (2**40 + 7, 7), (-(2**31) - 1, 2**31 - 1)])
def test_a_strategic_patch_cuts_off_what_does_not_fit_a_number(world: World, count: int, read: int) -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": POD}
    world.post(f"{SETS}/replicasets", {"metadata": {"name": "rs"}, "spec": spec})
    answer = ask(world, "PATCH", f"{SETS}/replicasets/rs", {"spec": {"replicas": count}}, STRATEGIC)
    assert answer.obj["spec"]["replicas"] == read


@pytest.mark.parametrize(
    ("method", "content", "status"), [("POST", JSON, 400), ("PATCH", MERGE, 422), ("PATCH", STRATEGIC, 500)]
)
def test_the_generation_of_a_template_is_a_number(world: World, method: str, content: str, status: int) -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": POD}
    world.post(f"{SETS}/daemonsets", {"metadata": {"name": "ds"}, "spec": spec})
    metadata = {"name": "ds", "annotations": {"deprecated.daemonset.template.generation": "x"}}
    path = f"{SETS}/daemonsets" + ("/ds" if method == "PATCH" else "")
    answer = ask(world, method, path, {"metadata": metadata}, content)
    assert (answer.status, answer.obj["message"].endswith('strconv.ParseInt: parsing "x": invalid syntax')) == (
        status,
        True,
    )


def test_an_update_of_a_revision_is_judged_by_what_it_changes(world: World) -> None:
    world.post(f"{SETS}/controllerrevisions", {"metadata": {"name": "r"}, "data": {"a": 1}, "revision": 1})
    answer = ask(world, "PATCH", f"{SETS}/controllerrevisions/r", {"data": "x"}, MERGE)
    assert [c["message"] for c in answer.obj["details"]["causes"]] == ['Invalid value: "x": field is immutable']


def test_fields_of_an_object_that_lost_its_version_are_unknown(world: World) -> None:
    steps = [{"op": "remove", "path": "/apiVersion"}]
    refused = ask(world, "PATCH", f"{ONE}?fieldValidation=Strict", steps, STEPS)
    assert refused.obj["message"].endswith('strict decoding error: unknown field "data", unknown field "metadata"')
    warned = ask(world, "PATCH", ONE, steps, STEPS)
    assert warned.status == 400 and 'unknown field \\"metadata\\"' in warned.headers["warning"]
