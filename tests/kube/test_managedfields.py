"""Who owns a field after a write: the rules of server-side apply beyond the recorded conversations."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.errors import ApiError, BadRequest, Conflict
from syncline.kube.objects import GVK, Obj
from syncline.kube.patching.managedfields import (
    LAST_APPLIED,
    MAX_UPDATE_MANAGERS,
    apply,
    keep_times,
    reset_fields,
    track_update,
    upgrade_managed_fields,
    with_managed_fields,
)
from syncline.kube.schema.model import Schema, schema_for

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONFIG_MAP = schema_for(GVK("", "v1", "ConfigMap"))
V1: dict[str, Any] = {"schema": CONFIG_MAP, "api_version": "v1", "now": NOW}


def config(data: Any = None, **metadata: Any) -> Obj:
    obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}
    return obj if data is None else {**obj, "data": data}


def stored(obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "uid": "u"}}


def owners(obj: Obj) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def test_a_repeated_apply_returns_the_very_live_object() -> None:
    live = stored(apply(None, config({"a": "1"}), "alpha", **V1).obj)
    result = apply(live, config({"a": "1"}), "alpha", **{**V1, "now": NOW + timedelta(hours=1)})
    assert result.obj is live
    assert not result.changed


def test_an_apply_that_changes_values_moves_the_time_of_its_entry() -> None:
    live = stored(apply(None, config({"a": "1"}), "alpha", **V1).obj)
    changed = apply(live, config({"a": "2"}), "alpha", **{**V1, "now": NOW + timedelta(hours=1)}).obj
    assert changed["metadata"]["managedFields"][0]["time"] == "2026-01-01T01:00:00Z"


def test_a_second_owner_of_an_equal_value_has_no_time_of_its_own() -> None:
    live = stored(apply(None, config({"a": "1"}), "alpha", **V1).obj)
    shared = apply(live, config({"a": "1"}), "beta", **V1)
    assert shared.changed
    assert [entry.get("time") for entry in shared.obj["metadata"]["managedFields"]] == [None, "2026-01-01T00:00:00Z"]


def test_conflicts_with_several_managers_are_listed_by_manager() -> None:
    live = stored(apply(None, config({"a": "1"}), "alpha", **V1).obj)
    live = apply(live, config({"b": "1"}), "beta", **V1).obj
    with pytest.raises(Conflict) as refusal:
        apply(live, config({"a": "2", "b": "2"}), "gamma", **V1)
    assert refusal.value.message == (
        'Apply failed with 2 conflicts: conflicts with "alpha":\n- .data.a\nconflicts with "beta":\n- .data.b'
    )
    assert [cause["field"] for cause in refusal.value.causes] == [".data.a", ".data.b"]


def test_force_takes_only_the_contested_fields_over() -> None:
    live = stored(apply(None, config({"a": "1", "b": "1"}), "alpha", **V1).obj)
    forced = apply(live, config({"a": "2"}), "beta", force=True, **V1).obj
    assert forced["data"] == {"a": "2", "b": "1"}
    assert owners(forced) == {"alpha": {"f:data": {"f:b": {}}}, "beta": {"f:data": {"f:a": {}}}}


def test_a_dropped_field_goes_with_its_last_owner_only() -> None:
    live = stored(apply(None, config({"a": "1"}), "alpha", **V1).obj)
    live = apply(live, config({"a": "1"}), "beta", **V1).obj
    once = apply(live, config(), "alpha", **V1).obj
    assert once["data"] == {"a": "1"}
    assert "data" not in apply(once, config(), "beta", **V1).obj


def test_an_emptied_map_keeps_what_has_no_owner() -> None:
    """As what the server fills in: an applier that states the empty map gives up its own fields only."""
    live = stored(apply(None, config({"a": "1"}), "alpha", **V1).obj)
    filled = {**live, "data": {**live["data"], "b": "2"}}
    assert apply(filled, config({}), "alpha", **V1).obj["data"] == {"b": "2"}


def test_a_create_by_update_owns_maps_as_well_as_their_entries() -> None:
    entries = track_update(None, config({"a": "1"}, labels={"x": "y"}), "kubectl-create", **V1)
    assert entries is not None
    data = {".": {}, "f:a": {}}
    assert entries[0]["fieldsV1"] == {"f:data": data, "f:metadata": {"f:labels": {".": {}, "f:x": {}}}}


def test_a_built_in_kind_does_not_own_its_structs_when_created() -> None:
    pod = schema_for(GVK("apps", "v1", "Deployment"))
    template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": template}}
    entries = track_update(None, obj, "m", schema=pod, api_version="apps/v1", now=NOW)
    container = {".": {}, "f:image": {}, "f:name": {}}
    spec = {"f:template": {"f:spec": {"f:containers": {'k:{"name":"c"}': container}}}}
    assert entries is not None
    assert entries[0]["fieldsV1"] == {"f:spec": spec}


def test_an_update_takes_over_what_it_changes_and_frees_what_it_removes() -> None:
    live = stored(apply(None, config({"a": "1", "b": "1", "c": "1"}), "alpha", **V1).obj)
    new = stored(config({"a": "2", "c": "1"}))
    entries = track_update(live, new, "editor", **V1)
    assert owners(with_managed_fields(new, entries)) == {
        "alpha": {"f:data": {"f:c": {}}},
        "editor": {"f:data": {"f:a": {}}},
    }


@pytest.mark.parametrize("sent", [[], [{}]])
def test_an_empty_list_in_a_request_resets_and_the_object_stays_untracked(sent: Any) -> None:
    live = stored(apply(None, config({"a": "1"}), "alpha", **V1).obj)
    new = with_managed_fields(live, None)
    new["metadata"]["managedFields"] = sent
    assert track_update(live, new, "editor", **V1) is None
    assert track_update(with_managed_fields(live, None), config({"a": "9"}), "editor", **V1) is None


def test_unreadable_entries_in_a_request_are_ignored_for_the_live_ones() -> None:
    live = stored(apply(None, config({"a": "1"}), "alpha", **V1).obj)
    sent = [{"manager": "x", "operation": "Sometimes", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]
    entries = track_update(live, with_managed_fields(live, sent), "editor", **V1)
    assert entries == live["metadata"]["managedFields"]


def test_an_eleventh_writer_merges_the_two_oldest() -> None:
    obj = stored(config({"x": "0"}))
    obj = with_managed_fields(obj, track_update(None, obj, "first", **V1))
    for number in range(MAX_UPDATE_MANAGERS + 2):
        new = {**obj, "data": {**obj["data"], f"k{number:02}": "1"}}
        entries = track_update(obj, new, f"w{number:02}", **{**V1, "now": NOW + timedelta(minutes=number + 1)})
        obj = with_managed_fields(new, entries)
    names = [entry["manager"] for entry in obj["metadata"]["managedFields"]]
    assert len(names) == MAX_UPDATE_MANAGERS
    assert names[0] == "ancient-changes"
    assert owners(obj)["ancient-changes"]["f:data"].keys() == {".", "f:x", "f:k00", "f:k01", "f:k02"}


def test_managed_fields_in_an_applied_configuration_are_refused() -> None:
    with pytest.raises(BadRequest, match=r"metadata.managedFields must be nil"):
        apply(None, config(managedFields=[{"manager": "x"}]), "alpha", **V1)


def test_another_kind_than_the_live_one_is_refused() -> None:
    live = stored(apply(None, config(), "alpha", **V1).obj)
    with pytest.raises(BadRequest, match=r"invalid object type: /v1, Kind=Secret"):
        apply(live, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}, "alpha", **V1)


def test_a_list_entry_without_its_key_is_keyed_by_the_zero_value_in_built_in_types() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"name": "x"}]}}
    made = apply(None, service, "alpha", schema=schema_for(GVK("", "v1", "Service")), api_version="v1", now=NOW).obj
    assert 'k:{"port":0,"protocol":"TCP"}' in owners(made)["alpha"]["f:spec"]["f:ports"]


def test_a_list_entry_without_its_key_is_refused_in_custom_types() -> None:
    entries = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"]}
    entries["items"] = {"type": "object", "properties": {"port": {"type": "integer"}, "name": {"type": "string"}}}
    schema = Schema.from_openapi({"type": "object", "properties": {"ports": entries}}, resource=True)
    crew = {"apiVersion": "example.com/v1", "kind": "Crew", "metadata": {"name": "s"}, "ports": [{"name": "x"}]}
    with pytest.raises(ApiError) as refusal:
        apply(None, crew, "alpha", schema=schema, api_version="example.com/v1", now=NOW)
    assert refusal.value.message == (
        "failed to create typed patch object (/s; example.com/v1, Kind=Crew): .ports: element 0: associative list "
        'with keys has an element that omits all key fields ["port"] (and doesn\'t have default values '
        "for any key fields)"
    )


def test_reset_fields_are_neither_owned_nor_written() -> None:
    live = {**stored(config({"a": "1"})), "status": {"phase": "Old"}}
    applied = {**config({"b": "2"}), "status": {"phase": "New"}}
    result = apply(live, applied, "alpha", schema=None, api_version="v1", now=NOW, reset=reset_fields("status")).obj
    assert result["status"] == {"phase": "Old"}
    assert "f:status" not in owners(result)["alpha"]


def test_kubectl_takes_over_what_its_client_side_apply_vouches_for() -> None:
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"}}\n'
    live = stored(config({"a": "1"}, annotations={LAST_APPLIED: text}))
    live = with_managed_fields(live, track_update(None, live, "kubectl-client-side-apply", **V1))
    result = apply(live, config({"a": "2"}), "kubectl", **V1).obj
    assert result["data"] == {"a": "2"}
    assert '"a":"2"' in result["metadata"]["annotations"][LAST_APPLIED]
    with pytest.raises(Conflict):
        apply(live, config({"a": "2"}), "gitops", **V1)


def test_an_upgrade_hands_client_side_entries_to_the_applier() -> None:
    live = stored(config({"a": "1"}, annotations={LAST_APPLIED: "{}", "note": "x"}))
    live = with_managed_fields(live, track_update(None, live, "kubectl-client-side-apply", **V1))
    upgraded = upgrade_managed_fields(live, frozenset({"kubectl-client-side-apply"}), "kubectl")
    (entry,) = upgraded["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl", "Apply")
    assert f"f:{LAST_APPLIED}" not in entry["fieldsV1"]["f:metadata"]["f:annotations"]
    assert upgrade_managed_fields(upgraded, frozenset({"kubectl-client-side-apply"}), "kubectl") is upgraded


def test_times_alone_are_no_change() -> None:
    live = stored(apply(None, config({"a": "1"}), "alpha", **V1).obj)
    later = copy.deepcopy(live)
    later["metadata"]["managedFields"][0]["time"] = "2027-01-01T00:00:00Z"
    assert keep_times(live, later) is live
    assert keep_times(live, {**later, "data": {"a": "2"}})["data"] == {"a": "2"}


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["x", "y"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    ),
    max_leaves=8,
)
SPECS = st.dictionaries(st.sampled_from("pqr"), VALUES, max_size=3)
OPEN = Schema.from_openapi({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, resource=True)


def boat(spec: Any) -> Obj:
    return {"apiVersion": "x.io/v1", "kind": "Boat", "metadata": {"name": "b", "uid": "u"}, "spec": spec}


@given(SPECS, SPECS, SPECS)
def test_apply_is_idempotent_and_leaves_its_inputs_alone(first: Any, second: Any, third: Any) -> None:
    options: dict[str, Any] = {"schema": OPEN, "api_version": "x.io/v1", "now": NOW, "force": True}
    live = apply(None, boat(first), "alpha", **options).obj
    live = apply(live, boat(second), "beta", **options).obj
    before = copy.deepcopy((live, third))
    once = apply(live, boat(third), "alpha", **options).obj
    assert (live, third) == before
    assert apply(once, boat(third), "alpha", **options).obj is once


@pytest.mark.parametrize(
    ("limit", "argument", "fits"), [("1", "x", True), (1, "x", True), (1.5, "x", True), ("1", 5, False)]
)
def test_quantities_may_be_numbers_and_other_texts_may_not(limit: Any, argument: Any, fits: bool) -> None:
    container = {"name": "c", "image": "x", "args": [argument], "resources": {"limits": {"cpu": limit}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    options: dict[str, Any] = {"schema": schema_for(GVK("", "v1", "Pod")), "api_version": "v1", "now": NOW}
    if fits:
        assert apply(None, pod, "alpha", **options).created
    else:
        with pytest.raises(ApiError, match=r"\.spec\.containers.*\.args\[0\]: expected string, got .*Value:5"):
            apply(None, pod, "alpha", **options)
