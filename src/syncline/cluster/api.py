"""The embedded Kubernetes API, without sockets: :meth:`Api.handle` takes a request and a user and returns a response.

``serve`` calls it for HTTP, ``direct`` in process. It authorizes, finds the resource and its verb, and turns every
failure into a ``Status``. It never raises, blocks or sleeps; it runs in one thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.cluster.access.attributes import attributes
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.tokens import ServiceAccountTokens
from syncline.cluster.access.users import UserInfo
from syncline.cluster.admission import Admission
from syncline.cluster.resources.aggregation import Aggregation
from syncline.cluster.resources.definitions import Definitions
from syncline.cluster.resources.discovery import Discovery, page_not_found
from syncline.cluster.resources.registry import Registry, Resource
from syncline.cluster.resources.routes import Route, route_of, verb_of
from syncline.cluster.serving.answers import in_yaml, refusal
from syncline.cluster.serving.negotiate import JSON, Accepted, Form, accepted_of
from syncline.cluster.serving.waiting import Asked, Waiting
from syncline.cluster.storage.store import Store, StoreConflict
from syncline.cluster.verbs.create import create
from syncline.cluster.verbs.delete import delete, delete_collection
from syncline.cluster.verbs.exchange import Backend, Exchange, LogSource, NoLogs, TokenReviewer
from syncline.cluster.verbs.patching import patch
from syncline.cluster.verbs.read import get, list_objects
from syncline.cluster.verbs.reviews import REVIEWS
from syncline.cluster.verbs.subresources import accounts, pods, scale
from syncline.cluster.verbs.subresources.connections import CONNECTIONS, refuse_connection, run_command
from syncline.cluster.verbs.update import update
from syncline.cluster.verbs.watching import watch
from syncline.kube.client import Request, Response, settle
from syncline.kube.errors import ApiError, InternalError, MethodNotAllowed, NotFound, method_not_supported, not_found
from syncline.kube.schema.resources import subresource_of
from syncline.kube.transport.elsewhere import Here, Overtaken, Slow, TooLarge, aside, keeping_to, left_aside
from syncline.kube.transport.outbound import Awaiting, OutboundCall, Outcome

log = logging.getLogger("syncline.cluster")

Verb = Callable[[Exchange], Response]

_VERBS: dict[str, Verb] = {
    "get": get,
    "list": list_objects,
    "watch": watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})

_HALVES: dict[str, Verb] = {"get": get, "update": update, "patch": patch}
"""Verbs of subresources that are part of the object itself: status, finalize, approval, …"""

_BY_NAME = frozenset({"get", "update", "patch", "delete"})
"""A resource with none of these verbs has no paths of single objects."""

_SUBRESOURCES: dict[tuple[str, str], Mapping[str, Verb]] = {
    ("/pods", "binding"): {"create": pods.bind},
    ("/pods", "eviction"): {"create": pods.evict},
    ("/pods", "log"): {"get": pods.log},
    ("/serviceaccounts", "token"): {"create": accounts.request_token},
}
_SCALE: dict[str, Verb] = {"get": scale.read, "update": scale.update, "patch": scale.patch}


class Api:
    """One embedded API server. ``review_token`` is ``Authenticator.token_user``."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        authorizer: Authorizer,
        clock: Clock,
        entropy: Entropy,
        *,
        tokens: ServiceAccountTokens | None = None,
        review_token: TokenReviewer | None = None,
        logs: LogSource | None = None,
    ) -> None:
        admission = Admission(store, authorizer, registry.of_kind)
        self.backend = Backend(
            store, registry, authorizer, admission, clock, entropy, tokens, logs or NoLogs(), review_token
        )
        self.registry = registry
        self.aggregation = Aggregation(store)
        self._discovery = Discovery(registry, self.aggregation)
        self.documents: dict[str, Callable[[], Response]] = {}
        """Non-resource paths, such as /metrics; authorized like all others."""
        self._definitions = Definitions(self.backend)
        self._slow = Slow()
        self.caller: Callable[[OutboundCall], Outcome] | None = None
        """Makes outbound calls for callers that cannot wait; None: such calls fail with an error."""

    def handle(self, request: Request, user: UserInfo) -> Response:
        """Return the response to ``request`` as ``user``; every failure is a Status. ``caller`` makes outbound calls,
        and expressions are evaluated synchronously."""
        if self.backend.admission.configured.active:
            answer = Waiting(self._run, self.backend, request, user).run()
        else:
            answer = self._run(self.backend, request, user, None)
        return settle(answer, self.caller)

    def begin(self, request: Request, user: UserInfo) -> Response:
        """As :meth:`handle`, but return a pending response, to be resumed with results, if the request needs webhooks
        or long evaluations."""
        if not self.backend.admission.configured.active:
            try:
                with keeping_to(Here(None, user.name, self._slow)):
                    return self._run(self.backend, request, user, None)
            except (Awaiting, TooLarge):
                pass  # Nothing was stored: the request runs again, with a fixed clock and fixed random values.
        return Waiting(self._run, self.backend, request, user, self._slow).run()

    def unjudged(self, request: Request, user: UserInfo) -> Response:
        """As :meth:`handle`, but skip webhooks and policies; for the cluster's own objects."""
        return self._run(self.backend, request, user, None)

    def _run(self, backend: Backend, request: Request, user: UserInfo, asking: Asked | None) -> Response:
        try:
            return self._handle(backend, request, user, asking)
        except ApiError as error:
            return aside(refusal, error, _accept(request))
        except Awaiting:
            raise
        except Exception as error:
            if isinstance(error, StoreConflict) and left_aside():
                raise Overtaken from None
            # Our bug: the caller gets Kubernetes' message, the log gets the trace.
            log.exception("%s %s failed", request.method, request.path)
            return refusal(InternalError(f"Internal error occurred: {type(error).__name__}: {error}"))

    def _handle(self, backend: Backend, request: Request, user: UserInfo, asked: Asked | None) -> Response:
        route = route_of(request.path)
        verb = verb_of(request.method, route, request.query)
        self.backend.authorizer.require(user, attributes(request, route, verb))
        if self.aggregation.active:
            elsewhere = self.aggregation.find(request.path)
            if elsewhere is not None:
                return self.aggregation.forward(request, user, elsewhere, streams=verb == "watch")
        if request.method == "HEAD" and route.resource:
            raise _not_allowed()
        if not route.resource:
            document = self.documents.get(request.path) if request.method == "GET" else None
            return document() if document is not None else self._discovery.answer(request)
        resource = self.registry.find(route.group, route.version, route.resource)
        if resource is None or not _fits(resource, route):
            return self._unserved(route)
        now = self.backend.clock.now() if asked is None else asked.now
        x = Exchange(backend, request, user, route, verb, resource, now)
        x.asking = asked.asking if asked is not None else None
        accept = _accept(request)
        if resource.custom is not None and resource.custom.deprecation:
            x.warn(resource.custom.deprecation)
        try:
            handler = _handler(resource, route, verb)
            x.accepted = _accepted(accept, resource, route, verb) if accept else JSON
            if deprecation := _OLD.get(resource.storage):
                x.warn(deprecation)
            response = handler(x)
        except ApiError as error:
            if not (x.warnings or x.annotations):
                raise
            # Earlier warnings are sent with the refusal.
            response = refusal(error, accept)
        if verb in _WRITES:
            self._definitions.after_write(x)
        if x.warnings:
            report = _warnings(x.warnings)
            response.headers = {**response.headers, "warning": report} if report else response.headers
        if x.annotations:
            response.annotations = x.annotations
        return aside(in_yaml, response) if x.accepted.form is Form.YAML else response

    def _unserved(self, route: Route) -> Response:
        if self.registry.is_builtin_group(route.group):
            raise NotFound("the server could not find the requested resource", details={})
        return page_not_found()


