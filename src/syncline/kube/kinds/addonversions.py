"""Add-ons between ``v1alpha1``, in which they are stored, and ``v1beta1``: pure, the input is never changed.

The rules are upstream's (its ``api`` repository and its hub's conversion webhook): what one version lacks is kept in
an annotation (the install namespace) or under a reserved name (a supported kind of config without a default).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncline.kube.kinds.managedaddons import BETA, CLUSTER_ADDON, GROUP, MANAGED_ADDON
from syncline.kube.objects import Obj, dig

INSTALL_NAMESPACE = "addon.open-cluster-management.io/v1alpha1-install-namespace"
"""The annotation that keeps ``spec.installNamespace`` in v1beta1, which has no such field."""
NO_DEFAULT = "__reserved_no_default__"
"""The name of a config in v1beta1 that has no default in v1alpha1."""
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_ALPHA_API, _BETA_API = f"{GROUP}/v1alpha1", f"{GROUP}/{BETA}"


def _without(fields: Obj, *names: str) -> Obj:
    return {name: value for name, value in fields.items() if name not in names}


def _changed(obj: Obj, version: str, **parts: Obj | None) -> Obj:
    """The object in this version, with these parts where they are not empty."""
    kept = {**_without(obj, *parts), "apiVersion": version}
    return kept | {name: part for name, part in parts.items() if part is not None}


def _cluster_addon_to_beta(obj: Obj) -> Obj:
    spec, status = obj.get("spec") or {}, obj.get("status")
    configs = [
        {"group": config.get("group", ""), "resource": config["resource"]}
        | (config.get("defaultConfig") or {"name": NO_DEFAULT})
        for config in spec.get("supportedConfigs") or ()
    ]
    kept = _without(spec, "supportedConfigs", "addOnConfiguration") | ({"defaultConfigs": configs} if configs else {})
    return _changed(obj, _BETA_API, spec=kept, status=_renamed(status, "defaultconfigReferences"))


def _cluster_addon_to_alpha(obj: Obj) -> Obj:
    spec, status = obj.get("spec") or {}, obj.get("status")
    configs = []
    for config in spec.get("defaultConfigs") or ():
        default = _without(config, "group", "resource")
        named = {"defaultConfig": default} if default.get("name") not in (None, "", NO_DEFAULT) else {}
        configs.append({"group": config.get("group", ""), "resource": config["resource"]} | named)
    kept = _without(spec, "defaultConfigs") | ({"supportedConfigs": configs} if configs else {})
    return _changed(obj, _ALPHA_API, spec=kept, status=_renamed(status, "defaultConfigReferences"))


_OTHER_NAME = {
    "defaultconfigReferences": "defaultConfigReferences",
    "defaultConfigReferences": "defaultconfigReferences",
}


def _renamed(status: Obj | None, name: str) -> Obj | None:
    if status is None or name not in status:
        return status
    return _without(status, name) | {_OTHER_NAME[name]: status[name]}


def _managed_addon_to_beta(obj: Obj) -> Obj:
    metadata, spec, status = obj.get("metadata") or {}, obj.get("spec") or {}, obj.get("status")
    namespace = spec.get("installNamespace")
    if namespace:
        metadata = {**metadata, "annotations": (metadata.get("annotations") or {}) | {INSTALL_NAMESPACE: namespace}}
    if status is not None:
        driver = status.get("kubeClientDriver")
        references = [_without(entry, "name", "namespace") for entry in status.get("configReferences") or ()]
        registrations = [_registration_to_beta(entry, driver) for entry in status.get("registrations") or ()]
        status = _with(_without(status, "addOnConfiguration", "kubeClientDriver"), references, registrations)
    return _changed(obj, _BETA_API, metadata=metadata, spec=_without(spec, "installNamespace"), status=status)


def _managed_addon_to_alpha(obj: Obj) -> Obj:
    metadata, spec, status = obj.get("metadata") or {}, obj.get("spec") or {}, obj.get("status")
    annotations = metadata.get("annotations") or {}
    if INSTALL_NAMESPACE in annotations:
        spec = {**spec, "installNamespace": annotations[INSTALL_NAMESPACE]}
        rest = _without(annotations, INSTALL_NAMESPACE)
        metadata = _without(metadata, "annotations") | ({"annotations": rest} if rest else {})
    if status is not None:
        references = [_reference_to_alpha(entry) for entry in status.get("configReferences") or ()]
        given = status.get("registrations") or ()
        drivers = [dig(entry, "kubeClient", "driver") for entry in given if entry.get("kubeClient") is not None]
        status = _with(status, references, [_registration_to_alpha(entry) for entry in given])
        if drivers and drivers[0]:
            status = {**status, "kubeClientDriver": drivers[0]}
    return _changed(obj, _ALPHA_API, metadata=metadata, spec=spec, status=status)


def _with(status: Obj, references: list[Obj], registrations: list[Obj]) -> Obj:
    changed = {"configReferences": references, "registrations": registrations}
    return {**status, **{name: value for name, value in changed.items() if name in status}}


def _reference_to_alpha(entry: Obj) -> Obj:
    """The deprecated name and namespace are those of the desired config."""
    desired = entry.get("desiredConfig") or {}
    return {**entry, "name": desired.get("name", "")} | {k: desired[k] for k in ("namespace",) if k in desired}


def _registration_to_beta(entry: Obj, driver: Any) -> Obj:
    subject = entry.get("subject") or {}
    common = _without(subject, "organizationUnit")
    if entry.get("signerName") == CLIENT_SIGNER:
        return {"type": "kubeClient", "kubeClient": {"subject": common} | ({"driver": driver} if driver else {})}
    units = subject.get("organizationUnit")
    named = common | ({"organizationUnits": units} if units else {})
    return {"type": "customSigner", "customSigner": {"signerName": entry.get("signerName", ""), "subject": named}}


def _registration_to_alpha(entry: Obj) -> Obj:
    if entry.get("type") == "kubeClient":
        return {"signerName": CLIENT_SIGNER, "subject": dig(entry, "kubeClient", "subject", default={})}
    signer = entry.get("customSigner") or {}
    subject = signer.get("subject") or {}
    units = subject.get("organizationUnits")
    named = _without(subject, "organizationUnits") | ({"organizationUnit": units} if units else {})
    return {"signerName": signer.get("signerName", ""), "subject": named}


CONVERSIONS: dict[tuple[str, str, str], Callable[[Obj], Obj]] = {
    (_ALPHA_API, _BETA_API, CLUSTER_ADDON.kind): _cluster_addon_to_beta,
    (_BETA_API, _ALPHA_API, CLUSTER_ADDON.kind): _cluster_addon_to_alpha,
    (_ALPHA_API, _BETA_API, MANAGED_ADDON.kind): _managed_addon_to_beta,
    (_BETA_API, _ALPHA_API, MANAGED_ADDON.kind): _managed_addon_to_alpha,
}
"""From ``apiVersion``, to ``apiVersion``, kind: the function that converts an object."""
