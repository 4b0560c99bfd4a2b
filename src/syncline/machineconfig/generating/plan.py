"""Plans the MachineConfigs and the status of a KubeletConfig or ContainerRuntimeConfig. Use :func:`plan_generated`.

Both kinds work alike: a stored suffix, a finalizer per MachineConfig, and a short list of conditions. A rejected object
is not retried. Source: reference machine-config 1.5 and 1.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_time
from syncline.control.plan import Delete, Done, Outcome, Patch, Plan, Retry, SetStatus, Stalled, set_status
from syncline.kube.objects import Obj, annotations_of, dig, gvk_of, is_terminating, labels_of, meta, name_of
from syncline.kube.selectors import SelectorError, label_selector_from
from syncline.machineconfig.generating.making import controller_reference, file_of, made_config, writes
from syncline.machineconfig.generating.naming import (
    SUFFIX,
    GeneratedError,
    Generator,
    deprecated_name,
    generated_name,
)
from syncline.machineconfig.names import GENERATED_BY
from syncline.machineconfig.render.rendering import Release
from syncline.machineconfig.render.waiting import controller_config_wait

KEPT_CONDITIONS = 3

Files = Sequence[tuple[str, str]]
"""Paths and texts."""


@dataclass(frozen=True)
class GeneratingObserved:
    """The planner's input. ``siblings``: all objects of the kind. ``configs``: all MachineConfigs by name."""

    config: Obj
    siblings: tuple[Obj, ...]
    pools: tuple[Obj, ...]
    configs: Mapping[str, Obj]
    controller_config: Obj | None
    release: Release
    node_config: Obj | None = None
    api_server: Obj | None = None


@dataclass(frozen=True)
class Kind:
    """The differences between the kinds. ``invalid`` returns why an object (for a pool) is rejected; ``files`` raises
    ValueError with such an error; ``conditions`` returns the conditions for an error or None, without times."""

    generator: Generator
    invalid: Callable[[Obj, Obj | None], str | None]
    files: Callable[[GeneratingObserved, Obj], Files]
    conditions: Callable[[str | None], list[Obj]]
    no_pool: Callable[[Obj], str]


def plan_generated(kind: Kind, observed: GeneratingObserved, now: datetime) -> Plan:
    """Return the writes for one object."""
    config, name = observed.config, name_of(observed.config)
    if is_terminating(config):
        return _taken_back(kind, observed)
    waits = controller_config_wait(observed.controller_config)
    if waits is not None:
        return Plan(outcome=Retry(waits), why=f"{name} waits: {waits}")
    try:
        pools = _pools(observed)
        refused = kind.invalid(config, None)
        if refused is None and not pools:
            refused = kind.no_pool(config)
        refused = refused or next((why for why in (kind.invalid(config, pool) for pool in pools) if why), None)
        made = [] if refused else [_made(kind, observed, pool) for pool in pools]
    except ValueError as error:
        refused, made = str(error), []
    if refused is not None:
        outcome: Outcome = Stalled(refused, f"change {config['kind']} {name}")
        return Plan(status=_status(kind, config, refused, now), outcome=outcome, why=f"{name} is refused: {refused}")
    return _written(kind, observed, made, now)


def _pools(observed: GeneratingObserved) -> list[Obj]:
    """Return the selected pools; an absent or empty selector matches none. Raises ValueError."""
    try:
        selector = label_selector_from(dig(observed.config, "spec", "machineConfigPoolSelector"))
    except SelectorError as error:
        raise GeneratedError(f"invalid label selector: {error}") from error
    if selector.empty:
        return []
    return sorted((pool for pool in observed.pools if selector.matches(labels_of(pool))), key=name_of)


def _made(kind: Kind, observed: GeneratingObserved, pool: Obj) -> Obj:
    name = generated_name(kind.generator, pool, observed.config, observed.siblings, observed.configs)
    if _taken(observed, name):
        # Two objects created at once took the same suffix; the one without a MachineConfig takes the next.
        without = {key: value for key, value in annotations_of(observed.config).items() if key != SUFFIX}
        config = {**observed.config, "metadata": {**meta(observed.config), "annotations": without, "finalizers": []}}
        others = [config if name_of(one) == name_of(config) else one for one in observed.siblings]
        name = generated_name(kind.generator, pool, config, others, observed.configs)
    files = [file_of(path, text) for path, text in kind.files(observed, pool)]
    return made_config(name, name_of(pool), observed.release, files=files, owner=controller_reference(observed.config))


