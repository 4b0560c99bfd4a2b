"""``python -m tools.plays``: an AnsibleConfig on three machines, with real agents and real runs of Ansible.

A cluster is served, a repository has commits, and three machines (``tools/plays/machine.py``) join the pool with the
kubeconfigs of nodes. What is done with them, and what has to be seen, is printed step by step; it ends at the first
deviation. Needs root and ansible-core; takes minutes.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.processes import Blocking, Running, free_port, running, syncline
from tools.plays.machine import Machine

GROUP = "machineconfiguration.openshift.io"
NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
CONFIG = "/apis/syncline.dev/v1alpha1/ansibleconfigs"
POOL = f"/apis/{GROUP}/v1/machineconfigpools/worker"
ADDRESS = "https://git.example.com/playbooks.git"
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")
MERGE = "application/merge-patch+json"
NAMES = ("node-a", "node-b", "node-c")
LIMIT_S, LOOK_S = 1800.0, 0.25
REPLICAS, AVAILABLE = 3, 2

SITE = """\
- hosts: all
  gather_facts: false
  tasks:
    - name: the message
      copy: {content: "%s\\n", dest: /etc/message}
      tags: [syncline.drain]
    - name: the limit
      lineinfile: {path: /etc/limits, line: "core 0", create: true}
    - name: the licence
      command: test -e /var/lib/licence
      changed_when: false
    - name: the index
      command: {cmd: make-index, creates: /var/lib/index}
    - name: a new boot
      reboot:
      when: inventory_hostname == "node-c"
    - name: after all
      copy: {content: "%s\\n", dest: /etc/after}
