"""Binds signing, approving and cleaning of CertificateSigningRequests: three controllers over the same kind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from syncline.cluster.builtin.certificates import approval, cleaning, signing
from syncline.cluster.builtin.certificates.requests import CSR
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Plan
from syncline.kube.objects import GroupKind, Obj, ObjectRef, is_terminating

__all__ = ["SigningRequestController", "signing_request_controllers"]


class SigningRequestController:
    """One plan over one request; what is observed is the request alone."""

    kind = CSR
    watches: tuple[Watch, ...] = ()
    reads: tuple[GroupKind, ...] = ()

    def __init__(self, name: str, decide: Callable[[Obj, datetime], Plan]) -> None:
        self.name = name
        self._decide = decide

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Obj | None:
        csr = cache.get(ref)
        return None if csr is None or is_terminating(csr) else csr

    def plan(self, seen: Obj, now: datetime) -> Plan:
        return self._decide(seen, now)


def signing_request_controllers(*, can_sign: bool) -> list[SigningRequestController]:
    """``can_sign`` False (no keys: pure virtual worlds): requests are approved and cleaned, never signed."""
    always = [
        SigningRequestController("certificate-approving", approval.plan),
        SigningRequestController("certificate-cleaning", cleaning.plan),
    ]
    return [*always, SigningRequestController("certificate-signing", signing.plan)] if can_sign else always
