"""Strategic merges and JSON patches of kustomizations, as policies."""

from __future__ import annotations

import pytest

from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.resources.merge import merge
from syncline.sources.kustomize.resources.schema import builtin_schema
from syncline.sources.kustomize.yaml.reader import parse_one
from syncline.sources.kustomize.yaml.values import to_json

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"


def merged(target: str, patch: str) -> object:
    left, right = parse_one(target), parse_one(patch)
    assert left is not None and right is not None
    result = merge(right, left, builtin_schema())
    return None if result is None else to_json(result)


def spec(target: str, patch: str) -> object:
    found = merged(POD + target, POD + patch)
    assert isinstance(found, dict)
    return found["spec"]


def test_patched_elements_come_first_and_keep_what_is_not_named() -> None:
    found = spec(
        "  containers: [{name: a, image: i}, {name: b, image: j}]\n", "  containers: [{name: b, image: k}, {name: n}]\n"
    )
    assert found == {"containers": [{"name": "b", "image": "k"}, {"name": "n"}, {"name": "a", "image": "i"}]}


@pytest.mark.parametrize(
    ("patch", "left"),
    [
        ("  containers: [{name: a, $patch: delete}]\n", [{"name": "b"}]),
        ("  containers: [{name: n}, {$patch: replace}]\n", [{"name": "n"}]),
        ("  containers: null\n", None),
    ],
)
def test_directives_delete_and_replace_in_lists(patch: str, left: object) -> None:
    found = spec("  containers: [{name: a, image: i}, {name: b}]\n", patch)
    assert found == ({} if left is None else {"containers": left})


def test_a_directive_at_the_root_deletes_the_object() -> None:
    assert merged(POD + "  x: 1\n", POD + "  y: 1\n$patch: delete\n") is None


def test_ports_merge_by_port_and_protocol() -> None:
    target = (
        "  containers: [{name: a, ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]}]\n"
    )
    patch = "  containers: [{name: a, ports: [{containerPort: 53, protocol: TCP, name: t}]}]\n"
    found = spec(target, patch)
    assert found == {
        "containers": [
            {
                "name": "a",
                "ports": [
                    {"containerPort": 53, "protocol": "UDP"},
                    {"containerPort": 53, "protocol": "TCP", "name": "t"},
                ],
            }
        ]
    }


def test_lists_of_unknown_kinds_are_replaced() -> None:
    target = "apiVersion: x/v1\nkind: T\nspec: {containers: [{name: a}]}\n"
    assert merged(target, target.replace("a}", "b}")) == {
        "apiVersion": "x/v1",
        "kind": "T",
        "spec": {"containers": [{"name": "b"}]},
    }


def test_a_patched_scalar_keeps_the_quotes_of_the_target() -> None:
    assert merged('a: "80"\nb: 80\n', "a: 81\nb: '81'\n") == {"a": "81", "b": "81"}


def test_an_empty_null_of_the_target_disappears_and_a_written_one_stays() -> None:
    assert merged("a:\nb: null\nc: 1\n", "c: 2\n") == {"b": None, "c": 2}


def test_an_unknown_directive_is_refused() -> None:
    with pytest.raises(BuildError, match="unknown patch strategy 'swap'"):
        merged("a: {b: 1}\n", "a: {$patch: swap}\n")
