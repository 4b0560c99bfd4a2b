"""Prometheus metrics of node agents under upstream's names, computed from objects; pure.

Upstream's daemons each export their own node; here one endpoint exports all, with a label ``node``. A counter that
upstream keeps since its daemon started is 1 here while the node reports the failure; upstream's alerts compare it with
0. Source: Machine Config Operator ``pkg/daemon/metrics.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from syncline.base.clock import time_or_none
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.agent.planning.notes import UNSUPPORTED
from syncline.machineconfig.names import CURRENT, CURRENT_IMAGE, DONE, FAILED_STATES, REASON, STATE
from syncline.machineconfig.pools.metrics import Family, Labels

DRIFT = ("content mismatch", "mode mismatch")
REBOOT_FAILED = "reboot command failed"
PIVOT_FAILED = "error running rpm-ostree"
CORE_OS_NAMES = {
    "Red Hat Enterprise Linux CoreOS": "RHCOS",
    "CentOS Stream CoreOS": "SCOS",
    "Fedora CoreOS": "FCOS",
}
"""Upstream's label by the beginning of ``nodeInfo.osImage``."""
MAX_DIGITS = 7
LOOK_S = 30.0
"""Seconds between upstream's checks of the kubelet."""


def agent_metrics(nodes: Sequence[Obj], records: Mapping[str, Obj], now: datetime) -> list[Family]:
    """Return the metrics of all nodes that an agent manages. ``records``: MachineConfigNodes by name."""
    kept = [node for node in nodes if annotations_of(node).get(CURRENT)]
    said = {name_of(node): annotations_of(node) for node in kept}
    moved = {name: _moved(records.get(name)) for name in said}
    failed = {name: have for name, have in said.items() if have.get(STATE) in FAILED_STATES}

    def failing(*words: str) -> list[tuple[Labels, float]]:
        return [(_of(name), float(any(word in _reason(failed.get(name)) for word in words))) for name in said]

    states = [
        (_of(name, state=have.get(STATE, ""), reason=_reason(failed.get(name))), moved[name])
        for name, have in said.items()
    ]
    updates = [
        (_of(name, config="" if name in failed else _label(have), err=_reason(failed.get(name))), moved[name])
        for name, have in said.items()
        if name in failed or have.get(STATE) == DONE
    ]
    drifted = zip(said, failing(*DRIFT), strict=True)
    drift = [(labels, moved[name] if there else 0.0) for name, (labels, there) in drifted]
    systems = [(_of(name_of(node), **dict(_system(node))), 1.0) for node in kept]
    packages = [(_of(name), float(_count(have.get(UNSUPPORTED)))) for name, have in said.items()]
    kubelets = [(_of(name_of(node)), _unwell(node, now)) for node in kept]
    return [
        ("mcd_state", "state of daemon on specified node", states),
        ("mcd_update_state", "completed update config or error", updates),
        ("mcd_config_drift", "timestamp for config drift", drift),
        ("mcd_host_os_and_version", "os that MCD is running on and version if RHCOS", systems),
        (
            "mcd_local_unsupported_packages",
            "Total number of locally layered unsupported packages installed on the node",
            packages,
        ),
        ("mcd_kubelet_state", "state of kubelet health monitor", kubelets),
        ("mcd_reboots_failed_total", "Total number of reboots that failed.", failing(REBOOT_FAILED)),
        ("mcd_pivot_errors_total", "Total number of errors encountered during pivot.", failing(PIVOT_FAILED)),
    ]


def _system(node: Obj) -> Labels:
    """Return system and version from the Node's ``osImage``; upstream reads them on the machine."""
    message = str(dig(node, "status", "nodeInfo", "osImage") or "")
    for name, short in CORE_OS_NAMES.items():
        if message.startswith(name):
            return ("os", short), ("version", (message.removeprefix(name).split() or [""])[0])
    word = (message.split() or [""])[0].upper()
    return ("os", word if word.isalpha() else "unsupported"), ("version", "")


def _count(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) < MAX_DIGITS else 0


def _of(node: str, **labels: str) -> Labels:
    return (("node", node), *labels.items())


def _reason(have: Mapping[str, str] | None) -> str:
    return "" if have is None else have.get(REASON, "")


def _label(have: Mapping[str, str]) -> str:
    image = f" / Image: {have[CURRENT_IMAGE]}" if have.get(CURRENT_IMAGE) else ""
    return f"MachineConfig: {have[CURRENT]}{image}"


def _moved(record: Obj | None) -> float:
    """Return when a condition of the record last changed, or 0."""
    conditions = dig(record, "status", "conditions") or ()
    times = (time_or_none(each.get("lastTransitionTime")) for each in conditions)
    return max((each.timestamp() for each in times if each is not None), default=0.0)


def _unwell(node: Obj, now: datetime) -> float:
    """Return how many checks of the kubelet have failed in a row, at upstream's interval."""
    ready = next((each for each in dig(node, "status", "conditions") or () if each.get("type") == "Ready"), None)
    if ready is None or ready.get("status") in (None, "True"):
        return 0.0
    since = time_or_none(ready.get("lastTransitionTime"))
    return 0.0 if since is None else float((now - since).total_seconds() // LOOK_S)
