"""The scripted cluster of the recorded sync runs: rules of calls, time in steps, discovery.

Written from the description of the recordings; knows nothing of the engine under test.
"""

from __future__ import annotations

import copy
import fnmatch
from collections import Counter
from typing import Any

from syncline.gitops.sync.kinds import KindTable
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    ObjectRef,
    ResourceInfo,
    finalizers,
    gvk_of,
    name_of,
    namespace_of,
    owner_references,
)

NAMESPACED = {
    "v1": "ConfigMap Secret Service ServiceAccount Pod PersistentVolumeClaim ResourceQuota LimitRange "
    "ReplicationController",
    "apps/v1": "Deployment StatefulSet DaemonSet ReplicaSet",
    "batch/v1": "Job CronJob",
    "rbac.authorization.k8s.io/v1": "Role RoleBinding",
    "networking.k8s.io/v1": "Ingress NetworkPolicy",
    "policy/v1": "PodDisruptionBudget",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "argoproj.io/v1alpha1": "Workflow Application",
}
CLUSTER_SCOPED = {
    "v1": "Namespace PersistentVolume",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding",
    "networking.k8s.io/v1": "IngressClass",
    "storage.k8s.io/v1": "StorageClass",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "apiregistration.k8s.io/v1": "APIService",
}
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CODES = {"NotFound": 404, "Conflict": 409, "Forbidden": 403, "Invalid": 422}


class CallError(Exception):
    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


def plural_of(kind: str) -> str:
    lower = kind.lower()
    if lower.endswith("y"):
        return lower[:-1] + "ies"
    return lower + ("es" if lower.endswith("s") else "s")


def matches(pattern: str, key: str) -> bool:
    parts, found = pattern.split("/"), key.split("/")
    return len(parts) == len(found) and all(fnmatch.fnmatchcase(f, p) for p, f in zip(parts, found))


