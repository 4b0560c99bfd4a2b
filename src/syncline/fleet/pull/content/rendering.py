"""What the pull model asks of a renderer on the hub; ``assembly`` provides the handler (decision 34)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from syncline.base.action import Action
from syncline.kube.objects import Obj


@dataclass(frozen=True)
class Question:
    """Sources at revisions, rendered as the cluster would. ``reader``: who asks; equal questions share a result."""

    reader: str
    sources: tuple[Obj, ...] = field(repr=False)
    revisions: tuple[str, ...]
    application: str
    project: str
    namespace: str
    kube_version: str
    api_versions: tuple[str, ...] = field(repr=False)
    source: str = ""
    """The Application's annotation ``syncline.dev/source``."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """The manifests at commits, or one sentence that says why there are none."""

    at: datetime
    revisions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    objects: tuple[Obj, ...] = field(default=(), repr=False)
    error: str = ""
    answers: tuple[str, ...] = ()
    """Refresh requests that this or an earlier rendering answered."""
    own_folder: bool = False
    """A commit that touches none of the sources' own folders changes nothing."""


class Renderings(Protocol):
    """Results and renders under way; used by the loop's thread."""

    def latest(self, question: Question) -> Rendering | None: ...

    def waiting(self, question: Question) -> str:
        """Return what a render under way waits for, since when and until when; empty: there is none."""
        ...


@dataclass(frozen=True, slots=True)
class RenderContent(Action):
    """Render the sources of an Application for its cluster."""

    question: Question
    reason: str
    answers: str = ""
    """The refresh request that it answers."""
    may_be_old_s: float = 0.0

    def describe(self) -> str:
        return f"render {self.question.reader}"
