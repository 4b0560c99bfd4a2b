"""Plans the render of one pool; pure. Entry point: :func:`plan_render`.

A paused pool is rendered, too; only its nodes wait. If rendering fails, the pool keeps its old configuration and gets
RenderDegraded. Source: reference machine-config 2, ``syncMachineConfigPool``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from syncline.control.plan import Create, Delete, Emit, KubeAction, Patch, Plan, Replace, Retry, set_status
from syncline.ignition import jsontext
from syncline.kube.objects import Obj, annotations_of, dig, gvk_of, labels_of, meta, name_of
from syncline.kube.selectors import SelectorError
from syncline.machineconfig.configs.reconcile import unreconcilable
from syncline.machineconfig.render import events
from syncline.machineconfig.render.naming import PREFIX
from syncline.machineconfig.render.observe import RenderObserved
from syncline.machineconfig.render.refusal import RenderError
from syncline.machineconfig.render.rendering import Rendered, render
from syncline.machineconfig.render.runc import RHEL10_STREAMS, RuncError, refused_for_stream, runs_runc
from syncline.machineconfig.render.runc import refusal as runc_refusal
from syncline.machineconfig.render.select import references, select
from syncline.machineconfig.render.status import render_status
from syncline.machineconfig.render.waiting import controller_config_wait, sub_controller_wait

MAX_BYTES = 1_572_864
"""Maximum bytes of a rendered MachineConfig as JSON; etcd accepts no larger request."""


NOT_RENDERED = "could not generate rendered MachineConfig: "
"""Prefix of upstream's message for a failed merge."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision. ``waits``: why the pool is not rendered yet. ``error``: why it cannot be, for the pool's condition;
    ``culprit``: the MachineConfig at fault. ``create``, ``update``: the rendered MachineConfig to write.
    ``configuration``: of the pool's spec."""

    waits: str | None = None
    error: str | None = None
    culprit: str = ""
    selects_all: bool = False
    rendered: Rendered | None = None
    create: Obj | None = None
    update: Obj | None = None
    configuration: Obj | None = None
    emits: tuple[Emit, ...] = ()


def plan_render(observed: RenderObserved, now: datetime) -> Plan:
    """Return the plan of one reconcile of a pool."""
    decision, pool = decide(observed), observed.pool
    name = name_of(pool)
    if decision.selects_all:
        return Plan(steps=(decision.emits,), why=f"pool {name} selects all MachineConfigs: nothing is rendered")
    if decision.waits is not None:
        return Plan(outcome=Retry(decision.waits), why=f"pool {name} waits: {decision.waits}")
    if decision.error is not None:
        status = set_status(pool, render_status(pool, decision.error, now), "it cannot be rendered")
        report = _blamed(pool, decision) if status else ()
        return Plan(
            steps=(report,) if report else (), status=status, why=f"pool {name} cannot be rendered: {decision.error}"
        )
    assert decision.rendered is not None
    target = name_of(decision.rendered.config)
    why = f"pool {name} is rendered as {target}"
    configuration = _configuration(pool, decision.configuration)
    if configuration:
        # A status is conditional on the revision, so it follows in the reconcile that this write causes.
        wanted: list[tuple[KubeAction, ...]] = [_written(decision), decision.emits, configuration]
        return Plan(steps=tuple(filter(None, wanted)), why=why)
    wanted = [_written(decision), decision.emits, _forgotten(observed, target)]
    return Plan(
        steps=tuple(filter(None, wanted)),
        status=set_status(pool, render_status(pool, None, now), "it is rendered"),
        why=why,
    )


def _blamed(pool: Obj, decision: Decision) -> tuple[Emit, ...]:
    """Return an Event that names the MachineConfig to correct, if a single one is at fault."""
    if not decision.culprit or decision.error is None:
        return ()
    return (events.refused(pool, decision.culprit, decision.error.removeprefix(NOT_RENDERED)),)


def _written(decision: Decision) -> tuple[Create | Replace, ...]:
    if decision.create is not None:
        return (Create(decision.create, "a new content of the pool"),)
    if decision.update is not None:
        return (Replace(decision.update, "another client changed a rendered MachineConfig"),)
    return ()


def _configuration(pool: Obj, wanted: Obj | None) -> tuple[Patch, ...]:
    found = dig(pool, "spec", "configuration") or {}
    if wanted is None or {key: found.get(key) for key in wanted} == wanted:
        return ()
    body: Obj = {"spec": {"configuration": wanted}, "metadata": {"uid": meta(pool).get("uid")}}
    return (Patch(gvk_of(pool), "", name_of(pool), body, f"the pool is rendered as {wanted['name']}"),)


def decide(observed: RenderObserved) -> Decision:
    """Return the decision of upstream's sync."""
    pool = observed.pool
    if dig(pool, "spec", "machineConfigSelector") == {}:
        return Decision(selects_all=True, emits=(events.selecting_all(pool),))
    try:
        selection = select(pool, observed.configs)
    except SelectorError as error:
        return Decision(waits=str(error))
    waits = controller_config_wait(observed.controller_config) or sub_controller_wait(
        labels_of(pool), observed.kubelet_configs, observed.runtime_configs
    )
    if waits is not None:
        return Decision(waits=waits)
    if not selection.configs:
        return Decision(error=f"no MachineConfigs found matching selector {selection.selector}")
    try:
        rendered = _reconcilable(observed, selection.configs)
    except RenderError as error:
        # Reports of Ignition end with a line break.
        text = f"{NOT_RENDERED}{error}".rstrip("\n")
        return Decision(error=text, culprit=error.culprit)
    refused = _too_large(rendered.config) or _refused_runtime(observed, rendered)
    if refused is not None:
        return Decision(error=refused)
    return _decision(observed, rendered)


