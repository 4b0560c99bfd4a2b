"""Mirrors Git repositories, resolves revisions and reads trees without a checkout: :class:`Git`.

Drivers call it in a worker thread: everything here blocks. From an address and a revision it returns a commit and a
:class:`GitTree`. It never runs anything from a repository, never prompts for a password, and never follows a path, link
or address that the settings do not allow.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from syncline.base.entropy import Entropy
from syncline.sources.errors import Problem, SourceError, mask_credentials
from syncline.sources.git.access import git_environment, git_options, out_of_arguments
from syncline.sources.git.github_app import with_token
from syncline.sources.git.lfs import LargeFiles
from syncline.sources.git.process import Bounds, GitAnswer, RemoteLimits, run_git
from syncline.sources.git.submodules import MAX_NESTED, Graft, GraftedTree, parse_modules, submodule_url
from syncline.sources.git.tree import GitTree
from syncline.sources.remote.address import DEFAULT_NETWORKS, check_url, normalize_url, parse_address
from syncline.sources.remote.border import Border, Lent
from syncline.sources.remote.cloud_tokens import with_cloud_token
from syncline.sources.remote.credentials import CredentialStore, RepositoryAccess
from syncline.sources.remote.listing import Listing, SmallFiles
from syncline.sources.remote.requests import RemoteRequests
from syncline.sources.remote.turns import away
from syncline.sources.revision import Ref, Refs, ResolvedRevision, choose, choose_tag, is_short_sha
from syncline.sources.tree import Tree, clean_path
from syncline.sources.workers.read_scope import Failing, current

__all__ = ["Freshness", "Git", "GitSettings", "Repository", "check_url", "moment", "normalize_url"]


MODULES = ".gitmodules"
LIST_AFTER = 3
R = TypeVar("R", bound="Repository")
MAX_CHANGED = 10_000
GRAFTS_KEPT = 4
"""Trees with submodules that one mirror keeps: each belongs to one project, since what it mounts may be another's."""


@dataclass(frozen=True, slots=True)
class GitSettings:
    """Settings of :class:`Git`. ``cache_directory`` holds the mirrors; only one process at a time may use it."""

    cache_directory: Path
    allow_local: bool = False
    """Repositories by path or ``file://``: they read this machine's disk, so only where its owner asks for it."""
    submodules: bool = True
    """Whether repositories that a repository mounts are read too (upstream: ARGOCD_GIT_MODULES_ENABLED)."""
    limits: RemoteLimits = field(default_factory=RemoteLimits)
    read_timeout_s: float = 90.0
    """For reading the mirror on this machine's own disk."""
    looks_apart_s: float = 0.0
    """Seconds between two questions to one remote what it has: in a burst of refreshes those that come meanwhile share
    the next one. Not in virtual time, which would wait for nothing."""
    remembered: int = 4_096
    """Remotes whose state is remembered what they answered, beside those in use."""


