"""Plays a recorded operation again, offline, with the code of today: :func:`replayed`.

The cluster begins as the record does; commits, writes of people and failures of nodes come when they came. All else is
left to the controllers, and compared with what they did then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from syncline.base.cause import Cause
from syncline.base.masking import mask_credentials
from syncline.control.executor import run_in_place
from syncline.kube import client
from syncline.kube.client import Response
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, dig, name_of, namespace_of, ref_of
from syncline.rehearsal.given.durations import Duration
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.state import WorldState
from syncline.rehearsal.given.world import GivenWorld
from syncline.rehearsal.playing import Asked, Play
from syncline.rehearsal.reality.course import Course, Difference, course_of, first_differences
from syncline.rehearsal.reality.measuring import measured
from syncline.rehearsal.reality.outside import Abort, Act, Commit, Power, Write, acts_of, commits_at
from syncline.rehearsal.reality.recording import Recording
from syncline.rehearsal.record import Record
from syncline.rehearsal.repository import bare_copy, move_branch
from syncline.rehearsal.repositoryreader import RehearsedReader
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.stage import APPLICATIONS

SETTINGS, SECRETS = "argocd-cm", "resource.customizations.ignoreDifferences.Secret"
REFRESH = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}}
MAX_NOTES = 50
BEYOND = timedelta(hours=24)
"""Virtual time for which a replay goes on after the end of the record, until it is done or nothing moves."""


@dataclass(frozen=True)
class Replayed:
    """``acts``: what came from outside; ``differences``: where each object goes otherwise, earliest first."""

    acts: tuple[Act, ...]
    recorded: Course
    played: Course
    differences: tuple[Difference, ...]
    record: Record
    notes: tuple[str, ...]


def replayed(recording: Recording, repositories: Mapping[str, Path], scratch: Path) -> Replayed:
    """Play a record. ``repositories``: clones of this machine by address. Raises ScenarioError (usage) if one is
    missing or lacks a commit."""
    acts, real = acts_of(recording), recording.record()
    record = played_again(recording, acts, measured(real), repositories, scratch)
    then, now = course_of(real), course_of(record)
    differences = first_differences(then, now, by=record, cut=True)
    return Replayed(acts, then, now, differences, record, (*recording.notes, *record.notes))


def played_again(
    recording: Recording,
    acts: Sequence[Act],
    durations: Mapping[str, Duration],
    repositories: Mapping[str, Path],
    scratch: Path,
) -> Record:
    """Play what a record begins with, and these acts, in a new folder ``scratch``; go on until it is done, or nothing
    moves. Raises ScenarioError."""
    scratch.mkdir(parents=True)
    replay = _Replay(recording, durations, repositories, scratch)
    for act in acts:
        replay.to(act.at)
        replay.do(act)
    replay.to(recording.ended)
    ending, done = replay.play.run(BEYOND)
    return replay.play.record(recording.began, ending, done)


def waits_at(state: WorldState, scratch: Path) -> tuple[Cause, ...]:
    """Return what is waited for in a state, as ``syncline explain`` says it; nothing is played."""
    scratch.mkdir(parents=True)
    world = GivenWorld("state", "", (), machine_config=state.machine_config, state=state)
    return Play(Asked("state", Files({}), world), scratch, _Reader(scratch / "mirrors")).waits()


class _Reader(RehearsedReader):
    """Reads clones at the revisions that Applications name, not one branch for all."""

    moves = True

    def localized(self, sources: tuple[Obj, ...]) -> tuple[Obj, ...]:
        return tuple(
            one | {"repoURL": self.places[one["repoURL"]]} if one.get("repoURL") in self.places else one
            for one in sources
        )


class _Replay:
    """A record under way again."""

    def __init__(
        self,
        recording: Recording,
        durations: Mapping[str, Duration],
        repositories: Mapping[str, Path],
        scratch: Path,
    ) -> None:
        self._recording = recording
        self._repositories = repositories
        self._scratch = scratch
        self._copies: dict[str, Path] = {}
        state = _without_secrets(recording.state)
        world = GivenWorld(
            recording.name, "", (), machine_config=state.machine_config, durations=durations, state=state
        )
        reader = _Reader(scratch / "mirrors")
        self.play = Play(Asked(recording.name, Files({}), world), scratch, reader)
        for commit in commits_at(recording):
            self._move(commit)
        reader.places = {url: str(copy) for url, copy in self._copies.items()}
        self.play.prepare()

    def to(self, at: datetime) -> None:
        world = self.play.world
        left = (at - world.clock.now()).total_seconds()
        if left > 0:
            world.driver.advance(left)

    def do(self, act: Act) -> None:
        match act:
            case Commit():
                self._move(act)
                self.play.reader.places = {url: str(copy) for url, copy in self._copies.items()}
                self._refresh(act.url)
            case Power(node=node, up=up):
                self._power(node, up)
            case Abort(ref=ref):
                body: Obj = {"status": {"operationState": {"phase": "Terminating"}}}
                self._patch(ref, body, act)
            case Write(ref=ref, body=body_, whole=whole):
                self._write(act, ref, body_, whole)

    def _move(self, commit: Commit) -> None:
        copy = self._copies.get(commit.url)
        if copy is None:
            copy = self._copies[commit.url] = self._scratch / f"copy-{len(self._copies)}"
            bare_copy(self._source(commit.url), copy)
        move_branch(copy, commit.revision, commit.sha)

    def _source(self, url: str) -> Path:
        found = self._repositories.get(url)
        local = url.removeprefix("file://")
        if found is None and local.startswith("/") and Path(local).is_dir():
            return Path(local)
        if found is None:
            said = f"{mask_credentials(url)}: a replay reads no network; name a clone: --repository {url}=FOLDER"
            raise ScenarioError(said, usage=True)
        return found

    def _refresh(self, url: str) -> None:
        for app in self._list(APPLICATIONS):
            sources = [dig(app, "spec", "source", default={}), *(dig(app, "spec", "sources") or ())]
            if any(one.get("repoURL") == url for one in sources):
                self._patch(ref_of(app), REFRESH, None)

    def _list(self, info: ResourceInfo) -> list[Obj]:
        items: list[Obj] = self.play.world.admin.send(client.list_(info)).or_raise()["items"]
        return [{"apiVersion": info.api_version, "kind": info.kind, **one} for one in items]

    def _power(self, node: str, up: bool) -> None:
        machine, now = self.play.world.machines.room.machines.get(node), self.play.world.clock.now()
        if machine is None:
            self.play.notes.append(f"node {node} has no machine here, and does not fail")
        elif up:
            machine.power_on(now)
        else:
            machine.fail(now)

    def _write(self, act: Write, ref: ObjectRef, body: Mapping[str, Any] | None, whole: bool) -> None:
        if not whole and body is not None:
            self._patch(ref, body, act)
            return
        info = self._info(ref)
        if info is None:
            self.play.notes.append(f"{act}: its kind is not served here")
        elif body is None:
            answer = self.play.world.admin.send(client.delete(info, ref.namespace, ref.name))
            self._noted(answer, act, 404)
        else:
            self._noted(self.play.world.admin.send(client.create(info, dict(body))), act, 409)

    def _patch(self, ref: ObjectRef, body: Mapping[str, Any], act: Act | None) -> None:
        info = self._info(ref)
        if info is not None:
            request = client.patch(info, ref.namespace, ref.name, client.PatchType.MERGE, dict(body))
            self._noted(self.play.world.admin.send(request), act, 0)

    def _noted(self, answer: Response, act: Act | None, expected: int) -> None:
        if not answer.ok and answer.status != expected and act is not None and len(self.play.notes) < MAX_NOTES:
            self.play.notes.append(f"{act}: refused in the replay: {answer.obj.get('message')}")

    def _info(self, ref: ObjectRef) -> ResourceInfo | None:
        return Mapper(run_in_place(discover(), self.play.world.admin)).preferred(ref.group_kind)


def _without_secrets(state: WorldState) -> WorldState:
    """Return the state with a setting by which values of Secrets, which are digests, differ from nothing."""
    named = [(obj["kind"], name_of(obj), obj) for obj in state.objects]
    spaces = {namespace_of(obj) for kind, name, obj in named if (kind, name) == (APP_PROJECT.kind, "default")}
    found = {namespace_of(obj): obj for kind, name, obj in named if (kind, name) == ("ConfigMap", SETTINGS)}
    made: list[Obj] = []
    for space in sorted(spaces):
        metadata = {"name": SETTINGS, "namespace": space, "labels": {"app.kubernetes.io/part-of": "argocd"}}
        obj = found.get(space, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        made.append({**obj, "data": {**(obj.get("data") or {}), SECRETS: "jsonPointers:\n- /data\n"}})
    others = [obj for obj in state.objects if ref_of(obj) not in {ref_of(each) for each in made}]
    return replace(state, objects=(*others, *made))
