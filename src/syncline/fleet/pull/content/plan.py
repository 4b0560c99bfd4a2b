"""Plans the content of one Application: render, cut, seal, write what its cluster's namespace lacks; pure.

Chunks are written before the ApplicationContent that names them, and that before the work whose Application has its
digest. So a client that sees a name finds what it names, also after a kill in between.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from syncline.argo.application import REFRESH
from syncline.argo.conditions import Condition
from syncline.argo.content.chunks import ContentError
from syncline.argo.content.entries import Prepared, Sealing, asked_for, chunk_names, entries_of, prepared
from syncline.base.action import Action
from syncline.base.clock import format_time, time_or_none
from syncline.control.plan import Create, Delete, Patch, Plan, Requeue, awaiting_lists
from syncline.fleet.pull.content.observe import HUB_SECRET, ContentObserved
from syncline.fleet.pull.content.rendering import RenderContent
from syncline.fleet.pull.notices import CONTENT_ERROR, CONTENT_WAIT, noted
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.content import CHUNK, CONTENT
from syncline.kube.objects import Obj, annotations_of, name_of, namespace_of, resource_version, uid_of

GRACE_S: Final = 3600.0
"""Seconds for which a version stays after another one came: operations that began with it end with it."""
KEPT: Final = 4
"""Earlier versions that are kept within the grace."""
ERROR_POLL_S: Final = 60.0
LOOK_BESIDE_S: Final = 30.0
SHARED_LOOK: Final = 0.25
MAX_JITTER: Final = 0.5
TYPES: Final = (CONTENT_ERROR, CONTENT_WAIT)


def plan_content(seen: ContentObserved, now: datetime) -> Plan:
    """Plan one pass over the content of an Application."""
    if seen.unlisted:
        return Plan(*awaiting_lists((seen.unlisted,)))
    stale = tuple(Delete.of(one, "no Application of the hub uses it") for one in seen.stale)
    if seen.app is None:
        return Plan((stale,) if stale else (), why="it needs no content")
    made = _plan(seen, seen.app, now)
    return Plan((stale, *made.steps), made.outcome, made.why, made.status) if stale else made


def _plan(seen: ContentObserved, app: Obj, now: datetime) -> Plan:
    if seen.problem:
        return _noting(app, CONTENT_ERROR, seen.problem, now, Requeue(seen.poll_s, seen.problem, background=True))
    if not seen.waits and seen.question is None:
        return Plan(why="nothing of it travels yet: an order holds it back, or it cannot be carried")
    if seen.waits or seen.question is None:
        return _noting(app, CONTENT_WAIT, seen.waits, now, Requeue(seen.poll_s, seen.waits, background=True))
    if seen.secret is None:
        why = "the key of the hub's keyed digests"
        return Plan(((Create(_hub_secret(seen), why),),), Requeue(0, why), why)
    if seen.reading:
        return _noting(app, CONTENT_WAIT, seen.reading, now, Requeue(LOOK_BESIDE_S, seen.reading, background=True))
    request = refresh_request(app)
    found = seen.rendering
    asked = bool(request) and (found is None or request not in found.answers)
    if found is None or asked or now >= found.at + _period(seen):
        why = "not rendered yet" if found is None else "a refresh was asked for" if asked else "time to look again"
        old_s = 0.0 if asked or found is None else SHARED_LOOK * seen.poll_s
        render = RenderContent(seen.question, why, request if asked else "", old_s)
        return Plan(((render,),), Requeue(0, "rendered"), why)
    again = Requeue(max((found.at + _period(seen) - now).total_seconds(), 0.1), "look again", background=True)
    answered: tuple[Action, ...] = (_without_refresh(app),) if request and not seen.pinned else ()
    if found.error:
        return _noting(app, CONTENT_ERROR, f"the hub cannot render it: {found.error}", now, again, answered)
    try:
        content = _prepared(seen)
    except ContentError as error:
        return _noting(app, CONTENT_ERROR, str(error), now, again, answered)
    steps = _writes(seen, content, now)
    why = f"content {content.entry['digest'][:12]} at {', '.join(found.revisions)}"
    made = (*steps, *([answered] if answered else []))
    return Plan(made, again, why, () if answered else noted(app, TYPES, (), now))


def refresh_request(app: Obj) -> str:
    """Return an id of the refresh that is asked for; empty: none."""
    return f"{uid_of(app)}/{resource_version(app)}" if REFRESH in annotations_of(app) else ""


def _without_refresh(app: Obj) -> Patch:
    body = {"metadata": {"annotations": {REFRESH: None}, "resourceVersion": resource_version(app)}}
    return Patch(APPLICATION, namespace_of(app), name_of(app), body, "the hub has looked again")


def _noting(app: Obj, kind: str, text: str, now: datetime, outcome: Requeue, first: tuple[Action, ...] = ()) -> Plan:
    status = () if first else noted(app, TYPES, (Condition(kind, text),), now)
    return Plan((first,) if first else (), outcome, text, status)


def _period(seen: ContentObserved) -> timedelta:
    """Return the polling period, spread by the Application's name."""
    base = ERROR_POLL_S if seen.rendering is not None and seen.rendering.error else seen.poll_s
    return timedelta(seconds=base * (1 + MAX_JITTER * hashlib.sha256(str(seen.ref).encode()).digest()[0] / 255))


