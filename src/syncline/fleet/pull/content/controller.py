"""The controllers of content on the hub: of each Application, and of chunks that nothing names any more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from syncline.argo.content.entries import chunk_names, entries_of
from syncline.argo.content.names import wants_content
from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Delete, Plan, Requeue
from syncline.fleet.pull.content.observe import (
    BY_CHUNK,
    CHUNKS,
    CONTENTS,
    INDICES,
    PROJECTS,
    SECRETS,
    TARGETS,
    Carries,
    ContentObserved,
    Surroundings,
    hub_app,
    observe_content,
)
from syncline.fleet.pull.content.plan import plan_content
from syncline.fleet.pull.controllers.applications import application_controller, travelling
from syncline.fleet.pull.observe import APPS, BY_TARGET, CONFIG_MAPS
from syncline.kube.kinds.content import CHUNK
from syncline.kube.objects import Obj, ObjectRef, meta, name_of, namespace_of, ref_of

UNUSED_S: Final = 600.0
"""Age in seconds below which a chunk stays that nothing names: one that was just written is named a moment later."""
MOST_IN_PLACE: Final = 200
"""Manifests up to which content is cut and sealed on the event loop."""


def content_controllers(around: Surroundings, carried: Carries) -> tuple[Controller[Any], ...]:
    """Return the controllers. ``carried``: reads what of an Application travels, as an order permits."""
    return _content_controller(around, carried), _chunk_controller()


def _content_controller(around: Surroundings, carried: Carries) -> Controller[ContentObserved]:
    travels = application_controller(carried)

    def of_content(content: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*APPS, *hub_app(content)),)

    def of_chunk(chunk: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        named = cache.indexed(BY_CHUNK, f"{namespace_of(chunk)}/{name_of(chunk)}")
        return [ObjectRef(*APPS, *hub_app(one)) for one in named]

    def of_target(target: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return _wanting(cache.indexed(BY_TARGET, namespace_of(target)))

    return Controller(
        name="pulled-content",
        kind=APPS,
        predicate=differ(travelling),
        watches=(
            *travels.watches,
            Watch(CONTENTS, of_content, differ(lambda one: one.get("content"))),
            Watch(CHUNKS, of_chunk, lambda _old, new: new is None),
            Watch(TARGETS, of_target, differ(lambda one: one.get("spec"))),
        ),
        reads=(*travels.reads, SECRETS, CONFIG_MAPS, PROJECTS),
        indices={**travels.indices, **INDICES},
        observe=lambda cache, ref: observe_content(cache, ref, around, carried),
        plan=plan_content,
        beside=_beside,
    )


def _wanting(apps: Iterable[Obj]) -> list[ObjectRef]:
    return [ref_of(one) for one in apps if wants_content(one)]


def _beside(seen: ContentObserved) -> str | None:
    large = seen.rendering is not None and len(seen.rendering.objects) > MOST_IN_PLACE
    return seen.question.project if large and seen.question is not None else None


@dataclass(frozen=True, slots=True)
class _Unused:
    """A chunk that no content names."""

    chunk: Obj


def _chunk_controller() -> Controller[_Unused]:
    """Return the controller that deletes chunks. What is deleted in the moment in which a content names it again is
    written again by the controller of that content."""

    def observe(cache: Snapshot, ref: ObjectRef) -> _Unused | None:
        chunk = cache.get(ref)
        named = bool(cache.indexed(BY_CHUNK, f"{ref.namespace}/{ref.name}"))
        if chunk is None or named or not cache.has_synced(CONTENTS):
            return None
        return _Unused({**chunk, "apiVersion": CHUNK.api_version, "kind": CHUNK.kind})

    def plan(seen: _Unused, now: datetime) -> Plan:
        made = time_or_none(meta(seen.chunk).get("creationTimestamp")) or now
        left = (made + timedelta(seconds=UNUSED_S) - now).total_seconds()
        why = "no ApplicationContent names it"
        if left > 0:
            return Plan(outcome=Requeue(left, why, background=True), why=why)
        return Plan(((Delete.of(seen.chunk, why),),), why=why)

    def of_content(content: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        listed = (name for entry in entries_of(content) for name in chunk_names(entry))
        return [ObjectRef(*CHUNKS, namespace_of(content), name) for name in listed]

    return Controller(
        name="content-chunk",
        kind=CHUNKS,
        predicate=comes_or_goes,
        watches=(Watch(CONTENTS, of_content, differ(lambda one: one.get("content"))),),
        observe=observe,
        plan=plan,
    )
