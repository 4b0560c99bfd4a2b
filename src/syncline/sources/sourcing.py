"""Opens every kind of source (Git repositories, chart repositories, OCI artifacts): :class:`Sources`.

``assembly`` and ``cli`` create one per process, and set its credentials and rules. From the source of an Application
and a revision it returns a tree and the commit, version or digest. Blocking; thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from syncline.base.entropy import Entropy
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.mirrors import Freshness, Git, GitSettings, Repository
from syncline.sources.git.signatures import NO_KEYS, GitPolicy, Keyring, check_signatures
from syncline.sources.kustomize.flags import BuildFlags, no_flags
from syncline.sources.remote.address import DEFAULT_NETWORKS, Networks
from syncline.sources.remote.border import Border, Lent, of_generator, refuse_unlisted
from syncline.sources.remote.credentials import CredentialStore
from syncline.sources.remote.turns import away
from syncline.sources.rendering.source_type import SourceType
from syncline.sources.revision import ResolvedRevision, Version, parse_constraint
from syncline.sources.tree import MemoryTree, Tree, clean_path

if TYPE_CHECKING:
    from syncline.sources.remote.artifacts import Artifacts

R = TypeVar("R", bound=Repository)


def _everything(_project: str, _url: str) -> bool:
    return True


def _no_stamp(_project: str) -> str:
    return ""


def _nothing(_project: str, _url: str) -> GitPolicy | None:
    return None


@dataclass(frozen=True, slots=True)
class SourceRules:
    """The settings and project rules for reading sources."""

    schemes: tuple[str, ...] = ("http", "https")
    """Of values files by address: ``helm.valuesFileSchemes`` of ``argocd-cm``."""
    permits: Callable[[str, str], bool] = _everything
    """Whether a project lists a repository, by its normal form."""
    stamp: Callable[[str], str] = _no_stamp
    """Another one when the list of a project changed."""
    networks: Networks = DEFAULT_NETWORKS
    """That no repository may name: ``source.forbidden.networks`` of ``argocd-cm``."""
    policy: Callable[[str, str], GitPolicy | None] = _nothing
    """Which signatures a project asks of a repository."""
    keyring: Keyring = NO_KEYS
    disabled: frozenset[SourceType] = frozenset()
    """Tools that are off: ``helm.enable`` and ``kustomize.enable`` of ``argocd-cm``."""
    jsonnet: bool = True
    butane: bool = True
    ansible: bool = False
    """Whether playbooks are captured: ``ansible.enable`` of ``argocd-cm``, off by default."""
    kustomize: Callable[[], BuildFlags] = no_flags
    """Flags of every build: ``kustomize.buildOptions`` of ``argocd-cm``. Raises :class:`SourceError`."""
    submodules: bool = True
    """Whether repositories that a repository mounts are read too (upstream: ``reposerver.enable.git.submodule``)."""


NO_RULES = SourceRules()


@dataclass(frozen=True, slots=True)
class Opened:
    """The folder of a source, and its resolved revision."""

    tree: Tree
    revision: ResolvedRevision
    variant: str = ""
    """How its files are read, if there is more than one way."""


class Sources:
    """Reads all sources of one process."""

    def __init__(self, settings: GitSettings, entropy: Entropy | None = None) -> None:
        self.border = Border()
        self.git = Git(settings, self.border, entropy)
        self._entropy = entropy
        self._artifacts: Artifacts | None = None
        self._making = threading.Lock()
        self._rules = NO_RULES
        self._settings = settings

    @property
    def artifacts(self) -> Artifacts:
        """The store of artifacts, created for the first source that is not in Git."""
        with self._making:
            if self._artifacts is None:
                from syncline.sources.remote.artifacts import Artifacts

                place = self._settings.cache_directory / "artifacts"
                self._artifacts = Artifacts(place, self.border, self._entropy)
            return self._artifacts

    def learn(self, book: CredentialStore) -> None:
        """Use these credentials for remotes from now on."""
        self.border.learn(book)

    @property
    def settings(self) -> GitSettings:
        return self._settings

    @property
    def rules(self) -> SourceRules:
        return self._rules

    def learn_rules(self, rules: SourceRules) -> None:
        self._rules = rules
        self.border.learn_rules(rules.permits, rules.stamp, rules.networks)
        self.git.read_submodules(rules.submodules)

    def requests(self) -> list[tuple[str, str, bool, int]]:
        """Return the remote calls so far: address, purpose, success, count."""
        others = self._artifacts.requests() if self._artifacts is not None else []
        return sorted([*self.git.requests(), *others])

    def remote(self, project: str, *, local: bool = False) -> ProjectRemote:
        """Return the access for what renders of ``project`` fetch. ``local``: repositories by path, too."""
        return ProjectRemote(self, self.git, self._rules, project, self.border.viewer(project), local)

    def open(
        self, source: Mapping[str, Any], revision: str, project: str = "", freshness: Freshness | None = None
    ) -> Opened:
        """Return the folder of ``source`` at ``revision``. Raises :class:`SourceError`.

        ``freshness``: the required age of a Git host's response; None: request it now.
        """
        path, chart = str(source.get("path") or ""), str(source.get("chart") or "")
        lent = self._lent(source, project)
        if chart:
            block = source.get("helm")
            passes = isinstance(block, dict) and bool(block.get("passCredentials"))
            version, tree = self.artifacts.chart(lent.url, chart, revision, project, pass_credentials=passes)
            return Opened(tree, ResolvedRevision(revision, version))
        if lent.address.scheme == "oci":
            digest, whole = self.artifacts.artifact(lent.url, revision, project)
            return Opened(_folder(whole, path, lent.url), ResolvedRevision(revision, digest))
        repository, resolved = self._commit(lent, source, revision, project, freshness)
        variant = "+lfs" if repository.access is not None and repository.access.lfs else ""
        return Opened(repository.tree(resolved, path), resolved, variant)

    def resolve(self, source: Mapping[str, Any], revision: str, project: str, freshness: Freshness) -> ResolvedRevision:
        """Return the commit, chart version or digest that ``revision`` names now. Raises :class:`SourceError`."""
        lent = self._lent(source, project)
        if source.get("chart") or lent.address.scheme == "oci":
            return self.open(source, revision, project, freshness).revision
        return self._commit(lent, source, revision, project, freshness)[1]

    def _commit(
        self, lent: Lent, source: Mapping[str, Any], revision: str, project: str, freshness: Freshness | None
    ) -> tuple[Repository, ResolvedRevision]:
        repository = self.git.lent(lent)
        resolved = repository.resolve(
            revision or "HEAD", tag_prefix=str(source.get("tagPrefix") or ""), freshness=freshness
        )
        self._check_signatures(repository, resolved, source, project)
        return repository, resolved

    def repository(self, source: Mapping[str, Any], project: str) -> Repository:
        """Return the Git repository of an Application's own source. Raises :class:`SourceError`."""
        return self.git.lent(self._lent(source, project))

    def of_generator(
        self, url: str, revision: str, project: str, freshness: Freshness, *, trusted: bool, signed: bool
    ) -> tuple[Repository, ResolvedRevision]:
        """Return the repository that a generator reads, and its commit in the mirror. Raises :class:`SourceError`.

        ``trusted``: the set is in the control namespace; ``signed``: the project's signature rules apply."""
        lent = of_generator(self.border, url, project, trusted=trusted, local=self._settings.allow_local)
        repository = self.git.lent(lent)
        resolved = repository.resolve(revision or "HEAD", freshness=freshness)
        if signed:
            self._check_signatures(repository, resolved, {"targetRevision": revision}, project)
        return repository, resolved

    def writable(self, url: str, projects: Collection[str], kind: type[R]) -> R:
        """Return a repository that Applications of these projects may push to. Raises :class:`SourceError`."""
        return self.git.writable(self.border.judge_writing(url, projects, local=self._settings.allow_local), kind)

    def changed_since(
        self, source: Mapping[str, Any], revision: str, project: str, commits: Sequence[str], freshness: Freshness
    ) -> dict[str, tuple[str, ...] | None]:
        """Return, for each of ``commits``, the files that differ from the commit that ``revision`` names now; None
        where that is unknown. Raises :class:`SourceError`."""
        lent = self._lent(source, project)
        if lent.address.scheme == "oci" or self._rules.policy(project, lent.url) is not None:
            return {}
        repository = self.git.lent(lent)
        resolved = repository.resolve(
            revision or "HEAD", tag_prefix=str(source.get("tagPrefix") or ""), freshness=freshness
        )
        repository.ensure(resolved)
        return {commit: repository.changed(commit, resolved.sha) for commit in commits}

    def _lent(self, source: Mapping[str, Any], project: str) -> Lent:
        """Return the access to an Application's own source if its project lists it. Raises :class:`SourceError`."""
        url = str(source.get("repoURL") or "")
        charts = bool(source.get("chart")) or url.lower().startswith("oci://")
        lent = self.border.judge(url, project, charts=charts, local=self._settings.allow_local)
        refuse_unlisted(lent)
        return lent

    def _check_signatures(
        self, repository: Repository, resolved: ResolvedRevision, source: Mapping[str, Any], project: str
    ) -> None:
        """Check the signature, by the annotated tag that named the commit even if an operation pinned the commit."""
        policy = self._rules.policy(project, repository.url)
        if policy is None:
            return
        repository.ensure(resolved)
        asked = [resolved.ref] if resolved.ref.startswith("refs/tags/") else []
        if not resolved.ref:
            target = str(source.get("targetRevision") or "")
            fits = None if Version.parse(target) else parse_constraint(target)
            named = repository.tags_at(resolved.sha) if fits is not None else []
            asked += [target, *(tag for tag in named if fits and (found := Version.parse(tag)) and fits(found))]
        tag = repository.annotated_tag(resolved.sha, *asked)
        keyring, folder = self._rules.keyring, self._settings.cache_directory / "keyrings"
        try:
            check_signatures(repository, resolved.sha, tag, policy, keyring, folder)
        except SourceError:
            if not any(asked):
                raise
            repository.renew_tags()
            tag = repository.annotated_tag(resolved.sha, *asked)
            check_signatures(repository, resolved.sha, tag, policy, keyring, folder)

    def lend(
        self, source: Mapping[str, Any], revision: str, project: str = "", freshness: Freshness | None = None
    ) -> Opened:
        """Return the whole repository of a source that others use by its ``ref``. Raises :class:`SourceError`."""
        for field, url in (("chart", source.get("chart")), ("repoURL", str(source.get("repoURL") or ""))):
            if (field == "chart" and url) or str(url).lower().startswith("oci://"):
                what = "a `chart` field" if field == "chart" else "an OCI address"
                message = f"source with ref {source.get('ref')!r} has {what}, which lends no files"
                raise SourceError(Problem.INVALID, message, field="spec.sources")
        return self.open({**source, "path": ""}, revision, project, freshness)


