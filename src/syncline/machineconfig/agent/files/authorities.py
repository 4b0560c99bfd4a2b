"""Writes certificates and the pull secret of the ControllerConfig to machines, outside rendered configs.

A rotated authority reaches every node at once, also in a paused pool, without a new rendered config, a drain or a
reboot. An annotation of the node records which ControllerConfig it has. Source: reference machine-config 4.9; Machine
Config Operator ``certificate_writer.go``. For authorities in kubeconfigs see
``machineconfig/agent/files/serverauthority.py``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field

from syncline.kube.objects import Obj, annotations_of, dig, name_of, resource_version
from syncline.machineconfig.agent.files.serverauthority import (
    KUBECONFIG,
    KUBELETS_KUBECONFIG,
    ServerAuthorityError,
    is_rotating,
    rotation,
    with_authority,
)
from syncline.machineconfig.agent.files.writing import UpdateError, run_checked
from syncline.machineconfig.agent.host import Host
from syncline.machineconfig.names import annotation

AUTHORITIES = annotation("lastSyncedControllerConfigResourceVersion")
"""Annotation of a node: version of the ControllerConfig whose authorities are on its disk."""
PULL_SECRET = "/etc/mco/internal-registry-pull-secret.json"
FILES = {
    "kubeAPIServerServingCAData": "/etc/kubernetes/kubelet-ca.crt",
    "cloudProviderCAData": "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem",
    "internalRegistryPullSecret": PULL_SECRET,
}
REGISTRIES = "/etc/docker/certs.d"
BUNDLES = ("imageRegistryBundleData", "imageRegistryBundleUserData")


class AuthorityError(Exception):
    """The ControllerConfig contains a value that cannot be written; the message names the field."""


@dataclass(frozen=True, slots=True)
class Authorities:
    """Authorities to write. ``files``: contents by absolute path. ``registries``: bundles by folder name of the
    registry. ``server``: certificates that the API server is verified with; empty: no change."""

    version: str
    files: tuple[tuple[str, bytes], ...] = field(repr=False)
    registries: tuple[tuple[str, bytes], ...] = field(repr=False)
    server: bytes = field(default=b"", repr=False)


def authorities_due(node: Obj, controller_config: Obj | None) -> Authorities | None:
    """Return what the node must get, or None if it is current; ``server`` stays empty. Raises AuthorityError."""
    if controller_config is None:
        return None
    version = resource_version(controller_config)
    known = annotations_of(node).get(AUTHORITIES) == version and not is_rotating(node, controller_config)
    if not version or known:
        return None
    files = ((path, _decoded(controller_config, field)) for field, path in FILES.items())
    return Authorities(version, tuple(files), tuple(_bundles(controller_config)))


def _decoded(controller_config: Obj, name: str) -> bytes:
    return _bytes(controller_config, name, dig(controller_config, "spec", name, default=None))


def _bytes(controller_config: Obj, name: str, encoded: object) -> bytes:
    try:
        return base64.b64decode(str(encoded or ""))
    except (binascii.Error, ValueError) as error:
        text = f"ControllerConfig {name_of(controller_config)}: spec.{name} is not base64: {error}"
        raise AuthorityError(text) from None


def _bundles(controller_config: Obj) -> Iterator[tuple[str, bytes]]:
    """Yield folder name and bundle of each registry; ``host..port`` in the field becomes ``host:port``."""
    for name in BUNDLES:
        for at, bundle in enumerate(dig(controller_config, "spec", name, default=None) or ()):
            folder = str(bundle.get("file", "")).replace("..", ":")
            if not folder or "/" in folder or folder == "." or "\0" in folder:
                message = f"ControllerConfig {name_of(controller_config)}: spec.{name}[{at}].file is {folder!r}"
                raise AuthorityError(f"{message}; give a registry as host or host..port")
            yield folder, _bytes(controller_config, f"{name}[{at}].data", bundle.get("data"))


def write_authorities(host: Host, authorities: Authorities) -> None:
    """Write the files, keeping the mode of existing ones, and the registries if the system has a folder for them.
    Raises HostError."""
    for path, data in authorities.files:
        there = host.stat(path)
        if data or there is not None:
            mode = 0o600 if path == PULL_SECRET else 0o644
            _write(host, path, data, there.mode & 0o777 if there is not None and there.kind == "file" else mode)
    if not host.exists(REGISTRIES):
        return
    wanted = {folder for folder, _ in authorities.registries}
    for folder in host.names(REGISTRIES):
        found = host.stat(f"{REGISTRIES}/{folder}")
        if folder not in wanted and found is not None and found.kind == "dir":
            host.remove_all(f"{REGISTRIES}/{folder}")
    for folder, data in authorities.registries:
        _write(host, f"{REGISTRIES}/{folder}/ca.crt", data, 0o644)


def write_server_authority(host: Host, bundle: bytes) -> None:
    """Update the kubelet's kubeconfig, restart the kubelet, then update the kubeconfig that marks a rotation as done,
    so that a crash loses no restart. Skips machines without a kubeconfig. Raises HostError and UpdateError."""
    if bundle and host.exists(KUBECONFIG):
        try:
            _rotate(host, bundle)
        except ServerAuthorityError as error:
            raise UpdateError(str(error)) from error


def _rotate(host: Host, bundle: bytes) -> None:
    found = rotation(host.read(KUBECONFIG), bundle)
    if found is None:
        return
    if found.restart and host.exists(KUBELETS_KUBECONFIG):
        own = with_authority(KUBELETS_KUBECONFIG, host.read(KUBELETS_KUBECONFIG), found.authority)
        _write(host, KUBELETS_KUBECONFIG, own, 0o600)
        for command in (("systemctl", "daemon-reload"), ("systemctl", "restart", "kubelet.service")):
            run_checked(host, *command)
    _write(host, KUBECONFIG, found.kubeconfig, 0o600)


def _write(host: Host, path: str, data: bytes, mode: int) -> None:
    data = data if data.endswith(b"\n") or path.startswith(REGISTRIES) else data + b"\n"
    if not host.exists(path) or host.read(path) != data:
        host.write(path, data, mode=mode)
