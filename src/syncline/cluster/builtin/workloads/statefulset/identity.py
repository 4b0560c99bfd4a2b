"""Identity of a StatefulSet's pods: names, labels, host names and claims by ordinal."""

from __future__ import annotations

from syncline.cluster.builtin.workloads.history import HASH_LABEL
from syncline.cluster.builtin.workloads.templates import pod_from_template
from syncline.cluster.validation.engine.integers import natural
from syncline.kube.objects import Obj, dig, name_of, namespace_of

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def pod_name(statefulset: Obj, ordinal: int) -> str:
    return f"{name_of(statefulset)}-{ordinal}"


def ordinal_of(statefulset: Obj, pod: Obj) -> int | None:
    """Return the ordinal in the pod's name; None if the name has another form."""
    parent, _, number = name_of(pod).rpartition("-")
    return natural(number) if parent == name_of(statefulset) else None


def _claim_templates(statefulset: Obj) -> list[Obj]:
    return list(dig(statefulset, "spec", "volumeClaimTemplates", default=[]))


def _claim_name(template: Obj, statefulset: Obj, ordinal: int) -> str:
    return f"{name_of(template)}-{pod_name(statefulset, ordinal)}"


def claims_of(statefulset: Obj, ordinal: int) -> list[Obj]:
    """Return the claims of one pod; they have no owner and outlive it (the default retention)."""
    claims: list[Obj] = []
    for template in _claim_templates(statefulset):
        labels = dict(dig(template, "metadata", "labels", default={}))
        labels |= dig(statefulset, "spec", "selector", "matchLabels", default={})
        metadata: Obj = {"name": _claim_name(template, statefulset, ordinal), "namespace": namespace_of(statefulset)}
        metadata |= {"labels": labels} if labels else {}
        if notes := dig(template, "metadata", "annotations", default={}):
            metadata["annotations"] = notes
        spec = dict(template.get("spec") or {})
        claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return claims


def stateful_pod(statefulset: Obj, template: Obj, ordinal: int, revision: str) -> Obj:
    """Return the pod of an ordinal, from a revision's template."""
    name = pod_name(statefulset, ordinal)
    labels = {POD_NAME: name, POD_INDEX: str(ordinal), HASH_LABEL: revision}
    pod = pod_from_template(statefulset, template, name=name, labels=labels)
    pod["metadata"]["generateName"] = f"{name_of(statefulset)}-"
    spec = pod["spec"]
    spec["hostname"] = name
    if service := dig(statefulset, "spec", "serviceName", default=""):
        spec["subdomain"] = service
    claimed = [
        {"name": name_of(each), "persistentVolumeClaim": {"claimName": _claim_name(each, statefulset, ordinal)}}
        for each in _claim_templates(statefulset)
    ]
    taken = {volume["name"] for volume in claimed}
    volumes = claimed + [volume for volume in spec.get("volumes") or () if volume.get("name") not in taken]
    if volumes:
        spec["volumes"] = volumes
    return pod
