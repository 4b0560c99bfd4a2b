"""Parses the annotations of an object that control a sync.

Called by the planner, the comparison and the deletion of applications. Takes any object, even an invalid one, and never
raises: invalid values are ignored. Sources: gitops-engine ``pkg/sync/{hook,syncwaves,ignore,resource}``, Argo CD
``controller/hook.go``; Helm's annotations apply where Argo CD's are absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

from syncline.kube.objects import Obj, annotations_of, finalizers

T = TypeVar("T")

HOOK = "argocd.argoproj.io/hook"
DELETE_POLICY = "argocd.argoproj.io/hook-delete-policy"
SYNC_WAVE = "argocd.argoproj.io/sync-wave"
SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
COMPARE_OPTIONS = "argocd.argoproj.io/compare-options"
HELM_HOOK = "helm.sh/hook"
HELM_WEIGHT = "helm.sh/hook-weight"
HELM_DELETE_POLICY = "helm.sh/hook-delete-policy"
HOOK_FINALIZER = "argocd.argoproj.io/hook-finalizer"
"""Keeps the object of a hook until its result is recorded."""
OPERATION = "syncline.dev/operation"
"""Stamp on objects that an operation creates once: ``<operation>/<phase>``. On a live object it proves that this
operation has created it, even after a crash that lost the operation's results."""


class HookType(StrEnum):
    """Hook types of the sync engine; PreDelete and PostDelete belong to the deletion of an application."""

    PRE_SYNC = "PreSync"
    SYNC = "Sync"
    POST_SYNC = "PostSync"
    SYNC_FAIL = "SyncFail"
    SKIP = "Skip"


class DeletePolicy(StrEnum):
    HOOK_SUCCEEDED = "HookSucceeded"
    HOOK_FAILED = "HookFailed"
    BEFORE_HOOK_CREATION = "BeforeHookCreation"


_HOOK_TYPES = {str(kind): kind for kind in HookType}
_POLICIES = {str(policy): policy for policy in DeletePolicy}
_HELM_TYPES = {
    "pre-install": HookType.PRE_SYNC,
    "pre-upgrade": HookType.PRE_SYNC,
    "post-install": HookType.POST_SYNC,
    "post-upgrade": HookType.POST_SYNC,
}
_HELM_POLICIES = {
    "before-hook-creation": DeletePolicy.BEFORE_HOOK_CREATION,
    "hook-succeeded": DeletePolicy.HOOK_SUCCEEDED,
    "hook-failed": DeletePolicy.HOOK_FAILED,
}
_DELETE_HOOKS = {"PreDelete": "pre-delete", "PostDelete": "post-delete"}
_GO_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_GO_INT_LIMIT = 2**63


def split_list(value: str) -> list[str]:
    """Return the entries of a comma-separated list in order: trimmed, without empty and repeated ones."""
    return list(dict.fromkeys(part for part in (raw.strip() for raw in value.split(",")) if part))


def _listed(obj: Obj, annotation: str) -> list[str]:
    value = annotations_of(obj).get(annotation)
    return split_list(value) if value else []


def _known(names: Iterable[str], table: Mapping[str, T]) -> list[T]:
    return [table[name] for name in names if name in table]


def go_int(text: str) -> int | None:
    """Parse a number like Go's ``strconv.Atoi``: ASCII digits with a sign; None for anything else."""
    if not _GO_INT.fullmatch(text):
        return None
    number = int(text)
    return number if -_GO_INT_LIMIT <= number < _GO_INT_LIMIT else None


def wave(obj: Obj) -> int:
    """Return the sync wave; if missing or invalid, Helm's weight, else 0."""
    annotations = annotations_of(obj)
    for annotation in (SYNC_WAVE, HELM_WEIGHT):
        number = go_int(annotations.get(annotation, ""))
        if number is not None:
            return number
    return 0


def hook_types(obj: Obj) -> list[HookType]:
    """Return the known hook types in order; Helm's if Argo CD's annotation has no known one."""
    types = _known(_listed(obj, HOOK), _HOOK_TYPES)
    return types or _known(_listed(obj, HELM_HOOK), _HELM_TYPES)


def is_helm_hook(obj: Obj) -> bool:
    value = annotations_of(obj).get(HELM_HOOK)
    return value is not None and value != "crd-install"


def is_skipped(obj: Obj) -> bool:
    """Return whether ``Skip`` is the only known hook type: the object is not applied, pruned or compared."""
    return hook_types(obj) == [HookType.SKIP]


def is_hook(obj: Obj) -> bool:
    """Return whether this is a hook of any type, known or not, except a skipped one."""
    if HOOK in annotations_of(obj):
        return not is_skipped(obj)
    return is_helm_hook(obj)


def is_ignored(obj: Obj) -> bool:
    """Return whether this is a hook without a known type: it is dropped."""
    return is_hook(obj) and not hook_types(obj)


def is_delete_hook(obj: Obj, kind: str) -> bool:
    """Return whether this is a delete hook. ``kind``: PreDelete or PostDelete."""
    return kind in _listed(obj, HOOK) or _DELETE_HOOKS[kind] in _listed(obj, HELM_HOOK)


def delete_policies(obj: Obj) -> list[DeletePolicy]:
    """Return Argo CD's delete policies, then Helm's; BeforeHookCreation if there are none."""
    own = _known(_listed(obj, DELETE_POLICY), _POLICIES)
    policies = own + _known(_listed(obj, HELM_DELETE_POLICY), _HELM_POLICIES)
    return policies or [DeletePolicy.BEFORE_HOOK_CREATION]


def has_hook_finalizer(obj: Obj) -> bool:
    return HOOK_FINALIZER in finalizers(obj)


def sync_options(obj: Obj) -> list[str]:
    return _listed(obj, SYNC_OPTIONS)


def has_option(obj: Obj | None, option: str, annotation: str = SYNC_OPTIONS) -> bool:
    """Return whether the annotation lists the option, by exact, case-sensitive match."""
    return obj is not None and option in _listed(obj, annotation)


def option_value(obj: Obj | None, name: str) -> str | None:
    """Return the value of the first sync option ``name=…`` of an object, else None."""
    return listed_value(_listed(obj, SYNC_OPTIONS) if obj is not None else (), name)


def listed_value(options: Iterable[str], name: str) -> str | None:
    """Return the value of the first ``name=…`` in a list of options, else None."""
    return next((option[len(name) + 1 :] for option in options if option.startswith(f"{name}=")), None)


def needs_deletion_approval(obj: Obj, app_options: Iterable[str] = ()) -> bool:
    """Return whether ``Delete=confirm`` or ``Prune=confirm`` is set; the object's value wins over the application's."""
    listed = list(app_options)
    for name in ("Delete", "Prune"):
        own = option_value(obj, name)
        if (listed_value(listed, name) if own is None else own) == "confirm":
            return True
    return False
