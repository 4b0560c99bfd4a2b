"""Where each Application of a group stands: what it should carry, and whether it has proved it; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from syncline.fleet.pull.order.evidence import SILENT, Judged, judge
from syncline.fleet.pull.order.gates import time_of
from syncline.fleet.pull.order.model import GroupSeen, Target
from syncline.fleet.pull.order.proven import Proven
from syncline.kube.objects import Obj

ROUSED: Final = timedelta(seconds=30)
"""How long the nodes of a cluster with pools must stay idle once a release is healthy there: until a MachineConfig that
it brought is rendered, its pool does not know of it."""
NOTED: Final = "it has proved the release, which is being noted"


@dataclass(frozen=True, slots=True)
class Standing:
    """``goal``: the release that it should carry, empty: none, it stays as it is. ``proves_at``: when it will have
    proved the goal if it stays healthy."""

    target: Target
    goal: str
    entry: Mapping[str, str]
    """What the status said of it before."""
    back: Proven | None = None
    """The proven release that it goes back to."""
    skipped: bool = False
    pending: bool = False
    done: bool = False
    newly: bool = False
    """It has proved the goal, which is noted now; it is done when the note is seen. Until then nothing builds on it: a
    pass that does not see the note would take back what it permits."""
    failed: str = ""
    why: str = ""
    healthy_since: datetime | None = None
    proves_at: datetime | None = None

    @property
    def counts(self) -> bool:
        return not self.skipped and not self.target.aside

    @property
    def begun(self) -> bool:
        """Whether its cluster is disturbed by the release now: it carries it, and has not proved it."""
        return self.counts and bool(self.goal) and self.target.carried == self.goal and not self.done


def goes_back(seen: GroupSeen, release: str) -> bool:
    """Return whether people roll back the release that the group has now."""
    return bool(release) and str((seen.spec.get("rollBack") or {}).get("from") or "") == release


def standings(seen: GroupSeen, release: str, now: datetime) -> list[Standing]:
    """Return where each target stands, in the order of waves. ``release``: that of the group now."""
    going_back = goes_back(seen, release)
    skipped = {str(one.get("cluster")) for one in seen.spec.get("skip") or () if one.get("release") == release}
    made = []
    for target in sorted(seen.targets, key=lambda one: one.order):
        entry: Obj = dict(seen.entries.get(target.key) or {})
        if target.cluster.name in skipped:
            made.append(Standing(target, target.carried, entry, skipped=True, why="people skip it for this release"))
        elif target.aside:
            made.append(Standing(target, target.carried, entry, why=target.aside))
        elif going_back:
            made.append(_back(target, entry, release))
        else:
            made.append(_forward(target, entry, now))
    return made


def _forward(target: Target, entry: Obj, now: datetime) -> Standing:
    goal = target.wanted
    if not goal or target.unwritten:
        return Standing(target, "", entry, pending=True, why=target.cannot or target.unwritten)
    if target.carried != goal:
        return Standing(target, goal, entry, pending=True, why=target.unmade)
    judged = _judged(target, goal, entry)
    proved = bool(target.proven) and target.proven[0].release == goal
    pending = target.operation
    if judged.failed:
        return Standing(target, goal, entry, pending=pending, done=proved, failed=judged.failed)
    if proved:
        return Standing(target, goal, entry, pending=pending, done=True)
    unproved = judged.why if not judged.holds else _disturbed(target)
    if unproved:
        return Standing(target, goal, entry, pending=pending, why=unproved)
    lasts = max(
        target.asked.healthy_for,
        SILENT if target.facts.release is None else timedelta(),
        ROUSED if target.cluster.machines else timedelta(),
    )
    since = (time_of(entry.get("healthySince")) if _same(entry, goal) else None) or (_whole(now) if lasts else now)
    proves_at = since + lasts
    if proves_at <= now:
        return Standing(target, goal, entry, pending=pending, newly=True, why=NOTED, healthy_since=since)
    return Standing(target, goal, entry, pending=pending, healthy_since=since, proves_at=proves_at)


def _disturbed(target: Target) -> str:
    """Return why a cluster whose Application is healthy proves nothing yet; empty: it does."""
    cluster = target.cluster
    if not cluster.available:
        return f"cluster {cluster.name} is not available{_since(target)}"
    return f"it is healthy, and nodes of cluster {cluster.name} are not: {cluster.updating}" if cluster.updating else ""


def _whole(now: datetime) -> datetime:
    """Return the next whole second: a status keeps no parts of one, and a cluster is never proved too early."""
    return now + timedelta(microseconds=-now.microsecond % 1_000_000)


def _same(entry: Mapping[str, str], goal: str) -> bool:
    """Return whether an entry speaks of the release that the target carries."""
    return entry.get("release") in (goal, None)


def _judged(target: Target, goal: str, entry: Mapping[str, str]) -> Judged:
    before = entry.get("operationBefore", "") if entry and _same(entry, goal) else target.facts.started
    return judge(target.facts, goal, before, target.pins.commits)


def _back(target: Target, entry: Obj, back_from: str) -> Standing:
    """In a roll back a cluster is back when it carries its former release and says so, or fails with that one: what
    comes before it in the reverse order must not keep the bad release for that."""
    found = next((one for one in target.proven if one.group != back_from), None)
    if found is None:
        kept = "keeps it" if target.carried else "gets none"
        why = f"release {back_from} is rolled back, and it has proved none before: it {kept} until the next release"
        return Standing(target, target.carried, entry, done=True, why=why)
    if target.carried != found.release:
        return Standing(target, found.release, entry, found, pending=True, why=target.unmade)
    judged = judge(target.facts, found.release, entry.get("operationBefore", ""), ())
    ended = judged.holds or bool(judged.failed) or not target.cluster.available
    # its newest proven release is again the one that a later roll back goes to
    again = judged.holds and target.proven[0] is not found
    why = judged.why
    if not judged.holds and not target.cluster.available:
        why = f"cluster {target.cluster.name} is not available{_since(target)}: it goes back when it returns"
    return Standing(target, found.release, entry, found, done=ended, newly=again, failed=judged.failed, why=why)


def _since(target: Target) -> str:
    return f" since {target.cluster.since}" if target.cluster.since else ""


def first_failure(found: Sequence[Standing]) -> Standing | None:
    """Return the first target whose release failed on it. One that had proved it before stops others only while
    something is left to begin."""
    left = any(one.counts and not one.done for one in found)
    failed = [one for one in found if one.counts and one.failed]
    return next((one for one in failed if not one.done), None) or next((one for one in failed if left), None)
