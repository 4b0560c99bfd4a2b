"""ApplicationSetService. Rules: Argo CD ``server/applicationset/applicationset.go``; messages are upstream's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from syncline.appset.checking import merged, problem_of, project_of, same_set
from syncline.assembly.inspection.asking import asker
from syncline.assembly.inspection.sets import failure_lines, generated_set
from syncline.assembly.sources.reading import GitSourceReader
from syncline.control.cache import Cache
from syncline.kube import client
from syncline.kube.errors import ApiError
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    labels_of,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)
from syncline.kube.selectors import Selector, SelectorError, parse_label_selector
from syncline.web.access import Caller, require
from syncline.web.parts import Parts
from syncline.web.state import APPLICATIONS, CONFIG_MAP, PROJECTS, SECRET, SETS
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError

EVENT = GroupKind("", "Event")
MAX_TRIES = 10
"""Conflicts of one update, as upstream."""


@dataclass(frozen=True, slots=True)
class ApplicationSets:
    """The service; see :meth:`handlers`."""

    parts: Parts

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        service = "/applicationset.ApplicationSetService/"
        return {
            service + "List": self.list,
            service + "Get": self.get,
            service + "Create": self.create,
            service + "Delete": self.delete,
            service + "Watch": self.watch,
            service + "Generate": self.generate,
            service + "ResourceTree": self.tree,
            service + "ListResourceEvents": self.events,
        }

    async def list(self, call: Call, query: Obj) -> Obj:
        """Return the sets that a query selects and its caller may get, by name."""
        selector, projects = _selector(query), query.get("projects") or ()
        found = [
            one
            for one in self.parts.state.cache.objects(SETS, query.get("appsetNamespace", ""))
            if self._may_see(call.caller, one, selector, projects)
        ]
        revision = self.parts.state.cache.observed_revision(SETS)
        return {"metadata": {"resourceVersion": str(revision or "")}, "items": sorted(found, key=name_of)}

    async def get(self, call: Call, query: Obj) -> Obj:
        """Return one set."""
        return self._permitted(call.caller, query)

    async def watch(self, call: Call, query: Obj) -> AsyncIterator[Obj]:
        """Yield the set that a query names, and then every change of what it selects."""
        selector, projects = _selector(query), query.get("projects") or ()
        name, namespace = query.get("name", ""), query.get("appSetNamespace", "")
        text = query.get("resourceVersion") or ""
        least = int(text) if text.isdigit() and len(text) < 20 else 0

        def wanted(one: Obj) -> bool:
            version = resource_version(one)
            if version.isdigit() and int(version) < least:
                return False
            named = name in ("", name_of(one)) and namespace in ("", namespace_of(one))
            return named and self._may_see(call.caller, one, selector, projects)

        with self.parts.state.watching_sets() as events:
            for one in self.parts.state.cache.objects(SETS) if name else ():
                if wanted(one):
                    yield {"type": "ADDED", "applicationSet": one}
            while True:
                event = await events.get()
                if event is None:
                    raise RpcError(Code.ABORTED, "the watch is too far behind; list again")
                if wanted(event[1]):
                    yield {"type": event[0], "applicationSet": event[1]}

    async def create(self, call: Call, asked: Obj) -> Obj:
        """Store a set, or show what it would make (``dryRun``)."""
        wanted = await self._checked(call.caller, asked.get("applicationset"))
        if asked.get("dryRun"):
            resources = [_resource(app) for app in await self._generated(wanted)]
            return wanted | {"status": {"resources": resources, "resourcesCount": len(resources)}}
        try:
            return await self.parts.state.write(SETS, client.create, wanted)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        return await self._merged(call.caller, wanted, upsert=bool(asked.get("upsert")))

    async def _merged(self, caller: Caller, wanted: Obj, *, upsert: bool) -> Obj:
        for _ in range(MAX_TRIES):
            known = await self.parts.state.fresh(SETS, namespace_of(wanted), name_of(wanted))
            if same_set(known, wanted):
                return known
            if not upsert:
                message = "existing ApplicationSet spec is different, use upsert flag to force update"
                raise RpcError(Code.INVALID_ARGUMENT, message)
            self._require(caller, "update", wanted)
            if project_of(known) != project_of(wanted):
                self._require(caller, "create", wanted)
                self._require(caller, "update", known)
            try:
                return await self.parts.state.write(SETS, client.update, merged(known, wanted))
            except ApiError as error:
                if error.reason != "Conflict":
                    raise
        raise RpcError(Code.INTERNAL, "Failed to update ApplicationSets. Too many conflicts")

    async def delete(self, call: Call, query: Obj) -> Obj:
        """Delete a set; what becomes of its Applications is its policy."""
        namespace = self._namespace(query.get("appsetNamespace", ""))
        name = query.get("name", "")
        try:
            found = await self.parts.state.fresh(SETS, namespace, name)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            missing = f'error getting ApplicationSets: applicationsets.argoproj.io "{name}" not found'
            raise RpcError(Code.NOT_FOUND, missing) from None
        self._require(call.caller, "delete", found)
        await self.parts.state.write(SETS, client.delete, namespace, name)
        return {}

    async def generate(self, call: Call, asked: Obj) -> Obj:
        """Return the Applications that a set would make; nothing is stored."""
        wanted = await self._checked(call.caller, asked.get("applicationSet"))
        return {"applications": await self._generated(wanted)}

    async def tree(self, call: Call, query: Obj) -> Obj:
        """Return the Applications of a set as they stand in its status."""
        found = self._permitted(call.caller, query)
        parent = _reference(APPLICATION_SET.group, APPLICATION_SET.version, APPLICATION_SET.kind, found)
        nodes = [
            {
                **{key: one[key] for key in ("group", "version", "kind", "name", "health") if one.get(key)},
                "namespace": namespace_of(found),
                "parentRefs": [parent | {"uid": uid_of(found)}],
            }
            for one in dig(found, "status", "resources", default=[]) or []
        ]
        return {"nodes": sorted(nodes, key=lambda one: str(one.get("name")))}

    async def events(self, call: Call, query: Obj) -> Obj:
        """Return the Events about a set."""
        found = self._permitted(call.caller, query)
        about = {"name": name_of(found), "namespace": namespace_of(found), "uid": uid_of(found)}
        selector = ",".join(f"involvedObject.{key}={value}" for key, value in about.items())
        listed = await self.parts.state.send(EVENT, client.list_, namespace_of(found), field_selector=selector)
        return {"metadata": listed.get("metadata") or {}, "items": listed.get("items") or []}

    # -- who may what ------------------------------------------------------------------------------------------------

    def _namespace(self, given: str) -> str:
        namespace = given or self.parts.state.namespace
        if not self.parts.state.permits(namespace):
            raise RpcError(Code.PERMISSION_DENIED, f"namespace '{namespace}' is not permitted")
        return namespace

    def _right(self, found: Obj) -> str:
        """Return how rights name a set (upstream: ``RBACName``)."""
        namespace, name = namespace_of(found), name_of(found)
        here = namespace in ("", self.parts.state.namespace)
        return f"{project_of(found)}/{name}" if here else f"{project_of(found)}/{namespace}/{name}"

    def _require(self, caller: Caller, action: str, found: Obj) -> None:
        require(self.parts.access, caller, "applicationsets", action, self._right(found))

    def _may_see(self, caller: Caller, found: Obj, selector: Selector | None, projects: Sequence[str]) -> bool:
        return (
            self.parts.state.permits(namespace_of(found))
            and (selector is None or selector.matches(labels_of(found)))
            and (not projects or project_of(found) in projects)
            and self.parts.access.permits(caller, "applicationsets", "get", self._right(found))
        )

    def _permitted(self, caller: Caller, query: Obj) -> Obj:
        name, namespace = query.get("name", ""), self._namespace(query.get("appsetNamespace", ""))
        found = self.parts.state.cache.get(ObjectRef(*SETS, namespace, name))
        if found is None:
            message = f'error getting ApplicationSet: applicationset.argoproj.io "{name}" not found'
            raise RpcError(Code.NOT_FOUND, message)
        self._require(caller, "get", found)
        return found

    async def _checked(self, caller: Caller, given: object) -> Obj:
        """Return a set of a request in the form in which it is stored, for who may create it. Raises RpcError."""
        if not isinstance(given, dict) or not isinstance(given.get("metadata") or {}, dict):
            raise RpcError(Code.UNKNOWN, "error creating ApplicationSets: ApplicationSets is nil in request")
        metadata = given.get("metadata") or {}
        wanted = given | {
            "apiVersion": APPLICATION_SET.api_version,
            "kind": APPLICATION_SET.kind,
            "metadata": metadata | {"namespace": self._namespace(str(metadata.get("namespace") or ""))},
        }
        problem = problem_of(wanted)
        if problem:
            raise RpcError(Code.UNKNOWN, problem)
        name, project = name_of(wanted), project_of(wanted)
        try:
            self._require(caller, "create", wanted)
            if self.parts.state.project(project) is None:
                message = f"ApplicationSet references project {project} which does not exist"
                raise RpcError(Code.INVALID_ARGUMENT, message)
        except RpcError as error:
            prefix = f"error checking create permissions for ApplicationSets {name} : "
            raise RpcError(error.code, prefix + error.message) from None
        return wanted

    async def _generated(self, wanted: Obj) -> Sequence[Obj]:
        """Return the Applications of a set, by name. Raises :class:`RpcError` with every failure."""
        state, clock = self.parts.state, self.parts.clock
        cache = Cache(state.mapper)
        for kind in (APPLICATIONS, CONFIG_MAP, PROJECTS, SECRET, SETS):
            for one in state.cache.objects(kind):
                cache.put(kind, one)

        def work(reader: GitSourceReader) -> tuple[Sequence[Obj], Sequence[str]]:
            ask = asker(reader, cache, state.namespace, clock)
            found = generated_set(cache, wanted, state.namespace, ask, clock.now())
            return sorted((one.app for one in found.made), key=name_of), failure_lines(wanted, found.failures)

        apps, failures = await self.parts.content.ask(project_of(wanted), "", work)
        if failures:
            message = "; ".join(failures)
            raise RpcError(Code.UNKNOWN, f"unable to generate Applications of ApplicationSet: {message}")
        return apps


def _resource(app: Obj) -> Obj:
    return _reference(APPLICATION.group, APPLICATION.version, APPLICATION.kind, app)


def _reference(group: str, version: str, kind: str, found: Obj) -> Obj:
    named = {"namespace": namespace_of(found), "name": name_of(found)}
    return {"group": group, "version": version, "kind": kind} | named


def _selector(query: Obj) -> Selector | None:
    text = query.get("selector") or ""
    try:
        return parse_label_selector(text) if text else None
    except SelectorError as error:
        raise RpcError(Code.UNKNOWN, f"error parsing the selector: {error}") from None
