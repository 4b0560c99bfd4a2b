"""``syncline proj role``: roles of a project, for an argocd-server that runs beside Syncline.

Syncline itself ignores them: Kubernetes RBAC decides. argocd-server signs tokens, so none is created here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from syncline.base.clock import format_time
from syncline.cli.access.connection import Connection
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.output import output_option, print_documents, table
from syncline.cli.proj.target import change_spec, get_project, namespace_options
from syncline.kube.objects import Obj, dig


def role_of(spec: Obj, name: str) -> Obj:
    """Return the role of this name. Raises CommandFailed."""
    roles = spec.get("roles") or []
    found: Obj | None = next((one for one in roles if one.get("name") == name), None)
    if found is None:
        known = ", ".join(str(one.get("name")) for one in roles) or "it has none"
        raise CommandFailed(f"role '{name}' does not exist in the project ({known})")
    return found


def with_role(spec: Obj, name: str, description: str) -> Obj:
    """Return ``spec`` with the role; unchanged if it exists."""
    roles = list(spec.get("roles") or [])
    if any(one.get("name") == name for one in roles):
        return spec
    return spec | {"roles": [*roles, {"name": name} | ({"description": description} if description else {})]}


def without_role(spec: Obj, name: str) -> Obj:
    """Return ``spec`` without the role; unchanged if it does not exist."""
    left = [one for one in spec.get("roles") or [] if one.get("name") != name]
    rest = {key: value for key, value in spec.items() if key != "roles"}
    return rest | ({"roles": left} if left else {})


def changed_role(spec: Obj, name: str, change: Callable[[Obj], Obj]) -> Obj:
    """Return ``spec`` with one role replaced by ``change``. Raises CommandFailed if it does not exist."""
    role_of(spec, name)
    return spec | {"roles": [change(one) if one.get("name") == name else one for one in spec["roles"]]}


def _with_text(role: Obj, field: str, text: str) -> Obj:
    known = list(role.get(field) or [])
    return role if text in known else role | {field: [*known, text]}


def _without_text(role: Obj, field: str, text: str) -> Obj:
    left = [one for one in role.get(field) or [] if one != text]
    rest = {key: value for key, value in role.items() if key != field}
    return rest | ({field: left} if left else {})


def policy_of(project: str, role: str, given: dict[str, Any]) -> str:
    """Return a policy line in Argo CD's form."""
    parts = (given["resource"], given["action"], f"{project}/{given['object']}", given["permission"])
    return f"p, proj:{project}:{role}, {', '.join(parts)}"


