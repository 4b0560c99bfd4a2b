"""The context of one request: its parts, and what the verbs may use.

``api`` creates it for each request and passes it to a verb, which returns a response or raises an ``ApiError``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.tokens import ServiceAccountTokens
from syncline.cluster.access.users import UserInfo
from syncline.cluster.admission import Admission
from syncline.cluster.admission.dynamic.calls import Asking
from syncline.cluster.resources.registry import Registry, Resource
from syncline.cluster.resources.routes import Route
from syncline.cluster.serving.negotiate import JSON, Accepted
from syncline.cluster.storage.store import Key, Store, Stored
from syncline.cluster.validation.engine.base import Context
from syncline.kube.client import Request, Session
from syncline.kube.errors import ApiError, NotFound, not_found
from syncline.kube.objects import Obj
from syncline.kube.transport.outbound import Stream


class LogSource(Protocol):
    """Source of container logs; implemented by the machines."""

    def log(self, pod: Obj, container: str, query: Mapping[str, str], now: datetime) -> bytes | Stream:
        """Return the lines so far, or a stream if the query has ``follow``. Raises ApiError."""
        ...


class NoLogs:
    """A cluster without machines: no pod has a log."""

    def log(self, pod: Obj, container: str, query: Mapping[str, str], now: datetime) -> bytes | Stream:
        raise NotFound("the server could not find the requested resource", details={})


@dataclass(frozen=True, slots=True)
class ExecWish:
    """A command to run in a container, and the streams it needs."""

    command: tuple[str, ...]
    stdin: bool = False
    tty: bool = False


class CommandSource(Protocol):
    """Runs commands in containers; implemented by machines with processes."""

    def exec(self, pod: Obj, container: str, wish: ExecWish) -> Callable[[], Session]:
        """Return a function that starts the command. Raises ApiError if nothing runs in the container."""
        ...


TokenReviewer = Callable[[str, datetime, Sequence[str]], tuple[UserInfo, list[str]] | None]
"""``Authenticator.token_user``: the user of a bearer token and the audiences it is valid for."""


@dataclass(slots=True)
class Backend:
    """The parts of one embedded cluster that verbs use."""

    store: Store
    registry: Registry
    authorizer: Authorizer
    admission: Admission
    clock: Clock
    entropy: Entropy
    tokens: ServiceAccountTokens | None = None
    logs: LogSource = field(default_factory=NoLogs)
    review_token: TokenReviewer | None = None
    commands: CommandSource | None = None


MAX_WARNINGS = 2_000
"""Limit of warnings; a response carries far fewer."""


@dataclass(slots=True)
class Exchange:
    backend: Backend
    request: Request
    user: UserInfo
    route: Route
    verb: str
    resource: Resource
    now: datetime
    accepted: Accepted = JSON
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """For the audit log."""
    asking: Asking | None = None
    """Outbound calls of this request and their results; set while webhooks or policies are configured."""

    @property
    def store(self) -> Store:
        return self.backend.store

    @property
    def namespace(self) -> str:
        return self.route.namespace if self.resource.info.namespaced else ""

    @property
    def context(self) -> Context:
        user = self.user
        return Context(self.now, self.backend.entropy, user.name, user.groups, user.uid, user.extra)

    def key(self, name: str) -> Key:
        return Key(self.resource.storage, self.namespace, name)

    def current(self) -> Stored:
        """Return the object that the path names; raise NotFound."""
        computed = self.resource.computed
        if computed is not None:
            stored = next((one for one in computed(self.namespace) if one.key.name == self.route.name), None)
        else:
            stored = self.store.get(self.key(self.route.name))
        if stored is None:
            raise self.missing()
        return stored

    def missing(self) -> ApiError:
        info = self.resource.info
        return not_found(info.plural, self.route.name, info.group)

    def warn(self, text: str) -> None:
        if len(self.warnings) < MAX_WARNINGS and text not in self.warnings:
            self.warnings.append(text)
