"""The planner of hydration: decides the next step of a group of Applications; pure.

A group is planned as a whole, as one commit holds all its manifests; its first Application by name leads. The state
machine is upstream's (``controller/hydrator``): Hydrating, then Hydrated or Failed in
``status.sourceHydrator.currentOperation``. Either all Applications of a project are written, or none. An Application
that may not be hydrated is left out of its group, so that it cannot block others by joining them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from syncline.argo.application import HYDRATE, HYDRATE_STAMP, REFRESH, AppView
from syncline.argo.hydrator import (
    GENERATED,
    GroupKey,
    HydrationSettings,
    branch_problem,
    clean_folder,
    dry_source,
    folder_problem,
    sync_source,
    target_branch,
)
from syncline.argo.project import permits_app_namespace, permits_source
from syncline.base.action import Action
from syncline.base.clock import format_time, time_or_none
from syncline.control.plan import Patch, Plan, Requeue
from syncline.gitops.application.observing.observe import AppSettings
from syncline.gitops.hydration.work import Forget, Hydrate, Hydrated, Job, Resolution, ResolveDry, Run, Scope
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, name_of, resource_version, uid_of
from syncline.kube.patching.patches import create_merge_patch
from syncline.sources.rendering.environment import RenderContext

GENERATE_PATHS = "argocd.argoproj.io/manifest-generate-paths"
HYDRATING, HYDRATED, FAILED = "Hydrating", "Hydrated", "Failed"
COOLDOWN = timedelta(minutes=2)
"""Time until a failed hydration is retried, unless a user requests it or a newer dry commit exists (upstream)."""
MAX_MEMBERS = 500
"""Limit of Applications in one commit."""
SHARED_LOOK = 0.25
"""Part of the polling period for which all groups share one read of a remote."""
BESIDE_S = 30.0
"""Seconds between reconciles while Git works; its end wakes the group."""


@dataclass(frozen=True)
class Member:
    """One Application of the group."""

    view: AppView
    project: Obj | None
    context: RenderContext

    @property
    def ref(self) -> ObjectRef:
        return self.view.ref

    @property
    def hydrator(self) -> Obj:
        return self.view.hydrator or {}

    @property
    def status(self) -> Obj:
        found = self.view.status.get("sourceHydrator")
        return found if isinstance(found, dict) else {}

    @property
    def operation(self) -> Obj:
        found = self.status.get("currentOperation")
        return found if isinstance(found, dict) else {}

    @property
    def phase(self) -> str:
        return str(self.operation.get("phase") or "")

    @property
    def compared(self) -> str:
        return str(self.status.get("lastComparedDryRevision") or "")

    @property
    def request(self) -> tuple[str, str] | None:
        """Return the hydration request: ``hard`` or ``normal``, and its time stamp."""
        found = annotations_of(self.view.obj)
        if HYDRATE not in found:
            return None
        return "hard" if found[HYDRATE] == "hard" else "normal", found.get(HYDRATE_STAMP, "")

    @property
    def asked(self) -> str:
        """Return an id of the request, or "". Without a time stamp it contains the resourceVersion."""
        if self.request is None:
            return ""
        return f"{uid_of(self.view.obj)}/{self.request[1] or resource_version(self.view.obj)}"


@dataclass(frozen=True)
class Group:
    """``others``: Applications of other groups that write the same branch."""

    key: GroupKey
    members: tuple[Member, ...]
    settings: AppSettings
    hydration: HydrationSettings = field(default_factory=HydrationSettings)
    resolution: Resolution | None = None
    looking: bool = False
    run: Run | None = None
    others: tuple[Obj, ...] = ()


def plan_hydration(observed: Group, now: datetime) -> Plan:
    """Plan one reconcile of a group."""
    if observed.run is not None:
        if observed.run.ended is not None:
            return _concluded(observed, observed.run, observed.run.ended)
        why = f"waiting for Git since {format_time(observed.run.since)}"
        return Plan(outcome=Requeue(BESIDE_S, why, background=True), why=why)
    problems = _problems(observed)
    sound = tuple(member for member in observed.members if member.ref not in problems)
    refused = _failed(observed, problems, now, COOLDOWN)
    if not sound:
        return refused
    plan = _plan_sound(replace(observed, members=sound), now)
    return replace(plan, status=(*plan.status, *refused.status))


def _plan_sound(observed: Group, now: datetime) -> Plan:
    if observed.looking:
        why = f"waiting to read {observed.key.dry_url}"
        return Plan(outcome=Requeue(BESIDE_S, why, background=True), why=why)
    resolution = observed.resolution
    asked = tuple(
        sorted({m.asked for m in observed.members if m.asked and not (resolution and m.asked in resolution.answers)})
    )
    if resolution is None or asked or now >= resolution.at + _period(observed, resolution):
        return _looked(observed, asked)
    if resolution.error:
        return _unseen(observed, resolution, now)
    reasons = [reason for member in observed.members if (reason := _needs(member, resolution, now))]
    if not reasons:
        return _settled(observed, resolution, now)
    return _begun(observed, resolution, reasons[0], now)


# -- whether ----------------------------------------------------------------------------------------------------------


def _needs(member: Member, resolution: Resolution, now: datetime) -> str:
    """Return why an Application needs hydration; empty if it does not."""
    operation, request = member.operation, member.request
    if not operation:
        return "no previous hydrate operation"
    if member.phase == HYDRATING:
        return "the hydrate operation was interrupted"
    if request is not None and request[0] == "hard":
        return "hard hydrate requested"
    if operation.get("sourceHydrator") != member.hydrator:
        return "spec.sourceHydrator differs"
    if member.phase == FAILED:
        if request is not None:
            return "retrying previous failed hydration"
        if now > _cools_until(member, now):
            return "previous hydrate operation failed more than 2 minutes ago"
        if not member.compared:
            return ""
    if member.compared == resolution.sha or (member.compared and member.ref in resolution.untouched):
        return ""
    return "new revision may have changes"


def _cools_until(member: Member, now: datetime) -> datetime:
    finished = time_or_none(member.operation.get("finishedAt"))
    return now - COOLDOWN if finished is None else finished + COOLDOWN


def _problems(observed: Group) -> dict[ObjectRef, str]:
    """Return the problems of the group's Applications, by upstream's rules and ours."""
    if len(observed.members) > MAX_MEMBERS:
        text = f"{len(observed.members)} Applications hydrate to one branch, at most {MAX_MEMBERS} may"
        return {member.ref: text for member in observed.members}
    found = {member.ref: text for member in observed.members if (text := _problem(member, observed.settings))}
    sound = [member.view.obj for member in observed.members if member.ref not in found]
    return found | {ref: text for ref, text in collisions([*sound, *observed.others]).items() if ref not in found}


def _problem(member: Member, settings: AppSettings) -> str:
    view, project, hydrator = member.view, member.project, member.hydrator
    if project is None:
        return f'failed to get project "{view.project}": it does not exist'
    if not permits_app_namespace(project, view.namespace, settings.control_namespace):
        return (
            f"failed to get project \"{view.project}\": application '{view.name}' in namespace '{view.namespace}' "
            f"is not permitted to use project '{view.project}'"
        )
    sources = (("application", dry_source(hydrator)), ("destination", sync_source(hydrator)))
    for what, source in sources:
        if not permits_source(project, str(source["repoURL"])):
            return f"{what} repo {source['repoURL']} is not permitted in project '{name_of(project)}'"
    branches = {
        "spec.sourceHydrator.syncSource.targetBranch": str(sync_source(hydrator)["targetRevision"]),
        "spec.sourceHydrator.hydrateTo.targetBranch": target_branch(hydrator),
    }
    wrong = (branch_problem(branch, field) for field, branch in branches.items())
    return next(filter(None, wrong), "") or folder_problem(hydrator) or _feeds_itself(hydrator)


def _feeds_itself(hydrator: Obj) -> str:
    """Return why the output would be read as input again; empty if it would not."""
    dry, sync = dry_source(hydrator), sync_source(hydrator)
    revision = str(dry.get("targetRevision") or "").removeprefix("refs/heads/")
    if revision != target_branch(hydrator) or dry["repoURL"] != sync["repoURL"]:
        return ""
    read, written = clean_folder(str(dry.get("path") or "")), clean_folder(str(sync["path"]))
    if read and written != read and not written.startswith(f"{read}/"):
        return ""
    return f"hydrated manifests in {written} of branch {revision} would be read as dry ones; choose another branch"


def collisions(apps: list[Obj]) -> dict[ObjectRef, str]:
    """Return upstream's message for Applications whose folders collide; of two, the one hydrated there before stays."""
    found: dict[ObjectRef, str] = {}
    places: dict[str, AppView] = {}
    views = sorted((AppView(app) for app in apps), key=lambda view: view.ref)
    for view in views:
        places.setdefault(_folder(view), view)
    for view in views:
        folder = _folder(view)
        parts = folder.split("/")
        above = {posixpath.join(*parts[:at]) for at in range(1, len(parts)) if parts[at] in GENERATED}
        for place in {folder, *above} & places.keys():
            other = places[place]
            if other.ref == view.ref:
                continue
            one, two = _was_written(view), _was_written(other)
            if one <= two:
                found[view.ref] = _collides(other, place)
            if two <= one:
                found[other.ref] = _collides(view, folder)
    return found


