"""How the connections of repositories are: :class:`Connections` asks them, and remembers the answers for a while.

Rules: Argo CD ``server/repository/repository.go`` (``getConnectionState``) and ``TestRepository`` of its repo-server.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from syncline.argo.stores.records import REPOSITORY
from syncline.argo.stores.secrets import secret_object
from syncline.assembly.sources.probing import check_beside, probe
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.clock import format_time
from syncline.kube.objects import Obj, ObjectRef
from syncline.sources.errors import SourceError, mask_credentials
from syncline.sources.remote.credentials import CERTIFICATES_MAP, KNOWN_HOSTS_MAP
from syncline.web.parts import Parts
from syncline.web.state import CONFIG_MAP
from syncline.web.wire.status import Code, RpcError

KEPT_S = 3600.0
"""Seconds that an answer is shown (upstream: ``ARGOCD_DEFAULT_CACHE_EXPIRATION`` of connections)."""
MAX_KEPT = 10_000


@dataclass(slots=True)
class Connections:
    """Connections of repositories as they were last asked."""

    parts: Parts
    _kept: OrderedDict[tuple[str, str], tuple[datetime, Obj, Obj]] = field(default_factory=OrderedDict)

    async def test(self, record: Obj) -> None:
        """Connect to a repository with the credentials of a record. Raises :class:`RpcError`."""
        secret = REPOSITORY.written(
            record, secret_object("repository", self.parts.state.namespace, "tested", {}), "repository"
        )

        def ask(reader: GitSourceReader) -> None:
            probe(reader.sources.settings, secret, maps, reader.sources.rules.networks)

        state = self.parts.state
        refs = (ObjectRef(*CONFIG_MAP, state.namespace, name) for name in (KNOWN_HOSTS_MAP, CERTIFICATES_MAP))
        maps = [found for ref in refs if (found := state.cache.get(ref)) is not None]
        try:
            await self.parts.content.ask(record.get("project", ""), record.get("repo", ""), ask)
        except SourceError as error:
            message = f"error testing repository connectivity: {mask_credentials(str(error))}"
            raise RpcError(Code.UNKNOWN, message) from None

    def check(self, record: Obj) -> None:
        """Refuse a record whose proxy or endpoint lies in a forbidden network. Raises :class:`RpcError`."""
        fields = {key: str(value) for key, value in record.items()}
        try:
            check_beside(fields, self.parts.content.reader.sources.rules.networks)
        except SourceError as error:
            raise RpcError(Code.INVALID_ARGUMENT, str(error)) from None

    async def states(self, records: Sequence[Obj], *, again: bool) -> list[Obj]:
        """Return how the connection of each record is; ``again``: ask all of them."""
        return list(await asyncio.gather(*(self._state(record, again=again) for record in records)))

    def forget(self, record: Obj) -> None:
        """Ask this repository again when its connection is shown next."""
        self._kept.pop(_key(record), None)

    async def _state(self, record: Obj, *, again: bool) -> Obj:
        if record.get("connectionState"):
            wrong: Obj = record["connectionState"]
            return wrong
        now = self.parts.clock.now()
        kept = self._kept.get(_key(record))
        if kept is not None and not again and kept[1] == record and (now - kept[0]).total_seconds() < KEPT_S:
            return kept[2]
        state = {"status": "Successful", "message": "", "attemptedAt": format_time(now)}
        try:
            await self.test(record)
        except RpcError as error:
            if error.code is Code.RESOURCE_EXHAUSTED:
                return {"status": "Unknown", "message": error.message}
            wrapped = f"rpc error: code = Unknown desc = {error.message}"
            state |= {"status": "Failed", "message": f"Unable to connect to repository: {wrapped}"}
        self._kept[_key(record)] = now, record, state
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return state


def _key(record: Obj) -> tuple[str, str]:
    return record.get("repo", ""), record.get("project", "")
