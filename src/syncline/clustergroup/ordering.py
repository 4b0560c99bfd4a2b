"""The order in which Helm prints and installs objects, by kind; pure. :func:`rank`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from syncline.kube.objects import Obj

_KINDS: Final = (
    "PriorityClass Namespace NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget "
    "ServiceAccount Secret SecretList ConfigMap StorageClass PersistentVolume PersistentVolumeClaim "
    "CustomResourceDefinition ClusterRole ClusterRoleList ClusterRoleBinding ClusterRoleBindingList Role RoleList "
    "RoleBinding RoleBindingList Service DaemonSet Pod ReplicationController ReplicaSet Deployment "
    "HorizontalPodAutoscaler StatefulSet Job CronJob IngressClass Ingress APIService MutatingWebhookConfiguration "
    "ValidatingWebhookConfiguration"
)
_RANKS: Final[Mapping[str, int]] = {kind: rank for rank, kind in enumerate(_KINDS.split())}


def rank(obj: Obj) -> tuple[int, str]:
    """Return the place of an object's kind in Helm's order of installation; unknown kinds come last, by name."""
    kind = str(obj.get("kind") or "")
    return (_RANKS[kind], "") if kind in _RANKS else (len(_RANKS), kind)
