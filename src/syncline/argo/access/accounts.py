"""Accounts of ``argocd-cm`` and ``argocd-secret``: :func:`read_accounts`, and what a change of one writes.

Pure. Rules: Argo CD ``util/settings/accounts.go``. Hashes of passwords and the key of tokens are Secrets.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from syncline.base.secret import Secret
from syncline.kube.objects import Obj, dig

ADMIN = "admin"
SECRET = "argocd-secret"
CONFIG_MAP = "argocd-cm"
SIGNING_KEY = "server.secretkey"
MAX_TOKENS = 1_000
"""Tokens of one account; the Secret that holds them may have a megabyte."""
TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class AccountsError(ValueError):
    """A setting that cannot be read; the text names object and key."""


class Capability(StrEnum):
    """What an account is for."""

    LOGIN = "login"
    """Sessions of people: name and password."""
    API_KEY = "apiKey"
    """Tokens of pipelines."""


CAPABILITIES = frozenset(str(capability) for capability in Capability)


@dataclass(frozen=True, slots=True)
class Token:
    """A token that was generated; the token itself is not kept. Times are seconds since 1970, 0: no end."""

    id: str
    issued: int
    expires: int = 0


@dataclass(frozen=True, slots=True)
class Account:
    """One local account; ``password`` is a bcrypt hash, None where none is set."""

    name: str
    enabled: bool = True
    capabilities: tuple[Capability, ...] = ()
    password: Secret | None = None
    password_changed: datetime | None = None
    tokens: tuple[Token, ...] = ()

    def token(self, identifier: str) -> Token | None:
        """Return the token of an id, else None."""
        return next((token for token in self.tokens if token.id == identifier), None)


@dataclass(frozen=True)
class Accounts:
    """All accounts by name; ``problems`` names settings that were passed over."""

    by_name: Mapping[str, Account]
    key: Secret | None = None
    """Signs tokens; None where ``argocd-secret`` has none yet."""
    problems: tuple[str, ...] = field(default=())


def read_accounts(config: Obj | None, secret: Obj | None) -> Accounts:
    """Return the accounts of both objects; a missing object counts as empty. Raises :class:`AccountsError`."""
    settings: Mapping[str, str] = dig(config or {}, "data", default={}) or {}
    hidden = _Hidden(dig(secret or {}, "data", default={}) or {})
    problems: list[str] = []
    found: dict[str, tuple[tuple[Capability, ...], bool]] = {
        ADMIN: ((Capability.LOGIN,), _admin_enabled(settings.get("admin.enabled", "true"), problems))
    }
    for key in sorted(settings):
        parts = key.split(".")
        if parts[0] != "accounts" or len(parts) < 2:
            continue
        if len(parts) > 3:
            problems.append(f"{CONFIG_MAP} {key}: allowed are accounts.NAME and accounts.NAME.enabled")
            continue
        name = parts[1]
        capabilities, enabled = found.get(name, ((), True))
        if len(parts) == 2:
            capabilities += _capabilities(key, settings[key], problems)
        elif parts[2] == "enabled":
            enabled = _boolean(key, settings[key])
        found[name] = (capabilities, enabled)
    accounts = {name: _account(name, enabled, caps, hidden, problems) for name, (caps, enabled) in found.items()}
    key_text = hidden.text(SIGNING_KEY)
    return Accounts(accounts, Secret(key_text) if key_text else None, tuple(problems))


class _Hidden:
    """The data of ``argocd-secret``, decoded on demand."""

    def __init__(self, data: Mapping[str, str]) -> None:
        self._data = data

    def text(self, key: str) -> str:
        """Return the text of ``key``, empty where it is absent. Raises :class:`AccountsError`."""
        try:
            return base64.b64decode(self._data.get(key) or "", validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise AccountsError(f"Secret {SECRET} {key}: it is no text in base64") from error


def _account(
    name: str, enabled: bool, capabilities: tuple[Capability, ...], hidden: _Hidden, problems: list[str]
) -> Account:
    prefix = name if name == ADMIN else f"accounts.{name}"
    password = hidden.text(f"{prefix}.password")
    changed = hidden.text(f"{prefix}.passwordMtime")
    return Account(
        name=name,
        enabled=enabled,
        capabilities=capabilities,
        password=Secret(password) if password else None,
        password_changed=_time(f"{prefix}.passwordMtime", changed, name, problems) if changed else None,
        tokens=_tokens(f"{prefix}.tokens", hidden.text(f"{prefix}.tokens"), problems),
    )


def _time(key: str, text: str, name: str, problems: list[str]) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        problem = f"Secret {SECRET} {key}: found {text!r}; a time such as 2026-01-31T12:00:00Z is allowed"
        if name != ADMIN:
            raise AccountsError(problem) from error
        problems.append(problem)
        return None


def _tokens(key: str, text: str, problems: list[str]) -> tuple[Token, ...]:
    """Return the tokens of a JSON list; without a list that can be read no token of the account is valid."""
    if not text:
        return ()
    try:
        rows = json.loads(text) or []
        return tuple(Token(str(row["id"]), int(row["iat"]), int(row.get("exp") or 0)) for row in rows[:MAX_TOKENS])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        problems.append(f"Secret {SECRET} {key}: it is no list of tokens, so none is valid")
        return ()


def _capabilities(key: str, text: str, problems: list[str]) -> tuple[Capability, ...]:
    found: list[Capability] = []
    for word in (part.strip() for part in text.split(",")):
        if word in CAPABILITIES:
            found.append(Capability(word))
        elif word:
            problems.append(f"{CONFIG_MAP} {key}: found {word!r}; allowed: login, apiKey")
    return tuple(found)


def _admin_enabled(text: str, problems: list[str]) -> bool:
    try:
        return _boolean("admin.enabled", text)
    except AccountsError as error:
        problems.append(str(error))
        return True


def _boolean(key: str, text: str) -> bool:
    if text not in TRUE | FALSE:
        raise AccountsError(f"{CONFIG_MAP} {key}: found {text!r}; allowed: true, false")
    return text in TRUE


def secret_patch(account: Account) -> dict[str, Any]:
    """Return the merge patch of ``argocd-secret`` that holds password, its time and tokens of ``account``."""
    prefix = account.name if account.name == ADMIN else f"accounts.{account.name}"
    changed = account.password_changed
    rows = [
        {"id": one.id, "iat": one.issued, **({"exp": one.expires} if one.expires else {})} for one in account.tokens
    ]
    texts = {
        "password": account.password.reveal() if account.password else "",
        "passwordMtime": changed.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if changed else "",
        "tokens": json.dumps(rows, separators=(",", ":")) if rows else "",
    }
    data = {
        f"{prefix}.{key}": base64.b64encode(text.encode()).decode() if text else None for key, text in texts.items()
    }
    return {"data": data}
