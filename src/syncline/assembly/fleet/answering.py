"""Reads an agent's cluster to answer a question about one Application: :class:`SpokeReader`.

The agent may read far more than the person who asks, so it shows only what is the Application's own: objects that the
project permits, that carry the tracking mark of the Application, and what they own. Values of Secrets are masked.
It sends GETs only, and a bounded number.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import ClassVar, Final

from syncline.apply.diff import hide_secret
from syncline.argo.clusters import destination_of
from syncline.argo.tracking import instance_name
from syncline.assembly.inspection.differences import AppDifferences, application_differences
from syncline.assembly.inspection.pulled import PulledCache, pulled
from syncline.assembly.inspection.resource_tree import ResourceNode, resource_tree, tree_rows
from syncline.assembly.inspection.snapshot import application_indices, system_of
from syncline.assembly.inspection.streams import POD, Stream, chosen, streams_of
from syncline.control.cache import Cache
from syncline.fleet.pull.names import GITOPS_NAMESPACE
from syncline.fleet.pull.queries.model import Ask, Question
from syncline.fleet.spoke.queries.answering import Found, Unanswerable, size_of
from syncline.gitops.application.manifests import ManifestStore, SourceReader
from syncline.gitops.application.observing.observe import AppObserved, AppSettings, observe_application
from syncline.gitops.application.problems import spec_problems
from syncline.gitops.comparison.compare import asks_server
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import ApiError, Unavailable
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, namespace_of, ref_of

MAX_REQUESTS: Final = 2000
MAX_READ: Final = 64 * 1024 * 1024
"""Bytes that one answer may read."""
PATIENCE: Final = timedelta(seconds=60)
"""Time after which an answer sends no more requests."""
MAX_STREAMS: Final = 50
"""Containers whose logs are in one answer."""
SECRET: Final = GroupKind("", "Secret")
Sources = Callable[[Cache, str], AbstractContextManager[SourceReader]]
"""Opens a reader of repositories, given a snapshot and the namespace of Argo CD's objects."""
NOT_OWN: Final = "it is not tracked by the Application"


@dataclass(slots=True)
class Bounded:
    """A transport that lets GETs through, up to the bounds of one answer."""

    inner: Transport
    now: Callable[[], datetime]
    ends: datetime = field(init=False)
    requests: int = 0
    read: int = 0

    def __post_init__(self) -> None:
        self.ends = self.now() + PATIENCE

    def send(self, request: Request) -> Response:
        assert request.method == "GET", "answers only read"
        if self.requests >= MAX_REQUESTS or self.read >= MAX_READ or self.now() >= self.ends:
            text = f"the agent stopped after {self.requests} requests and {self.read} bytes; ask for fewer objects"
            return Response.refused(Unavailable(text))
        answer = self.inner.send(request)
        self.requests += 1
        self.read += len(answer.raw)
        return answer


@dataclass(frozen=True)
class _Seen:
    """An Application and its cluster, for one answer."""

    app: Obj
    cache: PulledCache
    observed: AppObserved
    transport: Bounded

    @property
    def hidden(self) -> frozenset[str]:
        return frozenset(self.observed.system.settings.hidden_annotations)


