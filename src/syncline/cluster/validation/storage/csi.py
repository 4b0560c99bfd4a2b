"""CSI drivers, their node objects, and their storage capacity.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/storage/validation``.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import IMMUTABLE, Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, invalid, required
from syncline.cluster.validation.engine.fields import immutable, label_selector_causes
from syncline.cluster.validation.engine.metadata import metadata_update_causes
from syncline.cluster.validation.storage.volumes import driver_name_causes, token_lifetime
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

TOKENS_WARNING = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


class CSIDriverKind(Kind):
    namespaced = False
    revalidates = False
    rules = r.spec(
        r.field("fsGroupPolicy", r.choice("File", "None", "ReadWriteOnceWithFSType")),
        r.each("tokenRequests", r.unique("audience", first=token_lifetime)),
        r.always("volumeLifecycleModes", r.members("Persistent", "Ephemeral"), default=()),
        r.field("nodeAllocatableUpdatePeriodSeconds", r.at_least(10, "must be greater than or equal to 10 seconds")),
    )

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old) + self.content_causes(new)
        fresh, before = spec_of(new), spec_of(old)
        if fresh.get("attachRequired") != before.get("attachRequired"):
            causes.append(invalid("spec.attachedRequired", fresh.get("attachRequired"), IMMUTABLE))
        return causes + immutable(fresh, before, "spec", "volumeLifecycleModes")

    def count_generation(self, new: Obj, old: Obj) -> None:
        """Count from zero: a new driver has no generation."""
        metadata, before = new.setdefault("metadata", {}), (old.get("metadata") or {}).get("generation") or 0
        now = before + int(new.get("spec") != old.get("spec"))
        metadata.pop("generation", None)
        if now:
            metadata["generation"] = now

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        spec = spec_of(new)
        unsaid = spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None
        return [TOKENS_WARNING] if old is None and unsaid else []


def _topology_keys(driver: Obj, path: str) -> Iterator[FieldCause]:
    keys = driver.get("topologyKeys") or []
    for index, key in enumerate(keys):
        if not key:
            yield required(path)
        if key in keys[:index]:
            yield duplicate(path, key)
        yield from r.qualified(key, path)


class CSINodeKind(Kind):
    namespaced = False
    rules = r.spec(
        r.each(
            "drivers",
            r.text("name", driver_name_causes),
            r.need("nodeID", r.must(lambda node: len(node) <= 256, "must be 256 characters or less")),
            r.part("allocatable", r.natural("count")),
            r.unique("name"),
            _topology_keys,
        )
    )

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        """Allow only changes of a driver's number of volumes per node."""
        old_drivers, drivers = (r.list_of(spec_of(obj), "drivers") for obj in (old, new))
        before = {one.get("name"): {**one, "allocatable": None} for one in old_drivers}
        return metadata_update_causes(new, old) + [
            invalid("spec.drivers", one, IMMUTABLE)
            for one in drivers
            if before.get(one.get("name"), {**one, "allocatable": None}) != {**one, "allocatable": None}
        ]


class StorageCapacityKind(Kind):
    rules = r.every(
        r.field("nodeTopology", label_selector_causes),
        r.text("storageClassName", r.subdomain),
        r.field("capacity", r.not_negative),
    )
    fixed = ("nodeTopology", "storageClassName")
