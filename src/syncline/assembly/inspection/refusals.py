"""Predicts refusals of a sync, by dry runs at the API and from the manifests themselves.

Called by ``preview`` with the observation of the sync. The dry runs are those with which the sync itself starts; only
reads and dry runs are sent. Without a connection, schemas and the list of Namespaces decide alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from syncline.apply.actions import ApplyObject, DryRun, SyncAction
from syncline.apply.annotations import is_hook
from syncline.apply.handler import SyncHandler
from syncline.apply.outcome import Outcome, Refusal
from syncline.control.cache import Snapshot
from syncline.control.executor import run_in_place
from syncline.gitops.application.observing.schemas import SchemaCache
from syncline.gitops.sync import messages
from syncline.gitops.sync.model import ResultCode, SyncObserved
from syncline.gitops.sync.phases import SyncPhase
from syncline.gitops.sync.plan import PlannedWave, plan_dry_run, record
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Unanswered
from syncline.kube.objects import GVK, GroupKind, ObjectRef, gvk_of, name_of, ref_of
from syncline.kube.rights import ask_for, missing_right
from syncline.kube.schema.model import Schema, schema_for
from syncline.kube.text.images import image_problems

MAX_ASKED = 500
"""Limit of objects per sync with a dry run; the number of the others is reported."""
NAMESPACE = GroupKind("", "Namespace")


@dataclass(frozen=True, slots=True)
class Questions:
    """Where to send dry runs. ``whole`` False: an empty cluster stands for the real one, so only refusals by an
    object's own content count."""

    transport: Transport
    whole: bool = True
    namespaces: bool = True
    """Whether all Namespaces are known; False: an export of some kinds only."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """``refused``: reason by object. ``unsafe``: refusals that concern no single object. ``warnings``: possible
    refusals, and dry runs that were not possible."""

    refused: Mapping[ObjectRef, str] = field(default_factory=dict)
    unsafe: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def find_refusals(
    observed: SyncObserved,
    waves: Sequence[PlannedWave],
    there: Snapshot | None,
    questions: Questions | None,
    now: datetime,
) -> Refusals:
    """Return the predicted refusals. ``there``: the snapshot of the destination."""
    applied = [action for wave in waves for action in wave.actions if isinstance(action, ApplyObject)]
    changed = [action for action in applied if _changes(observed, action)]
    whole = questions is None or questions.namespaces
    homeless = _homeless(observed, waves, there) if whole else {}
    invalid = any(wave.invalid for wave in waves)  # then the sync ends before its dry runs
    asked = _Asked() if questions is None or invalid else _ask(observed, questions, there, now)
    refused = {ref: why for ref, why in asked.refused.items() if _place(observed, ref) not in homeless}
    schema_of = schema_for if there is None else SchemaCache().of(there, (action.target for action in changed)).find
    for action in changed:
        unasked = action.ref not in asked.judged
        own = [*(_field_problems(action, schema_of) if unasked else ()), *image_problems(action.target)]
        if own:
            refused[action.ref] = "; ".join([*([refused[action.ref]] if action.ref in refused else []), *own])
    maybe = [why for why, curable in homeless.values() if curable]
    later = [f"{ref}: {why}" for ref, why in asked.deferred.items() if _place(observed, ref) not in homeless]
    unsafe = tuple(why for why, curable in homeless.values() if not curable)
    return Refusals(refused, unsafe, (*maybe, *later, *asked.notes))


def _place(observed: SyncObserved, ref: ObjectRef) -> str:
    """Return the namespace of an object; empty if its kind is cluster-scoped."""
    return "" if observed.kinds.namespaced(ref.group_kind) is False else ref.namespace


def _changes(observed: SyncObserved, action: ApplyObject) -> bool:
    return is_hook(action.target) or action.live is None or ref_of(action.live) not in observed.in_sync


# -- what the manifests show ------------------------------------------------------------------------------------------


def _homeless(
    observed: SyncObserved, waves: Sequence[PlannedWave], there: Snapshot | None
) -> dict[str, tuple[str, bool]]:
    """Return missing namespaces that no manifest creates: a sentence, and whether something before their first object
    may create them (a hook, an operator). An unreadable one counts as existing."""
    if there is None:
        return {}
    known: set[str] = set()
    found: dict[str, tuple[str, bool]] = {}
    changed: set[str] = set()
    for action in (one for wave in waves for one in wave.actions if wave.phase is not SyncPhase.SYNC_FAIL):
        if not isinstance(action, ApplyObject):
            continue
        if action.ref.group_kind == NAMESPACE:
            known.add(name_of(action.target))
        place = _place(observed, action.ref)
        if place and place not in known | found.keys() and not _may_be_there(there, place):
            found[place] = _homeless_text(observed, place, bool(changed)), bool(changed)
        if _changes(observed, action) and place not in found:
            changed.add(str(action.ref))
    return found


def _may_be_there(there: Snapshot, namespace: str) -> bool:
    ref = ObjectRef(*NAMESPACE, "", namespace)
    return there.get(ref) is not None or bool(there.unread(ref))


def _homeless_text(observed: SyncObserved, namespace: str, curable: bool) -> str:
    text = f'namespaces "{namespace}" not found: no manifest brings it'
    if namespace == observed.namespace:
        text += ", and the sync does not make it (syncOptions: CreateNamespace=true)"
    return f"{text}; the sync fails unless what is applied before makes it" if curable else text


def _field_problems(action: ApplyObject, schema_of: Callable[[GVK], Schema | None]) -> list[str]:
    """Return the schema errors of a manifest that the API did not judge."""
    schema = schema_of(gvk_of(action.target))
    if schema is None:
        return []
    from syncline.kube.patching.fields import field_problems

    return field_problems(action.target, schema, values=action.ref.kind != "Secret", unknown=action.validate)


# -- what the API says ------------------------------------------------------------------------------------------------


@dataclass
class _Asked:
    refused: dict[ObjectRef, str] = field(default_factory=dict)
    deferred: dict[ObjectRef, str] = field(default_factory=dict)
    judged: set[ObjectRef] = field(default_factory=set)
    """Objects that the API has accepted or refused."""
    notes: list[str] = field(default_factory=list)


class _OnlyQuestions:
    """Passes reads and dry runs only."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def send(self, request: Request) -> Response:
        assert request.method == "GET" or request.query.get("dryRun") == "All", f"{request.describe()} would write"
        return self._transport.send(request)