@dataclass(frozen=True, slots=True)
class SpokeReader:
    """``transport``: sends requests to the cluster and waits; ``allow_local``: repositories may be paths on the agent's
    machine, as where its cluster runs there."""

    transport: Transport
    now: Callable[[], datetime]
    allow_local: bool = False
    sources: Sources | None = None
    """Reads the repositories; None: with the credentials that the cluster has."""

    def find(self, question: Question, app: Obj) -> Found:
        """Answer a question. Raises :class:`Unanswerable`."""
        try:
            seen = self._look(app)
            found = self._ASKS[question.ask](self, question, seen)
        except ApiError as error:
            raise Unanswerable(f"the cluster could not be read: {error}") from error
        return replace(found, notes=(*found.notes, *seen.cache.sentences()))

    def _look(self, app: Obj) -> _Seen:
        transport = Bounded(self.transport, self.now)
        cache = pulled(transport, application_indices(AppSettings()))
        settings = AppSettings(control_namespace=_control_namespace(cache, app))
        cache.secrets_of = settings.control_namespace
        system = system_of(cache, settings)
        cache.put(GroupKind("argoproj.io", "Application"), app)
        cache.followed.append(app)
        observed = observe_application(cache, ref_of(app), ManifestStore(), settings, system=system)
        assert observed is not None, "an Application that was put into the cache is there"
        where = destination_of(app, observed.clusters)
        if isinstance(where, str):
            raise Unanswerable(where)
        if not where.is_here:
            raise Unanswerable(f"it deploys to cluster {where.name}; agents read their own cluster only")
        if observed.project is None:
            texts = [one.message for one in spec_problems(observed)] or [f"{observed.view.project} does not exist"]
            raise Unanswerable(observed.view.mask(f"its project: {'; '.join(texts)}"))
        return _Seen(app, cache, observed, transport)

    # -- questions ---------------------------------------------------------------------------------------------------

    def _resources(self, question: Question, seen: _Seen) -> Found:
        nodes = chosen(_trees(seen), question.select)
        return Found(tuple(tree_rows(nodes)))

    def _manifests(self, question: Question, seen: _Seen) -> Found:
        if question.source == "live":
            roots = [node.live for node in _trees(seen, deep=False) if node.live is not None]
            return Found(tuple(_masked(seen, one) for one in roots if question.fits(ref_of(one))))
        found = self._differences(seen)
        return Found(tuple(one for one in found.manifests if question.fits(ref_of(one))), _unread(found))

    def _diff(self, question: Question, seen: _Seen) -> Found:
        found = self._differences(seen)
        rows = [
            {**one.ref._asdict(), "live": one.live, "wanted": one.wanted}
            for one in found.modified
            if question.fits(one.ref)
        ]
        unread = [{**ref._asdict(), "unread": True} for ref in found.unread if question.fits(ref)]
        server_side = asks_server(seen.app, seen.observed.system.parameters.server_side_diff)
        note = ("agents compare without dry runs: fields that the API server fills in may differ",)
        return Found((*rows, *unread), note if server_side else ())

    def _logs(self, question: Question, seen: _Seen) -> Found:
        trees = chosen(_trees(seen), question.select)
        streams = streams_of(trees, question.container, question.select.namespace)
        pods = seen.cache.mapper.find(POD)
        if not streams or pods is None:
            raise Unanswerable("no pods to read; `syncline app resources NAME -o tree` shows what there is")
        some = streams[question.offset : question.offset + MAX_STREAMS]
        most = question.limit // max(len(some), 1)
        query = _log_query(question, most // 2)
        rows: list[Obj] = [{}] * min(question.offset, len(streams))
        for stream in some:
            answer = seen.transport.send(stream.request(pods, query))
            rows.append(_log_row(stream, answer, question.lines, most))
        more = len(streams) - len(rows)
        notes = (f"the logs of {more} more containers are left out; choose with --kind, --name, --container",)
        return Found(tuple(rows), notes if more > 0 else ())

    _ASKS: ClassVar = {Ask.RESOURCES: _resources, Ask.MANIFESTS: _manifests, Ask.DIFF: _diff, Ask.LOGS: _logs}

    def _differences(self, seen: _Seen) -> AppDifferences:
        control = seen.observed.settings.control_namespace
        settings = seen.observed.settings
        with (self.sources or self._repositories)(seen.cache, control) as reader:
            found = application_differences(seen.cache, seen.app, reader, settings, self.now())
        if found.problems:
            raise Unanswerable("; ".join(found.problems))
        return found

    def _repositories(self, cache: Cache, control: str) -> AbstractContextManager[SourceReader]:
        from syncline.assembly.inspection.sourced import reader_for  # most agents are never asked for it

        return reader_for(cache, control, allow_local=self.allow_local)


def _control_namespace(cache: Cache, app: Obj) -> str:
    """Return where Argo CD's objects are: the first usual namespace that has the Application's project."""
    project = str(dig(app, "spec", "project") or "default")
    usual = (namespace_of(app), "argocd", GITOPS_NAMESPACE)
    found = (one for one in usual if cache.get(ObjectRef(*APP_PROJECT.group_kind, one, project)) is not None)
    return next(found, namespace_of(app))


def _trees(seen: _Seen, *, deep: bool = True) -> tuple[ResourceNode, ...]:
    """Return the trees of the Application's own objects; a row that names another object has only that as its reason.

    The status of an Application is written by more people than its manifests: a row proves nothing.
    """
    rows = [row for row in dig(seen.app, "status", "resources", default=[]) if isinstance(row, dict)]
    refused = [_refused(seen, row) for row in rows]
    own = [row for row, why in zip(rows, refused, strict=True) if not why]
    if deep:
        found = iter(resource_tree(seen.cache, {**seen.app, "status": {"resources": own}}))
    else:
        found = (ResourceNode(_ref(row), seen.cache.get(_ref(row)), row) for row in own)
    return tuple(
        ResourceNode(_ref(row), None, {}, unread=why) if why else next(found)
        for row, why in zip(rows, refused, strict=True)
    )


def _ref(row: Obj) -> ObjectRef:
    return ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name")))


def _refused(seen: _Seen, row: Obj) -> str:
    ref = _ref(row)
    why = seen.observed.reach.refuses_own(ref)
    live = None if why else seen.cache.get(ref)
    tracking, settings = seen.observed.settings.tracking, seen.observed.settings
    if live is not None and tracking.app_name(live) != instance_name(seen.app, settings.control_namespace):
        return NOT_OWN
    return why


def _masked(seen: _Seen, obj: Obj) -> Obj:
    shown = hide_secret(None, obj, seen.hidden)[1] if ref_of(obj).group_kind == SECRET else obj
    assert shown is not None, "what is live stays so"
    return shown


def _unread(found: AppDifferences) -> tuple[str, ...]:
    return tuple(f"{ref} may not be read" for ref in found.unread)


def _log_query(question: Question, bytes_each: int) -> dict[str, str]:
    query = {"tailLines": str(question.lines), "limitBytes": str(max(bytes_each, 1000))}
    query |= {"sinceSeconds": str(question.since_s)} if question.since_s else {}
    query |= {"previous": "true"} if question.previous else {}
    return query | ({"timestamps": "true"} if question.timestamps else {})


def _log_row(stream: Stream, answer: Response, lines: int, most: int) -> Obj:
    """Return the log of a container in at most ``most`` bytes as JSON; ``cut``: the log is longer."""
    row: Obj = {"namespace": stream.namespace, "pod": stream.pod, "container": stream.container}
    if not answer.ok:
        return row | {"error": str(answer.refusal())}
    raw = answer.raw[: most // 2]
    text = raw.decode("utf-8", "replace")
    cut = len(raw) >= most // 2 or text.count("\n") >= lines
    while text and size_of(row | {"text": text, "cut": True}) > most:
        text, cut = text[len(text) // 2 :], True
    return row | {"text": text, **({"cut": True} if cut else {})}
