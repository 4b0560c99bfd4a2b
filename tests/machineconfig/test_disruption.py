"""What a change costs a node, step by step: the real agent on simulated machines under the policies of a cluster
(reference machine-config 46 to 52, 60, 62, 65 to 67, 69, 71, 73, 74)."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.machineconfig.rendering import files, machine_config, thing
from tests.machineconfig.room import APIS, POOLS, RECORDS, PoolWorld
from tests.machineconfig.test_machines_updated import CLUSTER, CONFIGS, apply, host, reason, state, target, want, world

from syncline.cluster.machines.machine import Entry, EntryKind, Unit
from syncline.ignition.dataurl import decode_data_url
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.agent.hosts import FORCE_FILE
from syncline.machineconfig.agent.planning.notes import POST_ACTION
from syncline.machineconfig.names import CURRENT, DESIRED_DRAIN
from syncline.machineconfig.server.answering import Request, served
from syncline.machineconfig.server.joining import NODE_ANNOTATIONS
from syncline.machineconfig.server.world import World

REGISTRIES = "/etc/containers/registries.conf"
MIRROR = """
[[registry]]
  location = "registry.example/mine"

  [[registry.mirror]]
    location = "mirror.example/mine"
    pull-from-mirror = "{pull}"
"""
BEFORE = 'unqualified-search-registries = ["registry.example"]\n'


def policies(one: PoolWorld, **actions: list[Obj]) -> None:
    """``actions``: what happens when a path changes; slashes are double underscores."""
    listed = [{"path": path.replace("__", "/"), "actions": given} for path, given in actions.items()]
    spec = {"nodeDisruptionPolicy": {"files": listed}, "managementState": "Managed"}
    one.send("POST", CLUSTER, thing("MachineConfiguration", "cluster", spec, "operator.openshift.io/v1"))
    one.driver.advance(30)


def restart(name: str) -> Obj:
    return {"type": "Restart", "restart": {"serviceName": name}}


def disruption(one: PoolWorld, node: str = "worker-0") -> tuple[bool, int]:
    """Whether a drain was asked for, and how often the machine has booted since it joined."""
    return bool(one.events("Drain")), one.reboots()[node] - 1


def times(one: PoolWorld, reason: str) -> int:
    """Equal events are one event with a count."""
    return sum(each["count"] for each in one.get("/api/v1/events")["items"] if each["reason"] == reason)


def put(one: PoolWorld, path: str, text: str, **more: Any) -> None:
    host(one).machine.root.write(path, replace(Entry(EntryKind.FILE, text.encode()), **more))


def test_046_a_change_below_none_and_reload_policies_neither_drains_nor_reboots() -> None:
    one = world(1)
    written = files(("/etc/containers/policy.json", "%7B%7D"), ("/etc/nmstate/openshift/x.yml", "y"))
    one.until_updated(apply(one, machine_config("99-quiet", written)))
    assert disruption(one) == (False, 0)
    assert one.events("ServiceReload") == [
        "Config changes do not require reboot. Service crio.service was reloaded.",
    ]
    assert host(one).read("/etc/nmstate/openshift/x.yml") == b"y"


def test_047_a_file_without_a_policy_is_a_drain_and_a_reboot() -> None:
    one = world(1)
    pod = {"containers": [{"name": "x", "image": "x"}], "nodeName": "worker-0"}
    one.make("/api/v1/namespaces/default/pods", "Pod", "mine", pod)
    one.driver.advance(10)
    config = apply(one, machine_config("99-foo", files(("/etc/foo", "x"))))
    one.until_updated(config)
    assert disruption(one) == (True, 1)
    assert one.events("Drain") == ["Draining node to update config."]
    assert one.get("/api/v1/namespaces/default/pods")["items"] == [], "it was evicted"
    assert annotations_of(one.nodes()["worker-0"])[DESIRED_DRAIN] == f"uncordon-{config}"


def test_048_of_two_policies_that_cover_a_path_the_longer_one_decides() -> None:
    one = world(1)
    policies(one, __etc__foo=[{"type": "Reboot"}], __etc__foo__bar=[{"type": "None"}])
    one.until_updated(apply(one, machine_config("99-bar", files(("/etc/foo/bar/x", "1")))))
    assert disruption(one) == (False, 0)
    one.until_updated(apply(one, machine_config("99-baz", files(("/etc/foo/baz", "1")))))
    assert disruption(one) == (True, 1), "the shorter one governs what the longer one does not"


def test_049_nothing_and_a_restart_in_one_change_are_the_restart_alone() -> None:
    one = world(1)
    policies(one, __etc__quiet=[{"type": "None"}], __etc__mine=[restart("mine.service")])
    one.until_updated(apply(one, machine_config("99-two", files(("/etc/mine", "1"), ("/etc/quiet", "1")))))
    assert disruption(one) == (False, 0)
    assert one.events("ServiceRestart") == ["Config changes do not require reboot. Service mine.service was restarted."]
    assert not one.events("SkipReboot")
    assert host(one).machine.state.units["mine.service"].active


def test_050_a_file_that_goes_is_governed_as_one_that_changes() -> None:
    one = world(1)
    first = target(one)
    policies(one, __etc__mine=[restart("mine.service")])
    one.until_updated(apply(one, machine_config("99-mine", files(("/etc/mine", "1")))))
    one.send("DELETE", f"{CONFIGS}/99-mine")
    one.driver.until(lambda: target(one) == first, limit_s=60)
    one.until_updated(first)
    assert disruption(one) == (False, 0) and not host(one).exists("/etc/mine")
    assert times(one, "ServiceRestart") == 2


@pytest.mark.parametrize(("pull", "drained"), [("digest-only", False), ("tag-only", True)])
def test_051_mirrors_by_digest_reload_crio_and_those_by_tag_drain_before(pull: str, drained: bool) -> None:
    one = world(1)

    def registries(text: str) -> Obj:
        source = f"data:;base64,{base64.b64encode(text.encode()).decode()}"
        return files({"path": REGISTRIES, "mode": 0o644, "contents": {"source": source}})

    one.send("POST", CONFIGS, machine_config("98-registries", registries(BEFORE)))
    one.driver.advance(300)
    one.until_updated(target(one))
    boots, before = one.reboots(), (times(one, "Drain"), times(one, "ServiceReload"))
    one.until_updated(apply(one, machine_config("99-registries", registries(BEFORE + MIRROR.format(pull=pull)))))
    assert one.reboots() == boots
    assert (times(one, "Drain"), times(one, "ServiceReload")) == (before[0] + drained, before[1] + 1)
    assert pull in host(one).read(REGISTRIES).decode()


def test_052_and_065_a_service_that_does_not_come_up_takes_the_files_back_and_is_tried_again() -> None:
    one = world(1)
    first, boots = target(one), one.reboots()
    policies(one, __etc__mine=[restart("mine.service")])
    stored = host(one).read("/etc/machine-config-daemon/currentconfig")
    host(one).machine.set_unit(Unit("mine.service", masked=True))
    config = apply(one, machine_config("99-mine", files(("/etc/mine", "2"))))
    one.driver.until(lambda: state(one) == "Degraded", limit_s=600)
    assert reason(one).startswith("could not apply update: restarting mine.service service failed. Error: ")
    assert "Unit mine.service is masked." in reason(one)
    assert one.events("FailedServiceRestart")
    told = {each["type"]: each for each in one.get(f"{RECORDS}/worker-0")["status"]["conditions"]}
    assert told["NodeDegraded"]["status"] == "True" and reason(one) in told["NodeDegraded"]["message"]
    assert host(one).read("/etc/machine-config-daemon/currentconfig") == stored
    assert not host(one).exists("/etc/mine") and annotations_of(one.nodes()["worker-0"])[CURRENT] == first
    host(one).machine.set_unit(Unit("mine.service"))
    one.until_updated(config)
    assert host(one).read("/etc/mine") == b"2" and one.reboots() == boots and reason(one) == ""


def test_060_the_only_node_of_a_control_plane_is_not_drained_and_says_so() -> None:
    one = world(1)
    controller = f"{APIS}/controllerconfigs/machine-config-controller"
    one.merge(controller, {"spec": {"infra": {"status": {"controlPlaneTopology": "SingleReplica"}}}})
    pod = {"containers": [{"name": "x", "image": "x"}], "nodeName": "worker-0"}
    pod_uid = one.make("/api/v1/namespaces/default/pods", "Pod", "mine", pod)["metadata"]["uid"]
    one.driver.advance(30)
    one.until_updated(apply(one, machine_config("99-foo", files(("/etc/foo", "x")))))
    assert one.events("Drain") == ["Drain not required, skipping"] and not one.events("Cordon")
    assert one.reboots() == {"worker-0": 2}
    assert one.get("/api/v1/namespaces/default/pods/mine")["metadata"]["uid"] == pod_uid


def test_062_content_that_is_put_back_ends_drift_without_a_reboot_and_the_force_file_rewrites_all_with_one() -> None:
    one = world(1)
    config = apply(one, machine_config("99-motd", files(("/etc/motd", "hello"))))
    one.until_updated(config)
    one.at_rest()
    boots = one.reboots()
    for healed in (False, True):
        put(one, "/etc/motd", "edited")
        one.driver.advance(60)
        assert state(one) == "Degraded" and '"/etc/motd"' in reason(one)
        if healed:
            put(one, FORCE_FILE, "")
        else:
            put(one, "/etc/motd", "hello")
        one.driver.until(lambda: state(one) == "Done", limit_s=1200)
        assert host(one).read("/etc/motd") == b"hello"
        assert (one.reboots() != boots) is healed
    assert not host(one).exists(FORCE_FILE) and one.events("Drain")


def test_066_a_file_of_the_system_comes_back_when_its_config_goes_and_any_other_goes() -> None:
    one = world(1)
    first = target(one)
    shipped = {"mode": 0o600, "group": "core"}
    put(one, "/usr/etc/shipped.conf", "of the system")
    put(one, "/etc/shipped.conf", "of the system", **shipped)
    one.until_updated(apply(one, machine_config("99-a", files(("/etc/shipped.conf", "ours"), ("/etc/other", "x")))))
    assert host(one).read("/etc/shipped.conf") == b"ours"
    one.send("DELETE", f"{CONFIGS}/99-a")
    one.driver.until(lambda: target(one) == first, limit_s=60)
    one.until_updated(first)
    restored = host(one).machine.root.read("/etc/shipped.conf")
    assert restored == Entry(EntryKind.FILE, b"of the system", **shipped)  # type: ignore[arg-type]
    assert not host(one).exists("/etc/other")


def test_067_a_file_that_an_administrator_made_is_lost_with_the_config_that_took_it_over() -> None:
    one = world(1)
    first = target(one)
    put(one, "/etc/by-hand", "precious")
    one.until_updated(apply(one, machine_config("99-a", files(("/etc/by-hand", "ours")))))
    one.send("DELETE", f"{CONFIGS}/99-a")
    one.driver.until(lambda: target(one) == first, limit_s=60)
    one.until_updated(first)
    assert not host(one).exists("/etc/by-hand")


def test_069_a_machine_that_joins_gets_the_proven_config_until_one_node_has_the_new_one() -> None:
    one = world(2)
    first = target(one)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    config = apply(one, machine_config("99-foo", files(("/etc/foo", "x"))))
    one.driver.advance(10)
    assert asked(one) == first and config != first, "nobody has the new one yet"
    one.add_node("worker-2", "worker", born="")
    one.driver.advance(30)
    assert annotations_of(one.nodes()["worker-2"])[CURRENT] == first and not host(one, "worker-2").exists("/etc/foo")
    one.merge(f"{POOLS}/worker", {"spec": {"paused": False}})
    one.driver.until(lambda: one.counts()[1] == 1, limit_s=1200)
    assert asked(one) == config
    one.add_node("worker-3", "worker", born="")
    one.driver.advance(30)
    assert annotations_of(one.nodes()["worker-3"])[CURRENT] == config and one.reboots()["worker-3"] == 1
    assert host(one, "worker-3").read("/etc/foo") == b"x"


def asked(one: PoolWorld) -> str:
    """Name of the rendered config that the config server gives to a machine of the pool worker."""
    configs = {name_of(each): each for each in one.get(CONFIGS)["items"]}
    controller = one.get(f"{APIS}/controllerconfigs/machine-config-controller")
    where = World({"worker": one.get(f"{POOLS}/worker")}, configs, controller, "kubeconfig")
    answer = served(Request("GET", "/config/worker", "application/vnd.coreos.ignition+json;version=3.5.0"), where)
    assert answer.status == 200, answer.why
    notes = next(each for each in json.loads(answer.body)["storage"]["files"] if each["path"] == NODE_ANNOTATIONS)
    return str(json.loads(decode_data_url(notes["contents"]["source"]))[CURRENT])


def test_071_a_rotated_authority_reaches_the_nodes_of_a_paused_pool_without_a_reboot() -> None:
    one = world(2)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    first, boots = target(one), one.reboots()
    bundle = {"file": "registry.example..5000", "data": base64.b64encode(b"mine").decode()}
    new = {
        "kubeAPIServerServingCAData": base64.b64encode(b"new authority").decode(),
        "internalRegistryPullSecret": base64.b64encode(b'{"auths":{}}').decode(),
        "imageRegistryBundleData": [bundle],
    }
    put(one, "/etc/docker/certs.d/gone.example/ca.crt", "old")
    one.merge(f"{APIS}/controllerconfigs/machine-config-controller", {"spec": new})
    one.driver.advance(60)
    for node in ("worker-0", "worker-1"):
        assert host(one, node).read("/etc/kubernetes/kubelet-ca.crt") == b"new authority\n"
        assert state(one, node) == "Done"
    secret = host(one).stat("/etc/mco/internal-registry-pull-secret.json")
    assert secret is not None and secret.mode == 0o600
    assert host(one).names("/etc/docker/certs.d") == ["registry.example:5000"]
    assert host(one).read("/etc/docker/certs.d/registry.example:5000/ca.crt") == b"mine"
    assert not host(one, "worker-1").exists("/etc/docker/certs.d"), "a system without the folder keeps none"
    assert (target(one), one.reboots(), one.events("Drain")) == (first, boots, [])


def test_071_an_authority_that_is_none_degrades_the_node_and_names_the_field() -> None:
    one = world(1)
    controller = f"{APIS}/controllerconfigs/machine-config-controller"
    one.merge(controller, {"spec": {"imageRegistryBundleData": [{"file": "../../etc", "data": "YQ=="}]}})
    one.driver.advance(30)
    assert state(one) == "Degraded" and "spec.imageRegistryBundleData[0].file" in reason(one)
    one.merge(controller, {"spec": {"imageRegistryBundleData": None}})
    one.driver.until(lambda: state(one) == "Done", limit_s=300)


class Told:
    """Every condition of a node's record, in the order in which it changed."""

    def __init__(self, one: PoolWorld, node: str) -> None:
        self.observed: list[tuple[str, str]] = []
        self._node, self._last = node, dict[str, str]()
        one.core.store.subscribe(self._note)

    def _note(self, event: object) -> None:
        stored = event.stored  # type: ignore[attr-defined]
        if stored.key.name == self._node and stored.key.resource.split("/")[-1] == "machineconfignodes":
            for each in dig(stored.obj, "status", "conditions", default=()):
                if self._last.get(each["type"]) != each["status"]:
                    self._last[each["type"]] = each["status"]
                    self.observed.append((each["type"], each["status"]))


