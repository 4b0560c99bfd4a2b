"""What ``kubectl explain`` says of the fields that people write and read, in our words.

A path names properties; items of lists are stepped into without a word of their own.
"""

from __future__ import annotations

from syncline.kube.objects import Obj

_SELECTS = "labels of MachineConfigPools; empty or missing: no pool"

DESCRIPTIONS: dict[str, dict[str, str]] = {
    "MachineConfig": {
        "spec": "what a machine gets; all MachineConfigs of a pool are merged by name, later ones win",
        "spec.baseOSExtensionsContainerImage": "image with the packages that extensions are taken from",
        "spec.extensions": "packages beside the operating system: usbguard, kerberos, ipsec, sandboxed-containers …",
        "spec.fips": "FIPS mode; cannot be changed once a machine is installed",
        "spec.kernelArguments": "added to the kernel's command line, in this order; a change reboots",
        "spec.kernelType": "default, realtime or 64k-pages; a change reboots",
        "spec.osImageURL": "image of the operating system; a change reboots",
    },
    "MachineConfigPool": {
        "spec": "which machines, which MachineConfigs, and how many of the machines at a time",
        "spec.machineConfigSelector": "labels of the MachineConfigs that are merged for the pool; custom pools also "
        "select role worker: {key: machineconfiguration.openshift.io/role, operator: In, values: [worker, NAME]}",
        "spec.maxUnavailable": "how many machines may be unavailable at a time: a number, or a percentage such as 10%, "
        "rounded down; at least 1, which is also the default",
        "spec.nodeSelector": "labels of the nodes that are in the pool; a node of a custom pool is not in worker",
        "spec.osImageStream": "the stream that images of the operating system are taken from",
        "spec.paused": "true: MachineConfigs are rendered, but no machine begins an update. `syncline pool pause` sets "
        "a Hold instead, which has an owner, a reason and an end",
        "spec.pinnedImageSets": "PinnedImageSets whose images the machines fetch and keep",
        "status": "how far the machines are",
        "status.conditions": "Updated, Updating, Degraded with NodeDegraded and RenderDegraded; ours is DrainBlocked",
        "status.degradedMachineCount": "machines whose update failed; the condition NodeDegraded says why",
        "status.machineCount": "machines of the pool",
        "status.readyMachineCount": "machines that are at the wanted config, and Ready",
        "status.unavailableMachineCount": "machines that are not Ready, cordoned or at work",
        "status.updatedMachineCount": "machines that are at the wanted config",
        "status.poolSynchronizersStatus": "how far the images of spec.pinnedImageSets are",
    },
    "KubeletConfig": {
        "spec": "settings that the kubelets of the selected pools get",
        "spec.autoSizingReserved": "true: what is reserved for the system follows from the size of the machine",
        "spec.kubeletConfig": "fields of kubelet.config.k8s.io/v1beta1 KubeletConfiguration: maxPods, evictionHard …",
        "spec.logLevel": "verbosity of the kubelet, 0 to 10",
        "spec.tlsSecurityProfile": "which TLS versions and ciphers the kubelet serves with",
        "status.conditions": "Success, or Failure with its reason",
    },
    "ContainerRuntimeConfig": {
        "spec": "settings that CRI-O gets on the machines of the selected pools",
        "spec.containerRuntimeConfig": "what is not given stays as it is",
        "spec.containerRuntimeConfig.defaultRuntime": "crun or runc",
        "spec.containerRuntimeConfig.logLevel": "error, fatal, panic, warn, info, debug or trace",
        "spec.containerRuntimeConfig.logSizeMax": "size at which a container's log is cut, such as 16Mi; more than 8Ki",
        "spec.containerRuntimeConfig.overlaySize": "how much a container may write to its own layer, such as 8Gi",
        "spec.containerRuntimeConfig.pidsLimit": "how many processes a container may have; at least 20",
        "spec.machineConfigPoolSelector": _SELECTS,
        "status.conditions": "Success, or Failure with its reason",
    },
    "MachineConfigNode": {
        "spec": "what the node is to reach; written by the pool controller",
        "spec.configVersion.desired": "the rendered MachineConfig that the node is to reach",
        "spec.node.name": "the node, which has the same name",
        "spec.pool.name": "the pool of the node; not-yet-set: none",
        "status": "how far the node is; written by its agent",
        "status.conditions": "the phases of an update: UpdatePrepared, Cordoned, Drained, AppliedFilesAndOS, "
        "RebootedNode, Resumed, UpdateComplete, Uncordoned, Updated; NodeDegraded",
        "status.configVersion.current": "the rendered MachineConfig that the node has",
        "status.configVersion.desired": "the rendered MachineConfig that its agent works on",
        "status.irreconcilableChanges": "what the pool wants and a machine that is installed can never get",
        "status.pinnedImageSets": "how far the images of each PinnedImageSet are",
    },
    "PinnedImageSet": {
        "spec.pinnedImages": "images by digest; they are fetched before they are needed and never cleaned up",
        "spec.pinnedImages.name": "HOST/NAMESPACE/NAME@sha256:DIGEST",
    },
    "MachineConfiguration": {
        "spec.nodeDisruptionPolicy": "what a changed file, unit or key does in place of a drain and a reboot",
        "spec.nodeDisruptionPolicy.files": "for files, by path; the longest path that leads to a file counts",
        "spec.nodeDisruptionPolicy.files.actions": "in this order; Reboot and None stand alone",
        "spec.nodeDisruptionPolicy.files.path": "a file, or a folder and all in it",
        "spec.nodeDisruptionPolicy.sshkey": "for keys of the user core",
        "spec.nodeDisruptionPolicy.units": "for units, by name",
        "status.nodeDisruptionPolicyStatus": "the policies that are in force, those of the cluster among them",
    },
}
"""Kind → path → words. Only what has no description in its schema."""


def described(kind: str, schema: Obj) -> Obj:
    """``schema`` with the words for its fields; what it shares with others is left as it is. Raises KeyError for a path
    that it does not have."""
    for path, text in DESCRIPTIONS.get(kind, {}).items():
        schema = _with(schema, path.split("."), text)
    return schema


def _with(schema: Obj, path: list[str], text: str) -> Obj:
    if not path:
        return schema | {"description": text}
    if schema.get("type") == "array":
        return schema | {"items": _with(schema["items"], path, text)}
    fields = schema["properties"]
    return schema | {"properties": fields | {path[0]: _with(fields[path[0]], path[1:], text)}}