class Git:
    """All repositories of one process, each with its lock."""

    def __init__(self, settings: GitSettings, border: Border | None = None, entropy: Entropy | None = None) -> None:
        self._settings = settings
        self._mirrors: WeakValueDictionary[tuple[str, str], _Mirror] = WeakValueDictionary()
        """All that are in use: one directory has one lock. The newest unused ones are kept."""
        self._recent: OrderedDict[tuple[str, str], _Mirror] = OrderedDict()
        self._border = border or Border()
        self._entropy = entropy
        self._submodules = settings.submodules
        self._small = SmallFiles()
        self._requests = RemoteRequests()
        self._lock = threading.Lock()

    def learn(self, book: CredentialStore) -> None:
        """Use these credentials for remotes from now on."""
        self._border.learn(book)

    def read_submodules(self, wanted: bool) -> None:
        """Enable or disable submodules; the settings may forbid them."""
        self._submodules = wanted and self._settings.submodules

    def requests(self) -> list[tuple[str, str, bool, int]]:
        """Return the remote calls so far, sorted: address without credentials, ``ls-remote`` or ``fetch``, success,
        count."""
        return self._requests.listed()

    @property
    def remembered(self) -> int:
        """Return the number of cached remotes."""
        return len(self._mirrors)

    def repository(self, url: str, project: str = "", *, local: bool = True) -> Repository:
        """Return the repository at ``url`` with the access of ``project``; no connection yet.

        Raises :class:`SourceError` if it is not allowed; ``local`` False forbids paths on this machine. Each project's
        credentials have their own mirror, and so does anonymous access.
        """
        return self._opened(self._border.judge(url, project, local=local and self._settings.allow_local))

    def lent(self, lent: Lent) -> Repository:
        """Like :meth:`repository`, for an address that was judged already."""
        return self._opened(lent)

    def writable(self, lent: Lent, kind: type[R]) -> R:
        """Return a repository to push to, with its own mirror."""
        return self._made(lent, kind, f"{lent.owner}\nwriting")

    def _made(self, lent: Lent, kind: type[R], owner: str) -> R:
        key = (lent.url, owner)
        with self._lock:
            mirror = self._mirrors.get(key) or _Mirror(self._settings, *key, self._entropy)
            self._mirrors[key] = self._recent[key] = mirror
            self._recent.move_to_end(key)
            while len(self._recent) > self._settings.remembered:
                self._recent.popitem(last=False)
        return kind(lent.url, self._settings, mirror, lent.access, self._requests.note, self._small)

    def _opened(self, lent: Lent) -> Repository:
        repository = self._made(lent, Repository, lent.owner)
        repository.viewer = self._border.viewer(lent.project)
        repository.networks = self._border.networks
        repository.lend = lambda url: self._beside(repository, url, lent.project, local=False)
        if self._submodules:
            repository.neighbour = lambda url: self._neighbour(repository, url, lent.project)
        return repository

    def _neighbour(self, parent: Repository, url: str, project: str) -> Repository:
        return self._opened(self._beside(parent, url, project, local=self._settings.allow_local and parent.is_local))

    def _beside(self, parent: Repository, url: str, project: str, *, local: bool) -> Lent:
        """Judge an address that ``parent`` names. If the project lists it, its own credentials are used, otherwise
        those of the parent at the same scheme, host and port."""
        lent = self._border.judge(url, project, local=local)
        return self._border.beside(lent, parent.access, parse_address(parent.url).origin)


@dataclass(frozen=True, slots=True)
class Freshness:
    """The required age of a remote's response: requested at ``since`` or later; None: requested after ``wanted``."""

    now: datetime
    since: datetime | None = None
    asked: bool = True
    """A user waits: a remote that failed a short while ago is requested once more."""
    wanted: int = 0
    """The :func:`moment` of the need; 0: that of the call."""

    def takes(self, at: datetime) -> bool:
        return self.since is not None and at >= self.since


_moments = itertools.count(1)


def moment() -> int:
    """Return a number that grows with each call; clocks are too coarse to order requests."""
    return next(_moments)


@dataclass(frozen=True, slots=True)
class Advertised:
    """The references of a remote, requested with ``access`` at this :func:`moment`."""

    at: datetime
    moment: int
    access: RepositoryAccess | None
    found: Refs | SourceError


@dataclass(slots=True)
class _Kept:
    """The cached state of one mirror."""

    listing: Listing | None = None
    whole: GitTree | None = None
    grafted: OrderedDict[tuple[str, str], tuple[RepositoryAccess | None, GraftedTree]] = field(
        default_factory=OrderedDict
    )
    """By commit and viewer, with the credentials of the parent."""
    asked_for: tuple[str, int] = ("", 0)
    present: set[str] = field(default_factory=set)
    advertised: Advertised | None = None
    looked_s: float = -math.inf
    """When the last look began, by the machine's own clock."""


