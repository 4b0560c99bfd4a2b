"""Estimates how long the steps of an update take: measured on this cluster's nodes, else assumed; pure.

Measurements come from Events and MachineConfigNode conditions of recent updates. Upstream resets all conditions when an
update ends, so only Events remain of finished updates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median

from syncline.base.clock import parse_time
from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.agent.planning.work import Work

MAX_LENGTH_S = 6 * 3600.0
"""Maximum seconds of a measured step; longer ones combine Events of two updates."""
SKIPPED = "Drain not required, skipping"
"""The agent's message on a single control plane instead of a drain."""
_DONE = re.compile(r"currentConfig (\S+) to Done")
_REBOOT = re.compile(r"reboot into config (\S+)")


@dataclass(frozen=True, slots=True)
class Length:
    """A duration. ``updates``: number of updates of which it is the median; 0: assumed."""

    seconds: float
    updates: int = 0

    @property
    def measured(self) -> bool:
        return self.updates > 0


@dataclass(frozen=True, slots=True)
class Pace:
    """Durations. ``drain``: from the cordon to the last pod; ``write``: files, units and keys; ``system``: staging of
    image, kernel or extensions; ``service``: one reload or restart; ``reboot``: until the node is Done again."""

    drain: Length = Length(60.0)
    write: Length = Length(10.0)
    system: Length = Length(120.0)
    service: Length = Length(5.0)
    reboot: Length = Length(240.0)

    def lengths(self) -> Mapping[str, Length]:
        names = ("drain", "write", "system", "service", "reboot")
        return {name: getattr(self, name) for name in names}

    def used(self, work: Work, *, drained: bool) -> list[str]:
        """Return the names of an update's steps, with repetitions."""
        kinds = [action.type for action in work.actions]
        changes = work.changes
        staged = changes.os_update or changes.extensions or changes.kernel_type
        reboots = "Reboot" in kinds
        services = 0 if reboots else sum(kind not in ("None", "Drain") for kind in kinds)
        writing = not (drained and self.drain.measured)  # a measured drain ends with the reboot and includes the writes
        steps = (("drain", drained), ("write", writing), ("system", staged), ("service", services), ("reboot", reboots))
        return [name for name, times in steps for _ in range(times)]

    def seconds(self, steps: Iterable[str]) -> float:
        lengths = self.lengths()
        return sum(lengths[step].seconds for step in steps)


ASSUMED = Pace()
"""An orderly drain of pods with usual grace periods, and the reboot of a virtual machine; bare metal takes longer."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Measured seconds by step and node."""

    by_step: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def pace(self, nodes: Iterable[str]) -> Pace:
        """Return the pace of these nodes; for steps not measured there that of all nodes, else assumptions."""
        mine, found = set(nodes), ASSUMED
        for step, seconds in self.by_step.items():
            near = [value for node, value in seconds.items() if node in mine]
            values = near or list(seconds.values())
            if values:
                found = replace(found, **{step: Length(float(median(values)), len(values))})
        return found


def sampled(events: Iterable[Obj], machine_config_nodes: Sequence[Obj]) -> Samples:
    """Return the measurements of each node's last update, as far as known."""
    fields: dict[str, list[tuple[datetime, str, str]]] = {}
    for event in events:
        about = event.get("involvedObject") or event.get("regarding") or {}
        when = _instant(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp"))
        if about.get("kind") == "Node" and when is not None:
            line = (when, str(event.get("reason")), str(event.get("message") or event.get("note") or ""))
            fields.setdefault(str(about.get("name")), []).append(line)
    found: dict[str, dict[str, float]] = {}
    for node, lines in sorted(fields.items()):
        for step, seconds in _last_update(sorted(lines)).items():
            if 0 <= seconds < MAX_LENGTH_S:
                found.setdefault(step, {})[node] = seconds
    for record in machine_config_nodes:
        seconds = _draining(record)
        if 0 < seconds < MAX_LENGTH_S:
            found.setdefault("drain", {}).setdefault(name_of(record), seconds)
    return Samples(found)


def _last_update(lines: Sequence[tuple[datetime, str, str]]) -> dict[str, float]:
    done = next(((at, m[1]) for at, _, text in reversed(lines) if (m := _DONE.search(text))), None)
    if done is None:
        return {}
    end, config = done
    reboot = next((at for at, _, text in lines if (m := _REBOOT.search(text)) and m[1] == config), None)
    # The message is the same at each update, so the Event has the time of the last one.
    lines = [line for line in lines if line[1:] != ("Drain", SKIPPED)]
    drain, staging, staged = (_when(lines, each) for each in ("Drain", "OSUpdateStarted", "OSUpdateStaged"))
    found: dict[str, float] = {}
    if reboot is None or reboot >= end:
        begun = _when(lines, "AddSigtermProtection")
        quick = begun is not None and (drain is None or drain < begun)
        return {"write": (end - begun).total_seconds()} if begun is not None and quick else {}
    found["reboot"] = (end - reboot).total_seconds()
    if drain is not None and drain <= reboot:
        within = staging is not None and drain <= staging <= reboot
        found["drain"] = ((staging if within and staging is not None else reboot) - drain).total_seconds()
        if within and staging is not None and staged is not None and staging <= staged <= reboot:
            found["system"] = (staged - staging).total_seconds()
    return found


def _when(lines: Sequence[tuple[datetime, str, str]], reason: str) -> datetime | None:
    return next((at for at, why, _ in reversed(lines) if why == reason), None)


def _draining(record: Obj) -> float:
    """Return the seconds of a finished drain in a running update, else 0."""
    conditions = {each.get("type"): each for each in dig(record, "status", "conditions", default=[])}
    begun, ended = (conditions.get(kind) or {} for kind in ("Cordoned", "Drained"))
    if begun.get("status") != "True" or ended.get("status") != "True":
        return 0.0
    since, until = (_instant(each.get("lastTransitionTime")) for each in (begun, ended))
    return (until - since).total_seconds() if since is not None and until is not None else 0.0


def _instant(text: object) -> datetime | None:
    try:
        return parse_time(text) if isinstance(text, str) and text else None
    except ValueError:
        return None
