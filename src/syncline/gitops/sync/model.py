"""The data types of the sync engine.

``SyncObserved`` is its input (made by the application controller), ``SyncPlan`` its output. Both are frozen; nothing
here decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from syncline.apply.actions import SyncAction
from syncline.apply.annotations import listed_value
from syncline.apply.definition import defined_kind
from syncline.apply.health import Health, health_of
from syncline.apply.outcome import Outcome, WaitKind
from syncline.gitops.sync.conditions import WaveGate
from syncline.gitops.sync.facts import Facts
from syncline.gitops.sync.kinds import KindTable
from syncline.gitops.sync.phases import SyncPhase
from syncline.kube.objects import GroupKind, Obj, ObjectRef, ResourceInfo, meta, ref_of

GATE_DEADLINE = timedelta(minutes=15)
"""Time after which a waiting gate is reported as overdue; the operation continues to wait."""


class OperationPhase(StrEnum):
    """Phase of an operation and of a task (``hookPhase`` of its row); NONE: not run yet."""

    NONE = ""
    RUNNING = "Running"
    TERMINATING = "Terminating"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ERROR = "Error"

    @property
    def completed(self) -> bool:
        return self in (OperationPhase.SUCCEEDED, OperationPhase.FAILED, OperationPhase.ERROR)


class ResultCode(StrEnum):
    NONE = ""
    SYNCED = "Synced"
    SYNC_FAILED = "SyncFailed"
    PRUNED = "Pruned"
    PRUNE_SKIPPED = "PruneSkipped"


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One entry of ``status.operationState.syncResult.resources``; ``ref`` and ``sync_phase`` are its key."""

    ref: ObjectRef
    version: str
    sync_phase: SyncPhase
    hook_type: str = ""
    status: ResultCode = ResultCode.NONE
    hook_phase: OperationPhase = OperationPhase.NONE
    message: str = ""
    images: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[ObjectRef, SyncPhase]:
        return self.ref, self.sync_phase


@dataclass(frozen=True)
class Pair:
    """A manifest and the live object of the same key; at least one of them is set. Its attributes are computed once,
    and comparisons reuse unchanged pairs."""

    target: Obj | None = field(repr=False)
    live: Obj | None = field(repr=False)

    @property
    def obj(self) -> Obj:
        found = self.live or self.target
        assert found is not None, "a pair needs a target or a live object"
        return found

    @cached_property
    def ref(self) -> ObjectRef:
        return ref_of(self.obj)

    @cached_property
    def facts(self) -> Facts:
        """Return the attributes of the manifest, else of the live object."""
        return Facts.of(self.obj if self.target is None else self.target)

    def placed(self, namespace: str) -> Facts:
        """Return the attributes with a namespace in each manifest, even a cluster-scoped one, so that no object lands
        in a namespace by accident."""
        if self.target is None or self.facts.ref.namespace:
            return self.facts
        known = self._placed.get(namespace)
        if known is None:
            metadata = {**meta(self.target), "namespace": namespace}
            known = self._placed[namespace] = Facts.of({**self.target, "metadata": metadata})
        return known

    @cached_property
    def _placed(self) -> dict[str, Facts]:
        return {}


@dataclass(frozen=True, slots=True)
class SelectedResource:
    """One entry of ``operation.sync.resources``; ``namespace`` None or empty: any."""

    group: str
    kind: str
    name: str
    namespace: str = ""

    def matches(self, ref: ObjectRef) -> bool:
        same = (self.group, self.kind, self.name) == (ref.group, ref.kind, ref.name)
        return same and self.namespace in ("", ref.namespace)


@dataclass(frozen=True)
class SyncOptions:
    """Settings of one operation: fields of ``operation.sync`` and its sync options (``Name=value``)."""

    dry_run: bool = False
    prune: bool = False
    force: bool = False
    skip_hooks: bool = False
    resources: tuple[SelectedResource, ...] = ()
    validate: bool = True
    prune_last: bool = False
    replace: bool = False
    server_side_apply: bool = False
    skip_dry_run_on_missing: bool = False
    apply_out_of_sync_only: bool = False
    prune_option: str = ""
    """Value of ``Prune=`` on the application: ``false`` or ``confirm``; the object's own value wins."""
    prune_confirmed: bool = False
    prune_propagation: str = "Foreground"
    client_side_apply_migration: bool = True
    migration_manager: str = "kubectl-client-side-apply"
    create_namespace: bool = False
    managed_namespace_metadata: Mapping[str, Mapping[str, str]] | None = None
    wave_callback: bool = False
    """Plan an :class:`~syncline.apply.actions.AfterWave` after each wave."""

    @classmethod
    def parse(cls, listed: tuple[str, ...], **settings: object) -> SyncOptions:
        """Parse ``syncOptions`` (exact matches); ``settings`` are the fields without such an option."""
        propagation = listed_value(listed, "PrunePropagationPolicy") or "foreground"
        return cls(
            validate="Validate=false" not in listed,
            prune_last="PruneLast=true" in listed,
            replace="Replace=true" in listed,
            server_side_apply="ServerSideApply=true" in listed,
            skip_dry_run_on_missing="SkipDryRunOnMissingResource=true" in listed,
            apply_out_of_sync_only="ApplyOutOfSyncOnly=true" in listed,
            prune_option=listed_value(listed, "Prune") or "",
            prune_propagation=propagation.capitalize(),
            client_side_apply_migration="ClientSideApplyMigration=false" not in listed,
            create_namespace="CreateNamespace=true" in listed,
            **settings,  # type: ignore[arg-type]
        )


