"""Actions of Numaflow's and Numaplane's kinds. Names and effects: Argo CD ``resource_customizations``."""

from __future__ import annotations

from collections.abc import Callable

from syncline.gitops.resource_actions.edits import REMOVED, annotate, at, set_field
from syncline.gitops.resource_actions.model import Act, ActionKind, Offer
from syncline.kube.objects import Obj, annotations_of, labels_of, owner_references

STATE = "numaplane.numaproj.io/upgrade-state"
PROMOTED = "numaplane.numaproj.io/force-promote"
LOSSY = "numaplane.numaproj.io/allow-data-loss"
WAYS = "numaflow.numaproj.io/allowed-resume-strategies"
RESUMES = "numaflow.numaproj.io/resume-strategy"
SLOW, FAST = "unpause-gradual", "unpause-fast"
ALLOWED = {"fast": (FAST,), "slow, fast": (SLOW, FAST)}
"""Resume actions by the annotation's value; any other value allows only the slow one."""


def _pausing(obj: Obj, allowed: bool, *where: str) -> tuple[Offer, ...]:
    """Return the pause and resume actions; ``where``: path of the object that has the spec."""
    paused = at(obj, *where, "spec", "lifecycle", "desiredPhase") == "Paused"
    holder = where or ("spec",)  # annotations of an embedded object are beside its spec
    ways = ALLOWED.get(at(obj, *holder, "metadata", "annotations", WAYS) or "", (SLOW,)) if allowed and paused else ()
    return (
        Offer("pause", disabled=not allowed or paused, icon="fa-solid fa-fw fa-pause"),
        Offer(SLOW, disabled=SLOW not in ways, icon="fa-solid fa-fw fa-play", display="Unpause (gradual)"),
        Offer(FAST, disabled=FAST not in ways, icon="fa-solid fa-fw fa-play", display="Unpause (fast)"),
    )


def _force(obj: Obj, display: str = "Force Promote") -> Offer:
    labels = labels_of(obj)
    possible = labels.get(STATE) in ("in-progress", "trial") and labels.get(PROMOTED) != "true"
    return Offer("force-promote", disabled=not possible, icon="fa-solid fa-fw fa-forward", display=display)


def _child_of(obj: Obj, kind: str) -> bool:
    return any(owner.get("kind") == kind for owner in owner_references(obj))


def _mono_vertex(obj: Obj) -> tuple[Offer, ...]:
    return (*_pausing(obj, not _child_of(obj, "MonoVertexRollout")), _force(obj))


def _pipeline(obj: Obj) -> tuple[Offer, ...]:
    state = labels_of(obj).get(STATE)
    allowed = not _child_of(obj, "PipelineRollout") or state == "recyclable-expired"
    disposable = state in ("recyclable", "recyclable-expired")
    delete = Offer("delete", disabled=not disposable, icon="fa-solid fa-fw fa-trash", display="Delete")
    return (*_pausing(obj, allowed), _force(obj), delete)


def _buffer(obj: Obj) -> tuple[Offer, ...]:
    return (_force(obj, display=""),)


def _mono_vertex_rollout(obj: Obj) -> tuple[Offer, ...]:
    return _pausing(obj, True, "spec", "monoVertex")


def _pipeline_rollout(obj: Obj) -> tuple[Offer, ...]:
    draining = at(obj, "status", "upgradeInProgress") == "PipelinePauseAndDrain"
    lossy = annotations_of(obj).get(LOSSY) == "true"
    return (
        *_pausing(obj, True, "spec", "pipeline"),
        Offer(
            "allow-data-loss",
            disabled=not draining,
            icon="fa-solid fa-fw fa-unlock",
            display="Allow (Possible) Data Loss",
        ),
        Offer("disallow-data-loss", disabled=not lossy, icon="fa-solid fa-fw fa-lock", display="Disallow Data Loss"),
    )


def _phase(value: str, *where: str) -> tuple[tuple[str, ...], str]:
    return (*where, "spec", "lifecycle", "desiredPhase"), value


def _resumed(how: str) -> Act:
    return set_field(_phase("Running"), (("metadata", "annotations", RESUMES), how))


def _rollout(discover: Callable[[Obj], tuple[Offer, ...]], *where: str, **more: Act) -> ActionKind:
    fast = ("spec", "strategy", "pauseResume", "fastResume")
    acts = {
        "pause": set_field(_phase("Paused", *where)),
        FAST: set_field(_phase("Running", *where), (fast, True)),
        SLOW: set_field(_phase("Running", *where), (fast, False)),
    }
    return ActionKind(discover, acts | {name.replace("_", "-"): act for name, act in more.items()})


FORCE = set_field((("metadata", "labels", PROMOTED), "true"))
PAUSE = set_field(_phase("Paused"))

ACTIONS: dict[str, ActionKind] = {
    "numaflow.numaproj.io/InterStepBufferService": ActionKind(_buffer, {"force-promote": FORCE}),
    "numaflow.numaproj.io/MonoVertex": ActionKind(
        _mono_vertex,
        {
            "pause": PAUSE,
            FAST: set_field(_phase("Running")),
            SLOW: set_field(_phase("Running"), (("spec", "replicas"), REMOVED)),
            "force-promote": FORCE,
        },
    ),
    "numaflow.numaproj.io/Pipeline": ActionKind(
        _pipeline,
        {
            "pause": PAUSE,
            FAST: _resumed("fast"),
            SLOW: _resumed("slow"),
            "force-promote": FORCE,
            "delete": annotate("numaplane.numaproj.io/marked-for-deletion", "true"),
        },
    ),
    "numaplane.numaproj.io/MonoVertexRollout": _rollout(_mono_vertex_rollout, "spec", "monoVertex"),
    "numaplane.numaproj.io/PipelineRollout": _rollout(
        _pipeline_rollout,
        "spec",
        "pipeline",
        allow_data_loss=annotate(LOSSY, "true"),
        disallow_data_loss=annotate(LOSSY, "false"),
    ),
}
