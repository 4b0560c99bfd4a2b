"""Select the nodes for a DaemonSet's pods, and create the pod for a node.

Source: Kubernetes' daemon controller (``NodeShouldRunDaemonPod``, ``AddOrUpdateDaemonPodTolerations``).
"""

from __future__ import annotations

from collections.abc import Callable

from syncline.cluster.builtin.workloads.templates import pod_from_template
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.kube.scheduling.terms import matches_node_terms, pinned_names, tolerates_all

GENERATION = "deprecated.daemonset.template.generation"
_BORNE = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def _tolerations(spec: Obj) -> list[Obj]:
    """Return the template's tolerations and those that every daemon pod has."""
    borne = [*_BORNE, *((("network-unavailable", "NoSchedule"),) if spec.get("hostNetwork") else ())]
    own = list(spec.get("tolerations") or [])
    added = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect} for key, effect in borne]
    return own + [each for each in added if each not in own]


def placement(daemonset: Obj) -> Callable[[Obj], tuple[bool, bool]]:
    """Return a function of a node: whether a pod should start on it, and whether a running one may stay. The template
    is read once for all nodes."""
    spec = dict(dig(daemonset, "spec", "template", "spec", default={}))
    asked, tolerations = spec.get("nodeName") or "", _tolerations(spec)
    anywhere = not spec.get("nodeSelector") and not spec.get("affinity")

    def judge(node: Obj) -> tuple[bool, bool]:
        if (asked and asked != name_of(node)) or not (anywhere or matches_node_terms(spec, node)):
            return False, False
        taints = dig(node, "spec", "taints")
        starts = not taints or tolerates_all(tolerations, taints, ("NoSchedule", "NoExecute"))
        return starts, starts or tolerates_all(tolerations, taints, ("NoExecute",))

    return judge


def daemon_pod(daemonset: Obj, node: str, digest: str) -> Obj:
    """Return the pod for a node; its affinity names the node, so that the scheduler binds it only there."""
    labels = {"controller-revision-hash": digest}
    if generation := annotations_of(daemonset).get(GENERATION):
        labels["pod-template-generation"] = generation
    pod = pod_from_template(daemonset, dig(daemonset, "spec", "template", default={}), labels=labels)
    spec = pod["spec"]
    spec["tolerations"] = _tolerations(spec)
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = dict(spec.get("affinity") or {})
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [pin]}
    spec["affinity"] = affinity | {"nodeAffinity": node_affinity}
    return pod


def node_of(pod: Obj) -> str:
    """Return the node that a pod runs on or is intended for."""
    bound = str(dig(pod, "spec", "nodeName", default=""))
    return bound or next(iter(sorted(pinned_names(pod) or ())), "")
