"""Lists, gets and watches Applications: :class:`Reading`.

Rules: Argo CD ``server/application/application.go``. What a caller may not see is left out of lists and watches.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of, resource_version
from syncline.kube.protobuf.writing import Encoded
from syncline.kube.selectors import Selector, SelectorError, parse_label_selector
from syncline.web.services.application.finding import Finder, project_of, projects_of
from syncline.web.state import APPLICATIONS, Event, State, not_found
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError

REFRESH = "argocd.argoproj.io/refresh"
HYDRATE = "argocd.argoproj.io/hydrate"


@dataclass(frozen=True, slots=True)
class Reading:
    """The methods that read; see :meth:`handlers`."""

    finder: Finder

    @property
    def state(self) -> State:
        return self.finder.state

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the methods."""
        service = "/application.ApplicationService/"
        return {service + "List": self.list, service + "Get": self.get, service + "Watch": self.watch}

    async def list(self, call: Call, query: Obj) -> Obj:
        """Return the Applications that a query selects and its caller may get, by name."""
        chosen = _Chosen.of(query)
        apps = [
            self.state.application(app)
            for app in self.state.applications(query.get("appNamespace", ""))
            if chosen.takes(app) and self.finder.may(call.caller, "get", app)
        ]
        revision = self.state.cache.observed_revision(APPLICATIONS)
        return {"metadata": {"resourceVersion": str(revision or "")}, "items": apps}

    async def get(self, call: Call, query: Obj) -> Encoded:
        """Return one Application; with ``refresh`` once a controller has compared it."""
        projects = projects_of(query)
        if len(projects) > 1:
            raise RpcError(
                Code.INVALID_ARGUMENT,
                "multiple projects specified - the get endpoint accepts either zero or one project",
            )
        where = query.get("appNamespace", ""), query.get("name", "")
        app = await self.finder.permitted(call.caller, "get", "".join(projects), *where)
        if "refresh" not in query:
            return self.state.application(app)
        return await self._refreshed(app, "hard" if query["refresh"] == "hard" else "normal")

    async def _refreshed(self, app: Obj, how: str) -> Encoded:
        """Ask for a comparison, and wait until the controller has made it."""
        body = {"metadata": {"annotations": {REFRESH: how, HYDRATE: how}}}
        key = namespace_of(app), name_of(app)
        with self.state.watching() as events:
            asked = await self.state.send(APPLICATIONS, client.patch, *key, PatchType.MERGE, body)
            least = int(resource_version(asked) or 0)
            while True:
                event = await events.get()
                if event is None:
                    raise RpcError(Code.ABORTED, "too many changes at once; ask again")
                found = event.app
                if (namespace_of(found), name_of(found)) != key or int(resource_version(found) or 0) <= least:
                    continue
                if event.type == "DELETED":
                    raise not_found(key[1])
                if REFRESH not in (dig(found, "metadata", "annotations", default={}) or {}):
                    return event.application

    async def watch(self, call: Call, query: Obj) -> AsyncIterator[Any]:
        """Yield the Applications that are there, unless the caller says since when, and then every change."""
        chosen = _Chosen.of(query)
        namespace = query.get("appNamespace") or self.state.namespace
        least = int(query.get("resourceVersion") or 0) if (query.get("resourceVersion") or "0").isdigit() else 0

        def wanted(app: Obj) -> bool:
            version = resource_version(app)
            if least and version.isdigit() and int(version) <= least:
                return False
            if chosen.name and (name_of(app) != chosen.name or namespace_of(app) != namespace):
                return False
            return chosen.takes(app) and self.finder.may(call.caller, "get", app)

        with self.state.watching() as events:
            if not query.get("resourceVersion") or chosen.name:
                for app in self.state.applications():
                    if wanted(app):
                        yield Event("ADDED", app, self.state.application(app)).encoded
            while True:
                event = await events.get()
                if event is None:
                    raise RpcError(Code.ABORTED, "the watch is too far behind; list again")
                if wanted(event.app):
                    yield event.encoded


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What a query selects."""

    name: str
    projects: frozenset[str]
    repo: str
    selector: Selector | None

    @classmethod
    def of(cls, query: Obj) -> _Chosen:
        text = query.get("selector") or ""
        try:
            selector = parse_label_selector(text) if text else None
        except SelectorError as error:
            raise RpcError(Code.UNKNOWN, f"error parsing the selector: {error}") from None
        return cls(query.get("name") or "", frozenset(projects_of(query)), query.get("repo") or "", selector)

    def takes(self, app: Obj) -> bool:
        if self.name and name_of(app) != self.name:
            return False
        if self.projects and project_of(app) not in self.projects:
            return False
        if self.selector is not None and not self.selector.matches(labels_of(app)):
            return False
        if not self.repo:
            return True
        sources = dig(app, "spec", "sources") or [dig(app, "spec", "source") or {}]
        return any(source.get("repoURL") == self.repo for source in sources)
