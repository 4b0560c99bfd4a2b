"""RepoCredsService: credentials that repositories below a URL share. Rules: Argo CD ``server/repocreds/repocreds.go``.

Of the credentials only the user name is ever shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.argo.stores.records import comparable, different, differing, longest_prefix
from syncline.kube.objects import Obj
from syncline.web.access import Access, require
from syncline.web.services.repository.connecting import Connections
from syncline.web.services.repository.shelves import Shelf
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.conforming import conformed
from syncline.web.wire.status import Code, RpcError

SHOWN = ("url", "username", "type", "enableOCI")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The methods about credentials of one shelf; see :meth:`handlers`."""

    access: Access
    shelf: Shelf
    connections: Connections
    pushing: bool = False

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the methods."""
        service, what = "/repocreds.RepoCredsService/", "WriteRepositoryCredentials"
        what = what if self.pushing else what.removeprefix("Write")
        return {
            f"{service}List{what}": self.list,
            f"{service}Create{what}": self.create,
            f"{service}Update{what}": self.update,
            f"{service}Delete{what}": self.delete,
        }

    async def list(self, call: Call, _: Obj) -> Obj:
        """Return the credentials that a caller may get, without what is secret of them."""
        records = [record for _, record in self.shelf.credentials()]
        may = [
            one
            for one in records
            if self.access.permits(call.caller, self.shelf.resource, "get", one.get("url", ""))
            and (one.get("password") or not self.pushing)
        ]
        return {"metadata": {}, "items": [{key: one[key] for key in SHOWN if one.get(key)} for one in may]}

    async def create(self, call: Call, asked: Obj) -> Obj:
        """Declare credentials."""
        record, upsert = self._payload(call, asked, "create")
        if not record["url"]:
            raise RpcError(Code.INVALID_ARGUMENT, "must specify URL")
        if not await self.shelf.create_credentials(record):
            existing = longest_prefix([one for _, one in self.shelf.credentials()], record["url"]) or {}
            keys = differing(comparable(existing), record)
            if keys and not upsert:
                raise RpcError(Code.INVALID_ARGUMENT, different("repository credentials", keys))
            if keys:
                return await self.update(call, {"creds": record})
        return {"url": record["url"]}

    async def update(self, call: Call, asked: Obj) -> Obj:
        """Change declared credentials."""
        record, _ = self._payload(call, asked, "update")
        await self.shelf.update_credentials(record)
        return {"url": record["url"]}

    async def delete(self, call: Call, asked: Obj) -> Obj:
        """Take credentials back."""
        url = asked.get("url", "")
        require(self.access, call.caller, self.shelf.resource, "delete", url)
        await self.shelf.delete_credentials(url)
        return {}

    def _payload(self, call: Call, asked: Obj, action: str) -> tuple[Obj, bool]:
        if not isinstance(asked.get("creds"), dict):
            raise RpcError(Code.INVALID_ARGUMENT, "missing payload in request")
        asked = conformed(call.method, asked)
        record = {"url": "", **asked.get("creds", {})}
        require(self.access, call.caller, self.shelf.resource, action, record["url"])
        self.connections.check(record)
        return comparable(record) | {"url": record["url"]}, bool(asked.get("upsert"))
