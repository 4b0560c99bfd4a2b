"""Copies what the cluster lacks of its content from the hub, and removes what nothing there uses; pure but for the
controller.

Only the list of each Application's chunks is watched on the hub. A chunk is read there once, verified by its name, and
written here; the ApplicationContent follows its chunks. Nothing is removed because the hub does not answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from syncline.apply.actions import ReadObject
from syncline.apply.outcome import Outcome
from syncline.argo.content.chunks import ContentError, data_of
from syncline.argo.content.entries import chunk_names, entries_of, recipient_of
from syncline.argo.content.names import RENDERED
from syncline.base.action import Action
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Create, Delete, Patch, Plan, Requeue, Result, Retry
from syncline.fleet.spoke.addons.credentials import HUB_LABEL, hub_hash
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.content import AGENT_NAMESPACE, CHUNK, CONTENT
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
    resource_version,
)

CONTENTS: Final = CONTENT.group_kind
CHUNKS: Final = CHUNK.group_kind
APPS: Final = APPLICATION.group_kind
AT_ONCE: Final = 8
"""Chunks that one pass brings."""
LOOK_S: Final = 10.0


@dataclass(frozen=True)
class Transfer:
    """An ApplicationContent of the hub and its copy. ``index`` None: the hub has none any more."""

    name: str
    hub: str
    index: Obj | None = field(repr=False)
    copy: Obj | None = field(repr=False)
    missing: tuple[str, ...]
    """Chunks that the cluster lacks."""
    unused: Sequence[Obj] = field(repr=False)
    """Chunks on the cluster that no content names, here or on the hub."""
    used_by: str = ""
    """The Application on the cluster that still names the copy."""


def transfer_controller(link: Link) -> Controller[Transfer]:
    """Return the controller; its keys are the contents of the agent's namespace on the hub."""
    hub_of = hub_hash(link.hub_url)

    def observe(hub: Snapshot, ref: ObjectRef) -> Transfer | None:
        spoke = link.spoke()
        known = spoke is not None and all(map(spoke.has_synced, (CONTENTS, CHUNKS)))
        if spoke is None or not known or not hub.has_synced(CONTENTS):
            return None
        return _observed(hub, spoke, ref, hub_of)

    def of_copy(copy: Obj, _spoke: Snapshot) -> Iterable[ObjectRef]:
        if namespace_of(copy) == AGENT_NAMESPACE and labels_of(copy).get(HUB_LABEL) == hub_of:
            yield ObjectRef(*CONTENTS, link.cluster, name_of(copy))

    def of_app(app: Obj, spoke: Snapshot) -> Iterable[ObjectRef]:
        for one in spoke.objects(CONTENTS, AGENT_NAMESPACE):
            who = recipient_of(one)
            if (who.namespace, who.name) == (namespace_of(app), name_of(app)):
                yield from of_copy(one, spoke)

    def all_contents(_cluster: str, hub: Snapshot) -> Iterable[ObjectRef]:
        spoke = link.spoke()
        there = spoke.objects(CONTENTS, AGENT_NAMESPACE) if spoke is not None else ()
        return {*map(ref_of, hub.objects(CONTENTS)), *(ref for one in there for ref in of_copy(one, hub))}

    def of_chunk(chunk: Obj, spoke: Snapshot) -> Iterable[ObjectRef]:
        for one in spoke.objects(CONTENTS, AGENT_NAMESPACE):
            if name_of(chunk) in _names(one):
                yield from of_copy(one, spoke)

    return Controller(
        name="content-transfer",
        kind=CONTENTS,
        predicate=differ(lambda one: one.get("content")),
        watches=(
            Watch(CONTENTS, of_copy, differ(lambda one: one.get("content"), labels_of), cluster=SPOKE),
            Watch(CHUNKS, of_chunk, lambda _old, new: new is None, cluster=SPOKE),
            Watch(APPS, of_app, differ(lambda one: annotations_of(one).get(RENDERED)), cluster=SPOKE),
        ),
        reaches=all_contents,
        observe=observe,
        plan=plan_transfer,
        settle=settle_transfer,
    )


def _names(content: Obj) -> set[str]:
    return {name for entry in entries_of(content) for name in chunk_names(entry)}


