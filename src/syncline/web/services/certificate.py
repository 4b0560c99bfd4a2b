"""CertificateService: hosts and servers that are trusted. Rules: Argo CD ``server/certificate/certificate.go``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncline.argo.stores.certificates import KNOWN_HOSTS, CertificateError, Entry, Wanted, added, listed, without
from syncline.kube.objects import Obj
from syncline.sources.remote.credentials import CERTIFICATES_MAP, KNOWN_HOSTS_MAP
from syncline.web.access import Access, require
from syncline.web.state import State
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.conforming import conformed
from syncline.web.wire.status import Code, RpcError


@dataclass(frozen=True, slots=True)
class Certificates:
    """The service; see :meth:`handlers`."""

    state: State
    access: Access

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        service = "/certificate.CertificateService/"
        return {
            service + "ListCertificates": self.list,
            service + "CreateCertificate": self.create,
            service + "DeleteCertificate": self.delete,
        }

    async def list(self, call: Call, query: Obj) -> Obj:
        """Return the certificates that a query names, without their data."""
        require(self.access, call.caller, "certificates", "get", "")
        try:
            return {"metadata": {}, "items": listed(*self._stored(), _wanted(query))}
        except CertificateError as error:
            raise RpcError(Code.UNKNOWN, str(error)) from None

    async def create(self, call: Call, asked: Obj) -> Obj:
        """Store certificates; those that are stored already are not in the answer."""
        require(self.access, call.caller, "certificates", "create", "")
        asked = conformed(call.method, asked)
        given = (asked.get("certificates") or {}).get("items") or ()
        hosts, certificates = self._stored()
        try:
            entries, pems, created = added(hosts, certificates, given, upsert=bool(asked.get("upsert")))
        except CertificateError as error:
            raise RpcError(Code.UNKNOWN, str(error)) from None
        await self._keep(entries, pems, created)
        return {"metadata": {}, "items": created}

    async def delete(self, call: Call, query: Obj) -> Obj:
        """Take certificates away."""
        require(self.access, call.caller, "certificates", "delete", "")
        try:
            entries, pems, removed = without(*self._stored(), _wanted(query))
        except CertificateError as error:
            raise RpcError(Code.UNKNOWN, str(error)) from None
        await self._keep(entries, pems, removed)
        return {"metadata": {}, "items": removed}

    def _stored(self) -> tuple[str, Mapping[str, str]]:
        return self.state.data(KNOWN_HOSTS_MAP).get(KNOWN_HOSTS, ""), self.state.data(CERTIFICATES_MAP)

    async def _keep(self, entries: Sequence[Entry], pems: Mapping[str, str], changed: Sequence[Obj]) -> None:
        kinds = {one["certType"] for one in changed}
        if "ssh" in kinds:
            await self.state.keep(KNOWN_HOSTS_MAP, {KNOWN_HOSTS: "".join(f"{one}\n" for one in entries)})
        if "https" in kinds:
            await self.state.keep(CERTIFICATES_MAP, pems)


def _wanted(query: Obj) -> Wanted:
    return Wanted(*(str(query.get(key) or "") for key in ("hostNamePattern", "certType", "certSubType")))
