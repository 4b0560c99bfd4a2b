"""Certificate signing requests: required fields, and who may write which part of the status.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Admission checks the right to
approve for a signer. Source: Kubernetes ``pkg/apis/certificates/validation`` and its registry strategy.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
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
        if subresource == "approval":
            given = dig(old, "status", "certificate")
            status = {key: value for key, value in (new.get("status") or {}).items() if key != "certificate"}
            if given or new.get("status"):
                new["status"] = status | ({"certificate": given} if given else {})
        if subresource in ("status", "approval") and len(_conditions(new)) == len(_listed(new)) > 0:
            kept = _kept_decisions(new, old) if subresource == "status" else {}
            stamped = _stamped(new, old, kept, format_time(ctx.now))
            new["status"] = new["status"] | {"conditions": stamped}

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


def _listed(obj: Obj | None) -> list[Any]:
    found = dig(obj or {}, "status", "conditions", default=None)
    return found if isinstance(found, list) else []


def _conditions(obj: Obj | None, kinds: tuple[str, ...] = ()) -> list[Obj]:
    return [one for one in _listed(obj) if isinstance(one, dict) and (not kinds or one.get("type") in kinds)]


def _kept_decisions(new: Obj, old: Obj) -> dict[int, Obj]:
    """Return the stored decisions by their places in a status write that has as many of them."""
    kept: dict[int, Obj] = {}
    listed = _conditions(new)
    for kind in DECISIONS:
        mine = [index for index, one in enumerate(listed) if one.get("type") == kind]
        theirs = _conditions(old, (kind,))
        kept |= zip(mine, theirs) if len(mine) == len(theirs) else ()
    return kept


def _stamped(new: Obj, old: Obj, kept: Mapping[int, Obj], now: str) -> list[Obj]:
    """Return the conditions with their times; in place they might be those of the stored object."""
    before = {one.get("type"): one for one in _conditions(old)}
    made = []
    for index, one in enumerate(_conditions(new)):
        condition = kept.get(index, one)
        same = before.get(condition.get("type"), {})
        last = same.get("lastTransitionTime") if same.get("status") == condition.get("status") else None
        times = {"lastUpdateTime": now, "lastTransitionTime": last or now}
        made.append(condition | {key: condition.get(key) or time for key, time in times.items()})
    return made


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
