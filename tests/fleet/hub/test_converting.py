"""Conversion of add-ons for API servers that ask a webhook, and the definitions that name it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json
from tests.fleet.recordings import NOW

from syncline.control.plan import Patch
from syncline.fleet.hub.confinement import Reach
from syncline.fleet.hub.converting import Definition, converted, plan_definition
from syncline.kube.kinds.managedaddons import HERE, managed_addon_crd
from syncline.kube.objects import Obj

ALPHA, BETA = ("addon.open-cluster-management.io/v1alpha1", "addon.open-cluster-management.io/v1beta1")
ADDON = {"kind": "ManagedClusterAddOn", "metadata": {"name": "a", "namespace": "c1"}, "spec": {}}


def review(to: str, *objects: Obj) -> bytes:
    request = {"uid": "u", "desiredAPIVersion": to, "objects": list(objects)}
    return json.encode({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request})


@pytest.mark.parametrize(("given", "to"), [(ALPHA, BETA), (BETA, ALPHA), (ALPHA, ALPHA)])
def test_addons_are_converted_in_their_order(given: str, to: str) -> None:
    other = {**ADDON, "metadata": {"name": "b", "namespace": "c1"}, "apiVersion": given}
    response = converted(review(to, {**ADDON, "apiVersion": given}, other))["response"]
    assert (response["uid"], response["result"]) == ("u", {"status": "Success"})
    shown = [(one["apiVersion"], one["metadata"]) for one in response["convertedObjects"]]
    assert shown == [(to, ADDON["metadata"]), (to, other["metadata"])]


def test_what_is_not_known_is_a_failure_that_names_it() -> None:
    response = converted(review("a/v2", {**ADDON, "apiVersion": ALPHA}))["response"]
    assert response["result"]["status"] == "Failure"
    assert response["result"]["message"] == f"ManagedClusterAddOn of {ALPHA} cannot be converted to a/v2"
    assert response["convertedObjects"] == []


@pytest.mark.parametrize("body", [b"[]", b'{"request":{}}', b'{"request":{"objects":{}}}'])
def test_a_body_that_is_no_review_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a ConversionReview"):
        converted(body)


OURS = Reach(service=("syncline-hub-webhook", "open-cluster-management-hub", 443), ca_pem="CA")


@pytest.mark.parametrize(
    ("conversion", "written"),
    [(None, True), ({"strategy": "None"}, True), (HERE, False)],
)
def test_a_definition_names_the_webhook_unless_another_service_converts(conversion: Any, written: bool) -> None:
    crd = managed_addon_crd()
    if conversion:
        crd = {**crd, "spec": {**crd["spec"], "conversion": conversion}}
    plan = plan_definition(Definition(crd, OURS), NOW)
    patches = [one for one in plan.actions if isinstance(one, Patch)]
    assert bool(patches) is written
    for one in patches:
        spec = one.body["spec"]
        assert all(each["served"] for each in spec["versions"])
        made = {**crd, "spec": {**crd["spec"], **spec}}
        del made["spec"]["conversion"]["webhook"]["clientConfig"]["url"]
        assert plan_definition(Definition(made, OURS), NOW).empty, "once is enough"