def _folder(whole: MemoryTree, path: str, url: str) -> MemoryTree:
    folder = clean_path(path)
    if not folder:
        return whole
    found = whole.folder(folder)
    if not found.entries:
        message = f"{path}: app path does not exist"
        raise SourceError(Problem.PATH_MISSING, message, subject=url, field="spec.source.path")
    return found


@dataclass(frozen=True, slots=True)
class ProjectRemote:
    """Fetches dependencies of charts for one project (``sources/helm/dependencies.py``)."""

    sources: Sources
    git: Git
    rules: SourceRules
    project: str
    viewer: str = ""
    """Under what is kept that was fetched: another project, rule or credential finds nothing of it."""
    local: bool = False

    @property
    def artifacts(self) -> Artifacts:
        return self.sources.artifacts

    @property
    def schemes(self) -> Sequence[str]:
        return self.rules.schemes

    def dependency(self, repository: str, chart: str, wanted: str, pin: str) -> tuple[str, str]:
        """Send credentials only to repositories that the project lists; others are read anonymously."""
        with away():
            found = self.artifacts.dependency(repository, chart, wanted, self.project, pin=pin)
        return found.version, found.digest

    def archive(self, digest: str) -> bytes:
        return self.artifacts.content(digest)

    def text(self, url: str) -> bytes:
        with away():
            return self.artifacts.file(url)

    def file(self, url: str, most: int) -> bytes:
        """Send credentials as :meth:`base` does."""
        with away():
            return self.artifacts.file(url, self.project, most)

    def base(self, url: str, ref: str) -> tuple[Tree, str]:
        """Send credentials only if the project lists the repository; paths on this machine mostly are refused."""
        repository = self.git.repository(url, self.project, local=self.local)
        with away():
            resolved = repository.resolve(ref)
            return repository.tree(resolved).whole(), resolved.sha
