"""Both versions of the kinds of add-ons: what one lacks is kept, and the embedded API serves them as one object."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.assembly.embedded.core import build_core
from syncline.assembly.embedded.install import ensure_objects
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.cluster.storage.store import Store
from syncline.control.executor import run_in_place
from syncline.kube.client import Request, Transport
from syncline.kube.kinds.addonversions import CONVERSIONS
from syncline.kube.kinds.managedaddons import addon_crds
from syncline.kube.objects import Obj

GROUP = "addon.open-cluster-management.io"
ALPHA, BETA = f"{GROUP}/v1alpha1", f"{GROUP}/v1beta1"
SIGNER = "kubernetes.io/kube-apiserver-client"
KEPT = "addon.open-cluster-management.io/v1alpha1-install-namespace"
DESIRED = {"name": "a", "namespace": "b", "specHash": "c"}
CONFIG = {"group": "g", "resource": "r"}


def managed(version: str, spec: Obj, status: Obj | None = None, **notes: str) -> Obj:
    metadata: Obj = {"name": "a", "namespace": "c1"} | ({"annotations": notes} if notes else {})
    made = {"apiVersion": version, "kind": "ManagedClusterAddOn", "metadata": metadata, "spec": spec}
    return made if status is None else made | {"status": status}


def cluster_wide(version: str, spec: Obj, status: Obj | None = None) -> Obj:
    made = {"apiVersion": version, "kind": "ClusterManagementAddOn", "metadata": {"name": "a"}, "spec": spec}
    return made if status is None else made | {"status": status}


PAIRS: dict[str, tuple[Obj, Obj]] = {
    "an install namespace is kept in an annotation": (
        managed(ALPHA, {"installNamespace": "x"}, note="1"),
        managed(BETA, {}, **{"note": "1", KEPT: "x"}),
    ),
    "a config reference has its name in the desired config": (
        managed(ALPHA, {}, {"configReferences": [{**CONFIG, "name": "a", "namespace": "b", "desiredConfig": DESIRED}]}),
        managed(BETA, {}, {"configReferences": [{**CONFIG, "desiredConfig": DESIRED}]}),
    ),
    "a registration with the signer of the API server is of a client, with its driver": (
        managed(
            ALPHA,
            {},
            {"registrations": [{"signerName": SIGNER, "subject": {"user": "u"}}], "kubeClientDriver": "csr"},
        ),
        managed(
            BETA,
            {},
            {"registrations": [{"type": "kubeClient", "kubeClient": {"subject": {"user": "u"}, "driver": "csr"}}]},
        ),
    ),
    "any other registration has a signer, and units by another name": (
        managed(ALPHA, {}, {"registrations": [{"signerName": "a.b/c", "subject": {"organizationUnit": ["o"]}}]}),
        managed(
            BETA,
            {},
            {
                "registrations": [
                    {
                        "type": "customSigner",
                        "customSigner": {"signerName": "a.b/c", "subject": {"organizationUnits": ["o"]}},
                    }
                ]
            },
        ),
    ),
    "a supported kind of config has a default, or a reserved name": (
        cluster_wide(
            ALPHA, {"supportedConfigs": [{**CONFIG, "defaultConfig": {"name": "d"}}, {**CONFIG, "group": ""}]}
        ),
        cluster_wide(
            BETA,
            {"defaultConfigs": [{**CONFIG, "name": "d"}, {**CONFIG, "group": "", "name": "__reserved_no_default__"}]},
        ),
    ),
    "default references are spelled otherwise": (
        cluster_wide(ALPHA, {}, {"defaultconfigReferences": [CONFIG]}),
        cluster_wide(BETA, {}, {"defaultConfigReferences": [CONFIG]}),
    ),
}


@pytest.mark.parametrize(("alpha", "beta"), PAIRS.values(), ids=PAIRS)
def test_an_object_is_the_same_there_and_back(alpha: Obj, beta: Obj) -> None:
    kind = alpha["kind"]
    assert CONVERSIONS[ALPHA, BETA, kind](alpha) == beta
    assert CONVERSIONS[BETA, ALPHA, kind](beta) == alpha


def hub() -> Transport:
    core = build_core(store=Store(), clock=VirtualClock(), entropy=Entropy(1))
    core.bootstrap(port=6443)
    admin = core.transport()
    run_in_place(ensure_objects(addon_crds()), admin)
    return admin


def send(admin: Transport, verb: str, path: str, body: Any = None) -> Obj:
    headers = {"content-type": "application/merge-patch+json"} if verb == "PATCH" else {}
    made: Obj = admin.send(Request(verb, path, headers=headers, body=body)).or_raise()
    return made


def test_the_embedded_api_serves_both_versions_of_one_object() -> None:
    admin = hub()
    alpha, beta = (f"/apis/{GROUP}/{version}/clustermanagementaddons" for version in ("v1alpha1", "v1beta1"))
    spec = {"defaultConfigs": [{**CONFIG, "name": "d"}]}
    send(admin, "POST", beta, cluster_wide(BETA, spec))
    assert send(admin, "GET", f"{alpha}/a")["spec"]["supportedConfigs"] == [{**CONFIG, "defaultConfig": {"name": "d"}}]
    send(admin, "PATCH", f"{alpha}/a", {"spec": {"supportedConfigs": [{**CONFIG, "defaultConfig": {"name": "e"}}]}})
    (listed,) = send(admin, "GET", beta)["items"]
    assert listed["spec"]["defaultConfigs"] == [{**CONFIG, "name": "e"}]


def test_an_add_on_made_in_the_later_version_has_the_default_namespace_in_the_stored_one() -> None:
    admin = hub()
    send(admin, "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c1"}})
    alpha, beta = (f"/apis/{GROUP}/{version}/namespaces/c1/managedclusteraddons" for version in ("v1alpha1", "v1beta1"))
    send(admin, "POST", beta, managed(BETA, {}))
    made = send(admin, "GET", f"{alpha}/a")
    assert made["spec"]["installNamespace"] == "open-cluster-management-agent-addon"
    status = {"registrations": [{"type": "kubeClient", "kubeClient": {"driver": "csr"}}]}
    send(admin, "PATCH", f"{beta}/a/status", {"status": status})
    assert send(admin, "GET", f"{alpha}/a")["status"]["kubeClientDriver"] == "csr"


def test_without_a_converter_only_the_stored_version_of_kinds_that_differ_is_served() -> None:
    served = {
        crd["spec"]["names"]["kind"]: [one["name"] for one in crd["spec"]["versions"] if one["served"]]
        for crd in addon_crds(None)
    }
    both = ["v1alpha1", "v1beta1"]
    assert served == {
        "ClusterManagementAddOn": ["v1alpha1"],
        "ManagedClusterAddOn": ["v1alpha1"],
        "AddOnDeploymentConfig": both,
        "AddOnTemplate": ["v1alpha1"],
    }
