"""A world with simulated machines: the built-in controllers, the kubelet, and real scheduling, in virtual time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from syncline.cluster.access.users import service_account_user
from syncline.cluster.builtin import BuiltinSettings, builtin_controllers, handlers
from syncline.cluster.machines.machine import MachineSpec
from syncline.cluster.machines.room import MachineSettings, MachinesRoom
from syncline.cluster.serving.direct import DirectTransport
from syncline.control.executor import kube_handlers
from syncline.control.loop import ControlLoop
from syncline.control.virtual import LoopActor, VirtualDriver
from syncline.kube.client import Transport
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj


def _load_world() -> ModuleType:
    """The module beside: tests are collected without packages."""
    place = Path(__file__).parents[1] / "world.py"
    known = sys.modules.get("cluster_world")
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location("cluster_world", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cluster_world"] = module
    spec.loader.exec_module(module)
    return module


_world: Any = _load_world()
job, deployment = _world.job, _world.deployment


class MachineWorld(_world.World):  # type: ignore[misc]
    """``room`` survives restarts only if ``keep_machines`` says so: a live process loses its records."""

    room: MachinesRoom

    def __init__(self, seed: int = 1, *, nodes: int = 1, shuffle: bool = False) -> None:
        self._nodes = nodes
        super().__init__(seed, shuffle=shuffle)
        self.settle()

    def restart(self, transport: Transport | None = None, *, keep_machines: bool = False) -> None:
        if not keep_machines or not hasattr(self, "room"):
            first = not hasattr(self, "room")
            self.room = self.make_room()
            if first:
                for number in range(self._nodes):
                    self.room.machines.add(MachineSpec(f"node-{number}", zone=f"zone-{number % 3}"))
        mapper = Mapper()
        mine = handlers(mapper) | kube_handlers(mapper, self.clock, "syncline") | self.room.handlers()
        controllers = [
            *builtin_controllers(BuiltinSettings("test root certificate", self.room.heartbeat)),
            *self.room.controllers(),
        ]
        self.loop = ControlLoop(
            controllers, mapper=mapper, handlers=mine, clock=self.clock, journal=self.journal, strict=True
        )
        self.driver = VirtualDriver(self.clock)
        self.driver.add(LoopActor(self.loop, transport or self.transport, self.clock, self._shuffle))
        self.room.connect(self.loop)

    def make_room(self) -> MachinesRoom:
        room = MachinesRoom(self.clock, MachineSettings())
        room.add_scripts(self._as_account)
        return room

    def _as_account(self, namespace: str, name: str) -> Transport:
        return DirectTransport(self.api, service_account_user(namespace, name))

    # -- pods ----------------------------------------------------------------------------------------------------

    def make_pod(self, name: str = "p", *, annotations: dict[str, str] | None = None, **spec: Any) -> Obj:
        body: Obj = {"containers": [{"name": "c", "image": "x:1"}], "automountServiceAccountToken": False} | spec
        metadata = {"name": name, "annotations": annotations or {}}
        made: Obj = self.post(
            "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}
        )
        return made

    def pod(self, name: str = "p", namespace: str = "default") -> Obj:
        found: Obj = self.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        return found

    def state(self, name: str = "p", container: str = "c") -> Obj:
        statuses = self.pod(name)["status"]
        both = [*statuses.get("initContainerStatuses", ()), *statuses.get("containerStatuses", ())]
        found: Obj = next(each for each in both if each["name"] == container)
        return found

    def log(self, name: str = "p", container: str = "c", **query: str) -> str:
        now = self.clock.now()
        text = self.room.logs.log(self.pod(name), container, query, now)
        assert isinstance(text, bytes)
        return text.decode()

    def told(self, namespace: str = "default") -> list[str]:
        """Reasons of the kubelet's Events about pods."""
        items = self.items(f"/api/v1/namespaces/{namespace}/events")
        return [each["reason"] for each in items if each["reportingComponent"] == "kubelet"]


def condition(obj: Obj, kind: str) -> Obj:
    found: Obj = next(each for each in obj["status"]["conditions"] if each["type"] == kind)
    return found
