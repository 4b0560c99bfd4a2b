"""Does the Git work of hydration: reads and renders dry sources, writes branches. Blocking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from syncline.argo.application import HYDRATE, HYDRATE_STAMP
from syncline.argo.webhooks import Push, touches_dry_source
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.clock import SystemClock, format_time
from syncline.gitops.application.manifests import READ_LIMIT_S, Manifests
from syncline.gitops.hydration.work import Hydrate, Hydrated, Job, Resolution, ResolveDry, Scope
from syncline.kube.objects import Obj, ObjectRef
from syncline.kube.text.glob import GlobError, path_match
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.mirrors import Freshness, Repository
from syncline.sources.hydrating.commands import commands_of
from syncline.sources.hydrating.drycommit import (
    DryCommit,
    cleaned_message,
    commit_metadata,
    default_message,
    default_readme,
    metadata_text,
    path_metadata,
    read_commit,
    readme_data,
)
from syncline.sources.hydrating.manifest import manifest_text
from syncline.sources.hydrating.pushing import ATTRIBUTES, HydratedFolder, HydratedRepository, HydratedWrite
from syncline.sources.hydrating.templates import render_template
from syncline.sources.workers.read_scope import ReadScope, read_scope

MESSAGE = "sourceHydrator.commitMessageTemplate"
README = "sourceHydrator.readmeMessageTemplate"
METADATA = "hydrator.metadata"


def hydration_asked(app: Obj | None, pushes: Iterable[Push]) -> dict[str, str]:
    """Return the annotations that request hydration, if a push was to the Application's dry source."""
    if app is None or not touches_dry_source(app, pushes):
        return {}
    return {HYDRATE: "normal", HYDRATE_STAMP: format_time(SystemClock().now())}


class HydratingReader(GitSourceReader):
    """Reads the sources of Applications, and hydrates dry ones."""

    def resolve_dry(self, action: ResolveDry, now: datetime) -> Resolution:
        """Return the current commit of a dry source, and the Applications without a changed file."""
        asked = bool(action.answers)
        since = now - timedelta(seconds=action.may_be_old_s) if action.may_be_old_s else None
        freshness = Freshness(now, since, asked=asked)
        with read_scope(
            ReadScope(now, action.project, str(action.source["repoURL"]), asked=asked, limit_s=READ_LIMIT_S)
        ):
            try:
                repository = self.sources.repository(action.source, action.project)
                resolved = repository.resolve(str(action.source.get("targetRevision") or "HEAD"), freshness=freshness)
                changed = _Changes(repository, resolved.sha)
                untouched = frozenset(scope.app for scope in action.scopes if not changed.touch(scope))
            except SourceError as error:
                return Resolution(now, error=str(error), answers=action.answers)
        return Resolution(now, resolved.sha, resolved.ref, answers=action.answers, untouched=untouched)

    def hydrate(self, action: Hydrate, now: datetime) -> Hydrated:
        """Render all jobs at the dry commit, write the changes and push. Of each project all or none."""
        first = action.jobs[0]
        projects = {job.project for job in action.jobs}
        owner = next(iter(projects)) if len(projects) == 1 else ""
        url = str(first.source["repoURL"])
        with read_scope(ReadScope(now, owner, url, limit_s=READ_LIMIT_S)):
            try:
                repository = self.sources.writable(action.url, projects, HydratedRepository)
                rendered, errors = self._render_jobs(action, now)
                if not rendered:
                    return Hydrated(now, errors=errors)
                commit = self._dry_commit(first.source, action.sha, first.project)
                folders = tuple(_folder(job, found, commit, action.settings.readme) for job, found in rendered)
                write = HydratedWrite(
                    action.sync_branch,
                    action.key.branch,
                    action.sha,
                    folders,
                    {METADATA: metadata_text(commit_metadata(commit)), ".gitattributes": ATTRIBUTES},
                    _message(commit, action.settings.message),
                    action.settings.author,
                    action.settings.email,
                    now,
                )
                return Hydrated(now, repository.write(write), errors)
            except SourceError as error:
                return Hydrated(now, error=f"failed to commit hydrated manifests: {error}")

    def _render_jobs(self, action: Hydrate, now: datetime) -> tuple[list[tuple[Job, Manifests]], dict[ObjectRef, str]]:
        """Render each job at the commit. After the first failure in a project its other jobs are skipped; other
        projects continue."""
        rendered: list[tuple[Job, Manifests]] = []
        failed: dict[str, tuple[ObjectRef, str]] = {}
        for job in action.jobs:
            if job.project in failed:
                continue
            found = self.read((job.source,), (action.sha,), now, job.context)
            if found.error:
                failed[job.project] = job.app, f"failed to get manifests: {found.error}"
            rendered.append((job, found))
        return [(job, found) for job, found in rendered if job.project not in failed], dict(failed.values())

    def _dry_commit(self, source: Obj, sha: str, project: str) -> DryCommit:
        repository = self.sources.repository(source, project)
        form = "--format=%an <%ae>%n%at%n%B"
        shown = repository.read_mirror(["-c", "log.showSignature=false", "show", "-s", "--no-notes", form, sha, "--"])
        if shown.code != 0:
            raise SourceError(Problem.INVALID, f"commit {sha} cannot be read: {shown.complaint}")
        commit = read_commit(repository.shown, sha, shown.output.decode("utf-8", "replace"))
        trailers = repository.read_mirror(["interpret-trailers", "--parse"], commit.message.encode("utf-8", "replace"))
        return commit.with_trailers(trailers.output.decode("utf-8", "replace"))


