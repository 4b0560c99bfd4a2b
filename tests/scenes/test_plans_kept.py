"""What a plan says is what the sync then writes, in that order: every example and every public example application."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.examples.test_examples import STORIES
from tests.explain.asking import look, reader
from tests.scenes.pools import NAMESPACE
from tests.scenes.pools import prerequisites as pools_before
from tests.scenes.scenes import SCENES, Repo, Stage, application, scene

from syncline.assembly.inspection.preview import PlannedSync, SyncRequest, Verb, Verdict, planned_sync
from syncline.control.executor import run_in_place
from syncline.kube.client import Request, Response, Transport
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, name_of
from syncline.rehearsal.reading import read_scenario
from syncline.rehearsal.scenario import Ends
from syncline.rehearsal.simulation import Simulation

TRACKING = "argocd.argoproj.io/tracking-id"
INSTANCE = "app.kubernetes.io/instance"
DONE = (Verb.CREATE, Verb.CONFIGURE, Verb.REPLACE, Verb.RECREATE, Verb.PRUNE, Verb.RUN_HOOK)
FOLDERS = sorted(p.name for p in (SCENES / "argocd-example-apps").glob("*") if p.is_dir() and p.name != ".git")


@dataclass
class Listening:
    """A transport that notes what is really written, and to which Application it belongs."""

    inner: Transport
    stage: Stage | Simulation
    written: list[tuple[str, ObjectRef, str]] = field(default_factory=list)
    owners: dict[ObjectRef, str] = field(default_factory=dict)
    plurals: dict[tuple[str, str], str] = field(default_factory=dict)

    def send(self, request: Request) -> Response:
        answer = self.inner.send(request)
        if request.method != "GET" and answer.ok and not (request.query or {}).get("dryRun"):
            self._note(request, answer)
        return answer

    def _note(self, request: Request, answer: Response) -> None:
        parts = request.path.strip("/").split("/")
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        if len(rest) > 2:
            return  # a subresource: status and the like
        body = answer.obj if isinstance(answer.obj, dict) else {}
        kind = self._kind(group, rest[0])
        ref = ObjectRef(group, kind, namespace, rest[1] if len(rest) > 1 else name_of(body))
        if kind in ("Event", "Hold", "MachineConfigPool") or (kind == "Application" and request.method == "PATCH"):
            return  # reports, Holds and what they note on pools, the controller's own notes
        mine = _owner(body)
        if mine:
            self.owners[ref] = mine
        self.written.append((request.method, ref, self.owners.get(ref, "")))

    def _kind(self, group: str, plural: str) -> str:
        if (group, plural) not in self.plurals:
            mapper = Mapper(run_in_place(discover(), self.stage.world.admin))
            self.plurals = {(info.group, info.plural): info.kind for info in mapper.all()}
        return self.plurals[group, plural]


def _owner(obj: Obj) -> str:
    tracked = annotations_of(obj).get(TRACKING)
    return (
        tracked.partition(":")[0] if tracked else str((obj.get("metadata") or {}).get("labels", {}).get(INSTANCE, ""))
    )


def listening(stage: Stage | Simulation) -> Listening:
    made: list[Listening] = []

    def wrap(inner: Transport) -> Transport:
        made.append(Listening(inner, stage))
        return made[0]

    stage.world.start_gitops(wrap)
    stage.world.driver.settle()
    return made[0]


def planned(stage: Stage | Simulation, where: Path, app: Obj, **request: Any) -> PlannedSync:
    settings, now = stage.world.settings, stage.world.clock.now()
    return planned_sync(look(stage).cache, app, reader(where), settings, now, SyncRequest(**request))


def places(plan: PlannedSync) -> Iterator[tuple[int, Verb, ObjectRef]]:
    for number, group in enumerate(plan.groups):
        yield from ((number, change.verb, change.ref) for change in group.changes)


def meant(planned_ref: ObjectRef, ref: ObjectRef) -> bool:
    if not planned_ref.name.endswith("…"):
        return planned_ref == ref
    return planned_ref[:3] == ref[:3] and ref.name.startswith(planned_ref.name[:-1])


def kept(
    plan: PlannedSync, written: list[tuple[str, ObjectRef, str]], app: str, phase: str, *, several: bool = False
) -> None:
    """Every write was planned, the waves came in the plan's order, and of a success everything planned was written."""
    found = list(places(plan))
    seen: dict[ObjectRef, int] = {}
    for method, ref, owner in written:
        of_others = owner != app and (owner != "" or several)
        if of_others or ref in seen:
            continue
        numbers = [number for number, verb, planned_ref in found if meant(planned_ref, ref)]
        assert numbers, f"{method} {ref} was not in the plan {found}"
        seen[ref] = numbers[0]
    order = list(seen.values())
    assert order == sorted(order), f"waves came in another order than planned: {seen}"
    if phase == "Succeeded":
        for number, verb, planned_ref in found:
            if verb in DONE and plan.groups[number].phase != "SyncFail":
                assert any(meant(planned_ref, ref) for ref in seen), f"{verb} {planned_ref} was planned and not done"


@pytest.mark.parametrize("folder", STORIES, ids=lambda path: path.name)
def test_the_syncs_of_an_example_do_what_their_plans_said(folder: Path, tmp_path: Path) -> None:
    story = read_scenario(folder)
    show = Simulation(story, tmp_path)
    show.begin()
    several = len(story.waited_for()) > 1
    ear = listening(show)
    for number, step in enumerate(step for step in story.steps if story.syncs(step)):
        show.commit(step)
        if story.commits(step):
            app = show.stage.applications().get(story.name) or show.application()
            plan = planned(show, tmp_path / f"asked-{number}", app)
            ear.written.clear()
        show.carry_out(step)
        if not several:  # else the change may be that of another application
            assert plan.verdict is Verdict.CHANGES
            assert ear.written or step.ends == Ends.FAILED
        phase = dig(show.stage.applications()[story.name], "status", "operationState", "phase")
        kept(plan, ear.written, story.name, phase, several=several)


PUBLIC = [("argocd-example-apps", name) for name in FOLDERS]
JOBS = [("jobs", "standalone-job"), ("jobs", "job-with-pod")]


@pytest.mark.parametrize(("where", "folder"), [*PUBLIC, *JOBS, ("pool-pause", ".")])
def test_the_sync_of_a_scene_does_what_its_plan_said(where: str, folder: str, tmp_path: Path) -> None:
    stage, namespace = Stage(tmp_path), "default"
    if where == "pool-pause":
        namespace = NAMESPACE
        for path, obj in pools_before(scene(where)):
            stage.world.send("POST", path, obj)
            stage.world.driver.settle()
    app = application(Repo(tmp_path / "repo", scene(where)), folder, namespace=namespace)
    ear = listening(stage)
    plan = planned(stage, tmp_path / "asked", app, prune=True)
    stage.create(app)
    stage.world.driver.advance(5)
    stage.sync(prune=True)
    state = stage.finish()
    kept(plan, ear.written, "app", state["phase"])
    if plan.verdict is Verdict.BLOCKED:
        assert not ear.written and state["phase"] in ("Failed", "Error"), json.dumps(state)
