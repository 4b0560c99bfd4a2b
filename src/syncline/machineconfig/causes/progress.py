"""Reads the progress of a node's update: its current step, start, expected end and next step; pure.

The source is the node's MachineConfigNode, whose conditions drain controller and node agent write (``phases.py``; order
of the phases: reference machine-config 6.4), so it works for nodes of another operator, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import time_or_none
from syncline.kube.objects import Obj, dig

Records = Mapping[str, Obj]
"""MachineConfigNodes by the name of their node."""

REBOOT_PATIENCE = timedelta(minutes=20)
"""Time until a reboot is overdue; bare metal takes 10 to 15 minutes."""
PATIENCE = timedelta(minutes=10)
"""Time until any other step is overdue; they take seconds (drains have their own hour)."""


@dataclass(frozen=True, slots=True)
class NodeProgress:
    """``doing``: in a word; ``then``: what follows; ``check``: what to read once it is overdue."""

    doing: str
    since: datetime
    then: str
    patience: timedelta
    check: str

    def overdue(self, now: datetime) -> bool:
        return now - self.since > self.patience

    @property
    def until(self) -> datetime:
        """Return when the step is overdue."""
        return self.since + self.patience


LOOK_AT_AGENT = "check its agent: its logs, and the Events of the node"
_CONSOLE = "check the machine's console: it should be back"
_PLACES: tuple[tuple[str, str, str, str], ...] = (
    ("UpdatePrepared", "preparing", "prepared", "it is cordoned and drained, or updated in place"),
    ("Cordoned", "being cordoned", "cordoned", "it is drained"),
    ("Drained", "being drained", "drained", "its files, units and OS are written"),
    ("AppliedFilesAndOS", "writing files and OS", "files and OS are written", "it reboots, or reloads what changed"),
    ("AppliedFiles", "writing files", "files are written", "it reboots, or reloads what changed"),
    ("AppliedOSImage", "writing the OS image", "the OS image is written", "it reboots"),
    ("UpdatePostActionComplete", "restarting services", "services are restarted", "it is done, without a reboot"),
    ("RebootedNode", "rebooting", "rebooted", "it checks its disk, is uncordoned and done"),
    ("Resumed", "resuming", "resuming after the reboot", "it is uncordoned and done"),
    ("Uncordoned", "being uncordoned", "uncordoned", "it is done"),
)
"""Condition, activity while it is Unknown, state once it is True, and the next step; in order."""


def progress_of(record: Obj | None, desired: str) -> NodeProgress | None:
    """Return the progress of the update to ``desired``, or None if no record shows it."""
    if record is None or dig(record, "spec", "configVersion", "desired") != desired:
        return None
    conditions = {str(each.get("type")): each for each in dig(record, "status", "conditions", default=[])}
    found: NodeProgress | None = None
    for kind, doing, done, then in _PLACES:
        status, since = conditions.get(kind, {}).get("status"), conditions.get(kind, {}).get("lastTransitionTime")
        at = time_or_none(since)
        if status not in ("True", "Unknown") or at is None:
            continue
        reboots = kind == "RebootedNode" and status == "Unknown"
        patience, check = (REBOOT_PATIENCE, _CONSOLE) if reboots else (PATIENCE, LOOK_AT_AGENT)
        found = NodeProgress(doing if status == "Unknown" else done, at, then, patience, check)
    return found
