"""Messages of argocd's API: written and read back they are what Go prints, whatever they hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.kube.objects import Obj
from syncline.kube.protobuf.fields import Field
from syncline.kube.protobuf.writing import WrongValue
from syncline.web.wire.api import encoded, messages, methods, printer, read, writer

APPLICATION = "argoproj.v1alpha1.Application"
SPECIAL = {
    "Time": st.sampled_from(["2026-01-02T03:04:05Z", "1969-12-31T23:59:59Z"]),
    "MicroTime": st.just("2026-01-02T03:04:05.000006Z"),
    "Duration": st.sampled_from(["1m30s", "500ms"]),
    "FieldsV1": st.just({"f:metadata": {}}),
    "RawExtension": st.just({"any": [1, {"thing": None}]}),
    "JSON": st.sampled_from([{"a": 1}, "text", [True]]),
    "Quantity": st.sampled_from(["100m", "1Gi"]),
    "IntOrString": st.one_of(st.integers(1, 9), st.sampled_from(["25%"])),
}
SCALARS = {
    "string": st.text(max_size=5),
    "bytes": st.sampled_from(["", "AAE=", "eA=="]),
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
}


def values(kind: str, depth: int) -> st.SearchStrategy[Any]:
    if kind in SCALARS:
        return SCALARS[kind]
    name = kind.rpartition(".")[2]
    if kind.startswith("io.k8s.") and name in SPECIAL:
        return SPECIAL[name]
    if messages().is_list(kind):
        return st.lists(values(messages().fields(kind)[0].kind, depth - 1), max_size=2)
    members: dict[str, Any] = {}
    for field in messages().fields(kind):
        if depth > 0 or field.kind in SCALARS:
            members |= _members(field, depth)
    return st.fixed_dictionaries({}, optional=members)


def _members(field: Field, depth: int) -> dict[str, Any]:
    one = values(field.kind, depth - 1)
    if field.inline and not field.name:
        return {inner.name: _collected(inner, values(inner.kind, 0)) for inner in messages().fields(field.kind)}
    return {field.name: _collected(field, one)}


def _collected(field: Field, one: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    if field.is_map:
        return st.dictionaries(st.text(max_size=3), one, max_size=2)
    return st.lists(one, max_size=2) if field.repeated else one


@pytest.mark.parametrize(
    "message",
    [
        APPLICATION,
        "argoproj.v1alpha1.AppProject",
        "argoproj.v1alpha1.ClusterList",
        "cluster.Settings",
        "events.EventList",
    ],
)
def test_what_is_written_reads_as_what_is_printed(message: str) -> None:
    @settings(max_examples=25, deadline=None)
    @given(values(message, 4))
    def check(value: Obj) -> None:
        assert read(message, writer().write(message, value)) == printer().print(message, value)

    check()


def test_a_project_role_and_a_plugin_parameter_keep_their_form() -> None:
    plugin = {"name": "tool", "parameters": [{"name": "a", "map": {"k": "v"}}, {"name": "b", "array": ["x"]}]}
    app = {"metadata": {"name": "a"}, "spec": {"project": "p", "source": {"repoURL": "r", "plugin": plugin}}}
    shown = read(APPLICATION, writer().write(APPLICATION, app))
    assert shown["spec"]["source"]["plugin"] == plugin
    assert shown["metadata"] == {"name": "a"}


def test_a_kept_message_stands_for_its_object() -> None:
    app = {"metadata": {"name": "a"}, "spec": {"project": "p"}}
    listed = "argoproj.v1alpha1.ApplicationList"
    kept = {"metadata": {}, "items": [encoded(APPLICATION, app)]}
    plain = {"metadata": {}, "items": [app]}
    assert writer().write(listed, kept) == writer().write(listed, plain)
    assert printer().json(listed, kept) == printer().json(listed, plain)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"spec": {"source": {"repoURL": 5}}}, "spec.source.repoURL must be a string"),
        (
            {"status": {"resources": [{"kind": "Pod"}, {"syncWave": "one"}]}},
            "status.resources[1].syncWave must be",
        ),
        ({"metadata": {"labels": {"a": True}}}, "metadata.labels['a'] must be a string"),
        ({"metadata": {"creationTimestamp": "noon"}}, "metadata.creationTimestamp must be a time such as"),
        ({"metadata": {"labels": []}}, "metadata.labels must be an object"),
        ({"spec": {"sources": {}}}, "spec.sources must be a list"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_by_its_path(value: Obj, error: str) -> None:
    with pytest.raises(WrongValue) as refused:
        writer().write(APPLICATION, value)
    assert str(refused.value).startswith(error)


def test_every_method_has_its_messages() -> None:
    assert len(methods()) > 100
    for method in methods().values():
        assert method.request in messages() and method.response in messages(), method.path
