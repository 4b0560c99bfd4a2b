"""Create AdmissionReviews for webhooks, and interpret their responses.

Pure. Source: apiserver ``admission/plugin/webhook/request``, client-go ``rest`` (the wording of invalid responses).
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from syncline.cluster.admission.dynamic.bindings import request_obj
from syncline.cluster.admission.dynamic.subject import Subject
from syncline.cluster.resources.registry import Resource
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj
from syncline.kube.transport.outbound import Outcome

GROUP = "admission.k8s.io"
MAX_SHOWN_CHARS = 2048
"""Characters shown of a webhook's text response (client-go ``maxUnstructuredResponseTextBytes``)."""


class BadAnswer(Exception):
    """Why a response is invalid; the text follows ``failed calling webhook "x": ``."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A webhook's decision. ``patch`` is the decoded list of operations, ``patch_type`` its stated type."""

    allowed: bool
    status: Obj | None = None
    patch: Any = None
    patch_type: str = ""
    warnings: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)


def review_body(version: str, subject: Subject, resource: Resource, obj: Obj | None, old: Obj | None) -> Obj:
    """Return a review without a uid. ``resource``: the version of ``obj`` and ``old``."""
    request = request_obj(subject, resource)
    options = request.pop("options")
    dry_run = request.pop("dryRun")
    request |= {"object": obj, "oldObject": old, "dryRun": dry_run, "options": options}
    return {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": request}


# --- answers -------------------------------------------------------------------------------------------------------


def read_answer(outcome: Outcome, uid: str, version: str, *, mutating: bool) -> Verdict:
    """Return the verdict of a response; raise BadAnswer."""
    if outcome.failure:
        raise BadAnswer(f"failed to call webhook: {outcome.failure}")
    review = _decoded(outcome, version)
    response = review.get("response")
    if response is None:
        raise _invalid("webhook response was absent")
    problem = _type_problem(response)
    if problem:
        raise BadAnswer(f"failed to call webhook: {problem}")
    patch_type = str(response.get("patchType") or "") if version == "v1" else ""
    raw = _patch_bytes(response.get("patch"))
    if version == "v1":
        _check_strictly(review, response, uid, raw, mutating)
    elif raw and mutating:
        patch_type = "JSONPatch"
    annotations = {str(key): str(value) for key, value in (response.get("auditAnnotations") or {}).items()}
    return Verdict(
        bool(response.get("allowed")),
        response.get("status"),
        _operations(raw) if raw and mutating and response.get("allowed") else None,
        patch_type,
        tuple(str(text) for text in response.get("warnings") or ()),
        annotations,
    )


def permitted(review: bytes) -> Outcome:
    """Return the answer of a simulated webhook: it permits the request, unchanged."""
    asked = msgspec.json.decode(review)
    response = {"uid": asked["request"]["uid"], "allowed": True}
    body = {"apiVersion": asked["apiVersion"], "kind": asked["kind"], "response": response}
    return Outcome(200, {"content-type": "application/json"}, msgspec.json.encode(body))


def _invalid(why: str) -> BadAnswer:
    return BadAnswer(f"received invalid webhook response: {why}")


def _decoded(outcome: Outcome, version: str) -> Obj:
    if not 200 <= outcome.status <= 206:
        raise BadAnswer(f"failed to call webhook: {_refused(outcome)}")
    if not outcome.body:
        kind = outcome.headers.get("content-type", "")
        raise BadAnswer(
            f"failed to call webhook: 0-length response with status code: {outcome.status} and content type: {kind}"
        )
    review = _json(outcome.body)
    if not isinstance(review, dict):
        what = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        named = _json_kind(review)
        why = (
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {named} into Go value of type {what}"
        )
        raise BadAnswer(f"failed to call webhook: {why}")
    _check_kind(review, version)
    return review


def _json(body: bytes) -> Any:
    """Decode JSON, or else YAML, as Kubernetes' decoders do: plain text is a string, a blank one an empty object."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        text = body.decode("utf-8", "replace").strip()
        return text if text else {}


def _json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, list):
        return "array"
    return "number" if isinstance(value, int | float) else "string"


def _check_kind(review: Obj, version: str) -> None:
    api_version, kind = str(review.get("apiVersion") or ""), str(review.get("kind") or "")
    if not api_version and kind in ("", "AdmissionReview"):
        return  # Accepted here; the strict check of v1 refuses a response without a kind.
    if api_version not in (f"{GROUP}/v1", f"{GROUP}/v1beta1") or kind != "AdmissionReview":
        where = 'in scheme "pkg/runtime/scheme.go:111"'
        raise BadAnswer(f'failed to call webhook: no kind "{kind}" is registered for version "{api_version}" {where}')
    given = api_version.rpartition("/")[2]
    if given != version:
        why = f"converting ({given}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
        raise BadAnswer(f"failed to call webhook: {why}")


_RESPONSE_TYPES: dict[str, tuple[type, str]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "v1.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}


def _type_problem(response: Any) -> str:
    if not isinstance(response, dict):
        named = _json_kind(response)
        return (
            f"json: cannot unmarshal {named} into Go struct field AdmissionReview.response of type v1.AdmissionResponse"
        )
    for name, (wanted, shown) in _RESPONSE_TYPES.items():
        value = response.get(name)
        if value is not None and not isinstance(value, wanted):
            named = "object" if isinstance(value, dict) else _json_kind(value)
            return (
                f"json: cannot unmarshal {named} into Go struct field AdmissionResponse.response.{name} of type {shown}"
            )
    return ""


def _patch_bytes(patch: str | None) -> bytes:
    try:
        return base64.b64decode(patch or "", validate=True)
    except (binascii.Error, ValueError):
        accepted = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        wrong = next((at for at, char in enumerate(patch or "") if char not in accepted), len(patch or ""))
        raise BadAnswer(f"failed to call webhook: illegal base64 data at input byte {wrong}") from None


def _check_strictly(review: Obj, response: Obj, uid: str, patch: bytes, mutating: bool) -> None:
    """Check what v1 requires of a response and v1beta1 does not."""
    given = str(response.get("uid") or "")
    if given != uid:
        raise _invalid(f'expected response.uid="{uid}", got "{given}"')
    if not review.get("kind"):
        raise _invalid(f"expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got /, Kind=")
    named = response.get("patchType")
    if not mutating:
        for field_name, found in (("patch", patch), ("patchType", named is not None)):
            if found:
                raise _invalid(f"validating webhook may not return response.{field_name}")
    elif patch and named is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif not patch and named is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif named == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _operations(raw: bytes) -> Any:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        first = raw[:1].decode("utf-8", "replace")
        why = (
            f"invalid character '{first}' looking for beginning of value"
            if first not in "[{"
            else "unexpected end of JSON input"
        )
        raise BadAnswer(f"received undecodable patch in webhook response: {why}") from None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        named = "object" if isinstance(found, dict) else _json_kind(found)
        why = f"json: cannot unmarshal {named} into Go value of type jsonpatch.Patch"
        raise BadAnswer(f"received undecodable patch in webhook response: {why}")
    return found


_REFUSALS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "unknown",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    410: "the resource is no longer available",
    413: "Request entity too large",
    415: "the body of the request was in an unknown format",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def _refused(outcome: Outcome) -> str:
    """Return the message of an HTTP error as client-go words it (``newUnstructuredResponseError``)."""
    found = _json(outcome.body) if outcome.body else None
    if isinstance(found, dict) and found.get("kind") == "Status" and found.get("message"):
        return str(found["message"])
    text = "unknown" if isinstance(found, dict) or not outcome.body else _shown(outcome.body)
    if outcome.status >= 500 and outcome.status not in (503, 504):
        return f'an error on the server ("{text}") has prevented the request from succeeding'
    if outcome.status == 403 and text != "unknown":
        return text
    return _REFUSALS.get(
        outcome.status,
        f"the server responded with the status code {outcome.status} but did not return more information",
    )


def _shown(body: bytes) -> str:
    return body.decode("utf-8", "replace").strip()[:MAX_SHOWN_CHARS]


# --- refusals ------------------------------------------------------------------------------------------------------


def denied(name: str, status: Obj | None) -> ApiError:
    """Return the webhook's status under its name; the code is at least 400 (``webhookerrors.ToStatusErr``)."""
    given = status or {}
    by = f'admission webhook "{name}" denied the request'
    said = str(given.get("message") or given.get("reason") or "")
    code = given.get("code")
    return ApiError(
        f"{by}: {said}" if said else f"{by} without explanation",
        code=max(code, 400) if isinstance(code, int) and not isinstance(code, bool) else 400,
        reason=str(given.get("reason") or ""),
        details=given["details"] if isinstance(given.get("details"), dict) else None,
    )
