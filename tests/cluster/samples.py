"""An object of every built-in kind that is stored, and two statuses that differ in one entry of a list or map."""

from __future__ import annotations

import copy
from typing import Any

from tests.cluster.hostile.identities import signing_request

from syncline.kube.objects import Obj

STAMP = "2026-01-01T00:00:00Z"
_POD = {"containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}], "env": [{"name": "A"}]}]}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": _POD}
_ONCE = {"metadata": {"labels": {"a": "b"}}, "spec": _POD | {"restartPolicy": "Never"}}
_SELECTOR = {"matchLabels": {"a": "b"}}
_RULE = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]}
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
_SUBJECTS = [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]
_MATCH = {"resourceRules": [{"apiGroups": ["x"], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE"]}]}
_HOOK = {
    "name": "a.b.c",
    "clientConfig": {"url": "https://h.example/"},
    "rules": [{"apiGroups": ["x"], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE"]}],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "nfs": {"server": "s", "path": "/p"}}
_DEVICES = {"requests": [{"name": "r", "exactly": {"deviceClassName": "d.example"}}]}
_SUBJECT = {"kind": "Group", "group": {"name": "g"}}
_FLOW_RULE = {"verbs": ["get"], "apiGroups": ["x"], "resources": ["y"], "clusterScope": True}
_SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
_SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
_PRIORITY = {
    "type": "Limited",
    "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}},
}
_FLOW = {
    "priorityLevelConfiguration": {"name": "exempt"},
    "rules": [{"subjects": [_SUBJECT], "resourceRules": [_FLOW_RULE]}],
}


def _conditions(*kinds: str, **more: Any) -> tuple[Obj, Obj]:
    """Two statuses with two conditions, of which the second changes, beside other fields."""
    first, second = (
        {"type": each, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": STAMP} for each in kinds
    )
    return {"conditions": [first, second], **more}, {"conditions": [first, second | {"status": "False"}], **more}


def _policy(**more: Any) -> Obj:
    return {"spec": {"matchConstraints": _MATCH, "failurePolicy": "Ignore", **more}}


_COUNTED = {"replicas": 2, "observedGeneration": 1}
_INGRESS = [{"ip": "10.0.0.1", "ports": [{"port": 80, "protocol": "TCP"}]}]
_CURRENT = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 5, "averageValue": "1m"}}}
_AUTOSCALER = {"currentReplicas": 1, "desiredReplicas": 1, "currentMetrics": [_CURRENT]}
_CONTAINER = {
    "name": "c",
    "image": "i:1",
    "imageID": "i",
    "ready": True,
    "restartCount": 0,
    "state": {"running": {"startedAt": STAMP}},
}
_NODE = {
    "addresses": [{"type": "Hostname", "address": "n"}],
    "capacity": {"cpu": "2", "memory": "1Gi"},
    "allocatable": {"cpu": "2", "memory": "1Gi"},
    "images": [{"names": ["i:1", "i:2"], "sizeBytes": 5}],
}
_QUOTA = {"hard": {"pods": "5", "cpu": "2"}, "used": {"pods": "1", "cpu": "1"}}
_NAMES = {"plural": "gs", "singular": "g", "kind": "G", "listKind": "GList"}
_DEVICE = {"driver": "d.example", "pool": "p", "device": "x"}
_RESULTS = [{"request": "r", **_DEVICE}, {"request": "r", **_DEVICE, "device": "y"}]
_POD_STATUS = {"phase": "Running", "containerStatuses": [_CONTAINER], "podIPs": [{"ip": "10.1.0.1"}]}

STATUSES: dict[str, tuple[Obj, Obj]] = {
    "v1 Namespace": _conditions("NamespaceContentRemaining", "NamespaceFinalizersRemaining", phase="Active"),
    "v1 Node": _conditions("Ready", "DiskPressure", **_NODE),
    "v1 PersistentVolumeClaim": _conditions("Resizing", "X", phase="Pending", capacity={"storage": "1Gi"}),
    "v1 PersistentVolume": ({"phase": "Available", "message": "a"}, {"phase": "Available", "message": "b"}),
    "v1 Pod": _conditions("Ready", "Initialized", **_POD_STATUS),
    "v1 ReplicationController": _conditions("ReplicaFailure", "X", **_COUNTED),
    "v1 ResourceQuota": (_QUOTA, _QUOTA | {"used": {"pods": "2", "cpu": "1"}}),
    "v1 Service": _conditions("A", "B", loadBalancer={"ingress": _INGRESS}),
    "apiregistration.k8s.io/v1 APIService": _conditions("Available", "X"),
    "apps/v1 DaemonSet": _conditions(
        "A", "B", currentNumberScheduled=1, desiredNumberScheduled=1, numberMisscheduled=0, numberReady=1
    ),
    "apps/v1 Deployment": _conditions("Available", "Progressing", **_COUNTED),
    "apps/v1 ReplicaSet": _conditions("ReplicaFailure", "X", **_COUNTED),
    "apps/v1 StatefulSet": _conditions("A", "B", **_COUNTED),
    "autoscaling/v2 HorizontalPodAutoscaler": _conditions("AbleToScale", "ScalingActive", **_AUTOSCALER),
    "autoscaling/v1 HorizontalPodAutoscaler": (
        {"currentReplicas": 1, "desiredReplicas": 1},
        {"currentReplicas": 1, "desiredReplicas": 2},
    ),
    "batch/v1 CronJob": (
        {"active": [{"kind": "Job", "name": "a"}, {"kind": "Job", "name": "b"}]},
        {"active": [{"kind": "Job", "name": "a"}, {"kind": "Job", "name": "c"}]},
    ),
    "batch/v1 Job": _conditions("Suspended", "X", active=1, startTime=STAMP, uncountedTerminatedPods={"failed": ["u"]}),
    "certificates.k8s.io/v1 CertificateSigningRequest": _conditions("Approved", "Y"),
    "networking.k8s.io/v1 Ingress": (
        {"loadBalancer": {"ingress": [*_INGRESS, {"hostname": "a"}]}},
        {"loadBalancer": {"ingress": [*_INGRESS, {"hostname": "b"}]}},
    ),
    "networking.k8s.io/v1 ServiceCIDR": _conditions("Ready", "X"),
    "policy/v1 PodDisruptionBudget": _conditions(
        "A",
        "B",
        currentHealthy=1,
        desiredHealthy=1,
        disruptionsAllowed=0,
        expectedPods=1,
        disruptedPods={"p": STAMP, "q": STAMP},
    ),
    "storage.k8s.io/v1 VolumeAttachment": (
        {"attached": True, "attachmentMetadata": {"a": "b", "c": "d"}},
        {"attached": True, "attachmentMetadata": {"a": "b", "c": "e"}},
    ),
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": _conditions(
        "A", "B", typeChecking={"expressionWarnings": [{"fieldRef": "spec", "warning": "w"}]}
    ),
    "apiextensions.k8s.io/v1 CustomResourceDefinition": _conditions(
        "Established", "NamesAccepted", acceptedNames=_NAMES, storedVersions=["v1"]
    ),
    "flowcontrol.apiserver.k8s.io/v1 FlowSchema": _conditions("Dangling", "X"),
    "flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration": _conditions("A", "B"),
    "resource.k8s.io/v1 ResourceClaim": (
        {"allocation": {"devices": {"results": _RESULTS}}},
        {
            "allocation": {"devices": {"results": _RESULTS}},
            "devices": [_DEVICE | {"data": {"a": [1, 2]}}],
        },
    ),
    "tests.example/v1 Sample": _conditions("A", "B", maps={"a": {"b": [1, {"c": 2}]}}, keyed=[{"name": "x"}]),
    "tests.example/v2 Sample": _conditions("A", "B", maps={"a": {"b": [1, {"c": 2}]}}, keyed=[{"name": "x"}]),
}

_BODIES: dict[str, Obj] = {
    "v1 ConfigMap": {"data": {"a": "b", "c": "d"}},
    "v1 Endpoints": {"subsets": [{"addresses": [{"ip": "10.9.0.1"}], "ports": [{"port": 80}]}]},
    "v1 Event": {
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "source": {"component": "c"},
        "reason": "R",
    },
    "v1 LimitRange": {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1m"}}]}},
    "v1 Namespace": {},
    "v1 Node": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}], "podCIDRs": ["10.1.0.0/24"]}},
    "v1 PersistentVolumeClaim": {"spec": _CLAIM},
    "v1 PersistentVolume": {"spec": _VOLUME},
    "v1 Pod": {"spec": _POD},
    "v1 PodTemplate": {"template": _TEMPLATE},
    "v1 ReplicationController": {"spec": {"selector": {"a": "b"}, "template": _TEMPLATE}},
    "v1 ResourceQuota": {"spec": {"hard": {"pods": "500", "services": "500"}}},
    "v1 Secret": {"data": {"a": "Yg=="}, "stringData": {"c": "d"}},
    "v1 ServiceAccount": {"secrets": [{"name": "a"}], "imagePullSecrets": [{"name": "b"}]},
    "v1 Service": {
        "spec": {
            "type": "LoadBalancer",
            "selector": {"a": "b"},
            "ports": [{"name": "w", "port": 80}, {"name": "x", "port": 81}],
        }
    },
    "apiregistration.k8s.io/v1 APIService": {
        "spec": {
            "group": "x.example",
            "version": "v1",
            "service": {"name": "s", "namespace": "default"},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 10,
            "versionPriority": 10,
        }
    },
    "apps/v1 ControllerRevision": {"revision": 1, "data": {"a": [1, {"b": 2}]}},
    "apps/v1 DaemonSet": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "apps/v1 Deployment": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "apps/v1 ReplicaSet": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "apps/v1 StatefulSet": {
        "spec": {
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "serviceName": "s",
            "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": _CLAIM}],
        }
    },
    "events.k8s.io/v1 Event": {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reason": "R",
        "action": "A",
        "type": "Normal",
        "reportingController": "c.example",
        "reportingInstance": "i",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    },
    "autoscaling/v2 HorizontalPodAutoscaler": {
        "spec": {"scaleTargetRef": _SCALED, "maxReplicas": 3, "metrics": [_METRIC]}
    },
    "autoscaling/v1 HorizontalPodAutoscaler": {
        "spec": {"scaleTargetRef": _SCALED, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    },
    "batch/v1 CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": _ONCE}}}},
    "batch/v1 Job": {"spec": {"template": _ONCE, "suspend": True}},
    "networking.k8s.io/v1 IngressClass": {"spec": {"controller": "c.example/c"}},
    "networking.k8s.io/v1 Ingress": {
        "spec": {
            "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
            "tls": [{"hosts": ["a.example"], "secretName": "t"}],
        }
    },
    "networking.k8s.io/v1 IPAddress": {
        "spec": {"parentRef": {"resource": "services", "name": "s", "namespace": "default"}}
    },
    "networking.k8s.io/v1 NetworkPolicy": {
        "spec": {"podSelector": _SELECTOR, "ingress": [{"ports": [{"port": 80}], "from": [{"podSelector": {}}]}]}
    },
    "networking.k8s.io/v1 ServiceCIDR": {"spec": {"cidrs": ["10.200.0.0/24"]}},
    "policy/v1 PodDisruptionBudget": {"spec": {"selector": _SELECTOR, "minAvailable": 1}},
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": {"roleRef": _ROLE, "subjects": _SUBJECTS},
    "rbac.authorization.k8s.io/v1 ClusterRole": {"rules": [_RULE], "aggregationRule": None},
    "rbac.authorization.k8s.io/v1 RoleBinding": {"roleRef": _ROLE, "subjects": _SUBJECTS},
    "rbac.authorization.k8s.io/v1 Role": {"rules": [_RULE]},
    "storage.k8s.io/v1 CSIDriver": {"spec": {"tokenRequests": [{"audience": "a"}]}},
    "storage.k8s.io/v1 CSINode": {
        "spec": {"drivers": [{"name": "d.example", "nodeID": "n", "topologyKeys": ["a", "b"]}]}
    },
    "storage.k8s.io/v1 CSIStorageCapacity": {"storageClassName": "s", "nodeTopology": _SELECTOR, "capacity": "1Gi"},
    "storage.k8s.io/v1 StorageClass": {"provisioner": "p.example/p", "parameters": {"a": "b"}, "mountOptions": ["ro"]},
    "storage.k8s.io/v1 VolumeAttachment": {
        "spec": {"attacher": "a.example", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    "storage.k8s.io/v1 VolumeAttributesClass": {"driverName": "d.example", "parameters": {"a": "b"}},
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicy": _policy(
        mutations=[
            {"patchType": "JSONPatch", "jsonPatch": {"expression": '[JSONPatch{op: "test", path: "/a", value: 1}]'}}
        ],
        reinvocationPolicy="Never",
    ),
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding": {"spec": {"policyName": "p"}},
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration": {"webhooks": [_HOOK | {"failurePolicy": "Ignore"}]},
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": _policy(validations=[{"expression": "true"}]),
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": {
        "spec": {"policyName": "p", "validationActions": ["Audit"]}
    },
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": {
        "webhooks": [_HOOK | {"failurePolicy": "Ignore"}]
    },
    "apiextensions.k8s.io/v1 CustomResourceDefinition": {
        "spec": {
            "group": "other.example",
            "names": {"plural": "gs", "kind": "G"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _SCHEMA}}],
        },
    },
    "scheduling.k8s.io/v1 PriorityClass": {"value": 5, "description": "d"},
    "coordination.k8s.io/v1 Lease": {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 5}},
    "node.k8s.io/v1 RuntimeClass": {
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "1m"}},
        "scheduling": {"nodeSelector": {"a": "b"}},
    },
    "discovery.k8s.io/v1 EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.9.0.1"], "conditions": {"ready": True}}],
        "ports": [{"name": "", "port": 80}],
    },
    "flowcontrol.apiserver.k8s.io/v1 FlowSchema": {"spec": _FLOW},
    "flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration": {"spec": _PRIORITY},
    "resource.k8s.io/v1 DeviceClass": {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    "resource.k8s.io/v1 ResourceClaim": {"spec": {"devices": _DEVICES}},
    "resource.k8s.io/v1 ResourceClaimTemplate": {"spec": {"spec": {"devices": _DEVICES}}},
    "resource.k8s.io/v1 ResourceSlice": {
        "spec": {
            "driver": "d.example",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "x", "attributes": {"a": {"int": 1}}}],
        }
    },
    "tests.example/v1 Sample": {"spec": {"lists": [1, {"a": 2}], "maps": {"a": {"b": "c"}}}},
    "tests.example/v2 Sample": {"spec": {"lists": [1, {"a": 2}], "maps": {"a": {"b": "c"}}}},
    "certificates.k8s.io/v1 CertificateSigningRequest": {
        "spec": {"signerName": "a.example/s", "usages": ["client auth", "digital signature"]}
    },
}
_NAMED = {
    "apiregistration.k8s.io/v1 APIService": "v1.x.example",
    "networking.k8s.io/v1 IPAddress": "10.200.0.9",
    "apiextensions.k8s.io/v1 CustomResourceDefinition": "gs.other.example",
}
KINDS = tuple(_BODIES)


