"""Distributes work among replicas by Leases, one per shard of the keys: :func:`share_round`.

The driver of a role calls it every ``retry_s`` seconds and lets its controllers work on the shards that
:meth:`Share.working` returns. One shard is plain leader election. A Lease of a live replica is never taken; one whose
holder went silent is taken after its duration *as measured by this replica*. As in client-go's ``leaderelection`` the
clocks of other machines are not trusted, nor is this machine's, which may be set: every ``now`` here is on the steady
scale (``base/clock.py``), and only ``stamp`` is wall-clock time.

A holder's name proves nothing: a restarted process, or a second one with the same ``--identity``, finds a Lease under
its name that it does not hold. A Lease is ours if its acquireTime was written by this process. The resourceVersion is
the precondition of every write, so only one of two such processes gets it, and the other waits. Decisions are pure;
nothing here waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias, assert_never

from syncline.base.clock import LONG_AGO, format_micro_time
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.errors import Unanswered
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, dig, name_of, resource_version

LEASES = ResourceInfo("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True, verbs=("get", "list", "watch"))
GROUP_LABEL = "syncline.dev/lease-group"
SHARDS = "syncline.dev/shards"
"""Annotation of a shard's Lease: the number of shards. Replicas with different numbers never work at once."""
NODE = "syncline.dev/node"
"""Annotation of a Lease: the node that its holder runs on."""
MAX_LEASE_S = 3600
"""The longest lease duration that is honoured: otherwise any writer of a Lease could stop all work with one number."""
MAX_SHARDS = 64
"""Leases are renewed one by one; more shards than replicas bring nothing."""


@dataclass(frozen=True, slots=True)
class LeaderSettings:
    """Settings of a replica. ``identity`` should be new for each process; the times are client-go's defaults."""

    identity: str
    namespace: str
    name: str = "syncline-application-controller"
    shards: int = 1
    lease_s: int = 15
    """A Lease that was not renewed for this long may be taken."""
    renew_deadline_s: float = 10.0
    """A replica that could not renew for this long stops working; the rest of ``lease_s`` lets its requests end."""
    retry_s: float = 2.0
    node: str = ""
    """The node of this process, if known: the controller that updates nodes does not touch it during syncs."""


@dataclass(frozen=True, slots=True)
class Free:
    """No replica holds the Lease; ``why`` gives the reason."""

    why: str


@dataclass(frozen=True, slots=True)
class Mine:
    """This process acquired the Lease, and renews it or takes it up again."""


@dataclass(frozen=True, slots=True)
class Held:
    """Another replica holds the Lease, until ``until`` unless it renews."""

    holder: str
    until: datetime


LeasePlan: TypeAlias = Free | Mine | Held


def lease_plan(
    lease: Obj | None,
    me: str,
    now: datetime,
    *,
    unchanged_since: datetime | None = None,
    acquired: str | None = None,
) -> LeasePlan:
    """Return the state of a Lease for ``me``. ``unchanged_since``: when this replica first saw this version (None:
    now). ``acquired``: the acquireTime that this process wrote, empty if none; None: the name alone decides."""
    if lease is None:
        return Free("there is none yet")
    holder = str(dig(lease, "spec", "holderIdentity", default="") or "")
    if not holder:
        return Free("its holder gave it back")
    if holder == me and acquired in (None, _acquired(lease)):
        return Mine()
    seconds = dig(lease, "spec", "leaseDurationSeconds", default=0)
    duration = min(max(seconds, 0), MAX_LEASE_S) if isinstance(seconds, int) else 0
    until = (unchanged_since or now) + timedelta(seconds=duration)
    holder = f"another process named {me}" if holder == me else holder
    return Held(holder, until) if now < until else Free(f"{holder} did not renew it")


def _acquired(lease: Obj) -> str:
    return str(dig(lease, "spec", "acquireTime", default="") or "")


