"""Explains why a pool is not rendered, by the render controller's own decision; pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from syncline.base.cause import Cause
from syncline.kube.kinds.machineconfiguration import CONTAINER_RUNTIME_CONFIG, KUBELET_CONFIG
from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.kube.selectors import SelectorError, label_selector_from
from syncline.machineconfig.causes.overview import Diagnosis, Overview, awaited, cause_of, written_at
from syncline.machineconfig.names import CONTROLLER_CONFIG, MACHINE_CONFIG
from syncline.machineconfig.render.fixes import fix_for
from syncline.machineconfig.render.select import may_select
from syncline.machineconfig.render.validate import invalid_spec

REFUSED = "refused"

PATIENCE = timedelta(minutes=1)
"""Time until a render is overdue; it collects changes for five seconds and takes less than one."""
CHECK_CONTROLLERS = "do the machine-config controllers run? the pool is not rendered"


def _selector_cause(pool: Obj) -> Diagnosis | None:
    """Explain an unreadable selector: nothing is rendered, and upstream reports that only in its log."""
    try:
        label_selector_from(dig(pool, "spec", "machineConfigSelector"))
    except SelectorError as error:
        fix = f"correct spec.machineConfigSelector: kubectl edit machineconfigpool {name_of(pool)}"
        text = f"spec.machineConfigSelector: {error}; the pool keeps its config"
        return Diagnosis(Cause("rendering", REFUSED, text, written_at(pool), next_action=fix), blocked=True)
    return None


def rendering_cause(over: Overview, pool: Obj) -> Diagnosis | None:
    """Return why the pool is not rendered, or None if it is, or if that is unknown."""
    unreadable = _selector_cause(pool)
    if unreadable is not None:
        return unreadable
    decision = over.rendering(pool)
    if decision is None:
        return None
    if decision.selects_all:
        fix = f"name the labels of its machine configs: kubectl edit machineconfigpool {name_of(pool)}"
        text = "spec.machineConfigSelector {} selects all machine configs: none is rendered"
        return Diagnosis(Cause("rendering", REFUSED, text, next_action=fix), blocked=True)
    if decision.error is not None:
        fix = refusal_fix(over, pool, decision.error)
        return Diagnosis(Cause("rendering", "Degraded", decision.error, next_action=fix), blocked=True)
    if decision.waits is not None:
        below = tuple(_refused_generators(over, pool))
        report = Cause("rendering", "waits", decision.waits, _changed_at(over, pool), because=below)
        return awaited(
            report,
            over,
            PATIENCE,
            "the pool is rendered",
            "" if below else fix_for(decision.waits) or CHECK_CONTROLLERS,
        )
    wanted = decision.configuration or {}
    if {key: dig(pool, "spec", "configuration", key) for key in wanted} == wanted:
        return None
    report = Cause("rendering", "about to begin", f"the pool gets {wanted.get('name')}", _changed_at(over, pool))
    return awaited(report, over, PATIENCE, "its nodes move to it", CHECK_CONTROLLERS)


def refusal_fix(over: Overview, pool: Obj, text: str) -> str:
    """Return the fix for a pool that cannot be rendered, with the MachineConfig at fault, which upstream's messages
    omit."""
    name = _culprit(over, pool)
    known = fix_for(text)
    if not name:
        return known or "correct or delete the machine config that it names"
    return f"MachineConfig {name}: {known}" if known else f"correct or delete MachineConfig {name}"


def _culprit(over: Overview, pool: Obj) -> str:
    decision = over.rendering(pool)
    if decision is None or decision.error is None:
        return ""
    mine = (each for each in over.snapshot.objects(MACHINE_CONFIG) if may_select(pool, each))
    refused = sorted(name_of(each) for each in mine if invalid_spec(each.get("spec")))
    return decision.culprit or next(iter(refused), "")


def _changed_at(over: Overview, pool: Obj) -> datetime | None:
    """Return when a source of the render was last written."""
    mine = [config for config in over.snapshot.objects(MACHINE_CONFIG) if may_select(pool, config)]
    others = [one for kind in _WAITED_FOR for one in over.snapshot.objects(kind)]
    return written_at(pool, *mine, *others)


def _refused_generators(over: Overview, pool: Obj) -> Iterable[Cause]:
    """Yield the causes of rejected KubeletConfigs and ContainerRuntimeConfigs that block this pool."""
    for kind in (KUBELET_CONFIG, CONTAINER_RUNTIME_CONFIG):
        for config in over.snapshot.objects(kind.group_kind):
            if _meant(config, pool):
                cause = generating_cause(over, config)
                if cause.blocked:
                    yield cause.cause


def _meant(config: Obj, pool: Obj) -> bool:
    try:
        return label_selector_from(dig(config, "spec", "machineConfigPoolSelector")).matches(labels_of(pool))
    except SelectorError:
        return True


def generating_cause(over: Overview, config: Obj) -> Diagnosis:
    """Explain by its last condition whether a KubeletConfig or ContainerRuntimeConfig became MachineConfigs."""
    conditions = [each for each in dig(config, "status", "conditions", default=[]) if each.get("status") is not None]
    last = conditions[-1] if conditions else {}
    text = str(last.get("message") or "")
    generation, observed = (int(dig(config, *path, default=0) or 0) for path in _GENERATIONS)
    if not last or generation != observed:
        late = f"do the machine-config controllers run? no controller reads {config.get('kind')} {name_of(config)}"
        report = cause_of(config, "new", "no controller has read it yet", written_at(config))
        return awaited(report, over, PATIENCE, "machine configs are made of it", late)
    if last.get("type") == "Failure" or (last.get("type"), last.get("status")) == ("Accepted", "False"):
        fix = fix_for(text) or f"correct it: kubectl edit {str(config.get('kind')).lower()} {name_of(config)}"
        since = written_at(config)
        return Diagnosis(cause_of(config, REFUSED, text.removeprefix("Error: "), since, next_action=fix), blocked=True)
    made = [str(each) for each in dig(config, "metadata", "finalizers", default=[]) if "-generated-" in str(each)]
    return Diagnosis(cause_of(config, "accepted", f"as {', '.join(made) or 'nothing'}"), blocked=False)


_WAITED_FOR = (CONTROLLER_CONFIG, KUBELET_CONFIG.group_kind, CONTAINER_RUNTIME_CONFIG.group_kind)
_GENERATIONS = (("metadata", "generation"), ("status", "observedGeneration"))
