"""What a cluster says of a release, and when, as its agent would report it; pure. Entry point: :func:`reactions_of`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from syncline.base.clock import time_or_none
from syncline.fleet.conditions import is_true
from syncline.fleet.pull.order.evidence import Facts, facts_of, judge
from syncline.fleet.pull.order.forecasting import Said
from syncline.fleet.spoke.applications.report import content_of
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import Obj, ObjectRef, dig, name_of
from syncline.machineconfig.names import POOL
from syncline.rehearsal.record import Record, Version

BEFORE = Facts(release="", stale=True)
"""Before the cluster has looked at the release."""


@dataclass(frozen=True)
class Reactions:
    """By Application what its cluster says of it, by time since the commit arrived."""

    said: Mapping[str, tuple[Said, ...]]

    def good_after(self, app: str) -> timedelta | None:
        """Return when an Application is synced and healthy to stay; None: it never is."""
        since: timedelta | None = None
        for one in self.said.get(app, ()):
            good = judge(one.facts, "", "", ()).holds
            since = (since if since is not None else one.after) if good else None
        return since


def reactions_of(record: Record) -> Reactions:
    """Return what the agent of the cluster would report of each Application since the commit."""
    updating, pools = _updating(record), any(True for _ in record.histories(POOL))
    found: dict[str, tuple[Said, ...]] = {}
    for ref, versions in record.histories(APPLICATION.group_kind):
        found[ref.name] = tuple(_said(record, versions, updating, pools=pools))
    return Reactions(found)


def _said(
    record: Record, versions: Sequence[Version], updating: Sequence[tuple[datetime, str]], *, pools: bool
) -> list[Said]:
    """Return each change of what the facts are judged to be, and of what is being updated."""
    moments = [(one.at, _facts(one.obj, record.began)) for one in versions if one.at >= record.began and not one.gone]
    found: list[Said] = []
    judged: tuple[bool, bool, str | None] | None = None
    for at in sorted({at for at, _ in (*moments, *updating)}):
        facts = next((each for moment, each in reversed(moments) if moment <= at), BEFORE)
        busy = next((each for moment, each in reversed(updating) if moment <= at), "") if pools else None
        now = judge(facts, "", "", ())
        last = Said(at - record.began, facts if now.failed else replace(facts, started=""), busy)
        if judged == (now.holds, bool(now.failed), busy):
            found[-1] = replace(last, after=found[-1].after)  # only the words differ: the last ones stay
        else:
            judged = now.holds, bool(now.failed), busy
            found.append(last)
    return found


def _facts(app: Obj, began: datetime) -> Facts:
    """Return what the hub reads of the report that an agent would write. A comparison from before the commit says
    nothing of the release."""
    found = facts_of({}, {"report": content_of(app)})
    compared = time_or_none(dig(app, "status", "reconciledAt"))
    stale = found.stale or compared is None or compared < began.replace(microsecond=0)
    return replace(found, release="", revision="", stale=stale)


def _updating(record: Record) -> list[tuple[datetime, str]]:
    """Return which pools of the cluster are being updated, and which Holds there are, at each change of it."""
    busy: dict[ObjectRef, str] = {}
    found: list[tuple[datetime, str]] = []
    for one in record.versions:
        if one.ref.group_kind not in (POOL, HOLD.group_kind):
            continue
        busy.pop(one.ref, None)
        if one.ref.group_kind == HOLD.group_kind and not one.gone:
            busy[one.ref] = f"a Hold of {dig(one.obj, 'spec', 'owner')}"
        elif not one.gone and is_true(dig(one.obj, "status", "conditions") or (), "Updating"):
            busy[one.ref] = f"pool {name_of(one.obj)} is updating"
        text = "; ".join(busy[ref] for ref in sorted(busy))
        if one.at >= record.began and (not found or found[-1][1] != text):
            found.append((one.at, text))
    return found
