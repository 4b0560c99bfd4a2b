"""``status.relatedObjects`` of a policy: what it concerns, whether that complies, and what it has created; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from syncline.kube.objects import Obj, ResourceInfo, dig
from syncline.patterns.policies.cluster.reasons import EXISTS
from syncline.patterns.policies.names import State

UNNAMED = "-"
"""Name of the entry that stands for all objects of a kind."""


def related(
    info: ResourceInfo, kind: str, namespace: str, name: str, compliant: bool, reason: str, properties: Obj | None
) -> Obj:
    """Return one entry. ``properties``: ``createdByPolicy``, ``uid``, ``diff``, ``matchesAfterDryRun``."""
    metadata: Obj = {"name": name} | ({"namespace": namespace} if info.namespaced and namespace else {})
    made: Obj = {
        "compliant": str(State.COMPLIANT if compliant else State.NON_COMPLIANT),
        "object": {"apiVersion": info.api_version, "kind": kind, "metadata": metadata},
        "reason": reason,
    }
    if not reason:
        del made["reason"]
    kept = {key: value for key, value in (properties or {}).items() if value not in ("", None)}
    if kept.get("matchesAfterDryRun") is False:
        del kept["matchesAfterDryRun"]
    return {**made, "properties": kept} if kept else made


def joined(entries: Iterable[Obj]) -> list[Obj]:
    """Return the entries with one for each object: the last that says something else."""
    made: dict[tuple[str, ...], Obj] = {}
    for one in entries:
        made[_identity(one)] = one
    return list(made.values())


def continued(entries: Iterable[Obj], before: Sequence[Obj]) -> list[Obj]:
    """Return the entries in order, each with what is known of who created its object, and of how it was corrected
    last."""
    known = {_identity(one): one.get("properties") for one in before}
    made = []
    for one in sorted(joined(entries), key=_order):
        old, new = known.get(_identity(one)), one.get("properties")
        if old and new and new.get("createdByPolicy") is False and old.get("uid"):
            kept = {key: old[key] for key in ("createdByPolicy", "uid") if key in old}
            if one.get("reason") == EXISTS and "diff" in old and old.get("uid") == new.get("uid"):
                kept = {"diff": old["diff"], **kept}
            one = {**one, "properties": {**new, **kept}}
        made.append(one)
    return made


def dropped(before: Sequence[Obj], after: Sequence[Obj]) -> tuple[Obj, ...]:
    """Return the entries whose objects are not related any more; all of them if nothing is."""
    kept = {_identity(one) for one in after}
    return tuple(one for one in before if _identity(one) not in kept)


def created_by(before: Sequence[Obj], uid: str) -> bool:
    """Return whether the policy has created the object with this uid."""
    return any(
        dig(one, "properties", "uid") == uid and dig(one, "properties", "createdByPolicy") is True for one in before
    )


def announced(before: Sequence[Obj], info: ResourceInfo, namespace: str, name: str) -> bool:
    """Return whether the policy was about to create an object when its status was written."""
    wanted = (info.api_version, info.kind, namespace, name)
    entries = (one.get("properties") or {} for one in before if _identity(one) == wanted)
    return any(one.get("createdByPolicy") is True and not one.get("uid") for one in entries)


def _identity(one: Obj) -> tuple[str, ...]:
    found = one.get("object") or {}
    metadata = found.get("metadata") or {}
    parts = (found.get("apiVersion"), found.get("kind"), metadata.get("namespace"), metadata.get("name"))
    return tuple(str(part or "") for part in parts)


def _order(one: Obj) -> tuple[str, str, str]:
    _, kind, namespace, name = _identity(one)
    return kind, namespace, name
