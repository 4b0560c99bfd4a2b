"""AccountService: local accounts, their passwords and tokens. Rules: Argo CD ``server/account/account.go``."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from syncline.argo.access.accounts import MAX_TOKENS, Account, Capability, Token
from syncline.argo.access.passwords import SALT_BYTES, hashed
from syncline.argo.access.rights import project_role
from syncline.argo.access.sessions import ISSUER
from syncline.argo.access.vocabulary import ACTIONS, ENFORCES_ROLLBACK, PROJECT_SCOPED, RESOURCES
from syncline.base.entropy import Entropy
from syncline.base.secret import Secret
from syncline.kube.objects import Obj
from syncline.kube.text.re2 import compile_pattern
from syncline.web.access import Caller, require
from syncline.web.localaccounts import LocalAccounts
from syncline.web.parts import Parts
from syncline.web.services.settings import PASSWORD_PATTERN
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError

MAX_ID = 253
"""Letters of the id of a token."""
SIGNED_ON = timedelta(minutes=5)
"""How long after signing on a person of an identity provider may change passwords."""

log = logging.getLogger("syncline.web")


@contextmanager
def within(text: str) -> Iterator[None]:
    """Put ``text`` before the refusals of the block."""
    try:
        yield
    except RpcError as error:
        raise error.within(text) from None


@dataclass(frozen=True, slots=True)
class AccountService:
    """The service; see :meth:`handlers`."""

    parts: Parts
    accounts: LocalAccounts
    entropy: Entropy = field(default_factory=Entropy)

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        service = "/account.AccountService/"
        return {
            service + "CanI": self.can_i,
            service + "UpdatePassword": self.update_password,
            service + "ListAccounts": self.list,
            service + "GetAccount": self.get,
            service + "CreateToken": self.create_token,
            service + "DeleteToken": self.delete_token,
        }

    async def can_i(self, call: Call, asked: Obj) -> Obj:
        """Say whether the rules permit something to the caller."""
        resource, action, name = (asked.get(key, "") for key in ("resource", "action", "subresource"))
        for allowed, found in ((ACTIONS, action), (RESOURCES, resource)):
            if found not in allowed:
                raise RpcError(Code.INVALID_ARGUMENT, f"[{' '.join(allowed)}] does not contain {found}")
        if action == "rollback" and self.parts.state.data("argocd-cm").get(ENFORCES_ROLLBACK) != "true":
            action = "sync"
        match name.split("/"):
            case [project, self.parts.state.namespace | "", app] if resource in PROJECT_SCOPED:
                name = f"{project}/{app}"
        return {"value": "yes" if self.parts.access.permits(call.caller, resource, action, name) else "no"}

    async def list(self, call: Call, _: Obj) -> Obj:
        """Return the accounts that the caller may get, by name; everyone's own is among them."""
        found = sorted(self.accounts.read().by_name.items())
        return {"items": [_shown(account) for name, account in found if self._may(call.caller, "get", name)]}

    async def get(self, call: Call, asked: Obj) -> Obj:
        """Return one account."""
        name = asked.get("name", "")
        with within(f"permission denied to get account {name}"):
            self._require(call.caller, "get", name)
        with within(f"failed to get account {name}"):
            return _shown(self.accounts.account(name))

    async def create_token(self, call: Call, asked: Obj) -> Obj:
        """Return a new token of an account; only its id and its times are kept."""
        name, seconds = asked.get("name", ""), int(asked.get("expiresIn") or 0)
        with within(f"permission denied to create token for account {name}"):
            self._require(call.caller, "update", name)
        identifier = asked.get("id") or self.entropy.uid()
        now = self.parts.clock.now()
        issued = int(now.timestamp())

        def decide(account: Account) -> Account:
            if account.token(identifier) is not None:
                raise RpcError(Code.UNKNOWN, f"account already has token with id '{identifier}'")
            if Capability.API_KEY not in account.capabilities:
                raise RpcError(Code.UNKNOWN, f"account '{name}' does not have {Capability.API_KEY} capability")
            if len(account.tokens) >= MAX_TOKENS or len(identifier) > MAX_ID:
                text = f"account '{name}': {MAX_TOKENS} tokens with ids of {MAX_ID} letters are allowed; delete some"
                raise RpcError(Code.RESOURCE_EXHAUSTED, text)
            made = Token(identifier, issued, issued + seconds if seconds else 0)
            return replace(account, tokens=(*account.tokens, made))

        with within("failed to update account with new token"):
            token = self.accounts.token(f"{name}:{Capability.API_KEY}", identifier, now, seconds)
            await self.accounts.change(name, decide)
        self._log(call, f"created token {identifier!r} of account {name!r}")
        return {"token": token.reveal()}

    async def delete_token(self, call: Call, asked: Obj) -> Obj:
        """Forget a token of an account: it is valid no longer."""
        name, identifier = asked.get("name", ""), asked.get("id", "")
        with within(f"permission denied to delete account {name}"):
            self._require(call.caller, "update", name)

        def decide(account: Account) -> Account:
            if account.token(identifier) is None:
                raise RpcError(Code.NOT_FOUND, f"token with id '{identifier}' does not exist")
            return replace(account, tokens=tuple(one for one in account.tokens if one.id != identifier))

        with within(f"failed to delete account {name}"):
            await self.accounts.change(name, decide)
        self._log(call, f"deleted token {identifier!r} of account {name!r}")
        return {}

    async def update_password(self, call: Call, asked: Obj) -> Obj:
        """Change a password: one's own with the current one, that of others with the right to."""
        name = asked.get("name") or call.caller.subject
        if name != call.caller.subject or call.caller.issuer != ISSUER:
            with within("permission denied"):
                require(self.parts.access, call.caller, "accounts", "update", asked.get("name", ""))
        await self._prove(call.caller, asked)
        new = Secret(asked.get("newPassword", ""))
        self._check_pattern(new)
        try:
            made = await asyncio.to_thread(hashed, new, self.entropy.key()[:SALT_BYTES])
        except ValueError as error:
            raise RpcError(Code.UNKNOWN, f"failed to hash password: {error}") from None
        now = self.parts.clock.now()
        with within("failed to update account password"):
            await self.accounts.change(name, lambda one: replace(one, password=made, password_changed=now))
        self._log(call, f"changed the password of account {name!r}")
        return {}

    async def _prove(self, caller: Caller, asked: Obj) -> None:
        """Raise unless the caller shows that they are still who logged in."""
        if caller.issuer != ISSUER:
            issued = caller.claims.get("iat")
            age = self.parts.clock.now().timestamp() - issued if isinstance(issued, int | float) else None
            if age is None or age > SIGNED_ON.total_seconds():
                text = "SSO token is too old. Please use 'argocd relogin' to get a new token"
                raise RpcError(Code.UNKNOWN, text)
            return
        if not asked.get("name") and project_role(caller.subject) is not None:
            text = f'password can only be changed for local users, not user "{caller.subject}"'
            raise RpcError(Code.INVALID_ARGUMENT, text)
        try:
            await self.parts.access.verified(caller.subject, Secret(asked.get("currentPassword", "")))
        except RpcError as error:
            if error.code is not Code.UNAUTHENTICATED:
                raise
            raise RpcError(Code.INVALID_ARGUMENT, "current password does not match") from None

    def _check_pattern(self, new: Secret) -> None:
        pattern = self.parts.state.data("argocd-cm").get("passwordPattern") or PASSWORD_PATTERN
        try:
            fits = compile_pattern(pattern).search(new.reveal()) is not None
        except re.error as error:
            raise RpcError(Code.UNKNOWN, f"failed to compile password regex: {error}") from None
        if not fits:
            raise RpcError(Code.UNKNOWN, f"new password does not match the following expression: {pattern}")

    def _may(self, caller: Caller, action: str, name: str) -> bool:
        own = caller.subject == name and caller.issuer == ISSUER
        return own or self.parts.access.permits(caller, "accounts", action, name)

    def _require(self, caller: Caller, action: str, name: str) -> None:
        if not self._may(caller, action, name):
            with within(f"permission denied for account {name} with action {action}"):
                require(self.parts.access, caller, "accounts", action, name)

    def _log(self, call: Call, what: str) -> None:
        log.info("%r from %s %s", call.caller.subject or "Unknown user", call.remote, what)


def _shown(account: Account) -> Obj:
    """Return what may be seen of an account: no password, and no token."""
    newest_first = sorted(account.tokens, key=lambda one: -one.issued)
    return {
        "name": account.name,
        "enabled": account.enabled,
        "capabilities": [str(one) for one in account.capabilities],
        "tokens": [{"id": one.id, "issuedAt": one.issued, "expiresAt": one.expires} for one in newest_first],
    }
