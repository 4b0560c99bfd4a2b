"""Rotates the certificate authorities of the API server in a machine's kubeconfigs; pure. Entry point:
:func:`rotation`.

Upstream's operator stores them in a ConfigMap and marks a rotation by an annotation of the ControllerConfig. New ones
are added at once, also on nodes of a paused pool. A kubelet reads its kubeconfig only at its start, so it is restarted,
unless no kubelet uses the new signers. Source: Machine Config Operator ``certificate_writer.go``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from syncline.kube.objects import Obj, annotations_of, dig
from syncline.kube.yaml.loading import dump, load
from syncline.kube.yaml.nodes import YamlError
from syncline.machineconfig.names import annotation

CONFIG_MAP = ("openshift-machine-config-operator", "kubeconfig-data")
BUNDLE_KEY = "ca-bundle.crt"
KUBECONFIG, KUBELETS_KUBECONFIG = "/etc/kubernetes/kubeconfig", "/var/lib/kubelet/kubeconfig"
ROTATE = annotation("service-ca-rotate")
"""Annotation of the ControllerConfig: a rotation is in progress."""
ROTATED = annotation("lastObservedServerCAAnnotation")
"""Annotation of a node: the ControllerConfig's flag at the last update of its kubeconfig."""
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_NOT_FOR_KUBELETS = (
    "kube-apiserver-localhost-signer",
    "openshift-kube-apiserver-operator_localhost-recovery-serving-signer",
    "kube-apiserver-lb-signer",
)
MAX_SIZE = 1 << 20
"""Maximum bytes of a ConfigMap, and of a kubeconfig to rewrite."""


class ServerAuthorityError(ValueError):
    """The kubeconfig cannot be updated."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """An update. ``kubeconfig``: new content; ``authority``: trusted PEM; ``restart``: the kubelet must restart."""

    kubeconfig: bytes = field(repr=False)
    authority: bytes = field(repr=False)
    restart: bool


def rotated_flag(controller_config: Obj) -> str:
    return annotations_of(controller_config).get(ROTATE, "")


def is_rotating(node: Obj, controller_config: Obj) -> bool:
    """Return whether a rotation is in progress that the node has not recorded yet."""
    flag = rotated_flag(controller_config)
    return flag == "true" and annotations_of(node).get(ROTATED, "") != flag


def bundle_of(config_map: Mapping[str, Any]) -> bytes:
    """Return the certificates as PEM, or empty. Accepts text and, as upstream, base64."""
    binary, text = dig(config_map, "binaryData", BUNDLE_KEY), dig(config_map, "data", BUNDLE_KEY)
    for encoded in (binary, text):
        try:
            found = base64.b64decode(str(encoded or ""), validate=True)
        except (binascii.Error, ValueError):
            continue
        if _CERTIFICATE.search(found):
            return found
    return str(text or "").encode()


def rotation(kubeconfig: bytes, bundle: bytes) -> Rotation | None:
    """Return the update, or None if ``bundle`` adds no certificate. The update trusts only the readable certificates of
    ``bundle``. Raises ServerAuthorityError."""
    document, cluster = _read(KUBECONFIG, kubeconfig)
    there = set(_CERTIFICATE.findall(_trusted(KUBECONFIG, cluster)))
    wanted = {text: name for text in _CERTIFICATE.findall(bundle) if (name := _common_name(text)) is not None}
    added = [name for text, name in wanted.items() if text not in there]
    if not added:
        return None
    authority = b"".join(text + b"\n" for text in wanted)
    restart = any(not any(signer in name for signer in _NOT_FOR_KUBELETS) for name in added)
    return Rotation(_put(document, cluster, authority), authority, restart)


def with_authority(path: str, kubeconfig: bytes, authority: bytes) -> bytes:
    """Return ``kubeconfig`` with ``authority`` as its trusted PEM. Raises ServerAuthorityError."""
    document, cluster = _read(path, kubeconfig)
    return _put(document, cluster, authority)


def _read(path: str, kubeconfig: bytes) -> tuple[Obj, Obj]:
    """Return the document and its first cluster."""
    if len(kubeconfig) > MAX_SIZE:
        raise ServerAuthorityError(f"{path}: {len(kubeconfig)} bytes; a kubeconfig has at most {MAX_SIZE}")
    try:
        document = load(kubeconfig, file=path)
    except YamlError as error:
        raise ServerAuthorityError(f"{path}: it is no YAML, line {error.position.line}; restore it") from None
    clusters = document.get("clusters") if isinstance(document, dict) else None
    first = clusters[0] if isinstance(clusters, list) and clusters else None
    cluster = first.get("cluster") if isinstance(first, dict) else None
    if not isinstance(cluster, dict):
        raise ServerAuthorityError(f"{path}: clusters[0].cluster is missing; restore it")
    return document, cluster


def _trusted(path: str, cluster: Obj) -> bytes:
    try:
        return base64.b64decode(str(cluster.get("certificate-authority-data") or ""))
    except (binascii.Error, ValueError):
        message = f"{path}: clusters[0].cluster.certificate-authority-data is no base64; restore it"
        raise ServerAuthorityError(message) from None


def _put(document: Obj, cluster: Obj, authority: bytes) -> bytes:
    cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return dump(document).encode()


def _common_name(certificate: bytes) -> str | None:
    """Return the common name of the subject, empty if it has none; None if the bytes are no certificate."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(certificate).subject
    except ValueError:
        return None
    return next((str(each.value) for each in found.get_attributes_for_oid(x509.NameOID.COMMON_NAME)), "")
