"""Previews the next sync of an Application, with the controller's own functions on one snapshot.

Called by ``syncline plan``, by live views and by rehearsals with a snapshot of the cluster, the Application (live, or
from a file) and a reader of sources; returns a frozen :class:`PlannedSync`. Nothing is written or printed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from syncline.apply.actions import (
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
from syncline.apply.annotations import is_hook
from syncline.apply.change import immutable_fields
from syncline.apply.diff import DiffError, DiffSettings
from syncline.argo.application import AppView
from syncline.assembly.inspection.differences import ObjectDifference, object_difference
from syncline.assembly.inspection.refusals import Questions, Refusals, find_refusals
from syncline.assembly.inspection.snapshot import system_of
from syncline.assembly.machines.forecast import (
    broken_conditions,
    conditions_before,
    gate_limits,
    gates_after,
    guarded,
    held_pools,
    left_out,
    needs_first,
)
from syncline.base.masking import Masker
from syncline.control.cache import Cache, Snapshot
from syncline.gitops.application.content import ContentFirst
from syncline.gitops.application.manifests import Manifests, ManifestStore, SourceReader
from syncline.gitops.application.observing.observe import (
    AppObserved,
    AppSettings,
    Destinations,
    compared_revisions,
    observe_application,
    operation_sources,
    pinned_revisions,
    render_context,
    wanted_revisions,
)
from syncline.gitops.application.operating.autosync import AutoSync, decide
from syncline.gitops.application.operating.operation import begun, sync_observed
from syncline.gitops.application.plan import compare_application, comparison_input
from syncline.gitops.application.problems import spec_problems
from syncline.gitops.comparison.compare import Comparison, SyncCode, diff_settings
from syncline.gitops.sync.gates import PlannedWait
from syncline.gitops.sync.model import Pair, SyncObserved
from syncline.gitops.sync.plan import PlannedWave, plan_preview
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, dig, meta, name_of, namespace_of, ref_of

if TYPE_CHECKING:
    from syncline.machineconfig.impact.report import PoolImpact

FIELDS_NAMED = 3
"""Changed fields that a line names; the others are counted."""
MAX_DEPTH = 32
"""Depth to which fields are compared to name them."""


class Verb(StrEnum):
    """The kind of change to one object."""

    CREATE = "create"
    CONFIGURE = "configure"
    REPLACE = "replace"
    RECREATE = "recreate"
    REFUSE = "refuse"
    PRUNE = "prune"
    UNREAD = "unread"
    RUN_HOOK = "run hook"
    DELETE_HOOK = "delete hook"
    UNCHANGED = "unchanged"


MACHINE_GROUPS = ("machineconfiguration.openshift.io", "config.openshift.io", "operator.openshift.io")
"""API groups of MachineConfigs and of their sources."""
CHANGES = (Verb.CREATE, Verb.CONFIGURE, Verb.REPLACE, Verb.RECREATE, Verb.REFUSE, Verb.PRUNE)
"""Verbs that bring the cluster closer to the source; a hook alone is no reason to sync."""


class Verdict(StrEnum):
    """The result of a plan, worst last."""

    NOTHING = "nothing to do"
    CHANGES = "changes"
    BLOCKED = "blocked"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    verb: Verb
    ref: ObjectRef
    """The object; a name to be generated is its prefix and an ellipsis."""
    why: str
    difference: ObjectDifference | None = None
    """The changes of a live object; values of Secrets are masked."""

    def to_obj(self) -> Obj:
        made = {"action": str(self.verb), "object": str(self.ref), "reason": self.why}
        if self.difference is None:
            return made
        return made | {"live": self.difference.live, "wanted": self.difference.wanted}


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """One wave of one phase."""

    phase: str
    wave: int
    changes: tuple[PlannedChange, ...]
    waits: tuple[PlannedWait, ...] = ()
    warnings: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Conditions that its objects wait for before the apply."""
    limits: tuple[str, ...] = ()
    """Deadlines of its gate, and the action then."""
    holds: tuple[str, ...] = ()
    """Pools that the sync holds before this wave."""

    def to_obj(self) -> Obj:
        return {
            "phase": self.phase,
            "wave": self.wave,
            "needs": list(self.needs),
            "deadlines": list(self.limits),
            "holds": list(self.holds),
            "actions": [change.to_obj() for change in self.changes],
            "waitsFor": [{"what": str(wait.kind), "objects": [str(ref) for ref in wait.refs]} for wait in self.waits],
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class PlannedSync:
    """An application's next sync. ``problems``: why it cannot even start; then ``groups`` may be empty."""

    application: ObjectRef
    revisions: tuple[str, ...] = ()
    sync: str = str(SyncCode.UNKNOWN)
    health: str = "Unknown"
    by: str = ""
    """What would start it: ``automated sync``, or a user's ``syncline app sync``."""
    groups: tuple[PlannedGroup, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    unsafe: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    """Conditions for the first wave: Applications that this one depends on."""
    left_out: tuple[str, ...] = ()
    """Hooks in the source that do not run in this sync."""
    machines: tuple[PoolImpact, ...] = ()
    """Effects of its MachineConfigs on nodes, by pool."""

    @property
    def verdict(self) -> Verdict:
        """The worst result. Objects that only ``--prune`` would delete count as changes, as the two sides differ."""
        if self.unsafe:
            return Verdict.UNSAFE
        if self.problems:
            return Verdict.BLOCKED
        may_differ = self.sync == SyncCode.UNKNOWN and self.count(Verb.UNREAD)
        differs = self.sync == SyncCode.OUT_OF_SYNC or _brings(self.groups) or may_differ
        return Verdict.CHANGES if differs else Verdict.NOTHING

    def count(self, verb: Verb) -> int:
        return sum(change.verb is verb for group in self.groups for change in group.changes)

    def to_obj(self) -> Obj:
        """Return plain JSON with the changed objects only, without values of Secrets."""
        return {
            "application": f"{self.application.namespace}/{self.application.name}",
            "revisions": list(self.revisions),
            "sync": self.sync,
            "health": self.health,
            "by": self.by,
            "verdict": str(self.verdict),
            "waitsFirst": list(self.first),
            "waves": [group.to_obj() for group in self.groups],
            "warnings": list(self.warnings),
            "problems": list(self.problems),
            "unsafe": list(self.unsafe),
            "leftOut": list(self.left_out),
            "machines": [pool.to_obj() for pool in self.machines],
        }


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """Options of a requested sync; the defaults mean the next sync."""

    revision: str = ""
    prune: bool = False
    resources: tuple[Obj, ...] = ()
    """Only these, as an operation names them: group, kind, name and perhaps namespace."""

    @property
    def by_hand(self) -> bool:
        return bool(self.revision or self.prune or self.resources)

    def operation(self) -> Obj:
        """Return the operation as ``syncline app sync`` writes it."""
        sync: Obj = {}
        if self.revision:
            sync["revision"] = self.revision
        if self.prune:
            sync["prune"] = True
        if self.resources:
            sync["resources"] = list(self.resources)
        return {"initiatedBy": {"username": "syncline"}, "sync": sync}


def planned_sync(
    cache: Cache,
    app: Obj,
    reader: SourceReader,
    settings: AppSettings,
    now: datetime,
    request: SyncRequest = SyncRequest(),
    destinations: Destinations | None = None,
    ask: Callable[[str], Questions | None] | None = None,
) -> PlannedSync:
    """Return the plan of the next sync of ``app``, which is put into ``cache`` (a private one) with the sync started.

    ``ask``: returns where to send dry runs for a server (empty: the Application's cluster); None: no dry runs.
    """
    kind = APPLICATION.group_kind
    view = AppView(app)
    cache.put(kind, app)
    system = system_of(cache, settings)
    observed = observe_application(cache, view.ref, ManifestStore(), settings, system=system, destinations=destinations)
    assert observed is not None, "an Application that was put into the cache is there"
    problems = [f"{problem.type}: {problem.message}" for problem in spec_problems(replace(observed, unread={}))]
    if view.terminating:
        problems.append(f"{view.ref} is being deleted")
    if problems:
        return _stopped(observed.view, problems)
    manifests = ContentFirst(reader, cache).read(view.sources, _asked(view, request), now, observed.context)
    if manifests.error:
        return _stopped(observed.view, [f"ComparisonError: Failed to load target state: {manifests.error}"])
    decision = _decision(cache, view, manifests, settings, now, destinations)
    operation = decision.operation if decision.operation is not None and not request.by_hand else None
    started = begun(app, operation or request.operation(), now)
    cache.put(kind, started)
    pinned = ManifestStore()
    begun_view = AppView(started)
    pinned.put(operation_sources(begun_view), wanted_revisions(begun_view), manifests, observed.context)
    system = system_of(cache, settings)
    observed = observe_application(cache, view.ref, pinned, settings, system=system, destinations=destinations)
    assert observed is not None, "an Application that was put into the cache is there"
    there = destinations.snapshot(observed.remote) if observed.remote and destinations is not None else cache
    questions = ask(observed.remote) if ask is not None and there is not None else None
    planned = _planned(observed, manifests, compare_application(observed, manifests), now, there, questions)
    decided = _with_decision(planned, view, decision, automated=operation is not None)
    return _masked(decided, observed.view.mask)


def _masked(planned: PlannedSync, mask: Masker) -> PlannedSync:
    """Return the plan with all values of Secrets masked; its objects are masked already."""

    def texts(found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(mask(text) for text in found)

    groups = tuple(
        replace(
            group,
            changes=tuple(replace(change, why=mask(change.why)) for change in group.changes),
            warnings=texts(group.warnings),
            needs=texts(group.needs),
            limits=texts(group.limits),
        )
        for group in planned.groups
    )
    return replace(
        planned,
        by=mask(planned.by),
        groups=groups,
        warnings=texts(planned.warnings),
        problems=texts(planned.problems),
        unsafe=texts(planned.unsafe),
        first=texts(planned.first),
        left_out=texts(planned.left_out),
    )


def _asked(view: AppView, request: SyncRequest) -> tuple[str, ...]:
    return (request.revision,) if request.revision and not view.multi_source else view.revisions_wanted


def _brings(groups: Sequence[PlannedGroup]) -> bool:
    return any(change.verb in CHANGES for group in groups for change in group.changes)


def _last_sync(observed: AppObserved, manifests: Manifests, groups: Sequence[PlannedGroup]) -> str:
    """Return the sync status if not all objects are readable: OutOfSync for a visible difference, else the controller's
    status for these commits."""
    if _brings(groups):
        return str(SyncCode.OUT_OF_SYNC)
    same = compared_revisions(observed.view) == manifests.revisions
    return _last_known(observed, "sync") if same else str(SyncCode.UNKNOWN)


def _perhaps_pruned(observed: AppObserved, groups: Sequence[PlannedGroup]) -> list[str]:
    planned = {change.ref for group in groups for change in group.changes}
    left = [ref for ref in observed.unread if ref.name and ref not in planned]
    return [f"{ref}: may not be read, so it is not known whether it would be pruned" for ref in left]


def _last_known(observed: AppObserved, part: str) -> str:
    """Return the status of the Application's last comparison, as the controller can read more."""
    return str(dig(observed.view.status, part, "status", default="Unknown"))


def _stopped(view: AppView, problems: list[str]) -> PlannedSync:
    return PlannedSync(
        view.ref,
        sync=str(dig(view.status, "sync", "status", default=SyncCode.UNKNOWN)),
        health=str(dig(view.status, "health", "status", default="Unknown")),
        problems=tuple(view.mask(problem) for problem in problems),
    )


def _decision(
    cache: Cache,
    view: AppView,
    manifests: Manifests,
    settings: AppSettings,
    now: datetime,
    destinations: Destinations | None,
) -> AutoSync:
    """Return whether the controller would start a sync, by its own function and comparison."""
    latest = ManifestStore()
    latest.put(view.sources, view.revisions_wanted, manifests, render_context(view, settings))
    system = system_of(cache, settings)
    observed = observe_application(cache, view.ref, latest, settings, system=system, destinations=destinations)
    assert observed is not None, "an Application that was put into the cache is there"
    comparison = compare_application(observed, manifests)
    return decide(view.obj, comparison.status, manifests.revisions, comparison.resources, now)


def _planned(
    seen: AppObserved,
    manifests: Manifests,
    comparison: Comparison,
    now: datetime,
    there: Snapshot | None,
    questions: Questions | None,
) -> PlannedSync:
    """Plan the sync. ``there``: the destination cluster."""
    observed = sync_observed(seen, manifests, comparison)
    waves = plan_preview(observed, now)
    found = find_refusals(observed, waves, there, questions, now)
    first, circles = needs_first(seen)
    broken = [text for wave in waves for text in broken_conditions(observed, wave)]
    errors = [f"{c.type}: {c.message}" for c in comparison.conditions if c.type.endswith("Error")]
    groups = _groups(seen, observed, manifests, waves, found.refused)
    machines = _machines(seen, observed, groups, there, now)
    refused = tuple(pool.sentence() for pool in machines if pool.refused)
    return PlannedSync(
        seen.view.ref,
        revisions=manifests.revisions,
        sync=_last_sync(seen, manifests, groups) if seen.unread else str(comparison.status),
        health=_last_known(seen, "health") if seen.unread else str(comparison.health.status),
        groups=groups,
        warnings=(
            *manifests.warnings,
            *_perhaps_pruned(seen, groups),
            *(f"{c.type}: {c.message}" for c in comparison.conditions if not c.type.endswith("Error")),
            *found.warnings,
        ),
        problems=(*errors, *circles, *(text for wave in waves for text in wave.invalid), *broken),
        unsafe=(*_refusals(observed, waves, found), *guarded(seen, observed, waves, comparison.resources), *refused),
        first=first,
        left_out=left_out(observed, manifests.objects),
        machines=machines,
    )


def _machines(
    seen: AppObserved, observed: SyncObserved, groups: Sequence[PlannedGroup], there: Snapshot | None, now: datetime
) -> tuple[PoolImpact, ...]:
    """Return the effects of changed MachineConfigs and their sources on nodes; computed only if there are some."""
    changed = [change for group in groups for change in group.changes if change.verb in CHANGES]
    if there is None or not any(change.ref.group in MACHINE_GROUPS for change in changed):
        return ()
    from syncline.assembly.machines.impact import planned_impact

    targets = {_placed(observed, ref_of(pair.obj)): pair.target for pair in observed.pairs}
    called = f"Application {seen.view.name}"
    put, applied, gone = [], [], []
    for one in changed:
        target = targets.get(one.ref)
        if one.verb is Verb.PRUNE:
            gone.append(one.ref)
        elif one.difference is not None and one.difference.wanted is not None:
            put.append(one.difference.wanted)
        elif target is not None:
            applied.append(target)
    return planned_impact(there, applied, put, gone, called, now)


def _groups(
    seen: AppObserved,
    observed: SyncObserved,
    manifests: Manifests,
    waves: list[PlannedWave],
    refused: Mapping[ObjectRef, str],
) -> tuple[PlannedGroup, ...]:
    settings = diff_settings(comparison_input(seen, manifests))
    differences = partial(
        _difference,
        {ref_of(pair.obj): pair for pair in observed.pairs},
        settings,
        seen.system.settings.hidden_annotations,
    )
    held: frozenset[str] = frozenset()
    groups: list[PlannedGroup] = []
    for wave in waves:
        wanted = held_pools(seen, observed, wave.actions)
        group = _group(observed, wave, differences, tuple(sorted(wanted - held)), refused)
        groups.append(replace(group, changes=tuple(_known(change, seen.unread) for change in group.changes)))
        held |= wanted
    return tuple(groups)


def _known(change: PlannedChange, unread: Mapping[ObjectRef, str]) -> PlannedChange:
    """Return the change; an unreadable object does not count as new."""
    if change.verb is not Verb.CREATE or change.ref not in unread:
        return change
    return replace(change, verb=Verb.UNREAD, why="may not be read: created, configured or left as it is")


def _difference(
    pairs: Mapping[ObjectRef, Pair], settings: DiffSettings, hidden: Collection[str], action: ApplyObject
) -> ObjectDifference | None:
    pair = pairs.get(action.ref) if action.live is None else pairs.get(ref_of(action.live))
    if pair is None or pair.live is None:
        return None
    try:
        return object_difference(pair, settings, hidden)
    except DiffError:
        return None  # the comparison reports it


def _with_decision(planned: PlannedSync, view: AppView, decision: AutoSync, *, automated: bool) -> PlannedSync:
    warnings = planned.warnings
    if decision.condition is not None:
        warnings = (*warnings, f"{decision.condition.type}: {decision.condition.message}")
    if view.operation is not None:
        message = dig(view.operation_state, "message", default="") or "requested"
        warnings = (*warnings, f"an operation is in progress ({message}); shown is the sync after it")
    by = "automated sync" if automated else f"syncline app sync {view.name} ({decision.why})"
    return replace(planned, by=by, warnings=warnings)


def _refusals(observed: SyncObserved, waves: list[PlannedWave], found: Refusals) -> list[str]:
    immutable = [ref for wave in waves for ref in wave.refused]
    return [
        *(
            f"{ref}: the change would be refused: an immutable field differs (see the warning of its wave)"
            for ref in immutable
        ),
        *found.unsafe,
        *(f"{_placed(observed, ref)}: {why}" for ref, why in found.refused.items() if ref not in immutable),
    ]


Differ = Callable[[ApplyObject], ObjectDifference | None]


def _group(
    observed: SyncObserved, wave: PlannedWave, differ: Differ, holds: tuple[str, ...], refused: Mapping[ObjectRef, str]
) -> PlannedGroup:
    planned = ((action, _change(observed, wave, action, differ)) for action in wave.actions)
    changes = tuple(
        replace(change, verb=Verb.REFUSE, why=refused[action.ref])
        if isinstance(action, ApplyObject) and action.ref in refused and action.ref not in wave.refused
        else change
        for action, change in planned
        if change is not None
    )
    needs, limits = conditions_before(observed, wave), (*gates_after(observed, wave), *gate_limits(observed, wave))
    waits = tuple(replace(wait, refs=tuple(_placed(observed, ref) for ref in wait.refs)) for wait in wave.waits)
    return PlannedGroup(str(wave.phase), wave.wave, changes, waits, wave.notes, needs, limits, holds)


def _placed(observed: SyncObserved, ref: ObjectRef) -> ObjectRef:
    """Return the reference without the destination's namespace if its kind is cluster-scoped."""
    cluster_wide = observed.kinds.namespaced(ref.group_kind) is False
    return ref._replace(namespace="") if cluster_wide else ref


def _change(observed: SyncObserved, wave: PlannedWave, action: SyncAction, differ: Differ) -> PlannedChange | None:
    match action:
        case ApplyObject():
            verb, why = _applied(observed, wave, action)
            difference = differ(action) if verb in CHANGES else None
            return PlannedChange(verb, _placed(observed, _shown(action)), why, difference)
        case PruneObject():
            return PlannedChange(Verb.PRUNE, _placed(observed, action.ref), "no longer in the source")
        case DeleteHook():
            return PlannedChange(Verb.DELETE_HOOK, _placed(observed, action.ref), action.reason)
        case DryRun() | ReadObject() | RemoveHookFinalizer() | AfterWave():
            return None
        case _:
            assert_never(action)


def _shown(action: ApplyObject) -> ObjectRef:
    """Return the reference; a name that is generated at the start of the sync is not known yet."""
    prefix = meta(action.target).get("generateName")
    if not prefix or action.live is not None:
        return action.ref
    return ObjectRef(action.ref.group, action.ref.kind, action.ref.namespace, f"{prefix}…")


def _applied(observed: SyncObserved, wave: PlannedWave, action: ApplyObject) -> tuple[Verb, str]:
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
                in observed.in_sync
            ):
                return Verb.UNCHANGED, "as in the source"
            return Verb.CONFIGURE, "differs from the source" + _named(action.target, action.live, " in ")
        case _:
            assert_never(action.mode)


def _named(target: Obj, live: Obj, lead: str) -> str:
    """Name the fields of the manifest that the live object lacks or has otherwise; never their values."""
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
    cache: Cache,
    ref: ObjectRef,
    reader: SourceReader,
    settings: AppSettings,
    now: datetime,
    destinations: Destinations | None = None,
) -> AppObserved | None:
    """Return the controller's observation of an Application, with the running operation's manifests rendered again.

    None: the Application does not exist. A source that cannot be read is an error inside ``pinned``.
    """
    store = ManifestStore()
    system = system_of(cache, settings)
    observed = observe_application(cache, ref, store, settings, system=system, destinations=destinations)
    if observed is None or observed.view.operation is None or not observed.view.operation_state:
        return observed
    view = observed.view
    sources, revisions = operation_sources(view), pinned_revisions(view) or wanted_revisions(view)
    store.put(
        sources,
        revisions,
        ContentFirst(reader, cache).read(sources, revisions, now, observed.context),
        observed.context,
    )
    return observe_application(cache, ref, store, settings, system=system, destinations=destinations)
