"""Reading protobuf bodies: the values of Go's types, the bounds, and refusals in words.

The bodies are written by a small encoder of our own, which knows the wire and nothing of Kubernetes.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.cluster.serving.protobuf import MAX_SIZE_BYTES, decode
from syncline.kube.errors import BadRequest
from syncline.kube.protobuf.reading import MAX_DEPTH, MAX_PARTS
from syncline.kube.schema import store

MAGIC = b"k8s\x00"


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def field(number: int, value: int | float | str | bytes) -> bytes:
    """One field; text and bytes (messages too) with their length, floats as 64 bits."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, Any]) -> bytes:
    return b"".join(field(number, value) for number, value in fields)


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + message((1, message((1, api_version), (2, kind))), (2, raw), (3, ""), (4, ""))


def spec_of(api_version: str, kind: str, spec: bytes) -> Any:
    return decode(body(api_version, kind, field(2, spec)))["spec"]


def refusal(data: bytes) -> str:
    with pytest.raises(BadRequest) as caught:
        decode(data)
    return caught.value.message


def test_a_config_map_is_read_with_its_kind_and_its_maps() -> None:
    entry = message((1, "key"), (2, "välue"))
    binary = message((1, "bin"), (2, b"\xff\x00"))
    raw = message((1, message((1, "name"), (3, "ns"))), (2, entry), (3, binary), (4, 0))
    assert decode(body("v1", "ConfigMap", raw)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "name", "namespace": "ns"},
        "data": {"key": "välue"},
        "binaryData": {"bin": "/wA="},
        "immutable": False,
    }


def test_plain_zeros_vanish_and_pointers_to_zero_stay() -> None:
    spec = spec_of("apps/v1", "Deployment", message((1, 0), (5, 0), (7, 0)))
    assert spec["replicas"] == 0
    assert "minReadySeconds" not in spec and "paused" not in spec


def test_required_zeros_are_written_as_go_writes_them() -> None:
    spec = spec_of("v1", "Pod", field(2, field(2, "image")))
    assert spec == {"containers": [{"name": "", "image": "image", "resources": {}}]}
    assert decode(body("rbac.authorization.k8s.io/v1", "ClusterRole", b""))["rules"] is None


def test_inlined_messages_are_fields_of_their_owner() -> None:
    volume = message((1, "v"), (2, field(1, field(1, "/host"))))
    spec = spec_of("v1", "Pod", field(1, volume))
    assert spec["volumes"] == [{"name": "v", "hostPath": {"path": "/host"}}]


def test_quantities_times_and_int_or_strings_are_written_as_text_or_number() -> None:
    hard = message((1, "cpu"), (2, field(1, "1500m")))
    assert spec_of("v1", "ResourceQuota", field(1, hard)) == {"hard": {"cpu": "1500m"}}
    for given_, expected in (((1, 0), (2, -5)), -5), (((1, 1), (3, "50%")), "50%"):
        spec = spec_of("policy/v1", "PodDisruptionBudget", field(1, message(*given_)))
        assert spec["minAvailable"] == expected
    lease = message((3, message((1, 1_700_000_000), (2, 123_456_789))), (4, b""))
    spec = spec_of("coordination.k8s.io/v1", "Lease", lease)
    assert spec == {"acquireTime": "2023-11-14T22:13:20.123456Z", "renewTime": None}
    metadata = field(1, field(8, message((1, 1_700_000_000), (2, 5))))
    assert decode(body("v1", "ConfigMap", metadata))["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"


def test_negative_numbers_are_read_in_32_and_64_bits() -> None:
    obj = decode(body("scheduling.k8s.io/v1", "PriorityClass", message((2, -7), (3, 0))))
    assert obj["value"] == -7
    options = decode(body("v1", "DeleteOptions", field(1, -1)))
    assert options["gracePeriodSeconds"] == -1


def test_delete_options_are_known_in_every_group() -> None:
    options = message((1, 0), (2, field(1, "uid")), (4, "Orphan"), (5, "All"))
    for version in ("v1", "apps/v1", "example.com/v1alpha1"):
        assert decode(body(version, "DeleteOptions", options)) == {
            "apiVersion": version,
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "uid"},
            "propagationPolicy": "Orphan",
            "dryRun": ["All"],
        }


