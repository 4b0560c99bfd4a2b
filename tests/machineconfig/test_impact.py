"""What is told before a change is what happens after it: the same nodes, order, actions, refusals, on real agents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.machineconfig.rendering import files, machine_config, pool
from tests.machineconfig.room import APIS, EVENTS, NODES, POOLS, PoolWorld
from tests.machineconfig.test_drains import router
from tests.machineconfig.test_machines_updated import CLUSTER, CONFIGS, target, world

from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.assembly.machines.impact import forecaster
from syncline.base.clock import parse_time
from syncline.cli.views.impact import describe_impact
from syncline.control.executor import run_in_place
from syncline.kube.objects import Obj, ObjectRef, annotations_of, name_of
from syncline.machineconfig.impact.forecast import Change
from syncline.machineconfig.impact.report import Impact, PoolImpact, Verdict
from syncline.machineconfig.impact.rollout import State
from syncline.machineconfig.names import CURRENT, DESIRED, GROUP, MACHINE_CONFIG, STATE
from syncline.machineconfig.pools.candidates import CANARIES, ORDER

SAID = ("Drain", "Reboot", "ServiceReload", "ServiceRestart", "SkipReboot")


def foretold(one: PoolWorld, *objs: Obj, delete: tuple[str, ...] = ()) -> Impact:
    look = run_in_place(snapshot_of_cluster({}), one.admin).cache
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
    told, observed = of(impact), Happened(one)
    applied(one, *objs)
    observed.until(lambda: one.updated(told.after))
    assert impact.verdict is Verdict.CHANGES
    assert steps(told) == observed.steps()
    assert waves(told) == observed.waves
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


@pytest.mark.parametrize("name", list(CHANGES))
def test_what_is_told_is_what_happens(name: str) -> None:
    config, wanted, cause = CHANGES[name]
    told = kept(world(2), config)
    assert set(steps(told).values()) == {wanted}
    assert cause in str(told.causes[0]), told.causes
    assert told.causes[0].config == name_of(config)


# -- who waits, who is refused ----------------------------------------------------------------------------------------


def rests(one: PoolWorld, seconds: float) -> Happened:
    """Nothing happens to any node for so long."""
    observed = Happened(one)
    before = {name: annotations_of(node).get(CURRENT) for name, node in one.nodes().items()}
    one.driver.advance(seconds)
    observed.look()
    assert not observed.waves and not observed.steps()
    assert {name: annotations_of(node).get(CURRENT) for name, node in one.nodes().items()} == before
    return observed


def test_a_change_that_cannot_be_taken_on_is_told_with_its_config_its_field_and_the_way_out() -> None:
    one = world(2)
    directory = {"ignition": {"version": "3.2.0"}, "storage": {"directories": [{"path": "/var/x"}]}}
    config = machine_config("99-folders", directory)
    impact = foretold(one, config)
    told = of(impact)
    assert impact.verdict is Verdict.REFUSED and not told.nodes and told.before == told.after
    (refusal,) = told.refused
    assert refusal.about == "MachineConfig 99-folders"
    assert "ignition directories section contains changes" in refusal.message
    assert refusal.fix == "take storage.directories out; files make their directories"
    applied(one, config)
    rests(one, 120)
    assert one.condition("RenderDegraded")["message"].endswith(refusal.message)


def test_a_paused_pool_says_nothing_until_resumed_and_what_follows_then() -> None:
    one = world(2)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    first, second = machine_config("99-a", files(("/etc/a", "a"))), machine_config("99-b", None, kernelArguments=["b"])
    applied(one, first)
    rests(one, 60)
    impact = foretold(one, second)
    told = of(impact)
    assert impact.verdict is Verdict.BLOCKED and told.paused
    assert "nothing happens until it is resumed; then 2 nodes drain and reboot" in told.sentence()
    assert told.pending == 2 and "2 nodes have an update to come already, and both are one" in told.sentence()
    assert {(str(cause), cause.pending) for cause in told.causes} == {
        ("file /etc/a added", True),
        ("kernelArguments + b", False),
    }
    applied(one, second)
    rests(one, 600)
    observed = Happened(one)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": False}})
    observed.until(lambda: one.updated(told.after))
    assert (steps(told), waves(told)) == (observed.steps(), observed.waves)


def test_an_update_under_way_is_none_of_the_change_and_told_once() -> None:
    one = world(3)
    applied(one, machine_config("99-a", files(("/etc/a", "a"))))
    one.driver.until(
        lambda: any(annotations_of(node).get(STATE) == "Working" for node in one.nodes().values()), limit_s=300
    )
    told = of(foretold(one, machine_config("99-b", files(("/etc/b", "b")))))
    assert told.nodes[0].starts_s == 0
    assert [(str(cause), cause.config, cause.pending) for cause in told.causes] == [
        ("file /etc/a added", "99-a", True),
        ("file /etc/b added", "99-b", False),
    ]
    assert told.sentence().count("/etc/a") == 1


def test_a_pool_that_is_held_goes_on_when_the_hold_ends() -> None:
    one = world(2)
    one.hold(minutes=30)
    config = machine_config("99-a", files(("/etc/a", "a")))
    told = of(foretold(one, config))
    assert told.held.startswith("Hold mine of ann until ")
    starts = told.nodes[0].starts_s
    assert starts is not None and abs(starts - 30 * 60) < 15
    applied(one, config)
    rests(one, 29 * 60)
    observed = Happened(one)
    observed.until(lambda: one.updated(told.after))
    assert (steps(told), waves(told)) == (observed.steps(), observed.waves)


def test_nodes_go_in_the_order_given_canaries_first_and_as_many_as_may() -> None:
    one = world(4)
    one.merge(f"{NODES}/worker-2", {"metadata": {"annotations": {ORDER: "-1"}}})
    for zone, node in (("b", "worker-0"), ("a", "worker-3")):
        one.merge(f"{NODES}/{node}", {"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}})
    notes = {"metadata": {"annotations": {CANARIES: "1"}}, "spec": {"maxUnavailable": 2}}
    one.merge(f"{POOLS}/worker", notes)
    one.driver.advance(10)
    told = kept(one, machine_config("99-a", files(("/etc/a", "a"))))
    assert waves(told)[0] == {"worker-2"} and waves(told)[1] == {"worker-3", "worker-0"}
    assert told.limit == 2 and ", 2 at a time," in told.sentence()


def test_a_custom_pool_takes_its_own_configs_and_those_of_the_workers() -> None:
    one = world(2)
    one.send("POST", POOLS, pool("infra", "worker", "infra"))
    one.add_node("infra-0", "worker", "infra", born="")
    one.driver.until(lambda: one.counts("infra")[0] == 1 and one.counts("infra")[1] == 1, limit_s=300)
    mine = machine_config("50-infra", files(("/etc/containers/policy.json", "x")), role="infra")
    impact = foretold(one, mine)
    assert [told.name for told in impact.pools] == ["infra"]
    assert steps(of(impact, "infra")) == {"infra-0": ("reload crio.service",)}
    both = machine_config("51-all", files(("/etc/all", "x")))
    impact, observed = foretold(one, mine, both), Happened(one)
    applied(one, mine, both)
    observed.until(lambda: all(one.updated(of(impact, name).after, name) for name in ("infra", "worker")))
    assert steps(of(impact, "infra")) | steps(of(impact)) == observed.steps()
    assert steps(of(impact, "infra")) == {"infra-0": ("drain", "reboot")}


def test_nodes_that_are_cordoned_are_left_out_and_take_a_place() -> None:
    one = world(3)
    one.merge(f"{NODES}/worker-1", {"spec": {"unschedulable": True}})
    config = machine_config("99-a", files(("/etc/a", "a")))
    impact = foretold(one, config)
    assert impact.verdict is Verdict.BLOCKED and not any(node.steps for node in of(impact).nodes)
    two = {"spec": {"maxUnavailable": 2}}
    one.merge(f"{POOLS}/worker", two)
    told = of(foretold(one, config))
    assert "node worker-1 waits: node worker-1 is reporting Unschedulable" in told.sentence()
    observed = Happened(one)
    applied(one, config)
    one.driver.until(lambda: bool(observed.look()) or one.counts()[1] == 2, limit_s=3600)
    rested = {node.node: node.steps for node in told.nodes if node.state is State.DONE}
    assert (rested, waves(told)) == (observed.steps(), observed.waves)


def test_a_drain_that_cannot_finish_is_told_with_its_chain_and_what_would_help() -> None:
    one = world(1)
    one.merge(f"{POOLS}/worker", {"spec": {"maxUnavailable": 1}})
    router(one)
    config = machine_config("99-a", files(("/etc/a", "a")))
    quiet = machine_config("99-a", files(("/etc/containers/policy.json", "x")))
    assert foretold(one, quiet).verdict is Verdict.CHANGES, "what needs no drain is not blocked by one"
    impact = foretold(one, config)
    (node,) = of(impact).nodes
    assert (impact.verdict, node.state, node.ends_s) == (Verdict.BLOCKED, State.BLOCKED, None)
    assert node.reason.startswith("the drain of node worker-0 cannot finish")
    assert "eviction of pod openshift-ingress/router-default-" in node.reason
    assert any(fix.startswith("add a worker node like worker-0") for fix in node.fixes)
    applied(one, config)
    one.driver.advance(300)
    assert one.condition("DrainBlocked")["message"].startswith(node.reason)


# -- other ways to say it ---------------------------------------------------------------------------------------------


def test_policies_limits_and_configs_of_one_change_are_weighed_together() -> None:
    one = world(2)
    knobs = {"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration", "metadata": {"name": "cluster"}}
    restart = {"type": "Restart", "restart": {"serviceName": "a.service"}}
    policy = {
        "files": [
            {"path": "/etc/motd", "actions": [{"type": "None"}]},
            {"path": "/etc/issue", "actions": [{"type": "Drain"}, restart]},
        ]
    }
    knobs |= {"spec": {"managementState": "Managed", "nodeDisruptionPolicy": policy}}  # type: ignore[dict-item]
    config = machine_config("99-motd", files(("/etc/motd", "hello")))
    alone, together = of(foretold(one, config)), of(foretold(one, knobs, config))
    assert {alone.action, together.action} == {"reboot", "none"}
    assert together.causes[0].why == "policy for /etc/motd"
    assert waves(together) == waves(alone) == [{"worker-0"}, {"worker-1"}]
    wide = dict(one.get(f"{POOLS}/worker")) | {"spec": {"maxUnavailable": "100%"}}
    assert waves(of(foretold(one, knobs, wide, config))) == [{"worker-0", "worker-1"}]
    told = kept(one, knobs, config)
    assert set(steps(told).values()) == {("none",)}
    told = kept(one, machine_config("99-issue", files(("/etc/issue", "hello"))))
    assert set(steps(told).values()) == {("drain", "restart a.service")}
    gone = foretold(one, delete=("99-motd",))
    assert (gone.changed, of(gone).action, str(of(gone).causes[0])) == (
        ("- 99-motd",),
        "none",
        "file /etc/motd removed",
    )


def test_a_kubelet_config_is_known_by_the_machine_config_that_is_made_of_it() -> None:
    one = world(1)
    selector = {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}}
    spec = {"machineConfigPoolSelector": selector, "kubeletConfig": {"maxPods": 400}}
    good = {"apiVersion": f"{GROUP}/v1", "kind": "KubeletConfig", "metadata": {"name": "more-pods"}, "spec": spec}
    impact = foretold(one, good)
    assert impact.changed == ("+ 99-worker-generated-kubelet",)
    assert of(impact).causes[0].origin == "KubeletConfig more-pods"
    one.send("POST", f"{APIS}/kubeletconfigs", good)
    one.until_updated(of(impact).after)
    assert foretold(one).verdict is Verdict.NOTHING
    bad = good | {"spec": spec | {"kubeletConfig": {"cgroupDriver": "cgroupfs"}}}
    (refused,) = foretold(one, bad).refused
    assert refused.about == "KubeletConfig more-pods" and "cgroupDriver" in refused.message


def test_mirrors_of_registries_reload_or_drain_as_their_contents_ask_for() -> None:
    one = world(2)
    release = {"spec": {"releaseImage": f"quay.io/x/release@sha256:{'0' * 64}"}}
    one.merge(f"{APIS}/controllerconfigs/machine-config-controller", release)
    api = "config.openshift.io/v1"
    image = {"apiVersion": api, "kind": "Image", "metadata": {"name": "cluster"}, "spec": {}}
    one.send("POST", f"/apis/{api}/images", image)
    one.driver.advance(60)
    for kind, field, source, wanted in (
        ("ImageDigestMirrorSet", "imageDigestMirrors", "quay.io/a", ("reload crio",)),
        ("ImageTagMirrorSet", "imageTagMirrors", "quay.io/b", ("drain", "reload crio")),
    ):
        spec = {field: [{"source": source, "mirrors": ["mirror.example/x"]}]}
        mirrors = {"apiVersion": api, "kind": kind, "metadata": {"name": "m"}, "spec": spec}
        told, observed = of(foretold(one, mirrors)), Happened(one)
        one.send("POST", f"/apis/{api}/{kind.lower()}s", mirrors)
        observed.until(lambda told=told: one.updated(told.after))  # type: ignore[misc]
        assert (steps(told), waves(told)) == (observed.steps(), observed.waves)
        assert set(steps(told).values()) == {wanted}


def test_what_was_measured_here_is_what_is_told() -> None:
    one = world(2)
    first = kept(one, machine_config("99-a", files(("/etc/a", "a"))))
    assert not first.pace.reboot.measured and first.used == {"drain", "write", "reboot"}
    observed = Happened(one)
    told = of(foretold(one, machine_config("99-b", files(("/etc/b", "b")))))
    assert told.pace.reboot.updates == 2
    began = one.clock.now()
    applied(one, machine_config("99-b", files(("/etc/b", "b"))))
    observed.until(lambda: one.updated(told.after))
    lasted = (one.clock.now() - began).total_seconds()
    assert told.ends_s is not None and abs(told.ends_s - lasted) < 45, (told.pace, lasted)


PARTS: dict[str, Obj] = {
    "keys": keys("ssh-rsa AAAA you"),
    "policy": files(("/etc/containers/policy.json", "other")),
    "registries": registries(MIRROR),
    "blocked": registries(BLOCKED),
    "nmstate": files(("/etc/nmstate/openshift/cluster.yml", "x")),
    "file": files(("/etc/some", "x")),
    "unit": unit("some.service"),
    "argument": {},
}


@pytest.fixture(scope="module")
def pair() -> PoolWorld:
    """Two workers on which one change follows another; of one test."""
    return world(2)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.sets(st.sampled_from(sorted(PARTS)), max_size=3), st.integers(1, 2))
def test_whatever_changes_what_is_told_is_what_happens(pair: PoolWorld, parts: set[str], limit: int) -> None:
    """Each example takes back what the one before brought."""
    pair.merge(f"{POOLS}/worker", {"spec": {"maxUnavailable": limit}})
    wanted = [
        machine_config(f"60-{name}", PARTS[name] or None, **({} if PARTS[name] else {"kernelArguments": ["quiet"]}))
        for name in sorted(parts)
    ]
    there = {name_of(each) for each in pair.get(CONFIGS)["items"] if name_of(each).startswith("60-")}
    gone = tuple(sorted(there - {name_of(each) for each in wanted}))
    fresh = [each for each in wanted if name_of(each) not in there]
    impact, observed = foretold(pair, *fresh, delete=gone), Happened(pair)
    applied(pair, *fresh)
    for name in gone:
        pair.send("DELETE", f"{CONFIGS}/{name}")
    if impact.verdict is Verdict.NOTHING:
        rests(pair, 60)
        return
    told = of(impact)
    observed.until(lambda: pair.updated(told.after))
    assert (steps(told), waves(told)) == (observed.steps(), observed.waves)


# -- as people read it ------------------------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden"
RENDERED = re.compile(r"rendered-([a-z]+)-[0-9a-f]{32}")


def printed(impact: Impact) -> str:
    """What is made of content or chance, and words of drains, as placeholders."""
    text = describe_impact(impact)
    for node in (one for told in impact.pools for one in told.nodes if one.state is State.BLOCKED):
        text = text.replace(node.reason, "<why its drain cannot finish>")
        for fix in node.fixes:
            text = text.replace(fix, "<a way out>")
    return RENDERED.sub(r"rendered-\1-<digest>", text) + "\n"


def impacts() -> dict[str, Impact]:
    """One cluster, asked for changes that are of every sort."""
    one = world(3)
    one.merge(f"{POOLS}/worker", {"spec": {"maxUnavailable": 2}})
    router(one, replicas=3, budget={"maxUnavailable": 0})
    motd, args = files(("/etc/motd", "x"), ("/etc/containers/policy.json", "x")), {"kernelArguments": ["nosmt"]}
    found = {
        "reload": foretold(one, machine_config("99-policy", files(("/etc/containers/policy.json", "x")))),
        "blocked": foretold(one, machine_config("99-motd", motd, **args)),
        "refused": foretold(one, machine_config("99-fips", files(("/etc/motd", "x")), fips=True)),
        "nothing": foretold(one, machine_config("99-else", motd, role="other")),
    }
    one.send("DELETE", "/apis/policy/v1/namespaces/openshift-ingress/poddisruptionbudgets/router-default")
    return found | {"reboot": foretold(one, machine_config("99-motd", motd, **args))}


def test_what_is_printed_is_what_people_read_aloud() -> None:
    for name, impact in impacts().items():
        golden = GOLDEN / f"impact-{name}.txt"
        assert printed(impact) == golden.read_text(encoding="utf-8"), name
        assert json.loads(json.dumps(impact.to_obj())) == impact.to_obj(), "plain JSON"
