"""A served stub for tests of the protocol's bytes, and clients to talk to it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from syncline.base.clock import SystemClock
from syncline.cluster.access.authn import Authenticator
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.pki import create_keys
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.fairness.control import Fairness
from syncline.cluster.serving.serve import ApiServer, Durability
from syncline.cluster.storage.store import Store
from syncline.kube.client import Request, Response
from syncline.kube.transport.kubeconfig import ClusterAccess

TOKEN = "let-me-in"
JANE = "jane's-token"
KNOWN = {TOKEN: ADMIN, JANE: UserInfo("jane", ("devs",))}


class Frames:
    """A stream that the test fills."""

    def __init__(self) -> None:
        self.on_ready: Callable[[], None] | None = None
        self.waiting: deque[bytes] = deque()
        self.over = False
        self.closed = False

    def push(self, *frames: bytes, over: bool = False) -> None:
        self.waiting.extend(frames)
        self.over = over
        if self.on_ready:
            self.on_ready()

    def take(self, limit: int = 1000) -> list[bytes]:
        return [self.waiting.popleft() for _ in range(min(limit, len(self.waiting)))]

    @property
    def ended(self) -> bool:
        return self.over and not self.waiting

    def close(self) -> None:
        self.closed = True


@dataclass
class StubApi:
    """Answers with what the test prepared, and keeps what it was asked."""

    answers: dict[str, Response] = field(default_factory=dict)
    asked: list[tuple[Request, UserInfo]] = field(default_factory=list)

    def begin(self, request: Request, user: UserInfo) -> Response:
        self.asked.append((request, user))
        return self.answers.get(request.path) or Response.of(200, {"path": request.path, "user": user.name})


@dataclass
class World:
    api: StubApi
    store: Store
    durability: Durability
    server: ApiServer

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server.port}"

    @property
    def access(self) -> ClusterAccess:
        return ClusterAccess(self.url, KEYS.ca_pem, KEYS.admin.certificate_pem, KEYS.admin.key_pem)


KEYS = create_keys(SystemClock().now())
"""Keys of today: TLS compares certificates with the machine's clock."""


@asynccontextmanager
async def served(
    *, durable: bool = False, seats: int = 0, tls: bool = True, api: StubApi | None = None
) -> AsyncIterator[World]:
    """A server on a free loopback port with TLS and optional client certificates; ``seats`` 0: no fairness."""
    store = Store(durable=durable)
    durability = Durability(store)
    api = api or StubApi()
    authenticator = Authenticator(authorize=Authorizer(store).decide, fixed_tokens=KNOWN)
    server = ApiServer(
        api, authenticator, SystemClock(), durability, fairness=Fairness(store, seats) if seats else None
    )
    certificate = KEYS.server if tls else None
    await server.start("127.0.0.1", 0, certificate=certificate, client_ca_pem=KEYS.ca_pem)
    try:
        yield World(api, store, durability, server)
    finally:
        await asyncio.wait_for(server.stop(), 300)