def _was_written(view: AppView) -> bool:
    """Return whether its last successful hydration wrote the same folder."""
    last = dig(view.status, "sourceHydrator", "lastSuccessfulOperation", "sourceHydrator")
    if not isinstance(last, dict) or view.hydrator is None:
        return False
    return all(read(last) == read(view.hydrator) for read in (target_branch, _written_to))


def _written_to(hydrator: Obj) -> tuple[str, str]:
    source = sync_source(hydrator)
    return str(source["repoURL"]), clean_folder(str(source["path"]))


def _folder(view: AppView) -> str:
    return clean_folder(str(sync_source(view.hydrator or {})["path"]))


def _collides(other: AppView, folder: str) -> str:
    repo = sync_source(other.hydrator or {})["repoURL"]
    return f"app {other.namespace}/{other.name} hydrator uses the same destination: repo={repo}, path={folder}"


# -- what -----------------------------------------------------------------------------------------------------------


def _looked(observed: Group, asked: tuple[str, ...]) -> Plan:
    first = observed.members[0]
    reason = (
        "hydration was requested" if asked else ("no look yet" if observed.resolution is None else "time to look again")
    )
    scopes = tuple(
        Scope(member.ref, member.compared, paths)
        for member in observed.members
        if member.compared and (paths := _generate_paths(member))
    )
    old = 0.0 if asked or observed.resolution is None else SHARED_LOOK * observed.settings.poll_s
    resolution = ResolveDry(observed.key, dry_source(first.hydrator), first.view.project, reason, asked, scopes, old)
    return Plan(steps=((resolution,),), outcome=Requeue(0, "looked"), why=reason)


