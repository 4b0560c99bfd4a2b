"""What happens to a cluster while things go wrong: small roll-outs that go through every kind of step."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.machineconfig.faults.foretold import QUIET
from tests.machineconfig.faults.schedule import KINDS
from tests.machineconfig.faults.world import CONFIGS, FaultWorld
from tests.machineconfig.rendering import files, machine_config, pool
from tests.machineconfig.room import POOLS
from tests.machineconfig.test_drains import router

from syncline.cluster.machines.machine import Entry
from syncline.kube.objects import Obj, ObjectRef
from syncline.machineconfig.ansible.content import File, pack
from syncline.machineconfig.ansible.play import CONTENT, PLAY, ROOT, Play
from syncline.machineconfig.generating.making import data_file, file_of
from syncline.machineconfig.impact.forecast import Change
from syncline.machineconfig.names import MACHINE_CONFIG
from syncline.rehearsal.explore import Explorer
from syncline.rehearsal.fingerprint import Fingerprints
from syncline.rehearsal.guided.accesses import Trace

OWN = {
    "/usr/etc/chrony.conf": Entry(content=b"pool of the system"),
    "/etc/chrony.conf": Entry(content=b"pool of the house", mode=0o640),
    "/usr/etc/systemd/system/shipped.service": Entry(content=b"[Service]\nExecStart=/bin/shipped\n"),
    "/etc/systemd/system/shipped.service": Entry(content=b"[Service]\nExecStart=/bin/shipped\n"),
    "/home/core/notes": Entry(content=b"do not lose", mode=0o600, user="core", group="core"),
    "/etc/fstab": Entry(content=b"/dev/sda1 /"),
}
"""A file and a unit of the system that configs replace, and files that are nobody's business."""
OLD_OS = "quay.io/syncline/os@sha256:" + "1" * 64
NEW_OS = "quay.io/syncline/os@sha256:" + "2" * 64


def _unit(name: str, **fields: object) -> Obj:
    contents = f"[Service]\nExecStart=/bin/true\n# {name}\n[Install]\nWantedBy=multi-user.target\n"
    return {"name": name, "contents": contents, "enabled": True} | fields


def full(number: int, role: str = "worker") -> Obj:
    """A MachineConfig that has everything; 1 and 2 differ in everything."""
    ignition = files(("/etc/stays", f"number%20{number}"), version="3.4.0")
    made = ignition["storage"]["files"]
    encoded = base64.b64encode(b"#!/bin/sh\nexit 0\n").decode()
    dropin = {"name": "10-more.conf", "contents": f"[Service]\nNice={number}\n"}
    if number == 1:
        made += files(("/etc/goes", "x"), ("/etc/chrony.conf", "pool%20of%20a%20config"))["storage"]["files"]
        units = [_unit("old.service", dropins=[dropin]), _unit("shipped.service")]
    else:
        made[0]["mode"] = 0o600
        script = {"source": f"data:;base64,{encoded}"}
        made.append({"path": "/usr/local/bin/deep/run.sh", "mode": 0o755, "contents": script})
        masked = {"name": "masked.service", "mask": True, "contents": "[Service]\nExecStart=/bin/false\n"}
        units = [_unit("new.service", dropins=[dropin]), _unit("off.service", enabled=False), masked]
    core = {"name": "core", "sshAuthorizedKeys": [f"ssh-ed25519 AAAA{number} me"], "passwordHash": f"$6$hash{number}"}
    config = ignition | {"systemd": {"units": units}, "passwd": {"users": [core]}}
    spec: Obj = {"kernelArguments": ["quiet", f"level={number}"], "osImageURL": OLD_OS if number == 1 else NEW_OS}
    return machine_config("50-base", config, role=role, extensions=["usbguard"] if number == 2 else [], **spec)


def small(text: str, role: str = "worker") -> Obj:
    made = files(("/etc/motd", text), ("/etc/chrony.conf", text), version="3.4.0")
    return machine_config("50-base", made, role=role)


def gentle(number: int) -> Obj:
    """Files of which policies say that services are reloaded or restarted, and keys: no drain, no reboot."""
    provider = "/etc/kubernetes/credential-providers/x.yaml"
    made = files(("/etc/containers/policy.json", f"{number}"), (provider, f"{number}"), version="3.4.0")
    if number == 2:
        made["storage"]["files"] += files(("/etc/nmstate/openshift/x", "y"))["storage"]["files"]
    core = {"name": "core", "sshAuthorizedKeys": [f"ssh-ed25519 AAAA{number} me"]}
    return machine_config("50-base", made | {"passwd": {"users": [core]}})


