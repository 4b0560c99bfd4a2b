"""Fixes for failures that an agent reports, by the daemon's message; the first match decides."""

from __future__ import annotations

import re

from syncline.machineconfig.configs.reconcile import FORCE_FILE
from syncline.machineconfig.render.fixes import fix_for

_REMEDIES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (
            r'machineconfig\S* "(\S+)" not found',
            r"make MachineConfig \1 again: its name and spec are in /etc/machine-config-daemon/currentconfig on a node "
            "that has it",
        ),
        (
            r'(?:content mismatch for|mode mismatch for|could not stat) file:? "([^"]+)"',
            rf"put \1 back as its MachineConfig has it, or on the node: touch {FORCE_FILE} (everything is "
            "rewritten, with a reboot)",
        ),
        (r"expected target osImageURL|missing expected kernel arg|on-disk state", f"on the node: touch {FORCE_FILE}"),
        (
            r"(?:restarting|reloading) (\S+) service failed",
            r"on the node: journalctl -u \1; correct its configuration",
        ),
        (r"failed to drain node", "see what keeps its pods: its drain goes on meanwhile"),
        (r"unable to update deployment|rpm-ostree|OS image|osImageURL", "can the node fetch the image? see its Events"),
        (r"No space left on device", "make room on the node's disk"),
    )
)
OTHERWISE = "correct what its reason says, or take the config back"


def remedy(state: str, reason: str) -> str:
    """Return a fix in one sentence. A refused config gets the fixes of rendering."""
    if state == "Unreconcilable":
        return f"take it back, or {fix_for(reason) or 'recreate the machine'}"
    for pattern, text in _REMEDIES:
        found = pattern.search(reason)
        if found is not None:
            return found.expand(text)
    return OTHERWISE