Answers = tuple[tuple[Outcome, ...], ...]
"""Outcomes of the actions of one plan's steps, in the same shape."""


@dataclass(frozen=True)
class Rules:
    """Rules of project, installation and cluster: pure functions of frozen data. This class permits everything."""

    def permits(self, obj: Obj, info: ResourceInfo) -> str:
        """Return why the object may not be written; empty if it may. Depends on its kind and namespace, and on the name
        of cluster-scoped objects only: called once for all objects that share these."""
        return ""

    def health(self, obj: Obj) -> Health | None:
        return health_of(obj)

    def refuses(self, ref: ObjectRef) -> str:
        """Return why the project does not let its Applications see a referenced object; empty: it does."""
        return ""

    def follows(self, kind: GroupKind) -> bool:
        """Return whether a working watch covers a kind, so that its objects need not be read again."""
        return False

    def lookup(self, ref: ObjectRef) -> Obj | None:
        """Return an object of the destination, for conditions in manifests."""
        return None

    def behind_gate(self, ref: ObjectRef) -> Obj | None:
        """Return an object that a gate looks at, though no manifest names it."""
        return self.lookup(ref)

    def unread(self, ref: ObjectRef) -> str:
        """Return why an object of the destination cannot be read; empty if it can."""
        return ""


@dataclass(frozen=True)
class SyncObserved:
    """All inputs of one reconcile of an operation."""

    namespace: str
    revision: str
    started_at: datetime
    pairs: tuple[Pair, ...]
    hooks: tuple[Obj, ...] = field(repr=False)
    kinds: KindTable
    all_hooks: tuple[Obj, ...] = field(default=(), repr=False)
    """Hooks, including those that do not run now as their inputs did not change."""
    options: SyncOptions = field(default_factory=SyncOptions)
    phase: OperationPhase = OperationPhase.RUNNING
    message: str = ""
    results: tuple[ResultRow, ...] = ()
    in_sync: frozenset[ObjectRef] = frozenset()
    """Keys of unmodified objects; only used with ``ApplyOutOfSyncOnly``."""
    rules: Rules = field(default_factory=Rules, compare=False, repr=False)
    namespace_live: Obj | None = field(default=None, repr=False)
    """The destination Namespace as read from the API; only used with ``CreateNamespace``."""
    namespace_error: str = ""
    """Why the destination Namespace could not be read."""
    operation: str = ""
    """Name of this attempt (start time and attempt). It enables crash safety: created hooks are stamped, and results
    are stored before a hook is deleted. Empty: exactly upstream's behaviour."""
    gates: tuple[WaveGate, ...] = ()
    """What holds later waves, though it is not a task."""
    answers: tuple[Answers, ...] = ()
    """Outcomes of this reconcile so far; see :func:`syncline.gitops.sync.plan.record`."""

    @property
    def durable(self) -> bool:
        return bool(self.operation)

    @cached_property
    def defined_kinds(self) -> frozenset[tuple[str, str]]:
        """Return group and kind of all CRDs among the manifests, selected or not."""
        found = [pair.facts.defines for pair in self.pairs if pair.target is not None]
        return frozenset(kind for kind in (*found, *map(defined_kind, self.hooks)) if kind is not None)


@dataclass(frozen=True, slots=True)
class Wait:
    """What an operation waits for. ``until``: when it becomes overdue."""

    kind: WaitKind
    refs: tuple[ObjectRef, ...]
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class WaveDone:
    """A wave that ran in this reconcile; a delay between waves, if any, follows it unless it is ``final``."""

    phase: SyncPhase
    wave: int
    final: bool


@dataclass(frozen=True)
class SyncPlan:
    """Steps to execute, or the end of the reconcile with the state to write.

    The actions of a step are independent and all tried; steps run in order, and a refusal does not stop later ones
    (kinds of one wave). ``again``: reconcile again at once, without waiting for a change.
    """

    steps: tuple[tuple[SyncAction, ...], ...]
    phase: OperationPhase
    message: str
    results: tuple[ResultRow, ...]
    why: str
    wait: Wait | None = None
    wave: WaveDone | None = None
    again: bool = False

    @property
    def ended(self) -> bool:
        return not self.steps
