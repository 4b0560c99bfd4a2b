"""Requests to the Kubernetes API and their responses, as data: :class:`Request` and :class:`Response`.

A :class:`Request` is HTTP-shaped and has no socket: the embedded API handles it in process
(``cluster/serving/direct.py``), ``kube/transport/http.py`` sends it to any Kubernetes API, fault injection may drop it.
Rooms build requests with the functions below and never write a path by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from syncline.kube.errors import ApiError, error_from_status
from syncline.kube.objects import Obj, ResourceInfo, name_of, namespace_of
from syncline.kube.transport.outbound import NO_NETWORK, Aside, Computation, OutboundCall, Outcome, Stream

MAX_HEADER_DIGITS = 9


class PatchType(StrEnum):
    """The content types of the four kinds of patch."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Request:
    """One API call. ``path`` has no query; ``headers`` have lower-case names.

    ``body`` is a decoded object, or bytes to send unchanged.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Not in ``repr``: they may hold a token."""
    body: Any = field(default=None, repr=False)
    """Not in ``repr``: it may be a Secret."""
    cluster: str = ""
    """The name of the target cluster; empty: the one that the transport reaches."""
    raw_query: str = ""
    """The query as received, for the few paths with repeated parameters; ``query`` has the first value of each."""

    def describe(self) -> str:
        return f"{self.method} {self.path}" + (f" on {self.cluster}" if self.cluster else "")


@dataclass(slots=True)
class Response:
    """A response with ``obj`` (decoded) or ``raw`` (encoded); each is computed from the other on demand.

    A watch sets ``stream`` instead. ``revision`` is the store revision that the response depends on; the server delays
    the response until that is on disk (0: no delay).
    """

    status: int
    _obj: Any = None
    _raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None
    revision: int = 0
    session: Session | None = None
    """Set instead for a connection to a container."""
    pending: Pending | None = None
    """Set instead if other servers must be called first (``outbound``)."""
    annotations: Mapping[str, str] | None = None
    """Audit annotations from admission."""
    error: ApiError | None = None
    """The error that it was made from, if that happened in this process."""

    @classmethod
    def of(cls, status: int, obj: Any, headers: Mapping[str, str] | None = None, revision: int = 0) -> Response:
        return cls(status, _obj=obj, headers=headers or {}, revision=revision)

    @classmethod
    def encoded(cls, status: int, raw: bytes, headers: Mapping[str, str] | None = None, revision: int = 0) -> Response:
        return cls(status, _raw=raw, headers=headers or {}, revision=revision)

    @classmethod
    def refused(cls, error: ApiError) -> Response:
        return cls(error.code, _obj=error.to_status(), error=error)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def raw(self) -> bytes:
        if self._raw is None:
            self._raw = b"" if self._obj is None else msgspec.json.encode(self._obj)
        return self._raw

    @property
    def obj(self) -> Any:
        """The decoded JSON body; text if it is not JSON. Read-only."""
        if self._obj is None and self._raw:
            try:
                self._obj = msgspec.json.decode(self._raw)
            except msgspec.DecodeError:
                self._obj = self._raw.decode("utf-8", "replace")
        return self._obj

    def or_raise(self) -> Any:
        """Return the decoded body of a success; otherwise raise its :class:`ApiError`."""
        if not self.ok:
            raise self.refusal()
        return self.obj

    def refusal(self) -> ApiError:
        """Return the :class:`ApiError` of a failed response, including the Retry-After header."""
        if self.error is not None:
            return self.error
        error = error_from_status(self.obj, self.status)
        after = self.headers.get("retry-after", "")
        if after.isdecimal() and len(after) <= MAX_HEADER_DIGITS:
            error.details.setdefault("retryAfterSeconds", int(after))
        return error


class Pending(Protocol):
    """A request that waits for outbound calls."""

    @property
    def calls(self) -> Sequence[OutboundCall | Computation | Aside]:
        """The calls to make concurrently."""
        ...

    def abandon(self) -> None:
        """Cancel: no caller waits for the response any more."""
        ...

    def resume(self, outcomes: Sequence[Outcome]) -> Response:
        """Continue with one outcome per call; return the response, or one that is pending again."""
        ...


