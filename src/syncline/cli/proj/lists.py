"""``syncline proj add-source`` and similar verbs: add or remove one entry of a project's lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from syncline.cli.frame.failure import CommandFailed
from syncline.cli.proj.target import change_spec, namespace_options
from syncline.kube.objects import Obj


def with_entry(spec: Obj, field: str, entry: Any, refusal: str = "") -> Obj:
    """Return ``spec`` with ``entry`` appended to a list. An existing entry raises ``refusal``; without one, nothing
    changes."""
    known = list(spec.get(field) or [])
    if entry in known:
        if refusal:
            raise CommandFailed(refusal)
        return spec
    return spec | {field: [*known, entry]}


def without_entry(spec: Obj, field: str, entry: Any, refusal: str = "") -> Obj:
    """Return ``spec`` without ``entry`` in a list; an empty list is removed, unless empty allows nothing."""
    known = list(spec.get(field) or [])
    if entry not in known:
        if refusal:
            raise CommandFailed(refusal)
        return spec
    left = [one for one in known if one != entry]
    rest = {key: value for key, value in spec.items() if key != field}
    return rest | ({field: left} if left or field == "namespaceResourceWhitelist" else {})


def _entry_command(name: str, field: str, example: str, about: str, argument: str, subject: str) -> click.Command:
    """``add-…`` allows an entry of the list ``field``, ``remove-…`` no longer."""
    adds = name.startswith("add-")
    words = "already allowed" if adds else "does not exist"

    @click.command(name, help=f"{about}\n\n\b\nExample:  syncline proj {name} team {example}")
    @click.argument("project")
    @click.argument("entry", metavar=argument)
    @namespace_options
    def command(project: str, entry: str, **given: Any) -> None:
        change = with_entry if adds else without_entry
        unchanged = f"{subject} '{entry}' {words} in project"
        change_spec(given, project, lambda spec: change(spec, field, entry), unchanged=unchanged)

    return command


_REPOS = ("sourceRepos", "'https://github.com/team/*'")
_SPACES = ("sourceNamespaces", "team-apps")
_REPO, _SPACE = ("URL", "Source repository"), ("NAMESPACE", "Source namespace")
add_source = _entry_command(
    "add-source", *_REPOS, "Allow a source repository; URL may hold globs, and ! in front denies.", *_REPO
)
remove_source = _entry_command("remove-source", *_REPOS, "No longer allow a source repository.", *_REPO)
add_source_namespace = _entry_command(
    "add-source-namespace", *_SPACES, "Allow Applications of another namespace to use the project.", *_SPACE
)
remove_source_namespace = _entry_command(
    "remove-source-namespace", *_SPACES, "No longer allow Applications of this namespace.", *_SPACE
)


def _place(server: str, namespace: str, by_name: bool) -> Obj:
    return {"name" if by_name else "server": server, "namespace": namespace}


by_name_option = click.option("--name", "by_name", is_flag=True, help="SERVER is the name of a cluster.")


@click.command("add-destination")
@click.argument("project")
@click.argument("server")
@click.argument("destination_namespace", metavar="NAMESPACE")
@by_name_option
@namespace_options
def add_destination(project: str, server: str, destination_namespace: str, by_name: bool, **given: Any) -> None:
    """Allow a destination; both parts may hold globs.

    \b
    Example:  syncline proj add-destination team https://kubernetes.default.svc 'team-*'
              syncline proj add-destination team in-cluster 'team-*' --name
    """
    entry = _place(server, destination_namespace, by_name)
    words = "Specified destination is already defined in project"
    change_spec(given, project, lambda spec: with_entry(spec, "destinations", entry, words))


@click.command("remove-destination")
@click.argument("project")
@click.argument("server")
@click.argument("destination_namespace", metavar="NAMESPACE")
@by_name_option
@namespace_options
def remove_destination(project: str, server: str, destination_namespace: str, by_name: bool, **given: Any) -> None:
    """No longer allow a destination.

    \b
    Example:  syncline proj remove-destination team https://kubernetes.default.svc 'team-*'
    """
    entry = _place(server, destination_namespace, by_name)
    words = "Specified destination does not exist in project"
    change_spec(given, project, lambda spec: without_entry(spec, "destinations", entry, words))


def _kind_command(verb: str, scope: str, usual: str, about: str) -> click.Command:
    """Build a command: ``allow`` adds to the allow list or removes from the deny list, ``deny`` the reverse; ``usual``
    is argocd's default list."""

    @click.command(f"{verb}-{scope}-resource", help=about)
    @click.argument("project")
    @click.argument("group")
    @click.argument("kind")
    @click.option("-l", "--list", "which", type=click.Choice(["allow", "deny"]), default=usual, show_default=True)
    @namespace_options
    def command(project: str, group: str, kind: str, which: str, **given: Any) -> None:
        field = f"{scope}Resource{'Whitelist' if which == 'allow' else 'Blacklist'}"
        change: Callable[..., Obj] = with_entry if verb == which else without_entry
        entry = {"group": group, "kind": kind}
        change_spec(given, project, lambda spec: change(spec, field, entry))

    return command


EXAMPLE = "\b\nExample:  syncline proj {} team {} {}"
allow_cluster_resource = _kind_command(
    "allow",
    "cluster",
    "allow",
    "Allow a cluster-scoped kind.\n\n" + EXAMPLE.format("allow-cluster-resource", "''", "Namespace"),
)
deny_cluster_resource = _kind_command(
    "deny",
    "cluster",
    "allow",
    "No longer allow a cluster-scoped kind; --list deny forbids it.\n\n"
    + EXAMPLE.format("deny-cluster-resource", "''", "Namespace"),
)
allow_namespace_resource = _kind_command(
    "allow",
    "namespace",
    "deny",
    "No longer deny a namespaced kind; --list allow allows it, and then nothing else that is not listed.\n\n"
    + EXAMPLE.format("allow-namespace-resource", "batch", "Job"),
)
deny_namespace_resource = _kind_command(
    "deny",
    "namespace",
    "deny",
    "Deny a namespaced kind.\n\n" + EXAMPLE.format("deny-namespace-resource", "batch", "Job"),
)
