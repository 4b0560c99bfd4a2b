"""Reads sources for the Application controller: sources at revisions in, manifests or one sentence out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from syncline.appset.questions import Question, Value
from syncline.assembly.playbooks import PROGRAM
from syncline.assembly.sources.generating import Generating
from syncline.base.entropy import Entropy
from syncline.base.priority import RENDERING
from syncline.base.secret import Secret
from syncline.fleet.pull.order.revisions import Resolution, Tracked
from syncline.gitops.application.manifests import READ_LIMIT_S, Manifests
from syncline.kube.objects import Obj
from syncline.sources.ansible.rendering import RENDER_LIMITS, PlaybookRenderer
from syncline.sources.ansible.rooting import RootRunner
from syncline.sources.errors import SourceError
from syncline.sources.git.mirrors import Freshness, GitSettings, moment
from syncline.sources.git.process import RemoteLimits
from syncline.sources.git.signatures import CHECK
from syncline.sources.providers.model import SecretReference
from syncline.sources.providers.reach import Reach
from syncline.sources.remote.credentials import CredentialStore
from syncline.sources.remote.turns import computing
from syncline.sources.rendering.cache import RenderCache
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext
from syncline.sources.rendering.plugin_run import PluginRunner
from syncline.sources.rendering.plugins import PluginRenderer, load_plugins
from syncline.sources.rendering.renderer import DEFAULT_RENDERERS as DEFAULTS
from syncline.sources.rendering.renderer import KustomizeRenderer, Rendered, Renderer, SourceType, render_opened
from syncline.sources.sourcing import NO_RULES, Opened, SourceRules, Sources
from syncline.sources.tree import Tree
from syncline.sources.workers.read_scope import ReadScope, read_scope

if TYPE_CHECKING:
    from syncline.sources.kustomize.program import KustomizeProgram

CHANGED_LIMIT_S = 30.0
SANDBOX = Path(__file__).parents[2] / "cluster" / "machines" / "sandbox" / "__main__.py"
"""A separate program, started by its path, so that no cluster code is imported here."""


def renderers_with(plugins: Path | None) -> Sequence[Renderer]:
    """Return the render tools; ``plugins``: a folder of declarations. Raises :class:`PluginError`."""
    tools: list[Renderer] = [
        KustomizeRenderer(program=_program()) if isinstance(one, KustomizeRenderer) else one for one in DEFAULTS
    ]
    tools.append(PlaybookRenderer(RootRunner(Path(PROGRAM), RENDER_LIMITS, niceness=RENDERING)))
    if plugins is None:
        return tools
    runner = PluginRunner(SANDBOX, (plugins.resolve(),))
    return (PluginRenderer(load_plugins(plugins), runner), *tools)


def _aws_environment() -> Mapping[str, str]:
    """Return the variables from which an AWS client takes its identity and region."""
    return MappingProxyType({key: value for key, value in os.environ.items() if key.startswith("AWS_")})


def _program() -> KustomizeProgram | None:
    """Return this machine's ``kustomize`` with its plugins; None if not installed."""
    found = shutil.which("kustomize")
    if found is None:
        return None
    from syncline.sources.kustomize.program import KustomizeProgram

    path, home = Path(found).resolve(), os.environ.get("KUSTOMIZE_PLUGIN_HOME")
    visible = (path.parent, *((Path(home).resolve(),) if home else ()))
    return KustomizeProgram(path, PluginRunner(SANDBOX, visible), Path(home).resolve() if home else None)


