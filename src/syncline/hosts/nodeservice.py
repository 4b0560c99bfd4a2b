"""The systemd unit of the node agent, and the files that a machine needs to run it from its next boot on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from syncline.hosts.linuxhost import LinuxHost
from syncline.machineconfig.agent.host import HostError
from syncline.machineconfig.agent.provisioning.firstboot import REBOOT_NOTE
from syncline.machineconfig.names import ENCAPSULATED

SERVICE = "syncline-node-agent.service"
UNIT = f"/etc/systemd/system/{SERVICE}"
KUBECONFIG = "/etc/syncline/node-agent.kubeconfig"

_TEXT = """\
[Unit]
Description=Syncline node agent: keeps this machine at the MachineConfig of its node
Wants=network-online.target
After=network-online.target
# It retries for ever: an unconfigured machine is worse than a line in its log.
StartLimitIntervalSec=0

[Service]
ExecStart={command}
Restart=always
RestartSec=5
# After SIGTERM the step in flight ends first (60 s at most). What it started is its own affair: a restart of the
# agent must not kill a transaction of rpm-ostree or a reboot under way.
KillMode=process
TimeoutStopSec=90
# The machine may be short of memory; who could mend that is not the one to go.
OOMScoreAdjust=-900

[Install]
WantedBy=multi-user.target
"""


FIRST_BOOT = "syncline-node-agent-firstboot.service"
_FIRST_BOOT_TEXT = f"""\
[Unit]
Description=Syncline node agent: finishes the first boot of this machine, before it joins
ConditionPathExists=|{ENCAPSULATED}
ConditionPathExists=|{REBOOT_NOTE}
Wants=network-online.target
After=network-online.target
Before=kubelet.service crio.service {SERVICE}

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={{command}}

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class Service:
    """Settings of the unit. ``program``: absolute path of ``syncline``; ``node``: empty for the host name."""

    program: str
    node: str = ""
    register: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


def unit_text(service: Service) -> str:
    words = [service.program, "node-agent", "--kubeconfig", KUBECONFIG]
    if service.node:
        words += ["--node", service.node]
    if service.register:
        words.append("--register")
    for key, value in sorted(service.labels.items()):
        words += ["--label", f"{key}={value}"]
    return _TEXT.format(command=" ".join(_quoted(word) for word in words))


def first_boot_text(service: Service) -> str:
    """Return the unit of the first boot, which does nothing on machines that no config server has installed."""
    return _FIRST_BOOT_TEXT.format(command=f"{_quoted(service.program)} node-agent firstboot")


def _quoted(word: str) -> str:
    """Return a word quoted for ExecStart: systemd.service(5) "COMMAND LINES"; ``%`` and ``$`` are literal."""
    text = word.replace("%", "%%").replace("$", "$$")
    if not any(letter in text for letter in " \t\"'\\;"):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def install_service(host: LinuxHost, service: Service, kubeconfig: bytes | None) -> None:
    """Write and enable both units; on the running system also start the agent. Raises HostError."""
    if kubeconfig is not None:
        host.write(KUBECONFIG, kubeconfig, mode=0o600, parents=0o700)
    host.write(UNIT, unit_text(service).encode())
    host.write(f"/etc/systemd/system/{FIRST_BOOT}", first_boot_text(service).encode())
    commands: list[tuple[str, ...]] = [("systemctl", "enable", SERVICE), ("systemctl", "enable", FIRST_BOOT)]
    if host.running:
        commands = [("systemctl", "daemon-reload"), *commands, ("systemctl", "restart", SERVICE)]
    for command in commands:
        done = host.run(command)
        if not done.ok:
            raise HostError(" ".join(command[:2]), SERVICE, done.output.strip() or f"exit status {done.code}")