def test_an_eviction_carries_delete_options() -> None:
    raw = message((1, field(1, "pod")), (2, field(1, 0)))
    obj = decode(body("policy/v1", "Eviction", raw))
    assert obj["metadata"] == {"name": "pod"} and obj["deleteOptions"] == {"gracePeriodSeconds": 0}


def test_a_binding_names_its_target() -> None:
    obj = decode(body("v1", "Binding", message((1, field(1, "pod")), (2, message((1, "Node"), (3, "node"))))))
    assert obj["target"] == {"kind": "Node", "name": "node"}


def test_lists_that_protobuf_wraps_are_lists_again() -> None:
    extra = message((1, "scopes"), (2, message((1, "a"), (1, "b"))))
    spec = spec_of("authorization.k8s.io/v1", "SubjectAccessReview", field(5, extra))
    assert spec == {"extra": {"scopes": ["a", "b"]}}


def _number(name: str, definition: str) -> int:
    return next(row[0] for row in store.protobuf_table()[definition] if row[1] == name)


EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
PROPS = f"{EXTENSIONS}.JSONSchemaProps"


def _schema(props: bytes) -> bytes:
    version = field(
        _number("schema", f"{EXTENSIONS}.CustomResourceDefinitionVersion"),
        field(_number("openAPIV3Schema", f"{EXTENSIONS}.CustomResourceValidation"), props),
    )
    return field(2, field(_number("versions", f"{EXTENSIONS}.CustomResourceDefinitionSpec"), version))


