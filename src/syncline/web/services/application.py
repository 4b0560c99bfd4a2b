"""ApplicationService: lists, gets and watches Applications.

Rules: Argo CD ``server/application/application.go``. What a caller may not see is left out of lists and watches; a
single Application that is missing and one without permission get the same refusal, unless the caller names its project.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of, resource_version
from syncline.kube.protobuf.writing import Encoded
from syncline.kube.selectors import Selector, SelectorError, parse_label_selector
from syncline.web.access import Access, Caller
from syncline.web.state import APPLICATIONS, Event, State, hidden, not_found
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError

REFRESH = "argocd.argoproj.io/refresh"
HYDRATE = "argocd.argoproj.io/hydrate"


@dataclass(frozen=True, slots=True)
class Applications:
    """The service; see :meth:`handlers`."""

    state: State
    access: Access

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        service = "/application.ApplicationService/"
        return {service + "List": self.list, service + "Get": self.get, service + "Watch": self.watch}

    async def list(self, call: Call, query: Obj) -> Obj:
        """Return the Applications that a query selects and its caller may get, by name."""
        chosen = _Chosen.of(query)
        apps = [
            self.state.application(app)
            for app in self.state.applications(query.get("appNamespace", ""))
            if chosen.takes(app) and self._may(call.caller, "get", app)
        ]
        revision = self.state.cache.observed_revision(APPLICATIONS)
        return {"metadata": {"resourceVersion": str(revision or "")}, "items": apps}

    async def get(self, call: Call, query: Obj) -> Encoded:
        """Return one Application; with ``refresh`` once a controller has compared it."""
        projects = _projects(query)
        if len(projects) > 1:
            raise RpcError(
                Code.INVALID_ARGUMENT,
                "multiple projects specified - the get endpoint accepts either zero or one project",
            )
        namespace = query.get("appNamespace") or self.state.namespace
        app = await self.permitted(call.caller, "get", "".join(projects), namespace, query.get("name", ""))
        if "refresh" not in query:
            return self.state.application(app)
        return await self._refreshed(app, "hard" if query["refresh"] == "hard" else "normal")

    async def permitted(self, caller: Caller, action: str, project: str, namespace: str, name: str) -> Obj:
        """Return an Application on which a caller may carry out ``action``; ``project``: where the caller knows it to
        be, or empty. Raises :class:`RpcError`."""
        if not self.state.permits(namespace):
            raise RpcError(Code.PERMISSION_DENIED, f"namespace '{namespace}' is not permitted")
        known = project and self.access.permits(caller, "applications", action, self._name(project, namespace, name))
        try:
            app = await self.state.fresh(APPLICATIONS, namespace, name)
        except ApiError as error:
            if error.reason == "NotFound" and known:
                raise not_found(name) from None
            raise hidden(error) from None
        if project and not known:
            raise RpcError(Code.PERMISSION_DENIED, "permission denied")
        if not self._may(caller, action, app) or (project and _project(app) != project):
            raise not_found(name) if project else RpcError(Code.PERMISSION_DENIED, "permission denied")
        return app

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
            return chosen.takes(app) and self._may(call.caller, "get", app)

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

    def _may(self, caller: Caller, action: str, app: Obj) -> bool:
        name = self._name(_project(app), namespace_of(app), name_of(app))
        return self.access.permits(caller, "applications", action, name)

    def _name(self, project: str, namespace: str, name: str) -> str:
        """Return how rights name an Application: its namespace stands in it unless it is the control namespace."""
        return f"{project}/{name}" if namespace == self.state.namespace else f"{project}/{namespace}/{name}"


def _project(app: Obj) -> str:
    return dig(app, "spec", "project") or "default"


def _projects(query: Obj) -> list[str]:
    return [*(query.get("projects") or ()), *(query.get("project") or ())]


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
        return cls(query.get("name") or "", frozenset(_projects(query)), query.get("repo") or "", selector)

    def takes(self, app: Obj) -> bool:
        if self.name and name_of(app) != self.name:
            return False
        if self.projects and _project(app) not in self.projects:
            return False
        if self.selector is not None and not self.selector.matches(labels_of(app)):
            return False
        if not self.repo:
            return True
        sources = dig(app, "spec", "sources") or [dig(app, "spec", "source") or {}]
        return any(source.get("repoURL") == self.repo for source in sources)
