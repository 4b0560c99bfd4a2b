"""The kinds of ``addon.open-cluster-management.io``: fields, types, rules and columns as upstream's (its ``api``
repository); the descriptions are ours."""

from __future__ import annotations

from typing import Any

from syncline.kube.kinds.manifestworks import rollout_strategy, work_spec
from syncline.kube.kinds.structure import (
    BYTES,
    CONDITION,
    INT,
    QUANTITY,
    STR,
    Fields,
    column,
    condition_column,
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

GROUP = "addon.open-cluster-management.io"
MANAGED_ADDON = GVK(GROUP, "v1alpha1", "ManagedClusterAddOn")
CLUSTER_ADDON = GVK(GROUP, "v1alpha1", "ClusterManagementAddOn")
DEPLOYMENT_CONFIG = GVK(GROUP, "v1alpha1", "AddOnDeploymentConfig")
ADDON_TEMPLATE = GVK(GROUP, "v1alpha1", "AddOnTemplate")
DEFAULT_NAMESPACE = "open-cluster-management-agent-addon"
"""Where the agent of an add-on runs on the cluster if nothing says otherwise."""
ADDON_NAME = "open-cluster-management.io/addon-name"
"""Label of what belongs to an add-on."""
BETA = "v1beta1"

_NAME: Obj = {"type": "string", "minLength": 1}
_KIND: Fields = {"group": STR | {"default": ""}, "resource": _NAME}
_REFERENCE: Fields = {"name": _NAME, "namespace": STR}
_HASHED = obj({**_REFERENCE, "specHash": STR}, "name")
_CONFIG = obj({**_KIND, **_REFERENCE}, "name", "resource")
_CONDITIONS = keyed(CONDITION, "type")
_META = obj(dict.fromkeys(("description", "displayName"), STR))
_COORDINATES = obj({"crName": STR, "crdName": STR, "lastObservedGeneration": INT})
_SIGNER: Obj = {
    "type": "string",
    "maxLength": 571,
    "minLength": 5,
    "pattern": r"^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$",
}


HERE: Obj = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {
            "service": {
                "name": "cluster-manager-addon-webhook",
                "namespace": "open-cluster-management-hub",
                "path": "/convert",
                "port": 9443,
            }
        },
        "conversionReviewVersions": ["v1", "v1beta1"],
    },
}
"""The conversion of an embedded hub, which calls no webhook: it converts these kinds by itself."""


def _two_versions(crd: Obj, beta: Obj, columns: tuple[Obj, ...] = (), *, served: bool) -> Obj:
    """Give a definition the version v1beta1 with this schema; ``served`` where its objects can be converted."""
    (alpha,) = crd["spec"]["versions"]
    second: Obj = {**alpha, "name": BETA, "served": served, "storage": False, "schema": {"openAPIV3Schema": beta}}
    if columns:
        second["additionalPrinterColumns"] = list(columns)
    return {**crd, "spec": {**crd["spec"], "versions": [alpha, second]}}


def _converted(crd: Obj, beta: Obj, columns: tuple[Obj, ...], conversion: Obj | None) -> Obj:
    made = _two_versions(crd, beta, columns, served=conversion is not None)
    return made if conversion is None else {**made, "spec": {**made["spec"], "conversion": conversion}}


