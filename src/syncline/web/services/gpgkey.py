"""GPGKeyService: public keys that may sign commits. Rules: Argo CD ``server/gpgkey/gpgkey.go``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.argo.stores.pgp import KeyFormatError, PublicKey, key_id, public_keys
from syncline.assembly.sources.source_rules import PGP_KEYS_MAP
from syncline.kube.objects import Obj
from syncline.web.access import Access, require
from syncline.web.state import State
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.conforming import conformed
from syncline.web.wire.status import Code, RpcError


@dataclass(frozen=True, slots=True)
class GpgKeys:
    """The service; see :meth:`handlers`."""

    state: State
    access: Access

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        service = "/gpgkey.GPGKeyService/"
        return {
            service + "List": self.list,
            service + "Get": self.get,
            service + "Create": self.create,
            service + "Delete": self.delete,
        }

    async def list(self, call: Call, _: Obj) -> Obj:
        """Return the keys without their data."""
        require(self.access, call.caller, "gpgkeys", "get", "")
        keys = self._stored().values()
        return {"metadata": {}, "items": [one.as_obj() | {"keyData": ""} for one in keys]}

    async def get(self, call: Call, query: Obj) -> Obj:
        """Return one key, by its id or its fingerprint."""
        require(self.access, call.caller, "gpgkeys", "get", "")
        try:
            wanted = key_id(query.get("keyID", ""))
        except KeyFormatError as error:
            raise RpcError(Code.UNKNOWN, str(error)) from None
        found = self._stored().get(wanted)
        if found is None:
            raise RpcError(Code.UNKNOWN, f"no such key: {wanted}")
        return found.as_obj()

    async def create(self, call: Call, asked: Obj) -> Obj:
        """Add the keys of a text; those that are stored already are skipped."""
        require(self.access, call.caller, "gpgkeys", "create", "")
        text = (conformed(call.method, asked).get("publickey") or {}).get("keyData") or ""
        if not text.strip():
            raise RpcError(Code.UNKNOWN, "submitted key data is empty")
        try:
            keys = public_keys(text)
        except KeyFormatError as error:
            raise RpcError(Code.UNKNOWN, f"error validating PGP keys from input: {error}") from None
        stored = self.state.data(PGP_KEYS_MAP)
        created = {name: key for name, key in keys.items() if name not in stored}
        if created:
            await self.state.keep(PGP_KEYS_MAP, {**stored, **{name: key.data for name, key in created.items()}})
        return {
            "created": {"metadata": {}, "items": [key.as_obj() for key in created.values()]},
            "skipped": sorted(keys.keys() - created.keys()),
        }

    async def delete(self, call: Call, query: Obj) -> Obj:
        """Take one key away."""
        require(self.access, call.caller, "gpgkeys", "delete", "")
        name, stored = query.get("keyID", ""), self.state.data(PGP_KEYS_MAP)
        if name not in stored:
            raise RpcError(Code.UNKNOWN, f"no such key configured: {name}")
        await self.state.keep(PGP_KEYS_MAP, {other: text for other, text in stored.items() if other != name})
        return {}

    def _stored(self) -> Mapping[str, PublicKey]:
        found: dict[str, PublicKey] = {}
        for name, text in sorted(self.state.data(PGP_KEYS_MAP).items()):
            try:
                (key,) = public_keys(text).values()
                wanted = key_id(name)
            except ValueError as error:
                raise RpcError(Code.UNKNOWN, f'error parsing GPG key for entry "{name}": {error}') from None
            if wanted.upper() != key.key_id:
                message = f"key parsed for entry with key ID '{wanted}' had different key ID '{key.key_id}'"
                raise RpcError(Code.UNKNOWN, message)
            found[key.key_id] = key
        return found
