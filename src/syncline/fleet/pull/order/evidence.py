"""What a cluster says of a release; pure. :func:`judge`.

With an ApplicationReport the agent names the release that it speaks of. OCM's own agents return values of the status
alone, which may be those of the release before; they count after :data:`SILENT` without a change.
An agent is believed about its own cluster: one that lies opens the gates that wait for that cluster, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from syncline.fleet.conditions import find_condition
from syncline.fleet.pull.operations import OPERATION_AFTER, started_at
from syncline.fleet.pull.status import feedback_of
from syncline.kube.objects import Obj, annotations_of, dig, generation, name_of

SILENT: Final = timedelta(seconds=30)
"""How long values that name no release must stay good."""
_BUSY: Final = ("Running", "Terminating")
_FAILED: Final = ("Failed", "Error")
MAX_SHOWN: Final = 400
"""Characters of a message of a cluster in a sentence."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of an Application on its cluster. ``release`` None: the agent does not say."""

    release: str | None = None
    stale: bool = False
    """Its controllers have not looked at this release yet."""
    sync: str = ""
    revision: str = ""
    health: str = ""
    health_message: str = ""
    phase: str = ""
    started: str = ""
    operation_message: str = ""
    broken: str = ""
    """The first resource that failed, and why; empty: none."""
    errors: tuple[str, ...] = ()
    retries: bool = False
    """The operation that runs has failed before."""
    differs: str = ""
    """The first resource that is not as wanted; empty: the agent does not say."""
    refused: str = ""
    """Why the agent cannot apply the work as it is now."""
    applied: bool = False
    """The agent has applied the work as it is now."""
    unapplied: str = ""
    """The first further part of the work that the agent has not applied yet."""
    unbegun: bool = False
    """The work carries a sync that the cluster has not begun."""


@dataclass(frozen=True, slots=True)
class Judged:
    """``holds``: the release is synced and healthy. ``failed``: why it failed; ``why``: what is missing."""

    holds: bool = False
    failed: str = ""
    why: str = ""


def facts_of(work: Obj, report: Obj | None, parts: Iterable[Obj] = ()) -> Facts:
    """Read a work, the ApplicationReport beside it, and the further ``parts`` of a work that was too large for one."""
    found = _facts(work, report)
    for part in parts:
        applied, refused = _applied(part)
        if refused and not found.refused:
            found = replace(found, refused=f"part {name_of(part)}: {refused}")
        if not applied and not found.unapplied:
            found = replace(found, applied=False, unapplied=name_of(part))
    return found


def _applied(work: Obj) -> tuple[bool, str]:
    """Return whether the agent has applied a work as it is now, and why it can't."""
    said = find_condition(dig(work, "status", "conditions") or (), "Applied") or {}
    if said.get("observedGeneration") != generation(work):
        return False, ""
    refused = _short(said.get("message")) or "the work is not applied"
    return said.get("status") == "True", refused if said.get("status") == "False" else ""


def _facts(work: Obj, report: Obj | None) -> Facts:
    applied, refused = _applied(work)
    common: dict[str, Any] = {"applied": applied, "refused": refused}
    if report is not None and isinstance(report.get("report"), dict):
        return _of_report(report["report"], work, common)
    values: dict[str, str] = {}
    for one in dig(work, "status", "resourceStatus", "manifests") or ():
        values |= feedback_of(one)
    started = values.get("operationStateStartedAt", "")
    return Facts(
        sync=values.get("syncStatus", ""),
        revision=values.get("syncRevision", ""),
        health=values.get("healthStatus", ""),
        phase=values.get("operationStatePhase", ""),
        started=started,
        unbegun=annotations_of(work).get(OPERATION_AFTER) == started,
        **common,
    )