def managed_addon_crd(conversion: Obj | None = None) -> Obj:
    """``managedclusteraddons``: an add-on on one cluster, in the namespace of the cluster."""
    namespace: Obj = {
        "type": "string",
        "default": DEFAULT_NAMESPACE,
        "maxLength": 63,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    }
    health = obj({"mode": enum("Lease", "Customized") | {"default": "Lease"}})
    related = dict.fromkeys(("group", "name", "namespace", "resource"), STR)
    common: Fields = {
        "addOnMeta": _META,
        "conditions": _CONDITIONS,
        "healthCheck": health,
        "namespace": STR,
        "relatedObjects": items(obj(related, "group", "name", "resource")),
        "supportedConfigs": keyed(obj(_KIND, "resource"), "group", "resource"),
    }
    driver, subject = enum("csr", "token"), {"groups": strings(), "user": STR}
    applied: Fields = {**_KIND, "desiredConfig": _HASHED, "lastAppliedConfig": _HASHED, "lastObservedGeneration": INT}
    request = obj({"signerName": _SIGNER, "subject": obj({**subject, "organizationUnit": strings()})}, "signerName")
    status: Fields = {
        **common,
        "addOnConfiguration": _COORDINATES,
        "configReferences": items(obj({**applied, **_REFERENCE}, "name", "resource")),
        "kubeClientDriver": driver,
        "registrations": items(request),
    }
    signed = obj({"signerName": _SIGNER, "subject": obj({**subject, "organizationUnits": strings()})}, "signerName")
    client = obj({"driver": driver, "subject": obj(subject)})
    kinds = enum("kubeClient", "customSigner")
    later: Fields = {
        **common,
        "configReferences": items(obj(applied, "resource")),
        "registrations": items(obj({"customSigner": signed, "kubeClient": client, "type": kinds}, "type")),
    }
    about = "A ManagedClusterAddOn is an add-on on one cluster."
    configs = items(_CONFIG)
    schema = kind_schema(obj({"configs": configs, "installNamespace": namespace}), obj(status), "spec", about=about)
    columns = tuple(condition_column(name, name) for name in ("Available", "Degraded", "Progressing"))
    short = ("mca", "mcas")
    crd = definition(MANAGED_ADDON, "managedclusteraddons", schema, short=short, columns=columns, namespaced=True)
    beta = kind_schema(obj({"configs": configs}), obj(later), "spec", about=about)
    return _converted(crd, beta, columns, conversion)


def cluster_addon_crd(conversion: Obj | None = None) -> Obj:
    """``clustermanagementaddons``: an add-on of the hub, and on which clusters it is installed."""
    placement: Fields = {
        "configs": items(_CONFIG),
        "name": _NAME,
        "namespace": _NAME,
        "rolloutStrategy": rollout_strategy() | {"default": {"type": "All"}},
    }
    placements = keyed(obj(placement, "name", "namespace"), "namespace", "name")
    kinds = enum("Manual", "Placements") | {"default": "Manual"}
    strategy = obj({"placements": placements, "type": kinds}) | {"default": {"type": "Manual"}}
    supported = obj({**_KIND, "defaultConfig": obj(_REFERENCE, "name")}, "resource")
    spec: Fields = {
        "addOnConfiguration": _COORDINATES,
        "addOnMeta": _META,
        "installStrategy": strategy,
        "supportedConfigs": keyed(supported, "group", "resource"),
    }
    later: Fields = {
        "addOnMeta": _META,
        "defaultConfigs": keyed(_CONFIG, "group", "resource"),
        "installStrategy": strategy,
    }
    rolled = dict.fromkeys(("desiredConfig", "lastAppliedConfig", "lastKnownGoodConfig"), _HASHED)
    progression: Fields = {
        "conditions": _CONDITIONS,
        "configReferences": items(obj({**_KIND, **rolled}, "resource")),
        "name": _NAME,
        "namespace": _NAME,
    }
    progressions = items(obj(progression, "name", "namespace"))
    defaults = items(obj({**_KIND, "desiredConfig": _HASHED}, "resource"))
    about = "A ClusterManagementAddOn is an add-on that a hub installs on clusters."
    status = {"defaultconfigReferences": defaults, "installProgressions": progressions}
    schema = kind_schema(obj(spec), obj(status), "spec", about=about)
    shown = column("DISPLAY NAME", ".spec.addOnMeta.displayName")
    columns = (shown, column("CRD NAME", ".spec.addOnConfiguration.crdName"))
    short = ("cma", "cmas")
    crd = definition(CLUSTER_ADDON, "clustermanagementaddons", schema, short=short, columns=columns)
    status = {"defaultConfigReferences": defaults, "installProgressions": progressions}
    return _converted(crd, kind_schema(obj(later), obj(status), "spec", about=about), (shown,), conversion)


