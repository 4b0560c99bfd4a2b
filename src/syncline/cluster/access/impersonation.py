"""Authorize impersonation: which user the Impersonate headers select, and who may do that.

``authn`` calls it for each request with such headers. Constrained impersonation comes first (https://kep.k8s.io/5284,
on since Kubernetes 1.36): the caller needs ``impersonate:MODE`` for each attribute of the other user and
``impersonate-on:MODE:VERB`` for the request. Next is legacy impersonation, where ``impersonate`` for each attribute
allows every request. A refusal has the words of the first mode that fits the wanted user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

import msgspec

from syncline.cluster.access.authz import SUPERUSERS, Decision, forbidden
from syncline.cluster.access.rbac import Attributes, go_quoted
from syncline.cluster.access.users import ANONYMOUS, UserInfo, service_account_user
from syncline.kube.errors import BadRequest, Forbidden
from syncline.kube.text.names import dns_subdomain

Headers: TypeAlias = Mapping[str, Sequence[str]]
"""Lower-case names; every value of a repeated header, in order."""
Authorize: TypeAlias = Callable[[UserInfo, Attributes], Decision]

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
NODES = "system:nodes"
EXTRA_PREFIX = "impersonate-extra-"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
NODE_PREFIX = "system:node:"
NODE_OF_TOKEN = "authentication.kubernetes.io/node-name"
REVIEWS = "authentication.k8s.io"
ALL = "*"
MANY = 4
"""Number of groups or extras from which the wildcard is checked first."""
USERS_LIMIT = 10_000
"""Callers whose last mode is cached (``modeIndexCache``)."""
_EXTRA_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
"""Source: ``validation.IsDomainPrefixedPath``."""


class Acting(NamedTuple):
    """The effective user of a request. ``constraint``: the verb of the constrained mode, for the audit log."""

    user: UserInfo
    constraint: str = ""


@dataclass(frozen=True, slots=True)
class _Mode:
    """One mode of impersonation. ``fits`` returns whether it applies to this wanted user and caller."""

    name: str
    fits: Callable[[UserInfo, UserInfo], bool]

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"


def _only_named(wanted: UserInfo) -> bool:
    return not (wanted.groups or wanted.uid or wanted.extra)


def _own_node(wanted: UserInfo, caller: UserInfo) -> bool:
    node = _node(wanted.name)
    bound = tuple(caller.extra.get(NODE_OF_TOKEN, ()))
    return bool(node) and _only_named(wanted) and _service_account(caller.name) is not None and bound == (node,)


_MODES = (
    _Mode("associated-node", _own_node),
    _Mode("arbitrary-node", lambda wanted, _: _only_named(wanted) and bool(_node(wanted.name))),
    _Mode("serviceaccount", lambda wanted, _: _only_named(wanted) and _service_account(wanted.name) is not None),
    _Mode("user-info", lambda wanted, _: not _node(wanted.name) and _service_account(wanted.name) is None),
    _Mode("", lambda *_: True),
)


class Impersonation:
    """Evaluates Impersonate headers; ``authorize`` judges the caller's rights."""

    def __init__(self, authorize: Authorize) -> None:
        self._authorize = authorize
        self._last: dict[str, _Mode] = {}

    def acting(self, caller: UserInfo, headers: Headers, asked: Callable[[], Attributes]) -> Acting:
        """Return the effective user of ``caller``; ``asked`` returns the request's attributes. Raises Forbidden, and
        BadRequest for headers without a user."""
        wanted = _wanted(headers)
        if wanted is None:
            return Acting(caller)
        last, does = self._last.pop(caller.name, None), asked()
        if last is not None:
            self._last[caller.name] = last  # moved to the end: eviction takes the oldest entry first
        refused: Forbidden | None = None
        for mode in sorted(_MODES, key=lambda mode: mode is not last):
            if not mode.fits(wanted, caller):
                continue
            try:
                self._require(mode, caller, wanted, does)
            except Forbidden as error:
                refused = refused or error
                continue
            self._last[caller.name] = mode
            if len(self._last) > USERS_LIMIT:
                del self._last[next(iter(self._last))]
            return Acting(_completed(wanted, mode), mode.verb if mode.name else "")
        assert refused is not None, "the last way fits everyone"
        raise refused

    def _require(self, mode: _Mode, caller: UserInfo, wanted: UserInfo, does: Attributes) -> None:
        if mode.name:
            self._one(caller, msgspec.structs.replace(does, verb=f"impersonate-on:{mode.name}:{does.verb}"))
            _check(mode, caller, wanted)
        for several in _needed(mode, wanted):
            if mode.name and len(several) >= MANY:
                any_of = msgspec.structs.replace(several[0], name=ALL, subresource=several[0].subresource and ALL)
                if self._authorize(caller, any_of).allowed:
                    continue
            for each in several:
                self._one(caller, each)

    def _one(self, caller: UserInfo, asked: Attributes) -> None:
        decision = self._authorize(caller, asked)
        if not decision.allowed:
            raise forbidden(caller, asked, decision.reason)


