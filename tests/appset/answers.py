"""Facts of a recorded case, and answers to the questions that its generators ask: a repository, a plugin, Git hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from syncline.appset.generation import Generated
from syncline.appset.generators.generate import generate
from syncline.appset.generators.globs import PatternError, file_matcher
from syncline.appset.questions import (
    Answer,
    DirectoriesQuestion,
    Facts,
    FilesQuestion,
    GitFiles,
    GitPaths,
    PluginQuestion,
    PullRequest,
    PullRequestsQuestion,
    Question,
    RepositoriesQuestion,
)
from syncline.argo.clusters import is_cluster_secret
from syncline.kube.objects import Obj, name_of
from syncline.sources.errors import SourceError
from syncline.sources.providers.filters import choose
from syncline.sources.providers.model import Repository

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS = 10
"""A matrix of a matrix asks in three rounds."""


def facts_of(given: Mapping[str, Any], namespace: str = "argocd") -> Facts:
    objects: list[Obj] = given.get("objects") or []
    here = [one for one in objects if one["metadata"].get("namespace", namespace) == namespace]
    listed: dict[tuple[str, str], list[Obj]] = {}
    for one in here:
        listed.setdefault((one["apiVersion"], f"{one['kind'].lower()}s"), []).append(one)
    return Facts(
        clusters=tuple(one for one in here if one["kind"] == "Secret" and is_cluster_secret(one)),
        projects=frozenset(name_of(one) for one in here if one["kind"] == "AppProject"),
        config_maps={name_of(one): one for one in here if one["kind"] == "ConfigMap"},
        decisions={key: tuple(found) for key, found in listed.items()},
        doublestar=given.get("newGitFileGlobbing") is True,
        hidden=given.get("includeHiddenDirectories") is True,
    )


class World:
    """Answers from the inputs of a case."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.asked: list[Question] = []

    def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        match question:
            case DirectoriesQuestion() | FilesQuestion():
                return self._git(question)
            case PluginQuestion():
                return self._plugin(question)
            case RepositoriesQuestion():
                return self._repositories(question)
            case PullRequestsQuestion():
                return self._pull_requests()

    def _git(self, question: DirectoriesQuestion | FilesQuestion) -> Answer:
        if self.given.get("gitError"):
            return Answer(NOW, error=self.given["gitError"])
        tree: dict[str, str] = self.given.get("tree") or {}
        if isinstance(question, FilesQuestion):
            try:
                wanted = file_matcher(question.include, question.exclude, doublestar=question.doublestar)
                return Answer(NOW, GitFiles("c", {path: tree[path] for path in tree if wanted(path)}))
            except PatternError as error:
                return Answer(NOW, error=str(error))
        parents = {"/".join(path.split("/")[:count]) for path in tree for count in range(1, path.count("/") + 1)}
        return Answer(NOW, GitPaths("c", tuple(sorted(parents))))

    def _plugin(self, question: PluginQuestion) -> Answer:
        """Answer as the handler does."""
        served = self.given.get("plugin") or {}
        status, body = served.get("status", 200), served.get("body")
        if not 200 <= status < 300:
            message = body.get("message") or body.get("error") if isinstance(body, dict) else served.get("raw")
            return Answer(NOW, error=f"API error with status code {status}: {message or ''}")
        if "raw" not in served:
            return Answer(NOW, body)
        try:
            return Answer(NOW, json.loads(served["raw"]))
        except ValueError:
            raw = served["raw"]
            why = f"invalid character '{raw[1]}' in literal null (expecting 'u')"
            return Answer(NOW, error=f"{why}: {raw}")

    def _repositories(self, question: RepositoriesQuestion) -> Answer:
        if self.given.get("repositoriesError"):
            return Answer(NOW, error=self.given["repositoriesError"])
        try:
            found = choose(_Listed(self.given.get("repositories") or []), question.decoded.get("filters") or [])
        except SourceError as error:
            return Answer(NOW, error=str(error))
        return Answer(NOW, found)

    def _pull_requests(self) -> Answer:
        if self.given.get("pullRequestError") or self.given.get("pullRequestRepoNotFound"):
            error = self.given.get("pullRequestError") or "repository not found"
            return Answer(NOW, error=error, not_found=self.given.get("pullRequestRepoNotFound") is True)
        keys = ("Number", "Title", "Branch", "TargetBranch", "HeadSHA")
        return Answer(
            NOW,
            tuple(
                PullRequest(*(one.get(key) for key in keys), tuple(one.get("Labels") or ()), one.get("Author") or "")
                for one in self.given.get("pullRequests") or ()
            ),
        )


class _Listed:
    """A provider of a list with one entry for each branch."""

    def __init__(self, entries: list[Mapping[str, Any]]) -> None:
        self._entries = entries

    def _each(self) -> list[Repository]:
        keys = ("Organization", "Repository", "URL", "Branch", "SHA")
        return [
            Repository(*(one.get(key) for key in keys), tuple(one.get("Labels") or ()), one.get("RepositoryId", ""))
            for one in self._entries
        ]

    def repositories(self) -> list[Repository]:
        found: dict[tuple[str, str], Repository] = {}
        for one in self._each():
            found.setdefault((one.organization, one.repository), one)
        return [*found.values()]

    def branches(self, repository: Repository) -> list[Repository]:
        return [one for one in self._each() if one.repository == repository.repository]

    def path_exists(self, branch: Repository, path: str) -> bool:
        return any(
            path in (one.get("paths") or ())
            for one in self._entries
            if (one["Repository"], one["Branch"]) == (branch.repository, branch.branch)
        )


def generated(appset: Obj, given: Mapping[str, Any], facts: Facts | None = None) -> tuple[Generated, World]:
    """Generate with answers: as the controller does, until nothing is missing."""
    world = World(given)
    facts = facts_of(given) if facts is None else facts
    for _ in range(ROUNDS):
        found = generate(appset, facts)
        if not found.missing:
            return found, world
        facts = replace(facts, answers={**facts.answers, **{one: world.answer(one) for one in found.missing}})
    raise AssertionError(f"still missing after {ROUNDS} rounds: {found.missing}")
