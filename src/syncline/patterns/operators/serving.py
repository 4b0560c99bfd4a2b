"""What an operator serves: webhooks and aggregated APIs, the objects that OLM makes for them, whether they are there.

Source: OLM's ``install/certresources.go``, ``install/webhook.go``, ``install/apiservice.go``, ``olm/apiservices.go``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from syncline.kube.objects import Obj, copied, dig, labels_of, name_of, namespace_of, uid_of
from syncline.kube.schema.extensions import SIMULATED_SERVER, SIMULATED_WEBHOOKS
from syncline.patterns.operators.deployments import deployment_specs
from syncline.patterns.operators.names import MANAGED, owner_labels
from syncline.patterns.operators.providing import RBAC, short_hash

CA_HASH: Final = "olmcahash"
CA_KEY: Final = "olmCAKey"
DESCRIPTION, DESCRIPTION_HASH = "olm.webhook-description-generate-name", "olm.webhook-description-hash"
GROUP_LABEL: Final = "olm.operatorgroup.uid/"
VALIDATING, MUTATING, CONVERSION = "ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ConversionWebhook"
_KINDS: Final = {VALIDATING: "ValidatingWebhookConfiguration", MUTATING: "MutatingWebhookConfiguration"}
_MOUNTS: Final = (
    ("apiservice-cert", "/apiserver.local.config/certificates", ("apiserver.crt", "apiserver.key")),
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs", ("tls.crt", "tls.key")),
)
_TAKEN: Final = (
    *("rules", "failurePolicy", "matchPolicy", "objectSelector", "sideEffects", "timeoutSeconds"),
    "admissionReviewVersions",
)


@dataclass(frozen=True, slots=True)
class Around:
    """What there is of it. ``hooks``: webhook configurations of the operator; ``apis``: APIServices by name;
    ``services``, ``secrets``: names in its namespace."""

    hooks: Sequence[Obj] = ()
    apis: Mapping[str, Obj] = field(default_factory=dict)
    definitions: Mapping[str, Obj] = field(default_factory=dict)
    services: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()


def webhooks(csv: Obj) -> Sequence[Obj]:
    return dig(csv, "spec", "webhookdefinitions", default=None) or ()


def owned_apis(csv: Obj) -> Sequence[Obj]:
    return dig(csv, "spec", "apiservicedefinitions", "owned", default=None) or ()


def served_by(csv: Obj) -> dict[str, list[Obj]]:
    """Return the descriptions of APIs and webhooks by the deployment that serves them."""
    found: dict[str, list[Obj]] = {}
    names = {str(one.get("name") or "") for one in deployment_specs(csv)}
    for one in (*owned_apis(csv), *webhooks(csv)):
        deployment = str(one.get("deploymentName") or "")
        if deployment in names:
            found.setdefault(deployment, []).append(one)
    return found


def service_name(deployment: str) -> str:
    return f"{deployment}-service"


def secret_name(deployment: str) -> str:
    return f"{service_name(deployment)}-cert"


def api_name(described: Obj) -> str:
    return f"{described.get('version')}.{described.get('group')}"


def hosts_of(deployment: str, namespace: str) -> tuple[str, ...]:
    name = service_name(deployment)
    return tuple(f"{name}.{namespace}{end}" for end in ("", ".svc", ".svc.cluster.local"))


def _owner(csv: Obj) -> Obj:
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "name": name_of(csv),
        "uid": uid_of(csv),
        "controller": False,
        "blockOwnerDeletion": False,
    }


def _managed(csv: Obj, name: str, **labels: str) -> Obj:
    return {
        "name": name,
        "namespace": namespace_of(csv),
        "labels": {MANAGED: "true", **labels},
        "ownerReferences": [_owner(csv)],
    }


def secret_metadata(csv: Obj, deployment: str) -> Obj:
    return _managed(csv, secret_name(deployment))


def _port(described: Obj) -> int:
    return int(described.get("containerPort") or 443)


def surroundings(csv: Obj, deployment: str) -> Iterator[Obj]:
    """Yield the Service of a deployment, and the rights that its account has to its certificate and to reviews."""
    spec = next(one for one in deployment_specs(csv) if one.get("name") == deployment).get("spec") or {}
    described, service, secret = served_by(csv)[deployment], service_name(deployment), secret_name(deployment)
    ports: dict[tuple[int, Any], Obj] = {}
    for one in described:
        number = _port(one)
        target = one.get("targetPort") or number
        ports[(number, target)] = {"name": str(number), "port": number, "targetPort": target}
    shown = ",".join(f"{one.get('name')}={one.get('kind')}" for one in described if one.get("group"))
    metadata = _managed(csv, service) | {"annotations": {SIMULATED_SERVER: shown or SIMULATED_WEBHOOKS}}
    selector = dig(spec, "selector", "matchLabels", default=None) or {}
    yield _made("v1", "Service", metadata, spec={"ports": list(ports.values()), "selector": dict(selector)})
    account = str(dig(spec, "template", "spec", "serviceAccountName", default="") or "default")
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace_of(csv)}
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret]}
    yield _made(f"{RBAC}/v1", "Role", _managed(csv, secret), rules=[rule])
    yield _binding("RoleBinding", _managed(csv, secret), ("Role", secret), subject)
    labels = {MANAGED: "true", **owner_labels(name_of(csv), namespace_of(csv))}
    delegator = {"name": f"{service}-system:auth-delegator", "labels": labels}
    yield _binding("ClusterRoleBinding", delegator, ("ClusterRole", "system:auth-delegator"), subject)
    reader = {"name": f"{service}-auth-reader", "namespace": "kube-system", "labels": {MANAGED: "true"}}
    yield _binding("RoleBinding", reader, ("Role", "extension-apiserver-authentication-reader"), subject)


def _made(version: str, kind: str, metadata: Obj, **rest: Any) -> Obj:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _binding(kind: str, metadata: Obj, role: tuple[str, str], subject: Obj) -> Obj:
    reference = {"apiGroup": RBAC, "kind": role[0], "name": role[1]}
    return _made(f"{RBAC}/v1", kind, metadata, roleRef=reference, subjects=[subject])


def certified(csv: Obj, authorities: Mapping[str, str]) -> Obj:
    """Return the operator with deployments that mount their certificates. ``authorities``: PEM by deployment."""
    if not authorities:
        return csv
    made: Obj = copied(csv)
    for one in deployment_specs(made):
        name = str(one.get("name") or "")
        if name in authorities:
            one["spec"] = one.get("spec") or {}
            one["spec"]["template"] = one["spec"].get("template") or {}
            _mount(one["spec"]["template"], name, authorities[name])
    return made


def _mount(template: Obj, deployment: str, authority: str) -> None:
    metadata, pod = (template.get(part) or {} for part in ("metadata", "spec"))
    template |= {"metadata": metadata, "spec": pod}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), CA_HASH: pem_hash(authority)}
    pod["serviceAccountName"] = pod.get("serviceAccountName") or "default"
    for volume, path, files in _MOUNTS:
        items = [{"key": key, "path": file} for key, file in zip(("tls.crt", "tls.key"), files, strict=True)]
        secret = {"secretName": secret_name(deployment), "items": items}
        others = [one for one in pod.get("volumes") or () if one.get("name") != volume]
        pod["volumes"] = [*others, {"name": volume, "secret": secret}]
        for container in pod.get("containers") or ():
            _mounted(container, {"name": volume, "mountPath": path})


def _mounted(container: Obj, mount: Obj) -> None:
    mounts = list(container.get("volumeMounts") or ())
    for index, one in enumerate(mounts):
        if one.get("name") == mount["name"]:
            return
        if one.get("mountPath") == mount["mountPath"]:
            mounts[index] = mount
            break
    else:
        mounts.append(mount)
    container["volumeMounts"] = mounts


def registrations(csv: Obj, group: Obj, authorities: Mapping[str, str]) -> Iterator[Obj]:
    """Yield the APIServices and webhook configurations; those of conversions are :func:`conversions`."""
    labels = {MANAGED: "true", **owner_labels(name_of(csv), namespace_of(csv))}
    for one in owned_apis(csv):
        deployment = str(one.get("deploymentName") or "")
        service = {"name": service_name(deployment), "namespace": namespace_of(csv), "port": _port(one)}
        spec = {"group": one.get("group"), "version": one.get("version"), "service": service}
        spec |= {
            "groupPriorityMinimum": 2000,
            "versionPriority": 15,
            "caBundle": _encoded(authorities.get(deployment, "")),
        }
        metadata = {"name": api_name(one), "labels": labels}
        yield _made("apiregistration.k8s.io/v1", "APIService", metadata, spec=spec)
    for one in webhooks(csv):
        if one.get("type") in _KINDS:
            yield _configuration(csv, group, one, labels, authorities.get(str(one.get("deploymentName") or ""), ""))


def pem_hash(pem: str) -> str:
    return hashlib.sha256(pem.encode()).hexdigest()


def _encoded(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()


def description_hash(described: Obj) -> str:
    """Return the hash of a webhook's description; upstream's is of the same description as Go marshals it."""
    return short_hash(json.dumps(described, sort_keys=True))


def _client(csv: Obj, described: Obj, authority: str, path: Any) -> Obj:
    name = f"{str(described.get('deploymentName') or '').replace('.', '-')}-service"
    service = {"name": name, "namespace": namespace_of(csv), "port": _port(described)}
    return {"service": service | ({"path": path} if path else {}), "caBundle": _encoded(authority)}


def _configuration(csv: Obj, group: Obj, described: Obj, labels: Mapping[str, str], authority: str) -> Obj:
    name = str(described.get("generateName") or "")
    hook: Obj = {"name": name, "clientConfig": _client(csv, described, authority, described.get("webhookPath"))}
    hook |= {key: described[key] for key in _TAKEN if described.get(key) is not None}
    selector = namespace_selector(group)
    hook |= {"namespaceSelector": selector} if selector is not None else {}
    if described["type"] == MUTATING and described.get("reinvocationPolicy"):
        hook["reinvocationPolicy"] = described["reinvocationPolicy"]
    marks = {**labels, DESCRIPTION: name, DESCRIPTION_HASH: description_hash(described)}
    unique = hashlib.sha256(f"{namespace_of(csv)}/{name_of(csv)}/{name}".encode()).hexdigest()[:5]
    metadata = {"name": f"{name}-{unique}", "labels": marks}
    return _made("admissionregistration.k8s.io/v1", _KINDS[str(described["type"])], metadata, webhooks=[hook])


def group_label(group: Obj) -> str:
    """Return the label of the namespaces that a group selects."""
    return f"{GROUP_LABEL}{uid_of(group)}"


def namespace_selector(group: Obj) -> Obj | None:
    """Return the namespaces whose objects a webhook sees; None: all."""
    if dig(group, "spec", "targetNamespaces", default=None):
        return {"matchLabels": {group_label(group): ""}}
    selector: Obj | None = dig(group, "spec", "selector", default=None)
    return selector


def conversions(csv: Obj, authorities: Mapping[str, str]) -> Iterator[tuple[str, Obj]]:
    """Yield the name of a definition that a webhook converts, and the patch that says so."""
    for one in webhooks(csv):
        for name in one.get("conversionCRDs") or () if one.get("type") == CONVERSION else ():
            client = _client(
                csv, one, authorities.get(str(one.get("deploymentName") or ""), ""), one.get("webhookPath") or "/"
            )
            versions = list(one.get("admissionReviewVersions") or ())
            webhook = {"clientConfig": client, "conversionReviewVersions": versions}
            spec = {"conversion": {"strategy": "Webhook", "webhook": webhook}}
            yield str(name), {"metadata": {"annotations": {SIMULATED_SERVER: SIMULATED_WEBHOOKS}}, "spec": spec}


def conversion_problem(csv: Obj, definitions: Mapping[str, Obj]) -> str:
    """Return why a conversion webhook cannot be set up; "" if it can."""
    modes = {str(one.get("type")): one.get("supported") for one in dig(csv, "spec", "installModes", default=None) or ()}
    owned = {one.get("name") for one in dig(csv, "spec", "customresourcedefinitions", "owned", default=None) or ()}
    for one in webhooks(csv):
        if one.get("type") != CONVERSION:
            continue
        if modes.get("AllNamespaces") is False or any(ok for mode, ok in modes.items() if mode != "AllNamespaces"):
            return "unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces"
        if not one.get("conversionCRDs"):
            return "unable to manager conversion webhook: conversion webhook must have at least one CRD specified"
        for name in one["conversionCRDs"]:
            if name not in owned:
                return f"csv {name_of(csv)} does not own CRD {name}"
            if dig(definitions.get(name) or {}, "spec", "preserveUnknownFields", default=False):
                return (
                    "crd.Spec.PreserveUnknownFields must be false to let API Server call webhook to do the conversion"
                )
    return ""


# -- whether it is there -----------------------------------------------------------------------------------------------


def _bundle(text: Any) -> str:
    try:
        return base64.b64decode(str(text or ""), validate=True).decode()
    except ValueError:
        return ""


def known_authorities(csv: Obj, around: Around) -> dict[str, str] | None:
    """Return the authority of each deployment that serves something, as it is registered; None: one is not
    (``updateDeploymentSpecsWithAPIServiceData``)."""
    found: dict[str, str] = {}
    for deployment, described in served_by(csv).items():
        for one in described:
            pem = _bundle(dig(around.apis.get(api_name(one)) or {}, "spec", "caBundle", default=""))
            pem = pem if one.get("group") else _hook_authority(one, around)
            if not pem:
                return None
            found[deployment] = pem
    return found


def _hook_authority(described: Obj, around: Around) -> str:
    if described.get("type") == CONVERSION:
        path = ("spec", "conversion", "webhook", "clientConfig", "caBundle")
        definitions = (around.definitions.get(str(name)) or {} for name in described.get("conversionCRDs") or ())
        return next((pem for one in definitions if (pem := _bundle(dig(one, *path, default="")))), "")
    mine = (one for one in around.hooks if labels_of(one).get(DESCRIPTION) == described.get("generateName"))
    entries = (each for one in mine for each in one.get("webhooks") or ())
    return next((pem for each in entries if (pem := _bundle(dig(each, "clientConfig", "caBundle", default="")))), "")


def api_problem(csv: Obj, around: Around, deployments: Mapping[str, Obj]) -> str:
    """Return what is missing of the aggregated APIs (``checkAPIServiceResources``); "" if nothing is."""
    problems = (_api_problem(csv, one, around, deployments) for one in owned_apis(csv))
    found = list(dict.fromkeys(one for one in problems if one))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""


def _api_problem(csv: Obj, described: Obj, around: Around, deployments: Mapping[str, Obj]) -> str:
    name, deployment = api_name(described), str(described.get("deploymentName") or "")
    service, secret = service_name(deployment), secret_name(deployment)
    api = around.apis.get(name)
    if api is None:
        return f'apiservice.apiregistration.k8s.io "{name}" not found'
    if service not in around.services:
        return f'service "{service}" not found'
    reference = dig(api, "spec", "service", default=None) or {}
    if (reference.get("name"), reference.get("namespace")) != (service, namespace_of(csv)):
        return "found APIService and service reference mismatch"
    if secret not in around.secrets:
        return f'secret "{secret}" not found'
    found = deployments.get(deployment)
    if found is None:
        return f'deployment.apps "{deployment}" not found'
    pem = _bundle(dig(api, "spec", "caBundle", default=""))
    annotations = dig(found, "spec", "template", "metadata", "annotations", default=None) or {}
    if annotations.get(CA_HASH) != pem_hash(pem):
        return f"deployment {deployment} CA cert hash does not match expected"
    return ""


def apis_available(csv: Obj, around: Around) -> bool:
    """Return whether all aggregated APIs answer (``areAPIServicesAvailable``)."""

    def up(api: Obj) -> bool:
        conditions = dig(api, "status", "conditions", default=None) or ()
        return any(one.get("type") == "Available" and one.get("status") == "True" for one in conditions)

    return all(up(around.apis.get(api_name(one)) or {}) for one in owned_apis(csv))


def webhooks_available(csv: Obj, around: Around) -> tuple[bool, str]:
    """Return whether all webhooks are registered as described, and the error otherwise (``areWebhooksAvailable``)."""
    for one in webhooks(csv):
        if one.get("type") == CONVERSION:
            if not _hook_authority(one, around):
                return False, "conversionWebhook not ready"
            continue
        wanted = {DESCRIPTION: str(one.get("generateName") or ""), DESCRIPTION_HASH: description_hash(one)}
        if not any(wanted.items() <= labels_of(hook).items() for hook in around.hooks):
            return False, ""
    return True, ""


def removed_hooks(csv: Obj, around: Around) -> list[Obj]:
    """Return the webhook configurations of an operator that it does not describe any more."""
    names = {str(one.get("generateName") or "") for one in webhooks(csv)}
    return [one for one in around.hooks if labels_of(one).get(DESCRIPTION, "") not in names]
