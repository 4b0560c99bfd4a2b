"""The table of built-in resources is what a Kubernetes 1.36 server discovers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.recorded import CONFORMANCE, absent

from syncline.kube.objects import ResourceInfo
from syncline.kube.schema.model import schema_for
from syncline.kube.schema.resources import builtin_resources, subresource_of

RECORDED = CONFORMANCE / "recorded"


def find(plural: str, group: str = "") -> ResourceInfo:
    return next(r for r in builtin_resources() if (r.plural, r.group) == (plural, group))


def entries(resource: ResourceInfo) -> dict[str, dict[str, Any]]:
    """The rows of an APIResourceList for one resource, as the server writes them."""
    made: dict[str, dict[str, Any]] = {}
    main: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    if resource.categories:
        main["categories"] = list(resource.categories)
    made[resource.plural] = main
    for name in resource.subresources:
        sub = subresource_of(resource, name)
        assert sub is not None
        row: dict[str, Any] = {"name": f"{resource.plural}/{name}", "singularName": "", "kind": sub.gvk.kind}
        row |= {"namespaced": resource.namespaced, "verbs": list(sub.verbs)}
        if sub.foreign:
            row |= {"group": sub.gvk.group, "version": sub.gvk.version}
        made[row["name"]] = row
    return made


def recorded_rows() -> list[tuple[str, dict[str, Any]]]:
    """Every resource row of the recorded discovery conversations, with its group version."""
    rows: list[tuple[str, dict[str, Any]]] = []
    for name in ("discovery-core.json", "discovery-groups.json"):
        for step in json.loads((RECORDED / name).read_text())["steps"]:
            path, body = step["get"], step["expect"].get("body")
            if isinstance(body, list):
                rows += [(path, row) for row in body]
            elif isinstance(body, dict) and path.startswith(("/api/", "/apis/")):
                rows += [(path, row) for key, row in body.items() if key.startswith("resources[")]
    return rows


@pytest.mark.skipif(not RECORDED.is_dir(), reason=absent(RECORDED))
def test_every_recorded_row_of_discovery_is_made_word_for_word() -> None:
    known = {r.path().rpartition("/")[0]: {} for r in builtin_resources()}  # type: dict[str, dict[str, Any]]
    for resource in builtin_resources():
        known[resource.path().rpartition("/")[0]] |= entries(resource)
    rows = recorded_rows()
    assert len(rows) > 30
    for path, row in rows:
        wanted = {key: value for key, value in row.items() if value is not None}
        assert known[path][row["name"]] == wanted


def test_every_built_in_resource_has_a_schema() -> None:
    assert [r.gvk for r in builtin_resources() if schema_for(r.gvk) is None] == []


def test_groups_come_in_discovery_order_and_newer_versions_first() -> None:
    groups = list(dict.fromkeys(r.group for r in builtin_resources()))
    assert groups[:4] == ["", "apiregistration.k8s.io", "apps", "events.k8s.io"]
    versions = [r.version for r in builtin_resources() if r.group == "autoscaling"]
    assert versions == ["v2", "v1"]


def test_a_custom_resource_has_status_and_scale_of_their_usual_kinds() -> None:
    custom = ResourceInfo("example.com", "v1", "Crew", "crews", True, subresources=("status", "scale"))
    status, scale = subresource_of(custom, "status"), subresource_of(custom, "scale")
    assert status is not None and status.gvk == custom.gvk and not status.foreign
    assert scale is not None and scale.gvk.kind == "Scale" and scale.foreign
    assert subresource_of(custom, "log") is None


def test_an_eviction_is_a_kind_of_another_group() -> None:
    eviction = subresource_of(find("pods"), "eviction")
    assert eviction is not None and str(eviction.gvk) == "policy/v1, Kind=Eviction"
