"""Admission of certificate requests: the rights to approve and to sign, and the one forbidden subject.

Source: Kubernetes admission plug-ins CertificateApproval, CertificateSigning and CertificateSubjectRestriction.
"""

from __future__ import annotations

import base64
import binascii

from cryptography import x509
from cryptography.x509.oid import NameOID

from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.rbac import Attributes
from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.kube.objects import Obj, dig

STORAGE = "certificates.k8s.io/certificatesigningrequests"
API_CLIENT = "kubernetes.io/kube-apiserver-client"
MASTERS = "system:masters"


def check_create(attempt: Attempt, csr: Obj) -> None:
    """Refuse client certificates for system:masters."""
    if not attempt.concerns(STORAGE) or dig(csr, "spec", "signerName") != API_CLIENT:
        return
    if MASTERS in _organizations(csr):
        raise forbid(attempt, f"use of {API_CLIENT} signer with {MASTERS} group is not allowed")


def _organizations(csr: Obj) -> list[str]:
    try:
        request = x509.load_pem_x509_csr(base64.b64decode(dig(csr, "spec", "request", default="")))
    except (ValueError, binascii.Error):
        return []
    return [str(one.value) for one in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def check_update(authorizer: Authorizer, attempt: Attempt, new: Obj, old: Obj) -> None:
    """Require ``approve`` or ``sign`` for the signer; a wildcard may cover all paths of its domain."""
    if attempt.resource.storage != STORAGE:
        return
    signer = str(dig(old, "spec", "signerName", default=""))
    if attempt.concerns(STORAGE, "approval"):
        if not _may(authorizer, attempt, "approve", signer):
            raise forbid(attempt, f'user not permitted to approve requests with signerName "{signer}"')
    elif attempt.concerns(STORAGE, "status") and _signs(new, old) and not _may(authorizer, attempt, "sign", signer):
        raise forbid(attempt, f'user not permitted to sign requests with signerName "{signer}"')


def _signs(new: Obj, old: Obj) -> bool:
    return any(dig(new, "status", part) != dig(old, "status", part) for part in ("certificate", "conditions"))


def _may(authorizer: Authorizer, attempt: Attempt, verb: str, signer: str) -> bool:
    names = (signer, f"{signer.partition('/')[0]}/*")
    asked = (Attributes(verb, "certificates.k8s.io", "signers", name=name) for name in names)
    return any(authorizer.decide(attempt.user, one).allowed for one in asked)
