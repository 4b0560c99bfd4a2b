"""One task of a sync: an object in a phase.

It is built again in each reconcile from the observation and the stored results and used only there, so its fields may
change during planning.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from syncline.apply.annotations import DeletePolicy, delete_policies
from syncline.gitops.sync.facts import Facts
from syncline.gitops.sync.model import OperationPhase, ResultCode
from syncline.gitops.sync.phases import SyncPhase
from syncline.kube.objects import GVK, Obj, ObjectRef


@dataclass(slots=True, eq=False)
class Task:
    """``live`` None: not in the cluster. ``facts``: of the manifest, or of the live object to prune."""

    phase: SyncPhase
    facts: Facts = field(repr=False)
    live: Obj | None = field(repr=False)
    is_prune: bool = False
    wave_override: int | None = None
    skip_dry_run: bool = False
    status: ResultCode = ResultCode.NONE
    state: OperationPhase = OperationPhase.NONE
    message: str = ""
    deferred: bool = False
    """Its dry run was refused and is repeated at its turn."""
    unauthorized: bool = False
    """Its dry run was refused for want of rights."""
    gvk: GVK = field(init=False)
    ref: ObjectRef = field(init=False)
    is_hook: bool = field(init=False)

    def __post_init__(self) -> None:
        self.gvk, self.ref, self.is_hook = self.facts.gvk, self.facts.ref, self.facts.is_hook

    @property
    def obj(self) -> Obj:
        return self.facts.obj

    @property
    def target(self) -> Obj | None:
        """Return the manifest; None: prune ``live``."""
        return None if self.is_prune else self.facts.obj

    @property
    def wave(self) -> int:
        return self.facts.wave if self.wave_override is None else self.wave_override

    @property
    def key(self) -> tuple[ObjectRef, SyncPhase]:
        return self.ref, self.phase

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
        return self.status is ResultCode.PRUNED

    def has_policy(self, policy: DeletePolicy) -> bool:
        return self.is_hook and self.live is not None and policy in delete_policies(self.obj)

    @property
    def replaces(self) -> bool:
        """Return whether what exists under the hook's name is deleted before the hook is created."""
        return self.is_hook and DeletePolicy.BEFORE_HOOK_CREATION in delete_policies(self.obj)

    @property
    def delete_before_creation(self) -> bool:
        return self.pending and self.live is not None and self.replaces
