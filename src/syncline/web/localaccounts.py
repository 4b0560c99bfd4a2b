"""The accounts of ``argocd-cm`` and ``argocd-secret`` as the server reads and changes them: :class:`LocalAccounts`.

Rules: Argo CD ``util/settings/accounts.go`` (UpdateAccount). A change is written under the version that was read, and
decided again after a conflict.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from syncline.argo.access.accounts import (
    CONFIG_MAP,
    SECRET,
    Account,
    Accounts,
    AccountsError,
    read_accounts,
    secret_patch,
)
from syncline.argo.access.sessions import token_claims
from syncline.argo.access.signing import sign
from syncline.base.secret import Secret
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.errors import Conflict
from syncline.kube.objects import resource_version
from syncline.web.state import SECRET as SECRETS
from syncline.web.state import State
from syncline.web.wire.status import Code, RpcError

MAX_TRIES = 5
"""Conflicts of one change."""
LONGEST_S = 100 * 365 * 24 * 3600
"""Seconds that a token may last; one without end is asked for by 0."""


class LocalAccounts:
    """Reads accounts from the caches of ``state``, made once for each version of both objects."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._kept: tuple[object, object, Accounts] | None = None

    def read(self) -> Accounts:
        """Return all accounts. Raises :class:`RpcError`."""
        data, secret = self._state.data(CONFIG_MAP), self._state.secret(SECRET)
        if self._kept is not None and self._kept[0] is data and self._kept[1] is secret:
            return self._kept[2]
        try:
            made = read_accounts({"data": dict(data)}, secret)
        except AccountsError as error:
            raise RpcError(Code.INTERNAL, f"accounts cannot be read: {error}") from None
        self._kept = data, secret, made
        return made

    def account(self, name: str) -> Account:
        """Return the account of a name. Raises :class:`RpcError`."""
        found = self.read().by_name.get(name)
        if found is None:
            raise RpcError(Code.NOT_FOUND, f"account '{name}' does not exist")
        return found

    async def change(self, name: str, decide: Callable[[Account], Account]) -> None:
        """Write what ``decide`` makes of an account as the API has it now. Raises RpcError and ApiError."""
        namespace = self._state.namespace
        for left in reversed(range(MAX_TRIES)):
            secret = await self._state.fresh(SECRETS, namespace, SECRET)
            self._state.cache.put(SECRETS, secret)
            patch = secret_patch(decide(self.account(name)))
            patch["metadata"] = {"resourceVersion": resource_version(secret)}
            try:
                found = await self._state.send(SECRETS, client.patch, namespace, SECRET, PatchType.MERGE, patch)
            except Conflict:
                if not left:
                    raise
                continue
            self._state.cache.put(SECRETS, found)  # the next request sees it, whenever the watch does
            return

    def token(self, subject: str, identifier: str, now: datetime, seconds: int) -> Secret:
        """Return a signed token of ours that lasts ``seconds``, or without end for 0. Raises :class:`RpcError`."""
        if not 0 <= seconds <= LONGEST_S:
            text = f"expiresIn: found {seconds} seconds; 0 (no end) to {LONGEST_S} are allowed"
            raise RpcError(Code.INVALID_ARGUMENT, text)
        lasts = timedelta(seconds=seconds) if seconds else None
        return sign(token_claims(subject, identifier, now, lasts), self.key())

    def key(self) -> Secret:
        """Return the key that signs tokens. Raises :class:`RpcError` where there is none yet."""
        key = self.read().key
        if key is None:
            text = f"Secret {SECRET} has no server.secretkey yet; restart the server to make one"
            raise RpcError(Code.UNAVAILABLE, text)
        return key