def _hub_secret(seen: ContentObserved) -> Obj:
    metadata = {"name": HUB_SECRET, "namespace": seen.argo_namespace}
    data = {"key": base64.b64encode(seen.seed).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}


def _prepared(seen: ContentObserved) -> Prepared:
    """Cut and seal; where only the commit is another one and the folder is the same, the known version stays."""
    found, question = seen.rendering, seen.question
    assert found is not None and question is not None and seen.key is not None and seen.secret is not None
    known = {content_id: name for content_id, name in seen.sealed.items() if name in seen.present}
    how = Sealing(seen.secret, seen.seed, seen.key, known)
    asked = asked_for(question.sources, question.revisions)
    made = prepared(found.objects, asked, found.revisions, found.types, seen.who, how)
    before = next(iter(entries_of(seen.index)), None)
    if found.own_folder and before is not None:
        older = prepared(found.objects, asked, list(before.get("revisions") or ()), found.types, seen.who, how)
        if older.entry["digest"] == before.get("digest"):
            return older
    return made


def _writes(seen: ContentObserved, content: Prepared, now: datetime) -> tuple[tuple[Action, ...], ...]:
    cluster, why = seen.who.cluster, f"cluster {seen.who.cluster} lacks it"
    needed = chunk_names(content.entry)
    chunks = tuple(
        Create(_chunk(cluster, name, content.chunks[name]), why)
        for name in dict.fromkeys(needed)
        if name not in seen.present and name in content.chunks
    )
    entries = with_entry(entries_of(seen.index), content.entry, now, seen.used)
    steps: list[tuple[Action, ...]] = [chunks] if chunks else []
    if seen.index is None:
        steps.append((Create(_content(seen, entries), "the Application is rendered for its cluster"),))
    elif entries != entries_of(seen.index):
        version = {"resourceVersion": resource_version(seen.index)}
        body = {"metadata": version, "content": {"entries": entries}}
        patch = Patch(CONTENT, cluster, seen.work, body, "another version of the content")
        steps.append((patch,))
    return tuple(steps)


def with_entry(entries: Sequence[Obj], entry: Obj, now: datetime, used: frozenset[str]) -> list[Obj]:
    """Return the entries with this one as the current one. Those that were superseded longer ago than the grace go,
    unless the work still names them."""
    older: list[Obj] = []
    for one in entries:
        if one.get("digest") == entry["digest"]:
            continue
        since = time_or_none(one.get("supersededAt")) or now
        recent = len(older) < KEPT and now - since < timedelta(seconds=GRACE_S)
        if recent or one.get("digest") in used:
            older.append({**one, "supersededAt": format_time(since)})
    return [entry, *older]


def _chunk(cluster: str, name: str, data: bytes) -> Obj:
    return chunk_object(cluster, name, base64.b64encode(data).decode())


def chunk_object(namespace: str, name: str, data: str) -> Obj:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": CHUNK.api_version, "kind": CHUNK.kind, "metadata": metadata, "data": data}


def _content(seen: ContentObserved, entries: Sequence[Obj]) -> Obj:
    content: Mapping[str, object] = {
        "cluster": seen.who.cluster,
        "application": {"namespace": seen.who.namespace, "name": seen.who.name},
        "hub": {"namespace": seen.ref.namespace, "name": seen.ref.name},
        "entries": list(entries),
    }
    metadata = {"name": seen.work, "namespace": seen.who.cluster}
    return {"apiVersion": CONTENT.api_version, "kind": CONTENT.kind, "metadata": metadata, "content": content}
