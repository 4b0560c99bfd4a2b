"""``syncline rollout``: the order over clusters in which Applications are pulled; stop, resume, skip, roll back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.access.following import followed
from syncline.cli.fleet.reading import all_of, everywhere_option, hub_kind, namespace_option
from syncline.cli.fleet.rolling import (
    Group,
    asked,
    clusters_of_group,
    group_of,
    members_of,
    own_name,
    proven_releases,
    rollout_of,
    tell,
    written,
)
from syncline.cli.frame.failure import BLOCKED, FAILED, USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT
from syncline.cli.frame.lazy import Group as CommandGroup
from syncline.cli.frame.output import output_option, print_documents, print_names, print_table
from syncline.cli.views.fleet.rollout import (
    back_rows,
    describe_rollout,
    history_of,
    history_rows,
    progress_lines,
    rollout_rows,
)
from syncline.fleet.pull.order import steering
from syncline.fleet.pull.order.explaining import phase_of
from syncline.kube.kinds.fleetrollouts import MAX_TEXT, ROLLOUT
from syncline.kube.objects import Obj, dig, name_of, namespace_of

RESOURCE = f"fleetrollout.{ROLLOUT.group}"
ENDS = {"Done": 0, "RolledBack": 0, "Failed": FAILED}
"""Phases at which a watch ends, with the exit code."""


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def rollout() -> None:
    """Show and steer the order over clusters in which Applications are pulled: waves, gates, waits.

    SET names the ApplicationSet whose Applications are rolled out; app/NAME an Application that belongs to no set.
    Without -n the namespace of the kubeconfig counts, else the only one that has such a roll-out.

    \b
    Example:  syncline rollout get shop --watch
              syncline rollout stop shop --reason "the canary is slow"
              syncline plan appset/shop           what would begin now, and what waits for what
    """


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add SET, ``-n`` and the options of the connection."""
    return click.argument("name", metavar="SET | app/NAME")(namespace_option(connection_options(command)))


@rollout.command("list")
@everywhere_option
@namespace_option
@output_option("wide", "json", "yaml", "name")
@connection_options
def list_rollouts(
    everywhere: bool, namespace: str | None, output: str | None, kubeconfig: str | None, context: str | None
) -> None:
    """List roll-outs: whose Applications, the phase since when, the current wave, clusters that are done.

    \b
    Example:  syncline rollout list -A -o wide
    """
    with Connection(kubeconfig, context) as link:
        space = "" if everywhere else namespace or link.namespace
        found, now = all_of(link, ROLLOUT, space), link.now()
    if output == "name":
        print_names(RESOURCE, [f"{namespace_of(one)}/{name_of(one)}" if everywhere else name_of(one) for one in found])
    elif output in ("json", "yaml"):
        print_documents(found, output)
    elif not found and space:
        print(f"No FleetRollouts found in namespace {space}; -A lists those of all namespaces.")
    else:
        print_table(rollout_rows(found, now, wide=output == "wide"), len(found), "FleetRollouts")