def played(number: int) -> Obj:
    """A playbook for a drained node, whose machine reboots after it."""
    site = f"- hosts: all\n  tasks:\n    - copy: {{content: '{number}', dest: /etc/motd}}\n      name: the message\n"
    packed = pack({"site.yml": File(site.encode())})
    play = Play("motd", hashlib.sha256(packed).hexdigest(), "site.yml", disruption="Reboot")
    made = [file_of(f"{ROOT}/motd/{PLAY}", play.text), data_file(f"{ROOT}/motd/{CONTENT}", packed)]
    ordinary = files(("/etc/stays", "x"), version="3.4.0")
    ordinary["storage"]["files"] += made
    return machine_config("50-base", ordinary)


@dataclass(frozen=True)
class Story:
    """``before`` is in force at the start; ``after`` takes its place, None: it is deleted."""

    name: str
    about: str
    before: Obj
    after: Obj | None
    nodes: tuple[str, ...]
    role: str = "worker"
    limit: int = 1
    needs_drain: bool = True
    routed: bool = False
    kept: int | None = 20
    own: dict[str, Entry] = field(default_factory=lambda: OWN)
    acts: tuple[tuple[float, Callable[[FaultWorld], None]], ...] = ()
    """What people do after so many seconds."""

    def world(self) -> FaultWorld:
        """Everything is updated and at rest."""
        world = FaultWorld({self.role: self.limit}, self.own, needs_drain=self.needs_drain, kept=self.kept)
        for name in ("master", "worker"):
            limit = {"maxUnavailable": self.limit} if name == self.role and self.limit > 1 else {}
            world.send("POST", POOLS, pool(name, **limit))
        world.send("POST", CONFIGS, self.before)
        _until(world, lambda: "50-base" in str(world.get(f"{POOLS}/{self.role}")["spec"].get("configuration")))
        for name in self.nodes:
            world.join(name, self.role)
        if self.routed:
            router(world)
        _until(world, lambda: not world.unfinished())
        world.live(120)
        world.laws.at_rest()
        return world

    def begin(self, world: FaultWorld) -> None:
        path = f"{CONFIGS}/50-base"
        gone = (ObjectRef(*MACHINE_CONFIG, "", "50-base"),)
        if not self.acts:
            world.foretell(Change(deleted=gone) if self.after is None else Change(applied=(self.after,)))
        world.ledger.watching = world.injector.steps.counting = True
        if self.after is None:
            world.send("DELETE", path)
        else:
            world.replace_config(self.after)
        for seconds, act in self.acts:
            world.injector.agenda.after(seconds, lambda act=act: act(world))


def _until(world: FaultWorld, reached: Callable[[], bool]) -> None:
    for _ in range(100):
        world.live(10)
        if reached():
            return
    raise AssertionError(f"the story does not begin: {world.unfinished()}")


STORIES = {
    story.name: story
    for story in (
        Story("update", "everything of two workers changes", full(1), full(2), ("worker-0", "worker-1")),
        Story("removal", "a config with everything is deleted", full(2), None, ("worker-0",), kept=0),
        Story(
            "gentle", "services are reloaded, nobody reboots", gentle(1), gentle(2), ("worker-0",), needs_drain=False
        ),
        Story(
            "pool",
            "four workers, two at a time, and pods with a budget",
            small("a"),
            small("b"),
            tuple(f"worker-{n}" for n in range(4)),
            limit=2,
            routed=True,
        ),
        Story("playbook", "two workers run another playbook", played(1), played(2), ("worker-0", "worker-1")),
        Story(
            "masters",
            "three masters, one at a time",
            small("a", "master"),
            small("b", "master"),
            ("master-0", "master-1", "master-2"),
            role="master",
        ),
        Story(
            "paused",
            "a pool is paused while its first node is under way, and gets another config meanwhile",
            small("a"),
            small("b"),
            ("worker-0", "worker-1"),
            acts=(
                (12, lambda world: world.pause(True)),
                (60, lambda world: world.replace_config(small("c"))),
                (300, lambda world: world.pause(False)),
            ),
        ),
    )
}


def _states(world: FaultWorld) -> Fingerprints:
    return Fingerprints(world, world.injector, world.laws.remembered)


def traced(world: FaultWorld) -> Trace:
    """Follow who reads and writes what from now on."""
    trace = Trace({"": world.core.store})
    world.injector.at_step = trace.begins
    for who, process in world.injector.processes.items():
        trace.follow(who, process.loop)
    return trace


EXPLORER = Explorer(STORIES, KINDS, _states, QUIET)
