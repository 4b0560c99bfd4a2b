"""What Git hosts list, what is read for it, and why there may be no answer: :class:`Repository`, :class:`PullRequest`,
:class:`SecretReference`, :class:`ProviderError`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from syncline.sources.errors import Problem, SourceError


@dataclass(frozen=True, slots=True)
class Repository:
    """A branch of a repository of an SCM provider, after the filters. ``url`` is for the chosen clone protocol."""

    organization: str
    repository: str
    url: str
    branch: str
    sha: str = ""
    """Empty where the host does not give it with the branch: AWS CodeCommit."""
    labels: tuple[str, ...] = ()
    repository_id: int | str = ""
    """A number on GitHub, GitLab, Gitea and Bitbucket Server; a text elsewhere."""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """An open pull or merge request."""

    number: int
    title: str
    branch: str
    target_branch: str
    head_sha: str
    labels: tuple[str, ...] = ()
    author: str = ""


@dataclass(frozen=True, slots=True, order=True)
class SecretReference:
    """A key of a Secret or, with ``kind`` ConfigMap, of a ConfigMap."""

    namespace: str
    name: str
    key: str
    kind: str = "Secret"
    purpose: str = "scm"
    """``scm``: with strict token references the Secret needs the label ``argocd.argoproj.io/secret-type: scm-creds``;
    ``plugin``: a Secret beside ``argocd-secret`` needs ``app.kubernetes.io/part-of: argocd``; ``github-app``: a Secret
    of the control namespace, which needs ``argocd.argoproj.io/secret-type: repo-creds``."""
    optional: bool = False
    """Whether the key may be missing; the Secret itself may not."""


class ProviderError(SourceError):
    """A host gives no answer that can be used, or may not be asked."""

    def __init__(
        self,
        problem: Problem,
        message: str,
        *,
        not_found: bool = False,
        retry_at: datetime | None = None,
        kind: str = "",
        field: str = "",
        fix: str = "",
    ) -> None:
        super().__init__(problem, message, field=field, fix=fix)
        self.not_found = not_found
        """The host reported that the repository, project or organization does not exist, or hides it."""
        self.retry_at = retry_at
        """Before this moment the host wants no further request: its rate limit."""
        self.kind = kind
        """The host's own name of the error: ``GitItemNotFoundException``."""

    def during(self, what: str) -> ProviderError:
        """Return the error with ``error WHAT: `` before its message."""
        return ProviderError(
            self.problem,
            f"error {what}: {self.message}",
            not_found=self.not_found,
            retry_at=self.retry_at,
            kind=self.kind,
            field=self.field,
            fix=self.fix,
        )
