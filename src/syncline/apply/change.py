"""Classifies a change of one object in advance: update, replace, recreate, or refuse.

Called by the planner and by ``syncline plan``. Kubernetes rejects changes of immutable fields; this module lists them
for common built-in kinds (apimachinery validation of batch, apps, core and rbac). Fields that only the server sets are
not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from syncline.apply.annotations import has_option
from syncline.kube.objects import GroupKind, Obj, dig, gvk_of, name_of


class Change(StrEnum):
    UPDATE = "update"
    REPLACE = "replace"
    RECREATE = "recreate"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Classified:
    """``fields``: the immutable fields that differ; ``message``: why the change is refused, and how to proceed."""

    change: Change
    fields: tuple[str, ...] = ()
    message: str = ""


_WHOLE_TEMPLATE = ("spec.template", "spec.completions", "spec.selector", "spec.completionMode", "spec.podFailurePolicy")
_IMMUTABLE: dict[GroupKind, tuple[str, ...]] = {
    GroupKind("batch", "Job"): _WHOLE_TEMPLATE,
    GroupKind("apps", "Deployment"): ("spec.selector",),
    GroupKind("apps", "ReplicaSet"): ("spec.selector",),
    GroupKind("apps", "DaemonSet"): ("spec.selector",),
    GroupKind("apps", "StatefulSet"): (
        "spec.selector",
        "spec.serviceName",
        "spec.podManagementPolicy",
        "spec.volumeClaimTemplates",
    ),
    GroupKind("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    GroupKind("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    GroupKind("storage.k8s.io", "StorageClass"): ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    GroupKind("", "Secret"): ("type",),
}
_ALWAYS_RECREATED = frozenset(
    {
        GroupKind("rbac.authorization.k8s.io", "RoleBinding"),
        GroupKind("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    }
)
"""``kubectl auth reconcile``, which upstream runs first, recreates a binding when its role changes."""


_RECREATED_BY_REPLACE = frozenset({GroupKind("batch", "Job")})
"""``Replace=true`` alone recreates only Jobs: they run once, and the option is set to run them again. For a workload
with a changed selector or claim template, an application-wide ``Replace=true`` must not delete it with its pods; that
takes ``Force=true``."""


def immutable_fields(target: Obj, live: Obj) -> tuple[str, ...]:
    """Return the immutable fields whose values in ``target`` and ``live`` conflict."""
    changed = [path for path in _IMMUTABLE.get(gvk_of(target).group_kind, ()) if _differs(target, live, path)]
    if (target.get("immutable"), live.get("immutable")) != (None, None) and live.get("immutable") is True:
        changed += [field for field in ("data", "binaryData", "stringData") if _differs(target, live, field)]
    return tuple(changed)


def classify_change(target: Obj, live: Obj, *, replace: bool = False, force: bool = False) -> Classified:
    """Classify a change. ``replace`` and ``force``: options of the application or operation; the resource's annotations
    are read here (``Replace=true`` and ``Force=true``, on target or live object)."""
    fields = immutable_fields(target, live)
    replaced = replace or has_option(target, "Replace=true") or has_option(live, "Replace=true")
    forced = force or has_option(target, "Force=true") or has_option(live, "Force=true")
    if replaced and forced:
        return Classified(Change.RECREATE, fields)
    if not fields:
        return Classified(Change.REPLACE if replaced else Change.UPDATE)
    kind = gvk_of(target).group_kind
    if forced or kind in _ALWAYS_RECREATED or (replaced and kind in _RECREATED_BY_REPLACE):
        return Classified(Change.RECREATE, fields)
    return Classified(Change.REFUSE, fields, _refusal(target, fields))


def _refusal(target: Obj, fields: tuple[str, ...]) -> str:
    """Begin as the API does, since scripts look for its words."""
    what = f'{gvk_of(target).group_kind} "{name_of(target)}" is invalid'
    said = f"{what}: {', '.join(fields)} changed but the field is immutable; "
    forcing = "annotate the resource with argocd.argoproj.io/sync-options: Force=true"
    if gvk_of(target).group_kind in _RECREATED_BY_REPLACE:
        return (
            f"{said}either set the sync option Replace=true (on the resource or the application), or {forcing}, "
            "or make it a hook with the delete policy BeforeHookCreation (or give it a new name)"
        )
    return f"{said}either {forcing}, which deletes and recreates it, or give it a new name, or leave the field"


def _differs(target: Obj, live: Obj, path: str) -> bool:
    parts = path.split(".")
    wanted = dig(target, *parts)
    # The server fills in what a manifest omits.
    return wanted is not None and not _covers(dig(live, *parts), wanted)


def _covers(have: Any, wanted: Any) -> bool:
    """Return whether ``have`` equals ``wanted`` plus defaults."""
    if isinstance(wanted, Mapping):
        if not isinstance(have, Mapping):
            return not wanted
        return all(value is None or _covers(have.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(have, list):
            return not wanted
        return len(have) == len(wanted) and all(_covers(h, w) for h, w in zip(have, wanted))
    return bool(have == wanted) or (not wanted and have is None) or _same_number(have, wanted)


def _same_number(have: Any, wanted: Any) -> bool:
    return str(have) == str(wanted)
