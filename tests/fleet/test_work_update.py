"""What the strategy Update writes into kinds that upstream treats in a way of their own, as a table."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet.agents import Place, deployment
from tests.fleet.world import Fleet, config_map

from syncline.apply.diff.jq import Answers
from syncline.control.plan import Create, Delete, Replace
from syncline.fleet.spoke.work.manifests.applying import Depth, ManifestPlan, plan_manifest
from syncline.fleet.spoke.work.manifests.typed import SPEC_HASH, ManifestError
from syncline.fleet.spoke.work.ownership import Ownership, reference_to
from syncline.kube.objects import Obj, annotations_of

OURS = reference_to({"metadata": {"name": "hub-w", "uid": "u1"}})


def obj(kind: str, version: str = "v1", notes: Any = None, labels: Any = None, **fields: Any) -> Obj:
    metadata = {"name": "x", "namespace": "n", "labels": labels or {}, "annotations": notes or {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def live(one: Obj, **metadata: Any) -> Obj:
    """Return the object as it is on the cluster."""
    own = {"uid": "o", "resourceVersion": "7", "generation": 1, "ownerReferences": [OURS]}
    return {**one, "metadata": {**one["metadata"], **own, **metadata}}


def plan(manifest: Obj, there: Obj | None, depth: Depth = Depth.FULL) -> ManifestPlan:
    return plan_manifest(manifest, there, None, Ownership(OURS), Answers(), depth)


def written(manifest: Obj, there: Obj) -> Obj | None:
    made = plan(manifest, there).write
    assert made is None or isinstance(made, Replace)
    return None if made is None else made.obj


RBAC = "rbac.authorization.k8s.io/v1"
HOOK = {"name": "a.b.c", "clientConfig": {"service": {"name": "s", "namespace": "n"}}}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
INJECTED = {"config.openshift.io/inject-trusted-cabundle": "true"}


@pytest.mark.parametrize(
    ("manifest", "there"),
    [
        (obj("Namespace"), obj("Namespace", spec={"finalizers": ["kubernetes"]})),
        (obj("ServiceAccount"), obj("ServiceAccount", secrets=[{"name": "token"}])),
        (obj("Pod", spec={"containers": []}), obj("Pod", spec={"containers": [], "nodeName": "a"})),
        (obj("ConfigMap", labels=INJECTED), obj("ConfigMap", labels=INJECTED, data={"ca-bundle.crt": "pem"})),
        (obj("Secret", stringData={"a": "b"}), obj("Secret", data={"a": "Yg=="}, type="Opaque")),
        (
            obj("ClusterRole", RBAC, aggregationRule={"clusterRoleSelectors": [{}]}),
            obj("ClusterRole", RBAC, aggregationRule={"clusterRoleSelectors": [{}]}, rules=RULES),
        ),
        (
            obj("ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", webhooks=[HOOK]),
            obj(
                "ValidatingWebhookConfiguration",
                "admissionregistration.k8s.io/v1",
                webhooks=[
                    {
                        **HOOK,
                        "clientConfig": {
                            "service": {"name": "s", "namespace": "n", "port": 443},
                            "caBundle": "cGVt",
                        },
                        "failurePolicy": "Fail",
                        "matchPolicy": "Equivalent",
                        "namespaceSelector": {},
                        "objectSelector": {},
                        "timeoutSeconds": 10,
                    }
                ],
            ),
        ),
        (
            obj("PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"]}),
            obj("PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"], "volumeName": "v"}),
        ),
    ],
    ids=lambda one: one["kind"] if isinstance(one, dict) else None,
)
def test_what_the_cluster_puts_in_stays(manifest: Obj, there: Obj) -> None:
    found = written(manifest, live(there))
    assert found is None or {key: found.get(key) for key in there} == {**live(there), "metadata": found["metadata"]}


def test_a_service_is_written_when_its_manifest_its_selector_or_its_type_differs() -> None:
    manifest = obj("Service", spec={"selector": {"a": "b"}, "ports": [{"port": 80}]})
    created = plan(manifest, None).write
    assert isinstance(created, Create)
    there = live({**created.obj, "spec": {**created.obj["spec"], "clusterIP": "10.0.0.1", "type": "ClusterIP"}})
    assert annotations_of(created.obj)[SPEC_HASH]
    assert written(manifest, there) is None
    moved = {**there, "spec": {**there["spec"], "ports": [{"port": 81}]}}
    assert written(manifest, moved) is None, "upstream cannot tell this from what the API server fills in"
    found = written(manifest, {**there, "spec": {**there["spec"], "selector": {}}}) or {}
    assert found["spec"]["selector"] == {"a": "b"}
    assert written(obj("Service", spec={**manifest["spec"], "ports": [{"port": 82}]}), there) is not None


def test_a_secret_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ManifestError, match=r'Secret\.stringData\["a"\] conflicts with Secret\.data\["a"\]'):
        plan(obj("Secret", stringData={"a": "b"}, data={"a": "Yw=="}), None)


STORAGE = "storage.k8s.io/v1"


@pytest.mark.parametrize(
    ("manifest", "there"),
    [
        (obj("Secret", data={}, type="a/b"), obj("Secret", data={}, type="Opaque")),
        (obj("StorageClass", STORAGE, provisioner="a/b"), obj("StorageClass", STORAGE, provisioner="a/c")),
    ],
)
def test_what_cannot_be_changed_is_made_again(manifest: Obj, there: Obj) -> None:
    found = plan(manifest, live(there))
    assert isinstance(found.first, Delete)
    assert found.first.uid == "o"
    assert isinstance(found.write, Create)
    assert not {"uid", "resourceVersion"} & set(found.write.obj["metadata"])


def test_whether_a_class_is_the_default_is_left_to_the_cluster() -> None:
    note = "storageclass.kubernetes.io/is-default-class"
    manifest = obj("StorageClass", STORAGE, {note: "true"}, provisioner="a/b", allowVolumeExpansion=True)
    filled = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
    found = written(manifest, live(obj("StorageClass", STORAGE, {note: "false"}, provisioner="a/b", **filled)))
    assert annotations_of(found or {})[note] == "false"


def test_what_others_add_is_no_drift_but_is_replaced_with_the_rest() -> None:
    manifest, there = config_map("x", "n", a="1"), live(config_map("x", "n", a="1", b="2"))
    assert plan(manifest, there, Depth.DRIFT).write is None
    assert plan(manifest, there, Depth.FULL).write is not None
    assert plan(config_map("x", "n", a="2"), there, Depth.DRIFT).write is not None
    assert plan(config_map("x", "n", a="2"), there, Depth.METADATA).write is None


def test_the_hash_of_a_service_is_upstreams() -> None:
    ports = [{"port": 80, "targetPort": "http"}, {"name": "x", "port": 81}]
    created = plan(obj("Service", spec={"selector": {"a": "b"}, "ports": ports}), None).write
    assert isinstance(created, Create)
    assert annotations_of(created.obj)[SPEC_HASH] == "8adc2df98985fb277850d85065479f873fbb57a8e262aa46bff3196846ff6693"


def secret(name: str, value: str) -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": value}, "immutable": True}


def test_an_immutable_secret_is_made_again() -> None:
    place = Place(Fleet("c1"))
    place.work("w", secret("s", "Yg=="))
    before = place.there("/api/v1/namespaces/default/secrets/s") or {}
    place.manifests("w", secret("s", "Yw=="))
    place.settle(2)
    after = place.there("/api/v1/namespaces/default/secrets/s") or {}
    assert (before["data"], after["data"]) == ({"a": "Yg=="}, {"a": "Yw=="})
    assert before["metadata"]["uid"] != after["metadata"]["uid"]
    assert place.condition("w", "Applied") == ("True", "AppliedManifestWorkComplete")


def job(name: str) -> Obj:
    container = {"name": "c", "image": "example.com/c:1"}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def service(name: str) -> Obj:
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def claim(name: str) -> Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def test_what_the_api_fills_in_is_no_difference_also_after_a_restart_and_a_new_generation() -> None:
    place = Place(Fleet("c1"))
    manifests = [config_map("m"), job("j"), service("s"), claim("c"), deployment("d", 0)]
    place.work("defaults", *manifests)
    assert place.condition("defaults", "Applied") == ("True", "AppliedManifestWorkComplete")
    place.settle(30)
    place.restart()
    place.settle(30)
    place.manifests("defaults", *manifests, config_map("more"))
    place.settle(30)
    assert place.condition("defaults", "Applied") == ("True", "AppliedManifestWorkComplete")
    assert not [one for one in place.own.seen if one.startswith("PUT") and "leases" not in one]
