"""Bringing manifests and live objects together.

Called by the observation of an application with its targets (already namespaced) and the live objects that take part.
Rules: gitops-engine ``pkg/sync/reconcile.go``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from syncline.apply.annotations import is_hook, is_ignored
from syncline.gitops.sync.model import KindTable, Pair
from syncline.kube.objects import Obj, ObjectRef, gvk_of, name_of, namespace_of, ref_of, uid_of

__all__ = ["Arranged", "arrange", "pair_arranged"]

Known = Mapping[tuple[int, int], Pair]
"""Pairs of an earlier comparison, by the identities of their objects."""


@dataclass(frozen=True, slots=True)
class Paired:
    """``pairs``: resources, first those with a target, then live ones only; ``hooks``: manifests of hooks."""

    pairs: tuple[Pair, ...]
    hooks: tuple[Obj, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Arranged:
    """Targets by their part in a sync. ``resources``: with the keys of their live objects; hooks are set aside, those
    of unknown type dropped."""

    resources: tuple[tuple[Obj, ObjectRef], ...] = field(repr=False)
    hooks: tuple[Obj, ...] = field(repr=False)
    refs: frozenset[ObjectRef]
    """As the manifests of resources name themselves."""


def arrange(targets: Iterable[Obj], namespace: str, kinds: KindTable) -> Arranged:
    """What pairing needs of targets, whatever is live."""
    kept = [target for target in targets if not is_ignored(target)]
    resources = [target for target in kept if not is_hook(target)]
    return Arranged(
        tuple((target, _live_key(target, namespace, kinds)) for target in resources),
        tuple(target for target in kept if is_hook(target)),
        frozenset(map(ref_of, resources)),
    )


def pair_objects(targets: Iterable[Obj], live: Mapping[ObjectRef, Obj], namespace: str, kinds: KindTable) -> Paired:
    """Pair by key. Live objects with one uid count once."""
    arranged = arrange(targets, namespace, kinds)
    return Paired(pair_arranged(arranged, live, {}), arranged.hooks)


def pair_arranged(arranged: Arranged, live: Mapping[ObjectRef, Obj], known: Known) -> tuple[Pair, ...]:
    """The pairs; those of the same two objects are the very ones that are ``known``."""
    left = _without_twins(arranged.refs, live)
    found = [(target, left.pop(key, None)) for target, key in arranged.resources]
    alone = [(None, left[ref]) for ref in sorted(left)]
    return tuple(known.get((id(target), id(obj))) or Pair(target, obj) for target, obj in (*found, *alone))


def _live_key(target: Obj, namespace: str, kinds: KindTable) -> ObjectRef:
    gvk = gvk_of(target)
    cluster_scoped = kinds.namespaced(gvk.group_kind) is False
    where = "" if cluster_scoped else namespace_of(target) or namespace
    return ObjectRef(gvk.group, gvk.kind, where, name_of(target))


def _without_twins(wanted: Collection[ObjectRef], live: Mapping[ObjectRef, Obj]) -> dict[ObjectRef, Obj]:
    """One object may be served in two groups: of those with one uid, the ones that are no targets go, one stays."""
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