class GitSourceReader:
    """Reads all sources of an application in order. Blocking; called in a driver's worker."""

    def __init__(
        self,
        cache_directory: Path,
        *,
        allow_local: bool,
        renderers: Sequence[Renderer] = DEFAULTS,
        entropy: Entropy | None = None,
        limits: RemoteLimits | None = None,
        looks_apart_s: float = 0.0,
        reach: Reach | None = None,
    ) -> None:
        """``entropy``: randomizes the retry pauses of failed remotes; None: the same in each run. ``looks_apart_s``:
        see :class:`GitSettings`. ``reach``: how Git hosts of generators are asked; None: as by default."""
        settings = GitSettings(
            cache_directory, allow_local=allow_local, limits=limits or RemoteLimits(), looks_apart_s=looks_apart_s
        )
        self.sources = Sources(settings, entropy)
        self._cache = RenderCache(entropy=entropy.fork("rests") if entropy is not None else None)
        self._renderers = renderers
        self._generating = Generating(self.sources, replace(reach or Reach(), environment=_aws_environment()))

    def learn(self, book: CredentialStore) -> None:
        """Use these credentials from now on."""
        self.sources.learn(book)

    def learn_rules(self, rules: SourceRules) -> None:
        """Use these rules of settings and projects from now on."""
        self.sources.learn_rules(rules)

    def learn_reach(self, reach: Reach) -> None:
        """Use the allowed addresses and forbidden networks of ``reach`` for Git hosts of generators from now on."""
        known = self._generating.reach
        self._generating.reach = replace(known, allowed=reach.allowed, networks=reach.networks)

    def rows(
        self,
        question: Question,
        secrets: Mapping[SecretReference, Secret],
        now: datetime,
        *,
        since: datetime | None,
        wanted: int,
    ) -> Value:
        """Answer a generator's question; as :class:`~syncline.appset.asking.RowReader`."""
        return self._generating.rows(question, secrets, now, since=since, wanted=wanted)

    def unreachable(self, source: Obj, project: str) -> str:
        """Return why the remote of a source does not respond; empty if it does."""
        url = str(source.get("repoURL") or "")
        try:
            if source.get("chart") or url.startswith("oci://"):
                self.sources.artifacts.connect(url, project)
            else:
                self.sources.git.repository(url, project).refs()
        except SourceError as error:
            return str(error)
        return ""

    def resolve(self, tracked: Tracked, now: datetime, *, since: datetime | None, wanted: int) -> Resolution:
        """As :meth:`~syncline.fleet.pull.order.revisions.RevisionReader.resolve`."""
        freshness = Freshness(now, since, asked=since is None, wanted=wanted)
        with read_scope(ReadScope(now, tracked.project, tracked.url, asked=freshness.asked, limit_s=READ_LIMIT_S)):
            try:
                found = self.sources.resolve(tracked.source, tracked.revision, tracked.project, freshness)
            except SourceError as error:
                return Resolution(now, error=str(error))
        return Resolution(now, found.sha)

    def requests(self) -> list[tuple[str, str, bool, int]]:
        """Return the calls of remotes so far: address, command, success, count."""
        return self.sources.requests()

    def moment(self) -> int:
        return moment()

    def changed_since(
        self, url: str, revision: str, tag_prefix: str, project: str, commits: tuple[str, ...], now: datetime
    ) -> dict[str, tuple[str, ...] | None]:
        """Return the files that changed between each of these commits and ``revision``; None if unknown. Blocking;
        never raises for what a repository or its host does."""
        source = {"repoURL": url, "tagPrefix": tag_prefix}
        with read_scope(ReadScope(now, project, url, limit_s=CHANGED_LIMIT_S)):
            try:
                return self.sources.changed_since(source, revision, project, commits, Freshness(now, wanted=moment()))
            except SourceError:
                return {}

    def read(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        wanted: int = 0,
    ) -> Manifests:
        """Render the sources. Never raises for repository content."""
        return self._read(sources, revisions, context, Freshness(now, wanted=wanted))

    def poll(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        since: datetime | None,
        wanted: int = 0,
    ) -> Manifests:
        """As :meth:`read`, but reuses a host's response to any client at or after ``since``."""
        return self._read(sources, revisions, context, Freshness(now, since, asked=False, wanted=wanted))

    def _read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], context: RenderContext, freshness: Freshness
    ) -> Manifests:
        first = str(sources[0].get("repoURL") or "") if sources else ""
        here = ReadScope(freshness.now, context.project, first, asked=freshness.asked, limit_s=READ_LIMIT_S)
        with read_scope(here):
            return self._read_all(sources, revisions, context, freshness)

    def _read_all(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], context: RenderContext, freshness: Freshness
    ) -> Manifests:
        rendered: list[Rendered] = []
        try:
            pairs = list(zip(sources, revisions, strict=True))
            lent = {
                str(one["ref"]): self.sources.lend(one, revision, context.project, freshness)
                for one, revision in pairs
                if one.get("ref")
            }
            for number, (source, revision) in enumerate(pairs, 1):
                try:
                    rendered.append(self._read_one(source, revision, context, lent, freshness))
                except SourceError as error:
                    raise _of_source(error, source, number, len(pairs)) from None
        except SourceError as error:
            return Manifests((), (), (), freshness.now, error=str(error))
        return Manifests(
            revisions=tuple(one.sha for one in rendered),
            objects=tuple(obj for one in rendered for obj in one.manifests),
            source_types=tuple(str(one.source_type) for one in rendered),
            resolved_at=freshness.now,
            content=tuple(one.key for one in rendered),
            own_folder=all(one.own_folder for one in rendered),
            warnings=tuple(warning for one in rendered for warning in one.warnings),
        )

    def _read_one(
        self, source: Obj, revision: str, context: RenderContext, lent: Mapping[str, Opened], freshness: Freshness
    ) -> Rendered:
        if source.get("ref") and not source.get("path") and not source.get("chart"):
            # It only provides files.
            return Rendered((), lent[str(source["ref"])].revision.sha, SourceType.DIRECTORY, "")
        opened = self.sources.open(source, revision, context.project, freshness)
        with computing():
            return self._rendered(source, opened, context, lent)

    def _rendered(self, source: Obj, opened: Opened, context: RenderContext, lent: Mapping[str, Opened]) -> Rendered:
        return render_opened(
            source,
            opened.tree,
            opened.revision.sha,
            context=context,
            refs={name: one.tree for name, one in lent.items()},
            remote=self.sources.remote(context.project),
            variant=opened.variant + "".join(one.variant for one in lent.values()),
            disabled=self.sources.rules.disabled,
            jsonnet=self.sources.rules.jsonnet,
            butane=self.sources.rules.butane,
            ansible=self.sources.rules.ansible,
            kustomize=self.sources.rules.kustomize(),
            cache=self._cache,
            renderers=self._renderers,
        )