def _accept(request: Request) -> str:
    return request.headers.get("accept", "") if request.headers else ""


def _accepted(accept: str, resource: Resource, route: Route, verb: str) -> Accepted:
    streams, tables = verb in ("list", "watch"), not _is_action(resource, route)
    return accepted_of(accept, streams=streams, tables=tables, custom=resource.custom is not None)


_OLD = {
    "/endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    "/componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}
"""Built-in resources whose every response carries a warning (``APILifecycleDeprecated`` of their Go types)."""


_ACTIONS = frozenset({"binding", "eviction", "token"})


def _is_action(resource: Resource, route: Route) -> bool:
    """Return whether the resource is an action or a review, which has no table rows (no ``TableConvertor``)."""
    if route.subresource:
        return route.subresource in _ACTIONS
    return (route.group, route.resource) in REVIEWS or resource.storage == "/bindings"


def _fits(resource: Resource, route: Route) -> bool:
    """Return whether the path's namespace fits the scope; a namespaced kind can be listed in all namespaces."""
    if resource.info.namespaced:
        return bool(route.namespace) or not route.name
    return not route.namespace or resource.storage == "/namespaces"


def _handler(resource: Resource, route: Route, verb: str) -> Verb:
    if route.subresource:
        return _subresource_handler(resource, route, verb)
    review = REVIEWS.get((route.group, route.resource))
    if review is not None and verb == "create":
        return review
    if resource.storage == "/bindings" and verb == "create":
        return pods.bind_by_collection
    handler = _VERBS.get(verb)
    named = bool(route.name)
    if named and not _BY_NAME.intersection(resource.info.verbs):
        raise NotFound("the server could not find the requested resource", details={})
    if verb == "watch" and not resource.supports(verb):
        raise method_not_supported(resource.info.plural, resource.info.group, verb)
    if handler is None or not resource.supports(verb):
        raise _not_allowed()
    if verb in ("create", "update", "patch") and (verb == "create") is named:
        raise _not_allowed()
    if verb in ("create", "deletecollection") and resource.info.namespaced and not route.namespace:
        raise _not_allowed()
    return handler


