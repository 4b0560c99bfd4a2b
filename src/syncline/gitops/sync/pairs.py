"""Bringing manifests and live objects together.

Called by the observation of an application with its targets (already namespaced) and the live objects that take part.
Rules: gitops-engine ``pkg/sync/reconcile.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from syncline.gitops.sync.annotations import is_hook, is_ignored
from syncline.gitops.sync.model import KindTable, Pair
from syncline.kube.objects import Obj, ObjectRef, gvk_of, name_of, namespace_of, ref_of, uid_of

__all__ = ["Paired", "pair_objects"]


@dataclass(frozen=True, slots=True)
class Paired:
    """``pairs``: resources, first those with a target, then live ones only; ``hooks``: manifests of hooks."""

    pairs: tuple[Pair, ...]
    hooks: tuple[Obj, ...] = field(repr=False)


def pair_objects(targets: Iterable[Obj], live: Mapping[ObjectRef, Obj], namespace: str, kinds: KindTable) -> Paired:
    """Pair by key. Hooks are set aside, those of unknown type dropped; live objects with one uid count once."""
    kept = [target for target in targets if not is_ignored(target)]
    hooks = tuple(target for target in kept if is_hook(target))
    resources = [target for target in kept if not is_hook(target)]
    left = _without_twins(resources, live)
    pairs = [Pair(target, left.pop(_live_key(target, namespace, kinds), None)) for target in resources]
    pairs += [Pair(None, left[ref]) for ref in sorted(left)]
    return Paired(tuple(pairs), hooks)


def _live_key(target: Obj, namespace: str, kinds: KindTable) -> ObjectRef:
    gvk = gvk_of(target)
    cluster_scoped = kinds.namespaced(gvk.group_kind) is False
    where = "" if cluster_scoped else namespace_of(target) or namespace
    return ObjectRef(gvk.group, gvk.kind, where, name_of(target))


def _without_twins(targets: list[Obj], live: Mapping[ObjectRef, Obj]) -> dict[ObjectRef, Obj]:
    """One object may be served in two groups: of those with one uid, the ones that are no targets go, one stays."""
    wanted = {ref_of(target) for target in targets}
    by_uid: dict[str, list[ObjectRef]] = {}
    for ref in sorted(live):
        by_uid.setdefault(uid_of(live[ref]), []).append(ref)
    left = dict(live)
    for uid, refs in by_uid.items():
        strangers = [ref for ref in refs if ref not in wanted]
        spare = strangers if len(strangers) < len(refs) else strangers[1:]
        if uid:
            for ref in spare:
                del left[ref]
    return left
