"""The conversion of add-ons between their versions, for API servers that ask a webhook; pure.

Until the webhook can be reached, v1beta1 of these kinds is not served; the controller here turns it on. It leaves a
definition alone whose conversion is another service's, as upstream's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, differ
from syncline.control.plan import Done, Patch, Plan
from syncline.fleet.hub.confinement import Reach
from syncline.fleet.hub.keeping import pruned
from syncline.kube.kinds.addonversions import CONVERSIONS
from syncline.kube.objects import GVK, Obj, ObjectRef, dig, name_of, resource_version, uid_of

CONVERT: Final = "/convert"
CRD: Final = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_PLURALS: Final = ("clustermanagementaddons", "managedclusteraddons")
NAMES: Final = tuple(f"{plural}.addon.open-cluster-management.io" for plural in _PLURALS)


def converted(body: bytes) -> Obj:
    """Return the ConversionReview that answers the one in ``body``. Raises ValueError for a body that is no review."""
    review = msgspec.json.decode(body)
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or not isinstance(request.get("objects"), list):
        raise ValueError("the body is not a ConversionReview with a request")
    wanted, result, made = str(request.get("desiredAPIVersion")), {"status": "Success"}, list[Any]()
    for one in request["objects"]:
        given, kind = str(one.get("apiVersion")), str(one.get("kind"))
        change = CONVERSIONS.get((given, wanted, kind))
        if change is None and given != wanted:
            result = {"status": "Failure", "message": f"{kind} of {given} cannot be converted to {wanted}"}
            made = []
            break
        made.append(one if change is None else change(one))
    response = {"uid": str(request.get("uid") or ""), "convertedObjects": made, "result": result}
    return {"apiVersion": review.get("apiVersion"), "kind": "ConversionReview", "response": response}


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of an add-on's kind, and how the webhooks are reached."""

    live: Obj
    reach: Reach


def plan_definition(observed: Definition, _now: datetime) -> Plan:
    """Plan the conversion of one definition."""
    live, client = observed.live, observed.reach.client(CONVERT)
    service = dig(live, "spec", "conversion", "webhook", "clientConfig", "service", "name")
    if service and service != dig(client, "service", "name"):
        return Plan(why=f"service {service} converts it")
    webhook: Obj = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    wanted = {"strategy": "Webhook", "webhook": webhook}
    versions = dig(live, "spec", "versions") or []
    served = [{**one, "served": True} for one in versions]
    if pruned(dig(live, "spec", "conversion")) == pruned(wanted) and served == versions:
        return Plan(why="it is as it should be")
    # Both addresses: a merge patch would keep the former kind of address beside the new one.
    wanted["webhook"] = {**webhook, "clientConfig": {"url": None, "service": None, **client}}
    metadata = {"uid": uid_of(live), "resourceVersion": resource_version(live)}
    body = {"metadata": metadata, "spec": {"conversion": wanted, "versions": served}}
    why = "the webhook of the hub converts it"
    return Plan(((Patch(CRD, "", name_of(live), body, why),),), Done(), why)


def conversion_controller(reach: Callable[[], Reach | None]) -> Controller[Definition]:
    """Return the controller of the definitions of add-ons; ``reach``: as in ``hub_controllers``."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Definition | None:
        live, found = cache.get(ref), reach()
        if ref.name not in NAMES or live is None or found is None:
            return None
        return Definition(live, found)

    return Controller(
        name="addon-conversion",
        kind=CRD.group_kind,
        predicate=differ(lambda one: one.get("spec")),
        observe=observe,
        plan=plan_definition,
    )
