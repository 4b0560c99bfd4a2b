"""Accounts and rights of argocd's ConfigMaps and Secrets: :class:`AccountAccess`, the access of a real server.

The decisions are those of ``argo/access/``; here are the objects they are made of, the clock, and what is remembered:
failed logins, and sessions that were ended (until this process ends).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from syncline.argo.access.accounts import CONFIG_MAP, SECRET, Account, Capability
from syncline.argo.access.enforcing import Request
from syncline.argo.access.initial import (
    PASSWORD_LENGTH,
    PASSWORD_LETTERS,
    PASSWORD_SECRET,
    Made,
    Missing,
    initial_patch,
    missing,
)
from syncline.argo.access.logins import Failures
from syncline.argo.access.passwords import NO_ACCOUNT, SALT_BYTES, hashed, matches
from syncline.argo.access.policy import PolicyError
from syncline.argo.access.rights import CONFIG_MAP as RBAC
from syncline.argo.access.rights import Identity, Rights, read_rights
from syncline.argo.access.sessions import MAX_NAME, TokenError, checked, session_claims
from syncline.argo.access.signing import read_token, sign
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.base.secret import Secret
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.errors import AlreadyExists, NotFound
from syncline.kube.objects import Obj
from syncline.web.access import Caller
from syncline.web.localaccounts import LocalAccounts
from syncline.web.state import SECRET as SECRETS
from syncline.web.state import State
from syncline.web.wire.status import Code, RpcError

MAX_LOGINS = 8
"""Passwords that are compared at once; each takes 50 ms of CPU."""
MAX_WAITING = 200
"""Logins that wait; more are refused."""
MAX_REVOKED = 100_000
FAILED = "Invalid username or password"

log = logging.getLogger("syncline.web")

T = TypeVar("T")


@dataclass(slots=True)
class _Kept:
    """Something that was made of objects, and of which."""

    sources: tuple[object, ...] = ()
    value: Any = None

    def of(self, sources: tuple[object, ...], make: Callable[[], T]) -> T:
        if len(sources) != len(self.sources) or any(one is not other for one, other in zip(sources, self.sources)):
            self.value, self.sources = make(), sources
        value: T = self.value
        return value


class AccountAccess:
    """Implements :class:`~syncline.web.access.Access`."""

    def __init__(self, state: State, clock: Clock, entropy: Entropy) -> None:
        self._state = state
        self._clock = clock
        self._entropy = entropy
        self._failures = Failures()
        self._revoked: dict[str, None] = {}
        self._accounts = LocalAccounts(state)
        self._rights = _Kept()
        self._logins = asyncio.Semaphore(MAX_LOGINS)
        self._waiting = 0

    # -- who asks ----------------------------------------------------------------------------------------------------

    async def caller(self, token: Secret | None, remote: str) -> Caller:
        """Return who has this token. Raises :class:`RpcError` (unauthenticated)."""
        if token is None:
            if self._state.data(CONFIG_MAP).get("users.anonymous.enabled") == "true":
                return Caller("")
            raise RpcError(Code.UNAUTHENTICATED, "no session information")
        accounts = self._accounts.read()
        try:
            if accounts.key is None:
                raise TokenError("the server has no key yet")
            session = checked(
                read_token(token, accounts.key),
                accounts,
                self._state.project,
                self._revoked.keys(),
                self._clock.now(),
                self._entropy.uid,
            )
        except TokenError as error:
            raise RpcError(Code.UNAUTHENTICATED, f"invalid session: {error}") from None
        identity = session.identity
        renewed = sign(session.renewed, accounts.key) if session.renewed else None
        groups = identity.groups(self._rules().scopes)
        return Caller(identity.subject, identity.claims, groups, renewed)

    async def login(self, name: str, password: Secret, remote: str) -> Secret:
        """Return the token of a new session. Raises :class:`RpcError`."""
        if len(name.encode()) > MAX_NAME:
            raise RpcError(Code.INVALID_ARGUMENT, f"Username is too long ({MAX_NAME} bytes max)")
        account = await self.verified(name, password)
        if not account.enabled:
            raise RpcError(Code.UNAUTHENTICATED, f"Account {name} is disabled")
        if Capability.LOGIN not in account.capabilities:
            raise RpcError(Code.UNAUTHENTICATED, f"Account {name} does not have {Capability.LOGIN} capability")
        return sign(session_claims(name, self._entropy.uid(), self._clock.now()), self._accounts.key())

    async def verified(self, name: str, password: Secret) -> Account:
        """Return the account whose password this is; a wrong one counts. Raises :class:`RpcError`."""
        account, now = self._accounts.read().by_name.get(name), self._clock.now()
        known = account.password if account is not None and account.password is not None else NO_ACCOUNT
        if self._waiting >= MAX_WAITING:
            raise RpcError(Code.RESOURCE_EXHAUSTED, "too many logins at once; try again later")
        self._waiting += 1
        try:
            async with self._logins:
                right = await asyncio.to_thread(matches, password, known)
        finally:
            self._waiting -= 1
        blocked = self._failures.blocked(name, now)
        failed = blocked or not right or account is None or account.password is None
        self._failures = self._failures.after(name, now, failed=failed)
        if failed:
            raise RpcError(Code.UNAUTHENTICATED, FAILED)
        assert account is not None
        return account

    async def logout(self, caller: Caller) -> None:
        """Revoke the session of a caller."""
        identifier = caller.claims.get("jti")
        if isinstance(identifier, str) and identifier:
            self._revoked[identifier] = None
            while len(self._revoked) > MAX_REVOKED:
                del self._revoked[next(iter(self._revoked))]

    # -- what they may do --------------------------------------------------------------------------------------------

    def permits(self, caller: Caller, resource: str, action: str, name: str) -> bool:
        """Return whether a caller may ``action`` the object ``name`` of ``resource``."""
        identity = Identity(caller.subject, caller.claims)
        return bool(self._rules().decide(identity, Request(resource, action, name)))

    def _rules(self) -> Rights:
        data = self._state.data(RBAC)

        def made() -> Rights:
            try:
                return read_rights(data, self._state.project)
            except PolicyError as error:  # invalid rules permit nothing but what is built in
                log.warning("%s; until it is mended only the built-in roles count", error)
                return read_rights({}, self._state.project)

        return self._rights.of((data,), made)

    # -- the first start ---------------------------------------------------------------------------------------------

    async def initialize(self) -> None:
        """Write what a first start makes: the administrator's password, and the key of tokens. Raises ``ApiError``."""
        namespace, accounts = self._state.namespace, self._accounts.read()
        lacking = missing(accounts, self._state.secret(SECRET), tls=False)
        if not lacking:
            return
        password = Secret("".join(self._entropy.choice(list(PASSWORD_LETTERS)) for _ in range(PASSWORD_LENGTH)))
        key = Secret(self._entropy.token()) if Missing.KEY in lacking else None
        made = Made(key=key)
        if Missing.PASSWORD in lacking:
            salt = self._entropy.key()[:SALT_BYTES]
            made = Made(await asyncio.to_thread(hashed, password, salt), key)
            await self._put(PASSWORD_SECRET, {"stringData": {"password": password.reveal()}})
        now = self._clock.now() - timedelta(seconds=1)  # sessions of this second are valid
        await self._put(SECRET, initial_patch(accounts, lacking, made, now))
        found = await self._state.fresh(SECRETS, namespace, SECRET)
        self._state.cache.put(SECRETS, found)

    async def _put(self, name: str, patch: Obj) -> None:
        """Change a Secret, or make it."""
        namespace = self._state.namespace
        try:
            await self._state.send(SECRETS, client.patch, namespace, name, PatchType.MERGE, patch)
            return
        except NotFound:
            pass
        labels = {"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/name": name}
        body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": name, "labels": labels}}
        try:
            await self._state.send(SECRETS, client.create, body | patch, namespace=namespace)
        except AlreadyExists:  # another replica was first
            await self._state.send(SECRETS, client.patch, namespace, name, PatchType.MERGE, patch)
