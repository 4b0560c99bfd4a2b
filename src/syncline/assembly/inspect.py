"""What a sync of one Application would do now, as data: the same functions that the controller runs, on one look.

Called by ``syncline plan``, by live views and by rehearsals. In come a look at the cluster, the Application (live, or
from a file) and a reader of sources; out goes a frozen :class:`PlannedSync`. Nothing is written, nothing is printed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from syncline.assembly.snapshot import system_of
from syncline.control.cache import Cache
from syncline.gitops.application.manifests import Manifests, ManifestStore, SourceReader
from syncline.gitops.application.observe import (
    AppObserved,
    AppSettings,
    observe_application,
    operation_sources,
    pinned_revisions,
    render_context,
    wanted_revisions,
)
from syncline.gitops.application.operation import begun, sync_observed
from syncline.gitops.application.plan import compare_application, spec_problems
from syncline.gitops.application.view import AppView
from syncline.gitops.autosync import AutoSync, decide
from syncline.gitops.compare import Comparison, SyncCode
from syncline.gitops.sync.actions import (
    AfterWave,
    ApplyMode,
    ApplyObject,
    DeleteHook,
    DryRun,
    PruneObject,
    ReadObject,
    RemoveHookFinalizer,
    SyncAction,
)
from syncline.gitops.sync.annotations import is_hook
from syncline.gitops.sync.change import immutable_fields
from syncline.gitops.sync.gates import PlannedWait
from syncline.gitops.sync.model import SyncObserved
from syncline.gitops.sync.plan import PlannedWave, plan_preview
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, dig, meta, name_of, namespace_of

__all__ = [
    "PlannedChange",
    "PlannedGroup",
    "PlannedSync",
    "SyncRequest",
    "Verb",
    "Verdict",
    "observed_application",
    "planned_sync",
]

MASS_DELETION_LEAST = 4
"""Fewer deletions than this are no mass deletion, however small the application."""
MASS_DELETION_PART = 0.5
"""Deleting more than this part of what is live is worth a second look."""
FIELDS_NAMED = 3
"""Changed fields that a line names; the rest is counted."""
MAX_DEPTH = 32
"""Depth to which fields are compared for naming them."""


class Verb(StrEnum):
    """What happens to one object."""

    CREATE = "create"
    CONFIGURE = "configure"
    REPLACE = "replace"
    RECREATE = "recreate"
    REFUSE = "refuse"
    PRUNE = "prune"
    RUN_HOOK = "run hook"
    DELETE_HOOK = "delete hook"
    UNCHANGED = "unchanged"


CHANGES = (Verb.CREATE, Verb.CONFIGURE, Verb.REPLACE, Verb.RECREATE, Verb.REFUSE, Verb.PRUNE)
"""Verbs by which the cluster gets nearer to the source; a hook alone is no reason to sync."""


class Verdict(StrEnum):
    """What a plan amounts to, worst last."""

    NOTHING = "nothing to do"
    CHANGES = "changes"
    BLOCKED = "blocked"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    verb: Verb
    ref: ObjectRef
    """An object whose name is still to be generated has its prefix and an ellipsis."""
    why: str

    def to_obj(self) -> Obj:
        return {"action": str(self.verb), "object": str(self.ref), "reason": self.why}


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """One wave of one phase."""

    phase: str
    wave: int
    changes: tuple[PlannedChange, ...]
    waits: tuple[PlannedWait, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_obj(self) -> Obj:
        return {
            "phase": self.phase,
            "wave": self.wave,
            "actions": [change.to_obj() for change in self.changes],
            "waitsFor": [{"what": str(wait.kind), "objects": [str(ref) for ref in wait.refs]} for wait in self.waits],
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class PlannedSync:
    """One application's next sync. ``problems``: why it could not even begin; then ``groups`` may be empty."""

    application: ObjectRef
    revisions: tuple[str, ...] = ()
    sync: str = str(SyncCode.UNKNOWN)
    health: str = "Unknown"
    by: str = ""
    """Who would start it: ``automated sync``, or a person's ``syncline app sync``."""
    groups: tuple[PlannedGroup, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    unsafe: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of it. Objects that only ``--prune`` would delete count as changes: the two sides differ."""
        if self.unsafe:
            return Verdict.UNSAFE
        if self.problems:
            return Verdict.BLOCKED
        differs = self.sync == SyncCode.OUT_OF_SYNC or any(
            change.verb in CHANGES for group in self.groups for change in group.changes
        )
        return Verdict.CHANGES if differs else Verdict.NOTHING

    def count(self, verb: Verb) -> int:
        return sum(change.verb is verb for group in self.groups for change in group.changes)

    def to_obj(self) -> Obj:
        """Plain JSON; no object of the cluster is in it, only names and reasons."""
        return {
            "application": f"{self.application.namespace}/{self.application.name}",
            "revisions": list(self.revisions),
            "sync": self.sync,
            "health": self.health,
            "by": self.by,
            "verdict": str(self.verdict),
            "waves": [group.to_obj() for group in self.groups],
            "warnings": list(self.warnings),
            "problems": list(self.problems),
            "unsafe": list(self.unsafe),
        }


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """What a person asks for instead of what the spec says; nothing given: the sync that would come next."""

    revision: str = ""
    prune: bool = False

    @property
    def by_hand(self) -> bool:
        return bool(self.revision) or self.prune

    def operation(self) -> Obj:
        """As ``syncline app sync`` writes it."""
        sync: Obj = {}
        if self.revision:
            sync["revision"] = self.revision
        if self.prune:
            sync["prune"] = True
        return {"initiatedBy": {"username": "syncline"}, "sync": sync}


def planned_sync(
    cache: Cache,
    app: Obj,
    reader: SourceReader,
    settings: AppSettings,
    now: datetime,
    request: SyncRequest = SyncRequest(),
) -> PlannedSync:
    """The plan of the next sync of ``app``, which is put into ``cache`` (a private one) as it would be once begun."""
    kind = APPLICATION.group_kind
    view = AppView(app)
    cache.put(kind, app)
    seen = observe_application(cache, view.ref, ManifestStore(), settings, system=system_of(cache, settings))
    assert seen is not None, "an Application that was put into the cache is there"
    problems = [f"{problem.type}: {problem.message}" for problem in spec_problems(seen)]
    if view.terminating:
        problems.append(f"{view.ref} is being deleted")
    if problems:
        return _stopped(view, problems)
    manifests = reader.read(view.sources, _asked(view, request), now, seen.context)
    if manifests.error:
        return _stopped(view, [f"ComparisonError: Failed to load target state: {manifests.error}"])
    decision = _decision(cache, view, manifests, settings, now)
    operation = decision.operation if decision.operation is not None and not request.by_hand else None
    started = begun(app, operation or request.operation(), now)
    cache.put(kind, started)
    pinned = ManifestStore()
    begun_view = AppView(started)
    pinned.put(operation_sources(begun_view), wanted_revisions(begun_view), manifests, seen.context)
    seen = observe_application(cache, view.ref, pinned, settings, system=system_of(cache, settings))
    assert seen is not None, "an Application that was put into the cache is there"
    planned = _planned(seen, manifests, compare_application(seen, manifests), now)
    return _with_decision(planned, view, decision, automated=operation is not None)


def _asked(view: AppView, request: SyncRequest) -> tuple[str, ...]:
    return (request.revision,) if request.revision and not view.multi_source else view.revisions_wanted


def _stopped(view: AppView, problems: list[str]) -> PlannedSync:
    return PlannedSync(
        view.ref,
        sync=str(dig(view.status, "sync", "status", default=SyncCode.UNKNOWN)),
        health=str(dig(view.status, "health", "status", default="Unknown")),
        problems=tuple(problems),
    )


def _decision(cache: Cache, view: AppView, manifests: Manifests, settings: AppSettings, now: datetime) -> AutoSync:
    """Whether the controller would start a sync by itself, and which: its own function on its own comparison."""
    latest = ManifestStore()
    latest.put(view.sources, view.revisions_wanted, manifests, render_context(view, settings))
    seen = observe_application(cache, view.ref, latest, settings, system=system_of(cache, settings))
    assert seen is not None, "an Application that was put into the cache is there"
    comparison = compare_application(seen, manifests)
    return decide(view.obj, comparison.status, manifests.revisions, comparison.resources, now)


def _planned(seen: AppObserved, manifests: Manifests, comparison: Comparison, now: datetime) -> PlannedSync:
    observed = sync_observed(seen, manifests, comparison)
    waves = plan_preview(observed, now)
    groups = tuple(_group(observed, wave) for wave in waves)
    errors = [f"{c.type}: {c.message}" for c in comparison.conditions if c.type.endswith("Error")]
    return PlannedSync(
        seen.view.ref,
        revisions=manifests.revisions,
        sync=str(comparison.status),
        health=str(comparison.health.status),
        groups=groups,
        warnings=(
            *manifests.warnings,
            *(f"{c.type}: {c.message}" for c in comparison.conditions if not c.type.endswith("Error")),
        ),
        problems=(*errors, *(text for wave in waves for text in wave.invalid)),
        unsafe=(*_refusals(waves), *_mass_deletion(observed, waves)),
    )


def _with_decision(planned: PlannedSync, view: AppView, decision: AutoSync, *, automated: bool) -> PlannedSync:
    warnings = planned.warnings
    if decision.condition is not None:
        warnings = (*warnings, f"{decision.condition.type}: {decision.condition.message}")
    if view.operation is not None:
        message = dig(view.operation_state, "message", default="") or "requested"
        warnings = (*warnings, f"an operation is in progress ({message}); shown is the sync after it")
    by = "automated sync" if automated else f"syncline app sync {view.name} ({decision.why})"
    return replace(planned, by=by, warnings=warnings)


def _refusals(waves: list[PlannedWave]) -> list[str]:
    return [
        f"{ref}: the change would be refused: an immutable field differs (see the warning of its wave)"
        for wave in waves
        for ref in wave.refused
    ]


def _mass_deletion(observed: SyncObserved, waves: list[PlannedWave]) -> list[str]:
    """Everything, or more than half of what is live and more than a handful (DECISIONS 6: the guard)."""
    live = sum(pair.live is not None for pair in observed.pairs)
    gone = sum(isinstance(action, PruneObject) for wave in waves for action in wave.actions)
    everything = gone == live and gone > 1
    if not everything and (gone < MASS_DELETION_LEAST or gone <= live * MASS_DELETION_PART):
        return []
    return [f"{gone} of {live} live objects would be deleted; if that is meant, sync with `syncline app sync --prune`"]


def _group(seen: SyncObserved, wave: PlannedWave) -> PlannedGroup:
    changes = tuple(change for action in wave.actions if (change := _change(seen, wave, action)) is not None)
    return PlannedGroup(str(wave.phase), wave.wave, changes, wave.waits, wave.notes)


def _change(seen: SyncObserved, wave: PlannedWave, action: SyncAction) -> PlannedChange | None:
    match action:
        case ApplyObject():
            verb, why = _applied(seen, wave, action)
            return PlannedChange(verb, _shown(action), why)
        case PruneObject():
            return PlannedChange(Verb.PRUNE, action.ref, "no longer in the source")
        case DeleteHook():
            return PlannedChange(Verb.DELETE_HOOK, action.ref, action.reason)
        case DryRun() | ReadObject() | RemoveHookFinalizer() | AfterWave():
            return None
        case _:
            assert_never(action)


def _shown(action: ApplyObject) -> ObjectRef:
    """A name that is generated when the sync begins is not known yet."""
    prefix = meta(action.target).get("generateName")
    if not prefix or action.live is not None:
        return action.ref
    return ObjectRef(action.ref.group, action.ref.kind, action.ref.namespace, f"{prefix}…")


def _applied(seen: SyncObserved, wave: PlannedWave, action: ApplyObject) -> tuple[Verb, str]:
    if is_hook(action.target):
        return Verb.RUN_HOOK, f"hook of {wave.phase}"
    if action.ref in wave.refused:
        assert action.live is not None, "only a change can be refused"
        return Verb.REFUSE, f"{', '.join(immutable_fields(action.target, action.live))} cannot be changed"
    if action.live is None:
        return Verb.CREATE, "not in the cluster"
    match action.mode:
        case ApplyMode.RECREATE:
            fields = immutable_fields(action.target, action.live)
            reason = f"{', '.join(fields)} cannot be changed" if fields else "Replace and Force are set"
            return Verb.RECREATE, f"{reason}: deleted and made again"
        case ApplyMode.REPLACE | ApplyMode.UPDATE | ApplyMode.CREATE:
            return Verb.REPLACE, "Replace=true" + _named(action.target, action.live, "; differs in ")
        case ApplyMode.CLIENT_SIDE | ApplyMode.SERVER_SIDE:
            if (
                ObjectRef(action.ref.group, action.ref.kind, namespace_of(action.live), name_of(action.live))
                in seen.in_sync
            ):
                return Verb.UNCHANGED, "as in the source"
            return Verb.CONFIGURE, "differs from the source" + _named(action.target, action.live, " in ")
        case _:
            assert_never(action.mode)


def _named(target: Obj, live: Obj, lead: str) -> str:
    """The fields of the manifest that the live object does not have so; names only, never values."""
    fields = [field for field in _differing(target, live, "", 0) if not field.startswith("metadata.annotations.argocd")]
    if not fields:
        return ""
    more = f" and {len(fields) - FIELDS_NAMED} more" if len(fields) > FIELDS_NAMED else ""
    return f"{lead}{', '.join(fields[:FIELDS_NAMED])}{more}"


def _differing(target: Any, live: Any, path: str, depth: int) -> list[str]:
    if depth > MAX_DEPTH:
        return []
    if isinstance(target, dict) and isinstance(live, dict):
        return [
            found
            for key, value in target.items()
            for found in _differing(value, live.get(key), f"{path}.{key}" if path else key, depth + 1)
        ]
    if isinstance(target, list) and isinstance(live, list) and len(target) == len(live):
        return [
            found
            for index, (one, other) in enumerate(zip(target, live))
            for found in _differing(one, other, f"{path}[{index}]", depth + 1)
        ]
    same = target == live or (not target and live is None) or str(target) == str(live)
    return [] if same else [path]


def observed_application(
    cache: Cache, ref: ObjectRef, reader: SourceReader, settings: AppSettings, now: datetime
) -> AppObserved | None:
    """What the controller sees of an Application, with the manifests of the operation that runs rendered again.

    None: there is no such Application. A source that cannot be read is an error inside ``pinned``.
    """
    store = ManifestStore()
    seen = observe_application(cache, ref, store, settings, system=system_of(cache, settings))
    if seen is None or seen.view.operation is None or not seen.view.operation_state:
        return seen
    view = seen.view
    sources, revisions = operation_sources(view), pinned_revisions(view) or wanted_revisions(view)
    store.put(sources, revisions, reader.read(sources, revisions, now, seen.context), seen.context)
    return observe_application(cache, ref, store, settings, system=system_of(cache, settings))
