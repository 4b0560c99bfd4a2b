"""Define the controllers that sign, approve and clean CertificateSigningRequests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from syncline.cluster.builtin.access.certificates import approval, cleaning, signing
from syncline.cluster.builtin.access.certificates.requests import CSR
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Plan
from syncline.kube.objects import Obj, ObjectRef, is_terminating


def _observe(cache: Snapshot, ref: ObjectRef) -> Obj | None:
    csr = cache.get(ref)
    return None if csr is None or is_terminating(csr) else csr


def _controller(name: str, plan: Callable[[Obj, datetime], Plan]) -> Controller[Obj]:
    """Return a controller that observes only the request."""
    return Controller(name=name, kind=CSR, observe=_observe, plan=plan)


def signing_request_controllers(*, can_sign: bool) -> list[Controller[Obj]]:
    """Return the controllers; with ``can_sign`` False (virtual worlds have no keys), requests are never signed."""
    always = [_controller("certificate-approving", approval.plan), _controller("certificate-cleaning", cleaning.plan)]
    return [*always, _controller("certificate-signing", signing.plan)] if can_sign else always
