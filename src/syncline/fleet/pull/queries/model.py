"""A question about an Application that a cluster pulls: :class:`Question`, made by commands, read by hub and agent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from syncline.kube.kinds.applicationqueries import MAX_ANSWER, MAX_LINES, QUERY
from syncline.kube.objects import Obj, ObjectRef, dig

DEFAULT_LINES: Final = 1000
"""Lines of each container's log that an agent reads unless the question says otherwise."""
NOTHING: Final = ObjectRef("", "", "", "")


class Ask(StrEnum):
    """What is asked for."""

    RESOURCES = "resources"
    MANIFESTS = "manifests"
    DIFF = "diff"
    LOGS = "logs"


class Phase(StrEnum):
    """How far a question is; one without a phase was not seen by the hub's controllers yet."""

    ACCEPTED = "Accepted"
    REFUSED = "Refused"
    ANSWERED = "Answered"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about the Application ``namespace``/``name`` of the hub.

    ``select``: only these objects of it, by the parts that are not empty. ``lines``: of each log, ``since_s``: only
    younger lines. ``offset``: rows of the answer to skip; ``limit``: bytes of an answer.
    """

    namespace: str
    name: str
    ask: Ask
    asked_by: str
    source: str = "git"
    select: ObjectRef = NOTHING
    container: str = ""
    previous: bool = False
    lines: int = DEFAULT_LINES
    since_s: int = 0
    timestamps: bool = False
    offset: int = 0
    limit: int = MAX_ANSWER

    @property
    def what(self) -> str:
        """What is asked for, for Events and messages."""
        chosen = "/".join(part for part in (self.select.kind, self.select.namespace, self.select.name) if part)
        return f"{self.ask}{' of ' + chosen if chosen else ''}"

    def fits(self, ref: ObjectRef) -> bool:
        """Return whether an object is selected."""
        return all(wanted in ("", part) for wanted, part in zip(self.select, ref, strict=True))

    def from_row(self, offset: int) -> Question:
        return replace(self, offset=offset)


def question_of(query: Obj) -> Question | None:
    """Return the question of an ApplicationQuery; None for one that the schema would not admit. Numbers are brought
    within their bounds."""
    spec = query.get("spec")
    if not isinstance(spec, dict) or spec.get("ask") not in tuple(Ask):
        return None
    select = (_text(dig(spec, "select", part)) for part in ("group", "kind", "namespace", "name"))
    return Question(
        namespace=_text(dig(spec, "application", "namespace")),
        name=_text(dig(spec, "application", "name")),
        ask=Ask(spec["ask"]),
        asked_by=_text(spec.get("askedBy")),
        source=_text(spec.get("source")) or "git",
        select=ObjectRef(*select),
        container=_text(spec.get("container")),
        previous=spec.get("previous") is True,
        lines=_number(spec.get("tailLines"), DEFAULT_LINES, MAX_LINES),
        since_s=_number(spec.get("sinceSeconds"), 0, 10**9),
        timestamps=spec.get("timestamps") is True,
        offset=_number(spec.get("offset"), 0, 10**9),
        limit=max(_number(spec.get("limitBytes"), MAX_ANSWER, MAX_ANSWER), 1000),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any, default: int, most: int) -> int:
    return min(max(value, 0), most) if isinstance(value, int) and not isinstance(value, bool) else default


def query_object(question: Question, cluster: str, name: str) -> Obj:
    """Return the ApplicationQuery that asks a cluster; the inverse of :func:`question_of`."""
    spec: Obj = {
        "application": {"namespace": question.namespace, "name": question.name},
        "ask": str(question.ask),
        "askedBy": question.asked_by,
        "source": question.source,
        "select": dict(zip(("group", "kind", "namespace", "name"), question.select, strict=True)),
        "container": question.container,
        "previous": question.previous,
        "tailLines": question.lines,
        "timestamps": question.timestamps,
        "offset": question.offset,
        "limitBytes": question.limit,
    }
    since: Obj = {"sinceSeconds": question.since_s} if question.since_s else {}
    metadata = {"name": name, "namespace": cluster}
    return {"apiVersion": QUERY.api_version, "kind": QUERY.kind, "metadata": metadata, "spec": spec | since}


def phase_of(query: Obj) -> str:
    return _text(dig(query, "status", "phase"))
