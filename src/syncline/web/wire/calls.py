"""Runs calls: :class:`Calls` finds who asks, gives the request to the handler of its method, and hands out answers.

Called by gRPC, gRPC-Web and REST with requests as JSON values; without sockets. A handler is a function of
:class:`Call` and the request: it returns the answer, or yields answers where the method streams. It raises
:class:`RpcError`, or an ``ApiError`` of Kubernetes' API.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from syncline.kube.errors import ApiError
from syncline.web.access import Access, Caller
from syncline.web.wire.api import Method, methods
from syncline.web.wire.credentials import token_of
from syncline.web.wire.status import Code, RpcError, refusal_of

log = logging.getLogger("syncline.web")

OPEN_TO_ALL = frozenset(
    {
        "/version.VersionService/Version",
        "/session.SessionService/Create",
        "/session.SessionService/Delete",
        "/session.SessionService/GetUserInfo",
        "/cluster.SettingsService/Get",
    }
)
"""Methods that need no credentials; wrong ones count as none (upstream: ``AuthFuncOverride`` of these services)."""

Metadata = Mapping[str, str]
"""Headers of a call, names in lower case."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler learns of a call beside its request."""

    method: Method
    caller: Caller
    metadata: Metadata
    remote: str
    """Address of the client."""


Handler = Callable[[Call, Any], Awaitable[Any] | AsyncIterator[Any]]
"""Of a method whose requests stream, the second argument is an asynchronous iterator of requests."""


class Calls:
    """The methods that are served; ``refused`` says in a sentence why a method is not."""

    def __init__(self, handlers: Mapping[str, Handler], access: Access, refused: Mapping[str, str]) -> None:
        unknown = (handlers.keys() | refused.keys()) - methods().keys()
        if unknown:
            raise ValueError(f"no such methods: {', '.join(sorted(unknown))}")
        self._handlers = handlers
        self._access = access
        self._refused = refused

    async def run(
        self, path: str, metadata: Metadata, remote: str, requests: AsyncIterator[Any]
    ) -> AsyncGenerator[Any]:
        """Yield the answers of one call: exactly one, unless the method streams. Raises :class:`RpcError`."""
        method = methods().get(path)
        handler = self._handlers.get(path)
        if method is None or handler is None:
            raise RpcError(Code.UNIMPLEMENTED, self._why_not(path))
        try:
            caller = await self._caller(path, metadata, remote)
            call = Call(method, caller, metadata, remote)
            answered = handler(call, requests if method.streams_in else await _only(requests))
            if isinstance(answered, AsyncIterator):
                async for one in answered:
                    yield one
            else:
                yield await answered
        except (RpcError, asyncio.CancelledError, TimeoutError, GeneratorExit):
            raise
        except ApiError as error:
            raise refusal_of(error) from error
        except Exception:
            log.exception("%s failed", path)
            raise RpcError(Code.INTERNAL, f"{path} failed within the server; its log says how") from None

    def _why_not(self, path: str) -> str:
        if path not in methods():
            service, _, name = path.lstrip("/").partition("/")
            return f"unknown method {name} for service {service}"
        return self._refused.get(path) or f"{path.lstrip('/')} is not served yet"

    async def _caller(self, path: str, metadata: Metadata, remote: str) -> Caller:
        try:
            return await self._access.caller(token_of(metadata), remote)
        except RpcError:
            if path in OPEN_TO_ALL:
                return Caller("")
            raise


async def _only(requests: AsyncIterator[Any]) -> Any:
    async for request in requests:
        return request
    raise RpcError(Code.INTERNAL, "the call ended before its request")
