"""The quick look at a body never lets through what the careful one would drop, rewrite or refuse."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.objects import GVK
from syncline.kube.patching.fields import _Place, _Reader
from syncline.kube.schema.fitting import fits, still_fits
from syncline.kube.schema.model import Schema, schema_for

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"}, "generation": 3},
    "spec": {
        "hostNetwork": False,
        "containers": [
            {
                "name": "c",
                "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "100m", "memory": 5}},
                "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 3},
            }
        ],
    },
    "status": {"startTime": None, "conditions": [{"type": "Ready", "status": "True"}]},
}

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from(
        ["2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z", "1Gi", "lots", "YQ==", [], {}, [None], {"a": 1}]
    ),
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with every key of it, the new key ``unheardOf`` included."""
    if isinstance(value, dict):
        return [(value, key) for key in [*value, "unheardOf"]] + [p for below in value.values() for p in places(below)]
    if isinstance(value, list):
        return [(value, index) for index in range(len(value))] + [p for below in value for p in places(below)]
    return []


def schema(kind: str) -> Schema:
    found = schema_for(GVK("", "v1", kind))
    assert found is not None
    return found


def carefully_fits(obj: dict[str, Any], kind: Schema) -> bool:
    reader = _Reader()
    made = reader.object(obj, kind, None, _Place("", ()), 0)
    return made is obj and not (reader.unknown or reader.misfits or reader.refusals)


@given(st.data())
def test_both_looks_agree_whatever_stands_anywhere(data: st.DataObject) -> None:
    obj = copy.deepcopy(POD)
    container, key = data.draw(st.sampled_from(places(obj)))
    container[key] = data.draw(ODD)
    assert fits(obj, schema("Pod")) == carefully_fits(obj, schema("Pod"))


@pytest.mark.parametrize("text, fine", [("YQ==", True), ("YWI=", True), ("", True), ("YQ", False), ("Y\nQ==", False)])
def test_bytes_fit_only_in_their_plain_form(text: str, fine: bool) -> None:
    assert fits({"data": {"a": text}}, schema("Secret")) is fine


def test_deep_documents_are_left_to_the_careful_look() -> None:
    deep: dict[str, Any] = {}
    for _ in range(2000):
        deep = {"properties": {"a": deep}}
    props = schema_for(GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    assert props is not None
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": deep}}]
    assert not fits({"spec": {"versions": versions}}, props)


@given(st.data())
def test_what_is_shared_with_an_object_that_fits_needs_no_look(data: st.DataObject) -> None:
    """Any one change of a fitting object: looking only at what is not shared gives the same verdict."""
    stored = copy.deepcopy(POD)
    changed = copy.deepcopy(POD)
    container, key = data.draw(st.sampled_from(places(changed)))
    container[key] = data.draw(ODD)
    for part in stored:  # as a patch leaves it: parts that are equal are the same
        if changed.get(part) == stored[part] and carefully_fits({part: changed[part]}, schema("Pod")):
            changed[part] = stored[part]
    verdict = still_fits(changed, stored, schema("Pod"))
    assert not verdict or carefully_fits(changed, schema("Pod"))
    assert still_fits(stored, stored, schema("Pod"))