"""
NEVER_THE_SAME = "{{ lookup('pipe', 'date +%N') }}"
MAKE_INDEX = """\
#!/bin/sh
# On a machine that has a pipe it waits there, half done, until the power goes.
if test -p /var/lib/waits; then touch /var/lib/half; read -r x < /var/lib/waits; fi
touch /var/lib/index
"""


class Story:
    def __init__(self, cluster: Running, machines: dict[str, Machine], repository: Path) -> None:
        self._cluster, self._machines, self._repository = cluster, machines, repository
        self._api = Blocking(cluster)
        self._begun = time.monotonic()
        self._fewest = REPLICAS
        self._most_out = 0

    def play(self) -> None:
        for step in (
            self.joined,
            self.fails_half_way,
            self.loses_power_half_way,
            self.reboots_for_a_task,
            self.nothing_more_to_do,
            self.drifts,
            self.never_the_same,
            self.put_right,
        ):
            moment = time.monotonic()
            tell(f"\n== {step.__name__.replace('_', ' ')}")
            step()
            tell(f"== in {time.monotonic() - moment:.0f} s")
        self.check("never more than one node was out of service", self._most_out == 1, str(self._most_out))
        self.check(f"never fewer than {AVAILABLE} pods served", self._fewest == AVAILABLE, str(self._fewest))

    # -- steps ---------------------------------------------------------------------------------------------------------

    def joined(self) -> None:
        for name, machine in self._machines.items():
            command = syncline("node", "kubeconfig", name, "--kubeconfig", str(self._cluster.kubeconfig))
            subprocess.run([*command, "-o", str(machine.kubeconfig)], check=True, capture_output=True)
            machine.power_on()
        self.until("three nodes are in the pool", lambda: all(self.done(name) for name in NAMES))
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}
        spec = {"minAvailable": AVAILABLE, "selector": {"matchLabels": {"app": "web"}}}
        self.ask("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget | {"spec": spec})
        for name in NAMES:
            self.make_pod(name)
            if name != "node-a":
                self.file(name, "var/lib/licence").touch()
        self.until("the budget counts its pods", lambda: self.budget()["currentHealthy"] == REPLICAS)

    def fails_half_way(self) -> None:
        self.commit("first", "hello", "done")
        spec = {"repository": {"repoURL": ADDRESS, "targetRevision": "first"}, "pool": "worker"}
        spec |= {"playbook": "site.yml", "checkInterval": "1m"}
        config = {"apiVersion": "syncline.dev/v1alpha1", "kind": "AnsibleConfig", "metadata": {"name": "site"}}
        self.ask("POST", CONFIG, config | {"spec": spec})
        self.until("node-a is Degraded", lambda: "the licence" in self.reason("node-a"))
        reason = self.reason("node-a")
        self.say(reason)
        self.check(
            "it names task, place and node", "task 'the licence' (site.yml:9) failed on node-a" in reason, reason
        )
        before = "2 tasks changed the node: task 'the message' (site.yml:4), task 'the limit' (site.yml:7)"
        self.check("and what was done before", before in reason, reason)
        self.check("which is on its disk", self.file("node-a", "etc/limits").read_text() == "core 0\n", "")
        others = [name for name in NAMES[1:] if self.file(name, "etc/message").exists()]
        self.check("no other node was touched", not others, str(others))
        os.mkfifo(self.file("node-b", "var/lib/waits"))
        self.file("node-a", "var/lib/licence").touch()
        self.until("a further attempt has succeeded", lambda: self.applied("node-a"))

    def loses_power_half_way(self) -> None:
        machine = self._machines["node-b"]
        self.until("node-b is half way", lambda: self.file("node-b", "var/lib/half").exists())
        boots = machine.boots
        machine.cut_power()
        self.file("node-b", "var/lib/waits").unlink()
        machine.power_on()
        self.until("it has done the rest after the power came back", lambda: self.applied("node-b"))
        self.check("in one more boot", machine.boots == boots + 1, str(machine.boots))

    def reboots_for_a_task(self) -> None:
        boots = self._machines["node-c"].boots
        self.until("node-c has it", lambda: self.applied("node-c") and self.done("node-c"))
        self.check("after one reboot", self._machines["node-c"].boots == boots + 1, str(self._machines["node-c"].boots))
        self.check("the play went on after it", self.file("node-c", "etc/after").read_text() == "done\n", "")
        self.until("all nodes are in service", lambda: all(self.done(name) for name in NAMES))

    def nothing_more_to_do(self) -> None:
        """A check is a run that changes nothing; its time is in the journal of the machine."""
        before = {name: self.journal(name)["checkedAt"] for name in NAMES}
        self.until("each node was checked again", lambda: all(self.journal(n)["checkedAt"] != before[n] for n in NAMES))
        for name in NAMES:
            self.check(f"a further run would change nothing on {name}", self.applied(name), self.reason(name))

    def drifts(self) -> None:
        self.file("node-b", "etc/limits").write_text("core unlimited\n")
        self.until("the check of node-b finds it", lambda: "drift" in self.reason("node-b"))
        text = "AnsibleConfig site: drift: a run would change task 'the limit' (site.yml:7)"
        self.check("and names the task", self.reason("node-b") == text, self.reason("node-b"))
        self.check("nothing is repaired", "unlimited" in self.file("node-b", "etc/limits").read_text(), "")
        self.file("node-b", "etc/limits").write_text("core 0\n")
        self.until("it is well once it is put right", lambda: self.applied("node-b") and self.done("node-b"))

    def never_the_same(self) -> None:
        self.commit("second", "hello", NEVER_THE_SAME)
        self.choose("second")
        self.until("NotIdempotent", lambda: any("NotIdempotent" in self.reason(name) for name in NAMES))
        reason = next(found for name in NAMES if "NotIdempotent" in (found := self.reason(name)))
        self.say(reason)
        self.check("it names the task", "task 'after all' (site.yml:17)" in reason, reason)

    def put_right(self) -> None:
        self.commit("third", "hello again", "done")
        before = self.says("digest")
        self.choose("third")
        self.until("the commit is read", lambda: self.says("digest") != before)
        self.until("all nodes have it", lambda: all(self.applied(n) and self.done(n) for n in NAMES))
        self.say(self.output_of("ansible", "get", "site"))
        self.say(self.output_of("pool", "timeline", "worker"))

    # -- doing ---------------------------------------------------------------------------------------------------------

    def commit(self, tag: str, message: str, after: str) -> None:
        (self._repository / "site.yml").write_text(SITE % (message, after))
        for words in (("add", "-A"), ("commit", "-qm", tag), ("tag", tag)):
            subprocess.run(["git", *IDENTITY, "-C", str(self._repository), *words], check=True)

    def choose(self, tag: str) -> None:
        self.ask("PATCH", f"{CONFIG}/site", {"spec": {"repository": {"targetRevision": tag}}}, MERGE)

    def make_pod(self, node: str) -> None:
        """A pod of the machine's kubelet, which there is none of: we say that it runs."""
        labels = {"name": f"web-{node}", "labels": {"app": "web"}}
        spec = {"nodeName": node, "containers": [{"name": "web", "image": "web"}], "terminationGracePeriodSeconds": 0}
        self.ask("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": labels, "spec": spec})
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self.ask("PATCH", f"{PODS}/web-{node}/status", {"status": ready}, MERGE)

    def output_of(self, *words: str) -> str:
        command = syncline(*words, "--kubeconfig", str(self._cluster.kubeconfig))
        return "\n" + subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip()

    # -- looking -------------------------------------------------------------------------------------------------------

    def until(self, what: str, true: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            for machine in self._machines.values():
                machine.look()
            self.serve()
            if true():
                self.say(f"-> {what}")
                return
            time.sleep(LOOK_S)
        reasons = "; ".join(filter(None, (self.reason(name) for name in NAMES)))
        raise SystemExit(f"not seen within {LIMIT_S:g} s: {what}; {reasons}")

    def serve(self) -> None:
        """Count what is in service, and put pods back on nodes that are open again, as a kubelet and its owner do."""
        if self.budget() is None:
            return
        pods = {one["spec"]["nodeName"] for one in self.ask("GET", PODS)["items"]}
        out = [name for name in NAMES if self.node(name)["spec"].get("unschedulable")]
        self._fewest, self._most_out = min(self._fewest, len(pods)), max(self._most_out, len(out))
        for name in NAMES:
            if name not in pods and name not in out:
                self.make_pod(name)

    def budget(self) -> Any:
        found = self._find("/apis/policy/v1/namespaces/default/poddisruptionbudgets/web")
        return found and ({"currentHealthy": 0} | (found.get("status") or {}))

    def node(self, name: str) -> Any:
        return self._find(f"{NODES}/{name}") or {"metadata": {}, "spec": {}}

    def note(self, name: str, key: str) -> str:
        return str((self.node(name)["metadata"].get("annotations") or {}).get(f"{GROUP}/{key}", ""))

    def reason(self, name: str) -> str:
        return self.note(name, "reason")

    def done(self, name: str) -> bool:
        wanted = (self.ask("GET", POOL)["spec"].get("configuration") or {}).get("name", "")
        have = [self.note(name, key) for key in ("desiredConfig", "currentConfig")]
        closed = self.node(name)["spec"].get("unschedulable")
        return have == [wanted, wanted] and wanted != "" and self.note(name, "state") == "Done" and not closed

    def says(self, field: str) -> Any:
        return (self.ask("GET", f"{CONFIG}/site").get("status") or {}).get(field)

    def applied(self, name: str) -> bool:
        found = self.report(name)
        return found.get("phase") == "Applied" and found.get("digest") == self.says("digest")

    def report(self, name: str) -> Any:
        lines = self.says("nodeStatuses") or ()
        return next((one for one in lines if one["name"] == name), {})

    def journal(self, name: str) -> Any:
        return json.loads(self.file(name, "var/lib/syncline/ansible/journal.json").read_text())["plays"]["site"]

    def file(self, name: str, path: str) -> Path:
        return self._machines[name].root / path

    def ask(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        return self._again(lambda: self._api.send(method, path, body, content))

    def _find(self, path: str) -> Any:
        return self._again(lambda: self._api.find(path))

    def _again(self, send: Callable[[], Any]) -> Any:
        """A connection that was idle may have been closed by the server."""
        for _ in range(3):
            try:
                return send()
            except (OSError, http.client.HTTPException):
                self._api = Blocking(self._cluster)
        return send()

    def check(self, what: str, true: bool, found: str) -> None:
        if not true:
            raise SystemExit(f"NOT SO: {what}: {found}")
        self.say(f"-> {what}")

    def say(self, text: str) -> None:
        tell(f"{time.monotonic() - self._begun:7.1f} s  {text}")


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="plays-") as folder:
        place = Path(folder).resolve()
        repository = place / "repository"
        subprocess.run(["git", *IDENTITY, "init", "-q", str(repository)], check=True)
        (place / "gitconfig").write_text(f'[url "file://{repository}"]\n\tinsteadOf = {ADDRESS}\n')
        os.environ |= {"GIT_CONFIG_GLOBAL": str(place / "gitconfig"), "SYNCLINE_HOME": str(place / "home")}
        machines = {name: Machine(name, place, {"make-index": MAKE_INDEX}) for name in NAMES}
        port = free_port()
        given = ("--memory", "--nodes", "0", "--machine-config", "--listen", f"127.0.0.1:{port}")
        try:
            with running(syncline("up", *given, "--kubeconfig-out", str(place / "kubeconfig")), place, port) as cluster:
                Story(cluster, machines, repository).play()
        except BaseException:
            for machine in machines.values():
                sys.stderr.write(f"\n-- {machine.name}\n{machine.tail()}")
            raise
        finally:
            for machine in machines.values():
                machine.cut_power()
        used = sum(machine.used_s for machine in machines.values())
        tell(f"\nall seen; the machines took {used:.0f} s of processor time, beside what went before a reboot")


if __name__ == "__main__":
    main()
