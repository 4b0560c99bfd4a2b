"""``syncline admin settings rbac``: tries the rights of argocd-rbac-cm, and checks them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from syncline.argo.access.enforcing import Decision, Enforcer, Request
from syncline.argo.access.policy import Policy, PolicyError
from syncline.argo.access.rights import CONFIG_MAP, Rights, identity_of, project_role, read_rights
from syncline.argo.access.vocabulary import checked_request
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.admin.settings import file_type
from syncline.cli.frame.failure import FAILED, GENERAL, USAGE, CommandFailed
from syncline.kube import client
from syncline.kube.objects import GVK, dig
from syncline.kube.yaml.loading import YamlError, load

file_option = click.option(
    "--policy-file", "file", type=file_type, default=None, help="A policy.csv, or a file with argocd-rbac-cm."
)
namespace_option = click.option(
    "-n", "--namespace", default=None, help="Take argocd-rbac-cm of this namespace of the cluster."
)


def _data(given: Mapping[str, Any]) -> Mapping[str, str]:
    """Return ``data`` of argocd-rbac-cm. Raises CommandFailed."""
    file, namespace = given["file"], given["namespace"]
    if (file is None) == (namespace is None):
        raise CommandFailed("give either --policy-file FILE or --namespace NAMESPACE", USAGE)
    if namespace is not None:
        with Connection(given["kubeconfig"], given["context"]) as link:
            info = link.resource(GVK("", "v1", "ConfigMap"))
            found = link.ask(client.get(info, namespace, CONFIG_MAP))
            return dig(found, "data", default={}) or {}
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{file}: {error}", USAGE) from error
    try:
        found = load(text, file=str(file))
    except YamlError:
        found = None
    if not isinstance(found, dict):
        return {"policy.csv": text}
    data = found.get("data") or {}
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise CommandFailed(f"{file}: data must hold texts", USAGE)
    return data


def _rights(data: Mapping[str, str]) -> Rights:
    try:
        return read_rights(data, lambda name: None)
    except PolicyError as error:
        raise CommandFailed(f"invalid policy: {error}", GENERAL) from error


def unused_grant(enforcer: Enforcer, subject: str, request: Request) -> bool:
    """Return True if a group has a line of its own and no membership: the server passes over such a group."""
    group = ":" in subject and not subject.startswith("role:") and project_role(subject) is None
    return group and not enforcer.knows(subject) and bool(enforcer.decide(subject, request))


@click.command()
@click.argument("subject", metavar="ROLE/SUBJECT")
@click.argument("action")
@click.argument("resource")
@click.argument("target", metavar="[SUB-RESOURCE]", default="")
@click.option("--default-role", default="", help="Everyone has this role; it replaces policy.default.")
@click.option(
    "--use-builtin-policy/--no-use-builtin-policy", "builtin", default=True, help="Also role:admin, role:readonly."
)
@click.option(
    "--strict/--no-strict", default=True, show_default=True, help="Refuse resources and actions that do not exist."
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code answers.")
@file_option
@namespace_option
@connection_options
def can(
    subject: str,
    action: str,
    resource: str,
    target: str,
    default_role: str,
    builtin: bool,
    strict: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Say whether a role, account or group may do something, and which line decides.

    \b
    Exit codes: 0 yes, 1 no, 20 the policy cannot be read
    Example:    syncline admin settings rbac can role:dev sync app 'shop/*' --policy-file policy.csv
    """
    data = _data(given)
    rights = _rights({**data, "policy.default": default_role} if default_role else data)
    rights = rights if builtin else replace(rights, builtin=Policy())
    try:
        request = checked_request(resource, action, target, strict=strict)
    except ValueError as error:
        raise CommandFailed(str(error), USAGE) from error
    found = rights.decide(identity_of({"sub": subject}), request)
    if not quiet:
        _print(found, rights, subject, request)
    return 0 if found else FAILED


def _print(found: Decision, rights: Rights, subject: str, request: Request) -> None:
    print("Yes" if found else "No")
    print(f"by: {found.rule}" if found.rule else f"no line is about {subject}: {request}", file=sys.stderr)
    if unused_grant(rights.general, subject, request):
        text = f"{subject} is a group with a line of its own and without a membership; the server passes over it"
        print(f"warning: {text}. Add 'g, {subject}, ROLE' and give the permission to the role.", file=sys.stderr)


@click.command()
@file_option
@namespace_option
@connection_options
def validate(**given: Any) -> None:
    """Check the policies of argocd-rbac-cm.

    \b
    Exit codes: 0 valid, 20 not
    Example:    syncline admin settings rbac validate --policy-file argocd-rbac-cm.yaml
    """
    rights = _rights(_data(given))
    print("Policy is valid.")
    for role in rights.general.empty_roles():
        print(f"warning: {role} has members and no permission", file=sys.stderr)
