"""Sign approved requests for the cluster's own signers.

The plan reads only the object; the handler signs, so no certificate enters a plan or journal.
"""

from __future__ import annotations

import base64
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.cluster.access.pki import CertificateAuthority
from syncline.cluster.builtin.access.certificates.requests import (
    CSR,
    asked_of,
    is_approved,
    is_issued,
    problem_for_signer,
)
from syncline.cluster.builtin.pods import condition
from syncline.control.plan import Plan, Stalled, set_status
from syncline.kube import client
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, dig, name_of, ref_of, resource_version, uid_of

CSR_RESOURCE = ResourceInfo(CSR.group, "v1", CSR.kind, "certificatesigningrequests", namespaced=False)
MANAGER = "kube-controller-manager"
LONGEST = timedelta(days=365)
"""Longest validity, Kubernetes' ``cluster-signing-duration``; a request may ask for less."""
SHORTEST = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Sign(Action):
    """Sign a PEM request and write the certificate to its status, unless it has changed."""

    target: ObjectRef
    uid: str
    resource_version: str
    request_pem: str
    now: datetime
    lifetime: timedelta
    client: bool
    server: bool
    reason: str

    def describe(self) -> str:
        return f"sign {self.target} for {self.lifetime}"


def plan(csr: Obj, now: datetime) -> Plan:
    """Plan requests that are approved and neither signed nor failed; a refusal sets the condition Failed."""
    if not is_approved(csr) or is_issued(csr) or condition(csr, "Failed") is not None:
        return Plan(why="there is nothing to sign")
    name, spec = name_of(csr), csr["spec"]
    asked, usages = asked_of(csr), frozenset(spec.get("usages") or ())
    if asked is None:
        fix = "delete it and send a PEM certificate request that is signed by its own key"
        return Plan(outcome=Stalled(f"CertificateSigningRequest {name}: spec.request is unreadable", fix))
    problem = problem_for_signer(str(spec.get("signerName")), asked, usages)
    if problem is None:
        return Plan(why=f"another signer answers for {spec.get('signerName')}")
    if problem:
        return Plan(status=set_status(csr, _failed(csr, problem, now), problem), why=problem)
    sign = Sign(
        ref_of(csr),
        uid_of(csr),
        resource_version(csr),
        asked.pem,
        now,
        _lifetime(spec.get("expirationSeconds")),
        client="client auth" in usages,
        server="server auth" in usages,
        reason="it is approved",
    )
    return Plan(((sign,),), why=f"{name} is approved")


def _lifetime(seconds: object) -> timedelta:
    return min(max(timedelta(seconds=seconds), SHORTEST), LONGEST) if isinstance(seconds, int) else LONGEST


def _failed(csr: Obj, problem: str, now: datetime) -> Obj:
    stamp = format_time(now)
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": problem,
        "lastUpdateTime": stamp,
        "lastTransitionTime": stamp,
    }
    status = dict(csr.get("status") or {})
    return status | {"conditions": [*dig(csr, "status", "conditions", default=[]), failed]}


class SignHandler:
    """Holds the CA. The plan has already parsed the request, so ``sign`` cannot fail on it."""

    def __init__(self, authority: CertificateAuthority) -> None:
        self._authority = authority

    def handle(self, action: Sign) -> Generator[Request, Response, Any]:
        certificate = self._authority.sign(
            action.request_pem, now=action.now, lifetime=action.lifetime, client=action.client, server=action.server
        )
        body = {
            "metadata": {"uid": action.uid, "resourceVersion": action.resource_version},
            "status": {"certificate": base64.b64encode(certificate.encode()).decode()},
        }
        answer = yield client.patch(
            CSR_RESOURCE, "", action.target.name, PatchType.MERGE, body, subresource="status", field_manager=MANAGER
        )
        return answer.or_raise()
