"""Reads repositories that administrators name in objects of their own, by a mirror; blocking."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

from syncline.control.fetching import Wanted
from syncline.sources.git.mirrors import Freshness
from syncline.sources.remote.turns import computing
from syncline.sources.sourcing import Sources
from syncline.sources.tree import Tree, clean_path
from syncline.sources.workers.read_scope import ReadScope, read_scope

READ_LIMIT_S: Final = 900.0
T = TypeVar("T")


def read_administered(
    sources: Sources, wanted: Wanted, path: str, now: datetime, make: Callable[[Tree], T]
) -> tuple[str, T]:
    """Return the commit that ``wanted`` names, and what ``make`` reads of its folder ``path``.

    Who may make these objects (a Pattern, an AnsibleConfig) is an administrator of the cluster or root on its nodes:
    the repository is read with its credentials, without a project's leave. Raises :class:`SourceError`.
    """
    with read_scope(ReadScope(now, "", wanted.url, asked=True, limit_s=READ_LIMIT_S)):
        freshness = Freshness(now, None, asked=True)
        repository, resolved = sources.of_generator(
            wanted.url, wanted.revision, "", freshness, trusted=True, signed=False
        )
        tree = repository.tree(resolved, clean_path(path))
        with computing():
            return resolved.sha, make(tree)
