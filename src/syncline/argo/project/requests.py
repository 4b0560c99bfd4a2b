"""What requests to the server make of an AppProject: normal forms, tokens of roles, what a change needs; pure.

Rules: Argo CD ``app_project_types.go`` (NormalizePolicies, NormalizeJWTTokens) and ``server/project/project.go``. An
object that is given is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from syncline.argo.project.permissions import permits_destination, permits_source
from syncline.kube.objects import Obj, dig

MAX_TOKENS = 1_000
"""Tokens of one role."""
RESTRICTIONS = (
    "clusterResourceWhitelist",
    "clusterResourceBlacklist",
    "namespaceResourceBlacklist",
    "namespaceResourceWhitelist",
)


def roles_of(project: Obj) -> list[Obj]:
    """Return the roles of a project."""
    found: list[Obj] = dig(project, "spec", "roles", default=[]) or []
    return found


def role_of(project: Obj, name: str) -> Obj | None:
    """Return the role of a name, else None."""
    return next((role for role in roles_of(project) if role.get("name") == name), None)


def normalized(project: Obj) -> Obj:
    """Return the project with one space after each comma of a policy, and with the same tokens in spec and status."""
    status = dig(project, "status", "jwtTokensByRole", default={}) or {}
    roles, by_role = [], {}
    for role in roles_of(project):
        name = str(role.get("name") or "")
        kept = (status.get(name) or {}).get("items") or []
        tokens = _combined([*kept, *(role.get("jwtTokens") or [])])
        changed = {key: value for key, value in role.items() if key != "jwtTokens"}
        if role.get("policies"):
            changed["policies"] = [_policy(str(line)) for line in role["policies"]]
        roles.append({**changed, "jwtTokens": tokens} if tokens else changed)
        by_role[name] = {"items": tokens} if tokens else {}
    made = {**project, "spec": {**(project.get("spec") or {}), **({"roles": roles} if roles else {})}}
    rest = {key: value for key, value in (project.get("status") or {}).items() if key != "jwtTokensByRole"}
    return {**made, "status": {**rest, **({"jwtTokensByRole": by_role} if by_role else {})}}


def _policy(line: str) -> str:
    first, *others = line.split(",")
    return ", ".join([first, *(one.strip(" ") for one in others)])


def _combined(tokens: Iterable[Obj]) -> list[Obj]:
    """Return the tokens by id, newest first; the id of an old one is its second."""
    by_id = {str(one.get("id") or one.get("iat") or ""): one for one in tokens}
    named = [{**one, "id": identifier} for identifier, one in by_id.items()]
    return sorted(named, key=lambda one: -int(one.get("iat") or 0))


def with_token(project: Obj, role: str, token: Obj) -> Obj:
    """Return the normal form of a project whose role has one token more."""
    return _with_tokens(normalized(project), role, lambda tokens: [token, *tokens])


def without_token(project: Obj, role: str, identifier: str, issued: int) -> Obj | None:
    """Return the project without the token of an id, else of a second; None if it has neither."""
    found = normalized(project)
    tokens = (role_of(found, role) or {}).get("jwtTokens") or []
    by_id = [one for one in tokens if identifier and one.get("id") == identifier]
    gone = by_id or [one for one in tokens if int(one.get("iat") or 0) == issued]
    if not gone:
        return None
    return _with_tokens(found, role, lambda kept: [one for one in kept if one is not gone[0]])


def _with_tokens(project: Obj, role: str, change: Callable[[list[Obj]], list[Obj]]) -> Obj:
    tokens = _combined(change((role_of(project, role) or {}).get("jwtTokens") or []))
    roles = [{**one, "jwtTokens": tokens} if one.get("name") == role else one for one in roles_of(project)]
    by_role = {**(dig(project, "status", "jwtTokensByRole", default={}) or {}), role: {"items": tokens}}
    return {
        **project,
        "spec": {**project["spec"], "roles": roles},
        "status": {**project["status"], "jwtTokensByRole": by_role},
    }


def is_same(one: Any, other: Any) -> bool:
    """Return whether two specs say the same: what is empty says as much as what is absent."""
    return bool(_spare(one) == _spare(other))


def _spare(value: Any) -> Any:
    if isinstance(value, dict):
        found = {key: _spare(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item not in ({}, [], "", None, False, 0)}
    return [_spare(item) for item in value] if isinstance(value, list) else value


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the fields in which two specs differ, as upstream spells them."""
    fields = sorted(one.keys() | other.keys())
    return [key[:1].upper() + key[1:] for key in fields if not is_same(one.get(key), other.get(key))]


def needed_rights(old: Obj, new: Obj) -> Iterator[tuple[str, str]]:
    """Yield what the author of a change must be allowed to update beside the project: resource and name."""
    before, after = (_servers(project) for project in (old, new))
    yield from (("clusters", server) for server in _once(after, before))
    repositories = (dig(project, "spec", "sourceRepos", default=[]) or [] for project in (new, old))
    yield from (("repositories", address) for address in _once(*repositories))
    if any(dig(old, "spec", field) != dig(new, "spec", field) for field in RESTRICTIONS):  # [] and none differ
        yield from (("clusters", server) for server in after)


def _servers(project: Obj) -> list[str]:
    return [str(one.get("server") or "") for one in dig(project, "spec", "destinations", default=[]) or []]


def _once(new: list[str], old: list[str]) -> list[str]:
    """Return the texts that stand once in both lists together (upstream's idea of a difference)."""
    together = [*new, *old]
    return [one for one in together if together.count(one) == 1]


def became_invalid(
    old: Obj,
    new: Obj,
    apps: Iterable[Obj],
    place: Callable[[Obj], tuple[str, str] | None],
    scoped: Sequence[Mapping[str, str]] = (),
) -> str:
    """Return which Applications of a project a change leaves without permission, empty if it leaves none so.

    ``place`` answers with server and name of an Application's cluster, None where it is unknown; ``scoped``: server and
    name of the clusters that are the project's own.
    """
    sources = destinations = 0
    for app in apps:
        listed = dig(app, "spec", "sources", default=None) or [dig(app, "spec", "source", default={}) or {}]
        address = str(listed[0].get("repoURL") or "")
        sources += permits_source(old, address) and not permits_source(new, address)
        where = place(app)
        if where is None:
            continue
        namespace = str(dig(app, "spec", "destination", "namespace") or "")
        permitted = [permits_destination(project, *where, namespace, scoped) for project in (old, new)]
        destinations += permitted == [True, False]
    parts = [
        f"{count} applications {what} became invalid"
        for count, what in ((sources, "source"), (destinations, "destination"))
        if count
    ]
    return f"as a result of project update {' and '.join(parts)}" if parts else ""
