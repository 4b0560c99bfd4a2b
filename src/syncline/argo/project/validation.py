"""Validates AppProjects and merges global projects into them.

Called when a project is written and when it is read for a decision. Pure. Rules: ``AppProject.ValidateProject`` and
``mergeVirtualProject`` of Argo CD (reference argocd-app §§2.2, 2.4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from syncline.argo.project.windows import validate_window
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.text.glob import GlobError, glob_match

INVALID = "InvalidArgument"
EXISTS = "AlreadyExists"
OUT_OF_RANGE = "OutOfRange"
ROLE_NAME = re.compile(r"[a-zA-Z0-9]([-_a-zA-Z0-9]*[a-zA-Z0-9])?")
POLICY_PARTS = 6
ROLE_RESOURCES = ("applications", "applicationsets", "repositories", "exec", "logs", "clusters")
ACTIONS = ("get", "create", "update", "delete", "sync", "override", "*")
ACTION_PATTERNS = re.compile(r"(action|update|delete)/.*")
BAD_IN_ACCOUNT = frozenset("!*[]{}\\/")
MERGED = (
    "clusterResourceWhitelist",
    "clusterResourceBlacklist",
    "namespaceResourceWhitelist",
    "namespaceResourceBlacklist",
    "syncWindows",
    "sourceRepos",
    "destinations",
    "destinationServiceAccounts",
)
"""Lists of a global project that are appended to those of the projects it selects."""


class ProjectError(ValueError):
    """The project is invalid; ``code`` is the API's error code, empty for a plain error."""

    def __init__(self, text: str, code: str = INVALID) -> None:
        super().__init__(text)
        self.code = code

    def __str__(self) -> str:
        text = str(self.args[0])
        return f"rpc error: code = {self.code} desc = {text}" if self.code else text


def validate_project(project: Obj) -> None:
    """Validate a project; raises :class:`ProjectError` for the first problem."""
    _check_destinations(_entries(project, "destinations"))
    _check_once(_texts(project, "sourceNamespaces"), lambda text: f"source namespace '{text}' already added")
    repos = _texts(project, "sourceRepos")
    if "!*" in repos:
        raise ProjectError("source repository has an invalid format, '!*'")
    _check_once(repos, lambda text: f"source repository '{text}' already added")
    for index, role in enumerate(_entries(project, "roles")):
        names = [_part(earlier, "name") for earlier in _entries(project, "roles")[:index]]
        _check_role(name_of(project), role, names)
    _check_windows(_entries(project, "syncWindows"))
    _check_accounts(_entries(project, "destinationServiceAccounts"))


def _entries(project: Obj, field: str) -> list[Obj]:
    found = dig(project, "spec", field, default=[])
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _texts(project: Obj, field: str) -> list[str]:
    found = dig(project, "spec", field, default=[])
    return [str(entry) for entry in found] if isinstance(found, list) else []


def _part(entry: Mapping[str, Any], field: str) -> str:
    return str(entry.get(field) or "")


def _check_once(values: Iterable[str], text: Callable[[str], str], code: str = INVALID) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise ProjectError(text(value), code)
        seen.add(value)


def _check_destinations(destinations: list[Obj]) -> None:
    keys: list[str] = []
    for item in destinations:
        for field in ("name", "server", "namespace"):
            if _part(item, field) == "!*":
                raise ProjectError(f"{field} has an invalid format, '!*'")
        keys.append(f"{_part(item, 'server') or _part(item, 'name')}/{_part(item, 'namespace')}")
    _check_once(keys, lambda key: f"destination '{key}' already added")


def _check_role(project: str, role: Obj, earlier: list[str]) -> None:
    name = _part(role, "name")
    if name in earlier:
        raise ProjectError(f"role '{name}' already exists", EXISTS)
    if not ROLE_NAME.fullmatch(name):
        raise ProjectError(
            f"invalid role name '{name}'. Must consist of alphanumeric characters, '-' or '_', "
            "and must start and end with an alphanumeric character"
        )
    policies = [str(policy) for policy in role.get("policies") or ()]
    _check_once(policies, lambda policy: f"policy '{policy}' already exists for role '{name}'", EXISTS)
    for policy in policies:
        problem = _policy_problem(project, name, policy)
        if problem:
            raise ProjectError(f"invalid policy rule '{policy}': {problem}")
    groups = [str(group) for group in role.get("groups") or ()]
    _check_once(groups, lambda group: f"group '{group}' already exists for role '{name}'", EXISTS)
    for group in groups:
        _check_group(group)


