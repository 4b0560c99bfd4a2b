"""The kinds of the Operator Lifecycle Manager (OLM): fields, types, rules, columns and short names as upstream's
(operator-framework/api, which OLM at 992bb097 has); the descriptions are ours.

Pod templates, affinities and volumes in them are any object here: the Deployment that is made of them is checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from syncline.kube.kinds.structure import (
    AGE,
    ANY,
    BOOL,
    BYTES,
    CONDITION,
    INT32,
    INT_OR_STRING,
    QUANTITY,
    SELECTOR,
    STR,
    TIME,
    Fields,
    atomic,
    column,
    definition,
    enum,
    items,
    keyed,
    kind_schema,
    mapping,
    obj,
    strings,
)
from syncline.kube.objects import GVK, Obj

GROUP: Final = "operators.coreos.com"
CATALOG_SOURCE = GVK(GROUP, "v1alpha1", "CatalogSource")
SUBSCRIPTION = GVK(GROUP, "v1alpha1", "Subscription")
INSTALL_PLAN = GVK(GROUP, "v1alpha1", "InstallPlan")
SERVICE_VERSION = GVK(GROUP, "v1alpha1", "ClusterServiceVersion")
OPERATOR_GROUP = GVK(GROUP, "v1", "OperatorGroup")
OPERATOR_CONDITION = GVK(GROUP, "v2", "OperatorCondition")
OPERATOR = GVK(GROUP, "v1", "Operator")
OLM_CONFIG = GVK(GROUP, "v1", "OLMConfig")
PACKAGE_MANIFEST = GVK("packages.operators.coreos.com", "v1", "PackageManifest")
"""Served by an extension API server, not by a definition."""

_NUMBER: Obj = {"type": "integer"}
_REFERENCE = obj(
    dict.fromkeys(("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"), STR)
) | {"x-kubernetes-map-type": "atomic"}
_TIMES: Fields = {"lastTransitionTime": TIME, "lastUpdateTime": TIME}
_WHY: Fields = {"message": STR, "reason": STR}


def _olm(crd: Obj) -> Obj:
    """Put a definition into upstream's category, so that ``kubectl get olm`` lists its objects."""
    crd["spec"]["names"]["categories"] = ["olm"]
    return crd


