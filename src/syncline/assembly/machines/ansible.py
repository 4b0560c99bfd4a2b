"""The role of AnsibleConfigs: reads their repositories and writes their MachineConfigs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from syncline.assembly.machines.role import MACHINE_CONFIG_MANAGER, MachineConfigSettings
from syncline.assembly.roles import Role, Wake
from syncline.assembly.sources.credentials import SECRETS, Taught, Teacher
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.cluster.access.users import service_account_user
from syncline.control.cache import Cache
from syncline.control.controller import Watch
from syncline.control.fetching import FetchHandler
from syncline.control.informer import Scope
from syncline.control.loop import ControlLoop
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import GroupKind
from syncline.machineconfig.ansible.controller import ANSIBLE, ansible_controller
from syncline.machineconfig.ansible.reading import Found, PlaybookReader, PlaybookStore, ReadPlaybook

LEARNED: Final = (SECRETS, GroupKind("", "ConfigMap"), APP_PROJECT.group_kind)
"""What a reader of repositories learns of the control namespace: credentials, known hosts, rules."""


def ansible_role(settings: MachineConfigSettings, reader: PlaybookReader, *, learner: object = None) -> Role:
    """Return the role, which acts as the machine-config controllers do. ``learner``: who reads with the credentials of
    the control namespace; None: it needs none, and no Secret is watched."""
    store, namespace = PlaybookStore(), settings.control_namespace
    controller = ansible_controller(store, settings.release)
    learned = LEARNED if learner is not None else ()
    watches = tuple(Watch(kind, lambda _obj, _cache: ()) for kind in learned)

    def handlers(cache: Cache, clock: Clock) -> Mapping[type, Handler]:
        handler = FetchHandler(reader.playbook, Found, store, clock)
        return {ReadPlaybook: Taught(handler, Teacher(learner, cache, namespace))}

    def follow(_loop: ControlLoop, wake: Wake) -> Callable[[], None]:
        store.wake = lambda ref: wake(ANSIBLE, ref)
        return lambda: None

    return Role(
        name="ansible",
        controllers=(replace(controller, watches=(*controller.watches, *watches)),),
        user=service_account_user(namespace, MACHINE_CONFIG_MANAGER),
        manager=MACHINE_CONFIG_MANAGER,
        handlers=handlers,
        follow=follow,
        scopes=dict.fromkeys(learned, Scope(namespace)),
    )


def with_playbooks(
    role: Role, settings: MachineConfigSettings, reader: PlaybookReader, *, learner: object = None
) -> Role:
    """Return the machine-config role with the controller of AnsibleConfigs, in one loop and under one Lease. The
    arguments are those of :func:`ansible_role`."""
    more = ansible_role(settings, reader, learner=learner)

    def follow(loop: ControlLoop, wake: Wake) -> Callable[[], None]:
        ends = role.follow(loop, wake), more.follow(loop, wake)

        def end() -> None:
            for each in ends:
                each()

        return end

    return replace(
        role,
        controllers=(*role.controllers, *more.controllers),
        handlers=lambda cache, clock: {**role.handlers(cache, clock), **more.handlers(cache, clock)},
        follow=follow,
        scopes={**role.scopes, **more.scopes},
    )
