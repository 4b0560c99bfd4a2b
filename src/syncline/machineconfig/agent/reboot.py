"""The command by which a node reboots itself, run outside the agent so that it survives the agent."""

from __future__ import annotations

STAGED = "ostree-finalize-staged.service"


def reboot_command(config: str) -> list[str]:
    """Return the command that finalizes what is staged and reboots into the MachineConfig ``config``."""
    why = f"machine-config-daemon: Node will reboot into config {config}"
    unit = ["systemd-run", "--unit", "machine-config-daemon-reboot", "--description", why]
    return [*unit, "-p", f"Requires={STAGED}", "-p", f"After={STAGED}", "/bin/sh", "-c", "systemctl reboot"]
