"""Deleting an Application: what goes, in which order, and when the finalizer may go; pure.

Cascade: the highest wave first, the next when it is gone. Rules: ``finalizeApplicationDeletion`` and
``sort_delete.go`` of Argo CD (reference argocd-sync §7). PreDelete and PostDelete hooks are not run yet.
"""

from __future__ import annotations

from syncline.control.plan import Delete, Patch, Plan, Requeue
from syncline.gitops.application.observe import AppObserved
from syncline.gitops.application.view import AppView, instant
from syncline.gitops.deletion import deletion_rounds
from syncline.gitops.sync.annotations import listed_value, needs_deletion_approval, option_value
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, annotations_of, finalizers, is_terminating, owner_references, ref_of

__all__ = ["CASCADE", "plan_deletion"]

CASCADE = "resources-finalizer.argocd.argoproj.io"
"""Also with ``/foreground`` or ``/background``; the first in the list decides."""
OURS = (CASCADE, "pre-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io")
APPROVED = "argocd.argoproj.io/deletion-approved"
CRD_KIND = "CustomResourceDefinition"
WAIT_S = 30.0


def plan_deletion(seen: AppObserved) -> Plan:
    """The next step of a deletion; an application whose destination is not there is let go (upstream, stage 1)."""
    view = seen.view
    mine = [name for name in finalizers(view.obj) if name.startswith(OURS)]
    if not mine:
        return Plan(why="deleted without cascade: its resources stay")
    cascading = [name for name in mine if name.startswith(CASCADE)]
    if not cascading or not view.is_in(seen.clusters):
        return _release(view, mine, "nothing of it is left to delete")
    propagation = "Background" if cascading[0].endswith("/background") else "Foreground"
    ours = [obj for obj in _managed(seen) if _cascades(obj, view.sync_options)]
    ending = sorted(str(ref_of(obj)) for obj in ours if is_terminating(obj))
    if ending:
        why = f"waiting for deletion of {ending[0]}" + (f" and {len(ending) - 1} more" if len(ending) > 1 else "")
        return Plan(outcome=Requeue(WAIT_S, why), why=why)
    asking = [str(ref_of(obj)) for obj in ours if needs_deletion_approval(obj, view.sync_options)]
    if asking and not _approved(view):
        why = f"{asking[0]} goes only once the deletion is confirmed"
        return Plan(outcome=Requeue(WAIT_S, why, background=True), why=why)
    rounds = deletion_rounds(ours)
    if not rounds:
        return _release(view, mine, "all of its resources are gone")
    reason = f"Application {view.namespace}/{view.name} is deleted with cascade"
    step = tuple(Delete.of(obj, reason, propagation=propagation) for obj in rounds[0])
    return Plan(steps=(step,), outcome=Requeue(WAIT_S, "its resources are being deleted"), why=reason)


def _approved(view: AppView) -> bool:
    """The annotation names a time that is not before the deletion (behaviour 89)."""
    approved = instant(annotations_of(view.obj).get(APPROVED))
    asked = instant(view.obj["metadata"].get("deletionTimestamp"))
    return approved is not None and asked is not None and approved >= asked


def _managed(seen: AppObserved) -> list[Obj]:
    """Tracked as ours; an object that merely has the key of a manifest is not."""
    tracking = seen.settings.tracking
    instance = tracking.instance_of_app(seen.view.obj, seen.settings.control_namespace)
    return [obj for _, obj in sorted(seen.live.items()) if tracking.app_name(obj) == instance]


def _cascades(obj: Obj, options: tuple[str, ...]) -> bool:
    if ref_of(obj).kind == CRD_KIND or owner_references(obj):
        return False
    if annotations_of(obj).get("helm.sh/resource-policy") == "keep":
        return False
    own = option_value(obj, "Delete")
    return (listed_value(options, "Delete") if own is None else own) != "false"


def _release(view: AppView, mine: list[str], why: str) -> Plan:
    left = [name for name in finalizers(view.obj) if name not in mine]
    body = {"metadata": {"finalizers": left or None, "resourceVersion": view.obj["metadata"]["resourceVersion"]}}
    return Plan(steps=((Patch(APPLICATION, view.namespace, view.name, body, why),),), why=why)
