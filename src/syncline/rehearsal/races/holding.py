"""What has to be there before a Subscription of a cluster group is applied: waves, gates, waits and Jobs; pure.

The gates are those of the product (``gitops/gates``), placed on rendered objects without a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from syncline.apply.annotations import HookType
from syncline.cluster.resources.registry import Registry
from syncline.cluster.storage.store import Store
from syncline.gitops.gates.checks import CSV_SUCCEEDED
from syncline.gitops.gates.placing import SUBSCRIPTION, Placing
from syncline.gitops.gates.sequence import awaited_by, is_job
from syncline.gitops.sync.conditions import Condition, waits_of
from syncline.gitops.sync.facts import Facts
from syncline.gitops.sync.kinds import KindTable
from syncline.gitops.sync.phases import SyncPhase
from syncline.kube.objects import Obj, ObjectRef

_PHASES: Final = {HookType.PRE_SYNC: 0, HookType.SYNC: 1}
_GATED: Final = {SyncPhase.PRE_SYNC: 0, SyncPhase.SYNC: 1}
_BEFORE, _ITSELF, _BEHIND = range(3)
Place = tuple[int, int, int]
"""Phase, wave, and whether it is before the wave, the wave itself, or behind it."""


@dataclass(frozen=True, slots=True)
class Held:
    """Something that has to be so. ``ref``: the object that has to be there, or the Subscription whose operator has to
    work (``works``). ``by``: what holds it, in words."""

    ref: ObjectRef
    works: bool
    by: str


def held(objects: Iterable[Obj]) -> Mapping[ObjectRef, tuple[Held, ...]]:
    """Return what holds each Subscription of a cluster group. Raises ConditionError for an annotation that the product
    refuses, too."""
    every = [Facts.of(one) for one in objects]
    hooks = [one for one in every if one.is_hook]
    plain = [one for one in every if not one.is_hook]
    placing = Placing(_kinds(), "", lambda _: "", group=True)
    gates, replaced = placing.gates(plain, [one.obj for one in hooks])
    holds: list[tuple[Place, Held]] = [
        (
            (_GATED[gate.phase], gate.wave, _BEHIND),
            _of(gate.condition, f"a gate behind {gate.who.kind} {gate.who.name}"),
        )
        for gate in gates
        if gate.phase in _GATED and not gate.refused and not gate.goes_on
    ]
    holds += [*_jobs([one for one in hooks if id(one.obj) not in replaced]), *_waits(every)]
    subscriptions = (one for one in plain if one.gvk.group_kind == SUBSCRIPTION)
    return {one.ref: tuple(hold for place, hold in holds if place < (1, one.wave, _ITSELF)) for one in subscriptions}


def _waits(every: Iterable[Facts]) -> Iterable[tuple[Place, Held]]:
    """Yield the conditions of manifests: the whole wave waits for each of them, not its own object alone."""
    for one in every:
        for condition in waits_of(one.obj, _kinds(), "", lambda _: ""):
            for kind in one.hook_types if one.is_hook else (HookType.SYNC,):
                if kind in _PHASES:
                    by = f"an annotation of {one.gvk.kind} {one.ref.name}"
                    yield (_PHASES[kind], one.wave, _BEFORE), _of(condition, by)


def _of(condition: Condition, by: str) -> Held:
    return Held(condition.ref, condition.gate == CSV_SUCCEEDED, by)


def _jobs(hooks: Sequence[Facts]) -> Iterable[tuple[Place, Held]]:
    """Yield what Jobs wait for whose command can be read."""
    for one in hooks:
        awaited = awaited_by(one.obj) if is_job(one.obj) else None
        for kind in one.hook_types if awaited is not None else ():
            if kind in _PHASES and awaited is not None:
                ref = awaited.ref(_kinds(), "") or ObjectRef("", awaited.kind, awaited.namespace, awaited.name)
                yield (_PHASES[kind], one.wave, _BEHIND), Held(ref, False, f"Job {one.ref.name}")


@lru_cache(maxsize=1)
def _kinds() -> KindTable:
    """The kinds that every cluster serves."""
    return KindTable({one.info.gvk: one.info for one in Registry(Store()).resources()})
