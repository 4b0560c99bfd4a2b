"""The role of AnsibleConfigs: reads their repositories and writes their MachineConfigs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from syncline.assembly.machines.role import MACHINE_CONFIG_MANAGER, MachineConfigSettings
from syncline.assembly.roles import Role, Wake
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.cluster.access.users import service_account_user
from syncline.control.cache import Cache
from syncline.control.loop import ControlLoop
from syncline.kube.kinds.ansible import ansible_config_crd
from syncline.kube.objects import Obj
from syncline.machineconfig.ansible.controller import ANSIBLE, ansible_controller
from syncline.machineconfig.ansible.reading import PlaybookHandler, PlaybookReader, PlaybookStore, ReadPlaybook


def ansible_role(
    settings: MachineConfigSettings, reader: PlaybookReader, *, objects: Sequence[Obj] = (ansible_config_crd(),)
) -> Role:
    """Return the role. It acts as the machine-config controllers do, beside which it runs."""
    store = PlaybookStore()

    def handlers(_cache: Cache, clock: Clock) -> Mapping[type, Handler]:
        return {ReadPlaybook: PlaybookHandler(reader, store, clock)}

    def follow(_loop: ControlLoop, wake: Wake) -> Callable[[], None]:
        store.wake = lambda ref: wake(ANSIBLE, ref)
        return lambda: None

    return Role(
        name="ansible",
        controllers=(ansible_controller(store, settings.release),),
        user=service_account_user(settings.control_namespace, MACHINE_CONFIG_MANAGER),
        manager=MACHINE_CONFIG_MANAGER,
        handlers=handlers,
        follow=follow,
        objects=tuple(objects),
    )
