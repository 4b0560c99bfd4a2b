"""The kinds of ``machineconfiguration.openshift.io/v1`` that Syncline serves, and ``MachineConfiguration`` of
``operator.openshift.io/v1``: fields, types, rules and printer columns as upstream's, so that repositories, dashboards
and habits work unchanged; the descriptions are ours. A cluster that has these kinds keeps its own definitions.
"""

from __future__ import annotations

from syncline.kube.kinds.descriptions import described
from syncline.kube.kinds.structure import (
    AGE,
    ANY,
    BOOL,
    BYTES,
    CONDITION,
    COUNT,
    INT,
    INT32,
    INT_OR_STRING,
    QUANTITY,
    SELECTOR,
    STR,
    TIME,
    atomic,
    column,
    condition_column,
    definition,
    enum,
    items,
    keyed,
    kind_schema,
    mapping,
    obj,
)
from syncline.kube.objects import GVK, Obj

GROUP = "machineconfiguration.openshift.io"
OPERATOR_GROUP = "operator.openshift.io"
VERSION = "v1"

MACHINE_CONFIG = GVK(GROUP, VERSION, "MachineConfig")
MACHINE_CONFIG_POOL = GVK(GROUP, VERSION, "MachineConfigPool")
CONTROLLER_CONFIG = GVK(GROUP, VERSION, "ControllerConfig")
KUBELET_CONFIG = GVK(GROUP, VERSION, "KubeletConfig")
CONTAINER_RUNTIME_CONFIG = GVK(GROUP, VERSION, "ContainerRuntimeConfig")
MACHINE_CONFIG_NODE = GVK(GROUP, VERSION, "MachineConfigNode")
PINNED_IMAGE_SET = GVK(GROUP, VERSION, "PinnedImageSet")
MACHINE_CONFIGURATION = GVK(OPERATOR_GROUP, VERSION, "MachineConfiguration")

_MANAGED = {"openshift.io/operator-managed": ""}
_LEVEL = {"default": "Normal"} | enum("", "Normal", "Debug", "Trace", "TraceAll")


def _rule(rule: str, message: str) -> Obj:
    return {"rule": rule, "message": message}


def _rules(schema: Obj, *rules: Obj) -> Obj:
    return schema | {"x-kubernetes-validations": list(rules)}


_SUBDOMAIN = _rules(
    {"type": "string", "maxLength": 253},
    _rule(
        "!format.dns1123Subdomain().validate(self).hasValue()",
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character.",
    ),
)

_REFERENCE_FIELDS: Obj = dict.fromkeys(
    ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"), STR
)
_REFERENCE = obj(_REFERENCE_FIELDS) | {"x-kubernetes-map-type": "atomic"}

_PLAIN_CONDITION_FIELDS: Obj = {
    "lastTransitionTime": TIME | {"nullable": True},
    "message": STR,
    "reason": STR,
    "status": STR,
    "type": STR,
}
"""Conditions older than ``metav1.Condition``: without observedGeneration, nothing is required."""


def openshift_kind(
    gvk: GVK, plural: str, schema: Obj, *, short: tuple[str, ...] = (), columns: tuple[Obj, ...] = (), status: bool
) -> Obj:
    """A definition of OpenShift's, with our descriptions."""
    schema = described(gvk.kind, schema)
    return definition(gvk, plural, schema, short=short, columns=columns, status=status, labels=_MANAGED)


def machine_config_crd() -> Obj:
    """``machineconfigs``: no schema inside ``spec.config``, no admission rule of any kind, as upstream."""
    spec = obj(
        {
            "baseOSExtensionsContainerImage": STR,
            "config": ANY | {"description": "an Ignition config, version 2.2 or 3.0 to 3.5"},
            "extensions": atomic(STR),
            "fips": BOOL,
            "kernelArguments": atomic(STR) | {"nullable": True},
            "kernelType": STR,
            "osImageURL": STR,
        }
    )
    schema = kind_schema(
        spec, None, about="A MachineConfig is a part of what the machines of a pool are configured with."
    )
    path = r".metadata.annotations.machineconfiguration\.openshift\.io/generated-by-controller-version"
    columns = (
        column("GeneratedByController", path),
        column("IgnitionVersion", ".spec.config.ignition.version"),
        AGE,
    )
    return openshift_kind(MACHINE_CONFIG, "machineconfigs", schema, short=("mc",), columns=columns, status=False)