def _props(props: bytes) -> Any:
    obj = decode(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", _schema(props)))
    return obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_any_json_stands_as_it_is() -> None:
    for document in ('{"a":[1,null]}', "false", '"text"'):
        sent = field(_number("default", PROPS), field(1, document))
        assert _props(sent) == {"default": json.loads(document)}


def test_a_schema_of_items_is_one_or_a_list() -> None:
    text, items = field(_number("type", PROPS), "string"), _number("items", PROPS)
    assert _props(field(items, field(1, text)))["items"] == {"type": "string"}
    assert _props(field(items, field(2, text) * 2))["items"] == [{"type": "string"}] * 2


def test_additional_properties_are_a_schema_or_a_word() -> None:
    more = _number("additionalProperties", PROPS)
    assert _props(field(more, message((1, 1))))["additionalProperties"] is True
    assert _props(field(more, message((1, 0))))["additionalProperties"] is False
    assert _props(field(more, message((1, 1), (2, b""))))["additionalProperties"] == {}


def test_what_a_property_depends_on_is_names_or_a_schema() -> None:
    depends, text = _number("dependencies", PROPS), field(_number("type", PROPS), "string")
    for sent, expected in ((message((2, "a"), (2, "b")), ["a", "b"]), (field(1, text), {"type": "string"})):
        assert _props(field(depends, message((1, "k"), (2, sent))))["dependencies"] == {"k": expected}


def test_a_double_is_read_if_json_can_say_it() -> None:
    assert _props(field(_number("maximum", PROPS), 1.5))["maximum"] == 1.5
    assert "infinite" in refusal(
        body(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            _schema(field(_number("maximum", PROPS), float("inf"))),
        )
    )


def test_repeated_numbers_may_be_packed() -> None:
    groups = _number("supplementalGroups", "io.k8s.api.core.v1.PodSecurityContext")
    context = _number("securityContext", "io.k8s.api.core.v1.PodSpec")
    for sent in (message((groups, 1), (groups, 300)), field(groups, varint(1) + varint(300))):
        assert spec_of("v1", "Pod", field(context, sent))["securityContext"] == {"supplementalGroups": [1, 300]}


def test_a_message_in_pieces_is_one_message_and_of_plain_values_the_last_counts() -> None:
    raw = message((1, message((1, "old"), (3, "ns"))), (1, field(1, "new")))
    assert decode(body("v1", "ConfigMap", raw))["metadata"] == {"name": "new", "namespace": "ns"}


def test_unknown_fields_of_all_wire_types_are_passed_over() -> None:
    group = (
        varint(900 << 3 | 3) + field(1, "in it") + varint(901 << 3 | 3) + varint(901 << 3 | 4) + varint(900 << 3 | 4)
    )
    unknown = message((500, 1), (501, 1.0), (502, "x")) + varint(503 << 3 | 5) + b"1234" + group
    raw = unknown + field(1, field(1, "name")) + unknown
    assert decode(body("v1", "ConfigMap", raw))["metadata"] == {"name": "name"}


@pytest.mark.parametrize(
    "data,words",
    [
        (b'{"kind":"Pod"}', "provided data does not appear to be a protobuf message"),
        (MAGIC, "names no apiVersion and kind"),
        (MAGIC + b"\x0a\x7f", "127 bytes announced, 0 left"),
        (MAGIC + field(1, 5), "a number stands where a message belongs"),
        (MAGIC + message((1, message((1, "v1"), (2, "Pod"))), (3, "gzip")), "contentEncoding"),
        (body("example.com/v1", "Own", b""), 'no kind "Own" is registered for version "example.com/v1" as protobuf'),
        (body("v1", "Pod", field(1, 5)), "Pod.metadata has the wire type 0, must be 2 (a message)"),
        (body("v1", "Pod", field(1, field(1, 5))), "ObjectMeta.name has the wire type 0, must be 2 (string)"),
        (body("v1", "Pod", field(1, field(1, b"\xff"))), "ObjectMeta.name is not UTF-8 at byte 0"),
        (body("v1", "Pod", b"\x80"), "it ends within a number"),
        (body("v1", "Pod", b"\x80" * 9 + b"\x80\x01"), "longer than 64 bits"),
        (body("v1", "Pod", b"\x0f"), "wire type 7"),
        (body("v1", "Pod", b"\x00\x00"), "a field with the number 0"),
        (body("v1", "Pod", varint(9 << 3 | 3)), "ends within a group"),
        (body("v1", "Pod", varint(9 << 3 | 4)), "a group ends that did not begin"),
        (body("v1", "ConfigMap", field(1, field(8, field(1, 1 << 60)))), "outside of the years"),
        (body("v1", "Pod", field(1, field(17, field(7, field(1, "{"))))), "an embedded document is not JSON"),
        (MAGIC + b"\x00" * MAX_SIZE_BYTES, f"of at most {MAX_SIZE_BYTES}"),
        (body("v1", "Pod", field(500, 1) * (MAX_PARTS + 1)), f"more than {MAX_PARTS} fields"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(data: bytes, words: str) -> None:
    assert words in refusal(data)


def test_nesting_has_an_end() -> None:
    props, inside = b"", _number("not", PROPS)
    for _ in range(MAX_DEPTH):
        props = field(inside, props)
    data = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", _schema(props))
    assert f"more than {MAX_DEPTH} deep" in refusal(data)


def test_an_embedded_document_may_not_be_endless() -> None:
    deep = body("v1", "Pod", field(1, field(17, field(7, field(1, "[" * 100_000)))))
    assert "not JSON" in refusal(deep)


def test_a_secret_value_is_not_told() -> None:
    assert "hidden" not in refusal(body("v1", "Secret", field(2, message((1, b"\xff"), (2, "hidden")))))


def test_every_message_is_read_when_it_is_empty() -> None:
    """The table is whole: all that a message leads to is in it, and nothing holds itself without a pointer."""
    kinds = [gvk for gvk, name in store.kinds().items() if name in store.protobuf_table()]
    assert len(kinds) > 150
    for gvk in kinds:
        version = f"{gvk.group}/{gvk.version}" if gvk.group else gvk.version
        assert json.dumps(decode(body(version, gvk.kind, b"")))


KINDS = ("Pod", "ConfigMap", "Secret", "Service", "Event", "ResourceQuota", "DeleteOptions", "Node", "List")
random_fields = st.recursive(
    st.binary(max_size=20) | st.integers(0, 1 << 64) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(st.tuples(st.integers(1, 40), inner), max_size=6).map(lambda fields: message(*fields)),
    max_leaves=30,
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(KINDS), st.lists(st.tuples(st.integers(1, 40), random_fields), max_size=6), st.binary(max_size=8)
)
def test_random_messages_are_read_or_refused(kind: str, fields: list[tuple[int, Any]], tail: bytes) -> None:
    for raw in (message(*fields), message(*fields) + tail):
        try:
            obj = decode(body("v1", kind, raw))
        except BadRequest as error:
            assert error.message
        else:
            assert obj["kind"] == kind and json.dumps(obj)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_read_or_refused(data: bytes, enveloped: bool) -> None:
    try:
        decode(body("v1", "Pod", data) if enveloped else MAGIC + data)
    except BadRequest as error:
        assert error.message
