"""What an AddOnTemplate's manifests get beside their variables: environment, volumes with credentials, nodes, images,
proxy, resources, namespace; pure.

Rules: ``pkg/addon/templateagent/decorator.go`` of upstream. Tolerations of a deployment config count without a node
selector too; upstream drops them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from syncline.fleet.hub.addons.health import WORKLOADS
from syncline.fleet.hub.addons.templates.values import mirrored
from syncline.kube.kinds.managedaddons import DEFAULT_NAMESPACE
from syncline.kube.objects import Obj, copied, dig, gvk_of, name_of, namespace_of

_MOUNTS: Final = "/managed"
_PROXIES: Final = (("httpProxy", "HTTP_PROXY"), ("httpsProxy", "HTTPS_PROXY"), ("noProxy", "NO_PROXY"))


@dataclass(frozen=True, slots=True)
class Decoration:
    """What manifests get. ``config``: the ``spec`` of the deployment config."""

    addon: str
    environment: Mapping[str, str]
    registrations: Sequence[Obj]
    config: Obj
    mirrors: tuple[Obj, ...] = ()


def hub_secret(addon: str) -> str:
    """Return the name of the Secret with the hub's kubeconfig for an add-on."""
    return f"{addon}-hub-kubeconfig"


def signed_secret(addon: str, signer: str) -> str:
    """Return the name of the Secret with a certificate of a signer."""
    return f"{addon}-{signer.replace('/', '-')}-client-cert"


def decorated(manifest: Obj, how: Decoration) -> Obj:
    """Return a manifest with all that it gets."""
    made: Obj = copied(manifest)
    if gvk_of(made).group == "apps" and made.get("kind") in WORKLOADS:
        pod = dig(made, "spec", "template", "spec")
        if isinstance(pod, dict):
            for each in (_environment, _volumes, _nodes, _images, _proxy):
                each(pod, how)
            _resources(pod, how, f"{WORKLOADS[made['kind']]}:{name_of(made)}")
    return placed(made, str(how.config.get("agentInstallNamespace") or ""))


def placed(manifest: Obj, namespace: str) -> Obj:
    """Put a manifest, its accounts in bindings, or the namespace that it is, into ``namespace``; empty: as it is."""
    if not namespace:
        return manifest
    made = manifest
    if namespace_of(made):
        made = {**made, "metadata": {**made["metadata"], "namespace": namespace}}
    if made.get("kind") == "Namespace":
        made = {**made, "metadata": {**made["metadata"], "name": namespace}}
    if made.get("kind") in ("ClusterRoleBinding", "RoleBinding"):
        subjects = [
            {**one, "namespace": namespace} if one.get("kind") == "ServiceAccount" else one
            for one in made.get("subjects") or ()
        ]
        made = {**made, "subjects": subjects}
    return made


def proxy_bundle(how: Decoration) -> Obj | None:
    """Return the ConfigMap with the authority of the proxy; None without one. Raises ValueError if it is not base64."""
    bundle = dig(how.config, "proxyConfig", "caBundle")
    if not bundle or not _has_proxy(how):
        return None
    text = base64.b64decode(bundle, validate=True).decode()
    metadata = {"name": f"{how.addon}-proxy-ca", "namespace": DEFAULT_NAMESPACE}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca-bundle.crt": text}}
    return placed(made, str(how.config.get("agentInstallNamespace") or ""))


def _containers(pod: Obj) -> list[Obj]:
    return [one for one in pod.get("containers") or () if isinstance(one, dict)]


def _add_environment(pod: Obj, values: Mapping[str, str]) -> None:
    for container in _containers(pod):
        container["env"] = [
            *(container.get("env") or ()),
            *({"name": name, "value": value} for name, value in values.items()),
        ]


def _add_volume(pod: Obj, name: str, path: str, source: Obj) -> None:
    for container in _containers(pod):
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), {"name": name, "mountPath": path}]
    pod["volumes"] = [*(pod.get("volumes") or ()), {"name": name, **source}]


def _environment(pod: Obj, how: Decoration) -> None:
    _add_environment(pod, how.environment)


def _volumes(pod: Obj, how: Decoration) -> None:
    for one in how.registrations:
        if one.get("type") == "KubeClient":
            secret = {"secret": {"secretName": hub_secret(how.addon)}}
            _add_volume(pod, "hub-kubeconfig", f"{_MOUNTS}/hub-kubeconfig", secret)
        elif one.get("type") == "CustomSigner":
            signer = str(dig(one, "customSigner", "signerName") or "")
            name = "cert-" + signer.replace("/", "-").replace(".", "-")
            secret = {"secret": {"secretName": signed_secret(how.addon, signer)}}
            _add_volume(pod, name, f"{_MOUNTS}/{signer.replace('/', '-')}", secret)


def _nodes(pod: Obj, how: Decoration) -> None:
    placement = how.config.get("nodePlacement") or {}
    for key in ("nodeSelector", "tolerations"):
        if placement.get(key) is not None:
            pod[key] = placement[key]


def _images(pod: Obj, how: Decoration) -> None:
    for container in _containers(pod) if how.mirrors else ():
        container["image"] = mirrored(str(container.get("image") or ""), how.mirrors)


def _has_proxy(how: Decoration) -> bool:
    return any(dig(how.config, "proxyConfig", key) for key, _ in _PROXIES)


def _proxy(pod: Obj, how: Decoration) -> None:
    if not _has_proxy(how):
        return
    proxy = how.config["proxyConfig"]
    values = {name: proxy[key] for key, upper in _PROXIES if proxy.get(key) for name in (upper, upper.lower())}
    _add_environment(pod, values)
    if proxy.get("caBundle"):
        _add_environment(pod, {"CA_BUNDLE_FILE_PATH": f"{_MOUNTS}/proxy-ca/ca-bundle.crt"})
        source = {"configMap": {"name": f"{how.addon}-proxy-ca"}}
        _add_volume(pod, "proxy-ca-bundle", f"{_MOUNTS}/proxy-ca", source)


def _resources(pod: Obj, how: Decoration, workload: str) -> None:
    """Give containers the resources of the last entry that names them."""
    entries = [(_matcher(str(one.get("containerID"))), one) for one in how.config.get("resourceRequirements") or ()]
    for container in _containers(pod):
        for matches, one in reversed(entries):
            if matches(f"{workload}:{container.get('name')}"):
                container["resources"] = one.get("resources") or {}
                break


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether an id is meant by ``KIND:NAME:CONTAINER``, where ``*`` is any."""
    parts = [".+" if part == "*" else re.escape(part) for part in pattern.split(":")]
    compiled = re.compile(":".join(parts))
    return lambda text: compiled.fullmatch(text) is not None
