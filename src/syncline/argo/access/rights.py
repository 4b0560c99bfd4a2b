"""What an identity may do through the server: :class:`Rights`, of ``argocd-rbac-cm`` and the AppProjects.

Pure. Rules: Argo CD ``util/rbac`` and ``server/rbacpolicy``. The answer of Kubernetes' RBAC has no part in it: the
server writes with its own identity after these rules have permitted the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from syncline.argo.access.builtin import BUILTIN
from syncline.argo.access.enforcing import Decision, Enforcer, MatchMode, Request
from syncline.argo.access.policy import Permission, Policy, PolicyError, policy_text, read_policy
from syncline.argo.access.vocabulary import PROJECT_SCOPED
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.yaml.loading import load

CONFIG_MAP = "argocd-rbac-cm"
DEFAULT_SCOPES = ("groups",)
PROJECT_SUBJECT = "proj"
MAX_KEPT = 1_000
"""Projects whose rules are kept in their indexed form."""


@dataclass(frozen=True)
class Identity:
    """Who asks: the subject of a token, and its other claims (the groups are in them, under the scopes)."""

    subject: str
    claims: Mapping[str, Any] = field(default_factory=dict)

    def groups(self, scopes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the texts of the claims ``scopes``: lists of texts, or one text."""
        found: list[str] = []
        for scope in scopes:
            value = self.claims.get(scope)
            values = value if isinstance(value, list) else [value]
            found += [text for text in values if isinstance(text, str)]
        return tuple(found)


def identity_of(claims: Mapping[str, Any]) -> Identity:
    """Return the identity of a token: ``federated_claims.user_id`` where Dex set it, else ``sub``."""
    federated = claims.get("federated_claims")
    name = federated.get("user_id") if isinstance(federated, dict) else None
    subject = name if isinstance(name, str) and name else claims.get("sub")
    return Identity(subject if isinstance(subject, str) else "", claims)


def project_role(subject: str) -> tuple[str, str] | None:
    """Return project and role of the subject ``proj:PROJECT:ROLE`` of a project's token, else None."""
    match subject.split(":"):
        case ["proj", project, role]:
            return project, role
    return None


@dataclass(frozen=True)
class Rights:
    """The rules of one moment; ``project`` answers with the AppProject of a name, global ones merged, or None."""

    policy: Policy
    mode: MatchMode
    default_role: str
    scopes: tuple[str, ...]
    project: Callable[[str], Obj | None]
    builtin: Policy = BUILTIN

    def decide(self, identity: Identity, request: Request) -> Decision:
        """Return whether ``identity`` may do what it asks for, and the line that decided."""
        project = self._project_of(request)
        enforcer = self._enforcer(project) if project is not None else self.general
        of_project = project_role(identity.subject)
        if project is not None and of_project is not None and of_project[0] != name_of(project):
            return self._either(self.general, ("",), request)  # a token of another project has no role here
        members = () if project is not None and of_project is not None else self._members(identity, enforcer)
        found = self._either(enforcer, (identity.subject, *members), request)
        return found or self._either(self.general, ("",), request) or found

    def _members(self, identity: Identity, enforcer: Enforcer) -> tuple[str, ...]:
        return tuple(group for group in identity.groups(self.scopes) if enforcer.knows(group))

    def _either(self, enforcer: Enforcer, subjects: tuple[str, ...], request: Request) -> Decision:
        """Return the first answer that permits, else the first that names a line."""
        denied = Decision(False)
        roles = (self.default_role,) if self.default_role else ()
        for subject in (*roles, *subjects):
            found = enforcer.decide(subject, request)
            if found:
                return found
            denied = denied if denied.rule else found
        return denied

    def _project_of(self, request: Request) -> Obj | None:
        if request.resource == "projects":
            return self.project(request.object)
        if request.resource in PROJECT_SCOPED and "/" in request.object:
            return self.project(request.object.split("/")[0])
        return None

    @cached_property
    def general(self) -> Enforcer:
        """The rules without those of projects."""
        return Enforcer(self.builtin + self.policy, self.mode)

    @cached_property
    def _of_projects(self) -> dict[str, tuple[object, Enforcer]]:
        return {}

    def _enforcer(self, project: Obj) -> Enforcer:
        """Return the rules with those of ``project``; those of a project with an invalid line count for nothing."""
        roles = dig(project, "spec", "roles", default=())
        known = self._of_projects.get(name_of(project))
        if known is not None and known[0] == roles:
            return known[1]
        try:
            enforcer = replace(self.general, policy=self.general.policy + project_policy(project))
        except PolicyError:
            enforcer = self.general
        if len(self._of_projects) >= MAX_KEPT:
            self._of_projects.clear()
        self._of_projects[name_of(project)] = (roles, enforcer)
        return enforcer


def project_policy(project: Obj) -> Policy:
    """Return what the roles of an AppProject add: their policies, their groups, and to read the project.

    Raises :class:`PolicyError` where a line is invalid or is about another subject than its role: who may write the
    project must neither give rights to accounts nor take them (upstream reads such a line).
    """
    added = Policy()
    for role in dig(project, "spec", "roles", default=()) or ():
        subject = f"{PROJECT_SUBJECT}:{name_of(project)}:{role.get('name', '')}"
        origin = f"AppProject {name_of(project)} role {role.get('name', '')}"
        own = Permission(subject, "projects", "get", name_of(project), "allow", origin)
        lines = [str(line) for line in role.get("policies") or ()]
        members = [f"g, {group}, {subject}" for group in role.get("groups") or ()]
        found = read_policy("\n".join([*lines, *members]), origin)
        foreign = {line.subject for line in found.permissions} | {line.role for line in found.memberships}
        if foreign - {subject}:
            raise PolicyError(f"{origin}: a line is about {sorted(foreign - {subject})}; {subject} is allowed")
        added += Policy((own,)) + found
    return added


def refusal(identity: Identity, request: Request) -> str:
    """Return the text of a denied request, as scripts match it: request, subject, and the time of the token."""
    parts = [str(request)]
    if identity.subject:
        parts.append(f"sub: {identity.subject}")
    issued = identity.claims.get("iat")
    if isinstance(issued, int | float):
        parts.append(f"iat: {datetime.fromtimestamp(int(issued), UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}")
    return f"permission denied: {', '.join(parts)}"


def read_rights(data: Mapping[str, str], project: Callable[[str], Obj | None]) -> Rights:
    """Return the rules of the data of ``argocd-rbac-cm``. Raises :class:`PolicyError`."""
    return Rights(
        policy=read_policy(policy_text(data), CONFIG_MAP),
        mode=MatchMode.of(data.get("policy.matchMode", "")),
        default_role=data.get("policy.default", ""),
        scopes=_scopes(data.get("scopes", "")),
        project=project,
    )


def _scopes(text: str) -> tuple[str, ...]:
    if not text:
        return DEFAULT_SCOPES
    try:
        found = load(text, file=f"{CONFIG_MAP} scopes")
    except ValueError as error:
        raise PolicyError(f"{CONFIG_MAP} scopes: {error}; a list such as '[groups, email]' is allowed") from error
    if not isinstance(found, list) or not all(isinstance(scope, str) for scope in found):
        raise PolicyError(f"{CONFIG_MAP} scopes: found {text!r}; a list such as '[groups, email]' is allowed")
    return tuple(found)
