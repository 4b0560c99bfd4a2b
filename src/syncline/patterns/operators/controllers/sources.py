"""The controller of CatalogSources: whether a catalogue is there; and what they offer, as PackageManifests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_time
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, spec_differs
from syncline.control.plan import Plan, set_status
from syncline.kube.objects import Obj, ObjectRef, dig, is_terminating, name_of, namespace_of, uid_of
from syncline.patterns.operators.catalogs.manifests import visible
from syncline.patterns.operators.catalogs.model import Catalog
from syncline.patterns.operators.controllers.looking import GLOBAL_NAMESPACE, SOURCES, Offers

READY, UNREACHABLE = "READY", "TRANSIENT_FAILURE"
INVALID = "SpecInvalidError"


@dataclass(frozen=True, slots=True)
class Looked:
    source: Obj
    catalog: Catalog | str


def spec_problem(source: Obj) -> str:
    """Return why a CatalogSource cannot be a catalogue; "" if it can (``validateSourceType``)."""
    spec = source.get("spec") or {}
    kind = spec.get("sourceType")
    if kind in ("configmap", "internal"):
        return "" if spec.get("configMap") else f"configmap name unset: must be set for sourcetype: {kind}"
    if kind != "grpc":
        return f"unknown sourcetype: {kind}"
    given = spec.get("image") or spec.get("address")
    return "" if given else f"image and address unset: at least one must be set for sourcetype: {kind}"


def is_healthy(source: Obj) -> bool:
    """Return whether the last look found the catalogue."""
    return bool(dig(source, "status", "connectionState", "lastObservedState", default="") == READY)


def plan(looked: Looked, now: datetime) -> Plan:
    """Plan one reconcile of a CatalogSource."""
    source, problem = looked.source, spec_problem(looked.source)
    before = source.get("status") or {}
    status = {key: value for key, value in before.items() if key not in ("reason", "message")}
    if problem:
        status |= {"reason": INVALID, "message": problem}
        status.pop("connectionState", None)
        return Plan(status=set_status(source, status, problem), why=problem)
    state = UNREACHABLE if isinstance(looked.catalog, str) else READY
    connection = dict(status.get("connectionState") or {})
    if connection.get("lastObservedState") != state:
        address = f"{name_of(source)}.{namespace_of(source)}.svc:50051"
        connection |= {"address": address, "lastConnect": format_time(now), "lastObservedState": state}
    status["connectionState"] = connection
    if isinstance(looked.catalog, str):
        status["message"] = looked.catalog
        return Plan(status=set_status(source, status, "there is no catalogue"), why=looked.catalog)
    why = f"{len(looked.catalog.packages)} packages are offered"
    return Plan(why=why, status=set_status(source, status, why))


def package_manifests(offers: Offers, sources: Sequence[Obj], namespace: str) -> list[Obj]:
    """Return the PackageManifests that are visible in a namespace; "": in all."""

    def offered(source: Obj) -> Catalog | None:
        found = offers(source) if is_healthy(source) else ""
        return None if isinstance(found, str) else found

    return visible(sources, namespace, GLOBAL_NAMESPACE, offered)


def source_controller(offers: Offers) -> Controller[Looked]:
    """Return the controller; ``offers``: the catalogues that the administrator has named."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Looked | None:
        source = cache.get(ref)
        if source is None or is_terminating(source):
            return None
        return Looked(source, offers(source))

    return Controller(
        name="catalog-source",
        kind=SOURCES,
        predicate=spec_differs,
        observe=observe,
        plan=plan,
    )


def health_of(source: Obj, now: datetime) -> Obj:
    """Return the entry of a CatalogSource in ``status.catalogHealth`` of a Subscription."""
    reference = {
        "kind": "CatalogSource",
        "namespace": namespace_of(source),
        "name": name_of(source),
        "uid": uid_of(source),
        "apiVersion": "operators.coreos.com/v1alpha1",
        "resourceVersion": str(dig(source, "metadata", "resourceVersion", default="")),
    }
    return {"catalogSourceRef": reference, "lastUpdated": format_time(now), "healthy": is_healthy(source)}
