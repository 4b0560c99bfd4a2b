"""Compute the replicas of each set: rolling update, proportional scaling, clean-up.

Pure arithmetic on the sets' specs and statuses; the rules are those of Kubernetes' deployment controller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from syncline.cluster.builtin.pods import created_at
from syncline.cluster.builtin.workloads.deployment.observe import Observed, spec_replicas
from syncline.cluster.builtin.workloads.deployment.revisions import MAX_REPLICAS, oldest_first, revision_of
from syncline.cluster.builtin.workloads.deployment.status import count
from syncline.cluster.validation.engine.integers import natural
from syncline.kube.objects import Obj, annotations_of, dig, generation, is_terminating, name_of, uid_of

Sizes = tuple[tuple[Obj, int], ...]
"""Sets and their new replicas; unchanged sets are omitted."""


def first_size(observed: Observed, current: Obj | None) -> int:
    """Return the current set's replicas so that all sets together stay within the surge (``NewRSNewReplicas``)."""
    if observed.recreates:
        return observed.replicas
    has = spec_replicas(current) if current else 0
    room = observed.replicas + observed.max_surge - sum(spec_replicas(each) for each in observed.sets)
    return has if room <= 0 else has + min(room, observed.replicas - has)


def grow_current(observed: Observed, current: Obj) -> Sizes:
    has = spec_replicas(current)
    if has == observed.replicas:
        return ()
    size = observed.replicas if has > observed.replicas else first_size(observed, current)
    return ((current, size),) if size != has else ()


def shrink_old(observed: Observed, current: Obj, old_sets: Iterable[Obj]) -> Sizes:
    """Scale old sets down as far as availability allows: unavailable pods first, oldest set first."""
    old = [each for each in oldest_first(old_sets) if spec_replicas(each) > 0]
    minimum = observed.replicas - observed.max_unavailable
    everything = sum(spec_replicas(each) for each in observed.sets)
    missing_new = spec_replicas(current) - count(current, "availableReplicas")
    budget = everything - minimum - missing_new
    if not old or budget <= 0:
        return ()
    sizes = {uid_of(each): spec_replicas(each) for each in old}
    cleaned = _take_unavailable(old, sizes, budget)
    available = sum(count(each, "availableReplicas") for each in observed.sets)
    _take(old, sizes, max(min(available - minimum, budget - cleaned), 0))
    return tuple((each, sizes[uid_of(each)]) for each in old if sizes[uid_of(each)] != spec_replicas(each))


def _take_unavailable(old: list[Obj], sizes: dict[str, int], budget: int) -> int:
    taken = 0
    for each in old:
        broken = spec_replicas(each) - count(each, "availableReplicas")
        step = max(min(budget - taken, broken), 0)
        sizes[uid_of(each)] -= step
        taken += step
    return taken


def _take(old: list[Obj], sizes: dict[str, int], budget: int) -> None:
    for each in old:
        step = min(budget, sizes[uid_of(each)])
        sizes[uid_of(each)] -= step
        budget -= step


def is_saturated(observed: Observed, current: Obj | None) -> bool:
    """Return whether the current set alone provides all replicas."""
    if current is None:
        return False
    annotated = annotations_of(current).get("deployment.kubernetes.io/desired-replicas", "")
    wanted = observed.replicas
    full = spec_replicas(current) == wanted and count(current, "availableReplicas") == wanted
    return full and annotated == str(wanted)


def rescale(observed: Observed, current: Obj | None, old_sets: list[Obj]) -> Sizes:
    """Return sizes after ``spec.replicas`` changed, or while paused: one active set takes all, several share them."""
    active = [each for each in observed.sets if spec_replicas(each) > 0]
    if len(active) <= 1:
        latest = active or ([current] if current else oldest_first(old_sets)[-1:])
        return tuple((each, observed.replicas) for each in latest)
    if is_saturated(observed, current):
        return tuple((each, 0) for each in old_sets if spec_replicas(each) > 0)
    return () if observed.recreates else _in_proportion(observed, active)


def _in_proportion(observed: Observed, active: list[Obj]) -> Sizes:
    allowed = observed.replicas + observed.max_surge if observed.replicas > 0 else 0
    to_add = allowed - sum(spec_replicas(each) for each in active)
    # Larger sets first; among equals the newer one grows first and the older one shrinks first.
    by_age = sorted(active, key=lambda s: (created_at(s), name_of(s)), reverse=to_add > 0)
    ordered = sorted(by_age, key=spec_replicas, reverse=True)
    sizes: list[int] = []
    added = 0
    for each in ordered:
        share = _proportion(observed, each, to_add, added)
        added += share
        sizes.append(spec_replicas(each) + share)
    sizes[0] = max(sizes[0] + to_add - added, 0)
    return tuple(zip(ordered, sizes))


def _proportion(observed: Observed, each: Obj, to_add: int, added: int) -> int:
    left = to_add - added
    if left == 0:
        return 0
    fraction = _fraction(observed, each)
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _fraction(observed: Observed, each: Obj) -> int:
    size = spec_replicas(each)
    if observed.replicas == 0:
        return -size
    annotated = natural(annotations_of(each).get(MAX_REPLICAS, ""), 2**31 - 1)
    before = count(observed.deployment, "replicas") if annotated is None else annotated
    if before == 0:
        return 0
    return math.floor(size * (observed.replicas + observed.max_surge) / before + 0.5) - size


def superfluous(observed: Observed, old_sets: list[Obj]) -> list[Obj]:
    """Return empty old sets beyond ``revisionHistoryLimit``, lowest revisions first."""
    limit = dig(observed.deployment, "spec", "revisionHistoryLimit")
    if limit is None:
        return []
    alive = sorted((s for s in old_sets if not is_terminating(s)), key=lambda s: (revision_of(s), created_at(s)))
    return [each for each in alive[: max(len(alive) - int(limit), 0)] if _is_empty(each)]


def _is_empty(each: Obj) -> bool:
    seen_all = count(each, "observedGeneration") >= generation(each)
    return spec_replicas(each) == 0 and count(each, "replicas") == 0 and seen_all