class _Changes:
    """Files that differ between older commits and this one; each diff is computed once."""

    def __init__(self, repository: Repository, sha: str) -> None:
        self._repository = repository
        self._sha = sha
        self._known: dict[str, list[str] | None] = {}

    def touch(self, scope: Scope) -> bool:
        """Return whether a relevant file changed; True also if that is unknown."""
        if scope.since == self._sha:
            return False
        if scope.since not in self._known:
            self._known[scope.since] = self._between(scope.since)
        files = self._known[scope.since]
        return files is None or any(_matters(file, scope.paths) for file in files)

    def _between(self, since: str) -> list[str] | None:
        try:
            for sha in (self._sha, since):
                self._repository.ensure(self._repository.resolve(sha))
        except SourceError:
            return None
        asked = ["diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames", since, self._sha, "--"]
        answer = self._repository.read_mirror(asked)
        return None if answer.code != 0 else answer.output.decode("utf-8", "backslashreplace").split("\0")[:-1]


def _matters(file: str, paths: tuple[str, ...]) -> bool:
    """Return whether a path names the file, a folder above it, or is a pattern for the whole path, as upstream."""
    for path in paths:
        if path in (".", file) or file.startswith(f"{path}/"):
            return True
        try:
            if path_match(path, file):
                return True
        except GlobError:
            continue
    return False


def _folder(job: Job, found: Manifests, commit: DryCommit, template: str) -> HydratedFolder:
    commands = commands_of(found.source_types[0] if found.source_types else "", job.source, job.context)

    def others() -> Mapping[str, bytes]:
        if template:
            readme = render_template(template, readme_data(commit, commands), README)
        else:
            readme = default_readme(commit, commands)
        return {
            METADATA: metadata_text(path_metadata(commit, commands)),
            "README.md": readme.encode("utf-8", "replace"),
        }

    return HydratedFolder(job.folder, manifest_text(found.objects), others)


def _message(commit: DryCommit, template: str) -> str:
    made = render_template(template, {"metadata": commit_metadata(commit)}, MESSAGE) if template else ""
    message = cleaned_message(made if template else default_message(commit))
    if not message:
        raise SourceError(Problem.INVALID, f"{MESSAGE}: the message of the commit is empty")
    return message