@click.command("list")
@click.argument("project")
@output_option("name", "wide", "json", "yaml")
@namespace_options
def list_roles(project: str, output: str | None, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """List the roles of a project.

    \b
    Example:  syncline proj role list team
    """
    with Connection(kubeconfig, context) as link:
        roles = dig(get_project(link, namespace, project), "spec", "roles", default=[])
    if output in ("json", "yaml"):
        print_documents(roles, output)
    elif output == "name":
        print("\n".join(str(one.get("name")) for one in roles))
    else:
        rows = [(str(one.get("name")), str(one.get("description") or " ")) for one in roles]
        print(table(("ROLE-NAME", "DESCRIPTION"), rows))


@click.command("get")
@click.argument("project")
@click.argument("role")
@output_option("json", "yaml")
@namespace_options
def get_role(project: str, role: str, output: str | None, namespace: str, **given: Any) -> None:
    """Show one role: its policies, its groups, its tokens.

    \b
    Example:  syncline proj role get team deployer
    """
    with Connection(given["kubeconfig"], given["context"]) as link:
        found = role_of(dig(get_project(link, namespace, project), "spec", default={}), role)
    if output:
        print_documents(found, output)
        return
    print(f"{'Role Name:':<15}{role}")
    print(f"{'Description:':<15}{found.get('description') or ''}".rstrip())
    print("\n".join(["Policies:", *(found.get("policies") or [])]))
    print("\n".join(["Groups:", *(f"  - {one}" for one in found.get("groups") or [])]))
    print("JWT Tokens:")
    print(table(("ID", "ISSUED-AT", "EXPIRES-AT"), _tokens(found, "iat", unix=False)))


def _tokens(role: Obj, named: str, *, unix: bool) -> list[tuple[str, str, str]]:
    """Return the tokens that an argocd-server issued; ``named``: the field that identifies one."""

    def moment(seconds: Any) -> str:
        if unix or not isinstance(seconds, int):
            return str(seconds or 0)
        return format_time(datetime.fromtimestamp(seconds, UTC)) if 0 < seconds < 2**35 else "Never"

    tokens = role.get("jwtTokens") or []
    return [(str(one.get(named) or ""), moment(one.get("iat") or 0), moment(one.get("exp") or 0)) for one in tokens]


@click.command()
@click.argument("project")
@click.argument("role")
@click.option("--description", default="", help="What it is for.")
@namespace_options
def create(project: str, role: str, description: str, **given: Any) -> None:
    """Add a role to a project.

    \b
    Example:  syncline proj role create team deployer --description 'may sync'
    """
    words = f"Role '{role}' already exists"
    change_spec(
        given, project, lambda spec: with_role(spec, role, description), unchanged=words, did=f"Role '{role}' created"
    )


@click.command()
@click.argument("project")
@click.argument("role")
@namespace_options
def delete(project: str, role: str, **given: Any) -> None:
    """Remove a role from a project.

    \b
    Example:  syncline proj role delete team deployer
    """
    words = f"Role '{role}' does not exist in project"
    change_spec(given, project, lambda spec: without_role(spec, role), unchanged=words, did=f"Role '{role}' deleted")


def _policy_command(verb: str, change: Callable[[Obj, str, str], Obj], about: str, unchanged: str) -> click.Command:
    example = f"\b\nExample:  syncline proj role {verb}-policy team deployer -a sync -p allow -o '*'"

    @click.command(f"{verb}-policy", help=f"{about}\n\n{example}")
    @click.argument("project")
    @click.argument("role")
    @click.option("-a", "--action", required=True, help="get, create, update, delete, sync, override, action/…")
    @click.option("-o", "--object", "object", required=True, help="Name of an Application, or a glob.")
    @click.option("-p", "--permission", type=click.Choice(["allow", "deny"]), default="allow", show_default=True)
    @click.option("-r", "--resource", default="applications", show_default=True, help="applications, logs, exec, …")
    @namespace_options
    def command(project: str, role: str, **given: Any) -> None:
        policy = policy_of(project, role, given)
        change_spec(
            given,
            project,
            lambda spec: changed_role(spec, role, lambda found: change(found, "policies", policy)),
            unchanged=f"Policy '{policy}' {unchanged}",
        )

    return command


def _group_command(verb: str, change: Callable[[Obj, str, str], Obj], about: str, did: str, same: str) -> click.Command:
    example = f"\b\nExample:  syncline proj role {verb}-group team deployer team-admins"

    @click.command(f"{verb}-group", help=f"{about}\n\n{example}")
    @click.argument("project")
    @click.argument("role")
    @click.argument("group", metavar="GROUP-CLAIM")
    @namespace_options
    def command(project: str, role: str, group: str, **given: Any) -> None:
        change_spec(
            given,
            project,
            lambda spec: changed_role(spec, role, lambda found: change(found, "groups", group)),
            unchanged=f"Group '{group}' {same} role '{role}'",
            did=f"Group '{group}' {did} role '{role}'",
        )

    return command


add_policy = _policy_command("add", _with_text, "Add a line of policy to a role.", "is there already")
remove_policy = _policy_command("remove", _without_text, "Remove a line of policy from a role.", "is not there")
add_group = _group_command("add", _with_text, "Give a role to a group.", "added to", "already present in")
remove_group = _group_command("remove", _without_text, "Take a role from a group.", "removed from", "not present in")


@click.command("list-tokens")
@click.argument("project")
@click.argument("role")
@click.option("-u", "--unixtime", is_flag=True, help="Times as numbers, as delete-token takes them.")
@output_option("json", "yaml")
@namespace_options
def list_tokens(project: str, role: str, unixtime: bool, output: str | None, namespace: str, **given: Any) -> None:
    """List the tokens that an argocd-server made for a role; never the tokens themselves.

    \b
    Example:  syncline proj role list-tokens team deployer
    """
    with Connection(given["kubeconfig"], given["context"]) as link:
        found = role_of(dig(get_project(link, namespace, project), "spec", default={}), role)
    if output:
        print_documents(found.get("jwtTokens") or [], output)
    elif not found.get("jwtTokens"):
        print(f"No tokens for {project}.{role}")
    else:
        print(table(("ID", "ISSUED AT", "EXPIRES AT"), _tokens(found, "id", unix=unixtime)))


def without_token(role: Obj, issued_at: int) -> Obj:
    """Return ``role`` without the token issued at this time. Raises CommandFailed if there is none."""
    known = role.get("jwtTokens") or []
    left = [one for one in known if one.get("iat") != issued_at]
    if len(left) == len(known):
        raise CommandFailed(f"role '{role.get('name')}' has no token that was issued at {issued_at}")
    rest = {key: value for key, value in role.items() if key != "jwtTokens"}
    return rest | ({"jwtTokens": left} if left else {})


@click.command("delete-token")
@click.argument("project")
@click.argument("role")
@click.argument("issued_at", type=int, metavar="ISSUED-AT")
@namespace_options
def delete_token(project: str, role: str, issued_at: int, **given: Any) -> None:
    """Withdraw a token that an argocd-server made: it takes none that the project does not list.

    \b
    Example:  syncline proj role delete-token team deployer 1696769937
    """
    change_spec(given, project, lambda spec: changed_role(spec, role, lambda found: without_token(found, issued_at)))
