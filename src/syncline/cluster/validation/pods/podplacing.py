"""How the nodes that a Pod may go to are narrowed while gates hold it.

Called by the kind Pod. Source: ``ValidatePodUpdate`` (1.36).
"""

from __future__ import annotations

from syncline.cluster.validation.engine.causes import invalid
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

__all__ = ["keep_node_affinity", "placement_update_causes"]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def placement_update_causes(fresh: Obj, before: Obj) -> list[FieldCause]:
    """While gates hold, node terms are only added to."""
    if not before.get("schedulingGates"):
        return []
    return [*_selector_causes(fresh, before), *_affinity_causes(fresh, before)]


def keep_node_affinity(fixed: Obj, before: Obj) -> None:
    """The one part of the affinity that may change while gates hold is taken from ``before``; in place."""
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
    """What was there stands at the front; a term that was empty stays so, since it matches nothing."""
    if not old.get("matchExpressions") and not old.get("matchFields"):
        return not new.get("matchExpressions") and not new.get("matchFields")
    return all(
        list(new.get(part) or ())[: len(old.get(part) or ())] == list(old.get(part) or ())
        for part in ("matchExpressions", "matchFields")
    )
