"""The order in which the manifests of a work are applied: :func:`in_order`.

What others need comes first: namespaces and definitions, rights, policies and accounts, data, services, workloads,
webhooks; kinds that are not listed come last. Source: ``manifestwork_reconciler.go`` of upstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from syncline.kube.objects import Obj

_RANKS: Final = (
    "PriorityClass Namespace CustomResourceDefinition StorageClass PersistentVolume PodSecurityPolicy",
    "ClusterRole ClusterRoleBinding Role RoleBinding",
    "NetworkPolicy ResourceQuota LimitRange PodDisruptionBudget ServiceAccount",
    "Secret ConfigMap PersistentVolumeClaim",
    "Service",
    "DaemonSet Pod ReplicationController ReplicaSet Deployment HorizontalPodAutoscaler StatefulSet Job CronJob",
    "APIService MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy "
    "ValidatingAdmissionPolicyBinding",
)
_RANK: Final = {kind: rank for rank, kinds in enumerate(_RANKS) for kind in kinds.split()}


def in_order(manifests: Sequence[Obj]) -> list[tuple[int, Obj]]:
    """Return the manifests with their ordinals, in the order of applying; equal ranks keep the order of the spec."""
    return sorted(enumerate(manifests), key=lambda pair: _RANK.get(str(pair[1].get("kind")), len(_RANKS)))
