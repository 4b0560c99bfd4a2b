"""Explains why an object that is being deleted still exists: its finalizers and what they wait for.

The graph calls :func:`explain_deletion` before any other check. Pure.
"""

from __future__ import annotations

from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.explain.view import Found, View, one_line
from syncline.kube.objects import (
    GroupKind,
    Obj,
    dig,
    finalizers,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
    uid_of,
)

POD = GroupKind("", "Pod")
NAMESPACE = GroupKind("", "Namespace")
MAX_HOLDERS = 5
"""Maximum objects that an explanation names as blocking a deletion."""
KNOWN = {
    "foregroundDeletion": "the objects that it owns go first",
    "orphan": "the garbage collector takes the owner references off first",
    "kubernetes.io/pvc-protection": "pods still use the claim",
    "kubernetes.io/pv-protection": "a claim is still bound to it",
    "resources-finalizer.argocd.argoproj.io": "its resources are deleted first",
    "argocd.argoproj.io/hook-finalizer": "the sync that made the hook releases it at its end",
}


def explain_deletion(view: View, obj: Obj) -> Found:
    """Explain the deletion of ``obj``, which has a deletion timestamp; blocked if a finalizer remains."""
    held = finalizers(obj)
    holders = _holders(view, obj)
    message = _message(view, obj, held)
    return Found(
        Cause(
            subject=str(ref_of(obj)),
            state="Terminating",
            message=one_line(message),
            since=time_or_none(dig(obj, "metadata", "deletionTimestamp")),
            next_action=_next(obj, held, holders),
            evidence=(("uid", uid_of(obj)), *(("finalizer", name) for name in held)),
            because=holders,
        ),
        blocked=bool(held) or bool(holders),
    )


def _message(view: View, obj: Obj, held: list[str]) -> str:
    if ref_of(obj).group_kind == NAMESPACE:
        said = [
            str(each.get("message"))
            for each in dig(obj, "status", "conditions", default=[])
            if each.get("status") == "True" and each.get("message")
        ]
        return "; ".join(said) or "what is in it is being deleted"
    if not held:
        return "is being deleted"
    named = [f"{name} ({KNOWN[name]})" if name in KNOWN else name for name in held]
    return f"held by {'finalizers' if len(held) > 1 else 'finalizer'} {', '.join(named)}"


def _holders(view: View, obj: Obj) -> tuple[Cause, ...]:
    """Return the objects that must be deleted first, as far as they are readable."""
    found: list[Obj] = []
    if "foregroundDeletion" in finalizers(obj):
        found = [each for each in view.cluster.owned(uid_of(obj)) if _blocks(each, uid_of(obj))]
    elif "kubernetes.io/pvc-protection" in finalizers(obj):
        found = [pod for pod in view.cluster.objects(POD, namespace_of(obj)) if _uses(pod, name_of(obj))]
    return tuple(_holder(each) for each in found[:MAX_HOLDERS])


def _blocks(child: Obj, uid: str) -> bool:
    return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owner_references(child))


def _uses(pod: Obj, claim: str) -> bool:
    volumes = dig(pod, "spec", "volumes", default=[])
    return any(dig(volume, "persistentVolumeClaim", "claimName") == claim for volume in volumes)


def _holder(obj: Obj) -> Cause:
    held = finalizers(obj)
    state = "Terminating" if dig(obj, "metadata", "deletionTimestamp") else "Present"
    message = f"held by finalizers {', '.join(held)}" if held else "is still there"
    return Cause(str(ref_of(obj)), state, message, time_or_none(dig(obj, "metadata", "deletionTimestamp")))


def _next(obj: Obj, held: list[str], holders: tuple[Cause, ...]) -> str:
    unknown = [name for name in held if name not in KNOWN]
    if unknown:
        return f"see why the owner of finalizer {unknown[0]} does not release {ref_of(obj)}"
    if holders:
        return f"see what keeps {holders[0].subject}"
    return ""