def sample(kind: str) -> Obj:
    """A new object of ``apiVersion Kind``, which the API accepts."""
    version, _, name = kind.partition(" ")
    body = copy.deepcopy(_BODIES[kind])
    if name == "CertificateSigningRequest":
        body["spec"]["request"] = signing_request("u")
    usual = f"{version}-{name}".lower().replace("/", "-").replace(".", "-")
    metadata = {"name": _NAMED.get(kind, usual), "labels": {"a": "b"}, "annotations": {"n": "o"}}
    return {"apiVersion": version, "kind": name, "metadata": metadata, **body}


def definition() -> Obj:
    """The definition of ``Sample``: two versions, defaults and lists of every type in spec and status."""
    values = {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True}}
    name = {"type": "string"}
    entry = {"type": "object", "required": ["name"], "properties": {"name": name, "size": {"type": "integer"}}}
    entry["properties"]["size"] = {"type": "integer", "default": 3}  # type: ignore[index]
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": entry,
    }
    condition = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"type": name}}
    conditions = {"type": "array", "items": condition}
    lists = {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}
    status = {"keyed": keyed, "conditions": conditions, "maps": values, "filled": {"type": "string", "default": "f"}}
    parts = {
        "spec": {"type": "object", "properties": {"lists": lists, "maps": values, "keyed": keyed}},
        "status": {"type": "object", "properties": status},
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": parts}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema, "subresources": {"status": {}}}
        for name in ("v1", "v2")
    ]
    names = {"plural": "samples", "singular": "sample", "kind": "Sample", "listKind": "SampleList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.tests.example"},
        "spec": {"group": "tests.example", "scope": "Namespaced", "names": names, "versions": versions},
    }
