"""Warnings about expressions of policies that do not fit what they are about (words as a control plane wrote them)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.world import World

from syncline.kube.objects import Obj

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}
MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}


def checked(rule: Obj, *expressions: str, **spec: Any) -> tuple[World, Obj]:
    world = World()
    validations = [{"expression": text} for text in expressions]
    body = {"matchConstraints": {"resourceRules": [rule]}, "validations": validations, **spec}
    world.post(POLICIES, {"metadata": {"name": "rule"}, "spec": body})
    world.settle()
    return world, world.get(f"{POLICIES}/rule")["status"]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (DEPLOYMENTS, "object.spec.replicas > 1 && oldObject == null"),
        (DEPLOYMENTS, "object.spec.template.spec.containers.all(c, c.image.startsWith('a'))"),
        (DEPLOYMENTS, "object.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z')"),
        (DEPLOYMENTS, "object.spec.strategy.rollingUpdate.maxSurge == 'any type'"),
        (MAPS, "object.data['a'] == 'b' && object.metadata.labels.exists(key, key == 'a')"),
        ({**MAPS, "resources": ["*"]}, "object.nothing.is == 'known'"),
        ({**MAPS, "resources": ["unheardof"]}, "object.nothing.is == 'known'"),
    ],
)
def test_expressions_that_fit_are_not_warned_of(rule: Obj, text: str) -> None:
    _, status = checked(rule, text)
    assert status == {"observedGeneration": 1, "typeChecking": {}}


def test_each_expression_that_does_not_fit_is_named_with_its_place() -> None:
    _, status = checked(DEPLOYMENTS, "object.spec.nope > 1", "object.spec.replicas > 1", "object.spec.replicas > 'a'")
    assert status["typeChecking"]["expressionWarnings"] == [
        {
            "fieldRef": "spec.validations[0].expression",
            "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'nope'\n"
            " | object.spec.nope > 1\n | ...........^\n",
        },
        {
            "fieldRef": "spec.validations[2].expression",
            "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to "
            "'(int, string)'\n | object.spec.replicas > 'a'\n | .....................^\n",
        },
    ]


def test_variables_and_parameters_have_types_too() -> None:
    variables = [{"name": "x", "expression": "object.data.a"}]
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    _, status = checked(MAPS, "variables.x == 1", "params.data.x == 1", variables=variables, paramKind=kind)
    fields = [one["fieldRef"] for one in status["typeChecking"]["expressionWarnings"]]
    assert fields == ["spec.validations[0].expression", "spec.validations[1].expression"]


def test_a_kind_that_contains_itself_is_checked_as_deep_as_expressions_look() -> None:
    rule = {**MAPS, "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"]}
    path = "object.spec.versions[0].schema.openAPIV3Schema.properties['a'].properties['b'].not"
    _, status = checked(rule, f"{path}.title == 'x'", f"{path}.title == 1")
    assert [one["fieldRef"] for one in status["typeChecking"]["expressionWarnings"]] == [
        "spec.validations[1].expression"
    ]


def test_a_new_generation_is_checked_again() -> None:
    world, _ = checked(DEPLOYMENTS, "object.spec.nope > 1")
    world.merge(f"{POLICIES}/rule", {"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}})
    world.settle()
    assert world.get(f"{POLICIES}/rule")["status"] == {"observedGeneration": 2, "typeChecking": {}}
