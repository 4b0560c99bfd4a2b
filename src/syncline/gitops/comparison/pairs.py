"""Pairs manifests with live objects.

Called by the comparison with the application's targets (already namespaced) and the live objects that take part. Rules:
gitops-engine ``pkg/sync/reconcile.go``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from syncline.apply.annotations import is_hook, is_ignored
from syncline.clustergroup.pictures import with_pictures
from syncline.gitops.sync.kinds import KindTable
from syncline.gitops.sync.model import Pair
from syncline.kube.objects import Obj, ObjectRef, gvk_of, name_of, namespace_of, ref_of, uid_of

Known = Mapping[tuple[int, int], Pair]
"""Pairs of an earlier comparison, by the identities of their objects."""


@dataclass(frozen=True, slots=True)
class Arranged:
    """Targets by their part in a sync. ``resources``: with the keys of their live objects; ``hooks`` are separate,
    those of unknown type are dropped."""

    resources: tuple[tuple[Obj, ObjectRef], ...] = field(repr=False)
    hooks: tuple[Obj, ...] = field(repr=False)
    refs: frozenset[ObjectRef]
    """The keys of resources as in their manifests."""


def arrange(targets: Iterable[Obj], namespace: str, kinds: KindTable) -> Arranged:
    """Prepare targets for pairing, independent of live objects."""
    kept = [target for target in targets if not is_ignored(target)]
    resources = [target for target in kept if not is_hook(target)]
    return Arranged(
        tuple((target, _live_key(target, namespace, kinds)) for target in resources),
        tuple(target for target in kept if is_hook(target)),
        frozenset(map(ref_of, resources)),
    )


def pair_arranged(arranged: Arranged, live: Mapping[ObjectRef, Obj], known: Known) -> tuple[Pair, ...]:
    """Return the pairs; a pair of the same two objects is reused from ``known``."""
    left = _without_twins(arranged.refs, live)
    found = [(target, left.pop(key, None)) for target, key in arranged.resources]
    alone = [(None, left[ref]) for ref in sorted(left)]
    return tuple(known.get((id(target), id(obj))) or _pair(target, obj) for target, obj in (*found, *alone))


def _pair(target: Obj | None, live: Obj | None) -> Pair:
    return Pair(with_pictures(target, live) if target is not None else None, live)


def _live_key(target: Obj, namespace: str, kinds: KindTable) -> ObjectRef:
    gvk = gvk_of(target)
    cluster_scoped = kinds.namespaced(gvk.group_kind) is False
    where = "" if cluster_scoped else namespace_of(target) or namespace
    return ObjectRef(gvk.group, gvk.kind, where, name_of(target))


def _without_twins(wanted: Collection[ObjectRef], live: Mapping[ObjectRef, Obj]) -> dict[ObjectRef, Obj]:
    """Remove duplicates of objects served in two groups: of one uid, keep the keys of targets, else one key."""
    by_uid: dict[str, list[ObjectRef]] = {}
    for ref, obj in live.items():
        by_uid.setdefault(uid_of(obj), []).append(ref)
    left = dict(live)
    for uid, refs in by_uid.items():
        if not uid or len(refs) == 1:
            continue
        strangers = sorted(ref for ref in refs if ref not in wanted)
        for ref in strangers if len(strangers) < len(refs) else strangers[1:]:
            del left[ref]
    return left
