"""Drives the engine through a recorded run, as the controller would, and writes down what it does."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from tests.gitops.sync.pairing import pair_objects
from tests.gitops.sync.world import CallError, World

from syncline.apply.actions import (
    AfterWave,
    ApplyMode,
    ApplyObject,
    DeleteHook,
    DryRun,
    PruneObject,
    ReadObject,
    RemoveHookFinalizer,
    SyncAction,
)
from syncline.apply.annotations import HOOK_FINALIZER, hook_types, is_delete_hook, is_hook
from syncline.apply.health import Health, health_of
from syncline.apply.outcome import Outcome
from syncline.base.clock import parse_time
from syncline.gitops.sync.model import OperationPhase, ResultRow, Rules, SelectedResource, SyncObserved, SyncOptions
from syncline.gitops.sync.phases import SyncPhase
from syncline.gitops.sync.plan import plan_sync, record
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, finalizers, gvk_of, name_of, namespace_of

DEFAULT_REVISION = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334"
DEFAULT_START = "2026-01-01T00:00:00Z"
DEFAULT_STEPS = 8
CONFLICT_TRIES = 5
LEFTOVER = "left over"


@dataclass(frozen=True)
class _Rules(Rules):
    """What the case denies, and the health of built-in kinds alone."""

    deny: dict[str, Any]

    def permits(self, obj: Obj, info: ResourceInfo) -> str:
        return _permits(self.deny, obj, info)

    def health(self, obj: Obj) -> Health | None:
        return health_of(obj, scripted=False)


class Driver:
    """One recorded case. ``run`` returns what ``expect`` holds."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.script = given.get("world") or {}
        self.namespace = given["namespace"]
        self.world = World(self.script, given.get("live") or [], self.namespace)
        self.operations = self._operations()
        self.own_namespaces: set[str] = set()
        self.after_wave: dict[str, Any] | None = None

    def _operations(self) -> list[dict[str, Any]]:
        first = {
            name: self.given[name] for name in ("revision", "startedAt", "targets", "options") if name in self.given
        }
        first.setdefault("revision", DEFAULT_REVISION)
        first.setdefault("startedAt", DEFAULT_START)
        first.setdefault("targets", [])
        first.setdefault("options", {})
        operations = [first]
        for later in self.given.get("then") or []:
            started = parse_time(operations[-1]["startedAt"]) + timedelta(hours=1)
            operations.append({**operations[-1], "startedAt": started.isoformat(), **later})
        return operations

    def run(self) -> dict[str, Any]:
        steps: list[dict[str, Any]] = []
        number = attempt = 0
        state: tuple[OperationPhase, str, tuple[ResultRow, ...]] = (OperationPhase.RUNNING, "", ())
        for step in range(self.script.get("maxSteps", DEFAULT_STEPS)):
            self.world.begin(step)
            phase, message, rows = state
            if "terminateAtStep" in self.script and step >= self.script["terminateAtStep"]:
                phase, message = OperationPhase.TERMINATING, "operation is terminating"
            operation = self.operations[number]
            ended = self._pass(operation, phase, message, rows, step)
            lost = step in self.script.get("crashAtSteps", [])
            terminated = phase is OperationPhase.TERMINATING
            entry = {"step": step, "op": number, "attempt": attempt, "action": "terminate" if terminated else "sync"}
            steps.append({**entry, **self._described(ended), **({"lost": True} if lost else {})})
            if lost:
                continue
            state = ended
            if not ended[0].completed:
                continue
            retries = operation["options"].get("retries", 0)
            if ended[0] is not OperationPhase.SUCCEEDED and not terminated and attempt < retries:
                attempt += 1
                state = (OperationPhase.RUNNING, f"Retrying operation. Attempt #{attempt}", ())
            elif number + 1 < len(self.operations):
                number, attempt = number + 1, 0
                state = (OperationPhase.RUNNING, "", ())
            else:
                break
        return {"steps": steps, "live": sorted(self.world.things)}

    # The controller's part

    def _targets(self, operation: dict[str, Any]) -> list[Obj]:
        kept: dict[Any, Obj] = {}
        for index, manifest in enumerate(operation["targets"]):
            target = copy.deepcopy(manifest)
            gvk = gvk_of(target)
            if self.world.namespaced(gvk.group, gvk.kind) is False:
                target.setdefault("metadata", {}).pop("namespace", None)
            elif not namespace_of(target):
                target.setdefault("metadata", {})["namespace"] = self.namespace
            key = self.world.key_of(target) if name_of(target) else index
            kept.pop(key, None)
            kept[key] = target
        return [target for target in kept.values() if not _only_deletes(target)]

    def _observe(
        self, operation: dict[str, Any], phase: OperationPhase, message: str, rows: tuple[ResultRow, ...], step: int
    ) -> SyncObserved:
        targets = self._targets(operation)
        keys = {self.world.key_of(target) for target in targets}
        deny = operation["options"].get("deny") or {}
        live = {
            ref: obj
            for ref, obj in self.world.taking_part(keys, self.own_namespaces - keys).items()
            if not self._denied(deny, obj)
        }
        kinds = self.world.table()
        paired = pair_objects(targets, live, self.namespace, kinds)
        options = _options(operation["options"], step)
        observed = SyncObserved(
            namespace=self.namespace,
            revision=operation["revision"],
            started_at=parse_time(operation["startedAt"]),
            pairs=paired.pairs,
            hooks=paired.hooks,
            kinds=kinds,
            options=options,
            phase=phase,
            message=message,
            results=rows,
            in_sync=frozenset(ObjectRef.parse(key) for key in operation["options"].get("inSync") or []),
            rules=_Rules(deny),
        )
        return self._with_namespace(observed) if options.create_namespace else observed

    def _with_namespace(self, observed: SyncObserved) -> SyncObserved:
        try:
            return replace(observed, namespace_live=self.world.read(f"/Namespace//{self.namespace}"))
        except CallError as error:
            return observed if error.reason == "NotFound" else replace(observed, namespace_error=error.message)

    def _denied(self, deny: dict[str, Any], obj: Obj) -> bool:
        gvk = gvk_of(obj)
        if f"{gvk.group}/{gvk.kind}" in (deny.get("kinds") or []):
            return True
        scope = self.world.namespaced(gvk.group, gvk.kind)
        return bool(scope) and namespace_of(obj) in (deny.get("namespaces") or [])

    # One pass

    def _pass(
        self, operation: dict[str, Any], phase: OperationPhase, message: str, rows: tuple[ResultRow, ...], step: int
    ) -> tuple[OperationPhase, str, tuple[ResultRow, ...]]:
        self.after_wave = None
        self.wave_error = operation["options"].get("waveHookError")
        observed = self._observe(operation, phase, message, rows, step)
        now = observed.started_at + timedelta(seconds=step)
        while True:
            plan = plan_sync(observed, now)
            if plan.ended:
                return plan.phase, plan.message, plan.results
            observed = record(observed, plan, tuple(self._handle_step(step) for step in plan.steps))

    def _handle_step(self, actions: tuple[SyncAction, ...]) -> tuple[Outcome, ...]:
        calls: list[dict[str, Any]] = []
        outcomes = tuple(self._handle(action, calls) for action in actions)
        if not calls:
            return outcomes
        released_one_by_one = isinstance(actions[0], RemoveHookFinalizer) and LEFTOVER not in actions[0].reason
        groups = [[call] for call in calls] if released_one_by_one else [sorted(calls, key=lambda c: c["object"])]
        (self.world.dry_calls if isinstance(actions[0], DryRun) else self.world.calls).extend(groups)
        return outcomes

    def _handle(self, action: SyncAction, calls: list[dict[str, Any]]) -> Outcome:
        try:
            match action:
                case DryRun(of=apply):
                    return Outcome(True, self._apply(apply, calls, dry=True))
                case ApplyObject():
                    return Outcome(True, self._apply(action, calls, dry=False))
                case PruneObject() | DeleteHook():
                    key = self._real_key(action.ref)
                    calls.append({"op": "delete", "object": key, "propagation": action.propagation})
                    self.world.delete(key)
                    return Outcome(True)
                case RemoveHookFinalizer():
                    return self._release(action, calls)
                case ReadObject():
                    return Outcome(True, obj=self.world.read(self._real_key(action.ref)))
                case AfterWave():
                    return self._after_wave(action)
        except CallError as error:
            return Outcome(False, error.message, not_found=error.reason == "NotFound")

    def _real_key(self, ref: ObjectRef) -> str:
        if self.world.namespaced(ref.group, ref.kind) is False:
            ref = ref._replace(namespace="")
        return str(ref)

    def _apply(self, action: ApplyObject, calls: list[dict[str, Any]], *, dry: bool) -> str:
        if action.migrate_from:
            self._migrate(action, calls)
        server_side = action.mode is ApplyMode.SERVER_SIDE
        op = {ApplyMode.CLIENT_SIDE: "apply", ApplyMode.SERVER_SIDE: "apply"}.get(action.mode, str(action.mode))
        call: dict[str, Any] = {"op": op, "object": str(action.ref)}
        if action.force and op in ("apply", "replace"):
            call["force"] = True
        if server_side:
            call["serverSide"] = True
        if not action.validate and op in ("apply", "create"):
            call["noValidate"] = True
        if finalizers(action.target):
            call["finalizers"] = finalizers(action.target)
        calls.append(call)
        absent = self._real_key(action.ref) not in self.world.things
        message = self.world.write(op, action.target, dry=dry, force=action.force, server_side=server_side)
        if not dry and absent and (action.ref.group, action.ref.kind) == ("", "Namespace"):
            self._remember_namespace(action.ref)
        if op == "update":
            return f"{action.ref.kind}/{action.ref.name} updated"
        return message

    def _remember_namespace(self, ref: ObjectRef) -> None:
        key = f"/Namespace//{ref.name}"
        targets = {self.world.key_of(target) for operation in self.operations for target in operation["targets"]}
        if key not in targets:
            self.own_namespaces.add(key)

    def _migrate(self, action: ApplyObject, calls: list[dict[str, Any]]) -> None:
        key = self._real_key(action.ref)
        for last in range(CONFLICT_TRIES):
            calls.append({"op": "migrate", "object": key})
            try:
                self.world.migrate(key)
                return
            except CallError as error:
                if error.reason != "Conflict" or last == CONFLICT_TRIES - 1:
                    named = f"{action.ref.group} {action.ref.kind} {action.ref.namespace} {action.ref.name}"
                    why = f"Failed to perform client-side apply migration for {{{named}}}: {error.message}"
                    raise CallError(why) from error

    def _release(self, action: RemoveHookFinalizer, calls: list[dict[str, Any]]) -> Outcome:
        key = self._real_key(action.ref)
        live = action.live
        for _ in range(CONFLICT_TRIES):
            left = [name for name in finalizers(live) if name != HOOK_FINALIZER]
            calls.append({"op": "put", "object": key, **({"finalizers": left} if left else {})})
            try:
                self.world.put(key, left)
                return Outcome(True)
            except CallError as error:
                why = f"failed to update resource: failed to update resource: {error.message}"
                if error.reason == "NotFound":
                    return Outcome(True)
                if error.reason != "Conflict":
                    return Outcome(False, why)
            try:
                live = self.world.read(key)
            except CallError as error:
                if error.reason == "NotFound":
                    return Outcome(True)
                return Outcome(False, f"failed to get resource: failed to get resource: {error.message}")
            if HOOK_FINALIZER not in finalizers(live):
                return Outcome(True)
        return Outcome(False, why)

    def _after_wave(self, action: AfterWave) -> Outcome:
        self.after_wave = {"phase": action.phase, "wave": action.wave, "final": action.final}
        wanted = self.wave_error
        if wanted and (wanted["phase"], wanted.get("wave", 0)) == (action.phase, action.wave):
            return Outcome(False, wanted["error"])
        return Outcome(True)

    # What a step looks like

    def _described(self, ended: tuple[OperationPhase, str, tuple[ResultRow, ...]]) -> dict[str, Any]:
        phase, message, rows = ended
        order = {name: index for index, name in enumerate(SyncPhase)}
        listed = sorted(rows, key=lambda row: (order[row.sync_phase], str(row.ref)))
        return {
            "phase": str(phase),
            "message": message,
            "dryRun": self.world.dry_calls,
            "calls": self.world.calls,
            "results": [_row(row) for row in listed],
            **({"waveHook": self.after_wave} if self.after_wave else {}),
        }


