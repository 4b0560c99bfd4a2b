"""CSI drivers, what nodes know of them, and the room they report.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/storage/validation``.
"""

from __future__ import annotations

from typing import ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import IMMUTABLE, NATURAL, each, immutable, label_selector_causes
from syncline.cluster.validation.engine.metadata import NameCheck, metadata_update_causes
from syncline.cluster.validation.storage.claims import amount
from syncline.cluster.validation.storage.volumes import LONGEST_TOKEN_S, SHORTEST_TOKEN_S, driver_name_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

__all__ = ["CSIDriverKind", "CSINodeKind", "StorageCapacityKind"]

LIFECYCLES = ("Persistent", "Ephemeral")
GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
MOST_NODE_ID = 256
SHORTEST_PERIOD_S = 10
TOKENS_WARNING = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


class CSIDriverKind(Kind):
    namespaced = False
    has_generation = False
    name_check: ClassVar[NameCheck] = staticmethod(names.dns_subdomain)
    revalidates = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes: list[FieldCause] = []
        policy = spec.get("fsGroupPolicy")
        if policy is not None and policy not in GROUP_POLICIES:
            causes.append(unsupported("spec.fsGroupPolicy", policy, GROUP_POLICIES))
        causes += _token_causes(spec)
        causes += [
            unsupported("spec.volumeLifecycleModes", mode, LIFECYCLES)
            for mode in spec.get("volumeLifecycleModes") or ()
            if mode not in LIFECYCLES
        ]
        period = spec.get("nodeAllocatableUpdatePeriodSeconds")
        if isinstance(period, int) and period < SHORTEST_PERIOD_S:
            where = "spec.nodeAllocatableUpdatePeriodSeconds"
            causes.append(invalid(where, period, f"must be greater than or equal to {SHORTEST_PERIOD_S} seconds"))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old) + self.content_causes(new)
        fresh, before = spec_of(new), spec_of(old)
        if fresh.get("attachRequired") != before.get("attachRequired"):
            causes.append(invalid("spec.attachedRequired", fresh.get("attachRequired"), IMMUTABLE))
        return causes + immutable(fresh, before, "spec", "volumeLifecycleModes")

    def count_generation(self, new: Obj, old: Obj) -> None:
        """Counted from nothing: a driver begins without a generation."""
        metadata, before = new.setdefault("metadata", {}), (old.get("metadata") or {}).get("generation") or 0
        now = before + int(new.get("spec") != old.get("spec"))
        metadata.pop("generation", None)
        if now:
            metadata["generation"] = now

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        spec = spec_of(new)
        unsaid = spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None
        return [TOKENS_WARNING] if old is None and unsaid else []


def _token_causes(spec: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for at, request in each(spec, "tokenRequests", "spec"):
        audience, seconds = str(request.get("audience") or ""), request.get("expirationSeconds")
        if audience in seen:
            causes.append(duplicate(f"{at}.audience", audience))
            continue
        seen.add(audience)
        if isinstance(seconds, int) and seconds < SHORTEST_TOKEN_S:
            why = "may not specify a duration less than 10 minutes"
            causes.append(invalid(f"{at}.expirationSeconds", seconds, why))
        if isinstance(seconds, int) and seconds > LONGEST_TOKEN_S:
            why = "may not specify a duration larger than 2^32 seconds"
            causes.append(invalid(f"{at}.expirationSeconds", seconds, why))
    return causes


class CSINodeKind(Kind):
    namespaced = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        seen: set[str] = set()
        for at, driver in each(spec_of(obj), "drivers", "spec"):
            name, node = str(driver.get("name") or ""), str(driver.get("nodeID") or "")
            causes += driver_name_causes(name, f"{at}.name")
            if not node:
                causes.append(required(f"{at}.nodeID"))
            if len(node) > MOST_NODE_ID:
                causes.append(invalid(f"{at}.nodeID", node, f"must be {MOST_NODE_ID} characters or less"))
            count = (driver.get("allocatable") or {}).get("count")
            if isinstance(count, int) and count < 0:
                causes.append(invalid(f"{at}.allocatable.count", count, NATURAL))
            if name in seen:
                causes.append(duplicate(f"{at}.name", name))
            seen.add(name)
            keys = driver.get("topologyKeys") or []
            for index, key in enumerate(keys):
                causes += [required(at)] if not key else []
                causes += [duplicate(at, key)] if key in keys[:index] else []
                causes += [invalid(at, key, problem) for problem in names.qualified_name(key)]
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        before = {one.get("name"): one for _, one in each(spec_of(old), "drivers", "")}
        for _, driver in each(spec_of(new), "drivers", ""):
            known = before.get(driver.get("name"))
            if known is not None and _fixed(known) != _fixed(driver):
                causes.append(invalid("spec.drivers", driver, IMMUTABLE))
        return causes


def _fixed(driver: Obj) -> Obj:
    """How many volumes a node takes may change."""
    return {key: value for key, value in driver.items() if key != "allocatable"}


class StorageCapacityKind(Kind):
    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes = label_selector_causes(obj.get("nodeTopology"), "nodeTopology")
        name, size = str(obj.get("storageClassName") or ""), amount(obj.get("capacity"))
        causes += [invalid("storageClassName", name, problem) for problem in names.dns_subdomain(name)]
        if size is not None and size.nano < 0:
            causes.append(invalid("capacity", str(size), NATURAL))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + immutable(new, old, "", "nodeTopology", "storageClassName")