def _configuration() -> Obj:
    return obj(_REFERENCE_FIELDS | {"source": atomic(_REFERENCE)}) | {"x-kubernetes-map-type": "atomic"}


def _synchronizer_status() -> Obj:
    counts = ("availableMachineCount", "machineCount", "readyMachineCount", "unavailableMachineCount")
    fields: Obj = dict.fromkeys((*counts, "updatedMachineCount"), COUNT)
    forward = _rule(
        "self >= oldSelf || (self == 0 && oldSelf > 0)", "observedGeneration must not move backwards except to zero"
    )
    fields["observedGeneration"] = _rules(COUNT, forward)
    fields["poolSynchronizerType"] = enum("PinnedImageSets") | {"maxLength": 256}
    pairs = (
        ("machineCount", "updatedMachineCount"),
        ("machineCount", "availableMachineCount"),
        ("machineCount", "unavailableMachineCount"),
        ("machineCount", "readyMachineCount"),
        ("availableMachineCount", "readyMachineCount"),
    )
    rules = [_rule(f"self.{a} >= self.{b}", f"{a} must be greater than or equal to {b}") for a, b in pairs]
    required = (*counts, "poolSynchronizerType", "updatedMachineCount")
    return keyed(_rules(obj(fields, *required), *rules), "poolSynchronizerType")


def machine_config_pool_crd() -> Obj:
    """``machineconfigpools``, with the printer columns that people read rollouts by."""
    stream_name = _SUBDOMAIN | {"minLength": 1}
    stream = obj({"name": stream_name}, "name")
    label = r"([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])"
    pinned: Obj = {"type": "string", "minLength": 1, "maxLength": 253, "pattern": rf"^{label}(\.{label})*$"}
    spec = obj(
        {
            "configuration": _configuration() | {"description": "what is rendered; written by the controller"},
            "machineConfigSelector": SELECTOR,
            "maxUnavailable": INT_OR_STRING,
            "nodeSelector": SELECTOR,
            "osImageStream": stream,
            "paused": BOOL,
            "pinnedImageSets": keyed(obj({"name": pinned}, "name"), "name", maxItems=100),
        }
    )
    expiry = obj({"bundle": STR, "expiry": TIME, "subject": STR}, "bundle", "subject")
    counts = ("degraded", "ready", "unavailable", "updated")
    status = obj(
        {
            "certExpirys": atomic(expiry),
            "conditions": atomic(obj(_PLAIN_CONDITION_FIELDS)),
            "configuration": _configuration() | {"description": "what every machine of the pool has reached"},
            "machineCount": INT32,
            "observedGeneration": INT,
            "osImageStream": stream,
            "poolSynchronizersStatus": _synchronizer_status(),
        }
        | dict.fromkeys((f"{name}MachineCount" for name in counts), INT32)
    )
    schema = kind_schema(
        spec, status, "spec", about="A MachineConfigPool ties machines to the MachineConfigs they follow."
    )
    columns = (
        column("Config", ".status.configuration.name"),
        condition_column("Updated", "Updated"),
        condition_column("Updating", "Updating"),
        condition_column("Degraded", "Degraded"),
        column("MachineCount", ".status.machineCount", "number"),
        column("ReadyMachineCount", ".status.readyMachineCount", "number"),
        column("UpdatedMachineCount", ".status.updatedMachineCount", "number"),
        column("DegradedMachineCount", ".status.degradedMachineCount", "number"),
        AGE,
    )
    return openshift_kind(
        MACHINE_CONFIG_POOL, "machineconfigpools", schema, short=("mcp",), columns=columns, status=True
    )