class _Mirror:
    """One remote as accessed with one set of credentials: its path on disk, its locks, its cache."""

    def __init__(self, settings: GitSettings, url: str, owner: str, entropy: Entropy | None) -> None:
        name = hashlib.sha256(f"{url}\n{owner}".encode() if owner else url.encode()).hexdigest()[:32]
        self.place = settings.cache_directory / f"{name}.git"
        self.lock = threading.Lock()
        self.asking = threading.Lock()
        self.reading = threading.Lock()
        self.kept = _Kept()
        self.failing = Failing(entropy or Entropy(url))


class Repository:
    """One remote and its mirror, as seen by one project. Thread-safe; fetches of one mirror run one at a time."""

    def __init__(
        self,
        url: str,
        settings: GitSettings,
        mirror: _Mirror,
        access: RepositoryAccess | None,
        count: Callable[[str, str, bool], None],
        small: SmallFiles,
    ) -> None:
        self.url = url
        self._count = count
        self.access = access
        self.shown = mask_credentials(url)
        self._settings = settings
        self._held = mirror
        self._mirror = mirror.place
        self._lock = mirror.lock
        self._asking = mirror.asking
        self.reading = mirror.reading
        """Held while files are read ahead."""
        self._kept = mirror.kept
        self._failing = mirror.failing
        self.small = small
        self.viewer = ""
        """Whose rights decided over what it mounts."""
        self.neighbour: Callable[[str], Repository] | None = None
        """Opens a repository that this one mounts, by its address."""
        self.lend: Callable[[str], Lent] | None = None
        """Judges an address that this one names."""
        self.networks = DEFAULT_NETWORKS

    @property
    def is_local(self) -> bool:
        """True if the repository is on this machine."""
        return parse_address(self.url).is_local

    def advertised(self, freshness: Freshness | None) -> Refs:
        """Like :meth:`refs`, but one response serves all callers whose ``freshness`` it satisfies. Errors are shared,
        too: a remote that does not respond gets one request, not one from each of a thousand applications."""
        if freshness is None:
            return self.refs()
        wanted = freshness.wanted or moment()
        with self._asking:
            kept = self._kept.advertised
            if kept is None or kept.access != self.access or not (kept.moment > wanted or freshness.takes(kept.at)):
                self._wait_between_looks()
                kept = self._kept.advertised = self._look(freshness.now, moment())
        if isinstance(kept.found, SourceError):
            raise kept.found
        return kept.found

    def _wait_between_looks(self) -> None:
        apart, now = self._settings.looks_apart_s, time.monotonic()
        if apart:
            with away():
                time.sleep(max(min(self._kept.looked_s + apart - now, apart), 0.0))
            self._kept.looked_s = time.monotonic()

    def _look(self, now: datetime, begun: int) -> Advertised:
        access = self.access
        try:
            return Advertised(now, begun, access, self.refs())
        except SourceError as error:
            return Advertised(now, begun, access, error)

    def refs(self) -> Refs:
        """Return the references that the remote advertises now: a cheap test for changes."""
        asked = ["ls-remote", "--symref", "--end-of-options", self.url]
        answer = self._ask_remote(asked)
        if answer.code != 0:
            raise self._failure(answer)
        return _parse_refs(answer.output.decode("utf-8", "replace"))

    def resolve(
        self, revision: str, refs: Refs | None = None, *, tag_prefix: str = "", freshness: Freshness | None = None
    ) -> ResolvedRevision:
        """Return the commit that ``revision`` names now; empty means HEAD. ``refs`` saves a request to the remote,
        ``freshness`` accepts the response to another caller.

        ``tag_prefix``: the revision is a range of versions among the tags with this prefix.

        Forty hex digits are not verified, as in upstream; :meth:`tree` fails if the commit is missing.
        """
        if revision.startswith("-") or any(ord(letter) < 32 for letter in revision) or len(revision) > 1024:
            raise self._unknown(revision, "it is not a name of a branch, tag or commit")
        if tag_prefix:
            return self._among_tags(revision, tag_prefix, refs or self.advertised(freshness))
        advertised = Refs(()) if choose(revision, Refs(())) is not None else refs or self.advertised(freshness)
        found = choose(revision, advertised)
        if found is not None:
            return found
        if is_short_sha(revision):
            sha = self._expand(revision)
            if sha is not None:
                return ResolvedRevision(revision, sha)
        raise self._unknown(revision or "HEAD")

    def _among_tags(self, revision: str, prefix: str, refs: Refs) -> ResolvedRevision:
        """Choose by Argo CD's ``util/versions`` MaxVersion; an exact version is the tag of that name."""
        found = choose_tag(revision, prefix, refs)
        if found is None:
            why = f"tagPrefix {prefix!r} needs a range of versions that one of these tags lies in"
            raise self._unknown(revision or "HEAD", why)
        return found

    def tree(self, revision: ResolvedRevision | str, path: str = "", *, nested: int = 0) -> GitTree | GraftedTree:
        """Return the folder ``path`` at a commit with its submodules; fetch the commit if the mirror lacks it."""
        resolved = ResolvedRevision(revision, revision) if isinstance(revision, str) else revision
        folder = clean_path(path)
        self.ensure(resolved)
        listing = self._listing(resolved.sha)
        if listing is not None and (entries := listing.folder(folder)) and not listing.has_file(MODULES):
            return GitTree(self, resolved.sha, folder, f"{resolved.sha}:{folder}", entries)
        (kind, tree_id), (modules, _) = self.objects_at(resolved.sha, folder, MODULES)
        if modules == "blob" and self.neighbour is not None:
            grafted = self._grafted(resolved.sha, nested).folder(folder)
            if grafted is not None:
                return grafted
        if kind != "tree":
            raise SourceError(
                Problem.PATH_MISSING,
                f"{path}: app path does not exist" if kind != "blob" else f"{path}: app path is not a directory",
                subject=self.shown,
                field="spec.source.path",
            )
        return GitTree(self, resolved.sha, folder, tree_id)

    def _listing(self, sha: str) -> Listing | None:
        """Return all files of the commit, from the third call for it on: then more calls will follow."""
        kept = self._kept.listing
        if kept is not None and kept.sha == sha:
            return kept
        asked_sha, asked = self._kept.asked_for
        asked = asked + 1 if asked_sha == sha else 1
        self._kept.asked_for = (sha, asked)
        if asked < LIST_AFTER:
            return None
        made = Listing(sha, self.whole_tree(sha).entries)
        self._kept.listing = made
        return made

    def listed(self, sha: str) -> Listing | None:
        """Return the files of the commit if they are listed already, because many of its folders are read."""
        kept = self._kept.listing
        return kept if kept is not None and kept.sha == sha else None

    def ensure(self, revision: ResolvedRevision) -> None:
        """Fetch the commit, with all branches and tags, unless the mirror has it."""
        if self._has(revision.sha):
            return
        with self._lock:
            if self._has(revision.sha):
                return
            depth = self.access.depth if self.access is not None else 0
            if depth:
                tag = [f"+{revision.ref}:{revision.ref}"] if revision.ref.startswith("refs/tags/") else []
                self._fetch(*tag, revision.sha, quietly=True, depth=depth)
            if not self._has(revision.sha):
                self._fetch("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
            if not self._has(revision.sha):
                # Pull requests and commits that no branch holds any more are asked for by name.
                self._fetch(revision.sha, quietly=True)
            if not self._has(revision.sha) and revision.ref.startswith("refs/"):
                self._fetch(f"+{revision.ref}:refs/syncline/{revision.ref}", quietly=True)
        if not self._has(revision.sha):
            raise self._unknown(revision.revision or "HEAD", f"the repository has no commit {revision.sha}")

    def _grafted(self, sha: str, nested: int) -> GraftedTree:
        """Return the root with its submodules; cached per project, since many folders need it."""
        key = (sha, self.viewer)
        kept = self._kept.grafted.get(key)
        if kept is not None and kept[0] == self.access:
            return kept[1]
        listing = self.settings_at(sha, MODULES, "--null", "--list").output
        urls = {path: url and submodule_url(self.url, url) for path, url in parse_modules(listing).items()}
        base = GitTree(self, sha, "", self.object_at(sha, "")[1])
        made = GraftedTree(Graft(base, urls, lambda url, at: self._mounted(url, at, nested + 1), self.shown), "", sha)
        with self._lock:
            self._kept.grafted[key] = (self.access, made)
            while len(self._kept.grafted) > GRAFTS_KEPT:
                self._kept.grafted.popitem(last=False)
        return made

    def _mounted(self, url: str, sha: str, nested: int) -> Tree:
        if nested > MAX_NESTED or self.neighbour is None:
            raise SourceError(Problem.TOO_LARGE, f"submodules are nested deeper than {MAX_NESTED} levels")
        return self.neighbour(url).tree(sha, nested=nested)

    def whole_tree(self, sha: str) -> GitTree:
        """Return the root at a commit of the mirror. The last one is cached: many folders need it."""
        last = self._kept.whole
        if last is not None and last.sha == sha and last.is_of(self):
            return last
        made = GitTree(self, sha, "", self.object_at(sha, "")[1])
        self._kept.whole = made
        return made

    def read_mirror(
        self,
        arguments: Sequence[str],
        stdin: bytes = b"",
        *,
        environment: Mapping[str, str] | None = None,
        whole_complaint: bool = False,
    ) -> GitAnswer:
        """Run a read-only git command in the mirror."""
        return run_git(
            arguments,
            directory=self._mirror,
            stdin=stdin,
            bounds=Bounds(self._settings.read_timeout_s),
            label=f"mirror of {self.shown}",
            environment=environment,
            whole_complaint=whole_complaint,
        )

    def changed(self, before: str, after: str) -> tuple[str, ...] | None:
        """Return the files that differ between two commits of the mirror. None: one of them is missing, more than
        :data:`MAX_CHANGED` differ, or other repositories are mounted elsewhere."""
        if before == after:
            return ()
        asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--end-of-options", before, after]
        answer = self.read_mirror(asked)
        paths = answer.output.decode("utf-8", "backslashreplace").split("\0")[:-1]
        if answer.code != 0 or len(paths) > MAX_CHANGED or MODULES in paths:
            return None
        return tuple(paths)

    def annotated_tag(self, sha: str, *names: str) -> str:
        """Return the first of ``names`` that is an annotated tag of the commit, or an empty text."""
        for name in names:
            tag = name.removeprefix("refs/tags/")
            if not tag or tag.startswith("-") or "\n" in tag:
                continue
            asked = f"refs/tags/{tag}\nrefs/tags/{tag}^{{commit}}\n".encode()
            answer = self.read_mirror(["cat-file", "--batch-check"], asked).output.decode("utf-8", "replace")
            lines = [line.split(" ") for line in answer.splitlines()]
            if len(lines) == 2 and lines[0][1:2] == ["tag"] and lines[1][0] == sha:
                return tag
        return ""

    def tags_at(self, sha: str) -> list[str]:
        """Return the tags of the commit in the mirror."""
        asked = ["for-each-ref", f"--points-at={sha}", "--format=%(refname:strip=2)", "refs/tags"]
        return self.read_mirror(asked).output.decode("utf-8", "replace").splitlines()

    def renew_tags(self) -> None:
        """Fetch the tags: one may have been recreated at the same commit."""
        with self._lock:
            self._fetch("+refs/tags/*:refs/tags/*", quietly=True)

    def object_at(self, sha: str, path: str) -> tuple[str, str]:
        """Return kind and id of the object at ``path``, links followed; kind is ``missing``, ``symlink``, ... if
        none."""
        return self.objects_at(sha, path)[0]

    def objects_at(self, sha: str, *paths: str) -> list[tuple[str, str]]:
        """Like :meth:`object_at`, for several paths in one git call."""
        # The protocol is one line per question.
        asked = ["" if "\n" in path else f"{sha}:{path}" for path in paths]
        command = ["cat-file", "--follow-symlinks", "--batch-check"]
        output = self.read_mirror(command, "".join(f"{one}\n" for one in asked if one).encode()).output
        found: list[tuple[str, str]] = []
        for one in asked:
            line, output = _answered(output) if one else ("missing", output)
            first = line.rsplit(" ", 2)
            if len(first) == 3 and first[1] in ("tree", "blob", "commit"):
                found.append((first[1], first[0]))
            else:
                # `symlink SIZE` leaves the repository; `loop`, `dangling`, `notdir`, `... missing` end inside it.
                found.append((first[0] if first[-1] != "missing" else "missing", ""))
        return found

    def smudged(self, sha: str, contents: dict[str, bytes]) -> dict[str, bytes]:
        """Return contents of a commit, with large files in place of their pointers if the Secret enables LFS."""
        if self.access is None or not self.access.lfs:
            return contents
        access = self._current_access()
        answer = self.settings_at(sha, ".lfsconfig", "--get", "lfs.url")
        configured = answer.output.decode("utf-8", "replace").strip() if answer.code == 0 else ""
        # Apart for each mirror: who names an object by its hash need not be who may read it.
        place = (self._mirror.with_suffix(".lfs"), configured, self.is_local, self.lend, self.networks)
        return LargeFiles(self.url, access, *place).smudged(contents)

    def settings_at(self, sha: str, path: str, *asked: str) -> GitAnswer:
        """Parse a file of a commit in git's config format, without includes: git would read files of this machine."""
        return self.read_mirror(["config", "--no-includes", f"--blob={sha}:{path}", *asked])

    def _has(self, sha: str) -> bool:
        if not (self._mirror / "HEAD").exists():
            self._kept.present.clear()  # the mirrors' directory was cleaned
            return False
        if sha in self._kept.present:
            return True
        found = self.read_mirror(["cat-file", "-e", f"{sha}^{{commit}}"]).code == 0
        if found:
            self._kept.present.add(sha)
        return found

    def _expand(self, short: str) -> str | None:
        with self._lock:
            self._fetch("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        answer = self.read_mirror(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{short}^{{commit}}"])
        lines = [line for line in answer.output.decode().splitlines() if line != "--end-of-options"]
        return lines[0] if answer.code == 0 and lines else None

    def _fetch(self, *refspecs: str, quietly: bool = False, depth: int = 0) -> None:
        self._begin()
        self._kept.present.clear()  # a fetch may tidy up what no branch holds any more
        options = [
            "fetch",
            "--quiet",
            "--progress",
            "--force",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
        ]
        prune = ["--prune"] if refspecs[0].endswith("/*") else []
        shallow = [f"--depth={depth}"] if depth else []
        asked = [*options, *prune, *shallow, "--end-of-options", self.url, *refspecs]
        try:
            answer = self._ask_remote(asked, directory=self._mirror)
        except SourceError:
            self._tidy_up()
            raise
        if answer.code != 0:
            self._tidy_up()
            if not quietly:
                raise self._failure(answer)

    def _tidy_up(self) -> None:
        """Remove the leftovers of a fetch that was killed."""
        for half in self._mirror.glob("objects/pack/tmp_*"):
            half.unlink(missing_ok=True)

    def _ask_remote(self, arguments: Sequence[str], *, directory: Path | None = None) -> GitAnswer:
        """Run a git command that contacts the remote, with its credentials. If the remote failed a short while ago,
        raise that error again instead."""
        self._failing.check(self.access)
        began = current().time()
        try:
            with away():
                answer = self._converse(arguments, directory)
        except SourceError as error:
            self._count(self.shown, arguments[0], False)
            self._failing.note(began, self.access, error)
            raise
        self._count(self.shown, arguments[0], answer.code == 0)
        if answer.code == 0 or arguments[0] == "ls-remote":  # others may be refused for what they ask
            self._failing.note(began, self.access, self._failure(answer) if answer.code != 0 else None)
        return answer

    def _converse(self, arguments: Sequence[str], directory: Path | None) -> GitAnswer:
        limits, moves = self._settings.limits, arguments[0] in ("fetch", "push")
        url, access = out_of_arguments(self.url, self._current_access())
        arguments = [url if each == self.url else each for each in arguments]
        bounds = limits.fetch if moves else limits.listing
        with git_environment(access) as more:
            answer = run_git(
                [*limits.options(bounds), *git_options(access), *arguments],
                directory=directory,
                bounds=replace(bounds, whole_s=min(bounds.whole_s, current().left_s)),
                label=f"repository {self.shown}",
                environment=more,
            )
        return answer if access is None else replace(answer, complaint=access.mask(answer.complaint))

    def _current_access(self) -> RepositoryAccess | None:
        return None if self.access is None else with_cloud_token(with_token(self.access))

    def _begin(self) -> None:
        if (self._mirror / "HEAD").exists():
            return
        self._settings.cache_directory.mkdir(parents=True, exist_ok=True)
        answer = run_git(
            ["init", "--quiet", "--bare", "--template=", "--", str(self._mirror)],
            bounds=Bounds(self._settings.read_timeout_s),
            label=f"mirror of {self.shown}",
        )
        if answer.code != 0:
            raise SourceError(Problem.UNREACHABLE, f"mirror of {self.shown}: {answer.complaint}", subject=self.shown)

    def _unknown(self, revision: str, why: str = "") -> SourceError:
        return SourceError(
            Problem.REVISION_UNKNOWN,
            f"unable to resolve '{revision}' to a commit SHA" + (f": {why}" if why else ""),
            subject=self.shown,
            field="spec.source.targetRevision",
        )

    def _failure(self, answer: GitAnswer) -> SourceError:
        problem = _problem_of(answer.complaint)
        complaint = answer.complaint or f"git ended with code {answer.code}"
        unlisted = self.access is not None and self.access.anonymous
        fix = {
            Problem.DENIED: "add it to the project's sourceRepos: it is asked without credentials"
            if unlisted
            else "give credentials for it in a repository Secret or the git configuration",
            Problem.REFUSED: "use http, https or ssh",
        }.get(problem, "")
        if _REDIRECTED.search(complaint):
            fix = "give the address that it redirects to: tokens in a header and client certificates follow no redirect"
        message = f"repository {self.shown} is not reachable: {complaint}"
        return SourceError(problem, message, subject=self.shown, field="spec.source.repoURL", fix=fix)


