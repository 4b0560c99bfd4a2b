"""What hostile requests have broken, each by its smallest example. Answers are those of kube-apiserver 1.36.2."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cluster.world import World

from syncline.kube.client import Request
from syncline.kube.text.jsontext import canonical_numbers, scrubbed, sound

MAPS = "/api/v1/namespaces/default/configmaps"
NUMS = "/apis/example.org/v1/namespaces/default/nums"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JSON = "application/json"
LONG = "9" * 23


@pytest.fixture
def world() -> World:
    return World()


def ask(
    world: World,
    method: str,
    path: str,
    body: bytes | None = None,
    content: str = JSON,
    query: dict[str, str] | None = None,
    **headers: str,
) -> tuple[int, Any]:
    request = Request(method, path, query or {}, {"content-type": content, **headers}, body)
    answer = world.transport.send(request)
    return answer.status, json.loads(answer.raw)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (rb'"x\ud800y"', "x\ufffdy"),
        (rb'"\udc80\ud800"', "\ufffd\ufffd"),
        (rb'"x\ud83e\udd80y"', "x\U0001f980y"),
        (rb'"\\ud800"', "\\ud800"),
        (b'"x\xffy"', "x\ufffdy"),
        (b'"x\xed\xa0\x80y"', "x\ufffd\ufffd\ufffdy"),
        (rb'"\u0000"', "\0"),
    ],
)
@pytest.mark.parametrize("validation", ["", "Ignore", "Strict"])
def test_what_is_no_unicode_is_replaced_as_go_does(world: World, sent: bytes, kept: str, validation: str) -> None:
    body = b'{"metadata": {"name": "u"}, "data": {"a": ' + sent + b"}}"
    status, obj = ask(world, "POST", MAPS, body, query={"fieldValidation": validation})
    assert (status, obj["data"]["a"]) == (201, kept)
    status, obj = ask(world, "PATCH", f"{MAPS}/u", b'{"data": {"b": ' + sent + b"}}", "application/merge-patch+json")
    assert (status, obj["data"]["b"]) == (200, kept)


def test_surrogates_in_yaml_and_in_objects_of_this_process_are_replaced_too(world: World) -> None:
    applied = b'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: "\\ud800"}'
    status, obj = ask(world, "PATCH", f"{MAPS}/y", applied, "application/apply-patch+yaml", {"fieldManager": "m"})
    assert status == 400 and "invalid Unicode character escape code" in obj["message"]
    assert world.post(MAPS, {"metadata": {"name": "z"}, "data": {"a": "\ud800"}})["data"]["a"] == "\ufffd"


@pytest.mark.parametrize(
    ("agent", "manager"),
    [("\udcff\udc80", "unknown"), ("kube\0ctl/v1", "kubectl"), ("é" * 100, "é" * 64), ("a" * 200 + "/1", "a" * 128)],
)
def test_a_field_manager_from_the_user_agent_is_printable_and_short(world: World, agent: str, manager: str) -> None:
    _, obj = ask(world, "POST", MAPS, b'{"metadata": {"name": "m"}}', **{"user-agent": agent})
    assert obj["metadata"]["managedFields"][0]["manager"] == manager if obj["metadata"].get("managedFields") else True


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({"limit": "9" * 20}, 400, f'strconv.ParseInt: parsing "{"9" * 20}": value out of range'),
        ({"limit": "²"}, 400, 'strconv.ParseInt: parsing "²": invalid syntax'),
        ({"limit": "1.5"}, 400, 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        ({"limit": " 1"}, 400, 'strconv.ParseInt: parsing " 1": invalid syntax'),
        (
            {"resourceVersion": "²"},
            400,
            'invalid resource version: resourceVersion: Invalid value: "²": '
            'strconv.ParseUint: parsing "²": invalid syntax',
        ),
        (
            {"resourceVersion": LONG, "watch": "1"},
            500,
            f'resourceVersion: Invalid value: "{LONG}": strconv.ParseUint: parsing "{LONG}": value out of range',
        ),
    ],
)
def test_numbers_in_parameters_are_read_as_go_reads_them(
    world: World, query: dict[str, str], status: int, message: str
) -> None:
    found = ask(world, "GET", MAPS, query=query)
    assert (found[0], found[1]["message"]) == (status, message)


def test_a_version_of_one_object_is_checked_too(world: World) -> None:
    status, told = ask(world, "GET", f"{MAPS}/x", query={"resourceVersion": "１"})
    assert (status, told["message"]) == (
        500,
        'resourceVersion: Invalid value: "１": strconv.ParseUint: parsing "１": invalid syntax',
    )


def test_negative_limits_and_timeouts_are_none(world: World) -> None:
    assert ask(world, "GET", MAPS, query={"limit": "-1", "timeoutSeconds": "-5"})[0] == 200


@pytest.mark.parametrize("revision", ["true", "1.5", '"1"', "9" * 30, "{}"])
def test_a_continue_token_with_an_odd_revision_is_refused(world: World, revision: str) -> None:
    import base64

    raw = b'{"v":"meta.k8s.io/v1","rv":' + revision.encode() + b',"start":"x"}'
    token = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    status, told = ask(world, "GET", MAPS, query={"continue": token})
    assert status == 400 and told["message"].startswith("invalid continue token: continue key is not valid")


def definition(schema: Any) -> bytes:
    names = {"plural": "nums", "kind": "Num"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    return json.dumps({"metadata": {"name": "nums.example.org"}, "spec": spec}).encode()


FIELD = 'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: '
INSIDE = "Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties."


@pytest.mark.parametrize(
    ("below", "status", "message"),
    [
        (
            {"type": "array", "items": {"type": "object", "properties": "x"}},
            400,
            f"{FIELD}json: cannot unmarshal string into {INSIDE}items.properties of type map[string]v1.JSONSchemaProps",
        ),
        (
            {"type": "array", "items": {"type": "object", "required": [["x"]]}},
            400,
            f"{FIELD}json: cannot unmarshal array into {INSIDE}items.required of type string",
        ),
        (
            {"type": "object", "additionalProperties": {"format": ["x"]}},
            400,
            f"{FIELD}json: cannot unmarshal array into {INSIDE}additionalProperties.format of type string",
        ),
        (
            {"type": "array", "items": {"maxItems": 1.5, "x": 1}},
            400,
            f"{FIELD}json: cannot unmarshal number 1.5 into {INSIDE}items.maxItems of type int64",
        ),
        ({"type": "object", "additionalProperties": 5}, 400, f"{FIELD}boolean or JSON schema expected"),
        ({"type": "array", "items": "x"}, 422, "spec.validation.openAPIV3Schema.properties[l].items: Required value"),
        (
            {"type": "array", "items": [{"type": "object"}]},
            422,
            "items must be a schema object and not an array",
        ),
        ({"type": "array", "items": {"nope": 1, "type": "string"}}, 201, ""),
        ({"type": "object", "additionalProperties": True}, 201, ""),
    ],
)
def test_schemas_inside_schemas_are_read_by_their_types(world: World, below: Any, status: int, message: str) -> None:
    schema = {"type": "object", "properties": {"l": below}}
    found, told = ask(world, "POST", CRDS, definition(schema), query={"fieldValidation": "Strict"})
    assert found == status, told
    assert message in str(told.get("message", ""))


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("1.0", 1),
        ("-0.0", 0),
        ("1e2", 100),
        ("1e-400", 0),
        ("0.1e1", 1),
        ("9223372036854775808", 9223372036854775808.0),
        ("1" + "0" * 30, 1e30),
        ("1.5", 1.5),
        ("7", 7),
    ],
)
@pytest.mark.parametrize("validation", ["", "Ignore"])
def test_numbers_of_custom_resources_are_kept_as_go_keeps_them(
    world: World, sent: str, kept: float, validation: str
) -> None:
    ask(world, "POST", CRDS, definition({"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    head = '{"apiVersion": "example.org/v1", "kind": "Num", "metadata": {"name": "n"}, "spec": {"v": '
    query = {"fieldValidation": validation}
    status, obj = ask(world, "POST", NUMS, f"{head}{sent}}}}}".encode(), query=query)
    assert (status, obj["spec"]["v"], type(obj["spec"]["v"])) == (201, kept, type(kept))


@pytest.mark.parametrize("validation", ["", "Ignore"])
def test_a_number_that_nothing_can_hold_is_refused(world: World, validation: str) -> None:
    ask(world, "POST", CRDS, definition({"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    body = b'{"apiVersion": "example.org/v1", "kind": "Num", "metadata": {"name": "n"}, "spec": {"v": 1e400}}'
    assert ask(world, "POST", NUMS, body, query={"fieldValidation": validation})[0] == 400
    assert not world.exists(f"{NUMS}/n")


@pytest.mark.parametrize("content", [JSON, "application/yaml"])
@pytest.mark.parametrize("validation", ["", "Ignore"])
def test_an_integer_that_is_larger_than_all_numbers_is_refused(world: World, validation: str, content: str) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 5}}}
    body = definition(schema).replace(b": 5", b": " + b"9" * 400)
    assert ask(world, "POST", CRDS, body, content, {"fieldValidation": validation})[0] == 400
    text = b'{"metadata": {"name": "long"}, "data": {"a": "' + b"9" * 400 + b'"}}'
    assert ask(world, "POST", MAPS, text, content, {"fieldValidation": validation})[0] == 201


@pytest.mark.parametrize("text", ["²", "１", "9" * 5000, "-1", ""])
def test_annotations_that_are_no_numbers_stop_no_controller(world: World, text: str) -> None:
    from tests.cluster.world import deployment

    body = deployment("web", 1)
    body["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": text}
    world.post("/apis/apps/v1/namespaces/default/deployments", body)
    world.settle()
    (replicas,) = world.items("/apis/apps/v1/namespaces/default/replicasets")
    odd = {"deployment.kubernetes.io/revision": text, "deployment.kubernetes.io/max-replicas": text}
    world.merge(
        f"/apis/apps/v1/namespaces/default/replicasets/{replicas['metadata']['name']}",
        {"metadata": {"annotations": odd}},
    )
    world.merge("/apis/apps/v1/namespaces/default/deployments/web", {"spec": {"replicas": 3}})
    world.settle()
    assert world.items("/apis/apps/v1/namespaces/default/replicasets")[0]["spec"]["replicas"] == 3
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "annotations": {"deprecated.daemonset.template.generation": text}},
        "spec": {key: body["spec"][key] for key in ("selector", "template")},
    }
    made, _ = ask(world, "POST", "/apis/apps/v1/namespaces/default/daemonsets", json.dumps(daemons).encode())
    assert made == (201 if text == "-1" else 400)  # Refused as Kubernetes does: this one is read with the object.
    world.settle()


def test_pieces() -> None:
    assert sound(b'{"a": 1}') == b'{"a": 1}'
    assert scrubbed({"\ud800": ["\udfff", 1, None]}) == {"\ufffd": ["\ufffd", 1, None]}
    same = {"a": [1, "x", None, True, 1.5]}
    assert canonical_numbers(same) is same


def test_a_role_for_one_name_allows_to_list_and_watch_that_name(world: World) -> None:
    """``RequestInfoFactory``: a list that can show one object only is asked for by that name."""
    from syncline.cluster.access.users import UserInfo

    api, jo = world.api, UserInfo("jo", ("system:authenticated",))
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["m"], "verbs": ["list", "watch"]}]
    world.post(f"{rbac}/roles", {"metadata": {"name": "one"}, "rules": rules})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jo"}
    world.post(f"{rbac}/rolebindings", {"metadata": {"name": "one"}, "subjects": [subject], "roleRef": ref})

    def status(selector: str, **query: str) -> int:
        return api.handle(Request("GET", MAPS, {"fieldSelector": selector, **query}), jo).status

    assert status("metadata.name=m") == 200
    assert status("metadata.name=m", watch="1") == 200
    assert status("metadata.namespace=default,metadata.name=m") == 200
    for other in ("metadata.name=n", "metadata.name!=m", "", "metadata.name=", "metadata.name=m/..", "x=("):
        assert status(other) == 403, other
    assert (
        api.handle(Request("GET", MAPS.replace("/v1/", "/v1/watch/"), {"fieldSelector": "metadata.name=m"}), jo).status
        == 403
    )
    told = api.handle(Request("GET", MAPS, {"fieldSelector": "metadata.name=n"}), jo).obj["message"]
    assert told.startswith('configmaps "n" is forbidden: User "jo" cannot list resource "configmaps"')


def test_warnings_that_cannot_stand_in_a_header_are_left_out_and_many_are_cut(world: World) -> None:
    body = b'{"metadata": {"name": "w"}, "data": {}, "a\\u0000b": 1, "c\\nd": 2, "q\\"x": 3}'
    answer = world.transport.send(Request("POST", MAPS, {}, {"content-type": JSON}, body))
    shown = (r"a\\x00b", r"c\\nd", r"q\\\"x")
    assert answer.headers["warning"].split("\n") == [f'299 - "unknown field \\"{each}\\""' for each in shown]
    ask(world, "POST", CRDS, definition({"type": "object"}))
    own = b'{"apiVersion": "example.org/v1", "kind": "Num", "metadata": {"name": "n"}, "a\\u0000b": 1, "q\\"x": 2}'
    answer = world.transport.send(Request("POST", NUMS, {}, {"content-type": JSON}, own))
    assert answer.headers["warning"] == '299 - "unknown field \\"q\\"x\\""'
    long = {"metadata": {"name": "l"}} | {f"{number}{'x' * 400}": 1 for number in range(60)}
    answer = world.transport.send(Request("POST", MAPS, {}, {"content-type": JSON}, json.dumps(long).encode()))
    lines = answer.headers["warning"].split("\n")
    assert len(lines) == 16 and all(len(line) < 280 for line in lines)