def _taken(observed: GeneratingObserved, name: str) -> bool:
    uids = {meta(one).get("uid") for one in observed.siblings} - {meta(observed.config).get("uid")}
    return any(
        owner.get("uid") in uids for owner in meta(observed.configs.get(name) or {}).get("ownerReferences") or ()
    )


def _written(kind: Kind, observed: GeneratingObserved, made: list[Obj], now: datetime) -> Plan:
    config, names = observed.config, [name_of(one) for one in made]
    # The finalizer is written before its MachineConfig, so that nothing is left behind.
    marks = _marks(config, names)
    changes = writes(made, observed.configs, f"{config['kind']} {name_of(config)} asks for it")
    stale = tuple(_stale(kind, observed, names))
    status = _status(kind, config, None, now)
    # After a write of the object its status waits for the next reconcile, as it is conditional on the revision.
    steps = tuple(step for step in (marks, changes, stale, () if marks else status) if step)
    why = f"{name_of(config)} is {', '.join(names)}"
    return Plan(steps=steps, outcome=Done(), why=why)


def _marks(config: Obj, names: list[str]) -> tuple[Patch, ...]:
    found = list(meta(config).get("finalizers") or [])
    wanted = [*found, *(name for name in names if name not in found)]
    body: Obj = {}
    if wanted != found:
        body["finalizers"] = wanted
    tail = names[0].rsplit("-", 1)[-1] if names else ""
    suffix = tail if tail.isdigit() else ""
    if annotations_of(config).get(SUFFIX) != suffix and (SUFFIX not in annotations_of(config) or len(names) == 1):
        body["annotations"] = {SUFFIX: suffix}
    if not body:
        return ()
    body["resourceVersion"] = meta(config).get("resourceVersion")
    return (Patch(gvk_of(config), "", name_of(config), {"metadata": body}, "it remembers what it made"),)


def _stale(kind: Kind, observed: GeneratingObserved, names: Iterable[str]) -> Iterable[Delete]:
    """Delete MachineConfigs of an older release or name, which would block every render."""
    part = f"-generated-{kind.generator.part}"
    older = {deprecated_name(kind.generator, pool) for pool in observed.pools}
    for name, config in observed.configs.items():
        outdated = (
            part in name
            and name.startswith("99-")
            and annotations_of(config).get(GENERATED_BY) != observed.release.hash
        )
        if name not in names and (outdated or name in older):
            yield Delete.of(config, "made by another release, or under a name that is no longer used")


def _taken_back(kind: Kind, observed: GeneratingObserved) -> Plan:
    """Delete first the MachineConfigs of a deleted object, then its finalizers."""
    config, uid = observed.config, meta(observed.config).get("uid")
    finalizers = list(meta(config).get("finalizers") or [])
    mine = [one for one in finalizers if one in observed.configs or f"-generated-{kind.generator.part}" in one]
    gone = tuple(
        Delete.of(one, f"{config['kind']} {name_of(config)} is deleted")
        for name, one in observed.configs.items()
        if name in mine and any(owner.get("uid") == uid for owner in meta(one).get("ownerReferences") or ())
    )
    rest = [one for one in finalizers if one not in mine]
    body = {"metadata": {"finalizers": rest, "resourceVersion": meta(config).get("resourceVersion")}}
    patch = (Patch(gvk_of(config), "", name_of(config), body, "its MachineConfigs are gone"),) if mine else ()
    steps = tuple(step for step in (gone, patch) if step)
    return Plan(steps=steps, why=f"{name_of(config)} is deleted with {', '.join(mine) or 'nothing'}")


def _status(kind: Kind, config: Obj, error: str | None, now: datetime) -> tuple[SetStatus, ...]:
    new, *older = kind.conditions(error)
    status: Obj = dict(config.get("status") or {})
    others = {one["type"] for one in older}
    legacy = {"Success", "Failure"} if others else set()
    kept = [one for one in status.get("conditions") or [] if one.get("type") not in legacy]
    generation = int(meta(config).get("generation") or 0)
    stamp = {"lastTransitionTime": format_time(now)}
    if not kept or kept[-1].get("message") != new["message"] or kept[-1].get("type") != new["type"]:
        kept.append(new | stamp)
    elif status.get("observedGeneration") != generation:
        kept[-1] = new | stamp
    tail = [one | {"lastTransitionTime": kept[-1]["lastTransitionTime"]} for one in older]
    status |= {"conditions": [*kept[-KEPT_CONDITIONS:], *tail], "observedGeneration": generation}
    return set_status(config, status, "what became of it")