def _row(row: ResultRow) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "group": row.ref.group,
        "kind": row.ref.kind,
        "namespace": row.ref.namespace,
        "name": row.ref.name,
        "syncPhase": str(row.sync_phase),
        "hookType": row.hook_type,
        "status": str(row.status),
        "hookPhase": str(row.hook_phase),
        "message": row.message,
    }
    return {**shown, **({"images": list(row.images)} if row.images else {})}


def _only_deletes(target: Obj) -> bool:
    deletes = is_delete_hook(target, "PreDelete") or is_delete_hook(target, "PostDelete")
    return deletes and is_hook(target) and not hook_types(target)


def _permits(deny: dict[str, Any], obj: Obj, info: ResourceInfo) -> str:
    gvk = gvk_of(obj)
    if f"{gvk.group}/{gvk.kind}" in (deny.get("kinds") or []):
        return f"resource {gvk.group}:{gvk.kind} is not permitted in project demo"
    if info.namespaced and namespace_of(obj) in (deny.get("namespaces") or []):
        return f"namespace {namespace_of(obj)} is not permitted in project 'demo'"
    return ""


def _options(given: dict[str, Any], step: int) -> SyncOptions:
    confirmed = given.get("pruneConfirmedFromStep")
    return SyncOptions(
        dry_run=given.get("dryRun", False),
        prune=given.get("prune", False),
        force=given.get("force", False),
        skip_hooks=given.get("skipHooks", False),
        resources=tuple(
            SelectedResource(r.get("group", ""), r["kind"], r["name"], r.get("namespace", ""))
            for r in given.get("resources") or []
        ),
        validate=given.get("validate", True),
        prune_last=given.get("pruneLast", False),
        replace=given.get("replace", False),
        server_side_apply=given.get("serverSideApply", False),
        skip_dry_run_on_missing=given.get("skipDryRunOnMissingResource", False),
        apply_out_of_sync_only=given.get("applyOutOfSyncOnly", False),
        prune_option=given.get("pruneOption", ""),
        prune_confirmed=confirmed is not None and step >= confirmed,
        prune_propagation=given.get("prunePropagation", "foreground").capitalize(),
        client_side_apply_migration=given.get("clientSideApplyMigration", True),
        migration_manager=given.get("migrationManager", "kubectl-client-side-apply"),
        create_namespace=given.get("createNamespace", False),
        managed_namespace_metadata=given.get("managedNamespaceMetadata"),
        wave_callback=True,
    )
