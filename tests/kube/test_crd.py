"""Definitions of custom resources: which names are accepted, and what may change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from syncline.kube.objects import Obj
from syncline.kube.schema.custom.crd import (
    TakenNames,
    crd_status,
    default_crd,
    prepare_crd,
    validate_crd,
    validate_crd_update,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def crd(plural: str = "cups", kind: str = "Cup", **spec: Any) -> Obj:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    body = {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
            **spec,
        },
    }
    return prepare_crd(default_crd(body), None)


def established(definition: Obj, *others: Obj) -> Obj:
    return {**definition, "status": crd_status(definition, TakenNames(others), NOW)}


def conditions(definition: Obj) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in definition["status"]["conditions"]}


def test_names_that_nobody_uses_are_accepted_and_the_definition_is_established() -> None:
    done = established(crd())
    assert conditions(done) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    names = {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"}
    assert done["status"]["acceptedNames"] == names
    assert done["status"]["storedVersions"] == ["v1"]


def test_a_kind_in_use_is_refused_and_the_rest_of_the_names_is_taken() -> None:
    second = established(crd("mugs", "Cup"), established(crd()))
    assert conditions(second)["NamesAccepted"] == ("False", "ListKindConflict")
    assert conditions(second)["Established"] == ("False", "NotAccepted")
    assert second["status"]["acceptedNames"] == {"plural": "mugs", "kind": ""}


def test_a_conflict_goes_when_the_other_definition_does() -> None:
    refused = established(crd("mugs", "Cup"), established(crd()))
    assert conditions(established(refused)) == conditions(established(crd("mugs", "Cup")))


def test_names_of_another_group_are_no_conflict() -> None:
    other = established(crd(group="other.com"))
    assert conditions(established(crd("mugs", "Cup"), other))["NamesAccepted"][0] == "True"


def test_transition_times_stay_until_a_status_flips() -> None:
    done = established(crd())
    again = crd_status(done, TakenNames(()), NOW + timedelta(hours=1))
    assert again["conditions"] == done["status"]["conditions"]


def test_a_new_storage_version_is_remembered_beside_the_old() -> None:
    old = established(crd())
    (version,) = old["spec"]["versions"]
    versions = [{**version, "storage": False}, {**version, "name": "v2"}]
    new = prepare_crd({**old, "spec": {**old["spec"], "versions": versions}}, old)
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    assert new["metadata"]["generation"] == 2
    assert validate_crd_update(new, old) == []


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"group": "other.com"}, "spec.group", "field is immutable"),
        ({"scope": "Cluster"}, "spec.scope", "field is immutable"),
        ({"group": "nodots"}, "spec.group", "should be a domain with at least one dot"),
        ({"scope": ""}, "spec.scope", "Required value"),
        ({"conversion": {"strategy": "Magic"}}, "spec.conversion.strategy", 'supported values: "None", "Webhook"'),
    ],
)
def test_what_may_not_change_or_be_is_told_by_field(spec: Obj, field: str, text: str) -> None:
    old = established(crd())
    found = validate_crd_update({**old, "spec": {**old["spec"], **spec}}, old)
    assert any(cause.field == field and text in cause.message for cause in found)


def test_a_protected_group_needs_an_approval() -> None:
    found = validate_crd({**crd(group="x.k8s.io"), "metadata": {"name": "cups.x.k8s.io"}})
    assert [cause.field for cause in found] == ["metadata.annotations[api-approved.kubernetes.io]"]


def test_columns_and_scale_paths_are_checked() -> None:
    version = {
        **crd()["spec"]["versions"][0],
        "additionalPrinterColumns": [{"name": "Age", "type": "time", "jsonPath": ".metadata.x"}],
        "subresources": {"scale": {"specReplicasPath": ".status.replicas", "statusReplicasPath": ".status.replicas"}},
    }
    found = {cause.field: cause.message for cause in validate_crd(crd(versions=[version]))}
    assert found == {
        "spec.additionalPrinterColumns[0].type": (
            'Invalid value: "time": must be one of boolean,date,integer,number,string'
        ),
        "spec.subresources.scale.specReplicasPath": (
            'Invalid value: ".status.replicas": should be a json path under .spec'
        ),
    }


def test_a_schema_that_was_found_sound_is_judged_again_where_it_differs_or_stands_elsewhere() -> None:
    schema: Obj = {"type": "object", "minProperties": 1, "properties": {"a": {"type": "string", "nullable": True}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    assert [validate_crd(crd(versions=[version])) for _ in range(2)] == [[], []]
    status = version | {"subresources": {"status": {}}}
    (cause,) = validate_crd(crd(versions=[status]))
    assert cause.field == "spec.validation.openAPIV3Schema"
    wrong = version | {"schema": {"openAPIV3Schema": schema | {"properties": {"a": {"type": "text"}}}}}
    assert [[one.field for one in validate_crd(crd(versions=[wrong]))] for _ in range(2)] == [
        ["spec.validation.openAPIV3Schema.properties[a].type"]
    ] * 2
