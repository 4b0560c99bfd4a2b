"""REST as grpc-gateway has it: :func:`serve` turns ``GET /api/v1/applications/guestbook`` into a call.

Rules (grpc-gateway v1, and upstream's forwarders): parts of the path and parameters of the query fill fields, also
nested ones (``id.value``), by their type; parameters without a field are ignored; a body fills the whole request
(``*``) or one field. A stream is lines of ``{"result": …}``, or events for a page. ``fields`` chooses what an answer
shows.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from syncline.kube.objects import Obj
from syncline.kube.protobuf.fields import SCALARS, Field
from syncline.web.wire.ahead import END, FIRST_S, KEEPALIVE_S, Ahead
from syncline.web.wire.answering import json_bytes
from syncline.web.wire.api import Method, Route, messages, methods, printer
from syncline.web.wire.calls import Calls
from syncline.web.wire.credentials import cookies_of
from syncline.web.wire.http import Asked, Given
from syncline.web.wire.projecting import Choice, chosen, project
from syncline.web.wire.status import HTTP_CODES, Code, RpcError

MAX_PARAMETERS = 1_000
EVENTS = "text/event-stream"
SESSIONS = frozenset({"/session.SessionService/Create", "/session.SessionService/Delete"})
"""Their answers set and end the cookie of a browser."""
_BOOLS = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "false", "FALSE", "False"), False
)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The parts of a path: fixed words, and names of fields in braces."""

    method: Method
    route: Route
    parts: tuple[str, ...]

    @property
    def open_ended(self) -> bool:
        """Whether the last part takes all that is left of a path (``{subresource=**}``)."""
        return self.parts[-1].endswith("=**}")

    def match(self, given: list[str]) -> dict[str, str] | None:
        if self.open_ended and len(given) > len(self.parts):
            last = len(self.parts) - 1
            given = [*given[:last], "/".join(given[last:])]
        if len(given) != len(self.parts):
            return None
        found = {}
        for part, text in zip(self.parts, given, strict=True):
            if part.startswith("{"):
                if not text:
                    return None
                found[part[1:-1].partition("=")[0]] = unquote(text)
            elif part != text:
                return None
        return found


@cache
def _patterns() -> dict[tuple[str, int], tuple[_Pattern, ...]]:
    """The routes by verb and number of parts; those with more fixed words come first."""
    found: dict[tuple[str, int], list[_Pattern]] = {}
    for method in methods().values():
        for route in method.routes:
            parts = tuple(route.path.lstrip("/").split("/"))
            found.setdefault((route.verb.upper(), len(parts)), []).append(_Pattern(method, route, parts))
    return {
        key: tuple(sorted(rows, key=lambda one: [part.startswith("{") for part in one.parts]))
        for key, rows in found.items()
    }


@cache
def _open_ended(verb: str) -> tuple[_Pattern, ...]:
    return tuple(
        pattern for (own, _), rows in _patterns().items() if own == verb for pattern in rows if pattern.open_ended
    )


async def serve(calls: Calls, path: str, query: str, asked: Asked) -> Given:
    """Answer one request under ``/api``."""
    try:
        pattern, bound = _found(asked.verb, path)
        request = _request(pattern, bound, query, asked.body)
        answers = calls.run(pattern.method.path, asked.headers, asked.remote, _one(request))
        if not pattern.method.streams_out:
            async with aclosing(answers):
                return _given(pattern.method, await anext(answers), query, secure=asked.secure)
        ahead = Ahead(answers)
        try:
            first = [await ahead.next(FIRST_S)]
        except TimeoutError:
            first = []
        return _streaming(pattern.method, first, ahead, asked, query)
    except RpcError as error:
        return refused(error)


def _found(verb: str, path: str) -> tuple[_Pattern, dict[str, str]]:
    given = path.lstrip("/").split("/")
    for pattern in (*_patterns().get((verb, len(given)), ()), *_open_ended(verb)):
        bound = pattern.match(given)
        if bound is not None:
            return pattern, bound
    others = [rows for (other, count), rows in _patterns().items() if count == len(given) and other != verb]
    if any(pattern.match(given) is not None for rows in others for pattern in rows):
        raise RpcError(Code.UNIMPLEMENTED, "Method Not Allowed")
    raise RpcError(Code.NOT_FOUND, "Not Found")


async def _one(request: Any) -> AsyncGenerator[Any]:
    yield request


# --- requests ------------------------------------------------------------------------------------------------------


