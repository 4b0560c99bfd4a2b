"""What projects permit, as Argo CD answers (``conformance/gitops/project.jsonl``; behaviours 15 to 29)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.recordings import cases, judge

from syncline.argo.project import (
    ProjectError,
    merge_global,
    permits_app_namespace,
    permits_destination,
    permits_kind,
    permits_resource,
    permits_source,
    sync_permission,
    validate_project,
)
from syncline.kube.objects import Obj, ResourceInfo, api_version


def _clusters(given: dict[str, Any]) -> list[dict[str, str]]:
    return list(given.get("projectClusters") or [])


def _sync_permission(project: Obj, given: dict[str, Any]) -> str | None:
    group, kind = given.get("group", ""), given["kind"]
    known = given.get("apiResource", True)
    info = ResourceInfo(group, "v1", kind, kind.lower(), given.get("namespaced", False)) if known else None
    obj = {
        "apiVersion": api_version(group, "v1"),
        "kind": kind,
        "metadata": {"name": given.get("name", ""), "namespace": given.get("namespace", "")},
    }
    destination = {"server": given.get("server", ""), "name": given.get("clusterName", "")}
    return sync_permission(project, obj, info, destination, _clusters(given)) or None


def _validated(project: Obj) -> str | None:
    try:
        validate_project(project)
    except ProjectError as error:
        return str(error)
    return None


def _answer(given: dict[str, Any]) -> dict[str, Any]:
    project = given["project"]
    server, cluster, namespace = given.get("server", ""), given.get("clusterName", ""), given.get("namespace", "")
    group, kind, name = given.get("group", ""), given.get("kind", ""), given.get("name", "")
    match given["op"]:
        case "source":
            return {"permitted": permits_source(project, given["repoURL"])}
        case "destination":
            return {"permitted": permits_destination(project, server, cluster, namespace, _clusters(given))}
        case "group-kind":
            return {"permitted": permits_kind(project, group, kind, name, namespaced=given["namespaced"])}
        case "resource":
            place = (namespace, server, cluster, _clusters(given))
            return {"permitted": permits_resource(project, group, kind, name, *place)}
        case "sync-permission":
            return {"error": _sync_permission(project, given)}
        case "app-namespace":
            return {"permitted": permits_app_namespace(project, given["appNamespace"], "argocd")}
        case "validate":
            return {"error": _validated(project)}
        case "merge-global":
            return {"spec": merge_global(project, given["globalProject"])["spec"]}
    raise AssertionError(given["op"])


@pytest.mark.parametrize("case", cases("project"), ids=lambda case: case["id"])
def test_a_project_permits_what_upstream_permits(case: dict[str, Any]) -> None:
    got, expect = _answer(case["input"]), dict(case["expect"])
    prefix = expect.pop("errorPrefix", None)
    if prefix is not None:
        judge(case, str(got["error"]).startswith(prefix), got)
    else:
        judge(case, got == expect, got)
