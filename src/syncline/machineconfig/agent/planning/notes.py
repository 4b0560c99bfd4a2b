"""Annotations that only the agent of a node writes: notes for itself and for people."""

from __future__ import annotations

from syncline.machineconfig.names import annotation

POST_ACTION = annotation("post-config-action")
REBOOTING = "Rebooting"
REBOOT_FROM = "syncline.dev/reboot-from"
"""Boot id when a reboot was requested; a different one shows that it has happened."""
WRITING, WRITING_IMAGE = "syncline.dev/writing", "syncline.dev/writing-image"
"""The MachineConfig whose files are being written, and its image of image mode. It is finished before another one
starts."""
NOT_WRITING: dict[str, str | None] = {WRITING: None, WRITING_IMAGE: None}
STAGED_AGAIN = "syncline.dev/staged-again"
"""How often this update staged its system again, because a boot did not use it."""
FINALIZE_FAILURE = annotation("ostree-finalize-staged-failure")
UNSUPPORTED = "syncline.dev/unsupported-packages"
"""Number of packages added to the image or removed from it, except extensions."""


def reboot_request(target: str, boot_id: str) -> str:
    """Return the id of a reboot into the MachineConfig ``target``; a host reboots once per id."""
    return f"{target}.{boot_id}"
