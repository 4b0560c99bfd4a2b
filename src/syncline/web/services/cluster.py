"""ClusterService: the clusters to which Applications may be sent. Rules: Argo CD ``server/cluster/cluster.go``.

Credentials never leave: of a cluster's ``config`` only what upstream shows stands in an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_plus, urlsplit

from syncline.argo.clusters import IN_CLUSTER_SERVER, ClusterError, cluster_access, is_cluster_secret
from syncline.argo.stores.clusters import (
    LAST_APPLIED,
    differing_fields,
    record_of,
    records_of,
    secret_written,
    shown_cluster,
    updated,
)
from syncline.argo.stores.records import different
from syncline.argo.stores.secrets import cluster_secret_name, secret_object
from syncline.assembly.ports import HttpPort
from syncline.base.clock import format_time
from syncline.kube import client
from syncline.kube.client import Request
from syncline.kube.mapper import MAX_VERSION
from syncline.kube.objects import Obj, dig
from syncline.sources.remote.address import is_forbidden
from syncline.web.access import require
from syncline.web.parts import Parts
from syncline.web.services.repository.shelves import removed
from syncline.web.state import APPLICATIONS, SECRET
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.conforming import conformed
from syncline.web.wire.status import Code, RpcError

DENIED = RpcError(Code.PERMISSION_DENIED, "permission denied")
UNKNOWN = {"connectionState": {"status": "Unknown", "message": ""}}
MAX_SEEN = 10_000


@dataclass(slots=True)
class Clusters:
    """The service; see :meth:`handlers`."""

    parts: Parts
    _seen: dict[str, Obj] = field(default_factory=dict)
    """How the connection of each server was when it was last tried."""

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        service = "/cluster.ClusterService/"
        return {
            service + "List": self.list,
            service + "Get": self.get,
            service + "Create": self.create,
            service + "Update": self.update,
            service + "Delete": self.delete,
            service + "InvalidateCache": self.invalidate,
        }

    async def list(self, call: Call, query: Obj) -> Obj:
        """Return the clusters that a query selects and its caller may get."""
        name, server = _chosen(query)
        wanted = [
            one
            for one in self._records()
            if all(not each or one["name"] == each for each in (name, query.get("name")))
            and all(not each or one["server"] == each for each in (server, query.get("server")))
        ]
        found = [one for one in wanted if self.parts.access.permits(call.caller, "clusters", "get", _right(one))]
        return {"metadata": {}, "items": [self._shown(one) for one in found]}

    async def get(self, call: Call, query: Obj) -> Obj:
        """Return one cluster."""
        return self._shown(self._permitted(call, query, "get"))

    async def create(self, call: Call, asked: Obj) -> Obj:
        """Declare a cluster, after it answered with these credentials."""
        asked = conformed(call.method, asked)
        given = {"server": "", **asked.get("cluster", {})}
        require(self.parts.access, call.caller, "clusters", "create", _right(given))
        version = await self._tried(given)
        if given["server"] == IN_CLUSTER_SERVER and not self._here():
            raise RpcError(Code.INVALID_ARGUMENT, "cannot register cluster: in-cluster has been disabled")
        existing = next(
            (one for one in self._records() if self._secret(one["server"]) and one["server"] == _bare(given)), None
        )
        if existing is None:
            stored = await self._written(given, None)
        elif not (keys := differing_fields(existing, given)):
            stored = existing
        elif asked.get("upsert"):
            return await self.update(call, {"cluster": given})
        else:
            raise RpcError(Code.INVALID_ARGUMENT, different("cluster", keys))
        self._note(stored["server"], version)
        return self._shown(stored)

    async def update(self, call: Call, asked: Obj) -> Obj:
        """Change a cluster, or only its ``updatedFields``, after it answered with its credentials."""
        asked = conformed(call.method, asked)
        given = asked.get("cluster", {})
        query = {"server": given.get("server"), "name": given.get("name"), "id": asked.get("id")}
        known = self._permitted(call, query, "update")
        fields = asked.get("updatedFields") or ()
        if not fields or "project" in fields:
            moved = {"server": known["server"], "project": given.get("project", "")}
            if not self.parts.access.permits(call.caller, "clusters", "update", _right(moved)):
                raise DENIED
        wanted = updated(known, given, fields) if fields else {**given, "server": known["server"]}
        version = await self._tried(wanted)
        stored = await self._written(wanted, self._secret(wanted["server"]))
        self._note(stored["server"], version)
        return self._shown(stored)

    async def delete(self, call: Call, query: Obj) -> Obj:
        """Take a cluster back; what was synced there stays. By name: all of that name."""
        self._known(query)
        name, server = _chosen(query)
        name, server = name or ("" if server else query.get("name", "")), server or query.get("server", "")
        for one in [each for each in self._records() if (each["name"] == name if name else each["server"] == server)]:
            if not self.parts.access.permits(call.caller, "clusters", "delete", _right(one)):
                raise DENIED
            secret = self._secret(one["server"])
            if secret is None:
                raise RpcError(Code.NOT_FOUND, f'cluster "{one["server"]}" not found')
            await removed(self.parts.state, secret)
            self._seen.pop(one["server"], None)
        return {}

    async def invalidate(self, call: Call, query: Obj) -> Obj:
        """Ask for a fresh look at a cluster."""
        known = self._permitted(call, query, "update")
        wanted = known | {"refreshRequestedAt": format_time(self.parts.clock.now())}
        return self._shown(await self._written(wanted, self._secret(known["server"])))

    # -- what is there -----------------------------------------------------------------------------------------------

    def _here(self) -> bool:
        return str(self.parts.state.data("argocd-cm").get("cluster.inClusterEnabled", "true")).lower() != "false"

    def _secrets(self) -> Sequence[Obj]:
        state = self.parts.state
        return [one for one in state.cache.objects(SECRET, state.namespace) if is_cluster_secret(one)]

    def _records(self) -> Sequence[Obj]:
        return records_of(self._secrets(), here=self._here())

    def _secret(self, server: str) -> Obj | None:
        return next((one for one in self._secrets() if record_of(one)["server"] == server.rstrip("/")), None)

    def _known(self, query: Obj) -> Obj:
        """Return the cluster of a query. One that is missing and one without permission get the same refusal."""
        name, server = _chosen(query)
        if not query.get("id"):
            name, server = query.get("name") or "", query.get("server") or ""
        records = self._records()
        found = [one for one in records if (one["server"] == server.rstrip("/") if server else one["name"] == name)]
        if not found or not (name or server):
            raise DENIED
        return found[0]

    def _permitted(self, call: Call, query: Obj, action: str) -> Obj:
        found = self._known(query)
        if not self.parts.access.permits(call.caller, "clusters", action, _right(found)):
            raise DENIED
        return found

    async def _written(self, record: Obj, secret: Obj | None) -> Obj:
        if LAST_APPLIED in (record.get("annotations") or {}):
            raise RpcError(Code.INVALID_ARGUMENT, f"annotation {LAST_APPLIED} cannot be set")
        state = self.parts.state
        name = cluster_secret_name(record["server"])
        body = secret_written(record, secret or secret_object("cluster", state.namespace, name, {}))
        make = client.create if secret is None else client.update
        return record_of(await state.write(SECRET, make, body))

    # -- how it is ---------------------------------------------------------------------------------------------------

    async def _tried(self, record: Obj) -> str:
        """Return the version that a cluster answers with these credentials. Raises :class:`RpcError`."""
        if _bare(record) == IN_CLUSTER_SERVER:
            return self.parts.state.mapper.version
        for text in (_bare(record), str((record.get("config") or {}).get("proxyUrl") or "")):
            if is_forbidden(_host(text), self.parts.content.reader.sources.rules.networks):
                raise RpcError(Code.INVALID_ARGUMENT, f"cluster {text} lies in a network that must not be connected to")
        try:
            port = HttpPort(cluster_access(secret_written(record, {"metadata": {}})))
        except (ClusterError, ValueError) as error:
            raise RpcError(Code.INVALID_ARGUMENT, f"error getting REST config: {error}") from None
        try:
            answer = await port.send(Request("GET", "/version"))
        finally:
            await port.close()
        if not answer.ok or not isinstance(answer.obj, dict):
            why = answer.obj.get("message") if isinstance(answer.obj, dict) else f"it answers {answer.status}"
            raise RpcError(Code.UNKNOWN, f"error getting server version: {why}")
        return str(answer.obj.get("gitVersion") or "")[:MAX_VERSION]

    def _note(self, server: str, version: str) -> None:
        if len(self._seen) >= MAX_SEEN:
            self._seen.clear()
        now = format_time(self.parts.clock.now())
        self._seen[server] = {
            "connectionState": {"status": "Successful", "message": "", "attemptedAt": now},
            "serverVersion": version,
        }

    def _shown(self, record: Obj) -> Obj:
        info = self._seen.get(record["server"], UNKNOWN)
        if record["server"] == IN_CLUSTER_SERVER and info is UNKNOWN:
            now = format_time(self.parts.clock.now())
            state = {"status": "Successful", "message": "", "attemptedAt": now}
            info = {"connectionState": state, "serverVersion": self.parts.state.mapper.version}
        count = sum(
            1
            for app in self.parts.state.cache.objects(APPLICATIONS)
            if (there := dig(app, "spec", "destination", default={}) or {}).get("server") == record["server"]
            or there.get("name") == record["name"]
        )
        return shown_cluster(record) | info | {"info": info | {"applicationsCount": count}}


def _bare(record: Obj) -> str:
    return str(record.get("server") or "").rstrip("/")


def _host(text: str) -> str:
    try:
        return urlsplit(text if "://" in text else f"//{text}").hostname or ""
    except ValueError:
        raise RpcError(Code.INVALID_ARGUMENT, "error getting REST config: the address is invalid") from None


def _right(cluster: Obj) -> str:
    """Return how rights name a cluster (upstream: ``CreateClusterRBACObject``)."""
    project = cluster.get("project")
    return f"{project}/{cluster['server']}" if project else str(cluster["server"])


def _chosen(query: Obj) -> tuple[str, str]:
    """Return the name and the server that the ``id`` of a query stands for."""
    wanted = query.get("id") or {}
    value = str(wanted.get("value") or "")
    match wanted.get("type"):
        case "name":
            return value, ""
        case "name_escaped":
            return unquote_plus(value), ""
    return "", value
