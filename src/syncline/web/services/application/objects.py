"""Shows and changes the live objects of an Application: its tree, and single objects of it.

Rules: Argo CD ``server/application/application.go`` (``getAppLiveResource``). Only objects of the Application's tree
are read, patched or deleted; values of Secrets are masked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from syncline.apply.diff import hide_secret
from syncline.argo.clusters import own_clusters
from syncline.argo.project import permits_resource
from syncline.argo.settings import CONFIG_MAP, parse_system
from syncline.argo.tracking import Tracking, is_definition
from syncline.assembly.inspection.pulled import PulledCache
from syncline.assembly.inspection.resource_tree import ResourceNode, resource_tree
from syncline.kube import client
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.errors import ApiError
from syncline.kube.objects import GVK, Obj, ObjectRef, ResourceInfo, dig, gvk_of, resource_version, uid_of
from syncline.web.access import Caller
from syncline.web.destinations import Destination
from syncline.web.services.application.checking import Checked
from syncline.web.services.application.finding import project_of
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError

INHERITANCE = "server.rbac.disableApplicationFineGrainedRBACInheritance"
IMPERSONATION = "application.sync.impersonation.enabled"
SECRET = ("", "Secret")
FOREIGN = "the project does not permit it, or it is not tracked as this Application's"


@dataclass(frozen=True, slots=True)
class _Bridge:
    """Sends the requests of a worker thread by the port of the event loop."""

    destination: Destination
    loop: asyncio.AbstractEventLoop

    def send(self, request: Request) -> Response:
        return asyncio.run_coroutine_threadsafe(self.destination.port.send(request), self.loop).result()


@dataclass(frozen=True, slots=True)
class _Found:
    """One live object of an Application, and its cluster."""

    destination: Destination
    info: ResourceInfo
    ref: ObjectRef

    async def send(self, request: Request) -> Obj:
        answer = await self.destination.port.send(request)
        found: Obj = answer.or_raise()
        return found


@dataclass(frozen=True, slots=True)
class Objects:
    """The methods about live objects; see :meth:`handlers`."""

    checked: Checked

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the methods."""
        service = "/application.ApplicationService/"
        return {
            service + "ResourceTree": self.tree,
            service + "GetResource": self.get,
            service + "PatchResource": self.patch,
            service + "DeleteResource": self.delete,
        }

    async def tree(self, call: Call, query: Obj) -> Obj:
        """Return the objects of an Application, and those that they own."""
        app = await self._app(call.caller, "get", query, query.get("applicationName", ""))
        destination = await self._reach(app)
        return {"nodes": list(tree_nodes(await self._trees(destination, app), _versions(app)))}

    async def get(self, call: Call, query: Obj) -> Obj:
        """Return one live object as JSON; values of a Secret are masked."""
        found = await self._live(call.caller, "get", query)
        return self._manifest(await found.send(client.get(found.info, found.ref.namespace, found.ref.name)))

    async def patch(self, call: Call, query: Obj) -> Obj:
        """Patch one live object and return it."""
        found = await self._live(call.caller, "update", query)
        try:
            form = PatchType(query.get("patchType", ""))
            body = msgspec.json.decode(query.get("patch", ""))
        except (ValueError, msgspec.DecodeError, RecursionError) as error:
            raise RpcError(Code.INVALID_ARGUMENT, f"error patching resource: {error}") from None
        if form is PatchType.APPLY or not isinstance(body, list if form is PatchType.JSON else dict):
            raise RpcError(Code.INVALID_ARGUMENT, f"error patching resource: this is no patch of type {form.value}")
        try:
            patched = await found.send(client.patch(found.info, found.ref.namespace, found.ref.name, form, body))
        except ApiError:
            if tuple(found.ref.group_kind) != SECRET:
                raise
            message = f"failed to patch Secret {found.ref.namespace}/{found.ref.name}"
            raise RpcError(Code.UNKNOWN, message) from None
        return self._manifest(patched)

    async def delete(self, call: Call, query: Obj) -> Obj:
        """Delete one live object."""
        found = await self._live(call.caller, "delete", query)
        force = bool(query.get("force")) and not query.get("orphan")
        policy = "Orphan" if query.get("orphan") else "Background" if force else "Foreground"
        options: Obj = {"grace_period_s": 0} if force else {}
        await found.send(client.delete(found.info, found.ref.namespace, found.ref.name, propagation=policy, **options))
        return {}

    async def _app(self, caller: Caller, action: str, query: Obj, name: str) -> Obj:
        return await self.checked.finder.permitted(
            caller, action, query.get("project", ""), query.get("appNamespace", ""), name
        )

    async def _reach(self, app: Obj) -> Destination:
        destinations = self.checked.parts.destinations
        return await destinations.reach(destinations.cluster_of(app))

    async def _trees(self, destination: Destination, app: Obj) -> tuple[ResourceNode, ...]:
        """Return the trees of an Application. The roots stand in its status, which every writer of the Application
        can change: one that the project forbids, or that is not tracked as the Application's, stays unread."""
        parts, cluster = self.checked.parts, destination.cluster
        project = self.checked.project(app)
        scoped = own_clusters(parts.destinations.clusters(), project_of(app))
        tracking = parse_system(parts.state.data(CONFIG_MAP)).tracking or Tracking()
        instance = tracking.instance_of_app(app, parts.state.namespace)

        def of_app(node: ResourceNode) -> bool:
            ref, live = node.ref, node.live
            place = cluster.server, cluster.name, scoped
            if not permits_resource(project, ref.group, ref.kind, ref.name, ref.namespace, *place):
                return False
            if live is None or is_definition(live):
                return True
            return tracking.app_name(live) == instance and not tracking.is_copied(live)

        cache = PulledCache(destination.mapper, {}, _Bridge(destination, asyncio.get_running_loop()))
        found = await asyncio.to_thread(resource_tree, cache, app)
        return tuple(one if of_app(one) else replace(one, live=None, children=(), unread=FOREIGN) for one in found)

    async def _live(self, caller: Caller, action: str, query: Obj) -> _Found:
        """Return the object that a request names, if it is in the Application's tree. Raises :class:`RpcError`."""
        ref = ObjectRef(*(query.get(part, "") for part in ("group", "kind", "namespace", "resourceName")))
        settings = self.checked.parts.state.data(CONFIG_MAP)
        app = await self._with_right(caller, action, ref, query, settings)
        if settings.get(IMPERSONATION, "").lower() == "true":
            raise RpcError(Code.UNIMPLEMENTED, f"{IMPERSONATION}: objects are not read or changed by impersonation yet")
        destination = await self._reach(app)
        trees = await self._trees(destination, app)
        node = next((one for one, _ in _walked(trees) if one.ref == ref and one.live is not None), None)
        if node is None or node.live is None:
            what = f"{ref.kind} {ref.group} {ref.name}"
            raise RpcError(Code.INVALID_ARGUMENT, f"{what} not found as part of application {query.get('name', '')}")
        version = query.get("version") or gvk_of(node.live).version
        info = destination.mapper.find(GVK(ref.group, version, ref.kind))
        if info is None:
            raise RpcError(Code.NOT_FOUND, f"the cluster does not serve {ref.kind} of {ref.group}/{version}")
        return _Found(destination, info, ref)

    async def _with_right(
        self, caller: Caller, action: str, ref: ObjectRef, query: Obj, settings: Mapping[str, str]
    ) -> Obj:
        """Return the Application; updates and deletes need the right of the object, or, where rights are inherited,
        that of the Application."""
        name = query.get("name", "")
        if action == "get":
            return await self._app(caller, action, query, name)
        own = f"{action}/{ref.group}/{ref.kind}/{ref.namespace}/{ref.name}"
        if settings.get(INHERITANCE, "true").lower() != "false":
            return await self._app(caller, own, query, name)
        try:
            return await self._app(caller, action, query, name)
        except RpcError as error:
            if error.code is not Code.PERMISSION_DENIED:
                raise
        return await self._app(caller, own, query, name)

    def _manifest(self, obj: Obj) -> Obj:
        if (gvk_of(obj).group, gvk_of(obj).kind) == SECRET:
            hidden = parse_system(self.checked.parts.state.data(CONFIG_MAP)).hidden_annotations
            obj = hide_secret(None, obj, hidden)[1] or {}
        return {"manifest": msgspec.json.encode(obj).decode()}