def controller_config_crd() -> Obj:
    """``controllerconfigs``; the embedded DNS and Infrastructure are kept as they come."""
    embedded = ANY | {"nullable": True, "x-kubernetes-embedded-resource": True}
    bundle = atomic(obj({"data": BYTES, "file": STR}, "data", "file"))
    mtu = obj({"from": INT32 | {"minimum": 0}, "to": INT32 | {"minimum": 0}})
    migration = obj({"machine": mtu, "network": mtu}) | {"nullable": True}
    texts = (
        "baseOSContainerImage",
        "baseOSExtensionsContainerImage",
        "cloudProviderConfig",
        "clusterDNSIP",
        "etcdDiscoveryDomain",
        "ipFamilies",
        "networkType",
        "osImageURL",
        "platform",
        "releaseImage",
    )
    required = (
        "additionalTrustBundle",
        "baseOSContainerImage",
        "cloudProviderCAData",
        "cloudProviderConfig",
        "clusterDNSIP",
        "dns",
        "images",
        "infra",
        "ipFamilies",
        "kubeAPIServerServingCAData",
        "network",
        "proxy",
        "releaseImage",
        "rootCAData",
    )
    spec = obj(
        dict.fromkeys(texts, STR)
        | {
            "additionalTrustBundle": BYTES | {"nullable": True},
            "cloudProviderCAData": BYTES | {"nullable": True},
            "dns": embedded,
            "imageRegistryBundleData": bundle,
            "imageRegistryBundleUserData": bundle,
            "images": mapping(STR),
            "infra": embedded,
            "internalRegistryPullSecret": BYTES | {"nullable": True},
            "kubeAPIServerServingCAData": BYTES,
            "network": obj({"mtuMigration": migration}, "mtuMigration") | {"nullable": True},
            "proxy": obj(dict.fromkeys(("httpProxy", "httpsProxy", "noProxy"), STR)) | {"nullable": True},
            "pullSecret": _REFERENCE,
            "rootCAData": BYTES,
        },
        *required,
    )
    certificate = obj(
        {"bundleFile": STR, "notAfter": TIME, "notBefore": TIME, "signer": STR, "subject": STR},
        "bundleFile",
        "signer",
        "subject",
    )
    status = obj(
        {
            "conditions": keyed(obj(_PLAIN_CONDITION_FIELDS, "lastTransitionTime", "status", "type"), "type"),
            "controllerCertificates": atomic(certificate),
            "observedGeneration": INT,
        }
    )
    schema = kind_schema(spec, status, "spec", about="A ControllerConfig holds what base configurations are made from.")
    return openshift_kind(CONTROLLER_CONFIG, "controllerconfigs", schema, status=True)


def _sub_controller_status() -> Obj:
    return obj({"conditions": atomic(obj(_PLAIN_CONDITION_FIELDS)), "observedGeneration": INT})


def kubelet_config_crd() -> Obj:
    """``kubeletconfigs``; ``spec.kubeletConfig`` is not looked into before it is merged."""
    custom = obj({"ciphers": atomic(STR), "minTLSVersion": enum(*(f"VersionTLS1{n}" for n in range(4)))})
    empty: Obj = {"type": "object", "nullable": True}
    profile = obj(
        {
            "custom": custom | {"nullable": True},
            "intermediate": empty,
            "modern": empty,
            "old": empty,
            "type": enum("Old", "Intermediate", "Modern", "Custom"),
        }
    )
    spec = obj(
        {
            "autoSizingReserved": BOOL,
            "kubeletConfig": ANY,
            "logLevel": INT32 | {"minimum": 0, "maximum": 10},
            "machineConfigPoolSelector": SELECTOR | {"description": "matches labels of pools, not of nodes"},
            "tlsSecurityProfile": profile,
        }
    )
    schema = kind_schema(spec, _sub_controller_status(), "spec", about="A KubeletConfig changes the kubelets of pools.")
    return openshift_kind(KUBELET_CONFIG, "kubeletconfigs", schema, status=True)


