"""Binds the base MachineConfigs to the ControllerConfig."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Watch, spec_differs
from syncline.control.plan import Plan
from syncline.kube.kinds.machineconfiguration import CONTROLLER_CONFIG, MACHINE_CONFIG
from syncline.kube.kinds.openshiftconfig import API_SERVER_CONFIG
from syncline.kube.objects import Obj, ObjectRef, name_of
from syncline.machineconfig.names import CONTROLLER_CONFIG_NAME
from syncline.machineconfig.render.rendering import Release
from syncline.machineconfig.templates.plan import TemplatesObserved, plan_templates

__all__ = ["TemplateController"]

API_SERVER = ObjectRef(API_SERVER_CONFIG.group, API_SERVER_CONFIG.kind, "", "cluster")


class TemplateController:
    """Kind ControllerConfig."""

    name = "machine-config-templates"
    kind = CONTROLLER_CONFIG.group_kind
    reads: tuple[()] = ()

    def __init__(self, release: Release) -> None:
        self._release = release
        self.watches = (
            Watch(MACHINE_CONFIG.group_kind, self._of_config, spec_differs),
            Watch(API_SERVER_CONFIG.group_kind, self._the_one),
        )

    def observe(self, cache: Snapshot, ref: ObjectRef) -> TemplatesObserved | None:
        found = cache.get(ref)
        if found is None or ref.name != CONTROLLER_CONFIG_NAME or not cache.has_synced(MACHINE_CONFIG.group_kind):
            return None
        configs = {name_of(one): one for one in cache.objects(MACHINE_CONFIG.group_kind)}
        return TemplatesObserved(found, configs, cache.get(API_SERVER), self._release)

    def plan(self, seen: TemplatesObserved, now: datetime) -> Plan:
        return plan_templates(seen, now)

    def _of_config(self, obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return self._the_one(obj, cache) if name_of(obj).startswith(("00-", "01-")) else ()

    def _the_one(self, _obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(self.kind.group, self.kind.kind, "", CONTROLLER_CONFIG_NAME),)
