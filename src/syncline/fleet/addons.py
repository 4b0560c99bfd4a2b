"""Add-ons on hub and clusters: names that both sides share, one view of both served versions, hashes of configs.

Sources: upstream's API ``addon/v1alpha1`` and ``addon/v1beta1``. We read and write v1alpha1, in which objects are
stored; a cache may hold the other version, which a server prefers.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from syncline.kube.kinds.addonversions import CONVERSIONS, INSTALL_NAMESPACE
from syncline.kube.kinds.managedaddons import (
    ADDON_TEMPLATE,
    CLUSTER_ADDON,
    DEFAULT_NAMESPACE,
    DEPLOYMENT_CONFIG,
    GROUP,
    MANAGED_ADDON,
)
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, name_of, namespace_of

MANAGED: Final = MANAGED_ADDON.group_kind
CLUSTER_WIDE: Final = CLUSTER_ADDON.group_kind
TEMPLATES: Final = ADDON_TEMPLATE.group_kind
DEPLOYMENT_CONFIGS: Final = DEPLOYMENT_CONFIG.group_kind

ADDON_NAMESPACE_LABEL: Final = "open-cluster-management.io/addon-namespace"
"""The label of a work that is in another namespace than its add-on."""
HOSTING: Final = f"{GROUP}/hosting-cluster-name"
"""The annotation that asks for the agent to run on another cluster."""
LIFECYCLE: Final = f"{GROUP}/lifecycle"
"""The annotation of a ClusterManagementAddOn that a manager of its own installs (``self``)."""
PRE_DELETE: Final = f"{GROUP}/addon-pre-delete"
"""Annotation (or label) of a Job or Pod that runs before the add-on is deleted; also the finalizer meanwhile."""
ORPHAN: Final = f"{GROUP}/deletion-orphan"
"""The annotation of a manifest that stays when the add-on is deleted."""

AVAILABLE, CONFIGURED, PROGRESSING = "Available", "Configured", "Progressing"
MANIFEST_APPLIED, HOSTING_APPLIED = "ManifestApplied", "HostingManifestApplied"
REGISTRATION_APPLIED, HOOK_COMPLETED = "RegistrationApplied", "HookManifestCompleted"
CERTIFICATE_ROTATED: Final = "ClusterCertificateRotated"


def stored_view(addon: Obj) -> Obj:
    """Return an add-on of either version in v1alpha1."""
    change = CONVERSIONS.get((str(addon.get("apiVersion")), MANAGED_ADDON.api_version, str(addon.get("kind"))))
    return addon if change is None else change(addon)


def managed_by_hub(cluster_addon: Obj) -> bool:
    """Return whether the hub's controllers install and configure the add-on, and not a manager of its own."""
    return annotations_of(cluster_addon).get(LIFECYCLE, "addon-manager") == "addon-manager"


def managed_ref(cluster: str, name: str) -> ObjectRef:
    return ObjectRef(*MANAGED, cluster, name)


def cluster_wide_ref(name: str) -> ObjectRef:
    return ObjectRef(*CLUSTER_WIDE, "", name)


def hosted(addon: Obj) -> str:
    """Return the cluster where the agent of a managed add-on is to run, if not on its own."""
    return annotations_of(addon).get(HOSTING, "")


def install_namespace(addon: Obj) -> str:
    """Return the namespace of the agent on the cluster: what the hub decided, else what the object asks for."""
    asked = annotations_of(addon).get(INSTALL_NAMESPACE) or dig(addon, "spec", "installNamespace")
    return str(dig(addon, "status", "namespace") or asked or DEFAULT_NAMESPACE)


def default_user(cluster: str, addon: str, agent: str) -> str:
    """Return the name that an agent of an add-on has on the hub."""
    return f"{default_group(cluster, addon)}:agent:{agent}"


def default_group(cluster: str, addon: str) -> str:
    return f"system:open-cluster-management:cluster:{cluster}:addon:{addon}"


def default_groups(cluster: str, addon: str) -> list[str]:
    return [default_group(cluster, addon), f"system:open-cluster-management:addon:{addon}"]


class ConfigKind(NamedTuple):
    """The kind of a config, as add-ons name it."""

    group: str
    resource: str


class ConfigName(NamedTuple):
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Config:
    """One configuration that an add-on is to have; ``spec_hash``: of its content, empty if not known."""

    kind: ConfigKind
    at: ConfigName
    spec_hash: str = ""

    @property
    def hashed(self) -> Obj:
        """The form in a status."""
        namespace = {"namespace": self.at.namespace} if self.at.namespace else {}
        return {"name": self.at.name, **namespace} | ({"specHash": self.spec_hash} if self.spec_hash else {})


BUILT_IN: Final = {
    ConfigKind(GROUP, "addondeploymentconfigs"): DEPLOYMENT_CONFIGS,
    ConfigKind(GROUP, "addontemplates"): TEMPLATES,
}
"""The kinds of configs that the hub reads itself."""
_RESOURCES: Final = {kind: config for config, kind in BUILT_IN.items()}


def config_kind(entry: Obj) -> ConfigKind:
    return ConfigKind(str(entry.get("group") or ""), str(entry.get("resource") or ""))


def config_name(entry: Obj) -> ConfigName:
    return ConfigName(str(entry.get("namespace") or ""), str(entry.get("name") or ""))


def config_of(entry: Obj) -> Config:
    """Return the config that an entry of a spec names."""
    return Config(config_kind(entry), config_name(entry))


def desired_of(entry: Obj) -> Config | None:
    """Return the desired config of an entry of a status; None if it has none."""
    desired = entry.get("desiredConfig")
    if not desired:
        return None
    return Config(config_kind(entry), config_name(desired), str(desired.get("specHash") or ""))


def built_in_ref(config: Config) -> ObjectRef | None:
    """Return the object of a config of a built-in kind."""
    kind: GroupKind | None = BUILT_IN.get(config.kind)
    return None if kind is None else ObjectRef(*kind, config.at.namespace, config.at.name)


def index_value(kind: ConfigKind, at: ConfigName) -> str:
    """Return the value under which those who use a config are found in an index."""
    return f"{kind.group}/{kind.resource}/{at.namespace}/{at.name}"


def index_value_of(config: Obj) -> str:
    """Return the value of a config object of a built-in kind."""
    kind = _RESOURCES[GroupKind(GROUP, str(config.get("kind")))]
    return index_value(kind, ConfigName(namespace_of(config), name_of(config)))


_NOT_HASHED: Final = ("apiVersion", "kind", "metadata", "status")
_ESCAPES: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def spec_hash(config: Obj) -> str:
    """Return the hash of a config's content: SHA-256 of its JSON as Go writes it, so that managers agree on it."""
    content: dict[str, Any] = {key: value for key, value in config.items() if key not in _NOT_HASHED}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.translate(_ESCAPES).encode()).hexdigest()


def config_map_key(config: Config) -> str:
    """Return the key of a config in the annotation of a work: ``RESOURCE.GROUP/NAMESPACE/NAME``."""
    kind = f"{config.kind.resource}.{config.kind.group}" if config.kind.group else config.kind.resource
    return f"{kind}/{config.at.namespace}/{config.at.name}"
