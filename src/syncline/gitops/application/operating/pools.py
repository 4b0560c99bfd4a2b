"""MachineConfigPools around an operation: which were paused at its start, and which it leaves paused; pure.

Called at start and end of the operation, and by ``explain``. Hook Jobs in users' repositories pause a pool before a
sync and resume it after; if the sync fails in between, upstream leaves it paused silently. Here the reconcile after the
end resumes it and emits an Event. The notes are annotations of the Application, as its status has upstream's schema, so
they survive a crash (DECISIONS 30).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from syncline.apply.annotations import is_hook
from syncline.control.plan import Emit, Patch
from syncline.gitops.holds.model import BRIDGE_MANAGER, pause_writer
from syncline.kube.objects import Obj, annotations_of, dig, gvk_of, name_of, resource_version
from syncline.kube.schema.extensions import json_note

AT_START = "syncline.dev/pools-at-start"
"""JSON object of pool name to ``spec.paused`` when the newest operation began."""
LEFT = "syncline.dev/pools-left-paused"
"""JSON object of pool name to the time of its pause: pools left paused by operations and not resumed since."""
COMPONENT = "syncline-application-controller"
STAYS = "syncline.dev/leave-paused"
"""Annotation of an Application: ``true`` leaves pools as its hooks leave them and only reports them."""
MAX_POOLS = 200
"""Limit of pools in a note, above that of any cluster; it bounds the annotation."""


@dataclass(frozen=True, slots=True)
class LeftPaused:
    """A pool that an operation found running and leaves paused. ``by``: the field manager that paused it."""

    pool: str
    by: str = ""
    at: str = ""

    @property
    def fix(self) -> str:
        return f"""kubectl patch machineconfigpool {self.pool} --type=merge -p '{{"spec":{{"paused":false}}}}'"""

    def __str__(self) -> str:
        writer = f' by "{self.by}"' if self.by else ""
        return (
            f"MachineConfigPool {self.pool} is left paused: spec.paused was false when the operation began and was "
            f"turned on{writer} before its end; resume it with: {self.fix}"
        )


def begin_notes(app: Obj, pools: Sequence[Obj]) -> dict[str, str | None]:
    """Return the annotations to write at a start; None removes one, as when there are no pools.

    A pool that an earlier operation left paused counts as running, so it stays ours until a user resumes it.
    """
    if not pools:
        return {AT_START: None}
    ours = {left.pool for left in still_left(app, pools)}
    paused = {name_of(pool): _paused(pool) and name_of(pool) not in ours for pool in pools[:MAX_POOLS]}
    return {AT_START: _text(paused)}


def end_notes(left: Sequence[LeftPaused]) -> dict[str, str | None]:
    """Return the annotations to write at an end."""
    return {LEFT: _text({one.pool: one.at for one in left}) if left else None}


def still_left(app: Obj, pools: Sequence[Obj]) -> tuple[LeftPaused, ...]:
    """Return pools that ended operations left paused and that are unchanged since."""
    noted = _noted(app, LEFT)
    found = [(name_of(pool), *pause_writer(pool)) for pool in sorted(pools, key=name_of) if _paused(pool)]
    return tuple(LeftPaused(pool, by, at) for pool, by, at in found if noted.get(pool) == at)


def left_paused(
    app: Obj, pools: Sequence[Obj], hooks: Iterable[Obj], state: Obj | None = None
) -> tuple[LeftPaused, ...]:
    """Return the pools left paused, by name. ``hooks``: the operation's manifests; ``state``: newer than the stored
    one.

    A pool counts if it was noted as running, is paused now, a hook of this operation may have paused it, and no client
    wrote the field after the operation's end. A pool's managed fields do not name the Job that wrote them, and other
    clients pause pools too; so the hook's own text must mention pausing this pool.
    """
    state = dig(app, "status", "operationState", default={}) if state is None else state
    started = state.get("startedAt")
    if not any(row.get("hookType") for row in dig(state, "syncResult", "resources", default=[])):
        return ()
    texts = [text for text in (json.dumps(obj).lower() for obj in hooks if is_hook(obj)) if _pauses(text)]
    before = _noted(app, AT_START)
    found: list[LeftPaused] = []
    for pool in sorted(pools, key=name_of):
        if before.get(name_of(pool)) is not False or not _paused(pool):
            continue
        if not any(name_of(pool).lower() in text for text in texts):
            continue
        manager, written = pause_writer(pool)
        before_begin = isinstance(started, str) and bool(written) and written < started
        if manager != BRIDGE_MANAGER and not before_begin and not _after(written, state.get("finishedAt")):
            found.append(LeftPaused(name_of(pool), manager, written))
    return tuple(found)


def _pauses(text: str) -> bool:
    """Return whether the text of a hook, in lower case, mentions pausing pools."""
    return "paused" in text and ("machineconfigpool" in text or "mcp" in text)


def leaves_paused(app: Obj) -> bool:
    """Return whether the Application forbids resuming pools for it."""
    return annotations_of(app).get(STAYS) == "true"


def left_notes(app: Obj, pools: Sequence[Obj]) -> dict[str, str | None]:
    """Return the annotations to write once no pool is left paused."""
    over = LEFT in annotations_of(app) and not leaves_paused(app) and not still_left(app, pools)
    return {LEFT: None} if over else {}


def resume_left(app: Obj, pools: Sequence[Obj]) -> tuple[tuple[Patch | Emit, ...], ...]:
    """Return steps that resume the pools that ended operations left paused, each with an Event."""
    if LEFT not in annotations_of(app) or leaves_paused(app):
        return ()
    left = {one.pool: one for one in still_left(app, pools)}
    if not left:
        return ()
    mine = [pool for pool in pools if name_of(pool) in left]
    patches = tuple(
        Patch(
            gvk_of(pool),
            "",
            name_of(pool),
            {"metadata": {"resourceVersion": resource_version(pool)}, "spec": {"paused": False}},
            "a hook of an operation that has ended paused it",
        )
        for pool in mine
    )
    events = tuple(Emit(app, "PoolResumed", _resumed(left[name_of(pool)]), COMPONENT) for pool in mine)
    return patches, events


def _resumed(one: LeftPaused) -> str:
    because = "a hook of the operation that ended had set spec.paused, and it has not changed since then"
    return f"MachineConfigPool {one.pool} is resumed: {because}"


def _paused(pool: Obj) -> bool:
    return dig(pool, "spec", "paused") is True


def _text(noted: dict[str, Any]) -> str:
    return json.dumps(noted, sort_keys=True, separators=(",", ":"))


def _noted(app: Obj, annotation: str) -> dict[str, Any]:
    noted = json_note(app, annotation)
    return noted if isinstance(noted, dict) else {}


def _after(written: str, finished: Any) -> bool:
    """Return whether a pool was written after the end; RFC 3339 times in UTC compare as text."""
    return bool(written) and isinstance(finished, str) and written > finished
