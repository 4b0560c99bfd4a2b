"""Certificate signing requests: required fields, and who may write which part of the status.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Admission checks the right to
approve for a signer. Source: Kubernetes ``pkg/apis/certificates/validation`` and its registry strategy.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, ClassVar

from cryptography import x509

from syncline.base.clock import format_time
from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Context, Kind
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
MIN_LIFETIME_S = 600
MAX_SIGNER_PATH = 571
"""253 for a namespace or domain, a slash, 63 and 254 for names: the limit of older signers."""

DECISIONS = ("Approved", "Denied")
TRUE_ONLY = ("Approved", "Denied", "Failed")
USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_BLOCK = re.compile(r"-----BEGIN ([^-\n]+)-----\r?\n(.*?)-----END \1-----", re.DOTALL)
_HEADER = re.compile(r"^[A-Za-z][\w-]*:", re.MULTILINE)


class SigningRequestKind(Kind):
    """Certificate signing requests; only the subresource ``approval`` can approve or deny."""

    has_status = True
    namespaced = False
    revalidates = False
    empty_status: ClassVar[Obj | None] = {}
    name_check = names.path_segment

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """Set the requester from the authenticated user, ignoring the body."""
        super().prepare_create(obj, ctx)
        spec = obj.setdefault("spec", {})
        extra = {key: list(values) for key, values in sorted(ctx.extra.items())}
        report = (("username", ctx.user), ("uid", ctx.uid), ("groups", list(ctx.groups)), ("extra", extra))
        for key, value in report:
            spec.pop(key, None)
            if value:
                spec[key] = value

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, "status" if subresource == "approval" else subresource)
        if not subresource and old.get("spec") is not None:
            new["spec"] = old["spec"]
        if subresource == "approval" and dig(old, "status", "certificate"):
            new["status"] = {**(new.get("status") or {}), "certificate": old["status"]["certificate"]}
        elif subresource == "approval":
            (new.get("status") or {}).pop("certificate", None)
        if subresource in ("status", "approval"):
            if subresource == "status":
                _keep_decisions(new, old)
            _stamp(new, old, format_time(ctx.now))

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        return [*_spec_causes(obj.get("spec") or {}), *_condition_causes(obj, None)]

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> list[FieldCause]:
        causes = super().validate_update(new, old, "status" if subresource == "approval" else subresource)
        if subresource in ("status", "approval"):
            causes += _condition_causes(new, old)
            causes += _decision_causes(new, old, approving=subresource == "approval")
            causes += _certificate_causes(new, old)
        return causes


# --- the request ---------------------------------------------------------------------------------------------------


def _spec_causes(spec: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    problem = _request_problem(spec.get("request"))
    if problem:
        causes.append(invalid("spec.request", spec.get("request"), problem))
    usages = spec.get("usages") or []
    if not usages:
        causes.append(required("spec.usages"))
    for index, usage in enumerate(usages):
        if usage not in USAGES:
            causes.append(unsupported(f"spec.usages[{index}]", usage, USAGES))
        if usage in usages[:index]:
            causes.append(duplicate(f"spec.usages[{index}]", usage))
    causes += _signer_causes(spec.get("signerName") or "")
    lifetime = spec.get("expirationSeconds")
    if lifetime is not None and lifetime < MIN_LIFETIME_S:
        why = f"may not specify a duration less than {MIN_LIFETIME_S} seconds (10 minutes)"
        causes.append(invalid("spec.expirationSeconds", lifetime, why))
    return causes


def _request_problem(request: Any) -> str:
    wrong = "PEM block type must be CERTIFICATE REQUEST"
    try:
        pem = base64.b64decode(request or "").decode()
    except (ValueError, binascii.Error):
        return wrong
    block = _BLOCK.search(pem)
    if block is None or block.group(1) != "CERTIFICATE REQUEST":
        return wrong
    try:
        parsed = x509.load_pem_x509_csr(pem.encode())
        return "" if parsed.is_signature_valid else "x509: invalid signature: the request is not signed by its own key"
    except (ValueError, x509.InvalidVersion) as error:
        return f"asn1: structure error: {type(error).__name__}"


def _signer_causes(signer: str) -> list[FieldCause]:
    """Validate ``domain/path``, both made of DNS labels (``ValidateSignerName``)."""
    path = "spec.signerName"
    if signer == LEGACY_SIGNER:
        return [invalid(path, signer, "the legacy signerName is not allowed via this API version")]
    if not signer:
        return [required(path)]
    domain, slash, rest = signer.partition("/")
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, signer, why)]
    causes: list[FieldCause] = []
    for label in domain.split("."):
        problems = ",".join(names.dns_label(label))
        if problems:
            causes.append(invalid(path, domain, f'validating label "{label}": {problems}'))
    if "." not in domain:
        causes.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    for label in rest.split("."):
        problems = ",".join(names.dns_subdomain(label))
        if problems:
            causes.append(invalid(path, rest, f'validating label "{label}": {problems}'))
    if len(signer) > MAX_SIGNER_PATH:
        causes.append(invalid(path, signer, f"must be no more than {MAX_SIGNER_PATH} bytes"))
    return causes


# --- conditions and the certificate --------------------------------------------------------------------------------


def _conditions(obj: Obj | None, kinds: tuple[str, ...] = ()) -> list[Obj]:
    listed = dig(obj or {}, "status", "conditions", default=None) or []
    return [one for one in listed if isinstance(one, dict) and (not kinds or one.get("type") in kinds)]


def _keep_decisions(new: Obj, old: Obj) -> None:
    """Restore the decisions in a status write that has as many of them."""
    for kind in DECISIONS:
        mine, theirs = _conditions(new, (kind,)), _conditions(old, (kind,))
        if len(mine) == len(theirs):
            for condition, kept in zip(mine, theirs, strict=True):
                if condition is not kept:  # a write shares with the stored object what it leaves alone
                    condition.clear()
                    condition.update(kept)


def _stamp(new: Obj, old: Obj, now: str) -> None:
    before = {one.get("type"): one for one in _conditions(old)}
    for condition in _conditions(new):
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        same = before.get(condition.get("type"), {})
        kept = same.get("lastTransitionTime") if same.get("status") == condition.get("status") else None
        condition["lastTransitionTime"] = condition.get("lastTransitionTime") or kept or now


def _condition_causes(new: Obj, old: Obj | None) -> list[FieldCause]:
    causes: list[FieldCause] = []
    types = [one.get("type") or "" for one in _conditions(old)]
    seen: list[str] = []
    for where, condition in each(new.get("status"), "conditions", "status"):
        kind, status = condition.get("type") or "", condition.get("status") or ""
        if not kind and "" not in types:
            causes.append(required(f"{where}.type"))
        allowed = ("True",) if kind in TRUE_ONLY else ("False", "True", "Unknown")
        if not status:
            causes.append(required(f"{where}.status"))
        elif status not in allowed:
            causes.append(unsupported(f"{where}.status", status, allowed))
        other = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if other in seen and not set(DECISIONS) <= set(types):
            why = "Approved and Denied conditions are mutually exclusive"
            causes.append(invalid("status.conditions", kind, why))
        if kind in seen and len(set(types)) == len(types):
            causes.append(duplicate(f"{where}.type", kind))
        seen.append(kind)
    return causes


def _decision_causes(new: Obj, old: Obj, *, approving: bool) -> list[FieldCause]:
    causes: list[FieldCause] = []
    path = "status.conditions"
    for kind in TRUE_ONLY:
        mine, theirs = _conditions(new, (kind,)), _conditions(old, (kind,))
        if len(mine) < len(theirs):
            causes.append(forbidden(path, f'updates may not remove a condition of type "{kind}"'))
        elif len(mine) > len(theirs) and not approving and kind in DECISIONS:
            causes.append(forbidden(path, f'updates may not add a condition of type "{kind}"'))
    return causes


def _certificate_causes(new: Obj, old: Obj) -> list[FieldCause]:
    mine, theirs = dig(new, "status", "certificate") or "", dig(old, "status", "certificate") or ""
    causes: list[FieldCause] = []
    if mine != theirs and theirs:
        causes.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    problem = _certificate_problem(mine) if mine and mine != theirs else ""
    if problem:
        causes.append(invalid("status.certificate", "<certificate data>", problem))
    return causes


def _certificate_problem(data: str) -> str:
    try:
        pem = base64.b64decode(data).decode()
    except (ValueError, binascii.Error):
        pem = ""
    blocks = _BLOCK.findall(pem)
    for kind, body in blocks:
        if kind != "CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{kind}"'
        if _HEADER.search(body):
            return "no PEM block headers are permitted"
    if not blocks:
        return "must contain at least one CERTIFICATE PEM block"
    try:
        x509.load_pem_x509_certificates(pem.encode())
    except ValueError:
        return "x509: malformed certificate"
    return ""
