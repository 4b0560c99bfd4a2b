"""The command by which a node reboots itself: from outside the agent, so that it survives the agent's end."""

from __future__ import annotations

STAGED = "ostree-finalize-staged.service"


def reboot_command(config: str) -> list[str]:
    """Of a reboot into the MachineConfig ``config``; what is staged for the next boot is finished first."""
    why = f"machine-config-daemon: Node will reboot into config {config}"
    unit = ["systemd-run", "--unit", "machine-config-daemon-reboot", "--description", why]
    return [*unit, "-p", f"Requires={STAGED}", "-p", f"After={STAGED}", "/bin/sh", "-c", "systemctl reboot"]
