"""When and how deep the object of a manifest is looked at: :func:`due`; pure.

At once if the work or the object changed, at upstream's interval where nothing would announce a change. What others
write again and again is undone less and less often.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from syncline.fleet.spoke.work.manifests.applying import Depth
from syncline.fleet.spoke.work.manifests.memory import Remembered
from syncline.fleet.spoke.work.observe import Manifest, WorkObserved
from syncline.fleet.spoke.work.status import is_applied, is_complete
from syncline.kube.objects import Obj, ObjectRef, dig, generation

BURST: Final = 5
"""Looks at changes of a work's objects that need not wait; then one each :func:`pace_s`."""
WATCH_S: Final = 1.0
"""The interval of works that ask for a watch."""


def due(observed: WorkObserved, manifest: Manifest, entry: Obj | None, now: datetime) -> Depth | None:
    """Return how deep the object of a manifest is looked at now, None if not at all."""
    ref, remembered = manifest.ref, observed.remembered
    if ref is None:
        return None
    may = Depth.DRIFT if _may_correct(remembered, observed, now) else Depth.READ
    if observed.complete or is_complete(entry):
        may = Depth.READ
    elif (applied := is_applied(entry, generation(observed.work))) is not True:
        if applied is None or _may_retry(remembered, ref, now):
            return Depth.FULL
        may = Depth.READ
    elif _is_another(observed) or (_is_resync(observed, now) and _at_resync(observed, ref)):
        return Depth.FULL
    if ref not in remembered.known or entry is None:
        return may
    if ref in observed.dirty:
        return may if tokens(observed, now) >= 1 else None
    if ref in remembered.drifted and may is Depth.DRIFT:
        return may
    return may if ref.group_kind not in observed.followed and is_past(remembered.polled, now) else None


def _is_another(observed: WorkObserved) -> bool:
    """Return whether the work is of another generation than the last one, which its status calls applied."""
    return observed.remembered.generation not in (0, generation(observed.work))


def _may_retry(remembered: Remembered, ref: ObjectRef, now: datetime) -> bool:
    if ref in remembered.contested:
        return is_past(remembered.resync, now)
    return is_past(remembered.refused_until if ref in remembered.refused else remembered.retry, now)


def is_past(when: datetime | None, now: datetime) -> bool:
    return when is None or when <= now


def _is_resync(observed: WorkObserved, now: datetime) -> bool:
    return observed.remembered.resync is not None and observed.remembered.resync <= now


def _at_resync(observed: WorkObserved, ref: ObjectRef) -> bool:
    """Return whether an object is applied at the resync: nothing announces a change of rights."""
    return bool(dig(observed.work, "spec", "executor")) or ref in observed.remembered.added


def correct_at(remembered: Remembered, observed: WorkObserved) -> datetime | None:
    """Return when a change of others may be undone again: at once, then each time after twice the time, so that two who
    write the same field do not write all the time."""
    if remembered.corrected is None or not remembered.corrections:
        return None
    settings = observed.settings
    wait = min(settings.status_s * 2.0 ** (min(remembered.corrections, 20) - 1), settings.resync_s)
    return remembered.corrected + timedelta(seconds=wait)


def _may_correct(remembered: Remembered, observed: WorkObserved, now: datetime) -> bool:
    return is_past(correct_at(remembered, observed), now)


def tokens(observed: WorkObserved, now: datetime) -> float:
    """Return how many looks at changes need not wait now."""
    remembered = observed.remembered
    if remembered.spent is None:
        return float(BURST)
    passed = (now - remembered.spent).total_seconds()
    return min(float(BURST), remembered.tokens + passed / pace_s(observed))


def pace_s(observed: WorkObserved) -> float:
    """Return the seconds between two looks at objects that change all the time."""
    asks = any((one.config or {}).get("feedbackScrapeType") == "Watch" for one in observed.manifests)
    return WATCH_S if asks else observed.settings.status_s