def shard_of(ref: ObjectRef, shards: int) -> int:
    """Return the shard of an object, the same in every process."""
    digest = hashlib.sha256(f"{ref.namespace}/{ref.name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % shards


@dataclass(frozen=True)
class Share:
    """The knowledge of this replica between two rounds."""

    held: Mapping[int, datetime] = field(default_factory=dict)
    """Our shards, with the time of the last renewal."""
    leaving: frozenset[int] = frozenset()
    """Our shards that go to another replica as soon as no reconcile of theirs is running."""
    observed: Mapping[str, tuple[str, datetime]] = field(default_factory=dict)
    """Each Lease's resourceVersion, and when it was first seen."""
    acquired: Mapping[int, str] = field(default_factory=dict)
    """The acquireTime of each Lease that this process took, also where the response was lost."""
    why: str = "no round yet"
    trouble: str = ""
    """Why the last round could not read or write; empty if it could."""
    vacant_since: datetime | None = None
    """Since when a free shard that we should take is not taken, although the server responds."""
    away: bool = False
    """True if the trouble is a missing response."""

    def lost(self) -> Share:
        """Return a share that holds nothing, after the work was dropped; observed and written Leases stay known."""
        return Share(observed=self.observed, acquired=self.acquired, why="lost", vacant_since=self.vacant_since)

    def valid_until(self, settings: LeaderSettings) -> datetime | None:
        """Return until when all our shards are certainly ours; None if there are none."""
        limit = timedelta(seconds=settings.renew_deadline_s)
        return min((at + limit for at in self.held.values()), default=None)

    def working(self, settings: LeaderSettings, now: datetime) -> frozenset[int]:
        """Return the shards to work on now; empty if the server has not responded for too long."""
        limit = timedelta(seconds=settings.renew_deadline_s)
        return frozenset(shard for shard, at in self.held.items() if shard not in self.leaving and now < at + limit)


@dataclass(frozen=True, slots=True)
class SharePlan:
    """The Leases to write in one round, by name, and what becomes of ours."""

    renew: tuple[int, ...] = ()
    take: tuple[int, ...] = ()
    give_back: tuple[int, ...] = ()
    leaving: frozenset[int] = frozenset()
    lost: tuple[int, ...] = ()
    forget: tuple[str, ...] = ()
    """Member Leases of replicas that have ended."""
    why: str = ""


def share_plan(
    leases: Iterable[Obj], share: Share, settings: LeaderSettings, now: datetime, busy: frozenset[int] = frozenset()
) -> SharePlan:
    """Decide which Leases to write. ``busy``: shards with a running reconcile, which are not given back yet."""
    by_name = {name_of(lease): lease for lease in leases}
    acquired = {_shard_name(settings, shard): share.acquired.get(shard, "") for shard in range(settings.shards)}
    verdicts = {name: _verdict(each, share, settings, now, acquired.get(name)) for name, each in by_name.items()}
    shards = range(settings.shards)
    ours = [s for s in shards if s in share.held and isinstance(verdicts.get(_shard_name(settings, s)), Mine)]
    lost = tuple(sorted(set(share.held) - set(ours)))
    others = _loads(by_name, verdicts, settings)
    leaving = share.leaving & frozenset(ours)
    staying = [shard for shard in ours if shard not in leaving]
    if others and len(staying) - min(others.values()) >= 2:
        leaving |= {staying.pop()}
    blocker, count = _differently_sharded(by_name, verdicts, settings)
    if blocker and blocker < settings.identity:
        leaving |= frozenset(ours)  # both began at the same moment: one of the two must stop
    give_back = tuple(sorted((share.leaving & frozenset(ours)) - busy))  # closed for a round, so no reconcile begins
    free = _not_held(verdicts, settings, frozenset(ours))
    take = () if blocker else _to_take(free, settings, len(staying), others)
    kept = [shard for shard in ours if shard not in give_back]
    why = _holders(verdicts, settings, frozenset(ours) | frozenset(take))
    if blocker:
        why = f"{blocker} works with {count} shards, not {settings.shards}: waiting until it ends"
    gone = tuple(n for n in sorted(by_name) if _is_member(by_name[n]) and isinstance(verdicts[n], Free))
    return SharePlan(tuple(kept), take, give_back, leaving - frozenset(give_back), lost, gone, why)


def _verdict(lease: Obj, share: Share, settings: LeaderSettings, now: datetime, acquired: str | None) -> LeasePlan:
    version, since = share.observed.get(name_of(lease), ("", now))
    unchanged = since if version == resource_version(lease) else now
    return lease_plan(lease, settings.identity, now, unchanged_since=unchanged, acquired=acquired)


def _not_held(verdicts: Mapping[str, LeasePlan], settings: LeaderSettings, ours: frozenset[int]) -> frozenset[int]:
    """Return the shards that any replica may take, and those that this process took before but does not work on."""
    found = ((shard, verdicts.get(_shard_name(settings, shard))) for shard in range(settings.shards))
    return frozenset(shard for shard, verdict in found if shard not in ours and not isinstance(verdict, Held))


def _shard_name(settings: LeaderSettings, shard: int) -> str:
    return settings.name if settings.shards == 1 else f"{settings.name}-{shard}"


def _member_name(settings: LeaderSettings) -> str:
    return f"{settings.name}-member-{settings.identity}"


def _is_member(lease: Obj) -> bool:
    return SHARDS not in (dig(lease, "metadata", "annotations", default={}) or {})


def _loads(by_name: Mapping[str, Obj], verdicts: Mapping[str, LeasePlan], settings: LeaderSettings) -> dict[str, int]:
    """Return how many shards each other live replica holds."""
    loads = {
        verdict.holder: 0
        for name, verdict in verdicts.items()
        if _is_member(by_name[name]) and isinstance(verdict, Held)
    }
    for shard in range(settings.shards):
        verdict = verdicts.get(_shard_name(settings, shard))
        if isinstance(verdict, Held) and verdict.holder in loads:
            loads[verdict.holder] += 1
    return loads


def _differently_sharded(
    by_name: Mapping[str, Obj], verdicts: Mapping[str, LeasePlan], settings: LeaderSettings
) -> tuple[str, str]:
    """Return a live replica with another number of shards, and that number; empty if there is none."""
    for name, lease in sorted(by_name.items()):
        count = (dig(lease, "metadata", "annotations", default={}) or {}).get(SHARDS, str(settings.shards))
        verdict = verdicts[name]
        if count != str(settings.shards) and isinstance(verdict, Held):
            return verdict.holder, count
    return "", ""


def _to_take(free: frozenset[int], settings: LeaderSettings, have: int, others: Mapping[str, int]) -> tuple[int, ...]:
    """Return the free shards to take, up to a fair share. Replicas start at different shards, so that they seldom
    collide."""
    room = -(-settings.shards // (len(others) + 1)) - have
    first = sorted((*others, settings.identity)).index(settings.identity)
    row = [(first + step) % settings.shards for step in range(settings.shards)]
    return tuple(sorted([shard for shard in row if shard in free][: max(room, 0)]))


def _holders(verdicts: Mapping[str, LeasePlan], settings: LeaderSettings, ours: frozenset[int]) -> str:
    parts = []
    for shard in range(settings.shards):
        verdict = verdicts.get(_shard_name(settings, shard), Free("there is none yet"))
        match verdict:
            case Free(why=why):
                text = f"free, {why}"
            case Mine():
                text = "ours" if shard in ours else "ours by name, held by no one"
            case Held(holder=holder):
                text = f"held by {holder}"
            case _ as never:
                assert_never(never)
        parts.append(f"{_shard_name(settings, shard)}: {text}")
    return "; ".join(parts)


# -- requests -------------------------------------------------------------------------------------------------------


def share_round(
    share: Share,
    settings: LeaderSettings,
    now: datetime,
    busy: frozenset[int] = frozenset(),
    *,
    stamp: datetime | None = None,
) -> Generator[Request, Response, Share]:
    """Read the Leases once and write the changes; never raises: refusals are reported in ``why``.

    ``now`` is the time before the first request, a lower bound of the renewal. ``stamp`` is the time written into the
    Leases (None: ``now``).
    """
    round_ = _Round(settings, format_micro_time(stamp or now))
    selector = f"{GROUP_LABEL}={settings.name}"
    answer = yield client.list_(LEASES, settings.namespace, label_selector=selector)
    if not answer.ok:
        why = f"Leases cannot be read: {_said(answer)}"
        return replace(share, why=why, trouble=why, away=isinstance(answer.error, Unanswered))
    leases = [
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"} | item for item in answer.obj.get("items") or ()
    ]
    by_name = {name_of(lease): lease for lease in leases}
    plan = share_plan(leases, share, settings, now, busy)
    held = {shard: at for shard, at in share.held.items() if shard not in plan.lost}
    acquired = dict(share.acquired)
    trouble, away = "", False
    if settings.shards > 1:
        yield from round_.write(by_name.get(_member_name(settings)), _member_name(settings), "", member=True)
    for shard in (*plan.renew, *plan.take):
        name = _shard_name(settings, shard)
        kept = acquired.get(shard, "") if shard in plan.renew else ""
        acquired[shard] = kept or round_.stamp
        written = yield from round_.write(by_name.get(name), name, kept)
        if written.ok and dig(written.obj, "spec", "acquireTime") == acquired[shard]:
            held[shard] = now
        elif written.status in (404, 409):
            held.pop(shard, None)
            acquired.pop(shard, None)
        else:
            trouble = f"Lease {name} cannot be written: {_said(written)}"
            away = isinstance(written.error, Unanswered)
    for name in plan.forget:
        yield client.delete(LEASES, settings.namespace, name, resource_version=resource_version(by_name[name]))
    for shard in plan.give_back:
        yield from round_.give_back(by_name.get(_shard_name(settings, shard)), acquired.pop(shard, ""))
        held.pop(shard, None)
    waiting = frozenset(plan.take) - frozenset(held)
    return Share(
        held,
        plan.leaving & frozenset(held),
        _sightings(leases, share, now),
        acquired,
        plan.why,
        trouble,
        (share.vacant_since or now) if waiting else None,
        away,
    )


def release_all(
    share: Share, settings: LeaderSettings, now: datetime, *, stamp: datetime | None = None
) -> Generator[Request, Response, None]:
    """Give back all Leases before the process ends, so that no replica waits for them to expire."""
    round_ = _Round(settings, format_micro_time(stamp or now))
    for shard in sorted(share.held):
        answer = yield client.get(LEASES, settings.namespace, _shard_name(settings, shard))
        if answer.ok:
            yield from round_.give_back(answer.obj, share.acquired.get(shard, ""))
    if settings.shards > 1:
        yield client.delete(LEASES, settings.namespace, _member_name(settings))


def _said(answer: Response) -> str:
    return str(dig(answer.obj, "message", default="") or f"the server answered {answer.status}")


def _sightings(leases: list[Obj], share: Share, now: datetime) -> dict[str, tuple[str, datetime]]:
    seen = {}
    for lease in leases:
        version, since = share.observed.get(name_of(lease), ("", now))
        current = resource_version(lease)
        seen[name_of(lease)] = (current, since if version == current else now)
    return seen


@dataclass(frozen=True, slots=True)
class _Round:
    """The writes of one round; the resourceVersion that was read is the precondition of each."""

    settings: LeaderSettings
    stamp: str

    def write(
        self, lease: Obj | None, name: str, acquired: str, *, member: bool = False
    ) -> Generator[Request, Response, Response]:
        """Acquire a Lease, or renew it if ``acquired`` (its acquireTime) is set."""
        wanted = self._lease(lease, name, acquired, member)
        if lease is None:
            return (yield client.create(LEASES, wanted, field_manager=self.settings.name))
        return (yield client.update(LEASES, wanted, field_manager=self.settings.name))

    def _lease(self, lease: Obj | None, name: str, acquired: str, member: bool) -> Obj:
        settings = self.settings
        old = (lease or {}).get("spec") or {}
        changes = old.get("leaseTransitions")
        changes = changes if isinstance(changes, int) else 0
        metadata: Obj = {"name": name, "namespace": settings.namespace, "labels": {GROUP_LABEL: settings.name}}
        if lease is not None:
            metadata["resourceVersion"] = resource_version(lease)
        if not member:
            metadata["annotations"] = {SHARDS: str(settings.shards)} | ({NODE: settings.node} if settings.node else {})
        spec = {
            "holderIdentity": settings.identity,
            "leaseDurationSeconds": settings.lease_s,
            "acquireTime": acquired or self.stamp,
            "renewTime": self.stamp,
            "leaseTransitions": changes if acquired or member or lease is None else changes + 1,
        }
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

    def give_back(self, lease: Obj | None, acquired: str) -> Generator[Request, Response, None]:
        """Release a Lease that this process acquired; another process may hold it under the same name."""
        if lease is None or lease_plan(lease, self.settings.identity, LONG_AGO, acquired=acquired) != Mine():
            return
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self.stamp}
        yield client.update(LEASES, {**lease, "spec": spec}, field_manager=self.settings.name)
