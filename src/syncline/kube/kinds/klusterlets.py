"""``Klusterlet`` of ``operator.open-cluster-management.io``: the agent of a managed cluster, as an object there.

Fields, types, rules and columns as upstream's (its ``api`` repository, ``operator/v1``); the descriptions are ours."""

from __future__ import annotations

from syncline.kube.kinds.structure import (
    BYTES,
    CONDITION,
    INT,
    INT32,
    QUANTITY,
    STR,
    Fields,
    definition,
    enum,
    items,
    keyed,
    kind_schema,
    mapping,
    obj,
)
from syncline.kube.objects import GVK, Obj

GROUP = "operator.open-cluster-management.io"
KLUSTERLET = GVK(GROUP, "v1", "Klusterlet")

_RATES: Fields = {"kubeAPIBurst": INT32 | {"default": 100}, "kubeAPIQPS": INT32 | {"default": 50}}
_INTERVAL: Obj = STR | {"pattern": "^([0-9]+(s|m|h))+$"}
_ARN: Obj = STR | {"minLength": 1, "pattern": r"^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$"}
_LABEL = r"[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9]"
_OCTET = "25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?"


def _gates() -> Obj:
    return items(obj({"feature": STR, "mode": enum("Enable", "Disable") | {"default": "Disable"}}, "feature"))


def _registration() -> Obj:
    secrets = obj(
        {
            "hubConnectionTimeoutSeconds": INT32 | {"default": 600, "minimum": 180},
            "kubeConfigSecrets": items(obj({"name": STR}, "name")),
        },
        "kubeConfigSecrets",
    )
    kinds = enum("None", "LocalSecrets") | {"default": "None"}
    suffix: Obj = STR | {"maxLength": 64, "minLength": 1}
    claims = obj(
        {
            "maxCustomClusterClaims": INT32 | {"default": 20},
            "reservedClusterClaimSuffixes": items(suffix) | {"maxItems": 10},
        },
        "maxCustomClusterClaims",
    )
    drivers = enum("csr", "awsirsa", "grpc") | {"default": "csr"}
    arns = ("hubClusterArn", "managedClusterArn")
    driver = {"authType": drivers, "awsIrsa": obj(dict.fromkeys(arns, _ARN), *arns)}
    add_ons = {"authType": enum("csr", "token"), "token": obj({"expirationSeconds": INT})}
    return obj(
        {
            **_RATES,
            "addOnKubeClientRegistrationDriver": obj(add_ons),
            "bootstrapKubeConfigs": obj({"localSecretsConfig": secrets, "type": kinds}, "type"),
            "clientCertExpirationSeconds": INT32,
            "clusterAnnotations": mapping(STR),
            "clusterClaimConfiguration": claims,
            "clusterLabels": mapping(STR),
            "featureGates": _gates(),
            "registrationDriver": obj(driver, "authType"),
        }
    )


def _work() -> Obj:
    return obj(
        {
            **_RATES,
            "appliedManifestWorkEvictionGracePeriod": _INTERVAL,
            "featureGates": _gates(),
            "hubKubeAPIBurst": INT32 | {"default": 100},
            "hubKubeAPIQPS": INT32 | {"default": 50},
            "statusSyncInterval": _INTERVAL,
        }
    )


def _resources() -> Obj:
    claim = obj({"name": STR, "request": STR}, "name")
    amounts = dict.fromkeys(("limits", "requests"), mapping(QUANTITY))
    classes = enum("Default", "BestEffort", "ResourceRequirement") | {"default": "Default"}
    return obj({"resourceRequirements": obj({"claims": keyed(claim, "name"), **amounts}), "type": classes})


def _spec() -> Obj:
    texts = dict.fromkeys(("effect", "key", "operator", "value"), STR)
    placement = {"nodeSelector": mapping(STR), "tolerations": items(obj({**texts, "tolerationSeconds": INT}))}
    host: Obj = STR | {"pattern": rf"^(({_LABEL})\.)*({_LABEL.replace('a-zA-Z', 'A-Za-z')})$"}
    address: Obj = STR | {"pattern": rf"^(?:(?:{_OCTET})\.){{3}}(?:{_OCTET})$"}
    return obj(
        {
            **dict.fromkeys(
                ("imagePullSpec", "priorityClassName", "registrationImagePullSpec", "workImagePullSpec"), STR
            ),
            "clusterName": STR | {"maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
            "deployOption": obj({"mode": STR}),
            "externalServerURLs": items(obj({"caBundle": BYTES, "url": STR}, "url")),
            "hubApiServerHostAlias": obj({"hostname": host, "ip": address}, "hostname", "ip"),
            "namespace": STR | {"maxLength": 57, "pattern": "^open-cluster-management-[-a-z0-9]*[a-z0-9]$"},
            "nodePlacement": obj(placement),
            "registrationConfiguration": _registration(),
            "resourceRequirement": _resources(),
            "workConfiguration": _work(),
        }
    )


def klusterlet_crd() -> Obj:
    """``klusterlets``."""
    named = dict.fromkeys(("group", "name", "namespace", "resource", "version"), STR)
    required = ("group", "name", "resource", "version")
    generation = obj({**named, "lastGeneration": INT}, *required, "lastGeneration")
    status = obj(
        {
            "conditions": keyed(CONDITION, "type"),
            "generations": items(generation),
            "observedGeneration": INT,
            "relatedResources": items(obj(named, *required)),
        }
    )
    about = "The agent of this cluster: the hub that it joins, under which name, and how it runs."
    return definition(KLUSTERLET, "klusterlets", kind_schema(_spec(), status, about=about))