def _stores(limit: int, name: str) -> Obj:
    path = _rules(
        {"type": "string", "minLength": 1, "maxLength": 256},
        _rule(
            "self.matches('^/[a-zA-Z0-9/._-]+$')",
            "path must be absolute and contain only alphanumeric characters, '/', '.', '_', and '-'",
        ),
        _rule("!self.contains('//')", "path must not contain consecutive forward slashes"),
    )
    return _rules(
        atomic(obj({"path": path}, "path"), minItems=1, maxItems=limit),
        _rule("self.all(x, self.exists_one(y, x.path == y.path))", f"{name} must not contain duplicate paths"),
    )


def container_runtime_config_crd() -> Obj:
    """``containerruntimeconfigs``."""
    runtime = obj(
        {
            "additionalArtifactStores": _stores(10, "additionalArtifactStores"),
            "additionalImageStores": _stores(10, "additionalImageStores"),
            "additionalLayerStores": _stores(5, "additionalLayerStores"),
            "defaultRuntime": enum("crun", "runc"),
            "logLevel": STR,
            "logSizeMax": QUANTITY,
            "overlaySize": QUANTITY,
            "pidsLimit": INT,
        }
    )
    spec = obj({"containerRuntimeConfig": runtime, "machineConfigPoolSelector": SELECTOR}, "containerRuntimeConfig")
    schema = kind_schema(
        spec, _sub_controller_status(), "spec", about="A ContainerRuntimeConfig changes the container runtime of pools."
    )
    return openshift_kind(CONTAINER_RUNTIME_CONFIG, "containerruntimeconfigs", schema, short=("ctrcfg",), status=True)


def _pinned_status() -> Obj:
    grown = {
        name: _rules(INT32 | {"minimum": 1}, _rule("self >= oldSelf", f"{name} must not decrease"))
        for name in ("currentGeneration", "desiredGeneration", "lastFailedGeneration")
    }
    fields = grown | {"lastFailedGenerationError": {"type": "string", "maxLength": 32768}, "name": _SUBDOMAIN}
    return _rules(
        obj(fields, "name"),
        _rule(
            "has(self.desiredGeneration) && has(self.currentGeneration) ? "
            "self.desiredGeneration >= self.currentGeneration : true",
            "desired generation must be greater than or equal to the current generation",
        ),
        _rule(
            "has(self.lastFailedGeneration) && has(self.desiredGeneration) ? "
            "self.desiredGeneration >= self.lastFailedGeneration : true",
            "desired generation must be greater than or equal to the last failed generation",
        ),
        _rule(
            "has(self.lastFailedGeneration) ? has(self.lastFailedGenerationError) : true",
            "last failed generation error must be defined on image pull and pin failure",
        ),
    )