def _request(pattern: _Pattern, bound: dict[str, str], query: str, body: bytes) -> Obj:
    """Return the request of a call. Raises :class:`RpcError`."""
    message, route = pattern.method.request, pattern.route
    request: Obj = {}
    if route.body:
        field = _field(message, route.body)
        value = _body(body, str if field is not None and field.scalar else dict)
        if route.body == "*":
            request = value
        else:
            request[route.body] = value
    for name, text in bound.items():
        _put(request, message, name, text, required=True)
    if route.body != "*":
        for name, text in _parameters(query):
            if name not in bound and (not route.body or name.partition(".")[0] != route.body):
                _put(request, message, name, text, required=False)
    return request


def _body(body: bytes, kind: type) -> Any:
    """Return the value of a body: an object, or a text where the field that it fills is one."""
    if not body.strip():
        return kind()
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RpcError(Code.INVALID_ARGUMENT, f"the body is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise RpcError(Code.INVALID_ARGUMENT, f"the body is not a JSON {'object' if kind is dict else 'text'}")
    return value


def _parameters(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise RpcError(Code.INVALID_ARGUMENT, f"the query has more than {MAX_PARAMETERS} parameters") from None


def _put(request: Obj, message: str, name: str, text: str, *, required: bool) -> None:
    """Set the field that a dotted name leads to; one that leads nowhere is ignored."""
    parts = name.split(".")
    owner = request
    for at, part in enumerate(parts):
        field = _field(message, part)
        if field is None:
            if required:
                raise RpcError(Code.INTERNAL, f"{message} has no field {name}")
            return
        if at < len(parts) - 1:
            if field.scalar or field.repeated or field.is_map:
                return
            inner = owner.get(field.name)
            owner[field.name] = owner = dict(inner) if isinstance(inner, dict) else {}
            message = field.kind
        elif field.kind in SCALARS and not field.is_map:
            value = _scalar(field, name, text)
            owner[field.name] = [*(owner.get(field.name) or []), value] if field.repeated else value


def _field(message: str, name: str) -> Field | None:
    return next((field for field in messages().fields(message) if field.name == name), None)


def _scalar(field: Field, name: str, text: str) -> Any:
    try:
        if field.kind == "bool":
            return _BOOLS[text]
        if field.kind in ("int32", "int64"):
            return int(text)
        if field.kind == "double":
            return float(text)
    except (ValueError, KeyError):
        raise RpcError(
            Code.INVALID_ARGUMENT, f"type mismatch, parameter: {name}, error: {text[:80]!r} is no {field.kind}"
        ) from None
    return text


# --- responses -----------------------------------------------------------------------------------------------------


def refused(error: RpcError) -> Given:
    """Return a refusal as the gateway writes it."""
    body = {"error": error.message, "code": int(error.code), "message": error.message}
    return Given(HTTP_CODES[error.code], body=msgspec.json.encode(body))


def _given(method: Method, answer: Any, query: str, *, secure: bool) -> Given:
    body = _json(method, answer, chosen(query))
    cookies = cookies_of(str(answer.get("token", "")), secure=secure) if method.path in SESSIONS else []
    return Given(200, body=body, headers=tuple(("set-cookie", cookie) for cookie in cookies))


def _json(method: Method, answer: Any, choice: Choice | None, path: str = "") -> bytes:
    if choice is None:
        return json_bytes(method, answer)
    return msgspec.json.encode(project(printer().print(method.response, answer), choice, path))


def _streaming(method: Method, first: list[Any], ahead: Ahead, asked: Asked, query: str) -> Given:
    events = asked.headers.get("accept") == EVENTS
    headers = (("cache-control", "no-cache"),) if events else ()
    chunks = _lines(method, first, ahead, query, events=events)
    return Given(200, EVENTS if events else "application/json", chunks=chunks, headers=headers)


async def _lines(method: Method, first: list[Any], ahead: Ahead, query: str, *, events: bool) -> AsyncGenerator[bytes]:
    choice = chosen(query)
    async with aclosing(ahead):
        try:
            while True:
                try:
                    answer = first.pop() if first else await ahead.next(KEEPALIVE_S if events else None)
                except TimeoutError:
                    yield b":\n"
                    continue
                if answer is END:
                    return
                yield _line(method, answer, choice, events=events)
        except RpcError as error:
            code = HTTP_CODES[error.code]
            failed = {"grpc_code": int(error.code), "http_code": code, "message": error.message}
            yield _ended({"error": failed}, events=events)


def _line(method: Method, answer: Any, choice: Choice | None, *, events: bool) -> bytes:
    return _ended({"result": msgspec.Raw(_json(method, answer, choice, "result"))}, events=events)


def _ended(value: Obj, *, events: bool) -> bytes:
    raw = msgspec.json.encode(value)
    return b"data: " + raw + b"\n\n" if events else raw + b"\n"
