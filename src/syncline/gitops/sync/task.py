"""One piece of work of a sync: an object in a phase.

Used inside one pass only; it is made anew in each pass from what was observed and the results kept so far, so its
fields may change while the pass is planned and nothing else ever sees them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from syncline.gitops.sync.annotations import DeletePolicy, delete_policies, is_hook, wave
from syncline.gitops.sync.model import OperationPhase, ResultCode, SyncPhase
from syncline.kube.objects import GVK, Obj, ObjectRef, gvk_of, ref_of

__all__ = ["Task"]


@dataclass(slots=True, eq=False)
class Task:
    """``target`` None: prune ``live``; ``live`` None: not in the cluster yet. One of them is there."""

    phase: SyncPhase
    target: Obj | None = field(repr=False)
    live: Obj | None = field(repr=False)
    wave_override: int | None = None
    skip_dry_run: bool = False
    status: ResultCode = ResultCode.NONE
    state: OperationPhase = OperationPhase.NONE
    message: str = ""
    deferred: bool = False
    """Its dry run was refused, and is repeated at its turn."""
    obj: Obj = field(init=False, repr=False)
    gvk: GVK = field(init=False)
    ref: ObjectRef = field(init=False)
    is_hook: bool = field(init=False)
    _wave: int = field(init=False)

    def __post_init__(self) -> None:
        obj = self.target if self.target is not None else self.live
        assert obj is not None, "a task needs a target or a live object"
        self.obj = obj
        self.gvk = gvk_of(obj)
        self.ref = ref_of(obj)
        self.is_hook = is_hook(obj)
        self._wave = wave(obj)

    @property
    def wave(self) -> int:
        return self._wave if self.wave_override is None else self.wave_override

    @property
    def key(self) -> tuple[ObjectRef, SyncPhase]:
        return self.ref, self.phase

    @property
    def is_prune(self) -> bool:
        return self.target is None

    @property
    def pending(self) -> bool:
        return self.state is OperationPhase.NONE

    @property
    def running(self) -> bool:
        return self.state is OperationPhase.RUNNING

    @property
    def completed(self) -> bool:
        return self.state.completed

    @property
    def successful(self) -> bool:
        return self.state is OperationPhase.SUCCEEDED

    @property
    def pruned(self) -> bool:
        return self.is_prune and self.status is ResultCode.PRUNED

    def has_policy(self, policy: DeletePolicy) -> bool:
        return self.is_hook and self.live is not None and policy in delete_policies(self.obj)

    @property
    def delete_before_creation(self) -> bool:
        return self.pending and self.has_policy(DeletePolicy.BEFORE_HOOK_CREATION)