def _reconcilable(observed: RenderObserved, configs: tuple[Obj, ...]) -> Rendered:
    """Return the rendered MachineConfig if the pool's machines can apply it. Raises RenderError with the culprit: a
    MachineConfig that alone is refused for the same reason."""
    assert observed.controller_config is not None, "waiting comes first"
    rendered = render(observed.pool, configs, observed.controller_config, observed.settings.release, observed.stream)
    current = observed.config(str(dig(observed.pool, "spec", "configuration", "name", default="") or ""))
    if current is None:
        return rendered
    refused = unreconcilable(current, [rendered.config], observed.waived)
    if refused is None:
        return rendered
    for config in rendered.merged.order:
        alone = unreconcilable(current, [config], observed.waived)
        if alone is None or ": " not in alone:
            continue
        reason = alone.split(": ", 1)[1]
        if reason in refused:
            names = f'current config "{name_of(current)}" and base config "{name_of(config)}"'
            raise RenderError(f"reconciliation failed between {names}: {reason}", name_of(config))
    parts = unreconcilable(current, rendered.merged.order, observed.waived)
    raise RenderError(f"render reconciliation error: {refused}; component errors: {parts or '<nil>'}")


def _too_large(config: Obj) -> str | None:
    size = len(jsontext.dump(config).encode())
    if size <= MAX_BYTES:
        return None
    return (
        f"size validation failed: rendered MachineConfig {name_of(config)} is too large ({size} bytes, max {MAX_BYTES} "
        "bytes). This will exceed etcd's size limit. Consider reducing the number or size of MachineConfigs, "
        "particularly large registry mirror configurations (ImageDigestMirrorSet/ImageContentSourcePolicy)"
    )


def _refused_runtime(observed: RenderObserved, rendered: Rendered) -> str | None:
    name = name_of(observed.pool)
    if not rendered.overridden:
        stream = str((observed.stream or {}).get("name") or "")
        return refused_for_stream(name, rendered.config, stream)
    image = rendered.config["spec"]["osImageURL"]
    stream = observed.stream_classes.get(image, "")
    try:
        runc = bool(image) and runs_runc(rendered.config)
    except RuncError as error:
        return f"pool {name}: failed to check runc in generated MachineConfig: {error}"
    return runc_refusal(name) if runc and stream in RHEL10_STREAMS else None


def _decision(observed: RenderObserved, rendered: Rendered) -> Decision:
    pool, name = observed.pool, name_of(rendered.config)
    found = observed.config(name)
    emitted: list[Emit] = []
    if found is None:
        if rendered.overridden:
            emitted.append(events.image_overridden(rendered.config, _default_image(observed)))
        emitted.append(events.rendered(pool, rendered.config))
    targeted = dig(pool, "spec", "configuration", "name") == name
    return Decision(
        rendered=rendered,
        create=rendered.config if found is None else None,
        update=restored(found, rendered.config) if found is not None and targeted else None,
        configuration={"name": name, "source": references(rendered.merged.order)},
        emits=tuple(emitted),
    )


def _default_image(observed: RenderObserved) -> str:
    return str(dig(observed.controller_config, "spec", "osImageURL", default="") or "")


def restored(found: Obj, wanted: Obj) -> Obj | None:
    """Return the original of a rendered MachineConfig that a user changed, with foreign annotations, or None."""
    spec = dict(found.get("spec") or {})
    for field, value in wanted["spec"].items():
        if value or not isinstance(value, str):
            spec[field] = value
    notes = annotations_of(found) | annotations_of(wanted)
    owner = meta(wanted)["ownerReferences"][0]
    others = [one for one in meta(found).get("ownerReferences") or () if one.get("uid") != owner["uid"]]
    owners = meta(found).get("ownerReferences") or []
    if owner not in owners:
        owners = [*others, owner]
    unchanged = _same(spec, found.get("spec") or {}) and notes == annotations_of(found)
    if unchanged and owners == (meta(found).get("ownerReferences") or []):
        return None
    metadata = {**meta(found), "annotations": notes, "ownerReferences": owners}
    return {**found, "spec": spec, "metadata": metadata}


def _same(left: Obj, right: Obj) -> bool:
    """Return whether two specs are equal; empty equals absent, except inside ``config``."""
    keys = {*left, *right}
    return all((left.get(key) or None) == (right.get(key) or None) for key in keys)


def _forgotten(observed: RenderObserved, target: str) -> tuple[Delete, ...]:
    """Delete this pool's oldest unreferenced rendered MachineConfigs beyond the number to keep. A deleted one gets the
    same name when it is rendered again."""
    kept = observed.settings.kept
    if kept is None:
        return ()
    uid = meta(observed.pool).get("uid")
    mine = [
        config
        for config in observed.configs
        if name_of(config).startswith(f"{PREFIX}{name_of(observed.pool)}-")
        and name_of(config) not in (*observed.in_use, target)
        and any(owner.get("uid") == uid for owner in meta(config).get("ownerReferences") or ())
    ]
    mine.sort(key=lambda config: (str(meta(config).get("creationTimestamp") or ""), name_of(config)), reverse=True)
    return tuple(Delete.of(config, f"nothing refers to it, and {kept} younger ones are kept") for config in mine[kept:])
