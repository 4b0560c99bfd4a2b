"""Actions of the Argo projects' kinds. Names and effects: Argo CD ``resource_customizations``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from syncline.gitops.resource_actions.edits import REMOVED, at, edited, put, second, set_field, without_empty
from syncline.gitops.resource_actions.model import ActionKind, Effect, Offer, Verb
from syncline.gitops.resource_actions.workloads import owned_by
from syncline.kube.objects import Obj, labels_of, name_of, namespace_of

INSTANCE = "workflows.argoproj.io/controller-instanceid"
ENDED = ("Successful", "Failed", "Error", "Inconclusive")
CREATE_WORKFLOW = Offer("create-workflow", icon="fa fa-fw fa-plus", display="Create Workflow")


def _analysis_run(obj: Obj) -> tuple[Offer, ...]:
    over = bool(at(obj, "spec", "terminate")) or at(obj, "status", "phase") in ENDED
    return (Offer("terminate", disabled=over),)


def _automated(obj: Obj) -> bool:
    automated = at(obj, "spec", "syncPolicy", "automated")
    return isinstance(automated, dict) and automated.get("enabled") in (None, True)


def _application(obj: Obj) -> tuple[Offer, ...]:
    return (Offer("toggle-auto-sync", display="Disable Auto-Sync" if _automated(obj) else "Enable Auto-Sync"),)


def _toggle(obj: Obj, _params: Mapping[str, str], _now: datetime) -> None:
    put(obj, ("spec", "syncPolicy", "automated", "enabled"), not _automated(obj))


def _steps(obj: Obj) -> list[Any] | None:
    found = at(obj, "spec", "strategy", "canary", "steps")
    return found if isinstance(found, list) else None


def _old_rollouts(obj: Obj) -> bool:
    """Return whether the Rollout is of a version before v0.10: its observed generation is a hash, or too new."""
    try:
        observed = float(at(obj, "status", "observedGeneration"))
    except (TypeError, ValueError):
        return True
    return observed > float(at(obj, "metadata", "generation") or 0)


def _rollout(obj: Obj) -> tuple[Offer, ...]:
    status = obj.get("status")
    pauses = at(obj, "status", "pauseConditions")
    paused = bool(pauses) if pauses is not None else bool(at(obj, "spec", "paused"))
    promoted = at(obj, "status", "currentPodHash") == at(obj, "status", "stableRS")
    aborted = bool(at(obj, "status", "abort"))
    full = status is not None and not promoted
    if full and _old_rollouts(obj):
        full = at(obj, "spec", "strategy", "blueGreen") is None
    steps = _steps(obj)
    skippable = steps is not None and at(obj, "status", "currentStepIndex") != len(steps)
    return (
        Offer("restart", display="Restart Pods"),
        Offer("resume", disabled=not paused),
        Offer("abort", disabled=promoted or aborted),
        Offer("retry", disabled=promoted or not aborted),
        Offer("pause", disabled=promoted or aborted or bool(at(obj, "spec", "paused"))),
        Offer("promote-full", disabled=not full),
        Offer("skip-current-step", disabled=not skippable),
    )


def _promote_full(obj: Obj, _params: Mapping[str, str], _now: datetime) -> None:
    if obj.get("status") is None:
        return
    if not _old_rollouts(obj):
        put(obj, ("status", "promoteFull"), True)
        return
    put(obj, ("status", "abort"), REMOVED)
    steps = _steps(obj)
    if steps is not None:
        put(obj, ("status", "currentStepIndex"), len(steps))


def _resume(obj: Obj, _params: Mapping[str, str], _now: datetime) -> None:
    if at(obj, "status", "pauseConditions"):
        put(obj, ("status", "pauseConditions"), REMOVED)
    if at(obj, "spec", "paused"):
        put(obj, ("spec", "paused"), False)


def _skip_step(obj: Obj, _params: Mapping[str, str], _now: datetime) -> None:
    steps, index = _steps(obj), at(obj, "status", "currentStepIndex")
    if steps is None or not isinstance(index, (int, float)) or index >= len(steps):
        return
    if at(obj, "status", "pauseConditions"):
        put(obj, ("status", "pauseConditions"), REMOVED)
    put(obj, ("status", "currentStepIndex"), index + 1)


def _workflow(obj: Obj, now: datetime, metadata: Obj, spec: Any, finalizers: list[Any] | None = None) -> Effect:
    where = {"namespace": namespace_of(obj)} if namespace_of(obj) else {}
    named = {"name": f"{name_of(obj)}-{now:%Y%m%d%H%M}", "ownerReferences": owned_by(obj, controller=False)}
    made: Obj = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": where | metadata | named}
    made["spec"] = spec
    return Effect(Verb.CREATE, made | ({"finalizers": finalizers} if finalizers is not None else {}))


def _from_cron(obj: Obj, _params: Mapping[str, str], now: datetime) -> tuple[Effect, ...]:
    """Create a Workflow like ``argo submit --from=cronworkflow/…``."""
    wanted = at(obj, "spec", "workflowMetadata") or {}
    labels = dict(wanted.get("labels") or {}) | {"workflows.argoproj.io/cron-workflow": name_of(obj)}
    if INSTANCE in labels_of(obj):
        labels[INSTANCE] = labels_of(obj)[INSTANCE]
    scheduled = {"workflows.argoproj.io/scheduled-time": f"{now:%Y-%m-%dT%d:%H:%MZ}"}
    metadata = {"labels": labels, "annotations": dict(wanted.get("annotations") or {}) | scheduled}
    spec = without_empty(at(obj, "spec", "workflowSpec"))
    return (_workflow(obj, now, metadata, spec, list(wanted.get("finalizers") or [])),)


def _from_template(obj: Obj, _params: Mapping[str, str], now: datetime) -> tuple[Effect, ...]:
    labels = {"workflows.argoproj.io/workflow-template": name_of(obj)}
    return (_workflow(obj, now, {"labels": labels}, {"workflowTemplateRef": {"name": name_of(obj)}}),)


def _pull_request(obj: Obj) -> tuple[Offer, ...]:
    closed = at(obj, "spec", "state") != "open"
    return (Offer("merge", disabled=closed, icon="fa fa-fw fa-code-merge", display="Merge PR"),)


def _creates(_obj: Obj) -> tuple[Offer, ...]:
    return (CREATE_WORKFLOW,)


ACTIONS: dict[str, ActionKind] = {
    "argoproj.io/AnalysisRun": ActionKind(_analysis_run, {"terminate": set_field((("spec", "terminate"), True))}),
    "argoproj.io/Application": ActionKind(_application, {"toggle-auto-sync": edited(_toggle)}),
    "argoproj.io/CronWorkflow": ActionKind(_creates, {"create-workflow": _from_cron}),
    "argoproj.io/WorkflowTemplate": ActionKind(_creates, {"create-workflow": _from_template}),
    "argoproj.io/Rollout": ActionKind(
        _rollout,
        {
            "abort": set_field((("status", "abort"), True)),
            "pause": set_field((("spec", "paused"), True)),
            "promote-full": edited(_promote_full),
            "restart": set_field((("spec", "restartAt"), second)),
            "resume": edited(_resume),
            "retry": set_field((("status", "abort"), REMOVED)),
            "skip-current-step": edited(_skip_step),
        },
    ),
    "promoter.argoproj.io/PullRequest": ActionKind(_pull_request, {"merge": set_field((("spec", "state"), "merged"))}),
}
