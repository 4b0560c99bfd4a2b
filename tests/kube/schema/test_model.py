"""What the schema view says of built-in kinds and of custom ones."""

from __future__ import annotations

from syncline.kube.objects import GVK
from syncline.kube.schema.model import Schema, definition, schema_for

DEPLOYMENT = GVK("apps", "v1", "Deployment")


def walk(schema: Schema | None, *path: str) -> Schema:
    for step in path:
        assert schema is not None, step
        schema = schema.items if step == "[]" else schema.field(step)
    assert schema is not None
    return schema


def test_a_built_in_kind_is_found_by_group_version_and_kind() -> None:
    assert schema_for(DEPLOYMENT) is schema_for(GVK("apps", "v1", "Deployment"))
    assert schema_for(GVK("example.com", "v1", "Deployment")) is None


def test_references_are_resolved_on_the_way_down() -> None:
    containers = walk(schema_for(DEPLOYMENT), "spec", "template", "spec", "containers")
    assert (containers.type, containers.list_type, containers.list_map_keys) == ("array", "map", ("name",))
    assert (containers.merge_key, containers.patch_strategy) == ("name", "merge")
    assert walk(containers, "[]", "image").type == "string"


def test_what_stands_beside_a_reference_is_kept() -> None:
    assert walk(schema_for(DEPLOYMENT), "spec", "strategy").patch_strategy == "retainKeys"
    assert walk(schema_for(DEPLOYMENT), "spec", "strategy", "rollingUpdate", "maxSurge").int_or_string


def test_a_map_leads_to_its_values_under_any_name() -> None:
    labels = walk(schema_for(DEPLOYMENT), "metadata", "labels")
    assert labels.is_map
    assert walk(labels, "anything").type == "string"


def test_an_unknown_field_of_a_struct_is_none() -> None:
    spec = walk(schema_for(DEPLOYMENT), "spec")
    assert spec.field("replica") is None
    assert not spec.is_open


def test_a_recursive_schema_can_be_walked_for_ever() -> None:
    props = definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert walk(props, "properties", "a", "properties", "b", "not").type == "object"


def test_the_key_of_a_port_has_its_default() -> None:
    ports = walk(schema_for(GVK("", "v1", "Pod")), "spec", "containers", "[]", "ports")
    assert ports.list_map_keys == ("containerPort", "protocol")
    assert walk(ports, "[]", "protocol").default == "TCP"


def test_a_custom_resource_has_the_same_view_with_metadata_typed() -> None:
    schema = Schema.from_openapi(
        {
            "type": "object",
            "properties": {
                "metadata": {"type": "object"},
                "spec": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {
                        "hosts": {
                            "type": "array",
                            "items": {"type": "string"},
                            "x-kubernetes-list-type": "set",
                        },
                        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        "any": {"type": "object", "additionalProperties": True},
                    },
                },
            },
        },
        resource=True,
    )
    assert walk(schema, "metadata", "labels", "x").type == "string"
    assert walk(schema, "spec").map_type == "atomic"
    assert walk(schema, "spec", "hosts").list_type == "set"
    assert walk(schema, "spec", "extra").is_open
    assert walk(schema, "spec", "any", "x").is_open


def test_a_list_without_list_type_follows_its_patch_strategy_else_is_atomic() -> None:
    merged = {"type": "array", "x-kubernetes-patch-strategy": "merge"}
    assert Schema(merged).list_type == "set"
    keyed = Schema({**merged, "x-kubernetes-patch-merge-key": "name"})
    assert (keyed.list_type, keyed.list_map_keys) == ("map", ("name",))
    assert Schema({"type": "array"}).list_type == "atomic"
    assert Schema({"type": "object"}).list_type == ""