def _needs_metadata(crd: Obj) -> Obj:
    for version in crd["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        schema["required"] = sorted({*schema.get("required", ()), "metadata"})
    return _olm(crd)


def catalog_source_crd() -> Obj:
    """``catalogsources``."""
    toleration = obj(
        dict.fromkeys(("effect", "key", "operator", "value"), STR)
        | {"tolerationSeconds": {"type": "integer", "format": "int64"}}
    )
    pod: Fields = {
        "affinity": ANY,
        "extractContent": obj({"cacheDir": STR, "catalogDir": STR}, "catalogDir"),
        "memoryTarget": QUANTITY,
        "nodeSelector": mapping(STR),
        "priorityClassName": STR,
        "securityContextConfig": enum("legacy", "restricted"),
        "tolerations": items(toleration),
    }
    spec: Fields = {
        **dict.fromkeys(
            ("address", "configMap", "description", "displayName", "image", "publisher", "sourceType"), STR
        ),
        "grpcPodConfig": obj(pod),
        "icon": obj({"base64data": STR, "mediatype": STR}, "base64data", "mediatype"),
        "priority": _NUMBER,
        "secrets": strings(),
        "updateStrategy": obj({"registryPoll": obj({"interval": STR})}),
    }
    texts = dict.fromkeys(("name", "namespace", "resourceVersion", "uid"), STR)
    service = dict.fromkeys(("port", "protocol", "serviceName", "serviceNamespace"), STR)
    connection: Fields = {"address": STR, "lastConnect": TIME, "lastObservedState": STR}
    status: Fields = {
        **_WHY,
        "conditions": keyed(CONDITION, "type"),
        "configMapReference": obj({**texts, "lastUpdateTime": TIME}, "name", "namespace"),
        "connectionState": obj(connection, "lastObservedState"),
        "latestImageRegistryPoll": TIME,
        "registryService": obj({**service, "createdAt": TIME}),
    }
    about = "A CatalogSource is a catalogue of packages that operators are installed from."
    schema = kind_schema(obj(spec, "sourceType"), obj(status), "spec", about=about)
    columns = (
        column("Display", ".spec.displayName"),
        column("Type", ".spec.sourceType"),
        column("Publisher", ".spec.publisher"),
        AGE,
    )
    crd = definition(CATALOG_SOURCE, "catalogsources", schema, short=("catsrc",), columns=columns, namespaced=True)
    return _needs_metadata(crd)


def _config() -> Obj:
    """What a Subscription changes in the pods of its operator."""
    claims = keyed(obj({"name": STR, "request": STR}, "name"), "name")
    env = items(obj({"name": STR, "value": STR, "valueFrom": ANY}, "name"))
    return obj(
        {
            "affinity": ANY,
            "annotations": mapping(STR),
            "env": env,
            "envFrom": items(obj({"configMapRef": ANY, "prefix": STR, "secretRef": ANY})),
            "nodeSelector": mapping(STR),
            "resources": obj({"claims": claims, "limits": mapping(QUANTITY), "requests": mapping(QUANTITY)}),
            "selector": SELECTOR,
            "tolerations": items(ANY),
            "volumeMounts": items(
                ANY | {"properties": {"mountPath": STR, "name": STR}, "required": ["mountPath", "name"]}
            ),
            "volumes": items(ANY | {"properties": {"name": STR}, "required": ["name"]}),
        }
    )


def subscription_crd() -> Obj:
    """``subscriptions``."""
    spec: Fields = {
        **dict.fromkeys(("channel", "installPlanApproval", "name", "source", "sourceNamespace", "startingCSV"), STR),
        "config": _config(),
    }
    health: Fields = {"catalogSourceRef": _REFERENCE, "healthy": BOOL, "lastUpdated": TIME}
    plan = dict.fromkeys(("apiVersion", "kind", "name", "uuid"), STR)
    condition: Fields = {
        **_WHY,
        "lastHeartbeatTime": TIME,
        "lastTransitionTime": TIME,
        "status": STR,
        "type": STR,
    }
    status: Fields = {
        **dict.fromkeys(("currentCSV", "installedCSV", "reason", "state"), STR),
        "catalogHealth": items(obj(health, *health)),
        "conditions": items(obj(condition, "status", "type")),
        "installPlanGeneration": _NUMBER,
        "installPlanRef": _REFERENCE,
        "installplan": obj(plan, *plan),
        "lastUpdated": TIME,
    }
    about = "A Subscription keeps an operator installed, from a channel of a package in a catalogue."
    needed = ("name", "source", "sourceNamespace")
    schema = kind_schema(obj(spec, *needed), obj(status, "lastUpdated"), "spec", about=about)
    columns = (
        column("Package", ".spec.name"),
        column("Source", ".spec.source"),
        column("Channel", ".spec.channel"),
    )
    crd = definition(SUBSCRIPTION, "subscriptions", schema, short=("sub", "subs"), columns=columns, namespaced=True)
    return _needs_metadata(crd)


def install_plan_crd() -> Obj:
    """``installplans``."""
    spec: Fields = {
        **dict.fromkeys(("approval", "source", "sourceNamespace"), STR),
        "approved": BOOL,
        "clusterServiceVersionNames": strings(),
        "generation": _NUMBER,
    }
    looked: Fields = {**_WHY, **_TIMES, "status": STR, "type": STR}
    lookup: Fields = {
        **dict.fromkeys(("identifier", "path", "properties", "replaces"), STR),
        "catalogSourceRef": _REFERENCE,
        "conditions": items(obj(looked, "status", "type")),
    }
    resource = dict.fromkeys(("group", "kind", "name", "sourceName", "sourceNamespace", "version"), STR)
    step: Fields = {
        "optional": BOOL,
        "resolving": STR,
        "resource": obj({**resource, "manifest": STR}, *resource),
        "status": STR,
    }
    status: Fields = {
        "attenuatedServiceAccountRef": _REFERENCE,
        "bundleLookups": items(obj(lookup, "catalogSourceRef", "identifier", "path", "replaces")),
        "catalogSources": strings(),
        "conditions": items(obj(looked)),
        "message": STR,
        "phase": STR,
        "plan": items(obj(step, "resolving", "resource", "status")),
        "startTime": TIME,
    }
    about = "An InstallPlan is what is created for a set of operators, and whether a person has approved it."
    needed = ("approval", "approved", "clusterServiceVersionNames")
    schema = kind_schema(obj(spec, *needed), obj(status, "catalogSources", "phase"), "spec", about=about)
    columns = (
        column("CSV", ".spec.clusterServiceVersionNames[0]"),
        column("Approval", ".spec.approval"),
        column("Approved", ".spec.approved", "boolean"),
    )
    crd = definition(INSTALL_PLAN, "installplans", schema, short=("ip",), columns=columns, namespaced=True)
    return _needs_metadata(crd)


def _provided(owned: Fields, required: tuple[str, ...]) -> Obj:
    """Return the APIs of an operator: those that it owns, and those that it requires."""
    descriptor = items(
        obj({"description": STR, "displayName": STR, "path": STR, "value": BYTES, "x-descriptors": strings()}, "path")
    )
    resource = dict.fromkeys(("kind", "name", "version"), STR)
    described: Fields = {
        **dict.fromkeys(("description", "displayName", "kind", "name", "version"), STR),
        **dict.fromkeys(("actionDescriptors", "specDescriptors", "statusDescriptors"), descriptor),
        "resources": items(obj(resource, *resource)),
        **owned,
    }
    return obj(dict.fromkeys(("owned", "required"), items(obj(described, *required))))


def _install() -> Obj:
    rule = obj(
        dict.fromkeys(("apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs"), atomic(STR)), "verbs"
    )
    permissions = items(obj({"rules": items(rule), "serviceAccountName": STR}, "rules", "serviceAccountName"))
    rolling = obj({"maxSurge": INT_OR_STRING, "maxUnavailable": INT_OR_STRING})
    numbers = ("minReadySeconds", "progressDeadlineSeconds", "replicas", "revisionHistoryLimit")
    spec: Fields = {
        **dict.fromkeys(numbers, INT32),
        "paused": BOOL,
        "selector": SELECTOR,
        "strategy": obj({"rollingUpdate": rolling, "type": STR}),
        "template": obj({"metadata": ANY, "spec": ANY}),
    }
    deployment: Fields = {"label": mapping(STR), "name": STR, "spec": obj(spec, "selector", "template")}
    strategy: Fields = {
        "clusterPermissions": permissions,
        "deployments": items(obj(deployment, "name", "spec")),
        "permissions": permissions,
    }
    return obj({"spec": obj(strategy, "deployments"), "strategy": STR}, "strategy")


def _webhook() -> Obj:
    lists = dict.fromkeys(("apiGroups", "apiVersions", "operations", "resources"), atomic(STR))
    texts = ("deploymentName", "failurePolicy", "generateName", "matchPolicy", "reinvocationPolicy", "sideEffects")
    fields: Fields = {
        **dict.fromkeys((*texts, "webhookPath"), STR),
        "admissionReviewVersions": strings(),
        "containerPort": INT32 | {"default": 443, "maximum": 65535, "minimum": 1},
        "conversionCRDs": strings(),
        "objectSelector": SELECTOR,
        "rules": items(obj({**lists, "scope": STR})),
        "targetPort": INT_OR_STRING,
        "timeoutSeconds": INT32,
        "type": enum("ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ConversionWebhook"),
    }
    return obj(fields, "admissionReviewVersions", "generateName", "sideEffects", "type")


def _release() -> Obj:
    """Return the schema of ``spec.release``."""
    said = "release version must be composed of dot-separated identifiers containing only alphanumerics and hyphens"
    zeros = "numeric identifiers in release version must not have leading zeros"
    rules = [
        {"message": said, "rule": r"self.matches('^[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*$')"},
        {"message": zeros, "rule": "!self.split('.').exists(x, x.matches('^0[0-9]+$'))"},
    ]
    return STR | {"maxLength": 20, "x-kubernetes-validations": rules}


def service_version_crd() -> Obj:
    """``clusterserviceversions``."""
    apis = ("group", "kind", "name", "version")
    native = dict.fromkeys(("group", "kind", "version"), STR)
    spec: Fields = {
        **dict.fromkeys(("description", "displayName", "maturity", "minKubeVersion", "replaces", "version"), STR),
        **dict.fromkeys(("annotations", "labels"), mapping(STR)),
        **dict.fromkeys(("keywords", "skips"), strings()),
        "apiservicedefinitions": _provided({"containerPort": INT32, "deploymentName": STR, "group": STR}, apis),
        "cleanup": obj({"enabled": BOOL}, "enabled"),
        "customresourcedefinitions": _provided({}, ("kind", "name", "version")),
        "icon": items(obj({"base64data": STR, "mediatype": STR}, "base64data", "mediatype")),
        "install": _install(),
        "installModes": items(obj({"supported": BOOL, "type": STR}, "supported", "type")),
        "links": items(obj({"name": STR, "url": STR})),
        "maintainers": items(obj({"email": STR, "name": STR})),
        "nativeAPIs": items(obj(native, *native)),
        "provider": obj({"name": STR, "url": STR}),
        "relatedImages": items(obj({"image": STR, "name": STR}, "image", "name")),
        "release": _release(),
        "selector": SELECTOR,
        "webhookdefinitions": items(_webhook()),
    }
    instance = items(obj({"name": STR, "namespace": STR}, "name"))
    pending = obj({"group": STR, "instances": instance, "kind": STR}, "group", "instances", "kind")
    needs: Fields = {**dict.fromkeys(("group", "kind", "message", "status", "uuid", "version"), STR)}
    dependents = items(obj(needs, "group", "kind", "status", "version"))
    requirement = obj(
        {**needs, "name": STR, "dependents": dependents}, "group", "kind", "message", "name", "status", "version"
    )
    phase: Fields = {**_WHY, **_TIMES, "phase": STR}
    status: Fields = {
        **phase,
        **dict.fromkeys(("certsLastUpdated", "certsRotateAt"), TIME),
        "cleanup": obj({"pendingDeletion": items(pending)}),
        "conditions": items(obj(phase)),
        "requirementStatus": items(requirement),
    }
    about = "A ClusterServiceVersion is one version of an operator: what it needs, what it brings, how it is installed."
    schema = kind_schema(obj(spec, "displayName", "install"), obj(status), "spec", about=about)
    columns = (
        column("Display", ".spec.displayName"),
        column("Version", ".spec.version"),
        column("Release", ".spec.release"),
        column("Replaces", ".spec.replaces"),
        column("Phase", ".status.phase"),
    )
    short = ("csv", "csvs")
    crd = definition(SERVICE_VERSION, "clusterserviceversions", schema, short=short, columns=columns, namespaced=True)
    return _needs_metadata(crd)


def _with_older(crd: Obj, name: str, schema: Obj) -> Obj:
    """Serve a second version with a schema of its own; it is not stored."""
    (stored,) = crd["spec"]["versions"]
    older = {**stored, "name": name, "storage": False, "schema": {"openAPIV3Schema": schema}}
    return {**crd, "spec": {**crd["spec"], "versions": [older, stored]}}


def operator_group_crd() -> Obj:
    """``operatorgroups``."""
    both: Fields = {"selector": SELECTOR, "serviceAccountName": STR, "staticProvidedAPIs": BOOL}
    unique = strings() | {"x-kubernetes-list-type": "set"}
    strategy = enum("Default", "TechPreviewUnsafeFailForward") | {"default": "Default"}
    spec = obj({**both, "targetNamespaces": unique, "upgradeStrategy": strategy})
    spec["default"] = {"upgradeStrategy": "Default"}
    found: Fields = {"lastUpdated": TIME, "serviceAccountRef": _REFERENCE}
    status = obj({**found, "conditions": items(CONDITION), "namespaces": unique}, "lastUpdated")
    about = "An OperatorGroup says which namespaces the operators of its namespace watch, and with whose rights."
    schema = kind_schema(spec, status, about=about)
    crd = definition(OPERATOR_GROUP, "operatorgroups", schema, short=("og",), namespaced=True)
    older = kind_schema(
        obj({**both, "targetNamespaces": strings()}),
        obj({**found, "namespaces": strings()}, "lastUpdated"),
        about=about,
    )
    return _needs_metadata(_with_older(crd, "v1alpha2", older))


def operator_condition_crd() -> Obj:
    """``operatorconditions``."""
    override = obj(CONDITION["properties"], "message", "reason", "status", "type")
    both: Fields = {"deployments": strings(), "overrides": items(override), "serviceAccounts": strings()}
    status = obj({"conditions": items(CONDITION)})
    about = "An OperatorCondition is where an operator says that it is not ready to be upgraded."
    schema = kind_schema(obj({**both, "conditions": items(CONDITION)}), status, about=about)
    crd = definition(OPERATOR_CONDITION, "operatorconditions", schema, short=("condition",), namespaced=True)
    return _needs_metadata(_with_older(crd, "v1", kind_schema(obj(both), status, about=about)))


def operator_crd() -> Obj:
    """``operators``."""
    condition = obj({**_WHY, **_TIMES, "status": STR, "type": STR}, "status", "type")
    reference = _REFERENCE | {"properties": {**_REFERENCE["properties"], "conditions": items(condition)}}
    components = obj({"labelSelector": SELECTOR, "refs": items(reference)}, "labelSelector")
    about = "An Operator is the list of what belongs to an operator in the cluster."
    schema = kind_schema({"type": "object"}, obj({"components": components}), about=about)
    return _olm(definition(OPERATOR, "operators", schema))


def olm_config_crd() -> Obj:
    """``olmconfigs``."""
    interval = STR | {"pattern": r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"}
    features = obj({"disableCopiedCSVs": BOOL, "packageServerSyncInterval": interval})
    about = "The OLMConfig named cluster holds the settings of the Operator Lifecycle Manager."
    schema = kind_schema(obj({"features": features}), obj({"conditions": items(CONDITION)}), about=about)
    return _needs_metadata(definition(OLM_CONFIG, "olmconfigs", schema))


def operator_crds() -> tuple[Obj, ...]:
    """Return the definitions that the role ``operators`` needs."""
    return (
        catalog_source_crd(),
        subscription_crd(),
        install_plan_crd(),
        service_version_crd(),
        operator_group_crd(),
        operator_condition_crd(),
        operator_crd(),
        olm_config_crd(),
    )


def are_installed(names: Iterable[str]) -> bool:
    """Return whether a cluster with definitions of these names has the kinds of OLM."""
    return f"subscriptions.{GROUP}" in names
