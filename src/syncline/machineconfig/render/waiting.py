"""Checks what a render waits for: the templates, and the controllers that generate MachineConfigs.

Upstream waits silently; here the plan has the reason, and the pool's condition is unchanged. Source: reference
machine-config 2.1, ``pkg/apihelpers``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syncline.kube.kinds.machineconfiguration import CONTROLLER_CONFIG
from syncline.kube.objects import Obj, dig, meta, name_of
from syncline.kube.selectors import SelectorError, label_selector_from
from syncline.machineconfig.names import CONTROLLER_CONFIG_NAME


def controller_config_wait(config: Obj | None) -> str | None:
    """Return what is missing before the ControllerConfig is usable, or None."""
    if config is None:
        resource = f"{CONTROLLER_CONFIG.kind.lower()}.{CONTROLLER_CONFIG.group}"
        return f'{resource} "{CONTROLLER_CONFIG_NAME}" not found'
    lag = _lag("ControllerConfig", config)
    if lag:
        return lag
    state = {name: _first_status(config, f"TemplateController{name}") == "True" for name in _TEMPLATE_STATES}
    if state["Completed"] and not state["Running"] and not state["Failing"]:
        return None
    message = " ".join(f"{name.lower()}({str(state[name]).lower()})" for name in _TEMPLATE_STATES)
    return f"ControllerConfig has not completed: {message}"


_TEMPLATE_STATES = ("Completed", "Running", "Failing")


def sub_controller_wait(
    pool_labels: dict[str, str], kubelet_configs: Iterable[Obj], runtime_configs: Iterable[Obj]
) -> str | None:
    """Return what is missing before the MachineConfigs of these objects are complete, or None.

    An empty selector matches every pool, an absent one none; the last condition decides. A ContainerRuntimeConfig
    without a condition counts as incomplete.
    """
    for kind, configs, done in (
        ("ContainerRuntimeConfig", runtime_configs, _runtime_done),
        ("KubeletConfig", kubelet_configs, _kubelet_done),
    ):
        for config in configs:
            try:
                selector = label_selector_from(dig(config, "spec", "machineConfigPoolSelector"))
            except SelectorError as error:
                return f"invalid label selector: {error}"
            if not selector.matches(pool_labels):
                continue
            lag = _lag(kind, config)
            if lag or not done(config):
                return lag or f"{kind} has not completed"
    return None


def _lag(kind: str, config: Obj) -> str | None:
    generation = int(meta(config).get("generation") or 0)
    observed = int(dig(config, "status", "observedGeneration", default=0) or 0)
    if generation == observed:
        return None
    return f"status for {kind} {name_of(config)} is being reported for {observed}, expecting it for {generation}"


def _first_status(config: Obj, kind: str) -> str:
    conditions: list[Any] = dig(config, "status", "conditions", default=[]) or []
    return next((str(one.get("status")) for one in conditions if one.get("type") == kind), "")


def _last(config: Obj) -> Obj:
    conditions: list[Obj] = dig(config, "status", "conditions", default=[]) or []
    return conditions[-1] if conditions else {}


def _runtime_done(config: Obj) -> bool:
    return bool(_last(config).get("type") == "Success")


def _kubelet_done(config: Obj) -> bool:
    last = _last(config)
    accepted = last.get("type") == "Accepted" and last.get("status") == "True"
    return bool(accepted or last.get("type") == "Success")
