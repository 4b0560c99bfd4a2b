"""Traces of a loop's operations: one :class:`~syncline.telemetry.spans.Story` each. Entry point: :class:`Tracer`.

Finished spans go to ``sink``, which must not block. Times are those of the loop's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.apply.actions import ApplyObject, DryRun, PruneObject
from syncline.argo.application import AppView
from syncline.control.informer import Change
from syncline.control.loop import Observer
from syncline.control.plan import Plan, Result
from syncline.control.workqueue import Key
from syncline.gitops.application.manifests import Manifests, Render
from syncline.gitops.application.operating.operation import OperationPlan
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GroupKind, Obj, ObjectRef
from syncline.telemetry.spans import Span, Story, trace_of

CONTROLLER = "application"
GOING_ON = ("Running", "Terminating")
ENDED = ("Succeeded", "Failed", "Error")
MAX_EARLY = 1000
"""Maximum number of renders cached for operations that have not been observed yet; the oldest is dropped."""


@dataclass(frozen=True, slots=True)
class _Rendered:
    began: datetime
    ended: datetime
    revisions: tuple[str, ...]
    error: str | None


class Tracer(Observer):
    """Traces the operations of a loop. ``mine`` selects the Applications of this replica."""

    def __init__(
        self,
        sink: Callable[[Span], None],
        now: Callable[[], datetime],
        mine: Callable[[ObjectRef], bool] = lambda _ref: True,
    ) -> None:
        self._sink = sink
        self._now = now
        self._mine = mine
        self._stories: dict[ObjectRef, Story] = {}
        self._early: dict[ObjectRef, _Rendered] = {}
        """An operation begins with a render that may be over before the beginning comes back from the API, or works
        with the render of the refresh before it. Its plan names the one used."""

    def planned(self, key: Key, plan: Plan, began: datetime, ended: datetime) -> None:
        story = self._stories.get(key.ref) if key.controller == CONTROLLER else None
        if (
            story is not None
            and isinstance(plan, OperationPlan)
            and plan.sync is not None
            and plan.observed is not None
        ):
            used = self._early.pop(key.ref, None)
            if used is not None and not story.has_rendered:
                self._rendered(key.ref, story, used)
            self._tell(story.planned(plan.sync, plan.observed, began, ended))

    def acted(self, key: Key, result: Result, began: datetime, ended: datetime) -> None:
        if key.controller != CONTROLLER:
            return
        action = result.action
        story = self._stories.get(key.ref)
        if isinstance(action, Render):
            self._rendered(key.ref, story, _of(result, began, ended))
        elif story is None:
            return
        elif isinstance(action, DryRun):
            story.dry_run(began, ended)
        elif isinstance(action, ApplyObject | PruneObject):
            story.applied(action.ref, "prune" if isinstance(action, PruneObject) else "apply", began, ended)

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None:
        """Receive changes of Applications."""
        if kind != APPLICATION.group_kind:
            return
        now = self._now()
        for change in changes:
            if change.new is not None:
                self._written(change.old, change.new, now)
            elif change.old is not None:
                ref = AppView(change.old).ref
                self._early.pop(ref, None)
                story = self._stories.pop(ref, None)
                if story is not None and self._mine(ref):
                    self._tell(story.cut(change.old, now, "the Application was deleted"))

    def _written(self, old: Obj | None, new: Obj, now: datetime) -> None:
        ref = AppView(new).ref
        if not self._mine(ref):
            self._stories.pop(ref, None)
            return
        phase = (AppView(new).operation_state or {}).get("phase")
        trace = trace_of(new)
        story = self._stories.get(ref)
        if story is None or story.trace != trace:
            self._stories.pop(ref, None)
            unseen = old is None or trace_of(old) == trace
            if not trace or not (phase in GOING_ON or (phase in ENDED and not unseen)):
                return
            story = self._stories[ref] = Story(new, now, resumed=unseen)
            early = self._early.get(ref)
            if early is not None and early.began >= story.began:
                self._rendered(ref, story, self._early.pop(ref))
        self._tell(story.state(new, now))
        if phase in ENDED:
            self._stories.pop(ref, None)

    def _rendered(self, ref: ObjectRef, story: Story | None, report: _Rendered) -> None:
        if story is not None:
            self._tell(story.rendered(report.began, report.ended, report.revisions, report.error))
            return
        self._early.pop(ref, None)
        self._early[ref] = report
        if len(self._early) > MAX_EARLY:
            del self._early[next(iter(self._early))]

    def _tell(self, spans: Iterable[Span]) -> None:
        for span in spans:
            self._sink(span)


def _of(result: Result, began: datetime, ended: datetime) -> _Rendered:
    found = result.value
    if isinstance(found, Manifests):
        return _Rendered(began, ended, found.revisions, found.error or None)
    return _Rendered(began, ended, (), str(result.error or "not rendered"))
