"""What is done with the machine, and what has to be seen: told step by step, with times."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.machines.qemu import Machine
from bench.processes import Blocking, Running

GROUP = "machineconfiguration.openshift.io"
CONFIGS = f"/apis/{GROUP}/v1/machineconfigs"
MERGE = "application/merge-patch+json"
LIMIT_S = 3600.0
"""An emulated machine among busy ones takes ten minutes to boot."""
LOOK_S = 0.25
MANY = 400
"""Files of the update in which the power goes: enough that a cut falls between two of them."""
HELLO = "[Unit]\nDescription=hello\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
SSHD = "AuthorizedKeysFile .ssh/authorized_keys .ssh/authorized_keys.d/ignition\n"
TIMESYNC = "/etc/systemd/timesyncd.conf"


def machine_config(name: str, files: dict[str, str], *, spec: Any = None, **config: Any) -> dict[str, Any]:
    listed = [
        {"path": path, "overwrite": True, "mode": 0o600 if "secret" in path else 0o644}
        | {"contents": {"source": f"data:,{quote(text)}"}}
        for path, text in files.items()
    ]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {f"{GROUP}/role": "worker"}},
        "spec": (spec or {}) | {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": listed}, **config}},
    }


class Story:
    def __init__(self, machine: Machine, cluster: Running, node: str, folder: Path) -> None:
        self._machine, self._cluster, self._folder, self._node = machine, cluster, folder, node
        self._api = Blocking(cluster)
        self._observed: tuple[Any, ...] = ()
        self._begun = self._moment = time.monotonic()

    def told(self, only: str) -> int:
        steps: list[Callable[[], None]] = [
            self.born,
            self.files_units_keys,
            self.restart_without_reboot,
            self.reload_without_reboot,
            self.drift,
            self.power_cut_while_writing,
            self.power_cut_while_rebooting,
            self.agent_killed,
            self.kernel_arguments,
            self.taken_back,
            self.rights,
        ]
        for step in steps:
            if only and step.__name__ not in ("born", *only.split(",")):
                continue
            self._moment = time.monotonic()
            print(f"\n== {step.__name__.replace('_', ' ')}", flush=True)
            step()
            print(f"== done in {time.monotonic() - self._moment:.0f} s", flush=True)
        print(f"\nall seen in {time.monotonic() - self._begun:.0f} s", flush=True)
        return 0

    # -- steps --------------------------------------------------------------------------------------------------------

    def born(self) -> None:
        self._machine.power_on()
        self.until("the machine has joined its pool", lambda node: self.is_done(node))
        self.say(self._machine.says("systemctl is-active syncline-node-agent; uname -r; . /etc/os-release; echo $ID"))
        found = self._machine.says("systemctl list-units --failed --no-legend --plain; echo none else")
        self.check("no unit has failed", found == "none else", found)

    def files_units_keys(self) -> None:
        if not (self._folder / "core").exists():
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / "core")], check=True
            )
        public = (self._folder / "core.pub").read_text().strip()
        units = [
            {"name": "hello.service", "enabled": True, "contents": HELLO},
            {"name": "cron.service", "dropins": [{"name": "10-nice.conf", "contents": "[Service]\nNice=7\n"}]},
            {"name": "apt-daily.timer", "mask": True},
        ]
        files = {"/etc/motd": "configured\n", "/etc/secret": "s3\n", "/etc/ssh/sshd_config.d/40-ignition.conf": SSHD}
        before = self.boot_id()
        self.apply(
            machine_config(
                "90-base",
                files,
                systemd={"units": units},
                passwd={"users": [{"name": "core", "sshAuthorizedKeys": [public]}]},
            )
        )
        self.updated()
        self.check("it has rebooted", self.boot_id() != before, before)
        said = self._machine.says("cat /etc/motd; stat -c '%a %U' /etc/secret; systemctl is-active hello.service")
        self.check("files, modes and units are there", said == "configured\n600 root\nactive", said)
        said = self._machine.says(
            "systemctl show cron.service -p Nice --value; systemctl is-enabled apt-daily.timer||:"
        )
        self.check("drop-in and mask are in force", said == "7\nmasked", said)
        entered = self._machine.ssh("id -un", user="core", key=self._folder / "core")
        self.check("core enters with the key", entered.stdout.strip() == "core", entered.stdout + entered.stderr)

    def restart_without_reboot(self) -> None:
        restart = {"type": "Restart", "restart": {"serviceName": "systemd-timesyncd.service"}}
        reload = {"type": "Reload", "reload": {"serviceName": "ssh.service"}}
        policy = {
            "files": [
                {"path": TIMESYNC, "actions": [restart]},
                {"path": "/etc/ssh/sshd_config.d/50-more.conf", "actions": [reload]},
            ]
        }
        path = "/apis/operator.openshift.io/v1/machineconfigurations/cluster"
        self.ask("PATCH", path, {"spec": {"nodeDisruptionPolicy": policy}}, MERGE)
        before, old = self.boot_id(), self._machine.says("systemctl show systemd-timesyncd -p MainPID --value")
        self.apply(machine_config("91-time", {TIMESYNC: "[Time]\nPollIntervalMinSec=64\n"}))
        self.updated()
        new = self._machine.says("systemctl show systemd-timesyncd -p MainPID --value")
        self.check("the service was restarted", old != new != "0", f"{old} {new}")
        self.check("without a reboot", self.boot_id() == before, before)

    def reload_without_reboot(self) -> None:
        before, old = self.boot_id(), self._machine.says("systemctl show ssh -p MainPID --value")
        self.apply(machine_config("92-ssh", {"/etc/ssh/sshd_config.d/50-more.conf": "MaxAuthTries 5\n"}))
        self.updated()
        new = self._machine.says("systemctl show ssh -p MainPID --value")
        log = self._machine.says("journalctl -b -u ssh --no-pager -o cat | grep -c -i reload")
        self.check("the service was reloaded, not restarted", old == new and int(log) > 0, f"{old} {new} {log}")
        self.check("without a reboot", self.boot_id() == before, before)

    def drift(self) -> None:
        self._machine.says("echo mine > /etc/motd")
        self.until("drift is told", lambda node: "content mismatch" in self.note(node, "reason"))
        self._machine.says("echo configured > /etc/motd")
        self.until("and forgotten once it is put right", self.is_done)

    def power_cut_while_writing(self) -> None:
        files = {f"/etc/many/{number:03}": f"{number}\n" * 50 for number in range(MANY)}
        self.apply(machine_config("93-many", files))
        self.until("it writes", lambda node: bool(self.raw(node, "syncline.dev/writing")))
        time.sleep(1.0)
        self._machine.cut_power()
        self.say("power cut")
        time.sleep(5.0)
        self._machine.power_on()
        self.updated()
        self.files_are("/etc/many", MANY)

    def power_cut_while_rebooting(self) -> None:
        files = {f"/etc/many/{number:03}": f"again {number}\n" * 50 for number in range(MANY)}
        self.apply(machine_config("93-many", files))
        self.until("it is told to reboot", lambda node: self.note(node, "post-config-action") == "Rebooting")
        self._machine.cut_power()
        self.say("power cut")
        time.sleep(2.0)
        self._machine.power_on()
        self.updated()
        self.files_are("/etc/many", MANY)
        said = self._machine.says("head -1 /etc/many/399")
        self.check("the files are the new ones", said == "again 399", said)

    def agent_killed(self) -> None:
        files = {f"/etc/many/{number:03}": f"third {number}\n" * 50 for number in range(MANY)}
        self.apply(machine_config("93-many", files))
        self.until("it writes", lambda node: bool(self.raw(node, "syncline.dev/writing")))
        self._machine.says("systemctl kill -s KILL syncline-node-agent")
        self.say("agent killed")
        self.updated()
        self.files_are("/etc/many", MANY)

    def kernel_arguments(self) -> None:
        self.apply(machine_config("94-kernel", {}, spec={"kernelArguments": ["quiet_syncline=1"]}))
        self.until("it is refused", lambda node: "quiet_syncline=1" in self.note(node, "reason"))
        self.say(self.note(self.node(), "reason"))
        self.check("and the node is not cordoned", not self.node()["spec"].get("unschedulable"), "")
        self.ask("DELETE", f"{CONFIGS}/94-kernel")
        self.until("and is well once it is taken back", self.is_done)

    def taken_back(self) -> None:
        for name in ("90-base", "93-many"):
            self.ask("DELETE", f"{CONFIGS}/{name}")
        self.updated()
        said = self._machine.says("cat /etc/motd | head -c 10; ls -d /etc/secret /etc/many/* 2>/dev/null || :")
        self.check("what was there before is there again", "configured" not in said and "/etc" not in said, said)
        said = self._machine.says("systemctl is-enabled hello.service apt-daily.timer 2>&1 || :")
        self.check("unit and mask are gone", "masked" not in said and "enabled" not in said.splitlines()[0], said)

    def rights(self) -> None:
        own = self._folder / "node.kubeconfig"
        text = own.read_text().replace("https://10.0.2.2", "https://127.0.0.1")
        near = self._folder / "near.kubeconfig"
        near.write_text(text)
        for words, allowed in (
            (("get", "mc"), True),
            (("get", "secrets", "-A"), False),
            (("annotate", "node", self._node, "x=y", "--overwrite"), True),
            (("annotate", "node", "node-0", "x=y"), False),
            (("label", "node", self._node, "node-role.kubernetes.io/master="), False),
            (("delete", "node", self._node), False),
        ):
            done = subprocess.run(
                ["kubectl", "--kubeconfig", str(near), *words], capture_output=True, text=True, check=False
            )
            self.check(
                f"kubectl {' '.join(words)}: {'yes' if allowed else 'no'}",
                (done.returncode == 0) == allowed,
                done.stderr,
            )

    def ask(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        """A connection that was idle may have been closed by the server."""
        for _ in range(3):
            try:
                return self._api.send(method, path, body, content)
            except (OSError, http.client.HTTPException):
                self._api = Blocking(self._cluster)
        return self._api.send(method, path, body, content)

    # -- looking ------------------------------------------------------------------------------------------------------

    def node(self) -> dict[str, Any]:
        """Whatever changed since the last look is told."""
        try:
            node: dict[str, Any] = self.ask("GET", f"/api/v1/nodes/{self._node}")
        except SystemExit:
            return {"metadata": {}, "spec": {}}
        ready = next((c["status"] for c in node["status"].get("conditions", ()) if c["type"] == "Ready"), "-")
        observed = (
            f"state {self.note(node, 'state') or '-'}",
            f"wants {self.note(node, 'desiredConfig')[-6:]}",
            f"drain {self.short(node, 'desiredDrain')}/{self.short(node, 'lastAppliedDrain')}",
            "cordoned" if node["spec"].get("unschedulable") else "open",
            f"ready {ready}",
            f"boot {node['status'].get('nodeInfo', {}).get('bootID', '')[:6]}",
        )
        if observed != self._observed:
            self.say(", ".join(observed))
            self._observed = observed
        return node

    def until(self, what: str, true: Callable[[dict[str, Any]], bool]) -> None:
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            if not self._machine.alive():
                raise SystemExit("the machine has ended")
            node = self.node()
            if node["metadata"] and true(node):
                self.say(f"-> {what}")
                return
            time.sleep(LOOK_S)
        raise SystemExit(f"not seen within {LIMIT_S:g} s: {what}; {self.note(node, 'reason')}")

    def updated(self) -> None:
        """To the config that the pool has rendered since, and open again."""
        self.until("a new config is wanted", lambda node: not self.is_done(node))
        self.until("the update is done", self.is_done)

    def is_done(self, node: dict[str, Any]) -> bool:
        wanted = self.pool_wants()
        settled = self.note(node, "desiredConfig") == self.note(node, "currentConfig") == wanted != ""
        return settled and self.note(node, "state") == "Done" and not node["spec"].get("unschedulable")

    def pool_wants(self) -> str:
        """Once it has rendered all that there is."""
        pool = self.ask("GET", f"/apis/{GROUP}/v1/machineconfigpools/worker")
        wanted = pool["spec"].get("configuration", {})
        mine = {each["name"] for each in wanted.get("source", ())}
        listed = self.ask("GET", CONFIGS)["items"]
        labels = {one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in listed}
        there = {name for name, given in labels.items() if given.get(f"{GROUP}/role") == "worker"}
        return str(wanted.get("name", "")) if mine == there else ""

    def apply(self, config: dict[str, Any]) -> None:
        name = config["metadata"]["name"]
        done = subprocess.run(
            ["kubectl", "--kubeconfig", str(self._cluster.kubeconfig), "apply", "--server-side", "-f", "-"],
            input=json.dumps(config),
            capture_output=True,
            text=True,
            check=False,
        )
        self.check(f"kubectl apply {name}", done.returncode == 0, done.stderr)

    def boot_id(self) -> str:
        return self._machine.says("cat /proc/sys/kernel/random/boot_id")

    def files_are(self, folder: str, count: int) -> None:
        said = self._machine.says(
            f"ls {folder} | wc -l; find {folder} -size 0 | wc -l; ls -A {folder} | grep -c draft||:"
        )
        self.check(f"all {count} files are whole and no draft is left", said.split() == [str(count), "0", "0"], said)

    def check(self, what: str, true: bool, observed: str) -> None:
        if not true:
            raise SystemExit(f"NOT SO: {what}: {observed}")
        self.say(f"-> {what}")

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._moment:7.1f} s  {text}", flush=True)

    @staticmethod
    def raw(node: dict[str, Any], key: str) -> str:
        return str((node["metadata"].get("annotations") or {}).get(key, ""))

    def note(self, node: dict[str, Any], name: str) -> str:
        return self.raw(node, f"{GROUP}/{name}")

    def short(self, node: dict[str, Any], name: str) -> str:
        asked, _, rest = self.note(node, name).partition("-")
        return f"{asked}-{rest[-6:]}" if rest else "-"
