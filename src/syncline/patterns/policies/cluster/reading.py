"""Reads and writes of one evaluation as requests: :class:`Access` notes everything that was read."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final

from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, NotFound, TooManyRequests, Unanswered, Unavailable
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, GroupKind, Obj, ResourceInfo
from syncline.patterns.policies.cluster.actions import Tracked
from syncline.patterns.policies.templates.asking import Answer, Question

AWAY: Final = (Unanswered, Unavailable, TooManyRequests)
"""Nothing was decided: nothing is concluded, and the evaluation is repeated."""
PAGE: Final = 500
MOST_LISTED: Final = 10_000
"""Objects of a list that one evaluation looks at."""

Steps = Generator[Request, Response, Any]


class TooMany(Exception):
    """A list is longer than :data:`MOST_LISTED`."""


@dataclass(slots=True)
class Access:
    """What one evaluation may ask of its cluster, and what it has asked. ``served``: the kinds of the cluster."""

    served: Mapper
    tracked: set[Tracked] = field(default_factory=set)
    note: Callable[[Tracked], None] = lambda _one: None
    """Called before something is read: changes from then on count."""
    answers: dict[Question, Answer] = field(default_factory=dict)

    def watch(self, kind: GroupKind) -> None:
        """Note that everything of a kind matters, though the cluster does not serve it."""
        self._track(Tracked(kind, "", ""))

    def _track(self, one: Tracked) -> None:
        if one not in self.tracked:
            self.tracked.add(one)
            self.note(one)

    def get(self, info: ResourceInfo, namespace: str, name: str) -> Steps:
        """Return an object, None if there is none. Raises ApiError."""
        place = namespace if info.namespaced else ""
        self._track(Tracked(info.group_kind, place, name))
        answer = yield client.get(info, place, name)
        return None if answer.status == NotFound.code else answer.or_raise()

    def list(self, info: ResourceInfo, namespace: str, selector: str = "") -> Steps:
        """Return the objects of a kind. Raises ApiError, :class:`TooMany`."""
        place = namespace if info.namespaced else ""
        self._track(Tracked(info.group_kind, place, ""))
        found: list[Obj] = []
        after = ""
        while True:
            answer = yield client.list_(info, place, label_selector=selector, limit=PAGE, continue_=after)
            page = answer.or_raise()
            found += ({"apiVersion": info.api_version, "kind": info.kind, **one} for one in page.get("items") or ())
            after = str((page.get("metadata") or {}).get("continue") or "")
            if not after:
                return found
            if len(found) > MOST_LISTED:
                raise TooMany(f"there are more than {MOST_LISTED} {info.group_resource}: narrow the selection")

    def answer(self, question: Question) -> Steps:
        """Ask what a template wants to know. Raises only what concludes nothing (:data:`AWAY`)."""
        if question in self.answers:
            return self.answers[question]
        self.answers[question] = made = yield from self._asked(question)
        return made

    def _asked(self, question: Question) -> Steps:
        info = self.served.find(question.gvk)
        if info is None:
            self._track(Tracked(question.gvk.group_kind, "", ""))
            return Answer(unserved=True)
        try:
            if question.name:
                return (yield from self._one(info, question))
            items = yield from self.list(info, question.namespace, question.selector)
            listed = {"apiVersion": question.gvk.api_version, "kind": f"{question.gvk.kind}List", "items": items}
            return Answer(listed, namespaced=info.namespaced)
        except AWAY:
            raise
        except (ApiError, TooMany) as error:
            return Answer(error=str(error), namespaced=info.namespaced)

    def _one(self, info: ResourceInfo, question: Question) -> Steps:
        found = yield from self.get(info, question.namespace, question.name)
        if found is None:
            text = f'{info.group_resource} "{question.name}" not found'
            return Answer(error=text, missing=True, namespaced=info.namespaced)
        return Answer(found, namespaced=info.namespaced)

    def served_as(self, gvk: GVK) -> ResourceInfo | None:
        return self.served.find(gvk)