@rollout.command()
@click.option("-w", "--watch", "watching", is_flag=True, help="Print each change, until it is done, back, or failed.")
@click.option("--timeout", default=0, type=click.IntRange(min=0), help="Seconds to watch; 0 is for ever.")
@output_option("json", "yaml", "name")
@target_options
def get(
    name: str,
    watching: bool,
    timeout: int,
    namespace: str | None,
    output: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Show one roll-out: its release, its waves, and each cluster that is not done with its state, since when, why and
    until when. --watch prints what changes, a line each.

    \b
    Exit codes: 0 (with --watch: done), 1 a cluster failed, 3 it still waits when --timeout is over, or it is stopped
    Example:    syncline rollout get shop
                syncline rollout get shop --watch --timeout 3600
    """
    if watching and output:
        raise CommandFailed("--watch prints lines; it goes without -o", USAGE)
    with Connection(kubeconfig, context) as link:
        if watching:
            return _watch(link, group_of(link, name, namespace), timeout)
        _, found = rollout_of(link, name, namespace)
        now = link.now()
    if output == "name":
        print_names(RESOURCE, [name_of(found)])
    elif output:
        print_documents(found, output)
    else:
        print(describe_rollout(found, now))
    return 0


def _watch(link: Connection, group: Group, timeout: int) -> int:
    before: Obj | None = None
    for found in followed(link, hub_kind(link, ROLLOUT), group.where, timeout):
        if found is None and before is not None:
            raise CommandFailed(f"FleetRollout {'/'.join(group.where)} was deleted meanwhile: no order is in force")
        if found is None:
            click.echo(f"waiting for the hub to put {group.target} in order", err=True)
            continue
        for line in progress_lines(before, found):
            print(line, flush=True)
        before = found
        if phase_of(found) in ENDS and _is_current(found):
            return ENDS[phase_of(found)]
    said = (
        f"{phase_of(before)}: {dig(before, 'status', 'message') or ''}".rstrip(": ")
        if before
        else "no order is in force"
    )
    raise CommandFailed(f"after {timeout} s {group.target} is not done: {said}", BLOCKED)


def _is_current(found: Obj) -> bool:
    """Return whether the status is about the spec as it is now."""
    observed = dig(found, "status", "observedGeneration")
    return observed is None or observed == dig(found, "metadata", "generation")


def _reason(_context: click.Context, _option: click.Parameter, text: str) -> str:
    """Refuse a reason that the FleetRollout cannot hold."""
    if len(text) > MAX_TEXT:
        raise click.BadParameter(f"it has {len(text)} characters; at most {MAX_TEXT} are kept")
    return text


reason_option = click.option("--reason", default="", callback=_reason, help="Why; people see it.")


@rollout.command()
@reason_option
@target_options
def stop(name: str, reason: str, namespace: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Stop a roll-out: no further cluster begins. What has begun goes on.

    \b
    Example:  syncline rollout stop shop --reason "the canary is slow"
    """
    with Connection(kubeconfig, context) as link:
        group = group_of(link, name, namespace)
        by, now = own_name(link), link.now()
        tell(group, written(link, group, lambda found: steering.stop(found, reason, by, now)))
        if not members_of(link, group):
            click.echo("next: no cluster pulls an Application of it now; one that comes does not begin")


@rollout.command()
@target_options
def resume(name: str, namespace: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Let a stopped roll-out go on.

    \b
    Example:  syncline rollout resume shop
    """
    with Connection(kubeconfig, context) as link:
        group, _ = rollout_of(link, name, namespace)
        tell(group, written(link, group, steering.resume))


@rollout.command()
@target_options
@click.argument("cluster", metavar="CLUSTER")
def skip(name: str, cluster: str, namespace: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Pass over one cluster in the current release: it keeps what it carries, and later waves do not wait for it.

    \b
    Example:  syncline rollout skip shop aws-2
    """
    with Connection(kubeconfig, context) as link:
        group, _ = rollout_of(link, name, namespace)
        members, by = clusters_of_group(link, group), own_name(link)
        tell(group, written(link, group, lambda found: steering.skip(found, cluster, members, by)))


@rollout.command()
@target_options
@click.argument("cluster", metavar="CLUSTER")
def unskip(name: str, cluster: str, namespace: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Include a cluster again that was passed over.

    \b
    Example:  syncline rollout unskip shop aws-2
    """
    with Connection(kubeconfig, context) as link:
        group, _ = rollout_of(link, name, namespace)
        members = clusters_of_group(link, group)
        tell(group, written(link, group, lambda found: steering.unskip(found, cluster, members)))


@rollout.command("roll-back")
@reason_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--undo", is_flag=True, help="Take a roll back back: the release goes out again, the first wave first.")
@target_options
def roll_back(
    name: str, reason: str, yes: bool, undo: bool, namespace: str | None, kubeconfig: str | None, context: str | None
) -> None:
    """Put back the release that each cluster has proven before the current one, the last wave first, by the same gates.

    It shows what each cluster goes back to, and asks. A change in Git ends the roll back, and so does --undo.

    \b
    Example:  syncline rollout roll-back shop --reason "wrong image"
              syncline rollout roll-back shop --undo
    """
    with Connection(kubeconfig, context) as link:
        group, found = rollout_of(link, name, namespace)
        if undo:
            tell(group, written(link, group, steering.go_forward))
            return
        by, now = own_name(link), link.now()
        proven = proven_releases(link, group, str(dig(found, "status", "release") or ""))
        members = clusters_of_group(link, group)

        def ask(rollout: Obj) -> steering.Steered:
            return steering.roll_back(rollout, reason, by, now, steering.carrying(rollout, members), proven)

        planned = asked(group, found, ask)
        if planned.spec != found.get("spec"):
            print(back_rows(found, members, proven, now))
            _confirm(yes)
        tell(group, written(link, group, ask))


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed("nothing was rolled back: add --yes", USAGE)
    click.confirm("Roll back?", abort=True)


@rollout.command()
@output_option("json", "yaml")
@target_options
def history(name: str, namespace: str | None, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show the releases of a roll-out, the newest first: revisions, when they began and ended, the outcome.

    \b
    Example:  syncline rollout history shop
    """
    with Connection(kubeconfig, context) as link:
        _, found = rollout_of(link, name, namespace)
        now = link.now()
    past = history_of(found)
    if output:
        print_documents(past, output)
    else:
        print_table(history_rows(found, now), len(past), "releases")
