"""The ``scmProvider`` and ``pullRequest`` generators: rows of what Git hosts list."""

from __future__ import annotations

import json
from collections.abc import Sequence

from syncline.appset.generators.context import Context, Row, Rows
from syncline.appset.generators.errors import GenerationError
from syncline.appset.generators.reading import Element
from syncline.appset.questions import PullRequest, PullRequestsQuestion, RepositoriesQuestion, Repository
from syncline.appset.rendering.slug import normalize, slug
from syncline.kube.gotemplate.values import Int64, Strings
from syncline.kube.objects import Obj
from syncline.kube.schema.fieldcauses import quoted
from syncline.sources.errors import SourceError
from syncline.sources.providers.filters import choose_pull_requests, compiled

INTERVAL_S = 1800.0
REPOSITORIES = ("github", "gitlab", "gitea", "bitbucketServer", "azureDevOps", "bitbucket", "awsCodeCommit")
"""SCM providers in the order in which upstream looks for one."""
PULL_REQUESTS = ("github", "gitlab", "gitea", "bitbucketServer", "bitbucket", "azuredevops")
_WITHOUT_ADDRESS = frozenset({("scmProvider", "bitbucket"), ("scmProvider", "awsCodeCommit")})
"""Providers whose address a set cannot choose."""
_TOKENS = {
    "github": "scm provider: error fetching Github token",
    "gitlab": "error fetching Gitlab token",
    "gitea": "error fetching Gitea token",
    "azureDevOps": "error fetching Azure Devops access token",
    "bitbucket": "error fetching Bitbucket cloud appPassword",
}
_NOT_ASKED = frozenset({"values", "template", "requeueAfterSeconds"})
_NOT_ASKED_OF_PULLS = _NOT_ASKED | {"filters", "continueOnRepoNotFoundError"}


def interval(element: Element, context: Context) -> float:
    return element.seconds("requeueAfterSeconds", INTERVAL_S)


def _check_allowed(element: Element, kind: str, providers: Sequence[str], context: Context) -> None:
    """Raise if the administrator disabled Git hosts, or does not allow the address that the element names."""
    if not context.facts.scm_enabled:
        raise GenerationError("scm providers are disabled")
    chosen = next((one for one in providers if element.raw.get(one) is not None), None)
    provider = element.below(chosen) if chosen else None
    if provider is None or (kind, chosen) in _WITHOUT_ADDRESS:
        return
    address, allowed = provider.text("api"), context.facts.allowed_scm
    if address and allowed and address not in allowed:
        named = ", ".join(allowed)
        why = f"scm provider {quoted(address)} not allowed, must use one of the following: {named}"
        raise GenerationError(f"scm provider not allowed: {why}")


def _spec(element: Element, without: frozenset[str], **checked: list[Obj]) -> str:
    kept: Obj = {key: value for key, value in element.raw.items() if key not in without}
    kept.update({key: value for key, value in checked.items() if value})
    return json.dumps(kept, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _filters(element: Element) -> list[Obj]:
    """Return ``filters``; raises for an invalid expression or path, before anything is asked."""
    for given in element.elements("filters"):
        given.texts("pathsExist")
        given.texts("pathsDoNotExist")
    filters = [one.raw for one in element.elements("filters")]
    try:
        for one in filters:
            for key in ("repositoryMatch", "labelMatch", "branchMatch", "targetBranchMatch", "titleMatch"):
                compiled(one, key)
    except SourceError as error:
        raise GenerationError(f"error listing repos: {error}") from None
    return filters


# --- repositories -------------------------------------------------------------------------------------------------


def rows_of_repositories(element: Element, context: Context) -> Rows:
    """Return a row for each branch; the filters need the host, so they are part of the question."""
    _check_allowed(element, "scmProvider", REPOSITORIES, context)
    if all(element.raw.get(one) is None for one in REPOSITORIES):
        raise GenerationError("no SCM provider implementation configured")
    filters = _filters(element)
    question = RepositoriesQuestion(_spec(element, _NOT_ASKED, filters=filters), context.namespace)
    answer = context.ask(question, interval(element, context))
    if answer.error or not isinstance(answer.value, tuple):
        provider = next(one for one in REPOSITORIES if element.raw.get(one) is not None)
        prefix = _TOKENS.get(provider, "error fetching Secret token") if answer.unasked else "error listing repos"
        raise GenerationError(f"{prefix}: {answer.error}")
    rows = [_repository_row(one) for one in answer.value if isinstance(one, Repository)]
    return _with_values(rows, element, context)


def _with_values(rows: Rows, element: Element, context: Context) -> Rows:
    try:
        for row in rows:
            context.add_values(row, element)
    except GenerationError as error:
        raise GenerationError(f"failed to append templated values: {error}") from None
    return rows


def _repository_row(found: Repository) -> Row:
    return {
        "organization": found.organization,
        "repository": found.repository,
        "repository_id": Int64(found.repository_id) if isinstance(found.repository_id, int) else found.repository_id,
        "url": found.url,
        "branch": found.branch,
        "sha": found.sha,
        "short_sha": found.sha[:8],
        "short_sha_7": found.sha[:7],
        "labels": ",".join(found.labels),
        "branchNormalized": normalize(found.branch),
    }


# --- pull requests ------------------------------------------------------------------------------------------------


def rows_of_pull_requests(element: Element, context: Context) -> Rows:
    """Return a row for each pull request that one of ``filters`` accepts."""
    try:
        _check_allowed(element, "pullRequest", PULL_REQUESTS, context)
        if all(element.raw.get(one) is None for one in PULL_REQUESTS):
            raise GenerationError("no Pull Request provider implementation configured")
    except GenerationError as error:
        raise GenerationError(f"failed to select pull request service provider: {error}") from None
    filters = _filters(element)
    question = PullRequestsQuestion(_spec(element, _NOT_ASKED_OF_PULLS), context.namespace)
    answer = context.ask(question, interval(element, context))
    if answer.not_found and element.flag("continueOnRepoNotFoundError"):
        return []
    if answer.error or not isinstance(answer.value, tuple):
        unread = "failed to select pull request service provider: error fetching Secret token"
        raise GenerationError(f"{unread if answer.unasked else 'error listing repos'}: {answer.error}")
    found = [one for one in answer.value if isinstance(one, PullRequest)]
    try:
        chosen = choose_pull_requests(found, filters)
    except SourceError as error:
        raise GenerationError(f"error listing repos: {error}") from None
    return _with_values([_pull_request_row(one, go=context.go) for one in chosen], element, context)


def _pull_request_row(found: PullRequest, *, go: bool) -> Row:
    row: Row = {
        "number": str(found.number),
        "title": found.title,
        "branch": found.branch,
        "branch_slug": _branch_slug(found.branch),
        "target_branch": found.target_branch,
        "target_branch_slug": _branch_slug(found.target_branch),
        "head_sha": found.head_sha,
        "head_short_sha": found.head_sha[:8],
        "head_short_sha_7": found.head_sha[:7],
        "author": found.author,
    }
    if go:
        row["labels"] = Strings(found.labels)
    return row


def _branch_slug(branch: str) -> str:
    return slug(branch.replace("_", "-"))
