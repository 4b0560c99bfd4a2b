"""The ordered tasks of an operation as Argo CD plans them (``conformance/gitops/plan.jsonl``).

The comparison in front of the planner is another room's; here it is only as much as these cases need.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest
from tests.gitops.recordings import cases
from tests.gitops.sync.pairing import pair_objects

from syncline.apply.annotations import delete_policies, hook_types, is_delete_hook, is_hook
from syncline.base.clock import parse_time
from syncline.gitops.sync.kinds import KindTable
from syncline.gitops.sync.model import Rules, SelectedResource, SyncObserved, SyncOptions
from syncline.gitops.sync.task import Task
from syncline.gitops.sync.tasks import build_tasks, namespace_manifest
from syncline.kube.objects import (
    GVK,
    Obj,
    ObjectRef,
    ResourceInfo,
    annotations_of,
    gvk_of,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
)
from syncline.kube.schema.resources import builtin_resources

TRACKING = "argocd.argoproj.io/tracking-id"


def _kinds(extra: list[dict[str, Any]]) -> KindTable:
    served = {info.gvk: info for info in builtin_resources()}
    served[GVK("argoproj.io", "v1alpha1", "Application")] = ResourceInfo(
        "argoproj.io", "v1alpha1", "Application", "applications", True
    )
    for kind in extra:
        info = ResourceInfo(kind["group"], kind["version"], kind["kind"], kind["plural"], kind["namespaced"])
        served[info.gvk] = info
    return KindTable(served)


def _listed(entries: list[dict[str, str]], obj: Obj) -> bool:
    gvk = gvk_of(obj)
    return any(e["group"] in ("*", gvk.group) and e["kind"] in ("*", gvk.kind) for e in entries)


@dataclass(frozen=True)
class _Rules(Rules):
    project: dict[str, Any] | None

    def permits(self, obj: Obj, info: ResourceInfo) -> str:
        return _permits(self.project, obj, info)


def _permits(project: dict[str, Any] | None, obj: Obj, info: ResourceInfo) -> str:
    if project is None:
        return ""
    spec, name = project["spec"], project["metadata"]["name"]
    if info.namespaced:
        kind_allowed = not _listed(spec.get("namespaceResourceBlacklist", []), obj)
    else:
        kind_allowed = _listed(spec.get("clusterResourceWhitelist", []), obj)
    if not kind_allowed:
        return f"resource {info.group}:{info.kind} is not permitted in project {name}"
    where = namespace_of(obj)
    if info.namespaced and not any(d["namespace"] in ("*", where) for d in spec["destinations"]):
        return f"namespace {where} is not permitted in project '{name}'"
    return ""


def _targets(given: dict[str, Any], namespace: str, kinds: KindTable) -> list[Obj]:
    kept: dict[Any, Obj] = {}
    for index, manifest in enumerate(given["targets"]):
        target = copy.deepcopy(manifest)
        if kinds.namespaced(gvk_of(target).group_kind) is False:
            target["metadata"].pop("namespace", None)
        elif not namespace_of(target):
            target["metadata"]["namespace"] = namespace
        kept[ref_of(target) if name_of(target) else index] = target
    only_deletes = [is_delete_hook(t, "PreDelete") or is_delete_hook(t, "PostDelete") for t in kept.values()]
    return [t for t, drop in zip(kept.values(), only_deletes) if not (drop and is_hook(t) and not hook_types(t))]


def _is_ours(app: str, obj: Obj) -> bool:
    gvk = gvk_of(obj)
    tracked = annotations_of(obj).get(TRACKING, "").partition(":")
    own = {f"{gvk.group}/{gvk.kind}:{where}/{name_of(obj)}" for where in (namespace_of(obj), "web")}
    return tracked[0] == app and tracked[2] in own and not owner_references(obj)


def _observed(given: dict[str, Any]) -> SyncObserved:
    app, project = given["app"], given.get("project")
    sync, spec = app["operation"]["sync"], app["spec"]
    namespace = spec["destination"].get("namespace", "")
    kinds = _kinds(given.get("kinds") or [])
    targets = _targets(given, namespace, kinds)
    keys = {ref_of(target) for target in targets}
    live: dict[ObjectRef, Obj] = {}
    for obj in given["live"]:
        info = kinds.served.get(gvk_of(obj))
        permitted = info is None or not _permits(project, obj, info)
        if permitted and (ref_of(obj) in keys or _is_ours(app["metadata"]["name"], obj)):
            live[ref_of(obj)] = obj
    managed = (spec.get("syncPolicy") or {}).get("managedNamespaceMetadata")
    own = ObjectRef("", "Namespace", "", namespace)
    if managed is not None and own in live and own not in keys:
        targets.append(namespace_manifest(namespace, managed))
    paired = pair_objects(targets, live, namespace, kinds)
    selected = tuple(
        SelectedResource(r.get("group", ""), r["kind"], r["name"], r.get("namespace", ""))
        for r in sync.get("resources") or []
    )
    return SyncObserved(
        namespace=namespace,
        revision=sync.get("revision") or spec["source"].get("targetRevision", ""),
        started_at=parse_time(given["now"]),
        pairs=paired.pairs,
        hooks=paired.hooks,
        kinds=kinds,
        options=SyncOptions.parse(
            tuple(sync.get("syncOptions") or ()),
            prune=sync.get("prune", False),
            skip_hooks="apply" in (sync.get("syncStrategy") or {}),
            resources=selected,
            managed_namespace_metadata=managed,
        ),
        rules=_Rules(project),
        namespace_live=next((o for o in given["live"] if ref_of(o) == own), None),
    )


def _shown(task: Task) -> dict[str, Any]:
    shown = {
        "action": "prune" if task.is_prune else "hook" if task.is_hook else "apply",
        "group": task.gvk.group,
        "version": task.gvk.version,
        "kind": task.gvk.kind,
        "namespace": task.ref.namespace,
        "name": task.ref.name,
        "phase": str(task.phase),
        "wave": task.wave,
        "live": task.live is not None,
        "skipDryRun": task.skip_dry_run,
        "deleteBeforeCreation": task.delete_before_creation,
    }
    if task.is_hook:
        shown |= {"hookType": str(task.phase), "deletePolicies": [str(p) for p in delete_policies(task.obj)]}
    return shown


def _in_any_order(tasks: list[dict[str, Any]], groups: list[list[int]]) -> list[dict[str, Any]]:
    """The same list with those that may come in any order sorted among themselves."""
    ordered = list(tasks)
    for group in groups:
        if max(group, default=0) < len(tasks):
            for index, task in zip(sorted(group), sorted((tasks[i] for i in group), key=repr)):
                ordered[index] = task
    return ordered


@pytest.mark.parametrize("case", cases("plan"), ids=lambda c: f"{c['id']}-{c['about']}")
def test_the_tasks_come_in_the_order_in_which_upstream_has_them(case: dict[str, Any]) -> None:
    expect = case["expect"]
    if "refused" in expect:
        pytest.skip("refused by the comparison, before anything is planned")
    made = build_tasks(_observed(case["input"]))
    groups = expect["unordered"]
    wanted = [{k: v for k, v in task.items() if k != "waveMoved"} for task in expect["tasks"]]
    wanted = [dict(sorted(task.items())) for task in wanted]
    got = [dict(sorted(_shown(task).items())) for task in made.tasks]
    assert _in_any_order(got, groups) == _in_any_order(wanted, groups), case["about"]
    problems = {(str(p.task.ref), str(p.task.phase), p.message) for p in made.invalid}
    assert problems == {(e["key"], e["phase"], e["message"]) for e in expect["errors"]}