def _of_report(content: Mapping[str, Any], work: Obj, common: Mapping[str, Any]) -> Facts:
    sync, health, operation = (_part(content, key) for key in ("sync", "health", "operation"))
    conditions = [one for one in content.get("conditions") or () if isinstance(one, dict)]
    errors = [one for one in conditions if "Error" in str(one.get("type"))]
    after = annotations_of(work).get(OPERATION_AFTER)
    return Facts(
        release=str(content.get("release") or ""),
        stale=content.get("stale") is True,
        sync=_text(sync, "status"),
        revision=_text(sync, "revision"),
        health=_text(health, "status"),
        health_message=_short(health.get("message")),
        phase=_text(operation, "phase"),
        started=_text(operation, "startedAt"),
        operation_message=_short(operation.get("message")),
        broken=_broken(content),
        retries="etrying attempt #" in _text(operation, "message"),
        differs=_differs(content),
        errors=tuple(f"{one.get('type')}: {_short(one.get('message'))}" for one in errors[:3]),
        unbegun=after is not None and after in (_text(operation, "startedAt"), started_at(work)),
        **common,
    )


def _broken(content: Mapping[str, Any]) -> str:
    failed = [one for one in content.get("failed") or () if isinstance(one, dict)]
    if not failed:
        return ""
    said = _short(failed[0].get("message")) or _text(failed[0], "reason")
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"{_text(failed[0], 'kind')} {_where(failed[0])}: {said}{more}"


def _differs(content: Mapping[str, Any]) -> str:
    rows = [one for one in content.get("resources") or () if isinstance(one, dict) and one.get("status") == "OutOfSync"]
    if not rows:
        return ""
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return f"{_text(rows[0], 'kind')} {_where(rows[0])}{more}"


def _where(one: Mapping[str, Any]) -> str:
    return "/".join(part for part in (_text(one, "namespace"), _text(one, "name")) if part)


def _part(content: Mapping[str, Any], key: str) -> Obj:
    found = content.get(key)
    return found if isinstance(found, dict) else {}


def _text(part: Mapping[str, Any], key: str) -> str:
    return str(part.get(key) or "")


def _short(text: object) -> str:
    said = str(text or "")
    return said if len(said) <= MAX_SHOWN else said[: MAX_SHOWN - 1] + "…"


def judge(facts: Facts, release: str, before: str | None, pins: Sequence[str]) -> Judged:
    """Judge what a cluster says of the release that its work carries. ``before``: when the last operation before this
    release began (None: not known), ``pins``: the commits of its sources."""
    if facts.refused:
        return Judged(failed=f"its agent cannot apply the work: {facts.refused}")
    if facts.unapplied:
        return Judged(why=f"its agent has not applied part {facts.unapplied} of the work yet")
    if facts.release is None and not facts.applied:
        return Judged(why="its agent has not applied the work yet")
    if facts.release is not None and facts.release != release:
        said = f"release {facts.release[:12]}" if facts.release else "no release"
        return Judged(why=f"its agent reports {said}, not this one yet" + _also(facts))
    if facts.unbegun:
        return Judged(why="the cluster has not begun the requested sync")
    if facts.stale:
        return Judged(why="its controllers have not compared this release yet" + _also(facts))
    broken = f"; {facts.broken}" if facts.broken else ""
    if facts.phase in _BUSY:
        running = f": {facts.operation_message}" if facts.operation_message else ""
        return Judged(why=f"an operation runs{running}{broken if facts.retries else ''}")
    ended_badly = facts.phase in _FAILED
    said = f"its operation {facts.phase}" + (f": {facts.operation_message}" if facts.operation_message else "")
    if ended_badly and before is not None and facts.started != before:
        return Judged(failed=said + broken)
    if facts.errors:
        return Judged(failed="; ".join(facts.errors) + broken)
    if facts.sync != "Synced":
        what = f" ({facts.differs})" if facts.differs else ""
        return Judged(why=f"sync is {facts.sync or 'not reported'}{what}" + (f"; {said}" if ended_badly else ""))
    if len(pins) == 1 and facts.revision.lower() != pins[0].lower():
        return Judged(why=f"it is synced to {facts.revision[:12] or 'no revision'}, not to {pins[0][:12]} yet")
    message = f": {facts.health_message}" if facts.health_message else ""
    if facts.health == "Degraded":
        return Judged(failed=f"its health is Degraded{message}{broken}")
    if facts.health != "Healthy":
        return Judged(why=f"its health is {facts.health or 'not reported'}{message}")
    return Judged(holds=True)


def _also(facts: Facts) -> str:
    return f" ({'; '.join(facts.errors)})" if facts.errors else ""
