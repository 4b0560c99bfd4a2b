"""ProjectService: AppProjects and the tokens of their roles. Rules: Argo CD ``server/project/project.go``.

Rights are asked in upstream's order. What a request makes of a project is decided by ``argo/project/requests.py``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from syncline.argo.access.policy import PolicyError
from syncline.argo.access.rights import project_policy
from syncline.argo.application import AppView
from syncline.argo.clusters import destination_of, own_clusters
from syncline.argo.project.requests import (
    MAX_TOKENS,
    became_invalid,
    differing,
    is_same,
    needed_rights,
    normalized,
    role_of,
    with_token,
    without_token,
)
from syncline.argo.project.scoped import with_scoped
from syncline.argo.project.validation import ProjectError, validate_project
from syncline.argo.project.windows import WindowError, active_windows, read_windows
from syncline.argo.settings import globals_of, parse_system, with_globals
from syncline.argo.stores.records import different, shown
from syncline.base.entropy import Entropy
from syncline.control.events import EVENTS
from syncline.kube import client
from syncline.kube.errors import AlreadyExists, Conflict
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import Obj, dig, meta, name_of
from syncline.web.access import require
from syncline.web.auditing import record
from syncline.web.localaccounts import LocalAccounts
from syncline.web.parts import Parts
from syncline.web.services.account import MAX_ID, within
from syncline.web.services.repository.shelves import reading_shelf
from syncline.web.state import APPLICATIONS, PROJECTS, SECRET, State
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError

DEFAULT = "default"
MAX_TRIES = 5
"""Conflicts of one change of tokens."""
CODES = {
    "InvalidArgument": Code.INVALID_ARGUMENT,
    "AlreadyExists": Code.ALREADY_EXISTS,
    "OutOfRange": Code.OUT_OF_RANGE,
}


def check(project: Obj) -> None:
    """Raise :class:`RpcError` for the first problem of a project."""
    try:
        validate_project(project)
        project_policy(project)
    except ProjectError as error:
        raise RpcError(CODES.get(error.code, Code.UNKNOWN), str(error.args[0])) from None
    except PolicyError as error:
        raise RpcError(Code.INVALID_ARGUMENT, f"policy syntax error: {error}") from None


@dataclass(frozen=True, slots=True)
class Projects:
    """The service; see :meth:`handlers`."""

    parts: Parts
    accounts: LocalAccounts
    entropy: Entropy = field(default_factory=Entropy)

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        service = "/project.ProjectService/"
        return {
            service + "List": self.list,
            service + "Get": self.get,
            service + "GetDetailedProject": self.detailed,
            service + "GetGlobalProjects": self.global_projects,
            service + "GetSyncWindowsState": self.windows,
            service + "ListEvents": self.events,
            service + "ListLinks": self.links,
            service + "Create": self.create,
            service + "Update": self.update,
            service + "Delete": self.delete,
            service + "CreateToken": self.create_token,
            service + "DeleteToken": self.delete_token,
        }

    @property
    def state(self) -> State:
        return self.parts.state

    # -- reading -----------------------------------------------------------------------------------------------------

    async def list(self, call: Call, _: Obj) -> Obj:
        """Return the AppProjects that a caller may get."""
        found = [
            project
            for project in self.state.cache.objects(PROJECTS, self.state.namespace)
            if self.parts.access.permits(call.caller, "projects", "get", name_of(project))
        ]
        revision = self.state.cache.observed_revision(PROJECTS)
        return {"metadata": {"resourceVersion": str(revision or "")}, "items": found}

    async def get(self, call: Call, query: Obj) -> Obj:
        """Return one AppProject."""
        return normalized(await self._permitted(call, "get", query.get("name", "")))

    async def detailed(self, call: Call, query: Obj) -> Obj:
        """Return an AppProject with what global projects and scoped repositories and clusters add to it."""
        project = await self._permitted(call, "get", query.get("name", ""))
        secrets, clusters = (
            list(self.state.cache.objects(SECRET, self.state.namespace)),
            self.parts.destinations.clusters(),
        )
        selecting = parse_system(self.state.data("argocd-cm")).global_projects
        whole = with_scoped(with_globals(project, selecting, self._named()), secrets, clusters)
        return {
            "globalProjects": globals_of(project, selecting, self._named()),
            "project": normalized(whole),
            "repositories": [
                shown(one)
                for _, one in reading_shelf(self.state).repositories()
                if one.get("project") == name_of(project)
            ],
            "clusters": [
                {"server": one.server, "name": one.name, "project": one.project, "namespaces": list(one.namespaces)}
                for one in clusters
                if one.project == name_of(project)
            ],
        }

    async def global_projects(self, call: Call, query: Obj) -> Obj:
        """Return the global projects that select one."""
        project = await self._permitted(call, "get", query.get("name", ""))
        selecting = parse_system(self.state.data("argocd-cm")).global_projects
        return {"items": globals_of(project, selecting, self._named())}

    async def windows(self, call: Call, query: Obj) -> Obj:
        """Return the sync windows of a project that are active now."""
        project = await self._permitted(call, "get", query.get("name", ""))
        entries = dig(project, "spec", "syncWindows", default=[]) or []
        now = self.parts.clock.now()
        try:
            return {"windows": [one for one in entries if active_windows(read_windows([one]), now)]}
        except WindowError as error:
            raise RpcError(Code.UNKNOWN, str(error)) from None

    async def events(self, call: Call, query: Obj) -> Obj:
        """Return the Events about a project."""
        project = await self._permitted(call, "get", query.get("name", ""))
        about = {"name": name_of(project), "uid": meta(project).get("uid", ""), "namespace": self.state.namespace}
        selector = ",".join(f"involvedObject.{key}={value}" for key, value in about.items())
        answer = await self.state.port.send(client.list_(EVENTS, self.state.namespace, field_selector=selector))
        found: Obj = answer.or_raise()
        return {"metadata": found.get("metadata") or {}, "items": found.get("items") or []}

    async def links(self, call: Call, query: Obj) -> Obj:
        """Return the links of a project: none, unless they are configured, which is not served."""
        name = query.get("name", "")
        if not self.parts.access.permits(call.caller, "projects", "get", name):
            raise RpcError(Code.UNKNOWN, f"unauthorized access to project {name}")
        await self.state.fresh(PROJECTS, self.state.namespace, name)
        if self.state.data("argocd-cm").get("project.links"):
            raise RpcError(Code.UNIMPLEMENTED, "argocd-cm project.links: links of projects are not served yet")
        return {"items": []}

    async def _permitted(self, call: Call, action: str, name: str) -> Obj:
        require(self.parts.access, call.caller, "projects", action, name)
        return await self.state.fresh(PROJECTS, self.state.namespace, name)

    def _named(self) -> Mapping[str, Obj]:
        return {name_of(one): one for one in self.state.cache.objects(PROJECTS, self.state.namespace)}

    # -- writing -----------------------------------------------------------------------------------------------------

    async def create(self, call: Call, asked: Obj) -> Obj:
        """Store a project; one of this name must be the same, or may be changed with ``upsert``."""
        project = self._given(asked)
        name = name_of(project)
        require(self.parts.access, call.caller, "projects", "create", name)
        with within("error validating project"):
            check(project)
        try:
            made = await self.state.write(PROJECTS, client.create, project)
        except AlreadyExists:
            known = await self.state.fresh(PROJECTS, self.state.namespace, name)
            if not asked.get("upsert"):
                return self._same(known, project)
            require(self.parts.access, call.caller, "projects", "update", name)
            made = await self.state.write(PROJECTS, client.update, {**known, "spec": project["spec"]})
        return await self._written(call, made, "ResourceCreated", "created project")

    def _same(self, known: Obj, project: Obj) -> Obj:
        """Return the known project if it is as a client asks. Raises :class:`RpcError`."""
        specs = known.get("spec") or {}, project.get("spec") or {}
        if is_same(*specs):
            return known
        raise RpcError(Code.INVALID_ARGUMENT, different("project", differing(*specs)))

    async def update(self, call: Call, asked: Obj) -> Obj:
        """Write a project over the stored one, under the version that its author saw."""
        project = normalized(self._given(asked))
        name = name_of(project)
        require(self.parts.access, call.caller, "projects", "update", name)
        check(project)
        known = await self.state.fresh(PROJECTS, self.state.namespace, name)
        for resource, other in needed_rights(known, project):
            require(self.parts.access, call.caller, resource, "update", other)
        clusters = self.parts.destinations.clusters()
        scoped = own_clusters(clusters, name)
        problem = became_invalid(known, project, await self._applications(name), self._place, scoped)
        if problem:
            raise RpcError(Code.INVALID_ARGUMENT, problem)
        made = await self.state.write(PROJECTS, client.update, project)
        return await self._written(call, made, "ResourceUpdated", "updated project")

    async def delete(self, call: Call, query: Obj) -> Obj:
        """Delete a project that no Application uses."""
        name = query.get("name", "")
        if name == DEFAULT:
            raise RpcError(Code.INVALID_ARGUMENT, f"name '{name}' is reserved and cannot be deleted")
        project = await self._permitted(call, "delete", name)
        using = await self._applications(name)
        if using:
            raise RpcError(Code.INVALID_ARGUMENT, f"project is referenced by {len(using)} applications")
        await self.state.write(PROJECTS, client.delete, self.state.namespace, name)
        await record(self.parts, call.caller, project, "ResourceDeleted", "deleted project")
        return {}

    def _given(self, asked: Obj) -> Obj:
        """Return the project of a request as it may be stored. Raises :class:`RpcError`."""
        project = asked.get("project")
        if not isinstance(project, dict):
            raise RpcError(Code.INVALID_ARGUMENT, "missing payload 'project' in request")
        kind = {"apiVersion": APP_PROJECT.api_version, "kind": APP_PROJECT.kind}
        metadata = {**meta(project), "namespace": self.state.namespace}
        spec = normalized({"spec": project.get("spec") or {}})["spec"]
        return {**project, **kind, "metadata": metadata, "spec": spec}

    async def _applications(self, project: str) -> Sequence[Obj]:
        found = await self.state.send(APPLICATIONS, client.list_, self.state.namespace)
        return [one for one in found.get("items") or () if (dig(one, "spec", "project") or DEFAULT) == project]

    def _place(self, app: Obj) -> tuple[str, str] | None:
        if not any(AppView(app).destination.get(key) for key in ("name", "server")):
            return "", ""
        found = destination_of(app, self.parts.destinations.clusters())
        return None if isinstance(found, str) else (found.server, found.name)

    async def _written(self, call: Call, made: Obj, reason: str, action: str) -> Obj:
        await record(self.parts, call.caller, made, reason, action)
        return made

    # -- tokens ------------------------------------------------------------------------------------------------------

    async def create_token(self, call: Call, asked: Obj) -> Obj:
        """Return a new token of a role; only its id and its times are kept."""
        name, role = asked.get("project", ""), asked.get("role", "")
        identifier, seconds = asked.get("id") or self.entropy.uid(), int(asked.get("expiresIn") or 0)

        async def once() -> Obj:
            project = await self._with_role(call, name, role)
            if project is None:
                raise RpcError(Code.NOT_FOUND, f"project '{name}' does not have role '{role}'")
            tokens = (role_of(normalized(project), role) or {}).get("jwtTokens") or []
            if any(one.get("id") == identifier for one in tokens):
                text = f"rpc error: code = InvalidArgument desc = Token id '{identifier}' has been used. "
                raise RpcError(Code.INVALID_ARGUMENT, text)
            if len(tokens) >= MAX_TOKENS or len(identifier) > MAX_ID:
                text = f"role '{role}': {MAX_TOKENS} tokens with ids of {MAX_ID} letters are allowed; delete some"
                raise RpcError(Code.RESOURCE_EXHAUSTED, text)
            now = self.parts.clock.now()
            issued = int(now.timestamp())
            token = self.accounts.token(f"proj:{name}:{role}", identifier, now, seconds)
            entry = {"id": identifier, "iat": issued, **({"exp": issued + seconds} if seconds else {})}
            made = await self.state.write(PROJECTS, client.update, with_token(project, role, entry))
            await self._written(call, made, "ResourceCreated", "created token")
            return {"token": token.reveal()}

        return await _retried(once)

    async def delete_token(self, call: Call, asked: Obj) -> Obj:
        """Forget a token of a role; one that is not there is forgotten already."""
        name, role = asked.get("project", ""), asked.get("role", "")

        async def once() -> Obj:
            project = await self._with_role(call, name, role)
            changed = project and without_token(project, role, asked.get("id", ""), int(asked.get("iat") or 0))
            if changed:
                made = await self.state.write(PROJECTS, client.update, changed)
                await self._written(call, made, "ResourceDeleted", "deleted token")
            return {}

        return await _retried(once)

    async def _with_role(self, call: Call, name: str, role: str) -> Obj | None:
        """Return a project, None if it has no such role. Who may update it may make tokens, and so may the members of
        the role. Raises :class:`RpcError`."""
        project = await self.state.fresh(PROJECTS, self.state.namespace, name)
        with within("error validating project"):
            check(project)
        found = role_of(project, role)
        if found is None:
            return None
        if not set(call.caller.groups) & set(found.get("groups") or ()):
            require(self.parts.access, call.caller, "projects", "update", name)
        return project


async def _retried(change: Callable[[], Awaitable[Obj]]) -> Obj:
    """Carry out a change of what was read, again after a conflict."""
    for _ in range(MAX_TRIES - 1):
        try:
            return await change()
        except Conflict:
            continue
    return await change()