def _subresource_handler(resource: Resource, route: Route, verb: str) -> Verb:
    sub = subresource_of(resource.info, route.subresource)
    connects = route.subresource in CONNECTIONS
    if (sub is None or route.tail) and resource.custom is not None:
        raise not_found(resource.info.plural, route.name, resource.info.group)
    if sub is None or (route.tail and not connects) or not route.name:
        raise NotFound("the server could not find the requested resource", details={})
    if verb not in sub.verbs:
        raise _not_allowed()
    if connects:
        return run_command if route.subresource == "exec" else refuse_connection
    if route.subresource == "scale":
        verbs: Mapping[str, Verb] = _SCALE
    else:
        verbs = _SUBRESOURCES.get((resource.storage, route.subresource), _HALVES)
    handler = verbs.get(verb)
    if handler is None:
        raise _not_allowed()
    return handler


def _not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource", details={})


WARNING_CHARS = 4 * 1024
"""Limit of all warnings in a response; beyond it, each is truncated."""
CUT_WARNING_CHARS = 256


def _warnings(texts: list[str]) -> str:
    """Return ``299 - "text"`` for each warning, one header per line (apimachinery ``net.NewWarningHeader``, apiserver
    ``warning.go``); drop texts that a header cannot carry."""
    sound = [text for text in texts if not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text)]
    if sum(map(len, sound)) > WARNING_CHARS:
        sound = _cut(sound)
    return "\n".join('299 - "' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in sound)


def _cut(texts: list[str]) -> list[str]:
    kept: list[str] = []
    written = 0
    for text in texts:
        if written >= WARNING_CHARS:
            break
        kept.append(text[:CUT_WARNING_CHARS])
        written += len(kept[-1])
    return kept
