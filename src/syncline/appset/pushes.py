"""Finds the sets that an event of a Git host concerns: :func:`sets_of_pushes`, :func:`sets_of_pull_requests`. Pure.

Rules: upstream ``applicationset/webhook/webhook.go`` (reference section 8, behaviour 59): the repository and revision
of git generators, whatever paths changed; plugins always; generators inside others too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import starmap
from typing import Any

from syncline.appset.observing.observe import generators_of
from syncline.appset.questions import DirectoriesQuestion, FilesQuestion, Question
from syncline.argo.webhooks import Push, moved
from syncline.kube.objects import Obj, ObjectRef, ref_of


def sets_of_pushes(
    sets: Iterable[Obj], pushes: Collection[Push], asked: Iterable[Question] = ()
) -> tuple[ObjectRef, ...]:
    """Return the sets with a git generator whose revision was pushed, or with a plugin, sorted.

    ``asked``: the questions of all sets, among which are those of templated addresses."""
    known = [one for one in asked if isinstance(one, DirectoriesQuestion | FilesQuestion)]
    templated: list[bool] = []

    def concerned(kind: str, fields: Any) -> bool:
        if kind == "plugin":
            return fields is not None
        if kind != "git" or not isinstance(fields, Mapping):
            return False
        url, revision = str(fields.get("repoURL") or ""), str(fields.get("revision") or "")
        if "{{" not in url + revision:
            return moved(url, revision, pushes)
        if not templated:
            templated.append(any(moved(one.repo_url, one.revision, pushes) for one in known))
        return templated[0]

    return _sets(sets, concerned)


def sets_of_pull_requests(sets: Iterable[Obj], matches: Callable[[Mapping[str, Any]], bool]) -> tuple[ObjectRef, ...]:
    """Return the sets with a ``pullRequest`` that ``matches``, sorted."""
    return _sets(sets, lambda kind, fields: kind == "pullRequest" and isinstance(fields, Mapping) and matches(fields))


def _sets(sets: Iterable[Obj], concerned: Callable[[str, Any], bool]) -> tuple[ObjectRef, ...]:
    return tuple(sorted(ref_of(one) for one in sets if any(starmap(concerned, generators_of(one)))))
