"""Fills in the defaults of Kubernetes' built-in kinds: :func:`fill_defaults` is the only entry point.

Called by the API for each decoded request body, and by code that compares a manifest with a live object. It changes the
object in place, so the caller must own it (the documented exception to "no one mutates"). Custom resources are left
alone: their schemas have the defaults.

Source of the rules: Kubernetes 1.36 ``SetDefaults_*`` functions, conversions and type tags.
"""

from __future__ import annotations

from collections.abc import Callable

from syncline.kube.defaults import core, pods, policies, workloads
from syncline.kube.defaults.shape import structure
from syncline.kube.defaults.typed import as_typed
from syncline.kube.objects import GVK, GroupKind, Obj
from syncline.kube.schema import store

Fill = Callable[[GVK, Obj], None]


def _shape_only(gvk: GVK, obj: Obj) -> None:
    """Fill a kind without defaults: drop empty fields, add nothing."""


_FILLS: dict[GroupKind, Fill] = {
    GroupKind("", "ConfigMap"): core.fill_config_map,
    GroupKind("", "Endpoints"): core.fill_endpoints,
    GroupKind("", "Event"): core.fill_event,
    GroupKind("", "LimitRange"): core.fill_limit_range,
    GroupKind("", "Namespace"): core.fill_namespace,
    GroupKind("", "Node"): core.fill_node,
    GroupKind("", "PersistentVolume"): core.fill_persistent_volume,
    GroupKind("", "PersistentVolumeClaim"): core.fill_persistent_volume_claim,
    GroupKind("", "Pod"): pods.fill_pod,
    GroupKind("", "PodTemplate"): workloads.fill_pod_template_object,
    GroupKind("", "ReplicationController"): workloads.fill_replication_controller,
    GroupKind("", "ResourceQuota"): core.fill_resource_quota,
    GroupKind("", "Secret"): core.fill_secret,
    GroupKind("", "Service"): core.fill_service,
    GroupKind("", "ServiceAccount"): core.fill_service_account,
    GroupKind("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): policies.fill_admission_policy,
    GroupKind("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): policies.fill_policy_binding,
    GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): policies.fill_admission_policy,
    GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): policies.fill_policy_binding,
    GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): policies.fill_mutating_webhooks,
    GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): policies.fill_validating_webhooks,
    GroupKind("apiregistration.k8s.io", "APIService"): policies.fill_api_service,
    GroupKind("apps", "ControllerRevision"): _shape_only,
    GroupKind("apps", "DaemonSet"): workloads.fill_daemon_set,
    GroupKind("apps", "Deployment"): workloads.fill_deployment,
    GroupKind("apps", "ReplicaSet"): workloads.fill_replica_set,
    GroupKind("apps", "StatefulSet"): workloads.fill_stateful_set,
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): policies.fill_autoscaler,
    GroupKind("batch", "CronJob"): workloads.fill_cron_job,
    GroupKind("batch", "Job"): workloads.fill_job,
    GroupKind("certificates.k8s.io", "CertificateSigningRequest"): policies.fill_signing_request,
    GroupKind("coordination.k8s.io", "Lease"): policies.fill_lease,
    GroupKind("discovery.k8s.io", "EndpointSlice"): policies.fill_endpoint_slice,
    GroupKind("events.k8s.io", "Event"): core.fill_new_event,
    GroupKind("flowcontrol.apiserver.k8s.io", "FlowSchema"): policies.fill_flow_schema,
    GroupKind("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): policies.fill_priority_level,
    GroupKind("networking.k8s.io", "Ingress"): policies.fill_ingress,
    GroupKind("networking.k8s.io", "IngressClass"): policies.fill_ingress_class,
    GroupKind("networking.k8s.io", "NetworkPolicy"): policies.fill_network_policy,
    GroupKind("node.k8s.io", "RuntimeClass"): policies.fill_runtime_class,
    GroupKind("policy", "PodDisruptionBudget"): policies.fill_disruption_budget,
    GroupKind(policies.RBAC_GROUP, "ClusterRole"): policies.fill_cluster_role,
    GroupKind(policies.RBAC_GROUP, "ClusterRoleBinding"): policies.fill_binding,
    GroupKind(policies.RBAC_GROUP, "Role"): policies.fill_role,
    GroupKind(policies.RBAC_GROUP, "RoleBinding"): policies.fill_binding,
    GroupKind("resource.k8s.io", "ResourceClaim"): policies.fill_device_claim,
    GroupKind("resource.k8s.io", "ResourceClaimTemplate"): policies.fill_device_claim_template,
    GroupKind("scheduling.k8s.io", "PriorityClass"): policies.fill_priority_class,
    GroupKind("storage.k8s.io", "CSIDriver"): policies.fill_csi_driver,
    GroupKind("storage.k8s.io", "StorageClass"): policies.fill_storage_class,
}

_OTHERWISE = frozenset({GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")})
"""CustomResourceDefinitions have their own strategy."""

LABELLED_BY_TEMPLATE = frozenset({GroupKind("batch", "Job"), GroupKind("", "ReplicationController")})
"""Kinds whose missing labels are copied from their template. Otherwise metadata, spec and status are independent."""

STATUS_BY_SPEC = frozenset({GroupKind("", "Service")})
"""Kinds whose status is filled from the spec: addresses of load balancers."""

_STATUS_FILLS: dict[GroupKind, Fill] = {
    GroupKind("", "Pod"): pods.fill_pod_status,
    GroupKind("apps", "DaemonSet"): _shape_only,
    GroupKind("apps", "Deployment"): _shape_only,
    GroupKind("apps", "ReplicaSet"): _shape_only,
    GroupKind("apps", "StatefulSet"): _shape_only,
}
"""What is left of a kind's defaults where the spec is known to have them."""

_FILLS_BY_VERSION: dict[GVK, Fill] = {
    GVK("autoscaling", "v1", "HorizontalPodAutoscaler"): policies.fill_autoscaler_v1,
}


def fill_defaults(gvk: GVK, obj: Obj, *, stored: bool = True, known: Obj | None = None, rest: bool = False) -> None:
    """Fill in the defaults in place, and normalize the object like Kubernetes' typed encoding.

    Raises BadRequest for values that do not fit their Go type (a quantity ``lots``, invalid base64). Unknown kinds are
    not changed. Filling twice changes nothing more. ``stored``: use the form that is read back from storage.
    ``known``: a filled object with which it shares parts, which are not normalized again. ``rest``: the object lacks
    its spec only because that is filled in already.
    """
    message = store.kinds().get(gvk)
    if message is None or gvk.group_kind in _OTHERWISE:
        return
    as_typed(message, obj, stored=stored, known=known)
    structure(obj, "metadata")
    kind = gvk.group_kind
    fill = (_STATUS_FILLS.get(kind) if rest else None) or _FILLS_BY_VERSION.get(gvk) or _FILLS.get(kind)
    if fill is not None:
        fill(gvk, obj)