def merge_patch(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


class Thing:
    """A stored object and what is still to happen to it."""

    def __init__(self, obj: Obj, managed: bool = True) -> None:
        self.obj = obj
        self.managed = managed
        self.visible_at = 0
        self.changes: list[tuple[int, dict[str, Any]]] = []
        self.gone_at: int | None = None
        """From which step on it may disappear; None: not being deleted."""


class World:
    def __init__(self, script: dict[str, Any], live: list[Obj], namespace: str) -> None:
        self.script = script
        self.namespace = namespace
        self.step = 0
        self.things: dict[str, Thing] = {}
        self.counts: dict[tuple[int, str], int] = {}
        self.uids = 0
        self.names = 0
        self.created: Counter[str] = Counter()
        self.kinds: dict[GVK, ResourceInfo] = {}
        self.calls: list[list[dict[str, Any]]] = []
        self.dry_calls: list[list[dict[str, Any]]] = []
        self._serve_known_kinds()
        for obj in live:
            self._store(copy.deepcopy(obj))

    # Kinds

    def _serve_known_kinds(self) -> None:
        for table, namespaced in ((NAMESPACED, True), (CLUSTER_SCOPED, False)):
            for version, kinds in table.items():
                for kind in kinds.split():
                    self._serve(version, kind, plural_of(kind), namespaced, VERBS)
        self._serve_scripted()

    def _serve(self, api: str, kind: str, plural: str, namespaced: bool, verbs: tuple[str, ...]) -> None:
        group, _, version = api.rpartition("/")
        self.kinds[GVK(group, version, kind)] = ResourceInfo(group, version, kind, plural, namespaced, verbs)

    def _serve_scripted(self) -> None:
        for api in self.script.get("apis", []):
            if api.get("fromStep", 0) <= self.step:
                group, version = api.get("group", ""), api["version"]
                plural = api.get("plural") or plural_of(api["kind"])
                verbs = tuple(api["verbs"]) if "verbs" in api else VERBS
                where = f"{group}/{version}" if group else version
                self._serve(where, api["kind"], plural, bool(api.get("namespaced", False)), verbs)

    def _learn(self, obj: Obj) -> None:
        if gvk_of(obj).kind != "CustomResourceDefinition":
            return
        spec = obj.get("spec", {})
        names = spec.get("names", {})
        if not names.get("kind"):
            return
        plural = names.get("plural") or plural_of(names["kind"])
        for version in spec.get("versions", []):
            api = f"{spec['group']}/{version['name']}"
            self._serve(api, names["kind"], plural, spec.get("scope") == "Namespaced", VERBS)

    def table(self) -> KindTable:
        return KindTable(dict(self.kinds))

    def namespaced(self, group: str, kind: str) -> bool | None:
        return self.table().namespaced(GroupKind(group, kind))

    def key_of(self, obj: Obj) -> str:
        gvk = gvk_of(obj)
        where = "" if self.namespaced(gvk.group, gvk.kind) is False else namespace_of(obj)
        return f"{gvk.group}/{gvk.kind}/{where}/{name_of(obj)}"

    # Storing

    def _store(self, obj: Obj) -> None:
        meta = obj.setdefault("metadata", {})
        if not meta.get("uid"):
            self.uids += 1
            meta["uid"] = f"uid-{self.uids}"
        meta.setdefault("generation", 1)
        thing = Thing(obj)
        if meta.get("deletionTimestamp"):
            thing.gone_at = 0
        self.things[self.key_of(obj)] = thing
        self._learn(obj)

    def _sweep(self, key: str) -> None:
        thing = self.things.get(key)
        if thing is None or thing.gone_at is None or thing.gone_at < 0 or finalizers(thing.obj):
            return
        if thing.gone_at <= self.step:
            del self.things[key]

    # Time

    def begin(self, step: int) -> None:
        self.step = step
        self.calls, self.dry_calls = [], []
        self._serve_scripted()
        for key in list(self.things):
            self._change(key)
            self._sweep(key)
        for event in self.script.get("events", []):
            if event["step"] == step:
                self._happen(event)

    def _change(self, key: str) -> None:
        thing = self.things[key]
        due = [change for when, change in thing.changes if when <= self.step]
        thing.changes = [(when, change) for when, change in thing.changes if when > self.step]
        for change in due:
            if key in self.things:
                self._apply_change(key, change)

    def _apply_change(self, key: str, change: dict[str, Any]) -> None:
        thing = self.things.get(key)
        if thing is None:
            return
        if "status" in change:
            thing.obj = {**thing.obj, "status": copy.deepcopy(change["status"])}
        if "patch" in change:
            thing.obj = merge_patch(thing.obj, change["patch"])
            self._sweep(key)
        if change.get("delete"):
            self._delete(key)
        if change.get("remove"):
            self.things.pop(key, None)

    def _happen(self, event: dict[str, Any]) -> None:
        if "create" in event:
            self._store(copy.deepcopy(event["create"]))
        else:
            self._apply_change(event["object"], event)

    # What takes part

    def taking_part(self, targets: set[str], own_namespaces: set[str]) -> dict[ObjectRef, Obj]:
        """Copies of the managed objects, and of those whose key is a target's."""
        found: dict[ObjectRef, Obj] = {}
        for key, thing in self.things.items():
            gvk = gvk_of(thing.obj)
            if self.namespaced(gvk.group, gvk.kind) is None or thing.visible_at > self.step:
                continue
            if key in targets or self._is_managed(key, thing.obj, own_namespaces):
                found[ObjectRef.parse(key)] = copy.deepcopy(thing.obj)
        return found

    def _is_managed(self, key: str, obj: Obj, own_namespaces: set[str]) -> bool:
        if owner_references(obj) or gvk_of(obj).kind == "CustomResourceDefinition" or key in own_namespaces:
            return False
        return not any(matches(pattern, key) for pattern in self.script.get("unmanaged", []))

    # Calls

    def refuse(self, key: str, op: str, *, dry: bool = False, force: bool = False) -> None:
        """Raises what the error rules say."""
        for index, rule in enumerate(self.script.get("errors", [])):
            write = rule["op"] == "write" and op in ("apply", "create", "replace", "update")
            if not (write or rule["op"] == op) or rule.get("dryRun", False) != dry or not matches(rule["match"], key):
                continue
            when = rule.get("when")
            if when and (when == "live") != (key in self.things):
                continue
            if rule.get("unlessForce") and force:
                continue
            self.counts[index, key] = self.counts.get((index, key), 0) + 1
            if rule.get("attempts") and self.counts[index, key] not in rule["attempts"]:
                continue
            if not rule.get("fromStep", 0) <= self.step <= rule.get("toStep", self.step):
                continue
            raise CallError(rule["error"], rule.get("reason", ""))

    def read(self, key: str) -> Obj:
        self.refuse(key, "get")
        return copy.deepcopy(self._found(key).obj)

    def _found(self, key: str) -> Thing:
        thing = self.things.get(key)
        if thing is None:
            ref = ObjectRef.parse(key)
            raise CallError(f'{self._resource(ref)} "{ref.name}" not found', "NotFound")
        return thing

    def _resource(self, ref: ObjectRef) -> str:
        info = next(i for g, i in self.kinds.items() if (g.group, g.kind) == (ref.group, ref.kind))
        return info.group_resource

    def put(self, key: str, left: list[str]) -> None:
        """Take over finalizers only."""
        self.refuse(key, "put")
        thing = self._found(key)
        thing.obj = {**thing.obj, "metadata": {**thing.obj["metadata"], "finalizers": left}}
        self._sweep(key)

    def delete(self, key: str) -> None:
        self.refuse(key, "delete")
        self._found(key)
        self._delete(key)

    def _delete(self, key: str) -> None:
        thing = self.things.get(key)
        if thing is None or thing.gone_at is not None:
            return
        steps = next((r["steps"] for r in self.script.get("onDelete", []) if matches(r["match"], key)), 0)
        thing.obj = merge_patch(thing.obj, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        thing.gone_at = -1 if steps < 0 else self.step + steps
        self._sweep(key)

    def migrate(self, key: str) -> None:
        self.refuse(key, "patch")
        thing = self._found(key)
        entries = thing.obj["metadata"].get("managedFields", [])
        kept = [entry for entry in entries if entry.get("operation") != "Update"]
        thing.obj = {**thing.obj, "metadata": {**thing.obj["metadata"], "managedFields": kept}}

    def write(self, op: str, target: Obj, *, dry: bool, force: bool = False, server_side: bool = False) -> str:
        """apply, create, replace or update; returns kubectl's message."""
        gvk = gvk_of(target)
        key = self.key_of(target)
        self.refuse(key, op, dry=dry, force=force)
        if gvk not in self.kinds:
            raise CallError(f'no matches for kind "{gvk.kind}" in version "{gvk.api_version}"')
        info = self.kinds[gvk]
        if not name_of(target) and op != "create":
            raise CallError(f"from {target['metadata'].get('generateName', '')}: cannot use generate name with apply")
        self._need_namespace(info, target, dry)
        label = f"{gvk.kind.lower()}{'.' + gvk.group if gvk.group else ''}/{name_of(target)}"
        exists = key in self.things
        if op == "create":
            return self._create_call(info, target, key, label, dry)
        if op != "apply" and not exists:
            raise CallError(f'{info.group_resource} "{name_of(target)}" not found', "NotFound")
        if dry:
            return f"{label} {self._dry_word(op, exists)} (dry run)"
        return self._change_call(op, target, key, label, force, server_side)

    def _need_namespace(self, info: ResourceInfo, target: Obj, dry: bool) -> None:
        if not self.script.get("enforceNamespaces") or dry or not info.namespaced:
            return
        if f"/Namespace//{namespace_of(target)}" not in self.things:
            raise CallError(f'namespaces "{namespace_of(target)}" not found', "NotFound")

    @staticmethod
    def _dry_word(op: str, exists: bool) -> str:
        if op == "apply":
            return "configured" if exists else "created"
        return "replaced"

    def _create_call(self, info: ResourceInfo, target: Obj, key: str, label: str, dry: bool) -> str:
        if dry:
            return f"{label} created (dry run)"
        obj = copy.deepcopy(target)
        if not name_of(obj):
            self.names += 1
            obj["metadata"]["name"] = f"{obj['metadata'].get('generateName', '')}{self.names:05d}"
            key = self.key_of(obj)
            label += obj["metadata"]["name"]
        elif key in self.things:
            raise CallError(f'{info.group_resource} "{name_of(obj)}" already exists', "AlreadyExists")
        self._create(obj, key)
        return f"{label} created"

    def _create(self, target: Obj, key: str) -> None:
        obj = copy.deepcopy(target)
        obj.pop("status", None)
        gvk = gvk_of(obj)
        if self.namespaced(gvk.group, gvk.kind) is False:
            obj["metadata"].pop("namespace", None)
        obj["metadata"]["uid"] = ""
        self.created[key] += 1
        obj["metadata"]["generation"] = 1
        self._store(obj)
        self.things[key].visible_at = self.step + 1
        self._react(key, created=True)

    def _change_call(self, op: str, target: Obj, key: str, label: str, force: bool, server_side: bool) -> str:
        exists = key in self.things
        said = f"{label} serverside-applied" if server_side else ""
        if not exists:
            self._create(target, key)
            return said or f"{label} created"
        forced = force and (op == "replace" or self._has_unless_force(key))
        if forced and not server_side:
            del self.things[key]
            self._create(target, key)
            return f"{label} replaced" if op == "replace" else f"{label} configured"
        changed = self._overwrite(op, target, key)
        if op == "replace":
            return f"{label} replaced"
        return said or f"{label} {'configured' if changed else 'unchanged'}"

    def _has_unless_force(self, key: str) -> bool:
        return any(r.get("unlessForce") and matches(r["match"], key) for r in self.script.get("errors", []))

    def _overwrite(self, op: str, target: Obj, key: str) -> bool:
        thing = self.things[key]
        old = thing.obj
        new = copy.deepcopy(target)
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
        meta, before = new["metadata"], old["metadata"]
        meta.pop("namespace", None)
        for name in ("namespace", "uid", "generation", "resourceVersion", "deletionTimestamp"):
            meta.pop(name, None)
            if name in before:
                meta[name] = before[name]
        if op == "apply":
            if "managedFields" in before:
                meta["managedFields"] = before["managedFields"]
            both = list(dict.fromkeys([*finalizers(old), *finalizers(target)]))
            if both:
                meta["finalizers"] = both
        changed = bool(new != old)
        if _spec(new) != _spec(old):
            meta["generation"] = before.get("generation", 0) + 1
        thing.obj = new
        self._learn(new)
        if changed:
            self._react(key, created=False)
        self._sweep(key)
        return changed

    def _react(self, key: str, *, created: bool) -> None:
        for rule in self.script.get("onApply", []):
            if not matches(rule["match"], key) or (rule.get("when") == "created" and not created):
                continue
            thing = self.things[key]
            thing.changes = []
            if created:
                thing.visible_at += rule.get("visibleAfter", 0)
            for change in rule.get("changes", []):
                thing.changes.append((self.step + change.get("after", 0), change))
            if any(when <= self.step for when, _ in thing.changes):
                self._change(key)
            return


def _spec(obj: Obj) -> Obj:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}
