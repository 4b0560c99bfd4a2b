"""The rights of a role in ``deploy/`` are what its story asks for: no less, and no rule too many."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from tests.assembly.test_deploy import manifests

from syncline.assembly.embedded.install import ensure_objects, install_missing, not_established
from syncline.assembly.machines.ansible import with_playbooks
from syncline.assembly.machines.objects import foreign_machineconfig_objects
from syncline.assembly.machines.role import MachineConfigSettings, machineconfig_role
from syncline.assembly.machines.simulatedhosts import SimulatedHosts
from syncline.assembly.roles import Role, SimulatedDriver, start
from syncline.cluster.access.authz import Decision
from syncline.cluster.access.rbac import Attributes, rules_of
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.machines.kubelet.node import node_object
from syncline.cluster.machines.machine import MachineSpec
from syncline.control.executor import run_in_place
from syncline.control.leader import LeaderSettings, Share, release_all, share_round
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.controller import agent_controller
from syncline.machineconfig.ansible.content import File
from syncline.machineconfig.ansible.reading import Found, Wanted
from syncline.machineconfig.pinned.controller import pinned_images_controller
from syncline.rehearsal.world import World

GROUP = "machineconfiguration.openshift.io"
MCO = f"/apis/{GROUP}/v1"
CONFIG = "/apis/config.openshift.io/v1"
MERGE = "application/merge-patch+json"
WORKER = {"node-role.kubernetes.io/worker": ""}


class _NoSources:
    def read(self, *_: Any) -> Any:
        raise AssertionError("no Application here")


class _Playbooks:
    def __init__(self) -> None:
        self.learned = 0

    def playbook(self, _wanted: Wanted, now: datetime) -> Found:
        text = b"- hosts: all\n  tasks: [{name: a, command: x}]\n"
        return Found(now, "a" * 40, files={"site.yml": File(text)})

    def learn(self, _book: Any) -> None:
        self.learned += 1

    def learn_rules(self, _rules: Any) -> None: ...

    def learn_reach(self, _reach: Any) -> None: ...


class Machines:
    """The machine-config controllers with the rights of ``machineconfig.yaml`` alone, agents with all rights, and
    everything that the account asked for."""

    def __init__(self, rights: list[Obj]) -> None:
        settings = MachineConfigSettings()
        self.world = World(_NoSources(), nodes=0)  # type: ignore[arg-type]
        core = self.world.core
        run_in_place(ensure_objects(rights), self.world.admin)
        self.playbooks = _Playbooks()
        role = with_playbooks(machineconfig_role(settings), settings, self.playbooks, learner=self.playbooks)
        self.account = role.user
        self.asked: dict[Attributes, bool] = {}
        decide = core.authorizer.decide

        def recording(user: UserInfo, asked: Attributes) -> Decision:
            decision = decide(user, asked)
            if user.name == self.account.name:
                self.asked[asked] = decision.allowed
            return decision

        core.authorizer.decide = recording  # type: ignore[method-assign]
        self.transport = core.transport(self.account)
        definitions = foreign_machineconfig_objects(settings)
        while definitions:
            definitions = run_in_place(install_missing(definitions), self.transport)
            self.world.driver.advance(1)
        crds = [obj for obj in foreign_machineconfig_objects(settings) if obj["kind"] == "CustomResourceDefinition"]
        assert run_in_place(not_established(crds), self.transport) == []
        self.add(role, self.account)
        hosts = SimulatedHosts(self.world.machines.room.machines, self.world.clock)
        both = machineconfig_role(settings, hosts=hosts)
        self.add(replace(both, controllers=(agent_controller(hosts), pinned_images_controller(hosts))), ADMIN)

    def add(self, role: Role, user: UserInfo) -> None:
        driver = SimulatedDriver(self.world.clock, self.world.journal, self.world.core.transport(user), strict=True)
        start(role, driver)
        self.world.driver.add(driver.actor)

    def story(self) -> None:
        """Two workers get a kubelet config and a file; a pod leaves before; one node is taken away."""
        send, driver = self.world.send, self.world.driver
        for name in ("worker-0", "worker-1"):
            send("POST", "/api/v1/nodes", node_object(MachineSpec(name, labels=WORKER)))
        driver.advance(120)
        pods = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web"}]}}
        web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
        send("POST", "/apis/apps/v1/namespaces/default/deployments", web | {"spec": pods | {"template": template}})
        driver.advance(60)
        self.lease()
        workers = {"machineConfigPoolSelector": {"matchLabels": {f"pools.operator.{GROUP}/worker": ""}}}
        self.make(MCO, "KubeletConfig", "big", workers | {"kubeletConfig": {"maxPods": 100}})
        self.make(MCO, "ContainerRuntimeConfig", "big", workers | {"containerRuntimeConfig": {"pidsLimit": 2000}})
        mirror = {"source": "quay.io/a", "mirrors": ["registry.example/a"]}
        self.make(CONFIG, "ImageDigestMirrorSet", "a", {"imageDigestMirrors": [mirror]})
        self.make(
            CONFIG, "Node", "cluster", {"cgroupMode": "v2", "workerLatencyProfile": "MediumUpdateAverageReaction"}
        )
        image = "quay.io/a/b@sha256:" + "0" * 64
        self.make(MCO, "PinnedImageSet", "a", {"pinnedImages": [{"name": image}]}, **{f"{GROUP}/role": "worker"})
        site = {"repository": {"repoURL": "https://git.example/a"}, "pool": "worker", "playbook": "site.yml"}
        self.make("/apis/syncline.dev/v1alpha1", "AnsibleConfig", "a", site)
        driver.advance(1200)
        for version in range(3):
            self.motd(version)
            driver.advance(1500)
        changed = {"spec": {"configuration": {}, "kubeletConfig": {"maxPods": 120}}}
        send("PATCH", f"{MCO}/kubeletconfigs/big", changed, MERGE)
        rendered = send("GET", f"{MCO}/machineconfigpools/worker")["spec"]["configuration"]["name"]
        send("PATCH", f"{MCO}/machineconfigs/{rendered}", {"spec": {"fips": True}}, MERGE)
        driver.advance(60)
        for kind in ("kubeletconfigs", "containerruntimeconfigs"):
            send("DELETE", f"{MCO}/{kind}/big")
        send("DELETE", "/api/v1/nodes/worker-1")
        driver.advance(1500)

    def motd(self, version: int) -> None:
        file = {"path": "/etc/motd", "contents": {"source": f"data:,{version}"}}
        spec = {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [file]}}}
        if version:
            path = f"{MCO}/machineconfigs/99-motd"
            self.world.send("PATCH", path, {"spec": spec}, MERGE)
        else:
            self.make(MCO, "MachineConfig", "99-motd", spec, **{f"{GROUP}/role": "worker"})

    def make(self, api: str, kind: str, name: str, spec: Obj, **labels: str) -> None:
        body = {"apiVersion": api.removeprefix("/apis/"), "kind": kind, "metadata": {"name": name, "labels": labels}}
        self.world.send("POST", f"{api}/{kind.lower()}s", body | {"spec": spec})

    def lease(self) -> None:
        """One replica takes its Lease, renews it, and gives it back."""
        leader, now = LeaderSettings("a", "argocd", name="syncline-machineconfig-controller"), self.world.clock.now()
        share = run_in_place(share_round(Share(), leader, now), self.transport)
        share = run_in_place(share_round(share, leader, now), self.transport)
        assert share.held and not share.trouble
        run_in_place(release_all(share, leader, now), self.transport)

    def done(self) -> bool:
        node = self.world.send("GET", "/api/v1/nodes/worker-0")
        notes, pool = node["metadata"]["annotations"], self.world.send("GET", f"{MCO}/machineconfigpools/worker")
        return bool(notes[f"{GROUP}/currentConfig"] == pool["spec"]["configuration"]["name"])


@pytest.fixture(scope="module")
def asked() -> dict[Attributes, bool]:
    machines = Machines(manifests("machineconfig.yaml"))
    machines.story()
    assert machines.done() and machines.playbooks.learned
    applied = machines.world.send("GET", "/apis/syncline.dev/v1alpha1/ansibleconfigs/a")["status"]["applied"]
    assert applied == 1, "worker-1 is gone"
    return machines.asked


def test_the_machine_config_controllers_are_refused_nothing(asked: dict[Attributes, bool]) -> None:
    assert [each for each, allowed in asked.items() if not allowed] == []


RULES = [
    (manifest["metadata"].get("namespace", ""), rule)
    for manifest in manifests("machineconfig.yaml")
    if manifest["kind"] in ("Role", "ClusterRole")
    for rule in manifest["rules"]
]


@pytest.mark.parametrize("dropped", range(len(RULES)))
def test_without_one_rule_something_is_refused(dropped: int, asked: dict[Attributes, bool]) -> None:
    kept = [(space, rules_of({"rules": [rule]})[0]) for n, (space, rule) in enumerate(RULES) if n != dropped]

    def allowed(one: Attributes) -> bool:
        return any(rule.allows(one) for space, rule in kept if space in ("", one.namespace))

    resources = [one for one in asked if one.resource]
    assert [one for one in resources if not allowed(one)], RULES[dropped]


def test_what_the_rights_lack_is_not_done() -> None:
    rights = manifests("machineconfig.yaml")
    role = next(each for each in rights if each["metadata"]["name"] == "syncline-machineconfig" and "rules" in each)
    role["rules"] = [rule for rule in role["rules"] if rule["resources"] != ["pods/eviction"]]
    machines = Machines(rights)
    machines.story()
    assert not machines.done()
    assert {one.full_resource for one, allowed in machines.asked.items() if not allowed} == {"pods/eviction"}
