"""Plays a commit in a world, in virtual time, until nothing is waited for or nothing moves: :func:`play`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.inspection.preview import observed_application
from syncline.assembly.inspection.snapshot import application_indices
from syncline.base.cause import Cause
from syncline.base.entropy import Entropy
from syncline.base.interpreter import seldom_collecting
from syncline.base.masking import mask_credentials
from syncline.cluster.machines.scripted.stages import Timing
from syncline.cluster.machines.simulated import BootTimes
from syncline.control.cache import Cache
from syncline.control.executor import run_in_place
from syncline.control.virtual import VirtualDriver
from syncline.explain.application import explain_application
from syncline.explain.graph import explain_object
from syncline.explain.view import View
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube import client
from syncline.kube.client import Request
from syncline.kube.errors import ApiError
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, ObjectRef, dig, name_of, namespace_of, ref_of
from syncline.kube.yaml.loading import YamlError
from syncline.machineconfig.names import GROUP, POOL
from syncline.rehearsal.disturbing import Disturbance
from syncline.rehearsal.faults import Schedule
from syncline.rehearsal.given.applications import Applications, applications_of
from syncline.rehearsal.given.definitions import missing_definitions
from syncline.rehearsal.given.deployed import bindings, uses_charts
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.pattern import BASIC_USER, CHART, CHART_FILES, PATTERN, completed
from syncline.rehearsal.given.playbooks import addresses_of
from syncline.rehearsal.given.state import commits_of
from syncline.rehearsal.given.world import GivenWorld
from syncline.rehearsal.looking import Finished, Watching
from syncline.rehearsal.mishaps import Mishaps, Timed
from syncline.rehearsal.record import Ending, Record, Recorder, Sample
from syncline.rehearsal.repository import adopt_commits, commit_files
from syncline.rehearsal.repositoryreader import RehearsedReader
from syncline.rehearsal.scenario import Act, Scenario, ScenarioError
from syncline.rehearsal.stage import APPLICATIONS, REFRESH, Stage
from syncline.rehearsal.standingin import StandIns
from syncline.rehearsal.undoing import IN_ORDER, undo
from syncline.rehearsal.world import World

START_S = 1800.0
"""Virtual seconds until the machines of a world must be up."""
JOIN_S = 300.0
"""Virtual seconds that Applications have at most to deploy what needs no machine, before the first one joins."""
CALM_S, LOOK_S = 30.0, 15.0
"""Virtual seconds before the commit, and between looks at what is waited for."""
QUIET_S, LONG_QUIET_S = 1_260.0, 4_200.0
"""Virtual seconds without any change, beside the longest duration of the world, after which a rehearsal is stuck: more
than the quarter of an hour of gates, the longest patience that a controller has by default; while a node is drained or
a Job runs, more than the hour after which a drain is given up."""
AFTER_S = 300.0
"""Virtual seconds that it goes on when nothing is waited for any more, to see whether that stays."""
CM, ENABLE_HELM = "argocd-cm", "--enable-helm"
POLL_S = 3600.0
"""Repositories do not change in a rehearsal."""
MAX_NAMED = 5
MAX_SAMPLES = 5_000
"""Changes of what is waited for that are kept."""
LOG_LINES = "3"
"""Last lines of a log that a cause quotes."""


class Then(StrEnum):
    """What a person does in the middle of a roll-out."""

    NOTHING = "do nothing"
    ABORT = "abort"
    ROLL_BACK = "roll back"
    IN_ORDER = "roll back in order"


@dataclass(frozen=True, slots=True)
class Turn:
    """What is done ``at`` a time after the commit: ABORT ends running syncs, as ``syncline app terminate-op`` does;
    ROLL_BACK lets a commit arrive that brings back what was deployed before; IN_ORDER does that, and undoes the waves
    one by one, the last first."""

    at: timedelta
    then: Then


@dataclass(frozen=True)
class Asked:
    """What is rehearsed: ``files`` arrive as a commit in ``world``. ``before``: what the Applications deployed until
    then; None: they are new."""

    name: str
    files: Files
    world: GivenWorld
    before: Files | None = None
    namespace: str = ""
    """Of the Application that is made of a folder; empty: as :func:`applications_of` finds it."""
    path: str = ""
    """The folder to deploy; empty: the Applications of the repository, or all of it."""
    schedule: Schedule | None = None
    """Faults that strike after the commit, and an order of what is ready; None: undisturbed, oldest first."""
    mishaps: tuple[Timed, ...] = ()
    """Faults that last for a while."""
    clone: Path | None = None
    """A repository with the commits that the state of the world names; None: they are not read."""
    turn: Turn | None = None
    """None: the roll-out goes on."""
    seed: int = 1
    until: timedelta = timedelta(hours=24)
    pulled: Applications | None = None
    """What the cluster gets of its hub, instead of what the repository stands for; ``pulled_before``: until then."""
    pulled_before: Applications | None = None
    control_namespace: str = ""
    """Where the GitOps controllers are; empty: where the Applications are."""
    origins: tuple[str, ...] = ()
    """Addresses that the clone names for itself."""
    committed: tuple[tuple[Files, Path], ...] = ()
    """Repositories that hold such files already, as :func:`commit_files` makes them; they are only read."""

    @cached_property
    def applications(self) -> Applications:
        return self.deployed(self.files)

    @property
    def control(self) -> str:
        return self.control_namespace or self.applications.control_namespace

    def deployed(self, files: Files) -> Applications:
        if self.pulled is not None:
            return self.pulled_before if files is self.before and self.pulled_before is not None else self.pulled
        if self.world.state is not None and not files.content:  # of a record: its Applications are in the state
            return Applications((), (), ())
        return applications_of(files, self.name, self.namespace, self.world.applications, self.path, self.origins)


@dataclass
class Play:
    """A rehearsal under way. ``scratch``: a folder for the repository and its mirror. ``given``: what reads
    repositories; None: it reads the rehearsed one. ``processes``: something may strike the controllers as processes,
    also without a schedule."""

    asked: Asked
    scratch: Path
    given: RehearsedReader | None = None
    processes: bool = False
    samples: list[Sample] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _copies: dict[str, str] = field(default_factory=dict)
    """Places of copies of further repositories, by address."""

    def __post_init__(self) -> None:
        asked, lengths = self.asked, self.asked.world.durations
        seconds = {name: each.of(asked.seed) for name, each in lengths.items()}
        drawn = asked.schedule.seed if asked.schedule is not None else 0
        self.reader = self.given or RehearsedReader(self.scratch / "mirrors")
        self.world = World(
            self.reader,
            seed=asked.seed,
            nodes=0,
            settings=AppSettings(asked.control, poll_s=POLL_S),
            timing=Timing(seconds["pull"], seconds["start"], seconds["run"], seconds["stop"]),
            boots=BootTimes(seconds["shutdown"], seconds["boot"]),
            order=Entropy(f"order/{drawn}") if drawn else None,
            state=asked.world.state,
            rights=asked.world.rights,
        )
        self.notes += self.world.left_out
        self.world.playbooks = self.reader
        struck = self.processes or any(each.mishap.of_process for each in asked.mishaps)
        apart = asked.schedule is not None or struck
        self._disturbance = Disturbance(self.world, asked.schedule) if apart else None
        self._watching = Watching(self.world.admin, self.world.clock, application_indices(self.world.settings))
        self._finished = Finished()
        self.recorder = Recorder(self.world.clock)
        if asked.world.state is not None:
            self.recorder.begin(asked.world.state)
        self.world.core.store.subscribe(self.recorder.note)
        others = not any(obj["kind"] == PATTERN for obj in asked.applications.objects) and asked.world.stand_ins
        given, binding = asked.world, bindings(asked.files)
        self._stand_ins = StandIns(
            self.world.admin, self.recorder, given.load_balancers, others, given.invented, binding
        )
        self.world.driver.looks.append(self._stand_in)
        nodes = asked.world.nodes()
        story = Scenario(self.scratch, asked.name, nodes=nodes, machine_config=asked.world.machine_config)
        self._stage = Stage(story, self.world.admin, self.world.clock, self.reader)
        if asked.world.state is None:
            self.world.driver.settle()

    def prepare(self) -> None:
        """Bring up the world before the commit. Raises ScenarioError if it does not come up."""
        world, asked, driver = self.asked.world, self.asked, self.world.driver
        for number, (url, files) in enumerate(sorted(world.repositories.items())):
            self._copies[url] = str(self.scratch / f"copy-{number}")
            commit_files(files, Path(self._copies[url]))
        if world.machine_config:
            self.world.start_machine_config()
        if world.state is not None:
            if self.given is None:
                self.serve(asked.before or asked.files)
            driver.settle()
            return
        if any(obj["kind"] == PATTERN for obj in asked.applications.objects):
            self._start_operators()
            self._make(list(BASIC_USER), "")
            self.world.start_patterns(self.reader)
        last, self.world.hushed = _machines_come_last(asked), True
        if not last and not _brought_up(self._stage, driver):
            raise ScenarioError(f"{world.name}: its machines are not up within {START_S:g} virtual seconds")
        for name, labels in world.namespaces.items():
            self._make([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}], "")
        spaces = asked.applications.namespaces
        self._make([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in spaces], "")
        driver.advance(1)
        for path, obj in world.objects.objects():
            self._make([obj], path)
        self._define()
        if world.invented and uses_charts(asked.files):
            labels = {"app.kubernetes.io/part-of": "argocd"}
            metadata = {"name": CM, "namespace": asked.control, "labels": labels}
            settings = {"kustomize.buildOptions": ENABLE_HELM}
            self._make([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": settings}], CM)
            self.notes.append(f"{CM} has kustomize.buildOptions {ENABLE_HELM}, which kustomizations with charts need")
        if last:
            _join(self, self._stage)
        driver.advance(CALM_S)
        if asked.before is not None:
            if not last:
                self.commit(asked.before)
            self.run(asked.until)
            self.samples.clear()
        self.world.hushed = False

    def _start_operators(self) -> None:
        from syncline.assembly.operators.folders import FolderCatalogs, FolderError
        from syncline.assembly.operators.role import folder_role
        from syncline.patterns.operators.behaving import shipped

        try:
            catalogs = FolderCatalogs.read(dict(self.asked.world.catalogs))
        except FolderError as error:
            raise ScenarioError(f"--catalog: {error}", usage=True) from error
        self.world.start_role(folder_role(catalogs, shipped()))

    def _define(self) -> None:
        """Serve the kinds of the repository that nothing defines, as definitions that take anything."""
        known = Mapper(run_in_place(discover(), self.world.admin))
        missing = missing_definitions(self.asked.files, lambda gvk: known.find(gvk) is not None)
        for definition in missing:
            self._make([definition], name_of(definition))
        if missing:
            names = ", ".join(name_of(each) for each in missing[:MAX_NAMED])
            more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
            self.notes.append(f"definitions that take anything, and that nothing acts on, are there: {names}{more}")

    def _make(self, objects: list[Obj], path: str) -> None:
        try:
            run_in_place(ensure_objects(objects), self.world.admin)
        except (ApiError, LookupError, YamlError) as error:
            if self.asked.world.lenient:
                self.notes.append(f"{path} is left out: {error}")
                return
            said = f"{self.asked.world.name}: objects: {path}: {error}"
            raise ScenarioError(said, usage=True) from error

    def serve(self, files: Files) -> Applications:
        """Let the repository hold these files at each of its addresses; return what they deploy."""
        asked = self.asked.deployed(files)
        place = self.scratch / f"repository-{len(list(self.scratch.iterdir()))}"
        patterned = any(obj["kind"] == PATTERN for obj in asked.objects)
        state = self.asked.world.state
        known = next((path for each, path in self.asked.committed if each is files), None)
        if known is not None and not patterned and state is None:
            place = known
        else:
            commit_files(completed(files, self.asked.name) if patterned else files, place)
        self.reader.places = {**self._copies, **dict.fromkeys(asked.urls, str(place))}
        self.reader.files, self.reader.place = files, str(place)
        others = [each for each in addresses_of(files) if each not in asked.urls]
        self.reader.played = dict.fromkeys((*asked.urls, *others), str(place))
        for url in others:
            said = f"AnsibleConfigs that name {mask_credentials(url)} get this repository, which has their playbook"
            self.notes += [said] if said not in self.notes else []
        if patterned:
            self.reader.places = {**self.reader.places, CHART: str(place.with_name(f"{place.name}-chart"))}
            commit_files(CHART_FILES, place.with_name(f"{place.name}-chart"))
        if state is not None and self.asked.clone is not None:
            adopt_commits(place, self.asked.clone, commits_of(state))
        return asked

    def commit(self, files: Files) -> None:
        """Let a commit arrive: create the Applications that are new, and sync those that no one syncs by itself."""
        asked = self.serve(files)
        for app in asked.objects:
            self._send_application(app)
        self.advance(1)
        running = {name_of(app) for app in self.applications() if app.get("operation")}
        for app in asked.objects:
            by_hand = app["kind"] == APPLICATION.kind and not dig(app, "spec", "syncPolicy", "automated")
            if by_hand and name_of(app) not in running:
                self._operate(app)

    def _send_application(self, app: Obj) -> None:
        info = self.world.cluster_actor.loop.mapper.by_name(str(app["kind"]).lower())
        if info is None:
            raise ScenarioError(f"{app['kind']} {name_of(app)}: this kind is not served here")
        answer = self.world.admin.send(client.create(info, app))
        if answer.status == 409:
            note = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}, "spec": app.get("spec")}
            merge = client.PatchType.MERGE
            answer = self.world.admin.send(client.patch(info, namespace_of(app), name_of(app), merge, note))
        if not answer.ok:
            raise ScenarioError(f"{app['kind']} {name_of(app)}: {answer.obj.get('message')}", usage=True)

    def _operate(self, app: Obj) -> None:
        """Ask for a sync, as ``syncline app sync`` does."""
        options = dig(app, "spec", "syncPolicy", "syncOptions", default=[])
        body: Obj = {"operation": {"sync": {"syncOptions": options}, "initiatedBy": {"username": "rehearsal"}}}
        merge = client.PatchType.MERGE
        answer = self.world.admin.send(client.patch(APPLICATIONS, namespace_of(app), name_of(app), merge, body))
        if not answer.ok:
            raise ScenarioError(f"Application {name_of(app)}: {answer.obj.get('message')}")

    def turn(self, then: Then, name: str = "") -> None:
        """Do what a person does in the middle; ABORT to the Applications of this ``name`` alone if it has one.
        Raises ScenarioError if nothing is known to roll back to."""
        if then is Then.ROLL_BACK:
            self.commit(self._before())
        elif then is Then.IN_ORDER:
            self.turn(Then.ABORT)
            self.notes += [f"{IN_ORDER}{step}" for step in undo(self)]
        elif then is Then.ABORT:
            body: Obj = {"status": {"operationState": {"phase": "Terminating"}}}
            for app in self.applications(name):
                if app.get("operation") and dig(app, "status", "operationState", "phase") == "Running":
                    self.world.admin.send(
                        client.patch(APPLICATIONS, namespace_of(app), name_of(app), client.PatchType.MERGE, body)
                    )

    def _before(self) -> Files:
        if self.asked.before is None:
            raise ScenarioError("to roll back, say what was deployed before: --after REVISION", usage=True)
        return self.asked.before

    def bring_back(self) -> None:
        """Let a commit bring back what was deployed before, for Applications that sync nothing by themselves."""
        self.serve(self._before())
        for app in self.applications():
            merge, place = client.PatchType.MERGE, (namespace_of(app), name_of(app))
            self.world.admin.send(client.patch(APPLICATIONS, *place, merge, REFRESH)).or_raise()

    def advance(self, seconds: float) -> None:
        """Let virtual time pass, with the faults that are due."""
        if self._disturbance is None or not self._disturbance.steps.counting:
            self.world.driver.advance(seconds)
        else:
            self._disturbance.advance(seconds)

    def applications(self, name: str = "") -> list[Obj]:
        """Return all Applications, or those of a name. Raises ScenarioError if there is none of it."""
        found = [app for app in self._stage.items(APPLICATIONS.path("")) if name in ("", name_of(app))]
        if name and not found:
            raise ScenarioError(f"Application {name}: it is not there")
        return found

    def sync(self, name: str) -> None:
        """Ask for a sync of each Application of this name. Raises ScenarioError if there is none."""
        for app in self.applications(name):
            self._operate(app)

    def act(self, act: Act) -> None:
        """Do what a person does to the cluster. Raises ScenarioError if it is refused."""
        self._stage.act(act)

    def run(self, until: timedelta, *, whole: bool = False) -> tuple[Ending, datetime | None]:
        """Advance until nothing is waited for, nothing moves, or the limit; return which, and since when all is done.
        ``whole``: advance to the limit in any case. The world is looked at only if something was written since the last
        look."""
        clock, kept = self.world.clock, self.recorder
        disturbed = self._disturbance is not None and self._disturbance.steps.counting
        advance = self._disturbance.advance if disturbed and self._disturbance else self.world.driver.advance
        limit, moved, done = clock.now() + until, clock.now(), None
        waits: tuple[Cause, ...] = ()
        seen, signature = -1, None
        while clock.now() < limit:
            advance(min(LOOK_S, (limit - clock.now()).total_seconds()))
            if kept.changes != seen:
                seen = kept.changes
                waits = self.waits()
                now_waits = tuple(_signature(each) for each in waits)
                if now_waits != signature:
                    signature, moved = now_waits, kept.changed_at or clock.now()
                    if len(self.samples) < MAX_SAMPLES:
                        self.samples.append(Sample(moved, waits))
                done = (done or kept.changed_at or clock.now()) if not waits else None
            if whole:
                continue
            if done is not None and (clock.now() - done).total_seconds() >= AFTER_S:
                return Ending.DONE, done
            if self._is_quiet(moved) and not any(_is_due_later(each, clock.now()) for each in waits):
                return Ending.STUCK, None
        return (Ending.DONE, done) if done is not None else (Ending.LIMIT, None)

    def _is_quiet(self, moved: datetime) -> bool:
        """Return whether nothing has changed for so long that nothing will."""
        longest_s = max(each.of(self.asked.seed) for each in self.asked.world.durations.values())
        quiet_s = (self.world.clock.now() - moved).total_seconds() - longest_s
        if quiet_s < QUIET_S or quiet_s >= LONG_QUIET_S:
            return quiet_s >= LONG_QUIET_S
        drains = any(dig(node, "spec", "unschedulable") for node in self._stage.items("/api/v1/nodes"))
        return not drains and not any(_is_of_job(pod) for pod in self._stage.items("/api/v1/pods"))

    def _stand_in(self) -> None:
        if self._stand_ins.look(self.world.clock.now()):
            self.world.driver.settle()

    def waits(self) -> tuple[Cause, ...]:
        """Return the causes of what is not done, by the functions of ``syncline explain``."""
        cache = self._watching.look()
        return tuple(self._unfinished(cache, View(cache, self.world.clock.now(), self._log)))

    def _log(self, namespace: str, pod: str, container: str) -> tuple[str, ...]:
        query = {"container": container, "tailLines": LOG_LINES}
        answer = self.world.admin.send(Request("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}/log", query))
        return tuple(answer.raw.decode("utf-8", "replace").splitlines()) if answer.ok else ()

    def _unfinished(self, cache: Cache, view: View) -> Iterator[Cause]:
        self._finished.look(cache)
        for app in cache.objects(APPLICATION.group_kind):
            if self._finished.knows(app):
                continue
            controlled = cache.get(ObjectRef(*APP_PROJECT.group_kind, namespace_of(app), "default")) is not None
            settings = AppSettings(control_namespace=namespace_of(app)) if controlled else AppSettings()
            observed = observed_application(cache, ref_of(app), self.reader, settings, view.now)
            if observed is None:
                continue
            found = explain_application(view, observed)
            if found.blocked or not _is_settled(app):
                yield found.cause
            else:
                self._finished.note(app)
        for pool in cache.objects(POOL):
            found = explain_object(view, pool)
            updated = any(c.get("type") == "Updated" and c.get("status") == "True" for c in _conditions(pool))
            if found.blocked or not updated:
                yield found.cause

    def disturb(self) -> Mishaps:
        """Let the faults of the schedule strike from now on; return what lets others strike."""
        if self._disturbance is None:
            return Mishaps(self.world)
        self._disturbance.begin(machine_config=self.asked.world.machine_config)
        return Mishaps(self.world, self._disturbance.partitions)

    @property
    def steps(self) -> int:
        """How many writes there were at which faults could strike; 0 without a schedule."""
        return len(self._disturbance.steps.log) if self._disturbance is not None else 0

    def record(self, began: datetime, ending: Ending, done: datetime | None) -> Record:
        entries = tuple(entry for entry in self.world.journal if entry.when >= began)
        kept = self.recorder
        return Record(
            began,
            self.world.clock.now(),
            ending,
            done,
            entries,
            tuple(kept.versions),
            tuple(self.samples),
            kept.overflow,
            (*self.notes, *sorted(self.reader.assumed), *self._stand_ins.notes()),
            self.steps,
            self._disturbance.turns() if self._disturbance is not None else (),
        )


def reach(run: Play, at: datetime) -> None:
    """Advance to a time, if it is to come."""
    left = at - run.world.clock.now()
    if left > timedelta(0):
        run.run(left, whole=True)


@seldom_collecting()
def play(asked: Asked, scratch: Path) -> Record:
    """Rehearse. Raises ScenarioError if the world or the Applications cannot be made."""
    scratch.mkdir(parents=True, exist_ok=True)
    run = Play(asked, scratch)
    run.prepare()
    began = run.world.clock.now()
    mishaps = run.disturb()
    moments = sorted((one for each in asked.mishaps for one in each.moments()), key=lambda one: one[0])
    for at, heals, mishap in moments:
        if not at:
            mishaps.switch(mishap, on=not heals)
    run.commit(asked.files)
    if asked.turn is not None:
        run.run(asked.turn.at)
        run.turn(asked.turn.then)
    for at, heals, mishap in moments:
        if timedelta(0) < at < asked.until:
            reach(run, began + at)
            mishaps.switch(mishap, on=not heals)
    ending, done = run.run(asked.until - (run.world.clock.now() - began) if moments else asked.until)
    return run.record(began, ending, done)


def _machines_come_last(asked: Asked) -> bool:
    """Return whether there are configs of machines from before the commit. Machines have had them for long, and would
    else be drained and rebooted one by one, some while the commit arrives."""
    before = asked.before.content.values() if asked.before is not None else ()
    files = (*before, *asked.world.objects.content.values())
    return asked.world.machine_config and any(GROUP.encode() in each for each in files)


def _brought_up(stage: Stage, driver: VirtualDriver, *, held: bool = False) -> bool:
    """Add the machines, and wait until they are up; return whether they are. ``held``: no pod is placed on them yet."""
    stage.add_nodes(held=held)
    waited = 0.0
    while not stage.stands() and waited < START_S:
        driver.advance(LOOK_S)
        waited += LOOK_S
    return stage.stands()


def _join(play: Play, stage: Stage) -> None:
    """Deploy what was there before, and then let machines join with the configs of their pools. No pod is placed until
    all of them are there, so that pods spread. What does not come up is as broken as it was before."""
    if play.asked.before is not None:
        play.commit(play.asked.before)
    seen, waited = -1, 0.0
    while play.recorder.changes != seen and waited < JOIN_S:
        seen, waited = play.recorder.changes, waited + LOOK_S
        play.world.driver.advance(LOOK_S)
    _brought_up(stage, play.world.driver, held=True)
    stage.open_nodes()


def _conditions(obj: Obj) -> list[Obj]:
    found: list[Obj] = dig(obj, "status", "conditions", default=[])
    return found


def _is_of_job(pod: Obj) -> bool:
    """Return whether a pod runs and is to end by itself."""
    return bool(dig(pod, "spec", "restartPolicy") != "Always" and dig(pod, "status", "phase") == "Running")


def _is_settled(app: Obj) -> bool:
    """Return whether the Application has been compared, and no operation is asked for or under way."""
    status = app.get("status") or {}
    phase = dig(status, "operationState", "phase")
    if app.get("operation") or phase == "Running" or not dig(status, "sync", "status"):
        return False
    if dig(app, "spec", "syncPolicy", "automated") is not None and dig(status, "sync", "status") != "Synced":
        return False
    rests = phase is not None or dig(status, "sync", "status") == "Synced"  # where nothing differs, no sync begins
    return rests and dig(status, "health", "status") in ("Healthy", "Suspended")


def _signature(cause: Cause) -> tuple[object, ...]:
    return cause.subject, cause.state, cause.message, tuple(_signature(each) for each in cause.because)


def _is_due_later(cause: Cause, now: datetime) -> bool:
    if cause.until is not None and cause.until > now:
        return True
    return any(_is_due_later(each, now) for each in cause.because)