class FolderReader:
    """Reads a local folder in place of the Application's single source; fetches nothing."""

    def __init__(self, tree: Tree, path: str, rules: SourceRules = NO_RULES) -> None:
        self._tree, self._path, self._rules = tree, path, rules

    def read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        """Render the folder. Never raises for its content."""
        if len(sources) != 1:
            return Manifests((), (), (), now, error=f"a folder stands for one source; there are {len(sources)}")
        try:
            found = render_opened(
                dict(sources[0]) | {"path": self._path},
                self._tree,
                "local",
                context=context,
                disabled=self._rules.disabled,
                jsonnet=self._rules.jsonnet,
                butane=self._rules.butane,
                ansible=self._rules.ansible,
                kustomize=self._rules.kustomize(),
                renderers=renderers_with(None),
            )
        except SourceError as error:
            return Manifests((), (), (), now, error=str(error))
        types = (str(found.source_type),)
        return Manifests((found.sha,), tuple(found.manifests), types, now, warnings=tuple(found.warnings))


def _of_source(error: SourceError, source: Obj, number: int, count: int) -> SourceError:
    """Name the source in a signature error if there are several, as upstream."""
    if count == 1 or not error.message.startswith(CHECK):
        return error
    which = f"source {source['name']}" if source.get("name") else f"source {number} of {count}"
    message = error.message.replace(CHECK, f"{CHECK}{which}: ")
    return SourceError(error.problem, message, subject=error.subject, field=error.field, fix=error.fix)
