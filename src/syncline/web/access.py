"""Who asks, and what they may do: the interface at which the services meet accounts and rights.

The services call :class:`Access`; the code that assembles the server gives one. :class:`OpenAccess` is the server
without accounts (``--disable-auth``), for a machine of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from syncline.argo.access.accounts import Account
from syncline.argo.access.enforcing import Request
from syncline.argo.access.rights import Identity, refusal
from syncline.base.secret import Secret
from syncline.web.wire.status import Code, RpcError

ANONYMOUS = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """The subject of a token, empty for a caller without one, and the token's other claims."""

    subject: str
    claims: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    renewed: Secret | None = None
    """A new token for a session that ends soon."""

    @property
    def logged_in(self) -> bool:
        return bool(self.subject)

    @property
    def issuer(self) -> str:
        return str(self.claims.get("iss", ""))


class Access(Protocol):
    """Accounts, sessions and rights."""

    async def caller(self, token: Secret | None, remote: str) -> Caller:
        """Return who has this token. Raises :class:`RpcError` (unauthenticated)."""
        ...

    async def login(self, name: str, password: Secret, remote: str) -> Secret:
        """Return the token of a new session. Raises :class:`RpcError`."""
        ...

    async def verified(self, name: str, password: Secret) -> Account:
        """Return the account whose password this is. Raises :class:`RpcError`."""
        ...

    async def logout(self, caller: Caller) -> None:
        """Revoke the session of a caller."""
        ...

    def permits(self, caller: Caller, resource: str, action: str, name: str) -> bool:
        """Return whether a caller may ``action`` the object ``name`` of ``resource``."""
        ...


def require(access: Access, caller: Caller, resource: str, action: str, name: str) -> None:
    """Raise :class:`RpcError` (permission denied), in upstream's words, unless the rules permit this."""
    if access.permits(caller, resource, action, name):
        return
    identity = Identity(caller.subject, caller.claims)
    raise RpcError(Code.PERMISSION_DENIED, refusal(identity, Request(resource, action, name)))


class OpenAccess:
    """Everyone is the administrator."""

    async def caller(self, token: Secret | None, remote: str) -> Caller:
        return Caller("admin", {"iss": "argocd", "sub": "admin"})

    async def login(self, name: str, password: Secret, remote: str) -> Secret:
        raise RpcError(Code.UNIMPLEMENTED, "this server has no accounts (--disable-auth): no login is needed")

    async def verified(self, name: str, password: Secret) -> Account:
        raise RpcError(Code.UNIMPLEMENTED, "this server has no accounts (--disable-auth)")

    async def logout(self, caller: Caller) -> None:
        return None

    def permits(self, caller: Caller, resource: str, action: str, name: str) -> bool:
        return True
