"""``syncline proj add-destination-service-account``, ``add-orphaned-ignore``, ``add-signature-key`` and their
opposites: entries of a project's lists that are made of several fields."""

from __future__ import annotations

import re
from typing import Any

import click

from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.proj.lists import with_entry, without_entry
from syncline.cli.proj.target import change_spec, namespace_options
from syncline.kube.objects import Obj


def account_entry(server: str, namespace: str, account: str) -> Obj:
    """Return an entry of ``destinationServiceAccounts``; the account's name must not be a glob."""
    if "*" in account:
        raise CommandFailed(f"service account {account!r}: write one name, without *", USAGE)
    return {"server": server, "namespace": namespace, "defaultServiceAccount": account}


def key_id(text: str) -> str:
    """Return a GnuPG key id as in projects: the last 16 digits of a fingerprint."""
    if not re.fullmatch("[0-9A-Fa-f]{16}|[0-9A-Fa-f]{40}", text):
        raise CommandFailed(f"key {text!r}: write the 16 hexadecimal digits of its id, or all 40", USAGE)
    return text[-16:].upper()


account_arguments = (
    click.argument("project"),
    click.argument("server"),
    click.argument("destination_namespace", metavar="NAMESPACE"),
    click.argument("account", metavar="SERVICE_ACCOUNT"),
)


def _accounts(command: Any) -> Any:
    for argument in reversed(account_arguments):
        command = argument(command)
    return command


@click.command("add-destination-service-account")
@_accounts
@click.option("--service-account-namespace", "home", default="", help="Where it is [default: the destination's].")
@namespace_options
def add_account(project: str, server: str, destination_namespace: str, account: str, home: str, **given: Any) -> None:
    """Name the service account that syncs to a destination impersonate.

    \b
    Example:  syncline proj add-destination-service-account team https://kubernetes.default.svc 'team-*' deployer
    """
    entry = account_entry(server, destination_namespace, f"{home}:{account}" if home else account)
    words = "Specified destination service account is already defined in project"
    change_spec(given, project, lambda spec: with_entry(spec, "destinationServiceAccounts", entry, words))


@click.command("remove-destination-service-account")
@_accounts
@namespace_options
def remove_account(project: str, server: str, destination_namespace: str, account: str, **given: Any) -> None:
    """No longer name this service account for a destination.

    \b
    Example:  syncline proj remove-destination-service-account team https://kubernetes.default.svc 'team-*' deployer
    """
    entry = account_entry(server, destination_namespace, account)
    words = "Specified destination service account does not exist in project"
    change_spec(given, project, lambda spec: without_entry(spec, "destinationServiceAccounts", entry, words))


def _ignored(group: str, kind: str, name: str) -> Obj:
    fields = {"group": group, "kind": kind, "name": name}
    return {key: value for key, value in fields.items() if value}


def with_ignored(spec: Obj, entry: Obj) -> Obj:
    """Return ``spec`` with one more kind excluded from the orphans."""
    words = "Specified resource is already defined in the orphaned ignore list of project"
    return spec | {"orphanedResources": with_entry(spec.get("orphanedResources") or {}, "ignore", entry, words)}


def without_ignored(spec: Obj, entry: Obj) -> Obj:
    """Return ``spec`` with a kind no longer excluded; orphans are still monitored."""
    words = "Specified resource does not exist in the orphaned ignore list of project"
    return spec | {"orphanedResources": without_entry(spec.get("orphanedResources") or {}, "ignore", entry, words)}


@click.command("add-orphaned-ignore")
@click.argument("project")
@click.argument("group")
@click.argument("kind")
@click.option("--name", default="", help="Only objects whose name matches this glob.")
@namespace_options
def add_ignored(project: str, group: str, kind: str, name: str, **given: Any) -> None:
    """Exclude objects of a kind from the orphans.

    \b
    Example:  syncline proj add-orphaned-ignore team '' ConfigMap --name 'kube-root-*'
    """
    change_spec(given, project, lambda spec: with_ignored(spec, _ignored(group, kind, name)))


@click.command("remove-orphaned-ignore")
@click.argument("project")
@click.argument("group")
@click.argument("kind")
@click.option("--name", default="", help="The glob of the entry.")
@namespace_options
def remove_ignored(project: str, group: str, kind: str, name: str, **given: Any) -> None:
    """No longer exclude objects of a kind from the orphans.

    \b
    Example:  syncline proj remove-orphaned-ignore team '' ConfigMap --name 'kube-root-*'
    """
    change_spec(given, project, lambda spec: without_ignored(spec, _ignored(group, kind, name)))


@click.command("add-signature-key")
@click.argument("project")
@click.argument("key", metavar="KEY-ID")
@namespace_options
def add_key(project: str, key: str, **given: Any) -> None:
    """Trust commits signed by this GnuPG key; others are refused then. See also `proj source-integrity`.

    \b
    Example:  syncline proj add-signature-key team 4AEE18F83AFDEB23
    """
    entry = {"keyID": key_id(key)}
    words = "Specified signature key is already defined in project"
    change_spec(given, project, lambda spec: with_entry(spec, "signatureKeys", entry, words))


@click.command("remove-signature-key")
@click.argument("project")
@click.argument("key", metavar="KEY-ID")
@namespace_options
def remove_key(project: str, key: str, **given: Any) -> None:
    """No longer trust commits that this GnuPG key signed.

    \b
    Example:  syncline proj remove-signature-key team 4AEE18F83AFDEB23
    """
    entry = {"keyID": key_id(key)}
    words = "Specified signature key is not configured for project"
    change_spec(given, project, lambda spec: without_entry(spec, "signatureKeys", entry, words))
