"""Describes a commit for people: :func:`describe`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.mirrors import Repository


@dataclass(frozen=True, slots=True)
class Description:
    """Who made a commit (``Name <address>``) and when, its message, and the tags that name it."""

    author: str
    at: datetime
    message: str
    tags: tuple[str, ...]


def describe(repository: Repository, commit: str) -> Description:
    """Return what a commit in the mirror says of itself, with the remote's tags of it. Raises :class:`SourceError`."""
    answer = repository.read_mirror(["show", "-s", "--format=%an <%ae>%n%at%n%B", "--end-of-options", commit])
    parts = answer.output.decode("utf-8", "replace").split("\n", 2)
    if answer.code or len(parts) != 3 or not parts[1].isdecimal():
        raise SourceError(
            Problem.REVISION_UNKNOWN, f"commit {commit}: {answer.complaint or 'it says no author and no time'}"
        )
    refs = repository.refs()
    tags = tuple(tag for tag in refs.tags() if refs.sha_of(f"refs/tags/{tag}") == commit)
    return Description(parts[0], datetime.fromtimestamp(int(parts[1]), UTC), parts[2].strip(), tags)
