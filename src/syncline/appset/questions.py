"""What generators ask of the world outside the API, as data: :class:`Question`, :class:`Answer`, :class:`Facts`.

Generation is a pure function of a set and :class:`Facts`. Where an answer is missing it names the question; the
controller asks it (``asking.py``) and generates again. Questions are equal if their answers may be shared, so that many
sets over one repository read it once. They hold no credentials: a handler reads the Secrets that they name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from syncline.kube.objects import Obj
from syncline.sources.providers.model import PullRequest as PullRequest
from syncline.sources.providers.model import Repository as Repository
from syncline.sources.providers.model import SecretReference as SecretReference


@dataclass(frozen=True, slots=True)
class DirectoriesQuestion:
    """All directories of a repository at a revision; the patterns are matched against the answer."""

    repo_url: str
    revision: str
    project: str
    """The project whose credentials may be used; empty (a templated project): those of no project alone."""
    signed: bool = True
    """Whether the project's signature rules apply; False for a templated project."""
    trusted: bool = False
    """Whether the set is in the control namespace, so that an administrator names the repository: it is read with its
    credentials even if the project does not list it. A set elsewhere reads what its project lists."""


@dataclass(frozen=True, slots=True)
class FilesQuestion:
    """The text of each file that matches one of ``include`` and none of ``exclude``."""

    repo_url: str
    revision: str
    project: str
    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    doublestar: bool = False
    """Patterns of doublestar (the new globbing) instead of those of ``git ls-files``."""
    signed: bool = True
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class PluginQuestion:
    """The answer of a plugin's ``getparams.execute``; ``body`` is the request as JSON."""

    base_url: str
    body: str
    token: SecretReference
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class RepositoriesQuestion:
    """Repositories and branches of an SCM provider. ``spec``: the ``scmProvider`` element as JSON with sorted keys,
    without ``values``, ``template`` and ``requeueAfterSeconds``."""

    spec: str
    namespace: str
    """The namespace of the set, from which token references are read."""

    @property
    def decoded(self) -> Mapping[str, Any]:
        """The element again, decoded."""
        return _decoded(self.spec)


@dataclass(frozen=True, slots=True)
class PullRequestsQuestion:
    """Open pull requests of a repository. ``spec``: the ``pullRequest`` element as JSON with sorted keys, without
    ``filters``, ``values``, ``template``, ``requeueAfterSeconds`` and ``continueOnRepoNotFoundError``."""

    spec: str
    namespace: str

    @property
    def decoded(self) -> Mapping[str, Any]:
        """The element again, decoded."""
        return _decoded(self.spec)


def _decoded(spec: str) -> Mapping[str, Any]:
    found = msgspec.json.decode(spec)
    return found if isinstance(found, dict) else {}


Question: TypeAlias = DirectoriesQuestion | FilesQuestion | PluginQuestion | RepositoriesQuestion | PullRequestsQuestion


@dataclass(frozen=True, slots=True)
class GitPaths:
    """Answer to :class:`DirectoriesQuestion`: directories relative to the root, sorted, without the root itself."""

    commit: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GitFiles:
    """Answer to :class:`FilesQuestion`: text by path."""

    commit: str
    texts: Mapping[str, str] = field(repr=False)


Value: TypeAlias = GitPaths | GitFiles | tuple[Repository, ...] | tuple[PullRequest, ...] | Mapping[str, Any]
"""The type depends on the question; that of a plugin is its decoded JSON."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The last answer to a question: a value, or why there is none."""

    at: datetime
    value: Value | None = field(default=None, repr=False)
    error: str = ""
    unasked: bool = False
    """With an error: nothing was asked, because a Secret or ConfigMap that the question names cannot be used."""
    not_found: bool = False
    """The host reported that the repository does not exist (``continueOnRepoNotFoundError``)."""
    answers: tuple[str, ...] = ()
    """The refresh requests that this answer or an earlier one answered, newest last."""
    retry_at: datetime | None = None
    """Before this moment the host wants no further request (its rate limit); None: no such wish."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that generation depends on beside the set: objects, settings and answers."""

    control_namespace: str = "argocd"
    clusters: tuple[Obj, ...] = ()
    """Cluster Secrets of the control namespace."""
    projects: frozenset[str] = frozenset()
    """Names of the AppProjects in the control namespace."""
    config_maps: Mapping[str, Obj] = field(default_factory=lambda: MappingProxyType({}))
    """ConfigMaps of plugins and decision resources in the control namespace, by name."""
    decisions: Mapping[tuple[str, str], tuple[Obj, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Objects in the control namespace by apiVersion and plural kind, as the ConfigMaps name them. A kind that cannot
    be read is in ``unread``."""
    unread: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Why something cannot be read, by ``Kind/NAME`` or by ``apiVersion/plural``: forbidden is not absent."""
    answers: Mapping[Question, Answer] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    doublestar: bool = False
    """``applicationsetcontroller.enable.new.git.file.globbing``."""
    requeue_s: float = 180.0
    """``ARGOCD_APPLICATIONSET_CONTROLLER_REQUEUE_AFTER``: when Git and decisions are looked at again."""
    now: datetime | None = None
    """What templates see as the present moment; None: they cannot."""
    seed: str = field(default="", repr=False)
    """What templates draw from, as secret as what they make of it; the same for a set as long as that shall stay.
    Empty: they cannot draw."""
    hidden: bool = False
    """``reposerver.include.hidden.directories``: directories with a name that begins with a dot count too."""
    scm_enabled: bool = True
    allowed_scm: tuple[str, ...] = ()
    """Addresses of SCM providers that the administrator allows; empty: all."""