def machine_config_node_crd() -> Obj:
    """``machineconfignodes``: one for each node, of the same name; phases of an update are wide columns."""
    spec = obj(
        {
            "configVersion": obj({"desired": _SUBDOMAIN}, "desired"),
            "configImage": obj({"desiredImage": STR}),
            "node": obj({"name": _SUBDOMAIN}, "name"),
            "pool": obj({"name": _SUBDOMAIN}, "name"),
        },
        "configVersion",
        "node",
        "pool",
    )
    path = _rules(
        {"type": "string", "minLength": 1, "maxLength": 70},
        _rule("self.startsWith('spec.')", "The fieldPath must start with `spec.`"),
        _rule(
            r"self.matches('^[\\da-zA-Z\\.\\[\\]]+$')",
            "The fieldPath must consist only of alphanumeric characters, brackets [] and dots ('.').",
        ),
    )
    change = obj(
        {"diff": {"type": "string", "minLength": 1, "maxLength": 4096}, "fieldPath": path}, "diff", "fieldPath"
    )
    status = obj(
        {
            "conditions": keyed(CONDITION, "type", maxItems=20),
            "configImage": obj({"currentImage": STR, "desiredImage": STR}),
            "configVersion": obj({"current": _SUBDOMAIN, "desired": _SUBDOMAIN}, "desired"),
            "irreconcilableChanges": keyed(change, "fieldPath", minItems=1, maxItems=32),
            "observedGeneration": _rules(
                INT | {"minimum": 1}, _rule("self >= oldSelf", "observedGeneration must not decrease")
            ),
            "pinnedImageSets": keyed(_pinned_status(), "name", maxItems=100),
        }
    )
    schema = _rules(
        kind_schema(spec, status, "spec", about="A MachineConfigNode tells how far the update of one node is."),
        _rule("self.metadata.name == self.spec.node.name", "spec.node.name should match metadata.name"),
    )
    wide = (
        ("UpdatePrepared", "UpdatePrepared"),
        ("UpdateExecuted", "UpdateExecuted"),
        ("UpdatePostActionComplete", "UpdatePostActionComplete"),
        ("UpdateComplete", "UpdateComplete"),
        ("Resumed", "Resumed"),
        ("UpdatedFilesAndOS", "AppliedFilesAndOS"),
        ("CordonedNode", "Cordoned"),
        ("DrainedNode", "Drained"),
        ("RebootedNode", "RebootedNode"),
        ("UncordonedNode", "Uncordoned"),
    )
    columns = (
        column("PoolName", ".spec.pool.name"),
        column("DesiredConfig", ".spec.configVersion.desired"),
        column("CurrentConfig", ".status.configVersion.current"),
        condition_column("Updated", "Updated"),
        AGE,
        *(condition_column(name, condition, wide=True) for name, condition in wide),
    )
    return openshift_kind(MACHINE_CONFIG_NODE, "machineconfignodes", schema, columns=columns, status=True)


def pinned_image_set_crd() -> Obj:
    """``pinnedimagesets``."""
    name = _rules(
        {"type": "string", "minLength": 1, "maxLength": 447},
        _rule(
            "(self.split('@').size() == 2 && self.split('@')[1].matches('^sha256:[a-f0-9]{64}$'))",
            "the OCI Image reference must end with a valid '@sha256:<digest>' suffix, where '<digest>' is 64 "
            "characters long",
        ),
        _rule(
            r"(self.split('@')[0].matches('^([a-zA-Z0-9-]+\\.)+[a-zA-Z0-9-]+(:[0-9]{2,5})?/"
            r"([a-zA-Z0-9-_]{0,61}/)?[a-zA-Z0-9-_.]*?$'))",
            "the OCI Image name should follow the host[:port][/namespace]/name format, resembling a valid URL without "
            "the scheme",
        ),
    )
    spec = obj({"pinnedImages": keyed(obj({"name": name}, "name"), "name", minItems=1, maxItems=500)}, "pinnedImages")
    schema = kind_schema(
        spec, None, "spec", about="A PinnedImageSet names images that machines fetch beforehand and keep."
    )
    return openshift_kind(PINNED_IMAGE_SET, "pinnedimagesets", schema, status=False)


def _policy_actions(*types: str) -> Obj:
    suffixes = "service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope"
    service = obj({"serviceName": _service_name(suffixes)}, "serviceName")
    action = _rules(
        obj({"reload": service, "restart": service, "type": enum(*types)}, "type"),
        *(
            _rule(
                f"has(self.type) && self.type == '{kind}' ? has(self.{field}) : !has(self.{field})",
                f"{field} is required when type is {kind}, and forbidden otherwise",
            )
            for kind, field in (("Reload", "reload"), ("Restart", "restart"))
        ),
    )
    alone = [
        _rule(
            f"self.exists(x, x.type=='{kind}') ? size(self) == 1 : true",
            f"{kind} action can only be specified standalone, as it will override any other actions",
        )
        for kind in ("Reboot", "None")
    ]
    return _rules(atomic(action, maxItems=10), *alone)