def _generate_paths(member: Member) -> tuple[str, ...]:
    """Return ``manifest-generate-paths`` relative to the repository root; empty without the annotation."""
    given = annotations_of(member.view.obj).get(GENERATE_PATHS, "")
    folder = clean_folder(str(dry_source(member.hydrator).get("path") or ""))
    found = []
    for part in filter(None, (one.strip() for one in given.split(";"))):
        joined = part if part.startswith("/") else f"/{folder}/{part}"
        found.append(posixpath.normpath(joined.lstrip("/") or "."))
    return tuple(found)


def _begun(observed: Group, resolution: Resolution, reason: str, now: datetime) -> Plan:
    """Mark all Applications Hydrating, then start the Git work."""
    first = observed.members[0]
    jobs = tuple(
        Job(
            member.ref,
            dry_source(member.hydrator),
            clean_folder(str(sync_source(member.hydrator)["path"])),
            member.context,
            member.view.project,
            member.request,
        )
        for member in observed.members
    )
    sync = sync_source(first.hydrator)
    action = Hydrate(
        observed.key,
        resolution.sha,
        resolution.ref,
        jobs,
        sync["repoURL"],
        sync["targetRevision"],
        observed.hydration,
        reason,
    )
    started = {"startedAt": format_time(now), "phase": HYDRATING, "message": ""}
    marks = _patches(
        observed.members,
        lambda member: (
            member.status
            if member.phase == HYDRATING and member.operation.get("sourceHydrator") == member.hydrator
            else member.status | {"currentOperation": {**started, "sourceHydrator": member.hydrator}}
        ),
        reason,
    )
    steps: tuple[tuple[Action, ...], ...] = (marks, (action,)) if marks else ((action,),)
    return Plan(steps=steps, outcome=Requeue(0, "hydrated"), why=reason)


