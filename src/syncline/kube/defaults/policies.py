"""Defaults of access rules, disruption budgets, autoscaling, networking, storage classes, leases and webhooks.

Called by :mod:`syncline.kube.defaults.fill`; changes the object in place. Source of the rules: the ``defaults.go`` of
the groups rbac, policy, autoscaling, networking, storage, scheduling, discovery and admissionregistration.
"""

from __future__ import annotations

from typing import Any

from syncline.kube.defaults.shape import (
    always,
    canonical_quantities,
    canonical_quantity,
    default,
    items,
    null_times,
    structure,
)
from syncline.kube.objects import GVK, Obj, dig

RBAC_GROUP = "rbac.authorization.k8s.io"
DEFAULT_CPU_PERCENT = 80


def fill_role(gvk: GVK, obj: Obj) -> None:
    obj.setdefault("rules", None)
    for rule in items(obj, "rules"):
        rule.setdefault("verbs", None)


def fill_cluster_role(gvk: GVK, obj: Obj) -> None:
    fill_role(gvk, obj)


def fill_binding(gvk: GVK, obj: Obj) -> None:
    reference = structure(obj, "roleRef")
    default(reference, "apiGroup", RBAC_GROUP)
    always(reference, kind="", name="")
    for subject in items(obj, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            default(subject, "apiGroup", RBAC_GROUP)
        elif subject.get("apiGroup") == "":
            del subject["apiGroup"]


def fill_lease(gvk: GVK, obj: Obj) -> None:
    structure(obj, "spec")


def fill_signing_request(gvk: GVK, obj: Obj) -> None:
    structure(obj, "spec")
    status = structure(obj, "status")
    for condition in items(status, "conditions"):
        default(condition, "status", "True")
        condition.setdefault("lastUpdateTime", None)
        condition.setdefault("lastTransitionTime", None)


def fill_disruption_budget(gvk: GVK, obj: Obj) -> None:
    structure(obj, "spec")
    status = structure(obj, "status")
    always(status, disruptionsAllowed=0, currentHealthy=0, desiredHealthy=0, expectedPods=0)
    for condition in items(status, "conditions"):
        always(condition, reason="", message="")


def fill_autoscaler(gvk: GVK, obj: Obj) -> None:
    """Fill an ``autoscaling/v2`` autoscaler: at least one replica, 80 % of the CPU."""
    spec = structure(obj, "spec")
    default(spec, "minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_CPU_PERCENT}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    for metric in items(spec, "metrics"):
        for source in ("object", "pods", "resource", "containerResource", "external"):
            entry = metric.get(source)
            if isinstance(entry, dict) and isinstance(entry.get("target"), dict):
                canonical_quantity(gvk, entry["target"], "value")
                canonical_quantity(gvk, entry["target"], "averageValue")
    if isinstance(spec.get("behavior"), dict):
        _fill_behavior(spec["behavior"])
    status = structure(obj, "status")
    always(status, desiredReplicas=0)
    status.setdefault("currentMetrics", None)
    null_times(items(status, "conditions"), "lastTransitionTime")


def _fill_behavior(behavior: Obj) -> None:
    """Fill the behavior: scale up at once; scaling down waits for the controller's stabilisation window."""
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    up = structure(behavior, "scaleUp")
    default(up, "stabilizationWindowSeconds", 0)
    default(up, "policies", [{"type": "Pods", "value": 4, "periodSeconds": 15}, dict(percent)])
    down = structure(behavior, "scaleDown")
    default(down, "policies", [dict(percent)])
    for rules in (up, down):
        default(rules, "selectPolicy", "Max")


def fill_autoscaler_v1(gvk: GVK, obj: Obj) -> None:
    """Leave the CPU percentage to the conversion, which also sees the metrics in annotations."""
    default(structure(obj, "spec"), "minReplicas", 1)
    always(structure(obj, "status"), currentReplicas=0, desiredReplicas=0)


def fill_ingress(gvk: GVK, obj: Obj) -> None:
    for rule in items(structure(obj, "spec"), "rules"):
        for path in items(rule, "http", "paths"):
            structure(path, "backend")
            if path.get("path") == "":
                del path["path"]
    structure(structure(obj, "status"), "loadBalancer")


def fill_ingress_class(gvk: GVK, obj: Obj) -> None:
    parameters = structure(obj, "spec").get("parameters")
    if isinstance(parameters, dict) and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def fill_network_policy(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    structure(spec, "podSelector")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in items(spec, direction):
            for port in items(rule, "ports"):
                default(port, "protocol", "TCP")


def fill_storage_class(gvk: GVK, obj: Obj) -> None:
    always(obj, provisioner="")
    default(obj, "reclaimPolicy", "Delete")
    default(obj, "volumeBindingMode", "Immediate")


def fill_device_claim(gvk: GVK, obj: Obj) -> None:
    _fill_requests(structure(obj, "spec"))
    structure(obj, "status")


def fill_device_claim_template(gvk: GVK, obj: Obj) -> None:
    _fill_requests(structure(structure(obj, "spec"), "spec"))


def _fill_requests(spec: Obj) -> None:
    """Fill device requests; without a count they are for one device."""
    for request in items(spec, "devices", "requests"):
        exactly = [request["exactly"]] if isinstance(request.get("exactly"), dict) else []
        for wanted in [*exactly, *items(request, "firstAvailable")]:
            default(wanted, "allocationMode", "ExactCount")
            if wanted["allocationMode"] == "ExactCount" and not wanted.get("count"):
                wanted["count"] = 1
            for toleration in items(wanted, "tolerations"):
                default(toleration, "operator", "Equal")


def fill_csi_driver(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    default(spec, "attachRequired", True)
    for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        default(spec, name, False)
    default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
    default(spec, "volumeLifecycleModes", ["Persistent"])


def fill_priority_class(gvk: GVK, obj: Obj) -> None:
    always(obj, value=0)
    default(obj, "preemptionPolicy", "PreemptLowerPriority")
    if obj.get("globalDefault") is False:
        del obj["globalDefault"]


def fill_endpoint_slice(gvk: GVK, obj: Obj) -> None:
    always(obj, addressType="")
    for name in ("endpoints", "ports"):
        obj.setdefault(name, None)
    for endpoint in items(obj, "endpoints"):
        endpoint.setdefault("addresses", None)
        structure(endpoint, "conditions")
    for port in items(obj, "ports"):
        always(port, name="")
        default(port, "protocol", "TCP")


def fill_runtime_class(gvk: GVK, obj: Obj) -> None:
    overhead = obj.get("overhead")
    if isinstance(overhead, dict):
        canonical_quantities(gvk, overhead, "podFixed")


def fill_validating_webhooks(gvk: GVK, obj: Obj) -> None:
    for hook in items(obj, "webhooks"):
        _fill_webhook(hook)


def fill_admission_policy(gvk: GVK, obj: Obj) -> None:
    """Fill validating and mutating policies: fail closed, match all named objects."""
    spec = structure(obj, "spec")
    default(spec, "failurePolicy", "Fail")
    _fill_match(spec.get("matchConstraints"))


def fill_policy_binding(gvk: GVK, obj: Obj) -> None:
    _fill_match(structure(obj, "spec").get("matchResources"))


def _fill_match(match: Any) -> None:
    if not isinstance(match, dict):
        return
    default(match, "matchPolicy", "Equivalent")
    for name in ("namespaceSelector", "objectSelector"):
        structure(match, name)
    for key in ("resourceRules", "excludeResourceRules"):
        for rule in items(match, key):
            default(rule, "scope", "*")


def fill_flow_schema(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000


def fill_priority_level(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    for key, shares in (("limited", 30), ("exempt", 0)):
        if isinstance(spec.get(key), dict):
            default(spec[key], "nominalConcurrencyShares", shares)
            default(spec[key], "lendablePercent", 0)
    limited = spec.get("limited")
    queuing = dig(limited, "limitResponse", "queuing")
    for key, number in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
        if isinstance(queuing, dict) and not queuing.get(key):
            queuing[key] = number


def fill_api_service(gvk: GVK, obj: Obj) -> None:
    service = structure(obj, "spec").get("service")
    if isinstance(service, dict):
        default(service, "port", 443)


def fill_mutating_webhooks(gvk: GVK, obj: Obj) -> None:
    for hook in items(obj, "webhooks"):
        _fill_webhook(hook)
        default(hook, "reinvocationPolicy", "Never")


def _fill_webhook(hook: Obj) -> None:
    default(hook, "failurePolicy", "Fail")
    default(hook, "matchPolicy", "Equivalent")
    for name in ("namespaceSelector", "objectSelector", "clientConfig"):
        structure(hook, name)
    default(hook, "timeoutSeconds", 10)
    hook.setdefault("sideEffects", None)
    hook.setdefault("admissionReviewVersions", None)
    for rule in items(hook, "rules"):
        default(rule, "scope", "*")
    service = hook["clientConfig"].get("service")
    if isinstance(service, dict):
        default(service, "port", 443)
