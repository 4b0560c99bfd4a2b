"""API refusals as exceptions, and exceptions as ``Status`` objects.

::

    ApiError                    any metav1.Status with status Failure
    ├── BadRequest        400   BadRequest
    ├── Unauthorized      401   Unauthorized
    ├── Forbidden         403   Forbidden
    ├── NotFound          404   NotFound
    ├── MethodNotAllowed  405   MethodNotAllowed
    ├── NotAcceptable     406   NotAcceptable
    ├── Conflict          409   Conflict
    ├── AlreadyExists     409   AlreadyExists
    ├── Gone              410   Gone / Expired
    ├── TooLarge          413   RequestEntityTooLarge
    ├── UnsupportedMedia  415   UnsupportedMediaType
    ├── Invalid           422   Invalid
    ├── TooManyRequests   429   TooManyRequests
    ├── InternalError     500   InternalError
    └── Unavailable       503   ServiceUnavailable / Timeout
        └── Unanswered          no answer of the API: it was not reached, or something else answered in its place

The server raises them, the client raises them from an answer; the words are Kubernetes' own (apimachinery
``pkg/api/errors``, checked by the recorded conversations).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from syncline.kube.objects import Obj


@dataclass(frozen=True, slots=True)
class FieldCause:
    """One entry of ``details.causes``: ``reason`` is a CauseType such as ``FieldValueInvalid``."""

    reason: str
    message: str
    field: str = ""

    def to_obj(self) -> Obj:
        cause: Obj = {"reason": self.reason, "message": self.message}
        if self.field:
            cause["field"] = self.field
        return cause


MAX_RETRY_AFTER_S = 120
"""The longest wait that is honoured, even if a server asks for more."""


class ApiError(Exception):
    """An API error. ``details`` is the Status' details object, without empty fields.

    If given as ``{}`` it is shown empty, as in Kubernetes' generic errors; None leaves it out.
    """

    code = 500
    reason = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        reason: str | None = None,
        details: Obj | None = None,
        causes: Iterable[FieldCause] = (),
        retry_after_s: int = 0,
        continue_token: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.code if code is None else code
        self.reason = self.reason if reason is None else reason
        self.details: Obj = dict(details or {})
        self.continue_token = continue_token
        """The token to continue a list whose own token has expired; the result is then not consistent."""
        self._shows_details = details is not None
        listed = [cause.to_obj() for cause in causes]
        if listed:
            self.details["causes"] = listed
        if retry_after_s:
            self.details["retryAfterSeconds"] = retry_after_s

    def to_status(self) -> Obj:
        """Return the ``Status`` object as the API writes it."""
        status: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if not self.reason:
            del status["reason"]
        if self.details or self._shows_details:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @property
    def retry_after_s(self) -> float:
        """The seconds the server asks to wait, at most :data:`MAX_RETRY_AFTER_S`; 0 if it does not."""
        value = self.details.get("retryAfterSeconds")
        return float(min(max(value, 0), MAX_RETRY_AFTER_S)) if isinstance(value, int) else 0.0

    @property
    def causes(self) -> list[Obj]:
        value = self.details.get("causes")
        return value if isinstance(value, list) else []

    def __str__(self) -> str:
        return self.message


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class Conflict(ApiError):
    code, reason = 409, "Conflict"


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"


class Gone(ApiError):
    code, reason = 410, "Expired"


class TooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMedia(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    code, reason = 500, "InternalError"


class Unavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Unanswered(Unavailable):
    """No response of the API; raised by clients only. It is unknown if the request was carried out."""


_BY_REASON: dict[str, type[ApiError]] = {
    c.reason: c
    for c in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        NotAcceptable,
        Conflict,
        AlreadyExists,
        Gone,
        TooLarge,
        UnsupportedMedia,
        Invalid,
        TooManyRequests,
        InternalError,
        Unavailable,
    )
}
_BY_CODE: dict[int, type[ApiError]] = {c.code: c for c in reversed(list(_BY_REASON.values()))}


def error_from_status(status: Any, code: int = 500) -> ApiError:
    """Return the exception for a ``Status``; a body that is no Status keeps its text and HTTP code."""
    if not isinstance(status, dict) or status.get("kind") != "Status":
        kind = _BY_CODE.get(code, ApiError)
        return kind(str(status)[:500] or f"the server answered {code}", code=code)
    code = int(status.get("code") or code)
    reason = str(status.get("reason") or "")
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
    return kind(str(status.get("message") or ""), code=code, reason=reason, details=status.get("details") or {})


def _details(name: str, group: str, kind: str) -> Obj:
    details: Obj = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(resource: str, name: str, group: str = "") -> NotFound:
    """Return ``pods "web" not found``; ``resource`` is the plural."""
    return NotFound(f'{_qualified(resource, group)} "{name}" not found', details=_details(name, group, resource))


def already_exists(resource: str, name: str, group: str = "") -> AlreadyExists:
    return AlreadyExists(
        f'{_qualified(resource, group)} "{name}" already exists', details=_details(name, group, resource)
    )


def conflict(resource: str, name: str, why: str, group: str = "") -> Conflict:
    """Return ``Operation cannot be fulfilled on pods "web": <why>``."""
    return Conflict(
        f'Operation cannot be fulfilled on {_qualified(resource, group)} "{name}": {why}',
        details=_details(name, group, resource),
    )


def method_not_supported(resource: str, group: str, verb: str) -> MethodNotAllowed:
    """Return ``watch is not supported on resources of kind "componentstatuses"``."""
    return MethodNotAllowed(
        f'{verb} is not supported on resources of kind "{_qualified(resource, group)}"',
        details=_details("", group, resource),
    )


def invalid(kind: str, name: str, causes: list[FieldCause], group: str = "") -> Invalid:
    """Return ``Pod "web" is invalid: spec.x: Invalid value: …``; several causes are listed in brackets like Go's
    Aggregate (repeated texts once)."""
    texts = list(dict.fromkeys(f"{c.field}: {c.message}" if c.field else c.message for c in causes))
    text = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = _details(name, group, kind)
    qualified = f"{kind}.{group}" if group else kind
    return Invalid(f'{qualified} "{name}" is invalid: {text}', details=details, causes=causes)
