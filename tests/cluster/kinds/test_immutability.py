"""What may not change once an object exists, in Kubernetes' words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from syncline.kube.objects import Obj

from .writing import job, plain, pod, service, updated, workload  # type: ignore[import-untyped]


def test_a_jobs_template_cannot_change() -> None:
    _, causes = updated(job(), lambda o: o["spec"]["template"]["spec"]["containers"][0].update(image="y:1"))
    assert [c.split(": ")[0] for c in causes] == ["spec.template"]
    assert causes[0].endswith(": field is immutable")


def test_a_suspended_job_may_still_be_placed() -> None:
    def place(obj: Obj) -> None:
        obj["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}

    assert updated(job(suspend=True), place)[1] == []
    assert updated(job(), place)[1]


def test_an_indexed_job_is_resized_only_together_with_its_parallelism() -> None:
    indexed = job(completionMode="Indexed", completions=2, parallelism=2)
    assert updated(indexed, lambda o: o["spec"].update(completions=3, parallelism=3))[1] == []
    _, causes = updated(indexed, lambda o: o["spec"].update(completions=3))
    assert causes == ["spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism"]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "DaemonSet"])
def test_a_selector_cannot_change(kind: str) -> None:
    def other(obj: Obj) -> None:
        obj["spec"]["selector"] = {"matchLabels": {"app": "b"}}
        obj["spec"]["template"]["metadata"]["labels"] = {"app": "b"}

    _, causes = updated(workload(kind), other)
    assert causes == ['spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable']


POD_CHANGES: list[tuple[str, Callable[[Obj], object], list[str]]] = [
    ("an image may change", lambda s: s["containers"][0].update(image="y:2"), []),
    ("a toleration may be added", lambda s: s.update(tolerations=[{"key": "k", "operator": "Exists"}]), []),
    ("a deadline may be set", lambda s: s.update(activeDeadlineSeconds=5), []),
    ("a command may not", lambda s: s["containers"][0].update(command=["a"]), ["spec"]),
    ("the node may not", lambda s: s.update(nodeName="n1"), ["spec"]),
    ("no container joins", lambda s: s["containers"].append({"name": "d", "image": "x"}), ["spec.containers"]),
]


@pytest.mark.parametrize(("change", "fields"), [c[1:] for c in POD_CHANGES], ids=[c[0] for c in POD_CHANGES])
def test_of_a_pod_little_changes(change: Callable[[Obj], object], fields: list[str]) -> None:
    _, causes = updated(pod(), lambda o: change(o["spec"]))
    assert [c.split(": ")[0] for c in causes] == fields


def test_an_existing_toleration_stays() -> None:
    tolerant = pod(tolerations=[{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}])
    assert updated(tolerant, lambda o: o["spec"]["tolerations"][0].update(tolerationSeconds=6))[1] == []
    _, causes = updated(tolerant, lambda o: o["spec"].pop("tolerations"))
    why = "existing toleration can not be modified except its tolerationSeconds"
    assert causes == [f"spec.tolerations: Forbidden: {why}"]


def test_a_frozen_config_map_keeps_data_and_frost() -> None:
    frozen = plain("ConfigMap", immutable=True, data={"k": "v"})
    why = "Forbidden: field is immutable when `immutable` is set"
    assert updated(frozen, lambda o: o["data"].update(k="w"))[1] == [f"data: {why}"]
    assert updated(frozen, lambda o: o.pop("immutable"))[1] == [f"immutable: {why}"]
    assert updated(frozen, lambda o: o["metadata"].update(labels={"a": "b"}))[1] == []


def test_a_secrets_type_stays_and_its_values_are_not_told() -> None:
    secret = plain("Secret", type="Opaque", data={"k": "c2VjcmV0"}, immutable=True)
    _, causes = updated(secret, lambda o: o.update(type="other", data={"k": "b3RoZXI="}))
    assert causes == [
        'type: Invalid value: "other": field is immutable',
        "data: Forbidden: field is immutable when `immutable` is set",
    ]


def test_a_cluster_ip_stays_once_given() -> None:
    given = service(clusterIP="10.0.0.7")
    _, causes = updated(given, lambda o: o["spec"].update(clusterIP="10.0.0.8", clusterIPs=["10.0.0.8"]))
    assert causes == ['spec.clusterIPs[0]: Invalid value: ["10.0.0.8"]: may not change once set']


def test_a_put_without_the_cluster_ip_keeps_it() -> None:
    def forget(obj: Obj) -> None:
        for key in ("clusterIP", "clusterIPs", "ipFamilies"):
            obj["spec"].pop(key, None)

    new, causes = updated(service(clusterIP="10.0.0.7"), forget)
    assert causes == []
    assert new["spec"]["clusterIPs"] == ["10.0.0.7"]


def test_a_bindings_role_cannot_change() -> None:
    binding = plain("RoleBinding", "rbac.authorization.k8s.io/v1", roleRef={"kind": "Role", "name": "a"}, subjects=[])
    _, causes = updated(binding, lambda o: o["roleRef"].update(name="b"))
    assert len(causes) == 1
    assert causes[0].endswith(": cannot change roleRef")


def test_a_bound_claim_may_grow_and_an_unbound_one_may_not() -> None:
    claim = plain("PersistentVolumeClaim")
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    _, causes = updated(claim, lambda o: o["spec"]["resources"]["requests"].update(storage="2Gi"))
    assert [c.split(": ")[0] for c in causes] == ["spec"]


def test_metadata_that_the_server_wrote_stays() -> None:
    def steal(obj: Obj) -> None:
        obj["metadata"].update(uid="1111", name="b")

    _, causes = updated(plain("ConfigMap"), steal)
    assert causes == [
        'metadata.name: Invalid value: "b": field is immutable',
        'metadata.uid: Invalid value: "1111": field is immutable',
    ]


def test_a_dying_object_takes_no_new_finalizers() -> None:
    dying = plain("ConfigMap")
    dying["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.io/x"]}
    _, causes = updated(dying, lambda o: o["metadata"].update(finalizers=["a.io/x", "a.io/y"]))
    found = 'found new finalizers []string{"a.io/y"}'
    why = f"no new finalizers can be added if the object is being deleted, {found}"
    assert causes == [f"metadata.finalizers: Forbidden: {why}"]