def _service_name(suffixes: str) -> Obj:
    listed = ", ".join(f'".{suffix}"' for suffix in suffixes.split("|"))
    form = "in service name. Expected format is ${NAME}${SERVICETYPE}, where"
    return _rules(
        {"type": "string", "maxLength": 255},
        _rule(
            rf"self.matches('\\.({suffixes})$')",
            f"Invalid ${{SERVICETYPE}} {form} ${{SERVICETYPE}} is one of {listed}.",
        ),
        _rule(
            r"self.matches('^[a-zA-Z0-9:._\\\\-]+\\..')",
            f"Invalid ${{NAME}} {form} ${{NAME}} is at least one letter, digit, ':', '-', '_', '.' or '\\'",
        ),
    )


def _disruption_policies(limit: int, *types: str) -> Obj:
    actions = _policy_actions(*types)
    suffixes = "service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope"
    return obj(
        {
            "files": keyed(obj({"actions": actions, "path": STR}, "actions", "path"), "path", maxItems=limit),
            "sshkey": obj({"actions": actions}, "actions"),
            "units": keyed(
                obj({"actions": actions, "name": _service_name(suffixes)}, "actions", "name"), "name", maxItems=limit
            ),
        }
    )


def machine_configuration_crd() -> Obj:
    """``machineconfigurations.operator.openshift.io``: one object, ``cluster``. Boot images are not looked into."""
    types = ("Reboot", "Drain", "Reload", "Restart", "DaemonReload", "None")
    overrides = obj(
        {
            "storage": items(enum("Disks", "FileSystems", "Raid"))
            | {"x-kubernetes-list-type": "set", "minItems": 1, "maxItems": 3}
        }
    ) | {"minProperties": 1}
    spec = obj(
        {
            "bootImageSkewEnforcement": ANY,
            "failedRevisionLimit": INT32,
            "forceRedeploymentReason": STR,
            "irreconcilableValidationOverrides": overrides,
            "logLevel": _LEVEL,
            "managedBootImages": ANY,
            "managementState": {"type": "string", "pattern": "^(Managed|Unmanaged|Force|Removed)$"},
            "nodeDisruptionPolicy": _disruption_policies(50, *types),
            "observedConfig": ANY | {"nullable": True},
            "operatorLogLevel": _LEVEL,
            "succeededRevisionLimit": INT32,
            "unsupportedConfigOverrides": ANY | {"nullable": True},
        }
    )
    status = obj(
        {
            "bootImageSkewEnforcementStatus": ANY,
            "conditions": keyed(CONDITION, "type"),
            "managedBootImagesStatus": ANY,
            "nodeDisruptionPolicyStatus": obj({"clusterPolicies": _disruption_policies(100, *types, "Special")}),
            "observedGeneration": INT,
        }
    )
    schema = _rules(
        kind_schema(
            spec, status, "spec", about="MachineConfiguration says what a change of configuration does to nodes."
        ),
        _rule(
            "self.metadata.name == 'cluster'",
            "Only a single object of MachineConfiguration is allowed and it must be named cluster.",
        ),
    )
    return openshift_kind(MACHINE_CONFIGURATION, "machineconfigurations", schema, status=True)


def machine_config_crds() -> tuple[Obj, ...]:
    """Everything of these groups that the machine-config room serves."""
    return (
        machine_config_crd(),
        machine_config_pool_crd(),
        controller_config_crd(),
        kubelet_config_crd(),
        container_runtime_config_crd(),
        machine_config_node_crd(),
        pinned_image_set_crd(),
        machine_configuration_crd(),
    )
