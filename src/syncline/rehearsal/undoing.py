"""Rolling back in order: what a roll-out brought is undone wave by wave, the last wave first. Pure but for
:func:`undo`, which drives a rehearsal as a person would drive a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from syncline.apply.annotations import wave
from syncline.kube import client
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, dig, name_of, namespace_of
from syncline.rehearsal.record import Recorder
from syncline.rehearsal.stage import APPLICATIONS
from syncline.rehearsal.world import World

IN_ORDER = "to roll back in order: "
"""Begins the notes of a rehearsal that say what a person types."""
WAIT_S, STEP_S = 3_600.0, 15.0
"""Virtual seconds for which one wave may take, and between looks at it."""


class Playing(Protocol):
    """The rehearsal under way: what :class:`~syncline.rehearsal.playing.Play` has of it."""

    world: World
    recorder: Recorder

    def applications(self) -> list[Obj]: ...

    def bring_back(self) -> None: ...

    def advance(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Undo:
    """One step: a sync of these resources of an Application alone, with pruning of what was not there before."""

    namespace: str
    app: str
    wave: int
    resources: tuple[Mapping[str, str], ...]

    def __str__(self) -> str:
        named = " ".join(f"--resource {_argument(each)}" for each in self.resources)
        return f"wave {self.wave}: syncline app sync {self.app} --prune {named}"


def undo_plan(apps: Sequence[Obj], waves: Mapping[ObjectRef, int] = MappingProxyType({})) -> tuple[Undo, ...]:
    """Return the steps that bring Applications back to what they were compared with: Applications and, in each, waves
    from the last to the first. ``waves``: those of objects that left Git, which statuses do not name. Hooks do not run
    in a sync of single resources."""
    steps: list[Undo] = []
    for app in sorted(apps, key=lambda each: (-wave(each), name_of(each))):
        groups: dict[int, list[Mapping[str, str]]] = {}
        for one in dig(app, "status", "resources", default=[]):
            if one.get("status") == "OutOfSync" and not one.get("hook"):
                keys = {key: str(one.get(key) or "") for key in ("group", "kind", "namespace", "name")}
                number = int(one.get("syncWave") or waves.get(ObjectRef(**keys), 0))
                groups.setdefault(number, []).append(keys)
        space, name = namespace_of(app), name_of(app)
        steps += [Undo(space, name, number, tuple(groups[number])) for number in sorted(groups, reverse=True)]
    return tuple(steps)


def _argument(one: Mapping[str, str]) -> str:
    place = f"{one['namespace']}/" if one["namespace"] else ""
    return f"{one['group']}:{one['kind']}:{place}{one['name']}"


def undo(play: Playing) -> Iterator[str]:
    """End running syncs, bring back in Git what was there before, and undo wave by wave; yield what a person types.
    Stops at a step that fails."""
    apps = play.applications()
    policies = {name_of(app): dig(app, "spec", "syncPolicy", "automated") for app in apps}
    for app in apps:
        if policies[name_of(app)] is not None:
            _patch(play, app, {"spec": {"syncPolicy": {"automated": None}}})
            yield f"syncline app set {name_of(app)} --sync-policy none"
    play.bring_back()
    play.advance(STEP_S)
    waves = {version.ref: wave(version.obj) for version in play.recorder.versions}
    for step in undo_plan(play.applications(), waves):
        yield str(step)
        sync = {"resources": [dict(each) for each in step.resources], "prune": True}
        body: Obj = {"operation": {"sync": sync, "initiatedBy": {"username": "rehearsal"}}}
        _patch(play, _app(play, step), body)
        if phase := _unfinished(play, step):
            yield f"this sync ends {phase}: the rest is not undone"
            return
    for app in play.applications():
        if policies.get(name_of(app)) is not None:
            _patch(play, app, {"spec": {"syncPolicy": {"automated": policies[name_of(app)]}}})


def _patch(play: Playing, app: Obj, body: Obj) -> None:
    merge = client.PatchType.MERGE
    play.world.admin.send(client.patch(APPLICATIONS, namespace_of(app), name_of(app), merge, body)).or_raise()


def _app(play: Playing, step: Undo) -> Obj:
    request = client.get(APPLICATIONS, step.namespace, step.app)
    found: Obj = play.world.admin.send(request).or_raise()
    return {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, **found}


def _unfinished(play: Playing, step: Undo) -> str:
    """Advance until a step has succeeded and its objects are healthy; return how it ended otherwise."""
    waited = 0.0
    while waited < WAIT_S:
        play.advance(STEP_S)
        waited += STEP_S
        app = _app(play, step)
        phase = str(dig(app, "status", "operationState", "phase") or "")
        if app.get("operation") or phase in ("Running", "Terminating"):
            continue
        if phase != "Succeeded":
            return phase
        if dig(app, "status", "health", "status") != "Progressing":
            return ""
    return "not within an hour"
