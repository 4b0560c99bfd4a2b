"""Computes the status of a pool from its nodes; pure. Entry point: :func:`pool_status`.

Source of counts, conditions, their order and texts: Machine Config Operator ``calculateStatus``; reference
machine-config 3.2, 3.3. A changed condition moves to the end of the list; its time changes only with its status.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from syncline.base.clock import format_time
from syncline.kube.objects import Obj, dig, generation, name_of
from syncline.kube.schema.fieldcauses import quoted
from syncline.machineconfig.names import FAILED_STATES, REASON
from syncline.machineconfig.pools.layered import Layering
from syncline.machineconfig.pools.nodestate import facts_of, facts_of_all, finished_for, target_of
from syncline.machineconfig.pools.observedrecords import record_facts

CERTIFICATES = "KubeAPIServerServingCAData"
DEGRADED_GOES_ON = "Pool update paused due to degraded condition"
"""Message of a degraded pool in image mode; its other nodes are updated, upstream as here."""
MCN_GATE = "ImageModeStatusReporting"
"""With this feature gate, counts of updated and degraded nodes come from MachineConfigNodes."""


@dataclass(frozen=True, slots=True)
class PoolNodes:
    """The input of a status. ``machine_config_nodes`` in the order in which they are read."""

    pool: Obj
    nodes: Sequence[Obj]
    machine_config_nodes: Sequence[Obj] = ()
    controller_config: Obj | None = None
    layering: Layering = field(default_factory=Layering)
    gates: frozenset[str] = frozenset()
    held: str = ""
    """The Hold that stops the pool's updates, in a few words; empty if there is none."""
    blocked: str = ""
    """Why drains of its nodes cannot finish, as a chain; empty if they can."""

    @property
    def paused(self) -> bool:
        return bool(self.held) or dig(self.pool, "spec", "paused") is True


@dataclass(slots=True)
class _Reported:
    """The reports of MachineConfigNodes."""

    degraded: list[Obj] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    updated: int = 0
    images_pinned: int = 0


def condition_is(conditions: Sequence[Obj], kind: str, status: str = "True") -> bool:
    """Return whether the first condition of the type has ``status``; changes apply to the last one, as upstream."""
    return next((each.get("status") == status for each in conditions if each.get("type") == kind), False)