def test_073_post_actions_are_complete_before_the_reset_and_never_after_a_reboot() -> None:
    one = world(1)
    told = Told(one, "worker-0")
    one.until_updated(apply(one, machine_config("99-quiet", files(("/etc/nmstate/openshift/x.yml", "y")))))
    one.at_rest()
    done, reset = (("UpdatePostActionComplete", status) for status in ("True", "False"))
    after = told.observed[told.observed.index(done) :]
    assert after.index(reset) < after.index(("Updated", "True")) + len(after), "it is reset with or before the end"
    assert ("RebootedNode", "True") not in told.observed
    told = Told(one, "worker-0")
    one.until_updated(apply(one, machine_config("99-foo", files(("/etc/foo", "x")))))
    one.at_rest()
    assert done not in told.observed and ("RebootedNode", "True") in told.observed
    assert annotations_of(one.nodes()["worker-0"])[POST_ACTION] == ""


def test_074_a_finished_update_leaves_updated_true_and_every_other_phase_false_with_its_last_words() -> None:
    one = world(1)
    config = apply(one, machine_config("99-foo", files(("/etc/foo", "x"))))
    one.until_updated(config)
    one.at_rest()
    conditions = {each["type"]: each for each in one.get(f"{RECORDS}/worker-0")["status"]["conditions"]}
    assert [kind for kind, each in conditions.items() if each["status"] != "False"] == ["Updated"]
    rebooted, drained = conditions["RebootedNode"]["message"], conditions["Drained"]["message"]
    assert rebooted == f"Action during update to {config}: Node has rebooted"
    assert drained.startswith(f"Action during update to {config}: ")
    want(one, config)
    one.driver.advance(60)
    assert state(one) == "Done", "it wants what it has"
