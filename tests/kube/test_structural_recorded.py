"""Custom resources against recorded conversations: pruning, defaults and refusals of a Kubernetes 1.36 API."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kube.recorded_conversations import covers, steps

from syncline.kube.crd import default_crd, prepare_crd, validate_crd
from syncline.kube.errors import FieldCause
from syncline.kube.rules import check_rules, rules_available
from syncline.kube.schema.model import Schema
from syncline.kube.structural import fill_defaults, prune, unknown_fields, validate


def told(causes: list[FieldCause]) -> list[dict[str, Any]]:
    return in_order([cause.to_obj() for cause in causes])


def in_order(causes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(causes, key=lambda cause: (cause.get("field", ""), cause["message"]))


def causes_of(step: dict[str, Any]) -> list[dict[str, Any]]:
    return in_order(step["expect"]["body"].get("details", {}).get("causes", []))


def definition(name: str) -> Any:
    body = next(step["body"] for step in steps(name) if "body" in step)
    return body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def creations(name: str) -> list[dict[str, Any]]:
    return [
        step
        for step in steps(name)
        if "post" in step and "expect" in step and step["body"].get("kind") != "CustomResourceDefinition"
    ]


@pytest.mark.parametrize("name", ["crd-schema", "crd-columns-subresources", "crd-cel"])
def test_each_created_object_is_stored_or_refused_as_recorded(name: str) -> None:
    schema = Schema.from_openapi(definition(name), resource=True)
    if name == "crd-cel" and not rules_available():
        pytest.skip("validation rules need the extra `local`")
    for step in creations(name):
        stored = fill_defaults(prune(step["body"], schema), schema)
        found = validate(stored, schema)
        found = found + check_rules(stored, None, schema, found)
        expected = step["expect"]["body"]
        if "Strict" in step["post"]:
            assert ", ".join(unknown_fields(step["body"], schema)) in expected["message"], step["id"]
        elif step["expect"]["status"] < 400:
            assert found == [], step["id"]
            assert covers(expected["spec"], stored["spec"]), step["id"]
            assert stored["spec"].keys() == expected["spec"].keys(), step["id"]
        else:
            assert told(found) == causes_of(step), step["id"]


def test_each_definition_is_accepted_or_refused_as_recorded() -> None:
    for step in steps("crd-refused"):
        if "post" not in step:
            continue
        found = told(validate_crd(prepare_crd(default_crd(step["body"]), None)))
        expected = causes_of(step)
        for cause in found:
            if "versions" in cause["field"] and "storage version" in cause["message"] and "[]" not in cause["message"]:
                cause["message"] = "Invalid value: <object>: must have exactly one version marked as storage version"
        assert found == expected, step["id"]
