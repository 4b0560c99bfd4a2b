"""Answers the questions of generators: reads Git trees, calls plugins, asks Git hosts. Blocking."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, assert_never

import msgspec

from syncline.appset.asking import READ_LIMIT_S
from syncline.appset.generators.globs import PatternError, file_matcher
from syncline.appset.questions import (
    DirectoriesQuestion,
    FilesQuestion,
    GitFiles,
    GitPaths,
    PluginQuestion,
    PullRequestsQuestion,
    Question,
    RepositoriesQuestion,
    Value,
)
from syncline.base.secret import Secret
from syncline.kube.objects import dig
from syncline.sources.errors import Problem, SourceError, mask_credentials
from syncline.sources.git.mirrors import Freshness
from syncline.sources.providers.asking import pull_requests, repositories
from syncline.sources.providers.model import SecretReference
from syncline.sources.providers.reach import Reach
from syncline.sources.remote.turns import computing
from syncline.sources.remote.web import WebLimits, WebRequest, fetch
from syncline.sources.sourcing import Sources
from syncline.sources.tree import Entry, Tree
from syncline.sources.workers.read_scope import ReadScope, read_scope

MAX_FILES = 20_000
MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_BYTES = 64_000_000
"""Limits of the files of one question."""
MAX_DIRECTORIES = 200_000
MAX_LAST = 500
"""Git questions whose last answer is kept: the same commit has the same answer."""
PLUGIN = "api/v1/getparams.execute"

Secrets = Mapping[SecretReference, Secret]
GitQuestion: TypeAlias = DirectoriesQuestion | FilesQuestion


@dataclass(slots=True)
class Generating:
    """Answers for all sets of a process. Thread-safe."""

    sources: Sources
    reach: Reach = field(default_factory=Reach)
    """The administrator's rules for Git hosts; replaced when the settings change."""
    _last: OrderedDict[tuple[str, GitQuestion], Value] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rows(
        self, question: Question, secrets: Secrets, now: datetime, *, since: datetime | None, wanted: int
    ) -> Value:
        """As :meth:`~syncline.appset.asking.RowReader.rows`."""
        project = question.project if isinstance(question, DirectoriesQuestion | FilesQuestion) else ""
        source = question.repo_url if isinstance(question, DirectoriesQuestion | FilesQuestion) else ""
        freshness = Freshness(now, since, asked=since is None, wanted=wanted)
        with read_scope(ReadScope(now, project, source, asked=freshness.asked, limit_s=READ_LIMIT_S)):
            match question:
                case DirectoriesQuestion() | FilesQuestion():
                    return self._of_git(question, freshness)
                case PluginQuestion():
                    return _of_plugin(question, secrets[question.token])
                case RepositoriesQuestion():
                    return repositories(question.decoded, secrets, self.reach)
                case PullRequestsQuestion():
                    return pull_requests(question.decoded, secrets, self.reach)
                case _:
                    assert_never(question)

    def _of_git(self, question: GitQuestion, freshness: Freshness) -> Value:
        repository, resolved = self.sources.of_generator(
            question.repo_url,
            question.revision,
            question.project,
            freshness,
            trusted=question.trusted,
            signed=question.signed,
        )
        key = f"{resolved.sha} {repository.access is not None and repository.access.lfs}", question
        with self._lock:
            known = self._last.get(key)
        if known is not None:
            return known
        tree = repository.tree(resolved)
        with computing():
            value = git_value(tree, resolved.sha, question)
        with self._lock:
            self._last[key] = value
            while len(self._last) > MAX_LAST:
                self._last.popitem(last=False)
        return value


def git_value(tree: Tree, commit: str, question: GitQuestion) -> GitPaths | GitFiles:
    """Return the answer that a whole tree gives. Raises :class:`SourceError`."""
    return _directories(tree, commit) if isinstance(question, DirectoriesQuestion) else _files(tree, commit, question)


def _directories(tree: Tree, commit: str) -> GitPaths:
    found: set[str] = set()
    for entry in tree.entries:
        parent = entry.path.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
        if len(found) > MAX_DIRECTORIES:
            raise SourceError(Problem.TOO_LARGE, f"the repository has more than {MAX_DIRECTORIES} directories")
    return GitPaths(commit, tuple(sorted(found)))


def _files(tree: Tree, commit: str, question: FilesQuestion) -> GitFiles:
    try:
        matches = file_matcher(question.include, question.exclude, doublestar=question.doublestar)
        chosen = [entry for entry in tree.entries if matches(entry.path)]
    except PatternError as error:
        raise SourceError(Problem.INVALID, str(error), field="git.files") from None
    if len(chosen) > MAX_FILES:
        raise SourceError(
            Problem.TOO_LARGE,
            f"{len(chosen)} files match {', '.join(question.include)}, at most {MAX_FILES} are read",
            field="git.files",
            fix="narrow the patterns",
        )
    found = [(entry, _target(tree, entry)) for entry in chosen]
    large = next((target for _, target in found if target.size > MAX_FILE_BYTES), None)
    if large is not None or sum(target.size for _, target in found) > MAX_BYTES:
        what = f"{large.path} has {large.size} bytes" if large is not None else f"{len(found)} files are too large"
        message = f"{what}; of a file {MAX_FILE_BYTES} bytes are read, together {MAX_BYTES}"
        raise SourceError(Problem.TOO_LARGE, message, field="git.files", fix="narrow the patterns")
    contents = tree.read(target for _, target in found)
    texts = {entry.path: contents[target.path].decode("utf-8", "replace") for entry, target in found}
    return GitFiles(commit, texts)


def _target(tree: Tree, entry: Entry) -> Entry:
    target = tree.follow(entry)
    if target is None:
        raise SourceError(Problem.INVALID, f"{entry.path}: the symbolic link does not end at a file")
    return target


def _of_plugin(question: PluginQuestion, token: Secret) -> Mapping[str, Any]:
    """Raises :class:`SourceError` with upstream's text (``applicationset/services/internal/http``)."""
    url = question.base_url + ("" if question.base_url.endswith("/") else "/") + PLUGIN
    request = WebRequest(
        url,
        f"plugin {mask_credentials(question.base_url)}",
        method="POST",
        headers={"Content-Type": "application/json"},
        secret_headers={"Authorization": f"Bearer {token.reveal()}"},
        body=f"{question.body}\n".encode(),
        secret_body=True,
        limits=WebLimits(wait_s=question.timeout_s, wall_s=question.timeout_s),
        networks=(),  # the administrator's ConfigMap names the address, mostly a Service of the cluster
    )
    answer = fetch(request)
    text = answer.body.decode("utf-8", "replace")
    if not answer.ok:
        raise SourceError(Problem.UNREACHABLE, f"API error with status code {answer.status}: {_complaint(text)}")
    if not text.strip():
        return {}
    try:
        found, _ = json.JSONDecoder().raw_decode(text.strip())
    except (ValueError, RecursionError) as error:
        raise SourceError(Problem.INVALID, f"the answer of the plugin is not JSON: {error}") from None
    if not isinstance(found, Mapping):
        raise SourceError(Problem.INVALID, "the answer of the plugin must be an object with output.parameters")
    return found


def _complaint(text: str) -> str:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError):
        return text
    for name in ("message", "error"):
        value = dig(found, name) if isinstance(found, dict) else None
        if isinstance(value, str):
            return value
    return "" if isinstance(found, dict) else text