def _policy_problem(project: str, role: str, policy: str) -> str:
    parts = [part.strip(" ") for part in policy.split(",")]
    if len(parts) != POLICY_PARTS or parts[0] != "p":
        return "must be of the form: 'p, sub, res, act, obj, eft'"
    _, subject, resource, action, target, effect = parts
    expected = f"proj:{project}:{role}"
    if subject != expected:
        return f"policy subject must be: '{expected}', not '{subject}'"
    if resource not in ROLE_RESOURCES:
        listed = ", ".join(f"'{name}'" for name in ROLE_RESOURCES[:-1])
        return f"project resource must be: {listed} or '{ROLE_RESOURCES[-1]}', not '{resource}'"
    if action not in ACTIONS and not ACTION_PATTERNS.fullmatch(action):
        return f"invalid action '{action}'"
    if not re.fullmatch(rf"{re.escape(project)}(/[*\w.-]+)?/[*\w.-]+", target, re.ASCII):
        forms = f"'{project}/*', '{project}[/<NAMESPACE>]/<APPNAME>' or '{project}/<APPNAME>'"
        return f"object must be of form {forms}, not '{target}'"
    return "" if effect in ("allow", "deny") else "effect must be: 'allow' or 'deny'"


def _check_group(group: str) -> None:
    name = group.strip()
    quoted = len(name) > 1 and name[0] == name[-1] == '"'
    if not quoted and "," in name:
        raise ProjectError(f"group '{name}' must be quoted")
    bare = name[1:-1] if quoted else name
    if not bare:
        raise ProjectError("group '' is empty")
    if any(letter in bare for letter in "\n\r\t"):
        raise ProjectError(f"group '{bare}' contains invalid characters")
    for place, letter in (("leading", group[:1]), ("trailing", group[-1:])):
        if len(group) > 1 and letter.isspace():
            raise ProjectError(f"group '{bare}' contains a {place} space")


def _check_windows(windows: list[Obj]) -> None:
    seen: list[Obj] = []
    for window in windows:
        kind, schedule, duration = (_part(window, field) for field in ("kind", "schedule", "duration"))
        identity = _identity(window)
        if identity in seen:
            text = f"sync window with kind '{kind}', schedule '{schedule}', and duration '{duration}' already exists"
            raise ProjectError(f"{text} (duplicate detected)", EXISTS)
        seen.append(identity)
        problem = validate_window(window)
        if problem:
            raise ProjectError(problem, "")
        if not any(window.get(field) for field in ("applications", "namespaces", "clusters")):
            text = f"window '{kind}':'{schedule}':'{duration}' requires one of application, cluster or namespace"
            raise ProjectError(text, OUT_OF_RANGE)


def _identity(window: Obj) -> Obj:
    """Return the fields that identify a window: its schedule and its applications, namespaces and clusters."""
    fields = ("kind", "schedule", "duration", "timeZone", "applications", "namespaces", "clusters")
    return {field: window.get(field) or "" for field in fields}


def _check_accounts(accounts: list[Obj]) -> None:
    keys: list[str] = []
    for item in accounts:
        places = {field: _part(item, field) for field in ("server", "namespace")}
        for field, text in places.items():
            if "!" in text:
                raise ProjectError(f"{field} has an invalid format, '{text}'")
        account = _part(item, "defaultServiceAccount")
        if not account.strip(" ") or BAD_IN_ACCOUNT & set(account):
            raise ProjectError(f"defaultServiceAccount has an invalid format, '{account}'")
        for field, text in places.items():
            if not _compiles(text):
                raise ProjectError(f"{field} has an invalid format, '{text}'")
        keys.append(f"{places['server']}/{places['namespace']}")
    _check_once(keys, lambda key: f"destinationServiceAccount '{key}' already added")


def _compiles(pattern: str) -> bool:
    try:
        glob_match(pattern, "")
    except GlobError:
        return False
    return True


def merge_global(project: Obj, global_project: Obj) -> Obj:
    """Return ``project`` with a global project's lists appended; roles, source namespaces and others stay."""
    spec = dict(dig(project, "spec", default={}))
    for field in MERGED:
        added = dig(global_project, "spec", field, default=[])
        if added:
            spec[field] = [*(spec.get(field) or []), *added]
    for field in ("namespaceResourceWhitelist", "namespaceResourceBlacklist"):
        if spec.get(field):  # only cluster-scoped kinds are restricted by name
            spec[field] = [{k: v for k, v in entry.items() if k != "name"} for entry in spec[field]]
    return project | {"spec": spec}
