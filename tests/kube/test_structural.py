"""Custom resources under their schemas: rules beyond the recorded conversations."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from syncline.kube.errors import FieldCause
from syncline.kube.schema.custom import structural
from syncline.kube.schema.custom.celschema import escape
from syncline.kube.schema.custom.rules import check_rules
from syncline.kube.schema.custom.schemacheck import check_schema
from syncline.kube.schema.custom.structural import fill_defaults, prune, unknown_fields, validate
from syncline.kube.schema.custom.valuecheck import UNRELATED, check_value
from syncline.kube.schema.fieldcauses import go_float
from syncline.kube.schema.model import Schema
from syncline.kube.schema.valuefits import fits_of
from syncline.kube.text.formats import matches_format
from syncline.kube.text.re2 import compile_pattern


def kind(**spec: Any) -> Schema:
    raw = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    return Schema.from_openapi(raw, resource=True)


def spec(**fields: Any) -> Any:
    return {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "spec": fields}


def lines(causes: list[FieldCause]) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in causes]


def test_what_was_wrong_may_stay_and_what_only_python_takes_for_equal_has_changed() -> None:
    """CRDValidationRatcheting: at every level where old and new can be compared, entries of map lists by their keys."""
    entry = {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer", "maximum": 1}}}
    entries = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": entry}
    schema = kind(entries=entries, n={"type": "integer"})
    old = spec(entries=[{"k": "a", "n": 5}, {"k": "b", "n": 6}], n=1)
    assert len(validate(old, schema)) == 2
    assert validate(spec(entries=[{"k": "b", "n": 6}, {"k": "a", "n": 5}], n=2), schema, old) == []
    moved = spec(entries=[{"k": "a", "n": 6}, {"k": "b", "n": 6}], n=1)
    assert [line.split(":")[0] for line in lines(validate(moved, schema, old))] == ["spec.entries[0].n"]
    assert [line.split(":")[0] for line in lines(validate(spec(n=True), schema, old))] == ["spec.n"]


def test_pruning_shares_what_it_does_not_change_and_leaves_its_input_alone() -> None:
    schema = kind(a={"type": "string"}, b={"type": "object", "properties": {"c": {"type": "string"}}})
    obj = spec(a="x", b={"c": "y", "odd": 1})
    before = copy.deepcopy(obj)
    pruned = prune(obj, schema)
    assert pruned["spec"]["b"] == {"c": "y"}
    assert obj == before
    assert pruned["metadata"] is obj["metadata"]
    assert prune(pruned, schema) is pruned


def test_unknown_fields_are_named_by_path_and_sorted() -> None:
    schema = kind(l={"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}})
    obj = {**spec(z=1, l=[{"a": "x"}, {"b": "y"}]), "top": 1}
    assert unknown_fields(obj, schema) == [
        'unknown field "spec.l[1].b"',
        'unknown field "spec.z"',
        'unknown field "top"',
    ]


def test_declared_parts_of_an_open_object_are_still_pruned() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = kind(free={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"k": inner}})
    assert prune(spec(free={"k": {"a": "x", "b": 1}, "any": {"b": 1}}), schema)["spec"] == {
        "free": {"k": {"a": "x"}, "any": {"b": 1}}
    }


def test_defaults_reach_map_values_and_list_entries() -> None:
    entry = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
    schema = kind(m={"type": "object", "additionalProperties": entry}, l={"type": "array", "items": entry})
    obj = spec(m={"a": {}}, l=[{}, {"n": 2}])
    assert fill_defaults(obj, schema)["spec"] == {"m": {"a": {"n": 1}}, "l": [{"n": 1}, {"n": 2}]}
    assert obj["spec"] == {"m": {"a": {}}, "l": [{}, {"n": 2}]}


def test_a_null_that_is_not_allowed_is_dropped_and_an_allowed_one_stays() -> None:
    schema = kind(a={"type": "string"}, b={"type": "string", "nullable": True})
    assert fill_defaults(spec(a=None, b=None), schema)["spec"] == {"b": None}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "integer"}, 1.5, ['f: Invalid value: "number": f in body must be of type integer: "number"']),
        ({"type": "integer"}, 2.0, []),
        ({"type": "number"}, 2, []),
        ({"type": "string"}, None, ['f: Invalid value: "null": f in body must be of type string: "null"']),
        ({"type": "string", "nullable": True}, None, []),
        (
            {"type": "integer", "exclusiveMaximum": True, "maximum": 5},
            5,
            ["f: Invalid value: 5: f in body should be less than 5"],
        ),
        (
            {"type": "number", "minimum": 0.5},
            0.25,
            ["f: Invalid value: 0.25: f in body should be greater than or equal to 0.5"],
        ),
        ({"type": "array", "minItems": 1}, [], ["f: Invalid value: 0: f in body should have at least 1 items"]),
        (
            {"type": "object", "minProperties": 1},
            {},
            ["f: Invalid value: 0: f in body should have at least 1 properties"],
        ),
        ({"type": "string", "pattern": "^a$"}, "a\n", ["f: Invalid value: \"a\\n\": f in body should match '^a$'"]),
        ({"type": "integer", "enum": [1, 2]}, 3, ['f: Unsupported value: 3: supported values: "1", "2"']),
        ({"type": "boolean", "enum": [True]}, True, []),
        ({"not": {"required": ["a"]}}, {"a": 1}, ['<nil>: Invalid value: "": "f" must not validate the schema (not)']),
        (
            {"allOf": [{"maximum": 1}, {"minimum": 0}]},
            2,
            [
                "f: Invalid value: 2: f in body should be less than or equal to 1",
                '<nil>: Invalid value: "": "f" must validate all the schemas (allOf)',
            ],
        ),
        (
            {"anyOf": [{"maximum": 1}, {"minimum": 9}]},
            2,
            [
                '<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)',
                "f: Invalid value: 2: f in body should be less than or equal to 1",
            ],
        ),
        (
            {"type": "integer", "format": "int32"},
            1 << 31,
            ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in f'],
        ),
    ],
)
def test_a_value_is_refused_in_the_words_of_kube_openapi(schema: Any, value: Any, expected: list[str]) -> None:
    found = [line for line in lines(check_value(value, schema, "f")) if "default format" not in line]
    assert found == expected


def test_lists_of_type_set_refuse_a_second_equal_entry_of_any_type() -> None:
    schema = kind(s={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}})
    assert lines(validate(spec(s=[1, 2, 1, 1]), schema)) == ["spec.s[2]: Duplicate value: 1"]


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        ({"type": "string"}, 'R.type: Invalid value: "string": must be object at the root'),
        ({}, "R.type: Required value: must not be empty at the root"),
        (
            {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
            "R.properties[a].items.type: Required value: must not be empty for specified array items",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "uniqueItems": True}}},
            "R.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since "
            "the runtime complexity becomes quadratic",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/x", "type": "string"}}},
            "R.properties[a].$ref: Forbidden: $ref is not supported",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "text"}}},
            'R.properties[a].type: Unsupported value: "text": supported values: "array", '
            '"boolean", "integer", "number", "object", "string"',
        ),
        (
            {"type": "object", "anyOf": [{"type": "object"}]},
            "R.anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            {
                "type": "object",
                "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}},
            },
            "R.properties[metadata]: Forbidden: must not specify anything other than name "
            "and generateName, but metadata is implicitly specified",
        ),
        (
            {
                "type": "object",
                "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}},
            },
            "R.properties[l].x-kubernetes-list-map-keys: Required value: must not be empty "
            "if x-kubernetes-list-type is map",
        ),
    ],
)
def test_a_schema_that_is_not_structural_is_refused_by_path(schema: Any, line: str) -> None:
    crd = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
    assert line.replace("R", "spec.validation.openAPIV3Schema", 1) in lines(check_schema(crd))


def test_the_int_or_string_pattern_is_structural() -> None:
    both = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    schema = {"type": "object", "properties": {"port": both}}
    assert check_schema({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}) == []


def test_schemas_that_differ_between_versions_are_named_by_version() -> None:
    versions = [{"schema": {"openAPIV3Schema": {"type": "object"}}}, {"schema": {"openAPIV3Schema": {"type": "array"}}}]
    found = check_schema({"spec": {"versions": versions}})
    assert found[0].field.startswith("spec.versions[1].schema.openAPIV3Schema")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2024-02-29T23:59:59.5+01:00", "2023-02-29T00:00:00Z"),
        ("date", "2024-02-29", "2024-2-9"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("duration", "1h30m", "soon"),
        ("byte", "YWI=", "YWI"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("hostname", "a.example.com", "a b"),
        ("k8s-short-name", "abc-1", "Abc"),
    ],
)
def test_a_format_tells_good_from_bad(name: str, good: str, bad: str) -> None:
    assert matches_format(name, good)
    assert not matches_format(name, bad)


def test_an_unknown_format_is_not_checked() -> None:
    assert matches_format("colour", "anything")


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^a$", "a", "a\n"),
        ("^[[:alpha:]]+$", "ab", "a1"),
        (r"\Aa\z", "a", "ab"),
        ("^[$]$", "$", "a"),
        ("[]]", "]", "["),
    ],
)
def test_go_patterns_keep_their_meaning(pattern: str, good: str, bad: str) -> None:
    assert compile_pattern(pattern).search(good)
    assert not compile_pattern(pattern).search(bad)


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (0.5, "0.5"), (1e6, "1e+06"), (1234567.5, "1.2345675e+06"), (1e-7, "1e-07")]
)
def test_floats_print_as_go_prints_them(value: float, text: str) -> None:
    assert go_float(value) == text


def ruled(rule: dict[str, Any], **schema: Any) -> Schema:
    return kind(f={**schema, "x-kubernetes-validations": [rule]})


def test_a_rule_that_fails_to_run_says_so() -> None:
    schema = ruled({"rule": "self[3] == 1"}, type="array", items={"type": "integer"})
    assert lines(check_rules(spec(f=[1]), None, schema)) == [
        'spec.f: Invalid value: "array": index out of bounds: 3 evaluating rule: self[3] == 1'
    ]


def test_a_transition_rule_sees_the_old_entry_with_the_same_key() -> None:
    entry = {
        "type": "object",
        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "v only grows"}],
    }
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = kind(l={"type": "array", "items": entry, **keyed})
    old = spec(l=[{"k": "a", "v": 5}, {"k": "b", "v": 5}])
    new = spec(l=[{"k": "c", "v": 1}, {"k": "b", "v": 4}])
    assert lines(check_rules(new, old, schema)) == ["spec.l[1]: Invalid value: v only grows"]


def test_rules_see_times_floats_and_escaped_names() -> None:
    schema = kind(
        t={
            "type": "string",
            "format": "date-time",
            "x-kubernetes-validations": [{"rule": "self.getFullYear() == 2024"}],
        },
        n={"type": "number", "x-kubernetes-validations": [{"rule": "self > 1.5"}]},
        o={
            "type": "object",
            "properties": {"a-b": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.a__dash__b == 1"}],
        },
    )
    assert check_rules(spec(t="2024-05-05T00:00:00Z", n=2, o={"a-b": 1}), None, schema) == []


def test_field_names_are_escaped_as_rules_write_them() -> None:
    assert [escape(name) for name in ("a.b", "a/b", "x__y", "namespace")] == [
        "a__dot__b",
        "a__slash__b",
        "x__underscores__y",
        "__namespace__",
    ]


def _drawn_schema(chance: random.Random, depth: int) -> dict[str, Any]:
    plain = [{"type": "string"}, {"type": "boolean"}, {"type": "integer"}, {"type": "integer", "format": "int32"}]
    more = [
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "pattern": "^a"},
        {"type": "string", "nullable": True},
        {"type": "integer", "minimum": 1},
        {"type": "number"},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "string", "format": "date-time"},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    ]
    if depth == 0 or chance.random() < 0.3:
        return chance.choice([*plain, *plain, *more])
    if chance.random() < 0.4:
        return {"type": "array", "items": _drawn_schema(chance, depth - 1), **chance.choice([{}, {"maxItems": 2}])}
    fields = {name: _drawn_schema(chance, depth - 1) for name in "abc"}
    made: dict[str, Any] = {"type": "object", "properties": fields, **chance.choice([{}, {"required": ["a"]}])}
    if chance.random() < 0.3:
        made["additionalProperties"] = chance.choice([False, True, {"type": "string"}])
    return made


def _drawn_value(schema: dict[str, Any], chance: random.Random) -> Any:
    if chance.random() < 0.05:
        return chance.choice([None, "a", 1, 1.5, True, {}, [], {"a": None}, 1 << 40, -(1 << 70)])
    match schema.get("type"):
        case "object":
            names = [name for name in "abcd" if chance.random() < 0.8]
            return {name: _drawn_value(schema["properties"].get(name, {}), chance) for name in names}
        case "array":
            return [_drawn_value(schema["items"], chance) for _ in range(chance.randrange(4))]
        case "integer" | "number":
            return chance.choice([1, 0, 7])
        case "boolean":
            return True
    return chance.choice(["a", "b", "2026-01-01T00:00:00Z"])


@pytest.mark.parametrize("seed", range(10))
def test_what_is_quickly_found_to_fit_is_what_the_careful_walk_lets_through(seed: int) -> None:
    chance, quick = random.Random(seed), 0
    for _ in range(60):
        schema = _drawn_schema(chance, 3)
        fits = fits_of(schema)
        for _ in range(5):
            value, old = _drawn_value(schema, chance), chance.choice([UNRELATED, _drawn_value(schema, chance)])
            for before in (old, value):
                found = check_value(value, schema, "", before)
                assert not (fits(value, before) and found), (schema, value, before, found)
                quick += fits(value, before)
    assert quick > 100


def test_rows_of_a_status_are_checked_without_the_careful_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[str] = []
    really = structural.check_value

    def counted(value: Any, raw: Any, path: str = "", old: Any = UNRELATED) -> list[FieldCause]:
        walked.append(path)
        return really(value, raw, path, old)

    monkeypatch.setattr(structural, "check_value", counted)
    row = {"type": "object", "properties": {"kind": {"type": "string"}, "wave": {"type": "integer"}}}
    schema = kind(rows={"type": "array", "items": row})
    before, after = (spec(rows=[{"kind": "A", "wave": n} for n in range(count)]) for count in (3, 4))
    assert validate(after, schema, before) == [] and walked == []
    assert validate(spec(rows=[{"kind": 1}]), schema, before) and walked == [""]
