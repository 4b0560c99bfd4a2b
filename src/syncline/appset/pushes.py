"""Finds the sets that an event of a Git host concerns: :func:`sets_of_pushes`, :func:`sets_of_pull_requests`. Pure.

Rules: upstream ``applicationset/webhook/webhook.go`` (reference section 8, behaviour 59): the repository and revision
of git generators, whatever paths changed; plugins always; generators inside others too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from syncline.appset.questions import DirectoriesQuestion, FilesQuestion, Question
from syncline.argo.webhooks import Push, moved
from syncline.kube.objects import Obj, ObjectRef, dig, ref_of

REFRESH = "argocd.argoproj.io/application-set-refresh"
"""Annotation that asks the sources again; the controller removes it."""
MAX_DEPTH = 4
"""Of generators inside generators; deeper ones are an error of generation."""


def sets_of_pushes(
    sets: Iterable[Obj], pushes: Collection[Push], asked: Iterable[Question] = ()
) -> tuple[ObjectRef, ...]:
    """Return the sets with a git generator whose revision was pushed, or with a plugin, sorted.

    ``asked``: the questions of all sets, among which are those of templated addresses."""
    known = [one for one in asked if isinstance(one, DirectoriesQuestion | FilesQuestion)]
    templated: list[bool] = []

    def concerned(element: Mapping[str, Any]) -> bool:
        git = element.get("git")
        if element.get("plugin") is not None:
            return True
        if not isinstance(git, Mapping):
            return False
        url, revision = str(git.get("repoURL") or ""), str(git.get("revision") or "")
        if "{{" not in url + revision:
            return moved(url, revision, pushes)
        if not templated:
            templated.append(any(moved(one.repo_url, one.revision, pushes) for one in known))
        return templated[0]

    return _sets(sets, concerned)


def sets_of_pull_requests(sets: Iterable[Obj], matches: Callable[[Mapping[str, Any]], bool]) -> tuple[ObjectRef, ...]:
    """Return the sets with a ``pullRequest`` that ``matches``, sorted."""
    return _sets(sets, lambda one: isinstance(one.get("pullRequest"), Mapping) and matches(one["pullRequest"]))


def _sets(sets: Iterable[Obj], concerned: Callable[[Mapping[str, Any]], bool]) -> tuple[ObjectRef, ...]:
    found = (ref_of(one) for one in sets if any(map(concerned, elements(dig(one, "spec", "generators", default=[])))))
    return tuple(sorted(found))


def elements(generators: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield each element of a list of generators, and those inside matrix and merge."""
    for element in generators if isinstance(generators, list) and depth < MAX_DEPTH else ():
        if not isinstance(element, Mapping):
            continue
        yield element
        for name in ("matrix", "merge"):
            yield from elements(dig(element, name, "generators"), depth + 1)
