"""What the controllers of a cluster's policies remember: what each policy looked at, so that a change of it wakes the
policy, and when it was evaluated. All of it may be lost: after a restart each policy is evaluated once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from syncline.kube.objects import GroupKind, Obj, ObjectRef, name_of, ref_of
from syncline.patterns.policies.cluster.actions import Tracked

NOISY: Final = frozenset(
    (
        *(GroupKind("", kind) for kind in ("Event", "Endpoints")),
        *(GroupKind("events.k8s.io", "Event"), GroupKind("coordination.k8s.io", "Lease")),
        *(GroupKind("discovery.k8s.io", "EndpointSlice"), GroupKind("metrics.k8s.io", "PodMetrics")),
    )
)
"""Kinds that change all the time: they are looked at at intervals."""
MOST_FOLLOWED: Final = 50
"""Kinds that are watched for policies."""
PACE: Final = timedelta(seconds=10)
"""Upstream's ``--evaluation-backoff``: within this time a policy is evaluated at most :data:`BURST` times."""
BURST: Final = 3


@dataclass(slots=True)
class _Entry:
    tracked: frozenset[Tracked] = frozenset()
    recent: tuple[datetime, ...] = ()


class Memory:
    """What is remembered of all policies of one agent; bounded by what they look at."""

    def __init__(self) -> None:
        self._policies: dict[ObjectRef, _Entry] = {}
        self._watchers: dict[Tracked, set[ObjectRef]] = {}
        self._kinds: Counter[GroupKind] = Counter()
        self.asked: frozenset[GroupKind] = frozenset()
        """The kinds that the driver was asked to watch last."""

    def keep(self, policy: ObjectRef, tracked: frozenset[Tracked], now: datetime) -> None:
        """Note an evaluation, and what it looked at."""
        entry = self._policies.setdefault(policy, _Entry())
        entry.recent = (*entry.recent, now)[-BURST:]
        self._track(policy, entry, tracked)

    def note(self, policy: ObjectRef, one: Tracked) -> None:
        """Note what a policy is about to look at: changes from now on count."""
        entry = self._policies.setdefault(policy, _Entry())
        self._track(policy, entry, entry.tracked | {one})

    def forget(self, policy: ObjectRef) -> None:
        entry = self._policies.pop(policy, None)
        if entry is not None:
            self._track(policy, entry, frozenset())

    def _track(self, policy: ObjectRef, entry: _Entry, tracked: frozenset[Tracked]) -> None:
        for one in entry.tracked - tracked:
            left = self._watchers[one]
            left.discard(policy)
            if not left:
                del self._watchers[one]
            self._kinds[one.kind] -= 1
            if not self._kinds[one.kind]:
                del self._kinds[one.kind]
        for one in tracked - entry.tracked:
            self._watchers.setdefault(one, set()).add(policy)
            self._kinds[one.kind] += 1
        entry.tracked = tracked

    def next_turn(self, policy: ObjectRef) -> datetime | None:
        """Return the earliest time of the next evaluation; None: now."""
        entry = self._policies.get(policy)
        if entry is None or len(entry.recent) < BURST:
            return None
        return entry.recent[0] + PACE

    def is_new(self, policy: ObjectRef) -> bool:
        """Return whether the policy was not evaluated since the start."""
        return policy not in self._policies

    def kinds(self) -> frozenset[GroupKind]:
        """Return the kinds to watch: those of which the most is looked at."""
        fit = sorted(self._kinds.keys() - NOISY, key=lambda kind: (-self._kinds[kind], kind))
        return frozenset(fit[:MOST_FOLLOWED])

    def unfollowed(self, policy: ObjectRef) -> bool:
        """Return whether the policy looks at something whose changes do not arrive."""
        entry = self._policies.get(policy)
        return entry is not None and any(one.kind not in self.asked for one in entry.tracked)

    def tracks(self, ref: ObjectRef) -> bool:
        return any(place in self._watchers for place in _places(ref))

    def policies_of(self, obj: Obj, kind: GroupKind) -> list[ObjectRef]:
        """Return the policies of a kind that look at an object, or at all of its kind."""
        found: set[ObjectRef] = set()
        for place in _places(ref_of(obj)):
            found |= self._watchers.get(place, set())
        return sorted(one for one in found if one.group_kind == kind)

    def policies_of_definition(self, definition: Obj, kind: GroupKind) -> list[ObjectRef]:
        """Return the policies of a kind that look at something of the group of a definition, which is named
        PLURAL.GROUP: it comes, goes or changes."""
        group = name_of(definition).partition(".")[2]
        found: set[ObjectRef] = set()
        for one, policies in self._watchers.items():
            if one.kind.group == group:
                found |= policies
        return sorted(one for one in found if one.group_kind == kind)


def _places(ref: ObjectRef) -> tuple[Tracked, ...]:
    kind = ref.group_kind
    return (Tracked(kind, ref.namespace, ref.name), Tracked(kind, ref.namespace, ""), Tracked(kind, "", ""))
