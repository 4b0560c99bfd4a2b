"""Declares repositories, changes them, and takes them back: :class:`Repositories`.

Rules: Argo CD ``server/repository/repository.go``; messages are upstream's. Passwords, keys and tokens never leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncline.argo.parameters import PARAMETERS_MAP, parse_parameters
from syncline.argo.stores.records import comparable, different, differing, has_credentials, same_url, shown
from syncline.kube.objects import Obj
from syncline.sources.errors import mask_credentials
from syncline.web.access import Access, Caller, require
from syncline.web.parts import Parts
from syncline.web.services.repository.connecting import Connections
from syncline.web.services.repository.shelves import Shelf
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.conforming import conformed
from syncline.web.wire.status import Code, RpcError

DENIED = "permission denied"


def right_of(record: Obj) -> str:
    """Return how rights name a repository (upstream: ``createRBACObject``)."""
    project = record.get("project")
    return f"{project}/{record.get('repo', '')}" if project else str(record.get("repo", ""))


@dataclass(frozen=True, slots=True)
class Repositories:
    """The methods about repositories of one shelf; see :meth:`handlers`."""

    parts: Parts
    shelf: Shelf
    connections: Connections
    pushing: bool = False
    """The repositories are those to which hydrated manifests are pushed."""

    @property
    def access(self) -> Access:
        return self.parts.access

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the methods."""
        service = "/repository.RepositoryService/"
        if self.pushing:
            return {
                service + "GetWrite": self.get,
                service + "ListWriteRepositories": self.list,
                service + "CreateWriteRepository": self.create,
                service + "UpdateWriteRepository": self.update,
                service + "DeleteWriteRepository": self.delete,
                service + "ValidateWriteAccess": self.validate,
            }
        return {
            service + "Get": self.get,
            service + "List": self.list,
            service + "ListRepositories": self.list,
            service + "Create": self.create,
            service + "CreateRepository": self.create,
            service + "Update": self.update,
            service + "UpdateRepository": self.update,
            service + "Delete": self.delete,
            service + "DeleteRepository": self.delete,
            service + "ValidateAccess": self.validate,
        }

    async def list(self, call: Call, query: Obj) -> Obj:
        """Return the repositories that a caller may get, by project and URL, with the state of their connections."""
        self._check_enabled()
        records = self._permitted(call.caller)
        return {"metadata": {}, "items": await self._with_states(records, again=bool(query.get("forceRefresh")))}

    async def get(self, call: Call, query: Obj) -> Obj:
        """Return one repository."""
        self._check_enabled()
        record = self._found(call.caller, query)
        require(self.access, call.caller, self.shelf.resource, "get", right_of(record))
        if not self.shelf.exists(query.get("repo", ""), record.get("project", "")):
            raise RpcError(Code.NOT_FOUND, f"{self.shelf.word}repo '{query.get('repo', '')}' not found")
        return (await self._with_states([record], again=bool(query.get("forceRefresh"))))[0]

    async def create(self, call: Call, asked: Obj) -> Obj:
        """Declare a repository, after it was connected to unless it belongs to a project."""
        record, upsert = self._payload(call, asked)
        require(self.access, call.caller, self.shelf.resource, "create", right_of(record))
        if self.pushing and not has_credentials(record):
            raise RpcError(Code.INVALID_ARGUMENT, "missing credentials in request")
        self.connections.check(record)
        if self.pushing:
            await self.connections.test(record)
        elif not record.get("project"):
            await self.connections.test(self.shelf.completed(record))
        stored = comparable(record)
        if not await self.shelf.create(stored):
            await self._existing(stored, upsert=upsert)
        self.connections.forget(record)
        return _named(record)

    async def _existing(self, record: Obj, *, upsert: bool) -> None:
        existing = comparable(self.shelf.find(record["repo"], record.get("project", "")))
        if not self.pushing:
            existing.setdefault("type", "git")
        keys = differing(existing, record)
        if not keys:
            return
        if not upsert:
            what = f"{self.shelf.word}repository"
            raise RpcError(Code.INVALID_ARGUMENT, different(what, keys))
        await self.shelf.update(record)

    async def update(self, call: Call, asked: Obj) -> Obj:
        """Change a declared repository, for who may change it where it is and where it will be."""
        record, _ = self._payload(call, asked)
        known = self.shelf.find(record["repo"], record.get("project", ""))
        require(self.access, call.caller, self.shelf.resource, "update", right_of(known))
        require(self.access, call.caller, self.shelf.resource, "update", right_of(record))
        self.connections.check(record)
        await self.shelf.update(comparable(record))
        self.connections.forget(record)
        return _named(record)

    async def delete(self, call: Call, query: Obj) -> Obj:
        """Take a repository back; Applications that use it stay."""
        self._check_enabled()
        record = self._found(call.caller, query)
        require(self.access, call.caller, self.shelf.resource, "delete", right_of(record))
        self.connections.forget(record)
        await self.shelf.delete(record.get("repo", ""), record.get("project", ""))
        return {}

    async def validate(self, call: Call, query: Obj) -> Obj:
        """Connect to a repository that is not declared yet."""
        self._check_enabled()
        query = conformed(call.method, query)
        require(self.access, call.caller, self.shelf.resource, "create", right_of(query))
        renamed = {"enableOci": "enableOCI", "insecureOciForceHttp": "insecureOCIForceHttp"}
        record = {renamed.get(key, key): value for key, value in query.items() if key != "project"}
        record.setdefault("repo", "")
        await self.connections.test(record if self.pushing else self.shelf.completed(record))
        return {}

    def _check_enabled(self) -> None:
        if self.pushing and not parse_parameters(self.parts.state.data(PARAMETERS_MAP)).hydrator:
            raise RpcError(Code.UNIMPLEMENTED, "hydrator is disabled")

    def _payload(self, call: Call, asked: Obj) -> tuple[Obj, bool]:
        self._check_enabled()
        if not isinstance(asked.get("repo"), dict):
            raise RpcError(Code.INVALID_ARGUMENT, "missing payload in request")
        asked = conformed(call.method, asked)
        return {"repo": "", **asked.get("repo", {})}, bool(asked.get("upsert"))

    def _permitted(self, caller: Caller) -> Sequence[Obj]:
        """Return the records that a caller may get, with their credentials."""
        found = [self.shelf.completed({"repo": "", **record}) for _, record in self.shelf.repositories()]
        may = [one for one in found if self.access.permits(caller, self.shelf.resource, "get", right_of(one))]
        return sorted(may, key=lambda one: f"{one.get('project', '')}/{one['repo']}")

    def _found(self, caller: Caller, query: Obj) -> Obj:
        """Return the only repository of a URL, or that of the project which the query names."""
        url, project = query.get("repo", ""), query.get("appProject", "")
        found = [one for one in self._permitted(caller) if same_url(one["repo"], url)]
        if not found:
            raise RpcError(Code.PERMISSION_DENIED, DENIED)
        if len(found) == 1 and not project:
            return found[0]
        fitting = next((one for one in found if one.get("project", "") == project), None)
        if fitting is None:
            raise RpcError(Code.UNKNOWN, f'repository not found for url "{url}" and project "{project}"')
        return fitting

    async def _with_states(self, records: Sequence[Obj], *, again: bool) -> Sequence[Obj]:
        states = await self.connections.states(records, again=again)
        pairs = zip(records, states, strict=True)
        return [_safe(shown(record)) | {"connectionState": state} for record, state in pairs]


def _safe(record: Obj) -> Obj:
    """Return a record whose addresses show no password."""
    return record | {"proxy": mask_credentials(record["proxy"])} if record.get("proxy") else record


def _named(record: Obj) -> Obj:
    return {key: record[key] for key in ("repo", "type", "name") if record.get(key)}