def deployment_config_crd() -> Obj:
    """``addondeploymentconfigs``: where and how the agent of an add-on runs. Both versions have the same fields."""
    toleration = dict.fromkeys(("effect", "key", "operator", "value"), STR) | {"tolerationSeconds": INT}
    claims = keyed(obj({"name": STR, "request": STR}, "name"), "name")
    resources = obj({"claims": claims, "limits": mapping(QUANTITY), "requests": mapping(QUANTITY)})
    container = {
        "type": "string",
        "pattern": r"^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):.+:.+$",
    }
    variable = {"type": "string", "maxLength": 255, "pattern": "^[a-zA-Z_][_a-zA-Z0-9]*$"}
    value = {"type": "string", "maxLength": 1024}
    namespace: Obj = {
        "type": "string",
        "default": DEFAULT_NAMESPACE,
        "maxLength": 63,
        "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",
    }
    required = keyed(obj({"containerID": container, "resources": resources}, "containerID", "resources"), "containerID")
    spec: Fields = {
        "agentInstallNamespace": namespace,
        "customizedVariables": keyed(obj({"name": variable, "value": value}, "name"), "name"),
        "nodePlacement": obj({"nodeSelector": mapping(STR), "tolerations": items(obj(toleration))}),
        "proxyConfig": obj({"caBundle": BYTES, **dict.fromkeys(("httpProxy", "httpsProxy", "noProxy"), STR)}),
        "registries": items(obj({"mirror": STR, "source": STR}, "mirror")),
        "resourceRequirements": required,
    }
    schema = kind_schema(obj(spec), None, "spec", about="How the agent of an add-on is deployed on clusters.")
    crd = definition(DEPLOYMENT_CONFIG, "addondeploymentconfigs", schema, status=False, namespaced=True)
    del crd["spec"]["versions"][0]["subresources"]
    return _two_versions(crd, schema, served=True)


def addon_template_crd() -> Obj:
    """``addontemplates``: the manifests of an add-on, and how its agents register with the hub."""
    role = obj(dict.fromkeys(("apiGroup", "kind", "name"), STR), "apiGroup", "kind", "name")
    permission = obj(
        {
            "currentCluster": obj({"clusterRoleName": STR}, "clusterRoleName"),
            "singleNamespace": obj(
                {"namespace": STR, "roleRef": role | {"x-kubernetes-map-type": "atomic"}}, "namespace", "roleRef"
            ),
            "type": enum("CurrentCluster", "SingleNamespace"),
        },
        "type",
    )
    subject = obj({"groups": strings(), "organizationUnit": strings(), "user": STR})
    signer: Fields = {
        "signerName": _SIGNER,
        "signingCA": obj({"name": STR, "namespace": STR}, "name"),
        "subject": subject,
    }
    registration: Fields = {
        "customSigner": obj(signer, "signerName", "signingCA"),
        "kubeClient": obj({"hubPermissions": items(permission)}),
        "type": enum("KubeClient", "CustomSigner"),
    }
    spec: dict[str, Any] = {
        "addonName": STR,
        "agentSpec": work_spec(),
        "registration": items(obj(registration, "type")),
    }
    schema = kind_schema(obj(spec, "addonName", "agentSpec"), None, "spec", about="The manifests of an add-on.")
    columns = (column("ADDON NAME", ".spec.addonName"),)
    return definition(ADDON_TEMPLATE, "addontemplates", schema, columns=columns, status=False)


def addon_crds(conversion: Obj | None = HERE) -> tuple[Obj, ...]:
    """The definitions that a hub with add-ons needs.

    ``conversion``: who converts the kinds whose versions differ (``spec.conversion`` of a definition). None: nothing
    can, so v1beta1 of these kinds is not served.
    """
    return cluster_addon_crd(conversion), managed_addon_crd(conversion), deployment_config_crd(), addon_template_crd()
