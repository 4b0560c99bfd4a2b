"""The status of a FleetRollout: counts, permits and waits; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.clock import format_time
from syncline.fleet.pull.order.gates import Wait
from syncline.fleet.pull.order.model import GroupSeen
from syncline.fleet.pull.order.release import digest
from syncline.fleet.pull.order.standing import Standing, first_failure
from syncline.kube.kinds.fleetrollouts import MAX_CLUSTERS, MAX_HISTORY, MAX_REVISIONS, MAX_TEXT, MAX_WAVES
from syncline.kube.objects import Obj, generation

_ENDED: Final = ("Done", "RolledBack")
ROOM: Final = 400_000
"""Characters of the reasons of all clusters: etcd keeps objects of at most 1.5 MiB."""
NOT_IN_FORCE: Final = "no order is in force: works are written at once"


@dataclass(frozen=True)
class Judgement:
    """What a pass decided."""

    release: str
    revisions: Sequence[Mapping[str, str]]
    standings: Sequence[Standing]
    going_back: bool
    waits: Mapping[tuple[str, str], Wait]
    permits: Mapping[tuple[str, str], str]


def unordered(rollout: Obj) -> Obj:
    """Return the status of a group whose order is not in force: its history stays."""
    before: Obj = rollout.get("status") or {}
    kept: Obj = {key: before[key] for key in ("release", "revisions", "history") if key in before}
    return {**kept, "observedGeneration": generation(rollout), "phase": "Unordered", "message": NOT_IN_FORCE}


def content_of(seen: GroupSeen) -> str:
    """Return a name for what the Applications of a group are now; while a revision is not known the one of before."""
    counted = [one for one in seen.targets if not one.aside]
    if any(one.pins.problem for one in counted) and seen.status.get("content"):
        return str(seen.status["content"])
    return digest(sorted([one.name, one.wanted] for one in counted))


def status_of(seen: GroupSeen, made: Judgement, now: datetime) -> Obj:
    """Return the status to write."""
    before = seen.status
    counted = [one for one in made.standings if one.counts]
    phase, message = _phase(seen, made, counted)
    entries = [_entry(one, made, now) for one in made.standings if _listed(one, made)]
    shown = _fitting(_chosen(entries))
    waves = _waves(counted, made, before, now)
    done = sum(one.done for one in counted)
    fresh = made.release != before.get("release")
    status: Obj = {
        "observedGeneration": generation(seen.rollout or {}),
        "release": made.release,
        "content": content_of(seen),
        "revisions": [dict(one) for one in made.revisions][:MAX_REVISIONS],
        "startedAt": format_time(now) if fresh else before.get("startedAt", format_time(now)),
        "superseded": _superseded(before, phase, fresh=fresh),
        "phase": phase,
        "message": message,
        "progress": f"{done}/{len(counted)}",
        "total": len(counted),
        "done": done,
        "failed": sum(bool(one.failed) and not one.done for one in counted),
        "omitted": len(entries) - len(shown),
        "waves": waves[:MAX_WAVES],
        "clusters": shown,
    }
    status["history"] = _history(before, status, now, fresh=fresh)
    open_waves = [one["wave"] for one in waves if one["done"] < one["total"]]
    if open_waves:
        status["wave"] = max(open_waves) if made.going_back else min(open_waves)
    return status


def _listed(one: Standing, made: Judgement) -> bool:
    left = not one.done or one.target.key in made.permits or one.pending
    return left or bool(one.failed and not one.newly) or (made.going_back and bool(one.why))


def _chosen(entries: list[Obj]) -> list[Obj]:
    """Return what fits: permits and what has begun first, then the first waves."""
    ranks = {"Permitted": 0, "Progressing": 0, "Proving": 0, "Failed": 0, "Waiting": 1, "Skipped": 2, "NotCounted": 2}
    if len(entries) > MAX_CLUSTERS:
        entries = sorted(entries, key=lambda one: ranks[one["state"]])[:MAX_CLUSTERS]
    return sorted(entries, key=lambda one: (one["wave"], one["cluster"], one["application"]))


def _fitting(entries: list[Obj]) -> list[Obj]:
    """Return the entries with reasons that fit into an object together; those of a few clusters stay whole."""
    most = max(ROOM // max(len(entries), 1), 100)
    return [{**one, "why": one["why"][: most - 1] + "…"} if len(one.get("why", "")) > most else one for one in entries]


def _entry(one: Standing, made: Judgement, now: datetime) -> Obj:
    target, key = one.target, one.target.key
    wait, permitted = made.waits.get(key), made.permits.get(key, "")
    state, why = _state(one, wait, permitted)
    same = one.entry.get("release", "") == one.goal
    since = one.entry.get("since") if same and one.entry.get("state") == state else None
    if state == "Waiting" and same and one.entry.get("state") in ("Waiting", "Permitted"):
        since = one.entry.get("since")
    before = one.entry.get("operationBefore") if same else None
    entry: Obj = {
        "cluster": target.cluster.name,
        "application": target.name,
        "wave": target.wave,
        "state": state,
        "release": one.goal,
        "permitted": permitted,
        "since": since or format_time(now),
        "healthySince": format_time(one.healthy_since) if one.healthy_since is not None else "",
        "operationBefore": target.facts.started if before is None else before,
        "why": why[:MAX_TEXT],
        "until": _until(one, wait),
    }
    kept = ("cluster", "application", "wave", "operationBefore")
    return {field: value for field, value in entry.items() if value != "" or field in kept}


def _until(one: Standing, wait: Wait | None) -> str:
    moment = wait.until if wait is not None else one.proves_at
    return format_time(moment) if moment is not None else ""


def _state(one: Standing, wait: Wait | None, permitted: str) -> tuple[str, str]:
    if one.target.aside:
        return "NotCounted", one.target.aside
    if one.skipped:
        return "Skipped", one.why
    if one.failed:
        return "Failed", one.failed
    if permitted:
        return "Permitted", one.why
    if wait is not None:
        return "Waiting", wait.why
    if one.newly and not one.done:
        return "Proving", one.why
    if one.proves_at is not None:
        return "Proving", f"it has to stay healthy until {format_time(one.proves_at)}"
    nothing_to_go_to = one.done and one.back is None
    return ("Waiting" if nothing_to_go_to else "Progressing"), one.why


def _phase(seen: GroupSeen, made: Judgement, counted: Sequence[Standing]) -> tuple[str, str]:
    left = [one for one in counted if not one.done]
    failure = first_failure(counted)
    reason = str((seen.spec.get("rollBack") or {}).get("reason") or "no reason given")
    if seen.spec.get("stopped"):
        return "Stopped", f"stopped: {(seen.spec['stopped'] or {}).get('reason') or 'no reason given'}"
    if made.going_back and not left:
        return "RolledBack", f"release {made.release} is rolled back: {reason}"
    if made.going_back:
        return "RollingBack", f"release {made.release} goes back ({len(left)} left): {reason}"
    if failure is not None:
        return "Failed", (
            f"release {made.release} failed on cluster {failure.target.cluster.name} "
            f"(wave {failure.target.wave}, Application {failure.target.name}): {failure.failed}; nothing further begins"
        )
    if not left:
        return "Done", f"all {len(counted)} have proved release {made.release}"
    moving = [one for one in left if one.target.key not in made.waits]
    if moving:
        names = ", ".join(one.target.cluster.name for one in moving[:5])
        more = f" and {len(moving) - 5} more" if len(moving) > 5 else ""
        return "Progressing", f"release {made.release} is on its way: {names}{more}"
    first = min(left, key=lambda one: one.target.order)
    return "Waiting", f"{first.target.cluster.name}: {made.waits[first.target.key].why}"


def _waves(counted: Sequence[Standing], made: Judgement, before: Obj, now: datetime) -> list[Obj]:
    was = {one.get("wave"): one for one in before.get("waves") or ()}
    rows: list[Obj] = []
    of_wave: dict[int, list[Standing]] = {}
    for one in counted:
        of_wave.setdefault(one.target.wave, []).append(one)
    for wave, mine in sorted(of_wave.items(), key=lambda one: one[0]):
        waiting = sum(not one.done and one.target.key in made.waits for one in mine)
        done = sum(one.done for one in mine)
        row: Obj = {"wave": wave, "total": len(mine), "done": done, "pending": waiting}
        row["failed"] = sum(bool(one.failed) and not one.done for one in mine)
        row["inProgress"] = max(len(mine) - done - waiting - row["failed"], 0)
        old = was.get(wave) or {}
        same = (old.get("pending", 0) > 0, old.get("done") == old.get("total")) == (waiting > 0, done == len(mine))
        row["since"] = old["since"] if same and "since" in old else format_time(now)
        rows.append(row)
    return rows


def _superseded(before: Obj, phase: str, *, fresh: bool) -> int:
    if phase in _ENDED:
        return 0
    count = int(before.get("superseded") or 0)
    return count + 1 if fresh and _unfinished(before) else count


def _unfinished(before: Obj) -> bool:
    """Return whether the release of a status has not ended; one that has may wait for another one to be resolved, or
    for a cluster that came since."""
    past = before.get("history") or ()
    known = any(_same_run(one, before) for one in past)
    return bool(before.get("release")) and before.get("phase") not in (*_ENDED, "Unordered", None) and not known


def _same_run(one: Obj, other: Obj) -> bool:
    return (one.get("release"), one.get("startedAt")) == (other.get("release"), other.get("startedAt"))


def _history(before: Obj, after: Obj, now: datetime, *, fresh: bool) -> list[Obj]:
    """Return the releases that ended, the newest first."""
    history = list(before.get("history") or ())
    was, phase = before.get("phase"), after["phase"]
    if fresh and _unfinished(before):
        history.insert(0, _ended(before, "Superseded", now))
    if phase in _ENDED and (fresh or was != phase):
        ended = _ended(after, phase, now)
        history = [ended, *(one for one in history if not (_same_run(one, ended) and one.get("outcome") == phase))]
    return history[:MAX_HISTORY]


def _ended(status: Obj, outcome: str, now: datetime) -> Obj:
    kept: Obj = {key: status[key] for key in ("release", "revisions", "startedAt") if key in status}
    return {**kept, "endedAt": format_time(now), "outcome": outcome}
