"""Narrow the nodes of a Pod while scheduling gates hold it.

The kind Pod calls it. Source: ``ValidatePodUpdate`` (1.36).
"""

from __future__ import annotations

from syncline.cluster.validation.engine.causes import invalid
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def placement_update_causes(fresh: Obj, before: Obj) -> list[FieldCause]:
    """Allow only additions to node terms of a gated Pod."""
    if not before.get("schedulingGates"):
        return []
    return [*_selector_causes(fresh, before), *_affinity_causes(fresh, before)]


def keep_node_affinity(fixed: Obj, before: Obj) -> None:
    """Copy node affinity, which may change while gates hold, from ``before``; in place."""
    old = before.get("affinity") or {}
    kept = {key: value for key, value in (fixed.get("affinity") or {}).items() if key != "nodeAffinity"}
    if old.get("nodeAffinity") is not None:
        kept["nodeAffinity"] = old["nodeAffinity"]
    if kept or before.get("affinity") is not None:
        fixed["affinity"] = kept
    else:
        fixed.pop("affinity", None)


def _selector_causes(fresh: Obj, before: Obj) -> list[FieldCause]:
    new = fresh.get("nodeSelector") or {}
    if all(new.get(key) == value for key, value in (before.get("nodeSelector") or {}).items()):
        return []
    text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [invalid("spec.nodeSelector", new, text)]


def _affinity_causes(fresh: Obj, before: Obj) -> list[FieldCause]:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    old: list[Obj] = dig(before, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms", default=[])
    new: list[Obj] = dig(fresh, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms", default=[])
    if old and len(old) != len(new):
        return [invalid(path, new, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")]
    return [
        invalid(f"{path}[{index}]", after, "only additions are allowed (no mutations or deletions)")
        for index, (was, after) in enumerate(zip(old, new))
        if not _only_adds(after, was)
    ]


def _only_adds(new: Obj, old: Obj) -> bool:
    """Return whether old entries come first and unchanged; an empty term, which matches nothing, must stay empty."""
    if not old.get("matchExpressions") and not old.get("matchFields"):
        return not new.get("matchExpressions") and not new.get("matchFields")
    return all(
        list(new.get(part) or ())[: len(old.get(part) or ())] == list(old.get(part) or ())
        for part in ("matchExpressions", "matchFields")
    )
