"""Why clusters wait in a roll-out, as causes; pure, from the FleetRollout that the hub's controllers write.

``explain`` joins them with what is below: a cluster that does not answer, a budget, what a cluster reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from syncline.base.cause import OR, Cause
from syncline.base.clock import time_or_none
from syncline.fleet.pull.order.steering import stopped_by, target_of, typed_target
from syncline.kube.objects import Obj, dig, ref_of

ENDED: Final = ("Done", "RolledBack", "Unordered")
"""Phases in which nothing waits."""
URGENT: Final = ("Failed", "Stopped")
"""Phases that a person has to look at."""
_RANK: Final = ("Failed", "Proving", "Progressing", "Permitted", "Waiting")
"""States of clusters, in the order in which causes name them; others are not waits."""
_THEN: Final = {"Proving": "it has proved the release", "Waiting": "its gates are looked at again"}


def phase_of(rollout: Obj) -> str:
    """Return the phase; ``Unordered`` before the hub has worked on it."""
    return str(dig(rollout, "status", "phase") or "Unordered")


def entries_of(rollout: Obj, cluster: str = "", application: str = "") -> list[Obj]:
    """Return the clusters that are not done, or the one named: what failed first, then what goes on, then what waits;
    by wave."""
    found = [
        one
        for one in dig(rollout, "status", "clusters") or ()
        if one.get("state") in _RANK
        and (not cluster or one.get("cluster") == cluster)
        and (not application or one.get("application") == application)
    ]
    return sorted(found, key=lambda one: (_RANK.index(one["state"]), int(one.get("wave") or 0), str(one["cluster"])))


def rollout_cause(rollout: Obj, *because: Cause) -> Cause:
    """Return how a roll-out stands, with the causes of its clusters below."""
    phase, status = phase_of(rollout), rollout.get("status") or {}
    message = str(status.get("message") or "the hub has not worked on it yet")
    progress = f" ({status['progress']} done)" if status.get("progress") and phase != "Done" else ""
    stopped = dig(rollout, "spec", "stopped")
    if stopped:
        message = f"stopped{stopped_by(stopped)}"
    evidence = {"release": str(status.get("release") or ""), "superseded": str(status.get("superseded") or "")}
    return Cause(
        str(ref_of(rollout)),
        phase,
        f"{message}{progress}",
        since_of(rollout),
        next_action=_next_action(rollout, phase),
        evidence=tuple((key, value) for key, value in evidence.items() if value),
        because=because,
    )


def since_of(rollout: Obj) -> datetime | None:
    """Return since when the roll-out is as it is: when it ended or was stopped, when what waits began to, or its
    start."""
    if phase_of(rollout) in ("Done", "RolledBack"):
        ended = [one.get("endedAt") for one in dig(rollout, "status", "history") or ()]
        return time_or_none(max(filter(None, ended), default=None))
    stopped = time_or_none(dig(rollout, "spec", "stopped", "since"))
    if stopped is not None:
        return stopped
    begun = [time_or_none(one.get("since")) for one in entries_of(rollout)]
    known = [one for one in begun if one is not None]
    return min(known, default=None) or time_or_none(dig(rollout, "status", "startedAt"))


def entry_cause(rollout: Obj, entry: Obj, *because: Cause) -> Cause:
    """Return the cause of one cluster of a roll-out."""
    state, until = str(entry["state"]), time_or_none(entry.get("until"))
    cluster, target = str(entry.get("cluster")), typed_target(rollout)
    why = str(entry.get("why") or "")
    if state == "Proving":
        why = f"is healthy{_at(entry.get('healthySince'))}, and has to stay so{_at(entry.get('until'), 'until')}"
    fix = ""
    if state == "Failed":
        ways = ("correct the cause in Git", f"syncline rollout roll-back {target}", _skip(rollout, cluster))
        fix = OR.join(ways)
    elif "is not available" in why:
        fix = _skip(rollout, cluster)
    return Cause(
        f"cluster {cluster} (wave {entry.get('wave')})",
        state,
        why,
        time_or_none(entry.get("since")),
        until,
        _THEN.get(state, "") if until is not None else "",
        fix,
        because=because,
    )


def waits_for_cluster(rollouts: list[Obj], cluster: str) -> Iterator[Cause]:
    """Yield what a cluster waits for, or does, in each roll-out: the subject is the roll-out."""
    for rollout in rollouts:
        for entry in entries_of(rollout, cluster):
            if phase_of(rollout) in ENDED:
                continue
            own = entry_cause(rollout, entry)
            yield Cause(
                f"rollout {target_of(rollout)}",
                own.state,
                f"{entry.get('application')} (wave {entry.get('wave')}): {own.message}".removesuffix(": "),
                own.since,
                own.until,
                own.then,
                own.next_action,
            )


def _at(time: object, word: str = "since") -> str:
    return f" {word} {time}" if time else ""


def _skip(rollout: Obj, cluster: str) -> str:
    return f"to pass over it: syncline rollout skip {typed_target(rollout, cluster)}"


def _next_action(rollout: Obj, phase: str) -> str:
    target = typed_target(rollout)
    if dig(rollout, "spec", "stopped"):
        return f"syncline rollout resume {target}"
    if phase == "Failed":
        return f"correct the cause in Git{OR}syncline rollout roll-back {target}"
    if phase == "Unordered" and not rollout.get("status"):
        return "see that the hub's controllers run: syncline controller --roles hub,pull"
    return ""
