"""Custom resources against recorded conversations: pruning, defaults and refusals of a Kubernetes 1.36 API."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.kube.recorded_conversations import covers, steps

from syncline.kube.errors import FieldCause
from syncline.kube.schema.custom.crd import default_crd, prepare_crd, validate_crd, validate_crd_update
from syncline.kube.schema.custom.embedded import coerce_embedded
from syncline.kube.schema.custom.rules import check_rules
from syncline.kube.schema.custom.structural import fill_defaults, prune, unknown_fields, validate
from syncline.kube.schema.model import Schema


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
    for step in creations(name):
        stored = fill_defaults(copy.deepcopy(prune(step["body"], schema)), schema)
        coerce_embedded(stored, schema.raw)
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


def merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        result[name] = merged(result.get(name), value)
    return {name: value for name, value in result.items() if value is not None}


def test_rules_about_changes_hold_or_refuse_as_recorded() -> None:
    schema = Schema.from_openapi(definition("crd-cel"), resource=True)
    live = next(step["body"] for step in steps("crd-cel") if step["id"] == "valid")
    changes = [step for step in steps("crd-cel") if step.get("type") == "merge"]
    assert len(changes) == 3
    for step in changes:
        new = fill_defaults(merged(live, step["body"]), schema)
        found = check_rules(new, live, schema, validate(new, schema))
        if step["expect"]["status"] < 400:
            assert found == [], step["id"]
            live = new
        else:
            assert told(found) == causes_of(step), step["id"]


def test_changes_of_definitions_are_refused_as_recorded() -> None:
    established = {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]}
    first = next(step["body"] for step in steps("crd-lifecycle") if step["id"] == "create")
    old = {**default_crd(first), "status": established}
    scope = next(step for step in steps("crd-lifecycle") if step["id"] == "spec-field-immutable")
    new = prepare_crd(merged(old, scope["body"]), old)
    assert told(validate_crd_update(new, old)) == causes_of(scope)

    first = next(step["body"] for step in steps("crd-versions") if step["id"] == "crd")
    old = {**default_crd(first), "status": established}
    gone = next(step for step in steps("crd-versions") if step["id"] == "stored-version-cannot-go")
    beta, _, alpha = old["spec"]["versions"]
    new = prepare_crd({**old, "spec": {**old["spec"], "versions": [{**beta, "storage": True}, alpha]}}, old)
    assert told(validate_crd_update(new, old)) == causes_of(gone)
