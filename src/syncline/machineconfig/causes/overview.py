"""The input and the result types of the explanations of pools, nodes and machine configs; pure.

:class:`Overview` calls the planners on a snapshot, so an explanation rests on the decision that a controller takes now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.kube.objects import Obj, ObjectRef, dig, name_of, ref_of
from syncline.machineconfig.causes.progress import Records
from syncline.machineconfig.drain import observe as drains
from syncline.machineconfig.drain.feasible import Sight
from syncline.machineconfig.names import (
    ARBITER,
    CONTROLLER_CONFIG,
    CONTROLLER_CONFIG_NAME,
    MACHINE_CONFIG,
    MACHINE_CONFIG_NODE,
    MASTER,
    POOL,
)
from syncline.machineconfig.pools.membership import MembershipError, primary_pool
from syncline.machineconfig.pools.observe import Observed, observe_plainly
from syncline.machineconfig.pools.plan import looked
from syncline.machineconfig.pools.rollout import PoolState, World
from syncline.machineconfig.render.observe import RenderSettings, observe_render
from syncline.machineconfig.render.plan import Decision, decide
from syncline.machineconfig.render.rendering import release_of


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """An explanation. ``blocked``: something is wrong, not merely in progress."""

    cause: Cause
    blocked: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """The pool controller's current decision, and its input."""

    observed: Observed
    world: World
    state: PoolState


@dataclass(frozen=True)
class Overview:
    """A snapshot of a cluster with its time; results are cached."""

    snapshot: Snapshot
    now: datetime

    @cached_property
    def pools(self) -> Sequence[Obj]:
        return self.snapshot.objects(POOL)

    @cached_property
    def sight(self) -> Sight:
        """Return nodes, pods and budgets for drain forecasts."""
        return drains.sight(self.snapshot)

    @property
    def nodes(self) -> Sequence[Obj]:
        return self.sight.nodes

    @cached_property
    def records(self) -> Records:
        return {name_of(each): each for each in self.snapshot.objects(MACHINE_CONFIG_NODE)}

    @cached_property
    def _decided(self) -> dict[str, Decided | None]:
        return {}

    @cached_property
    def _renders(self) -> dict[str, Decision | None]:
        return {}

    def decided(self, name: str) -> Decided | None:
        """Return the decision about a pool; None if it or its nodes are not readable. Arbiters belong to masters."""
        if name not in self._decided:
            self._decided[name] = self._decide(name)
        found = self._decided[name]
        if name == ARBITER and found is not None and MASTER in found.state.wakes and not found.state.waits:
            return self.decided(MASTER) or found
        return found

    def _decide(self, name: str) -> Decided | None:
        observed = observe_plainly(self.snapshot, ObjectRef(*POOL, "", name))
        return Decided(observed, *looked(observed, self.now)) if observed is not None else None

    def kept(self, node: Obj) -> str:
        """Return why no update of a node may begin (its pool is paused or held), or an empty string."""
        try:
            pool = primary_pool(node, self.pools)
        except MembershipError:
            return ""
        return drains.kept_back(pool, drains.holds_on(pool, self.snapshot.objects(drains.HOLDS)), self.now)

    def rendering(self, pool: Obj) -> Decision | None:
        """Return the render controller's decision about the pool; None if a kind that it reads is unreadable."""
        name = name_of(pool)
        if name not in self._renders:
            config = self.snapshot.get(ObjectRef(*CONTROLLER_CONFIG, "", CONTROLLER_CONFIG_NAME))
            release = release_of(config, self.snapshot.objects(MACHINE_CONFIG))
            observed = observe_render(self.snapshot, ref_of(pool), RenderSettings(release))
            self._renders[name] = decide(observed) if observed is not None else None
        return self._renders[name]


# -- forms -----------------------------------------------------------------------------------------------------------


def cause_of(
    obj: Obj,
    state: str,
    message: str,
    since: datetime | None = None,
    *,
    next_action: str = "",
    because: tuple[Cause, ...] = (),
) -> Cause:
    return Cause(str(ref_of(obj)), state, message, since, next_action=next_action, because=because)


def awaited(cause: Cause, over: Overview, patience: timedelta, then: str, late: str) -> Diagnosis:
    """Return the diagnosis of a wait that ends without action: the time limit ``patience``, what follows (``then``),
    and, once overdue, ``late`` as the next action. Without a start time it is never overdue."""
    until = cause.since + patience if cause.since is not None else None
    overdue = until is not None and over.now >= until
    message = replace(
        cause,
        message=f"{cause.message}; then {then}",
        until=until,
        then=then,
        next_action=late if overdue else cause.next_action,
    )
    return Diagnosis(message, blocked=is_blocking(message))


def node_ref(node: Obj) -> ObjectRef:
    return ref_of({"apiVersion": "v1", "kind": "Node"} | node)


def is_blocking(cause: Cause) -> bool:
    """Return whether the cause or a deeper one needs an action."""
    return bool(cause.next_action) or any(is_blocking(each) for each in cause.because)


def since_of(conditions: Mapping[str, Obj], kind: str) -> datetime | None:
    """Return since when a condition has its status. ``conditions`` by type."""
    return time_or_none(conditions.get(kind, {}).get("lastTransitionTime"))


def written_at(*objects: Obj) -> datetime | None:
    """Return when one of the objects was last written, except its status; None if unknown."""
    times = [time_or_none(dig(obj, "metadata", "creationTimestamp")) for obj in objects]
    for obj in objects:
        entries = dig(obj, "metadata", "managedFields", default=[])
        times += [time_or_none(each.get("time")) for each in entries if each.get("subresource") != "status"]
    return max((each for each in times if each is not None), default=None)