def _settled(observed: Group, resolution: Resolution, now: datetime) -> Plan:
    """Nothing to hydrate: note the compared commit and remove answered requests."""
    patches = _patches(
        observed.members,
        lambda member: (
            member.status
            if member.phase == FAILED and not member.compared
            else member.status | {"lastComparedDryRevision": resolution.sha}
        ),
        "no hydration is needed",
        lambda member: _without_request(member, member.request),
    )
    cooling = [(_cools_until(m, now) - now).total_seconds() + 1 for m in observed.members if m.phase == FAILED]
    wait = (resolution.at + _period(observed, resolution) - now).total_seconds()
    after = max(min([wait, *cooling]), 0.1)
    why = f"hydrated at {resolution.sha}"
    return Plan(status=patches, outcome=Requeue(after, "read the dry source again", background=True), why=why)


def _unseen(observed: Group, resolution: Resolution, now: datetime) -> Plan:
    """Report that the dry source cannot be read, where a request waits for it; hydrated Applications stay so."""
    concerned = {m.ref for m in observed.members if m.phase != HYDRATED or m.request is not None}
    return _failed(observed, dict.fromkeys(concerned, resolution.error), now, _period(observed, resolution))


def _generic(problems: Mapping[ObjectRef, str]) -> str:
    """Return the message for Applications that share project and branch with failed ones."""
    first = min(problems)
    more = f"and {len(problems) - 1} more have errors" if len(problems) > 1 else "has an error"
    return f"cannot hydrate because application {first.namespace}/{first.name} {more}"


def _failed(observed: Group, texts: Mapping[ObjectRef, str], now: datetime, again: timedelta) -> Plan:
    """Write failures once: an equal failure of the same spec, without a request, is not written again."""

    def status(member: Member) -> Obj:
        if member.ref not in texts:
            return member.status
        message = _message(member, texts[member.ref])
        operation = member.operation
        same = (FAILED, message, member.hydrator)
        report = (member.phase, operation.get("message"), operation.get("sourceHydrator")) == same
        if report and member.request is None:
            return member.status
        begun = operation.get("startedAt") if member.phase == HYDRATING else format_time(now)
        return member.status | {"currentOperation": _ended(FAILED, begun, now, message, member.hydrator)}

    patches = _patches(
        observed.members,
        status,
        "hydration fails",
        lambda member: _without_request(member, member.request) if member.ref in texts else {},
    )
    why = f"hydration fails: {next(iter(texts.values()), 'the dry source cannot be read')}"
    wait = again.total_seconds()
    return Plan(status=patches, outcome=Requeue(wait, "try the hydration again", background=True), why=why)


def _message(member: Member, text: str) -> str:
    return f"Failed to hydrate: {member.view.mask(text)}"


def _ended(phase: str, begun: Any, now: datetime, message: str, hydrator: Obj, **shas: str) -> Obj:
    """Return a finished hydrate operation without empty fields."""
    fields = {"startedAt": begun, "finishedAt": format_time(now), "phase": phase, "message": message}
    return fields | {key: sha for key, sha in shas.items() if sha} | {"sourceHydrator": hydrator}