_DENIED = re.compile(
    r"(?i)authentication failed|could not read (username|password)|permission denied|access denied|\b40[13]\b|forbidden"
)


_REDIRECTED = re.compile(r"returned error: 30[12378]\b")


def _problem_of(complaint: str) -> Problem:
    if _DENIED.search(complaint):
        return Problem.DENIED
    return Problem.REFUSED if "transport" in complaint and "not allowed" in complaint else Problem.UNREACHABLE


def _parse_refs(text: str) -> Refs:
    """Parse ``git ls-remote --symref``: ``^{}`` after a tag's name marks the commit of an annotated tag."""
    head = ""
    shas: dict[str, str] = {}
    for line in text.splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: "):
            head = value.removeprefix("ref: ") if name == "HEAD" else head
        elif name.endswith("^{}") or name not in shas:
            shas[name.removesuffix("^{}")] = value
    return Refs(tuple(Ref(name, shas[name]) for name in sorted(shas)), head)


def _answered(output: bytes) -> tuple[str, bytes]:
    """Split off the first result of ``--batch-check``; links without a target take a second line for the path."""
    line, _, rest = output.partition(b"\n")
    text = line.decode("utf-8", "replace")
    word, _, size = text.partition(" ")
    if word in ("symlink", "dangling", "loop", "notdir") and size.isdigit():
        rest = rest[int(size) + 1 :]
    return text, rest