def _observed(hub: Snapshot, spoke: Snapshot, ref: ObjectRef, hub_of: str) -> Transfer | None:
    index = hub.get(ref)
    copy = spoke.get(ObjectRef(*CONTENTS, AGENT_NAMESPACE, ref.name))
    if index is None and (copy is None or labels_of(copy).get(HUB_LABEL) != hub_of):
        return None
    here = {name_of(one): one for one in spoke.objects(CHUNKS, AGENT_NAMESPACE)}
    wanted = _names(index) if index is not None else set()
    gone = _names(copy) - wanted if copy is not None else set()
    others = [one for one in spoke.objects(CONTENTS, AGENT_NAMESPACE) if name_of(one) != ref.name]
    elsewhere = {name for one in (*others, *hub.objects(CONTENTS)) for name in _names(one)} if gone else set()
    unused = [{**here[name], **_CHUNK} for name in sorted(gone - elsewhere) if name in here]
    used_by = _user(spoke, copy) if index is None and copy is not None else ""
    return Transfer(ref.name, hub_of, index, copy, tuple(sorted(wanted - here.keys())), unused, used_by)


_CHUNK: Final = {"apiVersion": CHUNK.api_version, "kind": CHUNK.kind}


def _user(spoke: Snapshot, copy: Obj) -> str:
    who = recipient_of(copy)
    app = spoke.get(ObjectRef(*APPS, who.namespace, who.name))
    digest = annotations_of(app or {}).get(RENDERED)
    return f"{who.namespace}/{who.name}" if digest in {one.get("digest") for one in entries_of(copy)} else ""


def plan_transfer(seen: Transfer, _now: datetime) -> Plan:
    """Plan one pass: bring chunks, then the list of them; what goes, goes last."""
    if seen.index is None:
        return _plan_gone(seen)
    if seen.missing:
        cluster, why = namespace_of(seen.index), "the cluster lacks it"
        reads = [ReadObject(ObjectRef(*CHUNKS, cluster, name), CHUNK, why) for name in seen.missing[:AT_ONCE]]
        return Plan((tuple(reads),), Requeue(LOOK_S, why), why)
    steps: list[tuple[Action, ...]] = []
    content, label = seen.index.get("content"), {HUB_LABEL: seen.hub}
    if seen.copy is None:
        metadata = {"name": seen.name, "namespace": AGENT_NAMESPACE, "labels": label}
        made = {"apiVersion": CONTENT.api_version, "kind": CONTENT.kind, "metadata": metadata, "content": content}
        steps.append((Create(made, "all its chunks are here", cluster=SPOKE),))
    elif seen.copy.get("content") != content or labels_of(seen.copy).get(HUB_LABEL) != seen.hub:
        version = {"resourceVersion": resource_version(seen.copy), "labels": label}
        # A merge patch would keep fields of the copy that the hub does not have.
        gone = {key: None for key in seen.copy.get("content") or {} if key not in (content or {})}
        body = {"metadata": version, "content": {**gone, **(content or {})}}
        steps.append((Patch(CONTENT, AGENT_NAMESPACE, seen.name, body, "all its chunks are here", cluster=SPOKE),))
    return Plan((*steps, *_deletions(seen)), why="the cluster has this content")


def _plan_gone(seen: Transfer) -> Plan:
    if seen.used_by:
        return Plan(why=f"Application {seen.used_by} still names it")
    assert seen.copy is not None, "there is something to delete"
    why = "the hub has no such content any more"
    return Plan(((replace(Delete.of(seen.copy, why), cluster=SPOKE),), *_deletions(seen)), why=why)


def _deletions(seen: Transfer) -> tuple[tuple[Action, ...], ...]:
    why = "no content names it"
    found = tuple(replace(Delete.of(one, why), cluster=SPOKE) for one in seen.unused)
    return (found,) if found else ()


def settle_transfer(
    seen: Transfer, _plan: Plan, results: tuple[Result, ...], _now: datetime
) -> tuple[Transfer, Plan] | None:
    """Return the writes of the chunks that were read; None if there are none."""
    if seen.index is None or not results or not all(isinstance(one.action, ReadObject) for one in results):
        return None
    made: list[Action] = []
    problems: list[str] = []
    for one in results:
        found = one.value
        if not isinstance(found, Outcome) or found.obj is None:
            said = found.message if isinstance(found, Outcome) else str(one.error or "")
            assert isinstance(one.action, ReadObject), "only chunks are read"
            problems.append(f"ContentChunk {one.action.ref.name} could not be read: {said or 'not found'}")
            continue
        made += _verified(found.obj, problems)
    why = "; ".join(problems[:3]) or "chunks are here"
    outcome = Retry(why) if problems else Requeue(0, why)
    return seen, Plan((tuple(made),) if made else (), outcome, why)


def _verified(chunk: Obj, problems: list[str]) -> list[Any]:
    try:
        data_of(chunk)
    except ContentError as error:
        problems.append(str(error))
        return []
    metadata = {"name": name_of(chunk), "namespace": AGENT_NAMESPACE}
    data = str(dig(chunk, "data") or "")
    return [Create({**_CHUNK, "metadata": metadata, "data": data}, "its digest is right", cluster=SPOKE)]