def put_condition(
    conditions: list[Obj], kind: str, truth: bool, now: datetime, reason: str = "", message: str = ""
) -> None:
    """Set a condition in place; if it changes it moves to the end."""
    status = "True" if truth else "False"
    old = next((each for each in reversed(conditions) if each.get("type") == kind), None)
    same = old is not None and old.get("status") == status
    if old is not None and same and (old.get("reason") or "", old.get("message") or "") == (reason, message):
        return
    since = old.get("lastTransitionTime") if old is not None and same else format_time(now)
    conditions[:] = [each for each in conditions if each.get("type") != kind]
    conditions.append(
        {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    )


def update_line(pool: Obj, layering: Layering) -> str:
    """Return the pool's target as text: ``MachineConfig rendered-worker-…``, with the image in image mode."""
    line = f"MachineConfig {target_of(pool)}"
    return f"{line} / Image {layering.image}" if layering.layered and layering.image else line


def pool_status(observed: PoolNodes, now: datetime) -> Obj:
    """Return the complete status; the pool's conditions of other writers are kept."""
    pool, nodes, layering = observed.pool, observed.nodes, observed.layering
    reported = _reported(observed)
    facts = facts_of_all(nodes)
    finished = finished_for(pool, layering)
    done = [one for one in facts if finished(one)]
    ready = sum(one.not_ready is None for one in done)
    unavailable = sum(one.unavailable for one in facts)
    updated, degraded = len(done), sum(one.state in FAILED_STATES for one in facts)
    if MCN_GATE in observed.gates:
        updated, degraded = reported.updated, len(reported.degraded)
    total = len(nodes)
    everything = (
        updated == total and ready == total and unavailable == 0 and not (layering.layered and layering.building)
    )
    status: Obj = {
        **({"observedGeneration": generation(pool)} if generation(pool) else {}),
        "machineCount": total,
        "updatedMachineCount": updated,
        "readyMachineCount": ready,
        "unavailableMachineCount": unavailable,
        "degradedMachineCount": degraded,
        "certExpirys": _certificates(observed.controller_config),
        "poolSynchronizersStatus": [
            {
                "poolSynchronizerType": "PinnedImageSets",
                "machineCount": total,
                "updatedMachineCount": reported.images_pinned,
                "readyMachineCount": ready,
                "unavailableMachineCount": unavailable,
                "availableMachineCount": total - unavailable,
            }
        ],
        "configuration": dig(pool, "status", "configuration", default={}),
    }
    conditions: list[Obj] = [dict(each) for each in dig(pool, "status", "conditions", default=[])]
    if everything:
        status["configuration"] = _reached(pool)
    _say_progress(conditions, observed, everything, now)
    if layering.config is not None:
        _say_build(conditions, observed, layering.config, everything, now)
    _say_degraded(conditions, observed, reported, degraded, now)
    status["conditions"] = conditions
    return status


def _reached(pool: Obj) -> Obj:
    """Return ``spec.configuration``, or the status' copy if it has the same name."""
    old, new = dig(pool, "status", "configuration", default={}), dig(pool, "spec", "configuration", default={})
    same = old.get("name") == new.get("name") and (old.get("source") or []) == (new.get("source") or [])
    found: Obj = old if same else new
    return found


def _certificates(config: Obj | None) -> list[Obj]:
    found = dig(config, "status", "controllerCertificates", default=[]) if config is not None else []
    return [
        {"bundle": each.get("bundleFile"), "subject": each.get("subject"), "expiry": each.get("notAfter")}
        for each in found
        if each.get("bundleFile") == CERTIFICATES
    ]


def _reported(observed: PoolNodes) -> _Reported:
    """Count the reports up to the first MachineConfigNode without conditions or without a node in this pool."""
    nodes = {facts.name: node for node, facts in zip(observed.nodes, facts_of_all(observed.nodes), strict=True)}
    gated = MCN_GATE in observed.gates
    found = _Reported()
    for mcn in observed.machine_config_nodes:
        facts = record_facts(mcn)
        node = nodes.get(facts.name)
        if not facts.speaks or node is None:
            break
        found.images_pinned += facts.pinned
        if gated and _says_updated(mcn, observed):
            found.updated += 1
        elif facts.degraded is not None:
            found.degraded.append(node)
            found.reasons.append(_is_reporting(node, facts.degraded))
    reasons = [(node, facts_of(node).readable.get(REASON, "")) for node in found.degraded]
    found.reasons += [_is_reporting(node, reason) for node, reason in reasons if reason]
    return found


def _says_updated(mcn: Obj, observed: PoolNodes) -> bool:
    """Return whether a true Updated for the pool's target comes before a true NodeDegraded."""
    for condition in dig(mcn, "status", "conditions", default=[]):
        if condition.get("status") != "True":
            continue
        if condition.get("type") == "NodeDegraded":
            return False
        if condition.get("type") == "Updated" and _wants(mcn, observed):
            return True
    return False


def _wants(mcn: Obj, observed: PoolNodes) -> bool:
    """Return whether the MachineConfigNode's desired config and image are the pool's."""
    desired = dig(mcn, "status", "configVersion", "desired", default="")
    image = dig(mcn, "status", "configImage", "desiredImage", default="") or ""
    layering = observed.layering
    if desired != target_of(observed.pool):
        return False
    if not layering.layered:
        return not image
    both = layering.config is not None and layering.build is not None
    return both and desired == layering.rendered and bool(layering.image) and image == layering.image


def _is_reporting(node: Obj, text: str) -> str:
    return f"Node {name_of(node)} is reporting: {quoted(text)}"


def _say_progress(conditions: list[Obj], observed: PoolNodes, everything: bool, now: datetime) -> None:
    line = update_line(observed.pool, observed.layering)
    if everything:
        put_condition(conditions, "Updated", True, now, "", f"All nodes are updated with {line}")
        put_condition(conditions, "Updating", False, now)
        return
    put_condition(conditions, "Updated", False, now)
    if observed.paused:
        by = "" if dig(observed.pool, "spec", "paused") is True else f" by {observed.held}"
        put_condition(conditions, "Updating", False, now, "", f"Pool is paused{by}; will not update to {line}")
    else:
        put_condition(conditions, "Updating", True, now, "", f"All nodes are updating to {line}")


def _say_build(conditions: list[Obj], observed: PoolNodes, config: Obj, everything: bool, now: datetime) -> None:
    """Set Updating from the state of the build in image mode."""
    paused = observed.paused
    old = dig(observed.pool, "status", "conditions", default=[])
    others = ("RenderDegraded", "NodeDegraded", "PinnedImageSetsDegraded")
    if not paused and any(condition_is(old, kind) for kind in others):
        put_condition(conditions, "Updating", False, now, "", DEGRADED_GOES_ON)
        return
    said = _paused_build(observed.layering, config) if paused else _running_build(observed.layering, config, everything)
    if said is not None:
        put_condition(conditions, "Updating", said[0], now, "", said[1])


def _running_build(layering: Layering, config: Obj, everything: bool) -> tuple[bool, str] | None:
    if layering.build is None:
        return True, f"Pool is waiting for a new OS image build to start (mosc: {name_of(config)})"
    about = f"(mosb: {name_of(layering.build)})"
    if layering.build_is("Prepared") or layering.in_initial_state:
        return True, f"Pool is waiting for OS image build to start {about}"
    if layering.build_is("Building"):
        return True, f"Pool is waiting for OS image build to complete {about}"
    if layering.build_is("Succeeded"):
        return None if everything else (True, f"Pool is waiting for nodes to apply OS image {about}")
    if layering.build_is("Failed"):
        return False, f"Pool update stopped due to OS image build failure {about}"
    return False, f"Pool update stopped due to OS image build being interrupted {about}"


def _paused_build(layering: Layering, config: Obj) -> tuple[bool, str] | None:
    if layering.build is None:
        return True, f"Pool is paused; waiting for a new OS image build to start (mosc: {name_of(config)})"
    about = f"(mosb: {name_of(layering.build)})"
    if layering.build_is("Prepared"):
        return True, f"Pool is paused; OS image build has been prepared but will not rollout {about}"
    if layering.build_is("Building"):
        return True, f"Pool is paused; OS image build in progress {about}"
    if layering.build_is("Succeeded"):
        return False, f"Pool is paused; OS image build completed successfully {about}"
    if layering.build_is("Failed"):
        return False, f"Pool is paused; OS image build failed {about}"
    if layering.build_is("Interrupted"):
        return False, f"Pool is paused; OS image build was interrupted {about}"
    return True, f"Pool is paused; OS image build has been created but not yet started {about}"


def _say_degraded(
    conditions: list[Obj], observed: PoolNodes, reported: _Reported, degraded: int, now: datetime
) -> None:
    message = "; ".join(part for part in (", ".join(reported.reasons), observed.blocked) if part)
    if degraded > 0:
        reason = f"{len(reported.degraded)} nodes are reporting degraded status on sync"
        put_condition(conditions, "NodeDegraded", True, now, reason, message)
    else:
        put_condition(conditions, "NodeDegraded", False, now)
    old = dig(observed.pool, "status", "conditions", default=[])
    build_degraded = condition_is(old, "ImageBuildDegraded")
    cleared = _build_recovers(observed.layering, build_degraded)
    if cleared is not None:
        put_condition(conditions, "ImageBuildDegraded", False, now, *cleared)
        build_degraded = False
    if degraded > 0:
        put_condition(conditions, "Degraded", True, now, "", message)
    elif condition_is(old, "RenderDegraded") or build_degraded:
        text = "Custom OS image build failed" if build_degraded else ""
        put_condition(conditions, "Degraded", True, now, "", text)
    else:
        put_condition(conditions, "Degraded", False, now)


def _build_recovers(layering: Layering, degraded: bool) -> tuple[str, str] | None:
    """Return reason and message that clear ImageBuildDegraded, or None if it stays."""
    if layering.build is not None:
        if layering.build_is("Building") or layering.build_is("Prepared"):
            return "Building", "New build started"
        return ("BuildSuccess", "Build completed successfully") if layering.build_is("Succeeded") else None
    if not degraded:
        return None
    if layering.config is not None:
        return "BuildPending", "MachineOSConfig updated/created, waiting for MachineOSBuild"
    return "NoLayeredObjects", "No layered pool objects found, clearing stale build degraded condition"