class _Asker:
    """Sends the dry runs of a reconcile. Those forbidden or over the limit count as accepted and are noted."""

    def __init__(self, questions: Questions, handler: SyncHandler, unread: Callable[[ObjectRef], str]) -> None:
        """``unread``: why an object cannot be read; a client that cannot read it cannot apply it."""
        self._unread = unread
        self._transport = _OnlyQuestions(questions.transport)
        self._whole = questions.whole
        self._handler = handler
        self.judged: set[ObjectRef] = set()
        self.asked = 0
        self.left = 0
        self.refusals: dict[str, int] = {}
        """Why dry runs were forbidden, and for how many objects."""

    def answer(self, action: SyncAction) -> Outcome:
        if not isinstance(action, DryRun) or self._unread(action.ref):
            return Outcome(True)
        if self.asked >= MAX_ASKED:
            self.left += 1
            return Outcome(True)
        try:
            outcome = run_in_place(self._handler.handle(action), self._transport)
        except Unanswered as error:
            return self._unheard(str(error))
        if not outcome.ok and outcome.refusal is Refusal.RIGHTS:
            return self._unheard(outcome.message.partition(" is forbidden: ")[2] or outcome.message)
        content = outcome.refusal is Refusal.CONTENT and outcome.pending is None
        if outcome.ok or content:
            self.judged.add(action.ref)
        self.asked += 1
        return outcome if self._whole or outcome.ok or content else Outcome(True)

    def _unheard(self, why: str) -> Outcome:
        self.asked += 1
        self.refusals[why] = self.refusals.get(why, 0) + 1
        return Outcome(True)

    def notes(self) -> list[str]:
        rights = {why: right for why in self.refusals if (right := missing_right(why)) is not None}
        found = [f"not asked of the API ({n} objects): {why}" for why, n in self.refusals.items() if why not in rights]
        count = sum(self.refusals[why] for why in rights)
        found += [f"not asked of the API ({count} objects): {text}" for text in ask_for(rights.values())]
        return found + ([f"not asked of the API: {self.left} more objects than {MAX_ASKED}"] if self.left else [])


def _ask(seen: SyncObserved, questions: Questions, there: Snapshot | None, now: datetime) -> _Asked:
    assert there is not None, "the API answered"
    observed, looked = seen, there
    asker = _Asker(
        questions,
        SyncHandler(there.mapper),
        lambda ref: looked.unread(ref._replace(namespace=_place(observed, ref))),
    )
    plan = plan_dry_run(seen, now)
    while not plan.ended:
        answers = tuple(tuple(asker.answer(action) for action in step) for step in plan.steps)
        seen = record(seen, plan, answers)
        plan = plan_dry_run(seen, now)
    found = _Asked(judged=asker.judged, notes=asker.notes())
    for row in plan.results:
        if row.status is ResultCode.SYNC_FAILED:
            found.refused[row.ref] = row.message
        elif row.message.startswith(messages.DEFERRED):
            found.deferred[row.ref] = row.message
    return found
