"""A cluster with simulated machines whose agents run AnsibleConfigs, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.machineconfig.rendering import pool
from tests.machineconfig.room import APIS, CRDS, NODES, POOLS, PoolWorld

from syncline.assembly.machines.ansible import ansible_role
from syncline.assembly.machines.role import MachineConfigSettings
from syncline.assembly.roles import SimulatedDriver, start
from syncline.kube.kinds.ansible import ansible_config_crd
from syncline.kube.objects import Obj, annotations_of, dig
from syncline.machineconfig.ansible.content import File
from syncline.machineconfig.ansible.journal import REPORT, Entry, reported
from syncline.machineconfig.ansible.reading import Found, Wanted
from syncline.machineconfig.names import REASON, STATE

CONFIGS = "/apis/syncline.dev/v1alpha1/ansibleconfigs"
MACHINE_CONFIGS = f"{APIS}/machineconfigs"
SITE = """\
- hosts: all
  tasks:
    - name: the message
      ansible.builtin.copy: {content: "%s", dest: /etc/motd}
    - name: the service
      ansible.builtin.service: {name: chronyd, state: started}
      tags: [syncline.drain]
"""


class Repository:
    """One repository in memory."""

    def __init__(self) -> None:
        self.commit = "a" * 40
        self.texts: dict[str, str] = {"site.yml": SITE % "hello"}
        self.error = ""
        self.reads = 0

    def playbook(self, _wanted: Wanted, now: datetime) -> Found:
        self.reads += 1
        files = {path: File(text.encode()) for path, text in self.texts.items()}
        return Found(now, error=self.error) if self.error else Found(now, self.commit, files=files)

    def push(self, commit: str, **texts: str) -> None:
        self.commit = commit * 40
        self.texts |= {f"{name}.yml": text for name, text in texts.items()}


class AnsibleWorld(PoolWorld):
    def __init__(self, nodes: int = 3, **pool_spec: Any) -> None:
        super().__init__({}, renders=True, machines=True)
        self.repository = Repository()
        self.send("POST", CRDS, ansible_config_crd())
        self.driver.advance(1)
        driver = SimulatedDriver(self.clock, self.journal, self.admin, self.order, strict=True)
        start(ansible_role(MachineConfigSettings(self.settings.control_namespace), self.repository), driver)
        self.driver.add(driver.actor)
        for name in ("master", "worker"):
            self.send("POST", POOLS, pool(name))
        if pool_spec:
            self.merge(f"{POOLS}/worker", {"spec": pool_spec})
        self.driver.until(lambda: self.wanted() != "", limit_s=120)
        for index in range(nodes):
            self.add_node(f"worker-{index}", "worker")
        self.driver.until(lambda: self.updated(self.wanted()) and self.counts()[0] == nodes, limit_s=900)

    def wanted(self) -> str:
        return str(dig(self.get(f"{POOLS}/worker"), "spec", "configuration", "name", default=""))

    def ask(self, name: str = "motd", *, fate: str = "", **spec: Any) -> None:
        """Make an AnsibleConfig."""
        spec = {"repository": {"repoURL": "https://git.example/a"}, "pool": "worker"} | spec
        if "role" not in spec:
            spec.setdefault("playbook", "site.yml")
        notes = {"syncline.dev/simulated-outcome": fate} if fate else {}
        self.make(CONFIGS, "AnsibleConfig", name, spec, annotations=notes)

    def get_machine_configs(self) -> Obj:
        return self.get(MACHINE_CONFIGS)

    def config(self, name: str = "motd") -> Obj:
        return self.get(f"{CONFIGS}/{name}")

    def says(self, kind: str, name: str = "motd") -> Mapping[str, Any]:
        found = dig(self.config(name), "status", "conditions", default=[])
        return next((one for one in found if one["type"] == kind), {})

    def applied(self, count: int, name: str = "motd") -> bool:
        return bool(dig(self.config(name), "status", "applied", default=0) == count)

    def until_applied(self, count: int = 3, name: str = "motd", limit_s: float = 7200) -> float:
        return self.driver.until(lambda: self.applied(count, name) and self.all_done(), limit_s=limit_s)

    def all_done(self) -> bool:
        return {annotations_of(one).get(STATE) for one in self.nodes().values()} == {"Done"} and self.updated(
            self.wanted()
        )

    def entry(self, node: str, name: str = "motd") -> Entry:
        return reported(annotations_of(self.get(f"{NODES}/{node}")).get(REPORT, ""))[name]

    def reason(self, node: str) -> str:
        return annotations_of(self.get(f"{NODES}/{node}")).get(REASON, "")