def _versions(app: Obj) -> dict[ObjectRef, str]:
    """Return the versions of the manifests by object."""
    return {
        ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name"))): str(
            row.get("version") or ""
        )
        for row in dig(app, "status", "resources", default=[])
    }


def _walked(
    nodes: tuple[ResourceNode, ...], parent: ResourceNode | None = None
) -> Iterator[tuple[ResourceNode, ResourceNode | None]]:
    for node in nodes:
        yield node, parent
        yield from _walked(node.children, node)


def tree_nodes(nodes: tuple[ResourceNode, ...], versions: Mapping[ObjectRef, str]) -> Iterator[Obj]:
    """Yield the trees as upstream's nodes, parents first; an object is named once."""
    seen: set[ObjectRef] = set()
    for node, parent in _walked(nodes):
        if node.ref not in seen:
            seen.add(node.ref)
            yield _node(node, parent, versions)


def _node(node: ResourceNode, parent: ResourceNode | None, versions: Mapping[ObjectRef, str]) -> Obj:
    made = _named(node, versions)
    if parent is not None:
        made["parentRefs"] = [_named(parent, versions)]
    if node.live is None:
        return made if node.unread else made | {"health": {"status": "Missing"}}
    made |= {"resourceVersion": resource_version(node.live), "createdAt": node.created}
    if node.health is not None:
        message = {"message": node.health.message} if node.health.message else {}
        made["health"] = {"status": str(node.health.status)} | message
    images = _images(node.live)
    return made | ({"images": images} if images else {})


def _named(node: ResourceNode, versions: Mapping[ObjectRef, str]) -> Obj:
    version = versions.get(node.ref, "") if node.live is None else gvk_of(node.live).version
    uid = {} if node.live is None else {"uid": uid_of(node.live)}
    return {key: value for key, value in node.ref._asdict().items() if value} | {"version": version} | uid


def _images(obj: Obj) -> list[str]:
    if gvk_of(obj).kind != "Pod":
        return []
    parts = [*(dig(obj, "spec", "initContainers") or ()), *(dig(obj, "spec", "containers") or ())]
    return sorted({str(one["image"]) for one in parts if one.get("image")})