# -- the end of a run -------------------------------------------------------------------------------------------------


def _concluded(observed: Group, run: Run, end: Hydrated) -> Plan:
    """Write the end of the run to all its Applications, then forget it."""
    jobs = {job.app: job for job in run.action.jobs}
    errors = dict.fromkeys(jobs, end.error) if end.error else _shared(end.errors, run.action.jobs)
    took_part = tuple(member for member in observed.members if member.ref in jobs)

    def status(member: Member) -> Obj:
        sha, hydrator = run.action.sha, member.operation.get("sourceHydrator") or member.hydrator
        begun = member.operation.get("startedAt") or format_time(run.since)
        compared = member.status | {"lastComparedDryRevision": sha}
        if member.ref in errors:
            message = _message(member, errors[member.ref])
            return compared | {"currentOperation": _ended(FAILED, begun, end.at, message, hydrator, drySHA=sha)}
        shas = {"drySHA": sha, "hydratedSHA": end.sha}
        operation = _ended(HYDRATED, begun, end.at, "", hydrator, **shas)
        return compared | {
            "currentOperation": operation,
            "lastSuccessfulOperation": {**shas, "sourceHydrator": hydrator},
        }

    def annotations(member: Member) -> dict[str, str | None]:
        done = member.operation.get("phase") != HYDRATING
        resolution = {} if member.ref in errors or done else {REFRESH: "normal"}
        return resolution | _without_request(member, jobs[member.ref].request)

    why = (
        f"failed: {next(iter(errors.values()))}"
        if len(errors) == len(jobs)
        else f"hydrated {run.action.sha} as {end.sha}"
    )
    patches = _patches(took_part, status, why, annotations)
    forget: tuple[tuple[Action, ...], ...] = ((Forget(observed.key, why),),)
    return Plan(steps=((patches, *forget) if patches else forget), outcome=Requeue(0, "look again"), why=why)


def _shared(errors: Mapping[ObjectRef, str], jobs: tuple[Job, ...]) -> dict[ObjectRef, str]:
    """Add to the errors a message for the other Applications of the same projects."""
    found: dict[ObjectRef, str] = {}
    for project in {job.project for job in jobs if job.app in errors}:
        mine = {job.app: errors[job.app] for job in jobs if job.project == project and job.app in errors}
        found |= {job.app: mine.get(job.app, _generic(mine)) for job in jobs if job.project == project}
    return found


def _without_request(member: Member, answered: tuple[str, str] | None) -> dict[str, str | None]:
    """Remove the answered request; a later one stays."""
    if answered is None or member.request != answered:
        return {}
    return {HYDRATE: None, HYDRATE_STAMP: None}


def _period(observed: Group, resolution: Resolution) -> timedelta:
    return timedelta(seconds=observed.settings.error_poll_s if resolution.error else observed.settings.poll_s)


def _patches(
    members: tuple[Member, ...],
    status: Callable[[Member], Obj],
    reason: str,
    annotations: Callable[[Member], Mapping[str, str | None]] = lambda _member: {},
) -> tuple[Action, ...]:
    """Return one conditional merge patch per changed Application."""
    found: list[Action] = []
    for member in members:
        known = annotations_of(member.view.obj)
        changed = {key: value for key, value in annotations(member).items() if known.get(key) != value}
        wanted = status(member)
        body: Obj = {}
        if wanted != member.status:
            before = dig(member.view.obj, "status", "sourceHydrator", default={}) or {}
            body["status"] = {"sourceHydrator": create_merge_patch(before, wanted)}
        if not body and not changed:
            continue
        body["metadata"] = {"resourceVersion": resource_version(member.view.obj)}
        if changed:
            body["metadata"]["annotations"] = changed
        found.append(Patch(APPLICATION, member.view.namespace, member.view.name, body, member.view.mask(reason)))
    return tuple(found)
