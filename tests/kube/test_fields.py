"""Strict decoding names what a kind does not know, in the words of Kubernetes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.objects import GVK
from syncline.kube.patching.fields import (
    MAX_STRICT_ERRORS,
    decode,
    decode_errors,
    field_problems,
    loads,
)
from syncline.kube.schema.model import Schema, schema_for


def unknown_fields(obj: dict[str, Any], schema: Schema) -> list[str]:
    return list(decode(obj, schema).unknown)


def schema(group: str, kind: str) -> Schema:
    found = schema_for(GVK(group, "v1", kind))
    assert found is not None
    return found


DEPLOYMENT = schema("apps", "Deployment")
POD = schema("", "Pod")


def deployment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def test_unknown_fields_are_named_with_their_whole_path_in_document_order() -> None:
    containers = [{"name": "c", "imagePolicy": "Always"}]
    obj = deployment(replica=2, template={"spec": {"containers": containers}})
    obj["metadata"]["label"] = {}
    assert unknown_fields(obj, DEPLOYMENT) == [
        'unknown field "metadata.label"',
        'unknown field "spec.replica"',
        'unknown field "spec.template.spec.containers[0].imagePolicy"',
    ]


def test_unknown_fields_are_dropped_from_a_copy() -> None:
    obj = deployment(replica=2, replicas=1)
    before = copy.deepcopy(obj)
    assert decode(obj, DEPLOYMENT).obj == deployment(replicas=1)
    assert obj == before


def test_an_object_without_unknown_fields_is_not_copied() -> None:
    obj = pod(containers=[{"name": "c", "ports": [{"containerPort": 80}]}], nodeSelector={"any/key": "x"})
    decoded = decode(obj, POD)
    assert decoded.obj is obj
    assert (decoded.unknown, decoded.errors) == ((), ())


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        (deployment(replica=2), "spec.replica: no such field"),
        (
            deployment(replicas="three"),
            'spec.replicas: found "three", must be an integer from -2147483648 to 2147483647',
        ),
        (deployment(paused="yes"), 'spec.paused: found "yes", must be a boolean'),
        (deployment(template={"spec": []}), "spec.template.spec: found an array, must be a map"),
        (pod(containers={"name": "c"}), "spec.containers: found an object, must be a list"),
        (pod(containers=[{"args": [1]}]), "spec.containers[0].args[0]: found 1, must be a string"),
        (
            pod(containers=[{"resources": {"limits": {"cpu": "much"}}}]),
            'spec.containers[0].resources.limits.cpu: found "much", must be a quantity such as 500m or 1Gi',
        ),
        (
            pod(containers=[{"livenessProbe": {"httpGet": {"port": 1.5}}}]),
            "spec.containers[0].livenessProbe.httpGet.port: found 1.5, must be an integer or a string",
        ),
        (
            deployment() | {"metadata": {"creationTimestamp": "now"}},
            'metadata.creationTimestamp: found "now", must be a time such as 2026-01-31T12:00:00Z',
        ),
    ],
)
def test_a_field_that_does_not_fit_is_named_by_its_path_with_what_is_allowed(obj: dict[str, Any], problem: str) -> None:
    kind = DEPLOYMENT if obj["kind"] == "Deployment" else POD
    assert field_problems(obj, kind) == [problem]
    assert field_problems({"kind": obj["kind"]}, kind) == []


def test_problems_show_no_value_where_it_may_be_secret_and_pass_unknown_fields_where_they_are_dropped() -> None:
    secret = {"stringData": {"a": 12345}, "extra": 1}
    kind = schema("", "Secret")
    assert field_problems(secret, kind, values=False, unknown=False) == [
        "stringData.a: found a number, must be a string"
    ]


def test_maps_and_free_forms_have_no_unknown_fields() -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": [{"fieldsV1": {"f:x": {}}}]}}
    assert unknown_fields({**obj, "data": {"any": "thing"}}, schema("", "ConfigMap")) == []
    assert unknown_fields({**obj, "datum": {}}, schema("", "ConfigMap")) == ['unknown field "datum"']


def test_an_empty_struct_knows_no_field() -> None:
    crd = {"spec": {"versions": [{"name": "v1", "subresources": {"status": {"x": 1}}}]}}
    wanted = ['unknown field "spec.versions[0].subresources.status.x"']
    assert unknown_fields(crd, schema("apiextensions.k8s.io", "CustomResourceDefinition")) == wanted


def test_the_schema_of_a_custom_resource_definition_may_hold_any_default() -> None:
    nested = {"default": {"a": [1]}, "items": {"x": 1}, "additionalProperties": True, "enum": [1, "a"]}
    crd = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"a": nested}}}}]}}
    decoded = decode(crd, schema("apiextensions.k8s.io", "CustomResourceDefinition"))
    assert (decoded.unknown, decoded.errors) == ((), ())


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (
            deployment(replicas="three"),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            deployment(replicas=1.5),
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            deployment(replicas=2**31),
            "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            deployment(replicas=True),
            "json: cannot unmarshal bool into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            deployment(template={"metadata": {"labels": {"a": 1}}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.spec.template.metadata.labels "
            "of type string",
        ),
        (
            deployment(template={"spec": {"containers": {}}}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers "
            "of type []v1.Container",
        ),
        (
            deployment(template={"spec": {"containers": ["c"]}}),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.containers "
            "of type v1.Container",
        ),
        (
            deployment(template=[]),
            "json: cannot unmarshal array into Go struct field DeploymentSpec.spec.template of type v1.PodTemplateSpec",
        ),
        (
            deployment(strategy={"rollingUpdate": {"maxSurge": True}}),
            "json: cannot unmarshal bool into Go struct field "
            "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        (
            deployment(template={"spec": {"containers": [{"resources": {"limits": {"cpu": "much"}}}]}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_as_go_says_it(obj: dict[str, Any], message: str) -> None:
    assert decode_errors(obj, DEPLOYMENT) == [message]


def test_what_a_type_reads_by_its_own_rule_is_refused_before_plain_misfits() -> None:
    obj = deployment(replicas="x")
    obj["metadata"]["creationTimestamp"] = "yesterday"
    errors = decode_errors(obj, DEPLOYMENT)
    assert errors[0].startswith('parsing time "yesterday"')
    assert len(errors) == 2


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2026-11-21T15:04:36+00:00", "2026-11-21T15:04:36Z"),
        ("2026-11-21T16:04:36.5+01:00", "2026-11-21T15:04:36Z"),
        ("2026-11-21T15:04:36Z", "2026-11-21T15:04:36Z"),
    ],
)
def test_instants_are_kept_in_utc_and_whole_seconds_whatever_a_client_sends(sent: str, kept: str) -> None:
    obj = pod()
    obj["metadata"]["creationTimestamp"] = sent
    obj["metadata"]["managedFields"] = [{"manager": "m", "time": sent}]
    before = copy.deepcopy(obj)
    made = decode(obj, POD).obj
    assert (made["metadata"]["creationTimestamp"], made["metadata"]["managedFields"][0]["time"]) == (kept, kept)
    assert obj == before


def test_micro_times_keep_their_microseconds() -> None:
    lease = {"spec": {"renewTime": "2026-11-21T16:04:36.25+01:00"}}
    made = decode(lease, schema("coordination.k8s.io", "Lease")).obj
    assert made == {"spec": {"renewTime": "2026-11-21T15:04:36.250000Z"}}


def test_null_fits_everywhere() -> None:
    obj = pod(containers=None, nodeSelector=None, hostNetwork=None)
    obj["metadata"]["creationTimestamp"] = None
    assert decode(obj, POD).errors == ()


@pytest.mark.parametrize(("text", "place"), [("a*==", 1), ("YWJj=", 4), ("YWJjZA", 4)])
def test_what_is_not_base64_is_refused_with_its_place(text: str, place: int) -> None:
    secret = {"data": {"k": text}}
    assert decode_errors(secret, schema("", "Secret")) == [f"illegal base64 data at input byte {place}"]


def test_base64_with_padding_and_line_ends_is_fine() -> None:
    assert decode_errors({"data": {"k": "YQ==", "l": "YWJj\nYWJj\n", "e": ""}}, schema("", "Secret")) == []


def test_int_or_string_and_quantity_take_both_forms() -> None:
    limits = {"cpu": 1, "memory": "1Gi", "x": 0.5}
    obj = deployment(
        strategy={"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        template={"spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}},
    )
    assert decode_errors(obj, DEPLOYMENT) == []


def test_repeated_fields_are_named_and_the_last_value_wins() -> None:
    value, repeated = loads('{"data": {"a": "1", "a": "2"}, "l": [{"x": 1, "x": 2, "x": 3}]}')
    assert value == {"data": {"a": "2"}, "l": [{"x": 3}]}
    assert repeated == ['duplicate field "data.a"', 'duplicate field "l[0].x"']


def test_text_that_is_no_json_is_a_value_error() -> None:
    for text in ("{", "[" * 100_000, '{"a": NaN}'):
        with pytest.raises(ValueError):
            loads(text)


def test_texts_are_bounded() -> None:
    obj = {"metadata": {f"x{i}": 1 for i in range(MAX_STRICT_ERRORS + 50)}}
    assert len(unknown_fields(obj, POD)) == MAX_STRICT_ERRORS


def test_the_same_view_serves_custom_resources() -> None:
    custom = Schema.from_openapi(
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}},
        resource=True,
    )
    obj = {"apiVersion": "e/v1", "kind": "E", "metadata": {"name": "e", "odd": 1}, "spec": {"n": 1, "m": 2}}
    assert unknown_fields(obj, custom) == ['unknown field "metadata.odd"', 'unknown field "spec.m"']


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["spec", "metadata", "containers", "name", "limits", "x"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["spec", "metadata", "status", "kind", "x"]), JSON))
def test_any_object_is_decoded_and_what_is_left_is_known(obj: dict[str, Any]) -> None:
    before = copy.deepcopy(obj)
    decoded = decode(obj, POD)
    again = decode(decoded.obj, POD)
    assert (again.unknown, again.obj) == ((), decoded.obj)
    assert again.errors == decoded.errors
    assert obj == before


@pytest.mark.parametrize(
    ("group", "kind", "path", "value", "words"),
    [
        ("batch", "Job", "completionMode", {}, "object into JobSpec.spec.completionMode of type v1.CompletionMode"),
        (
            *("", "PersistentVolumeClaim", "accessModes", "x"),
            "string into PersistentVolumeClaimSpec.spec.accessModes of type []v1.PersistentVolumeAccessMode",
        ),
        (
            *("", "PersistentVolumeClaim", "accessModes", [1]),
            "number into PersistentVolumeClaimSpec.spec.accessModes of type v1.PersistentVolumeAccessMode",
        ),
        (
            *("", "PersistentVolume", "hostPath", {"path": 1}),
            "number into HostPathVolumeSource.spec.PersistentVolumeSource.hostPath.path of type string",
        ),
        (
            *("certificates.k8s.io", "CertificateSigningRequest", "extra", "x"),
            "string into CertificateSigningRequestSpec.spec.extra of type map[string]v1.ExtraValue",
        ),
    ],
)
def test_a_misfit_is_named_by_the_type_and_the_embedded_structs_of_its_field(
    group: str, kind: str, path: str, value: Any, words: str
) -> None:
    words = words.replace(" into ", " into Go struct field ")
    assert decode_errors({"spec": {path: value}}, schema(group, kind)) == [f"json: cannot unmarshal {words}"]
