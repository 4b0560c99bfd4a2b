"""Codes of gRPC and what they are in HTTP: :class:`Code`, :class:`RpcError`.

Pure. Rules: gRPC's list of codes, grpc-gateway's table of HTTP codes, and which code upstream gives each refusal of
Kubernetes' API (``util/grpc/errors.go``).
"""

from __future__ import annotations

from enum import IntEnum

from syncline.kube.errors import ApiError


class Code(IntEnum):
    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


HTTP_CODES = {
    Code.OK: 200,
    Code.CANCELLED: 408,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}

_OF_REASONS = {
    "NotFound": Code.NOT_FOUND,
    "AlreadyExists": Code.ALREADY_EXISTS,
    "Invalid": Code.INVALID_ARGUMENT,
    "MethodNotAllowed": Code.UNIMPLEMENTED,
    "ServiceUnavailable": Code.UNAVAILABLE,
    "BadRequest": Code.FAILED_PRECONDITION,
    "Unauthorized": Code.UNAUTHENTICATED,
    "Forbidden": Code.PERMISSION_DENIED,
    "Timeout": Code.DEADLINE_EXCEEDED,
    "ServerTimeout": Code.UNAVAILABLE,
    "Conflict": Code.ABORTED,
    "TooManyRequests": Code.RESOURCE_EXHAUSTED,
    "InternalError": Code.INTERNAL,
}


class RpcError(Exception):
    """The refusal of a call: its code, and the sentence that the client prints."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def within(self, text: str) -> RpcError:
        """Return this refusal after the words of who met it, as Go wraps errors (``%w``)."""
        if self.code is Code.UNKNOWN:
            return RpcError(self.code, f"{text}: {self.message}")
        name = "".join(part.title() for part in self.code.name.split("_"))
        return RpcError(self.code, f"{text}: rpc error: code = {name} desc = {self.message}")


def refusal_of(error: ApiError) -> RpcError:
    """Return what a refusal of Kubernetes' API is to the client of a call."""
    return RpcError(_OF_REASONS.get(error.reason, Code.UNKNOWN), error.message)


def grpc_message(text: str) -> str:
    """Return a message as ``grpc-message`` carries it: printable ASCII, all else as ``%XX``."""
    return "".join(
        chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x25 else f"%{byte:02X}" for byte in text.encode(errors="replace")
    )
