"""What is told before a change is what happens after it: the same nodes, order, actions, refusals, on real agents."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.machineconfig.rendering import files, machine_config
from tests.machineconfig.room import EVENTS, POOLS, PoolWorld
from tests.machineconfig.test_machines_updated import CLUSTER, CONFIGS, target, world

from syncline.assembly.impact import forecaster
from syncline.assembly.snapshot import look_at_cluster
from syncline.base.clock import parse_time
from syncline.control.executor import run_in_place
from syncline.kube.objects import Obj, ObjectRef, annotations_of, name_of
from syncline.machineconfig.impact.forecast import Change
from syncline.machineconfig.impact.report import Impact, PoolImpact, Verdict
from syncline.machineconfig.names import DESIRED, MACHINE_CONFIG

SAID = ("Drain", "Reboot", "ServiceReload", "ServiceRestart", "SkipReboot")


def foretold(one: PoolWorld, *objs: Obj, delete: tuple[str, ...] = ()) -> Impact:
    look = run_in_place(look_at_cluster({}), one.admin).cache
    gone = tuple(ObjectRef(*MACHINE_CONFIG, "", name) for name in delete)
    return forecaster(look).forecast(Change(applied=objs, deleted=gone), one.clock.now())


def of(impact: Impact, name: str = "worker") -> PoolImpact:
    return next(one for one in impact.pools if one.name == name)


def steps(told: PoolImpact) -> dict[str, tuple[str, ...]]:
    return {node.node: node.steps for node in told.nodes}


def waves(told: PoolImpact) -> list[set[str]]:
    """Who is targeted together, in order."""
    by_wave: dict[int, set[str]] = {}
    for node in told.nodes:
        if node.wave:
            by_wave.setdefault(node.wave, set()).add(node.node)
    return [by_wave[wave] for wave in sorted(by_wave)]


class Happened:
    """What nodes go through from now on, as their annotations and Events tell it."""

    def __init__(self, one: PoolWorld) -> None:
        self.one, self.since, self.boots = one, one.clock.now(), one.reboots()
        self.waves: list[set[str]] = []
        self._desired = self._look()

    def _look(self) -> dict[str, str]:
        return {name: annotations_of(node).get(DESIRED, "") for name, node in self.one.nodes().items()}

    def look(self) -> None:
        """Called after each step of the world."""
        now = self._look()
        moved = {name for name, config in now.items() if config != self._desired.get(name)}
        if moved:
            self.waves.append(moved)
        self._desired = now

    def until(self, done: Callable[[], bool], limit_s: float = 7200) -> None:
        def looked() -> bool:
            self.look()
            return done()

        self.one.driver.until(looked, limit_s=limit_s)

    def steps(self) -> dict[str, tuple[str, ...]]:
        """By node: drains first, services in order, a reboot where the machine has booted."""
        found: dict[str, list[str]] = {}
        events = self.one.get(EVENTS)["items"]
        for event in sorted(events, key=lambda each: (each["lastTimestamp"], int(each["metadata"]["resourceVersion"]))):
            about = event["involvedObject"]
            if about["kind"] != "Node" or event["reason"] not in SAID:
                continue
            if parse_time(event["lastTimestamp"]) < self.since:
                continue
            found.setdefault(about["name"], []).append(_step(event["reason"], event["message"]))
        after = self.one.reboots()
        for name, boots in after.items():
            assert (boots - self.boots[name] == 1) == ("reboot" in found.get(name, [])), name
        return {
            name: tuple(sorted(dict.fromkeys(told), key=lambda step: step != "drain")) for name, told in found.items()
        }


def _step(reason: str, message: str) -> str:
    service = message.partition("Service ")[2].partition(" was")[0]
    match reason:
        case "ServiceReload":
            return "daemon-reload" if service == "daemon-reload" else f"reload {service}"
        case "ServiceRestart":
            return f"restart {service}"
        case "SkipReboot":
            return "none"
        case _:
            return reason.lower()


def applied(one: PoolWorld, *objs: Obj) -> None:
    for obj in objs:
        path = (
            CONFIGS if obj["kind"] == "MachineConfig" else CLUSTER if obj["kind"] == "MachineConfiguration" else POOLS
        )
        known = any(name_of(each) == name_of(obj) for each in one.get(path)["items"])
        one.merge(f"{path}/{name_of(obj)}", obj) if known else one.send("POST", path, obj)


def kept(one: PoolWorld, *objs: Obj) -> PoolImpact:
    """The promise: told, then done, then compared."""
    impact = foretold(one, *objs)
    told, seen = of(impact), Happened(one)
    applied(one, *objs)
    seen.until(lambda: one.updated(told.after))
    assert impact.verdict is Verdict.CHANGES
    assert steps(told) == seen.steps()
    assert waves(told) == seen.waves
    assert told.after == target(one)
    return told


def unit(name: str, contents: str = "[Service]\nExecStart=/bin/true\n") -> Obj:
    return {"ignition": {"version": "3.2.0"}, "systemd": {"units": [{"name": name, "contents": contents}]}}


def keys(*given: str) -> Obj:
    return {"ignition": {"version": "3.4.0"}, "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": list(given)}]}}


def registries(text: str) -> Obj:
    from base64 import b64encode

    source = f"data:;base64,{b64encode(text.encode()).decode()}"
    return files({"path": "/etc/containers/registries.conf", "mode": 420, "contents": {"source": source}})


SEARCH = 'unqualified-search-registries = ["registry.access.redhat.com", "docker.io"]\nshort-name-mode = ""\n'
MIRROR = (
    SEARCH
    + '\n[[registry]]\nlocation = "quay.io/a"\n[[registry.mirror]]\nlocation = "mirror.example/a"\n'
    + 'pull-from-mirror = "digest-only"\n'
)
BLOCKED = SEARCH + '\n[[registry]]\nlocation = "quay.io/b"\nblocked = true\n'

CHANGES: dict[str, tuple[Obj, tuple[str, ...], str]] = {
    "keys of core are taken over": (
        machine_config("99-a", keys("ssh-ed25519 AAAA me")),
        ("none",),
        "passwd core: added",
    ),
    "a signature policy reloads crio": (
        machine_config("99-b", files(("/etc/containers/policy.json", "%7B%7D"))),
        ("reload crio.service",),
        "file /etc/containers/policy.json contents",
    ),
    "the user's certificates restart the trust and crio": (
        machine_config("99-c", files(("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", "x"))),
        ("restart coreos-update-ca-trust.service", "restart crio.service"),
        "added",
    ),
    "a new mirror by digest reloads crio": (machine_config("99-d", registries(MIRROR)), ("reload crio",), "contents"),
    "a registry that is blocked drains first": (
        machine_config("99-d", registries(BLOCKED)),
        ("drain", "reload crio"),
        "file /etc/containers/registries.conf contents",
    ),
    "a file reboots": (
        machine_config("99-e", files(("/etc/motd", "hello"))),
        ("drain", "reboot"),
        "file /etc/motd added",
    ),
    "an argument reboots": (
        machine_config("99-f", None, kernelArguments=["nosmt"]),
        ("drain", "reboot"),
        "kernelArguments + nosmt",
    ),
    "a unit reboots": (machine_config("99-g", unit("x.service")), ("drain", "reboot"), "unit x.service added"),
    "an extension reboots": (
        machine_config("99-h", None, extensions=["usbguard"]),
        ("drain", "reboot"),
        "extensions + usbguard",
    ),
    "another kernel reboots": (
        machine_config("99-i", None, kernelType="realtime"),
        ("drain", "reboot"),
        "kernelType default → realtime",
    ),
    "several parts are one reboot": (
        machine_config(
            "99-j", files(("/etc/containers/policy.json", "x"), ("/etc/foo", "x")), kernelArguments=["quiet"]
        ),
        ("drain", "reboot"),
        "kernelArguments + quiet",
    ),
}


@pytest.fixture(scope="module")
def workers() -> PoolWorld:
    """Three workers that every change of the table finds as the one before has left them."""
    return world(3)


@pytest.mark.parametrize("name", list(CHANGES))
def test_what_is_told_is_what_happens(workers: PoolWorld, name: str) -> None:
    config, wanted, cause = CHANGES[name]
    told = kept(workers, config)
    assert set(steps(told).values()) == {wanted}
    assert cause in str(told.causes[0]), told.causes
    assert told.causes[0].config == name_of(config)