def _needed(mode: _Mode, wanted: UserInfo) -> Iterator[list[Attributes]]:
    """Yield the rights needed to become ``wanted``, one list per kind of attribute."""
    verb, group = mode.verb, REVIEWS if mode.name else ""
    account, node = _service_account(wanted.name), _node(wanted.name) if mode.name else ""
    if account is not None:
        yield [Attributes(verb, group, "serviceaccounts", namespace=account[0], name=account[1])]
    elif node:
        yield [Attributes(verb, group, "nodes", name=ALL if mode.name == "associated-node" else node)]
    else:
        yield [Attributes(verb, group, "users", name=wanted.name)]
    if wanted.uid:
        yield [Attributes(verb, REVIEWS, "uids", name=wanted.uid)]
    yield [Attributes(verb, group, "groups", name=each) for each in wanted.groups]
    extras = [(key, value) for key, values in wanted.extra.items() for value in values]
    yield [Attributes(verb, REVIEWS, "userextras", key, name=value) for key, value in extras]


def _check(mode: _Mode, caller: UserInfo, wanted: UserInfo) -> None:
    """Raise Forbidden for what constrained impersonation never allows."""
    group = Attributes(mode.verb, REVIEWS, "groups")
    if "" in wanted.groups:
        raise forbidden(caller, group, "impersonating the empty string group is not allowed")
    if SUPERUSERS in wanted.groups:
        named = msgspec.structs.replace(group, name=SUPERUSERS)
        raise forbidden(caller, named, "impersonating the system:masters group is not allowed")
    for key, values in wanted.extra.items():
        problem = _extra_problem(key, values)
        if problem:
            raise forbidden(caller, Attributes(mode.verb, REVIEWS, "userextras"), problem)


def _extra_problem(key: str, values: Sequence[str]) -> str:
    if not key:
        return "impersonating the empty string key in extra is not allowed"
    host, _, path = key.partition("/")
    if dns_subdomain(host) or not _EXTRA_PATH.fullmatch(path):
        found = f"extra.key: Invalid value: {go_quoted([key])[1:-1]}: "
        allowed = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return f"impersonating an invalid key in extra is not allowed: {found}{allowed}"
    return "" if all(values) else "impersonating the empty string value in extra is not allowed"


def _wanted(headers: Headers) -> UserInfo | None:
    """Return the user of the Impersonate headers, or None; raise BadRequest for attributes without a user."""
    names = [value for value in headers.get("impersonate-user", ()) if value]
    groups = tuple(headers.get("impersonate-group", ()))
    uid = next(iter(headers.get("impersonate-uid", ())), "")
    extra = {
        unquote(header.removeprefix(EXTRA_PREFIX)): tuple(values)
        for header, values in sorted(headers.items())
        if header.startswith(EXTRA_PREFIX)
    }
    if names:
        return UserInfo(names[0], groups, uid, extra)
    if groups or uid or extra:
        asked = f'Name:"", UID:{go_quoted([uid])[1:-1]}, Groups:{_go_strings(groups)}, Extra:{_go_extra(extra)}'
        raise BadRequest(f"requested &user.DefaultInfo{{{asked}}} without impersonating a user name")
    return None


def _go_strings(values: tuple[str, ...]) -> str:
    return f"[]string{{{go_quoted(values)[1:-1]}}}" if values else "[]string(nil)"


def _go_extra(extra: Mapping[str, tuple[str, ...]]) -> str:
    if not extra:
        return "map[string][]string(nil)"
    listed = ", ".join(f"{go_quoted([key])[1:-1]}:{_go_strings(values)}" for key, values in sorted(extra.items()))
    return f"map[string][]string{{{listed}}}"


def _completed(wanted: UserInfo, mode: _Mode) -> UserInfo:
    """Return the user with its implicit groups."""
    account = _service_account(wanted.name)
    if mode.name and _node(wanted.name):
        wanted = replace(wanted, groups=(NODES,))
    elif account is not None and not wanted.groups:
        wanted = replace(wanted, groups=service_account_user(*account).groups)
    if wanted.name == ANONYMOUS.name:
        missing = [group for group in ANONYMOUS.groups if group not in wanted.groups]
        return replace(wanted, groups=(*wanted.groups, *missing))
    if UNAUTHENTICATED in wanted.groups or AUTHENTICATED in wanted.groups:
        return wanted
    return replace(wanted, groups=(*wanted.groups, AUTHENTICATED))


def _service_account(name: str) -> tuple[str, str] | None:
    if not name.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    parts = name.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
    return (parts[0], parts[1]) if len(parts) == 2 and all(parts) else None


def _node(name: str) -> str:
    """Return the node of a node user, or ""."""
    node = name.removeprefix(NODE_PREFIX)
    return node if node != name and not dns_subdomain(node) else ""
