"""Map each kind to its strategy.

The registry calls :func:`strategy_for` for every built-in kind; it returns a shared, stateless :class:`Strategy`. Other
kinds get the permissive default with ObjectMeta validation; custom resources have their own strategy.
"""

from __future__ import annotations

from syncline.cluster.validation.core import core, devices, events, nodes
from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Context, Kind, Strategy
from syncline.cluster.validation.networking import endpoints, networking, services
from syncline.cluster.validation.pods import pods
from syncline.cluster.validation.policy import admissionpolicies, flowcontrol, policies, quotas, rbac, signing
from syncline.cluster.validation.storage import csi, storage
from syncline.cluster.validation.workloads import autoscaling, jobs, workloads
from syncline.kube.objects import GroupKind

__all__ = ["Context", "Kind", "Strategy", "strategy_for"]


class _ClusterWide(Kind):
    """The permissive default for cluster-scoped kinds."""

    namespaced = False
    name_check = names.path_segment


ADMISSION = "admissionregistration.k8s.io"
RBAC = "rbac.authorization.k8s.io"

_KINDS: dict[GroupKind, Strategy] = {
    GroupKind("", "ConfigMap"): core.ConfigMapKind(),
    GroupKind("", "Endpoints"): endpoints.EndpointsKind(),
    GroupKind("", "Event"): events.EventKind(),
    GroupKind("", "LimitRange"): quotas.LimitRangeKind(),
    GroupKind("", "Namespace"): core.NamespaceKind(),
    GroupKind("", "Node"): nodes.NodeKind(),
    GroupKind("", "PersistentVolume"): storage.PersistentVolumeKind(),
    GroupKind("", "PersistentVolumeClaim"): storage.PersistentVolumeClaimKind(),
    GroupKind("", "Pod"): pods.PodKind(),
    GroupKind("", "PodTemplate"): workloads.PodTemplateKind(),
    GroupKind("", "ResourceQuota"): quotas.ResourceQuotaKind(),
    GroupKind("", "Secret"): core.SecretKind(),
    GroupKind("", "ReplicationController"): workloads.ReplicationControllerKind(),
    GroupKind("", "Service"): services.ServiceKind(),
    GroupKind("", "ServiceAccount"): core.ServiceAccountKind(),
    GroupKind(ADMISSION, "MutatingAdmissionPolicy"): admissionpolicies.MutatingPolicyKind(),
    GroupKind(ADMISSION, "MutatingAdmissionPolicyBinding"): admissionpolicies.PolicyBindingKind(),
    GroupKind(ADMISSION, "ValidatingAdmissionPolicy"): admissionpolicies.ValidatingPolicyKind(),
    GroupKind(
        "admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"
    ): admissionpolicies.ValidatingBindingKind(),
    GroupKind(ADMISSION, "MutatingWebhookConfiguration"): admissionpolicies.WebhookKind(),
    GroupKind(ADMISSION, "ValidatingWebhookConfiguration"): admissionpolicies.WebhookKind(),
    GroupKind("apiregistration.k8s.io", "APIService"): nodes.APIServiceKind(),
    GroupKind("apps", "ControllerRevision"): workloads.ControllerRevisionKind(),
    GroupKind("apps", "DaemonSet"): workloads.DaemonSetKind(),
    GroupKind("apps", "Deployment"): workloads.DeploymentKind(),
    GroupKind("apps", "ReplicaSet"): workloads.ReplicaSetKind(),
    GroupKind("apps", "StatefulSet"): workloads.StatefulSetKind(),
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): autoscaling.AutoscalerKind(),
    GroupKind("batch", "CronJob"): jobs.CronJobKind(),
    GroupKind("batch", "Job"): jobs.JobKind(),
    GroupKind("certificates.k8s.io", "CertificateSigningRequest"): signing.SigningRequestKind(),
    GroupKind("coordination.k8s.io", "Lease"): core.LeaseKind(),
    GroupKind("discovery.k8s.io", "EndpointSlice"): endpoints.EndpointSliceKind(),
    GroupKind("events.k8s.io", "Event"): events.NewEventKind(),
    GroupKind("flowcontrol.apiserver.k8s.io", "FlowSchema"): flowcontrol.FlowSchemaKind(),
    GroupKind("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): flowcontrol.PriorityLevelKind(),
    GroupKind("networking.k8s.io", "Ingress"): networking.IngressKind(),
    GroupKind("networking.k8s.io", "IngressClass"): networking.IngressClassKind(),
    GroupKind("networking.k8s.io", "IPAddress"): networking.IPAddressKind(),
    GroupKind("networking.k8s.io", "ServiceCIDR"): networking.ServiceCIDRKind(),
    GroupKind("networking.k8s.io", "NetworkPolicy"): networking.NetworkPolicyKind(),
    GroupKind("node.k8s.io", "RuntimeClass"): nodes.RuntimeClassKind(),
    GroupKind("policy", "PodDisruptionBudget"): policies.DisruptionBudgetKind(),
    GroupKind("resource.k8s.io", "DeviceClass"): devices.DeviceClassKind(),
    GroupKind("resource.k8s.io", "ResourceClaim"): devices.ResourceClaimKind(),
    GroupKind("resource.k8s.io", "ResourceClaimTemplate"): devices.ResourceClaimTemplateKind(),
    GroupKind("resource.k8s.io", "ResourceSlice"): devices.ResourceSliceKind(),
    GroupKind("scheduling.k8s.io", "PriorityClass"): policies.PriorityClassKind(),
    GroupKind("storage.k8s.io", "CSIDriver"): csi.CSIDriverKind(),
    GroupKind("storage.k8s.io", "CSINode"): csi.CSINodeKind(),
    GroupKind("storage.k8s.io", "CSIStorageCapacity"): csi.StorageCapacityKind(),
    GroupKind("storage.k8s.io", "VolumeAttachment"): storage.AttachmentKind(),
    GroupKind("storage.k8s.io", "VolumeAttributesClass"): storage.AttributesClassKind(),
    GroupKind("storage.k8s.io", "StorageClass"): storage.StorageClassKind(),
    GroupKind(RBAC, "ClusterRole"): rbac.ClusterRoleKind(),
    GroupKind(RBAC, "ClusterRoleBinding"): rbac.ClusterBindingKind(),
    GroupKind(RBAC, "Role"): rbac.RoleKind(),
    GroupKind(RBAC, "RoleBinding"): rbac.BindingKind(),
}

_WITHOUT_NAMESPACE = frozenset(
    {
        GroupKind("", "ComponentStatus"),
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),
        GroupKind("certificates.k8s.io", "ClusterTrustBundle"),
        GroupKind("networking.k8s.io", "IPAddress"),
        GroupKind("networking.k8s.io", "ServiceCIDR"),
        GroupKind("storage.k8s.io", "CSIDriver"),
        GroupKind("storage.k8s.io", "CSINode"),
        GroupKind("storage.k8s.io", "VolumeAttachment"),
        GroupKind("storage.k8s.io", "VolumeAttributesClass"),
    }
)

_DEFAULT = Kind()
_CLUSTER_WIDE = _ClusterWide()


def strategy_for(kind: GroupKind) -> Strategy:
    """Return the strategy of a built-in kind; unknown kinds get the permissive default, namespaced unless the kind is
    known to be cluster-scoped."""
    return _KINDS.get(kind) or (_CLUSTER_WIDE if kind in _WITHOUT_NAMESPACE else _DEFAULT)