class Session(Protocol):
    """A command in a container, with its streams."""

    def start(self, tell: Callable[[int, bytes], None], ended: Callable[[int], None]) -> None:
        """Begin to pass output to ``tell`` (stream 1, or 2 for errors) and the exit code to ``ended``; from any
        thread."""
        ...

    def write(self, data: bytes) -> None:
        """Write to its standard input; may block."""
        ...

    def close_input(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None:
        """Resize its terminal."""
        ...

    def close(self) -> None:
        """Stop the command; ``ended`` is still called."""
        ...


@runtime_checkable
class ObjectStream(Stream, Protocol):
    """A watch in the same process, which can return decoded objects."""

    def take_objects(self, limit: int = 1000) -> list[tuple[str, Obj]]:
        """Like :meth:`take`, but return type and object of each event. Read-only."""
        ...


Batch: TypeAlias = "list[bytes] | list[tuple[str, Obj]]"
"""Watch events, encoded or as pairs of type and object."""


def taking(stream: Stream) -> Callable[[int], Batch]:
    """Return the method that takes events from a stream, decoded ones if it has them."""
    return stream.take_objects if isinstance(stream, ObjectStream) else stream.take


class Transport(Protocol):
    """Sends requests and returns the response at once: the embedded API in process, live or virtual."""

    def send(self, request: Request) -> Response:
        """Return the response, also for an error; does not raise."""
        ...


def _query(**values: str | int | bool | None) -> dict[str, str]:
    return {
        key: ("true" if value is True else str(value))
        for key, value in values.items()
        if value not in (None, "", False)
    }


def get(info: ResourceInfo, namespace: str, name: str, subresource: str = "") -> Request:
    return Request("GET", info.path(namespace, name, subresource))


def list_(
    info: ResourceInfo,
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    limit: int = 0,
    continue_: str = "",
    metadata: bool = False,
) -> Request:
    """``metadata``: ask for the metadata of the objects only; a server that cannot do that sends all of them."""
    query = _query(labelSelector=label_selector, fieldSelector=field_selector, limit=limit or None)
    if continue_:
        query["continue"] = continue_
    return Request("GET", info.path(namespace), query, _metadata("PartialObjectMetadataList") if metadata else {})


def watch(
    info: ResourceInfo,
    namespace: str = "",
    *,
    resource_version: str = "",
    label_selector: str = "",
    field_selector: str = "",
    metadata: bool = False,
) -> Request:
    """``metadata``: as for :func:`list_`."""
    query = _query(
        watch=True,
        allowWatchBookmarks=True,
        resourceVersion=resource_version,
        labelSelector=label_selector,
        fieldSelector=field_selector,
    )
    return Request("GET", info.path(namespace), query, _metadata("PartialObjectMetadata") if metadata else {})


def _metadata(shape: str) -> dict[str, str]:
    return {"accept": f"application/json;as={shape};g=meta.k8s.io;v=v1,application/json"}


def create(
    info: ResourceInfo,
    obj: Obj,
    *,
    namespace: str = "",
    name: str = "",
    subresource: str = "",
    dry_run: bool = False,
    field_manager: str = "",
    field_validation: str = "",
) -> Request:
    """POST to the collection, or to a subresource when ``name`` and ``subresource`` are given."""
    path = info.path(namespace or namespace_of(obj), name, subresource)
    query = _query(dryRun="All" if dry_run else "", fieldManager=field_manager, fieldValidation=field_validation)
    return Request("POST", path, query, body=obj)


def update(
    info: ResourceInfo,
    obj: Obj,
    *,
    subresource: str = "",
    dry_run: bool = False,
    field_manager: str = "",
    field_validation: str = "",
) -> Request:
    """PUT of the whole object; its metadata.resourceVersion is the precondition."""
    query = _query(dryRun="All" if dry_run else "", fieldManager=field_manager, fieldValidation=field_validation)
    return Request("PUT", info.path(namespace_of(obj), name_of(obj), subresource), query, body=obj)


def patch(
    info: ResourceInfo,
    namespace: str,
    name: str,
    kind: PatchType,
    body: Any,
    *,
    subresource: str = "",
    dry_run: bool = False,
    field_manager: str = "",
    field_validation: str = "",
    force: bool = False,
) -> Request:
    query = _query(
        dryRun="All" if dry_run else "",
        fieldManager=field_manager,
        fieldValidation=field_validation,
        force=force,
    )
    headers = {"content-type": kind.value}
    return Request("PATCH", info.path(namespace, name, subresource), query, headers, body)


def server_side_apply(
    info: ResourceInfo,
    obj: Obj,
    *,
    field_manager: str,
    force: bool = False,
    dry_run: bool = False,
    subresource: str = "",
    field_validation: str = "",
) -> Request:
    return patch(
        info,
        namespace_of(obj),
        name_of(obj),
        PatchType.APPLY,
        obj,
        subresource=subresource,
        dry_run=dry_run,
        field_manager=field_manager,
        field_validation=field_validation,
        force=force,
    )


def _delete_options(
    uid: str, resource_version: str, propagation: str, grace_period_s: int | None, dry_run: bool
) -> Obj | None:
    options: Obj = {"kind": "DeleteOptions", "apiVersion": "v1"}
    preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v}
    if preconditions:
        options["preconditions"] = preconditions
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    if dry_run:
        options["dryRun"] = ["All"]
    return options if len(options) > 2 else None


def delete(
    info: ResourceInfo,
    namespace: str,
    name: str,
    *,
    uid: str = "",
    resource_version: str = "",
    propagation: str = "",
    grace_period_s: int | None = None,
    dry_run: bool = False,
) -> Request:
    """DELETE one object; ``propagation`` is Foreground, Background or Orphan."""
    body = _delete_options(uid, resource_version, propagation, grace_period_s, dry_run)
    return Request("DELETE", info.path(namespace, name), body=body)


def evict(info: ResourceInfo, namespace: str, name: str, *, uid: str = "", dry_run: bool = False) -> Request:
    """POST pods/NAME/eviction; returns 429 if a disruption budget forbids it."""
    body: Obj = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    options = _delete_options(uid, "", "", None, dry_run)
    if options:
        body["deleteOptions"] = options
    return Request("POST", info.path(namespace, name, "eviction"), body=body)


def settle(answer: Response, call: Callable[[OutboundCall], Outcome] | None) -> Response:
    """Make the outbound calls of ``answer`` in place until it is complete; without ``call`` every call fails."""
    while answer.pending is not None:
        pending = answer.pending
        answer = pending.resume([_called(one, call) for one in pending.calls])
    return answer


def _called(one: OutboundCall | Computation | Aside, call: Callable[[OutboundCall], Outcome] | None) -> Outcome:
    if isinstance(one, Computation):
        return Outcome(value=one.function(*one.arguments))
    if isinstance(one, Aside):
        one.run()
        return Outcome()
    return call(one) if call is not None else Outcome(failure=f'{one.method.capitalize()} "{one.url}": {NO_NETWORK}')
