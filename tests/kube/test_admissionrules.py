"""What expressions of webhooks and admission policies may name, and how they are refused."""

from __future__ import annotations

import pytest

from syncline.cluster.validation.policy.admissionrules import (
    APPLIED,
    AUDITED,
    CONDITION,
    JSON_PATCHES,
    MESSAGE,
    Expressions,
    Fault,
    Wanted,
    device_fault,
)


@pytest.mark.parametrize(
    "text",
    [
        "object.metadata.name == oldObject.metadata.name",
        "request.userInfo.groups.exists(g, g == 'admins') || request.namespace == 'x'",
        "authorizer.group('apps').resource('deployments').namespace('d').check('get').allowed()",
        "authorizer.requestResource.name('x').check('delete').reason() == ''",
        "namespaceObject.metadata.?labels['a'].orValue('') == 'b'",
        "[1].all(authorizer, authorizer == 1)",
        "true" + " && true" * 1000,
    ],
)
def test_conditions_name_the_request_its_objects_and_the_authorizer(text: str) -> None:
    assert Expressions().fault(text, CONDITION) is None


@pytest.mark.parametrize(
    ("text", "wanted", "told"),
    [
        ("params.x == 1", CONDITION, "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'"),
        ("variables.x", CONDITION, "compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables'"),
        ("request.object", CONDITION, "compilation failed: ERROR: <input>:1:8: undefined field 'object'"),
        ("Object{}", CONDITION, "compilation failed: ERROR: <input>:1:7: undeclared reference to 'Object'"),
        ("object.x", CONDITION, "must evaluate to bool but got dyn"),
        ("null", MESSAGE, "must evaluate to string but got null_type"),
        (
            "[duration('1s')]",
            AUDITED,
            "must evaluate to one of [string null_type] but got list(google.protobuf.Duration)",
        ),
        ("Object.spec{}", APPLIED, "must evaluate to Object but got Object.spec"),
        ("[]", JSON_PATCHES, "must evaluate to list(JSONPatch) but got list(dyn)"),
        ("[JSONPatch{op: 1}]", JSON_PATCHES, "compilation failed: ERROR: <input>:1:14: expected type of field 'op' is"),
        *(
            (deep, CONDITION, "compilation failed: ERROR: <input>:")
            for deep in ("object" + ".a" * 40_000, "(" * 9000 + "1", "1" + "+1" * 20_000, "Object{a:" * 3000)
        ),
    ],
)
def test_what_is_wrong_is_told_in_the_words_of_kubernetes(text: str, wanted: Wanted, told: str) -> None:
    fault = Expressions().fault(text, wanted)
    assert fault is not None
    assert fault.detail.startswith(told)


def test_variables_have_the_types_of_those_before_them() -> None:
    some = Expressions(params=True, composed=True)
    assert some.declare("small", "object.spec.replicas < 5") is None
    assert some.declare("name", "variables.small ? 'a' : 'b'") is None
    early = some.declare("early", "variables.later")
    assert early is not None
    assert "undefined field 'later'" in early.detail
    assert some.fault("variables.name", MESSAGE) is None
    assert some.fault("variables.small && params.x == 1 && variables.early == 'x'", CONDITION) is None
    assert some.fault("variables.name", CONDITION) == Fault("must evaluate to bool but got string")
    stray = some.fault("variables.small", CONDITION, composed=False)
    assert stray is not None


def test_a_conversion_that_can_never_work_is_an_internal_error() -> None:
    fault = Expressions().fault("int('x') == 1", CONDITION)
    assert fault is not None
    assert fault.internal


def test_patches_are_made_of_objects_of_any_shape() -> None:
    some = Expressions(composed=True)
    assert some.fault("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a'}]}}", APPLIED) is None
    made = "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('b/c'), value: Object.x{?y: optional.of(1)}}]"
    assert some.fault(made, JSON_PATCHES) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("device.driver == 'x.y' && cel.bind(d, device.attributes['x.y'], d.big || d.fast)", None),
        ("device.capacity['x.y'].memory.compareTo(quantity('1Gi')) > 0", None),
        ("device.attributes['x.y'].model", None),
        ("", "compilation failed: ERROR: <input>:1:0: Syntax error"),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("object.x", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'object'"),
        ("cel.bind(d, device.driver, d.x)", "compilation failed: ERROR: <input>:1:29: type 'string' does not support"),
        ("device" + ".driver" * 10_000, "compilation failed: ERROR: <input>:-1:0: max recursion depth exceeded"),
    ],
)
def test_selectors_of_devices_know_the_device_and_nothing_else(text: str, told: str | None) -> None:
    fault = device_fault(text)
    assert (fault.detail if fault else "").startswith(told or "")
    assert (fault is None) == (told is None)


def test_values_are_named_only_where_devices_are_selected() -> None:
    assert Expressions().fault("cel.bind(x, true, x)", CONDITION) is not None
