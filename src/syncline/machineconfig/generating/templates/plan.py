"""Plans the base MachineConfigs and reports their completion in the ControllerConfig's status; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_time
from syncline.control.plan import Patch, Plan, set_status
from syncline.kube.objects import Obj, annotations_of, dig, gvk_of, meta, name_of
from syncline.machineconfig.generating.making import writes
from syncline.machineconfig.generating.templates.bases import base_configs
from syncline.machineconfig.names import GENERATED_VERSION, RELEASE
from syncline.machineconfig.render.rendering import Release

OURS = "syncline"
"""Prefix of the version of our ControllerConfigs; those of another operator are left alone."""
_STATES = (("TemplateControllerCompleted", "True"), ("TemplateControllerRunning", "False"))
_FAILING = ("TemplateControllerFailing", "False")


@dataclass(frozen=True)
class TemplatesObserved:
    """The input. ``configs``: all MachineConfigs by name. ``api_server``: config.openshift.io APIServer ``cluster``."""

    controller_config: Obj
    configs: Mapping[str, Obj]
    api_server: Obj | None
    release: Release


def plan_templates(observed: TemplatesObserved, now: datetime) -> Plan:
    """Return the plan of one reconcile."""
    config, release = observed.controller_config, observed.release
    made = annotations_of(config).get(GENERATED_VERSION, "")
    if made and not made.startswith(OURS):
        return Plan(why=f"the ControllerConfig is that of {made}, which keeps its own templates")
    changes = writes(base_configs(config, release, observed.api_server), observed.configs, "a base of its role")
    notes = {GENERATED_VERSION: release.raw, RELEASE: annotations_of(config).get(RELEASE) or release.raw}
    marks: tuple[Patch, ...] = ()
    if {key: annotations_of(config).get(key) for key in notes} != notes:
        body: Obj = {"metadata": {"annotations": notes}}
        marks = (Patch(gvk_of(config), "", name_of(config), body, "made by this release"),)
    status = set_status(config, _completed(config, now), "the bases are complete")
    # Completed only once everything is written, since rendering waits for it.
    steps = tuple(step for step in (changes, status, marks) if step)
    return Plan(
        steps=steps, why=f"{len(changes)} base MachineConfigs to write" if changes else "the bases are complete"
    )


def _completed(config: Obj, now: datetime) -> Obj:
    status: Obj = dict(config.get("status") or {})
    old = {one.get("type"): one for one in dig(config, "status", "conditions", default=[]) or []}
    conditions = []
    for kind, value in (*_STATES, _FAILING):
        before = old.pop(kind, None)
        same = before is not None and before.get("status") == value
        since = before["lastTransitionTime"] if same and before else format_time(now)
        conditions.append({"type": kind, "status": value, "reason": "", "message": "", "lastTransitionTime": since})
    generation = int(meta(config).get("generation") or 0)
    return status | {"conditions": [*conditions, *old.values()], "observedGeneration": generation}
