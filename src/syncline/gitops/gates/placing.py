"""Which waves of a sync have a gate behind them: operators of cluster groups, and waits that replace Jobs; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from syncline.apply.annotations import HookType, is_hook
from syncline.gitops.gates.checks import CSV_SUCCEEDED, GATES, OLM
from syncline.gitops.gates.sequence import SEQUENCE_JOB, SUFFIX, awaited_by, is_default, is_job
from syncline.gitops.sync.conditions import Condition, ConditionError, WaveGate, gate_deadline
from syncline.gitops.sync.facts import Facts
from syncline.gitops.sync.kinds import KindTable
from syncline.gitops.sync.phases import SyncPhase
from syncline.kube.objects import GroupKind, Obj, ObjectRef, gvk_of
from syncline.kube.schema.extensions import SOURCE

GATE: Final = "syncline.dev/gate"
"""Annotation of a Subscription: ``csv-succeeded``, the default in cluster groups, or ``none``."""
WAIT: Final = "wait"
SEQUENCE_DEADLINE: Final = timedelta(hours=1)
"""Limit of a wait that replaces a Job; ``syncline.dev/gate-deadline`` of its Subscription gives another one."""
SUBSCRIPTION: Final = GroupKind(OLM, "Subscription")
_PHASES: Final[Mapping[HookType, SyncPhase]] = {
    HookType.PRE_SYNC: SyncPhase.PRE_SYNC,
    HookType.SYNC: SyncPhase.SYNC,
    HookType.POST_SYNC: SyncPhase.POST_SYNC,
}


@dataclass(frozen=True)
class Placing:
    """What decides of an Application's gates. ``refuses``: why its project does not permit an object.
    ``group``: the Application is a cluster group. ``asked``: :data:`SEQUENCE_JOB` of the Application."""

    kinds: KindTable
    namespace: str
    refuses: Callable[[ObjectRef], str]
    group: bool = False
    asked: str = ""

    def gates(self, targets: Iterable[Facts], hooks: Sequence[Obj]) -> tuple[tuple[WaveGate, ...], frozenset[int]]:
        """Return the gates, and the identities of the hooks that they replace."""
        subscriptions = [one for one in targets if one.gvk.group_kind == SUBSCRIPTION]
        found = [gate for one in subscriptions for gate in self._of_subscription(one)]
        replaced: set[int] = set()
        jobs = [Facts.of(one) for one in hooks if is_job(one)]
        for job in jobs:
            mine = [one for one in subscriptions if f"{one.ref.name}{SUFFIX}" == job.ref.name]
            values = [one.annotations.get(SEQUENCE_JOB, "") for one in mine]
            if WAIT in (self.asked, *values) and is_default(job.obj):
                found += self._of_job(job, mine)
                replaced.add(id(job.obj))
        if self.asked not in ("", WAIT):
            found.append(_refused(ObjectRef("", "", "", ""), _allowed(SEQUENCE_JOB, self.asked, (WAIT,))))
        return tuple(found), frozenset(replaced)

    def _of_subscription(self, one: Facts) -> list[WaveGate]:
        said = one.annotations.get(GATE, "")
        wait = one.annotations.get(SEQUENCE_JOB, WAIT)
        if said not in ("", CSV_SUCCEEDED, "none"):
            return [_refused(one.ref, _allowed(GATE, said, (CSV_SUCCEEDED, "none")))]
        if wait != WAIT:
            return [_refused(one.ref, _allowed(SEQUENCE_JOB, wait, (WAIT,)))]
        if said == "none" or not (said or self.group):
            return []
        namespace = one.ref.namespace or self.namespace
        named = GATES[CSV_SUCCEEDED].named(one.ref.name, namespace)
        refused = next((why for why in map(self.refuses, named) if why), "")
        if refused:
            return [_refused(one.ref, refused)] if said else []  # what was not asked for is not placed
        deadline, action = _deadline(one.obj) or (None, "")
        condition = Condition(named[0], gate=CSV_SUCCEEDED, deadline=deadline)
        return [WaveGate(one.ref, SyncPhase.SYNC, one.wave, condition, goes_on=action == "continue")]

    def _of_job(self, job: Facts, subscriptions: Sequence[Facts]) -> list[WaveGate]:
        awaited = awaited_by(job.obj)
        assert awaited is not None, "a default command can be read"
        limits = [limit for one in subscriptions if (limit := _deadline(one.obj)) is not None]
        deadline, action = limits[0] if limits else (SEQUENCE_DEADLINE, "fail")
        ref = awaited.ref(self.kinds, self.namespace)
        if ref is not None and (refused := self.refuses(ref)):
            return [_refused(job.ref, f"{SEQUENCE_JOB}: {refused}")]
        condition = Condition(ref or ObjectRef("", awaited.kind, "", awaited.name), deadline=deadline, exists=True)
        phases = [_PHASES[one] for one in job.hook_types if one in _PHASES]
        unserved = "" if ref is not None else f"the API serves no resource {awaited.kind} yet"
        return [
            WaveGate(job.ref, phase, job.wave, condition, unserved, goes_on=action == "continue", to_end=True)
            for phase in phases
        ]


def may_hold(obj: Obj) -> bool:
    """Return whether a manifest may hold later waves."""
    return gvk_of(obj).group_kind == SUBSCRIPTION or (is_job(obj) and is_hook(obj) and is_default(obj))


def is_cluster_group(spec: Obj, annotations: Mapping[str, str]) -> bool:
    """Return whether an Application renders a cluster group: by its chart's name or its annotation, never by guessing
    (DECISIONS 48)."""
    sources = [spec.get("source"), *(spec.get("sources") or ())]
    named = any(isinstance(one, Mapping) and one.get("chart") == "clustergroup" for one in sources)
    return named or annotations.get(SOURCE) == "clustergroup"


def _deadline(obj: Obj) -> tuple[timedelta, str] | None:
    try:
        return gate_deadline(obj)
    except ConditionError:
        return None  # it is reported with the annotations of all manifests


def _refused(who: ObjectRef, why: str) -> WaveGate:
    return WaveGate(who, SyncPhase.SYNC, 0, Condition(who), refused=why)


def _allowed(key: str, found: str, allowed: tuple[str, ...]) -> str:
    return f"{key}: found {found[:80]!r}; allowed {'is' if len(allowed) == 1 else 'are'} {', '.join(allowed)}"
