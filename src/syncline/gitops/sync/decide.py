"""Decides the action of a task; each function takes one task.

Called by the reconcile and by the preview, so that both name the same actions. Rules: gitops-engine
``pkg/sync/sync_context.go`` (applyObject, pruneObject); deviations in ``docs/compatibility.md``.
"""

from __future__ import annotations

from syncline.apply.actions import (
    ApplyMode,
    ApplyObject,
    DeleteHook,
    DryRun,
    PruneObject,
    ReadObject,
    RemoveHookFinalizer,
)
from syncline.apply.annotations import OPERATION, has_option, is_hook, option_value
from syncline.apply.change import Change, classify_change
from syncline.apply.definition import is_definition
from syncline.gitops.sync.model import SyncObserved
from syncline.gitops.sync.task import Task
from syncline.gitops.sync.tasks import stamp_of, stamped
from syncline.kube.objects import Obj, annotations_of, dig, gvk_of, is_terminating, labels_of, uid_of

TRACKING_ID = "argocd.argoproj.io/tracking-id"
INSTANCE_LABEL = "app.kubernetes.io/instance"
"""Label that, like the tracking id, marks an object as created by an application."""
IGNORED = "ignored (requires pruning)"
NO_PRUNE = "ignored (no prune)"


def _option(task: Task, option: str) -> bool:
    return has_option(task.target, option) or has_option(task.live, option)


def is_stamped(observed: SyncObserved, task: Task) -> bool:
    """Return whether this attempt created the live object for this phase."""
    if not observed.durable or task.live is None or task.target is None:
        return False
    stamp = stamp_of(observed, task.phase)
    wanted = annotations_of(task.target).get(OPERATION) == stamp
    return wanted and annotations_of(task.live).get(OPERATION) == stamp


def is_stranger(observed: SyncObserved, task: Task) -> bool:
    """Return whether a live object with a hook's name is neither a hook nor tracked: it is not ours to delete."""
    if not observed.durable or task.live is None or is_hook(task.live):
        return False
    return TRACKING_ID not in annotations_of(task.live) and INSTANCE_LABEL not in labels_of(task.live)


def stranger_message(task: Task) -> str:
    return (
        f"{task.ref} exists already, is no hook and belongs to no application; the hook would delete it first: "
        "delete it yourself, or give the hook another name"
    )


def needs_confirmation(observed: SyncObserved, task: Task) -> bool:
    own = option_value(task.live, "Prune")
    return (observed.options.prune_option if own is None else own) == "confirm"


def prune_skipped(observed: SyncObserved, task: Task) -> str:
    """Return why a live object without manifest stays; empty if it is pruned."""
    if not observed.options.prune:
        return IGNORED
    own = option_value(task.live, "Prune")
    return NO_PRUNE if (observed.options.prune_option if own is None else own) == "false" else ""


def prune_action(observed: SyncObserved, task: Task) -> PruneObject:
    return PruneObject(
        task.ref,
        task.gvk,
        uid_of(task.obj),
        observed.options.prune_propagation,
        f"{task.ref} is no longer in the source",
    )


def delete_hook(observed: SyncObserved, task: Task, reason: str) -> DeleteHook:
    live = task.live if task.live is not None else task.obj
    return DeleteHook(
        task.ref, task.gvk, uid_of(live), observed.options.prune_propagation, reason, ending=is_terminating(live)
    )


def release_hook(task: Task, reason: str) -> RemoveHookFinalizer:
    assert task.live is not None, "only a live hook has a finalizer to take off"
    return RemoveHookFinalizer(task.ref, task.gvk, task.live, reason)


def read_object(task: Task) -> ReadObject:
    return ReadObject(task.ref, task.gvk, f"{task.ref} is waited for but not seen")


def apply_action(observed: SyncObserved, task: Task, *, dry: bool) -> ApplyObject:
    """Return the apply action of a manifest. A dry run never migrates field managers.

    Upstream's dry run calls no server, so it is never server-side. Ours does, and must not refuse what the apply would
    accept: a last-applied annotation may be too large for an object that will never have one.
    """
    assert task.target is not None, "a task without target is a prune"
    force = observed.options.force or _option(task, "Force=true")
    server_side = _server_side(observed, task.target) and (not dry or (observed.durable and not force))
    mode = _mode(observed, task, server_side, force)
    return ApplyObject(
        ref=task.ref,
        target=stamped(task.target, stamp_of(observed, task.phase)) if mode is ApplyMode.RECREATE else task.target,
        live=task.live,
        mode=mode,
        reason=_why(task),
        force=force,
        validate=observed.options.validate and not has_option(task.target, "Validate=false"),
        migrate_from=_manager_to_move(observed, task) if server_side and not dry else "",
        kind_may_appear=observed.durable and (task.gvk.group, task.gvk.kind) in observed.defined_kinds,
        propagation=observed.options.prune_propagation,
        observed=_is_observed(observed, task),
        new=observed.durable and task.replaces,
    )


def _is_observed(observed: SyncObserved, task: Task) -> bool:
    """Return whether the watch shows the object in the manifest's version, against which patches are computed."""
    if not observed.durable or not observed.rules.follows(task.gvk.group_kind):
        return False
    return task.live is None or gvk_of(task.live) == task.gvk


def dry_run(observed: SyncObserved, task: Task) -> DryRun:
    action = apply_action(observed, task, dry=True)
    as_new = action.mode is ApplyMode.RECREATE or task.delete_before_creation
    return DryRun(action, f"{task.ref} is checked before anything is changed", as_new)


def _why(task: Task) -> str:
    what = f"hook of {task.phase}" if task.is_hook else f"wave {task.wave} of {task.phase}"
    return f"{task.ref} is in the source ({what})"


def _server_side(observed: SyncObserved, target: Obj) -> bool:
    if has_option(target, "ServerSideApply=false"):
        return False
    return observed.options.server_side_apply or has_option(target, "ServerSideApply=true")


def _mode(observed: SyncObserved, task: Task, server_side: bool, force: bool) -> ApplyMode:
    replaced = observed.options.replace or _option(task, "Replace=true")
    protected = is_definition(task.obj) or task.gvk.kind == "Namespace"
    if task.live is not None and not protected and observed.durable and _is_recreated(task, replaced, force):
        return ApplyMode.RECREATE
    if not replaced:
        return ApplyMode.SERVER_SIDE if server_side else ApplyMode.CLIENT_SIDE
    if task.live is None:
        return ApplyMode.CREATE
    return ApplyMode.UPDATE if protected else ApplyMode.REPLACE


def _is_recreated(task: Task, replaced: bool, force: bool) -> bool:
    """Return whether to recreate: immutable fields changed and an option allows it, or Replace and Force are set."""
    assert task.target is not None and task.live is not None, "a change has two sides"
    return classify_change(task.target, task.live, replace=replaced, force=force).change is Change.RECREATE


def _manager_to_move(observed: SyncObserved, task: Task) -> str:
    options = observed.options
    if not options.client_side_apply_migration or task.live is None:
        return ""
    fields = dig(task.live, "metadata", "managedFields", default=[])
    owned = any(
        dig(entry, "manager") == options.migration_manager and dig(entry, "operation") == "Update"
        for entry in (fields if isinstance(fields, list) else ())
    )
    return options.migration_manager if owned else ""
