"""The controller that generates the base MachineConfigs from the ControllerConfig."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, spec_differs
from syncline.kube.kinds.machineconfiguration import CONTROLLER_CONFIG, MACHINE_CONFIG
from syncline.kube.kinds.openshiftconfig import API_SERVER_CONFIG
from syncline.kube.objects import Obj, ObjectRef, name_of
from syncline.machineconfig.generating.templates.plan import TemplatesObserved, plan_templates
from syncline.machineconfig.names import CONTROLLER_CONFIG_NAME
from syncline.machineconfig.render.rendering import Release

API_SERVER = ObjectRef(API_SERVER_CONFIG.group, API_SERVER_CONFIG.kind, "", "cluster")


def _of_config(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return _the_one(obj, cache) if name_of(obj).startswith(("00-", "01-")) else ()


def _the_one(_obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (
        ObjectRef(CONTROLLER_CONFIG.group_kind.group, CONTROLLER_CONFIG.group_kind.kind, "", CONTROLLER_CONFIG_NAME),
    )


def template_controller(release: Release) -> Controller[TemplatesObserved]:
    """Return the controller of kind ControllerConfig."""

    def observe(cache: Snapshot, ref: ObjectRef) -> TemplatesObserved | None:
        found = cache.get(ref)
        if found is None or ref.name != CONTROLLER_CONFIG_NAME or not cache.has_synced(MACHINE_CONFIG.group_kind):
            return None
        configs = {name_of(one): one for one in cache.objects(MACHINE_CONFIG.group_kind)}
        return TemplatesObserved(found, configs, cache.get(API_SERVER), release)

    return Controller(
        name="machine-config-templates",
        kind=CONTROLLER_CONFIG.group_kind,
        watches=(
            Watch(MACHINE_CONFIG.group_kind, _of_config, spec_differs),
            Watch(API_SERVER_CONFIG.group_kind, _the_one),
        ),
        observe=observe,
        plan=plan_templates,
    )
