"""What the cluster's operator thinks of a pool: is its configuration of this version, and one line about it; pure.

Source: Machine Config Operator ``pkg/operator/status.go``; reference machine-config 3.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.kube.schema.fieldcauses import quoted
from syncline.machineconfig.names import GENERATED_BY, OVERRIDDEN, RELEASE
from syncline.machineconfig.pools.status import condition_is


@dataclass(frozen=True, slots=True)
class Expected:
    """Of which version a pool's configuration should be: controller, release, OS image."""

    controller: str
    release: str
    os_image: str


def invalid(pool: Obj, configs: Mapping[str, Obj], expected: Expected) -> str | None:
    """Why the configuration that the pool's nodes are at is not the expected one; None if it is."""
    status = dig(pool, "status", "configuration", default={})
    message = f"pool {name_of(pool)} is empty: {summary(pool)}"
    if not dig(pool, "spec", "configuration", "name"):
        return f"configuration spec for {message}"
    if not status.get("name"):
        return f"configuration status for {message}"
    if not status.get("source"):
        return f"list of MachineConfigs that were used to generate configuration for {message}"
    rendered = str(status["name"])
    for name in (rendered, *(str(each.get("name") or "") for each in status["source"])):
        problem = _wrong_controller(pool, name, rendered, configs, expected)
        if problem is not None:
            return problem
    return _wrong_release(pool, configs[rendered], expected)


def _wrong_controller(
    pool: Obj, name: str, rendered: str, configs: Mapping[str, Obj], expected: Expected
) -> str | None:
    config = configs.get(name)
    if config is None:
        return f"machineconfig.machineconfiguration.openshift.io {quoted(name)} not found"
    version = annotations_of(config).get(GENERATED_BY)
    if version is None and name == rendered:
        return f"{name} must be created by controller version {expected.controller}: {summary(pool)}"
    if version is not None and version != expected.controller:
        wanted = f"controller version mismatch for {name} expected {expected.controller}"
        return f"{wanted} has {version}: {summary(pool)}"
    return None


def _wrong_release(pool: Obj, config: Obj, expected: Expected) -> str | None:
    found = annotations_of(config)
    image = str(dig(config, "spec", "osImageURL", default="") or "")
    where = f"{name_of(pool)} in {name_of(config)}"
    if image != expected.os_image and OVERRIDDEN not in found:
        return f"osImageURL mismatch for {where} expected: {expected.os_image} got: {image}"
    if RELEASE not in found:
        return f"unable to access annotation {RELEASE} for {name_of(config)} expected: {expected.release}"
    if found[RELEASE] != expected.release:
        return f"release image version mismatch for {where} expected: {expected.release} got: {found[RELEASE]}"
    return None


def summary(pool: Obj) -> str:
    """One line about a pool; what is degraded comes first."""
    status = dig(pool, "status", default={})
    conditions = status.get("conditions") or []
    if condition_is(conditions, "RenderDegraded"):
        return f"pool is degraded because rendering fails with {_said(conditions, 'RenderDegraded')}"
    if condition_is(conditions, "NodeDegraded"):
        return f"pool is degraded because nodes fail with {_said(conditions, 'NodeDegraded')}"
    total = status.get("machineCount") or 0
    if condition_is(conditions, "Updated"):
        at = dig(status, "configuration", "name", default="")
        return f"all {total} nodes are at latest configuration {at}"
    if condition_is(conditions, "Updating"):
        updated, ready = status.get("updatedMachineCount") or 0, status.get("readyMachineCount") or 0
        target = dig(pool, "spec", "configuration", "name", default="")
        return f"{updated} (ready {ready}) out of {total} nodes are updating to latest configuration {target}"
    if condition_is(conditions, "PinnedImageSetsDegraded"):
        return f"pool is degraded because pinned image sets failed with {_said(conditions, 'PinnedImageSetsDegraded')}"
    return "<unknown>"


def _said(conditions: list[Obj], kind: str) -> str:
    found = next(each for each in reversed(conditions) if each.get("type") == kind)
    reason, message = (quoted(str(found.get(key) or "")) for key in ("reason", "message"))
    return f"{reason}: {message}"
