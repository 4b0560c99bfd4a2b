"""Proxy aggregated APIs: find the server of a group, forward requests, and list what it serves.

``api`` calls it for each request while an APIService names a Service, and ``discovery`` for merged lists. It follows
the store. The code that hosts the API makes the calls (``kube.outbound``). Source: kube-aggregator ``pkg/apiserver``
(handler_proxy.go, handler_apis.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import msgspec

from syncline.cluster.access.users import UserInfo
from syncline.cluster.admission.dynamic.hooks import authority_pem
from syncline.cluster.admission.dynamic.services import reach
from syncline.cluster.storage.store import Event, Store
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.transport.outbound import OutboundCall, Outcome

API_SERVICES = "apiregistration.k8s.io/apiservices"
CALL_S = 60.0
"""Longest wait in seconds for another server's response to begin (Kubernetes' ``--request-timeout``)."""
DEFAULT_PORT = 443
MOST_SIMULATED = 100
"""Resources of a simulated server."""
_TEXT = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
_KEPT_BACK = frozenset(
    (
        *("authorization", "connection", "content-length", "host", "keep-alive", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "accept-encoding"),
    )
)
"""Headers that are not forwarded: credentials, and headers of the connection."""
_NOT_ANSWERED = frozenset(
    ("connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding", "date")
)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """One APIService that names a Service."""

    group: str
    version: str
    namespace: str
    service: str
    port: int
    ca_pem: str
    insecure: bool
    available: bool
    group_priority: int
    version_priority: int


def is_available(obj: Obj) -> bool:
    conditions = dig(obj, "status", "conditions", default=[]) or []
    return any(one.get("type") == "Available" and one.get("status") == "True" for one in conditions)


def _aggregated(obj: Obj) -> Aggregated | None:
    spec: Obj = obj.get("spec") or {}
    service = spec.get("service")
    if not isinstance(service, dict):
        return None
    return Aggregated(
        str(spec.get("group") or ""),
        str(spec.get("version") or ""),
        str(service.get("namespace") or ""),
        str(service.get("name") or ""),
        int(service.get("port") or DEFAULT_PORT),
        authority_pem(spec.get("caBundle")),
        bool(spec.get("insecureSkipTLSVerify")),
        is_available(obj),
        int(spec.get("groupPriorityMinimum") or 0),
        int(spec.get("versionPriority") or 0),
    )


class Aggregation:
    """The aggregated APIs of a cluster. Requests check only ``active`` if there are none; ``generation`` changes with
    discovery."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: dict[tuple[str, str], Aggregated] = {}
        self._names: dict[str, tuple[str, str]] = {}
        self._served: dict[tuple[str, str], list[Obj]] = {}
        self.active = False
        self.generation = 0
        for stored in store.list(API_SERVICES):
            self._learn(stored.obj)
        store.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        if event.stored.key.resource == API_SERVICES:
            self._forget(event.stored.key.name)
            if self._store.get(event.stored.key) is not None:
                self._learn(event.stored.obj)
            self.active = bool(self._entries)

    def _learn(self, obj: Obj) -> None:
        found = _aggregated(obj)
        if found is not None:
            key = (found.group, found.version)
            self._entries[key] = found
            self._names[name_of(obj)] = key
            self.active = True
            self.generation += 1

    def _forget(self, name: str) -> None:
        key = self._names.pop(name, None)
        if key is not None:
            self._entries.pop(key, None)
            self.generation += 1

    # -- asking ---------------------------------------------------------------------------------------------------

    def find(self, path: str) -> Aggregated | None:
        """Return the server of ``/apis/GROUP/VERSION`` and all paths below it."""
        parts = path.split("/", 4)
        return self._entries.get((parts[2], parts[3])) if len(parts) > 3 and parts[1] == "apis" else None

    def entries(self) -> list[Aggregated]:
        """Return the entries in discovery order: groups by priority, better versions first."""
        return sorted(
            self._entries.values(), key=lambda e: (-e.group_priority, e.group, -e.version_priority, e.version)
        )

    def resources(self, group: str, version: str) -> list[Obj]:
        """Return the resources that the server listed last."""
        return self._served.get((group, version), [])

    # -- handing on -----------------------------------------------------------------------------------------------

    def forward(self, request: Request, user: UserInfo, entry: Aggregated, *, streams: bool) -> Response:
        """Return a pending response of the other server; 503 if it is unavailable. Its resource list is always
        requested, because that request decides whether it is available."""
        listing = request.path.strip("/").count("/") == 2
        if not entry.available and not listing:
            return _away("service unavailable")
        reached = reach(self._store, entry.namespace, entry.service, entry.port)
        if reached.simulated:
            return self._simulated(request, entry, reached.simulated, streams=streams)
        if reached.address is None:
            return _away(f"error trying to reach service: {reached.problem}")
        server = f"{entry.service}.{entry.namespace}.svc"
        query = request.raw_query or urlencode(request.query or {})
        path = quote(request.path, safe="/:@,;=+!$&'()*~")
        body = request.body
        call = OutboundCall(
            f"https://{server}:{entry.port}{path}{'?' if query else ''}{query}",
            body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body),
            CALL_S,
            request.method,
            _headers(request, user),
            entry.ca_pem,
            server,
            reached.address,
            entry.insecure,
            as_proxy=True,
            follow=False,
            streams=streams,
        )
        learn = (lambda raw: self._note(entry, raw)) if listing and request.method == "GET" else None
        return Response(202, pending=_Forwarded(call, learn))

    def _simulated(self, request: Request, entry: Aggregated, resources: str, *, streams: bool) -> Response:
        """Answer for a server whose pods are simulated: it lists its resources, and has no objects of them."""
        version = f"{entry.group}/{entry.version}"
        kinds = dict(one.partition("=")[::2] for one in resources.split(",")[:MOST_SIMULATED] if "=" in one)
        parts = request.path.strip("/").split("/")
        if len(parts) == 3:
            verbs = ["get", "list"]
            listed = [
                {"name": name, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": verbs}
                for name, kind in kinds.items()
            ]
            body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": listed}
            self._note(entry, msgspec.json.encode(body))
            return Response.of(200, body)
        kind = kinds.get(parts[-1], "")
        if request.method != "GET" or streams or not kind:
            return _away("nothing answers for the simulated pods of this API")
        return Response.of(200, {"kind": f"{kind}List", "apiVersion": version, "metadata": {}, "items": []})

    def _note(self, entry: Aggregated, raw: bytes) -> None:
        try:
            found = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            return  # The same response decides availability; here, the resources stay unknown.
        listed = found.get("resources") if isinstance(found, dict) else None
        resources = [one for one in listed or () if isinstance(one, dict) and one.get("name")]
        if resources != self._served.get((entry.group, entry.version)):
            self._served[(entry.group, entry.version)] = resources
            self.generation += 1


def _away(why: str) -> Response:
    return Response.encoded(503, f"{why}\n".encode(), _TEXT)


def _headers(request: Request, user: UserInfo) -> Mapping[str, str]:
    """Return the caller's headers without credentials, plus the front-proxy headers that name the user."""
    kept = {
        name: value
        for name, value in (request.headers or {}).items()
        if name not in _KEPT_BACK and not name.startswith(("impersonate-", "x-remote-"))
    }
    kept["x-remote-user"] = user.name
    if user.groups:
        kept["x-remote-group"] = "\n".join(user.groups)
    if user.uid:
        kept["x-remote-uid"] = user.uid
    for key, values in user.extra.items():
        kept[f"x-remote-extra-{quote(key.lower(), safe='')}"] = "\n".join(values)
    return kept


@dataclass(frozen=True, slots=True)
class _Forwarded:
    """A ``Pending`` of one call whose result is the response."""

    call: OutboundCall
    learn: Callable[[bytes], None] | None

    @property
    def calls(self) -> Sequence[OutboundCall]:
        return (self.call,)

    def abandon(self) -> None:
        return

    def resume(self, outcomes: Sequence[Outcome]) -> Response:
        outcome = outcomes[0]
        if outcome.failure:
            why = outcome.failure.partition('": ')[2] or outcome.failure
            return _away(f"error trying to reach service: {why}")
        headers = {name: value for name, value in outcome.headers.items() if name not in _NOT_ANSWERED}
        if outcome.stream is not None:
            return Response(outcome.status, headers=headers, stream=outcome.stream)
        if self.learn is not None and outcome.status == 200:
            self.learn(outcome.body)
        return Response.encoded(outcome.status, outcome.body, headers)
