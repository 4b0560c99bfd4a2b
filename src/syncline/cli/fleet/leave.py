"""``syncline leave``: takes a cluster out of a hub, in the order in which nothing is left behind."""

from __future__ import annotations

import asyncio

import click

from syncline.base.clock import SystemClock
from syncline.cli.access.connection import state_directory
from syncline.cli.fleet.agents import choosing_options, chosen, run_until_stopped, sayer, spoke_of
from syncline.cli.frame.failure import BLOCKED, USAGE, CommandFailed
from syncline.hosts.fleet.agent import Agent
from syncline.hosts.fleet.leaving import clean_up, mark, released
from syncline.hosts.fleet.places import Joining, Place, PlaceError
from syncline.kube.errors import ApiError
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, load_kubeconfig

LOOK_S = 1.0


@click.command()
@choosing_options
@click.option(
    "--hub-kubeconfig", default=None, help="With the rights of an administrator of the hub: deletes it there."
)
@click.option("--hub-context", default=None, help="Context of that kubeconfig.")
@click.option("--keep-objects", is_flag=True, help="What is left of the hub's works stays on the cluster.")
@click.option("--force", is_flag=True, help="Do not wait for the hub: clean up here, and forget it.")
@click.option("--timeout", default=600.0, show_default=True, help="Seconds to wait for the hub.")
def leave(
    hub: str,
    name: str,
    hub_kubeconfig: str | None,
    hub_context: str | None,
    keep_objects: bool,
    force: bool,
    timeout: float,
) -> int:
    """Leave a hub: it lets go of the cluster first, its works are removed here, then the credentials.

    An administrator of the hub deletes the ManagedCluster (or you do, with --hub-kubeconfig); a running agent cleans
    up, and ends; without one this command does it.

    \b
    Example:  syncline leave --name cluster1 --hub-kubeconfig hub.kubeconfig
    Exit codes: 0 it has left, 3 the hub has not let go in time
    """
    found = chosen(state_directory(), hub, name)
    if len(found) > 1:
        listed = ", ".join(f"{one.cluster} at {one.hub}" for _, one in found)
        raise CommandFailed(f"which one? {listed}; choose with --hub and --name", USAGE)
    (place, joining) = found[0]
    admin = _admin(hub_kubeconfig, hub_context)
    spoke, say = spoke_of(joining), sayer(joining, ())

    async def body(stop: asyncio.Event) -> int:
        try:
            if admin is not None:
                say(await released(admin, joining.cluster))
            elif not force:
                say(f"an administrator of the hub types: kubectl delete managedcluster {joining.cluster}")
        except ApiError as error:
            raise CommandFailed(f"the hub did not let go of {joining.cluster}: {error}") from error
        mark(place, keep_objects=keep_objects)
        if force:
            with place.held():
                await clean_up(place, joining, spoke, say)
            return 0
        return await _left(place, joining, spoke, timeout, stop)

    return run_until_stopped(body)


async def _left(place: Place, joining: Joining, spoke: ClusterAccess, timeout: float, stop: asyncio.Event) -> int:
    """Run the agent until it has left, or wait for one that runs already."""
    agent = Agent(place, joining, spoke, SystemClock(), sayer(joining, ()))
    running = asyncio.ensure_future(agent.run(stop))
    try:
        async with asyncio.timeout(timeout):
            try:
                await running
            except PlaceError:
                click.echo("the running agent cleans up")
                while place.folder.exists() and not stop.is_set():
                    await asyncio.sleep(LOOK_S)
    except TimeoutError:
        click.echo(f"the hub has not let go of {joining.cluster} within {timeout:g} s; type the same again, or --force")
        return BLOCKED
    return BLOCKED if place.joining() is not None else 0


def _admin(kubeconfig: str | None, context: str | None) -> ClusterAccess | None:
    if kubeconfig is None and context is None:
        return None
    try:
        return load_kubeconfig(kubeconfig, context)
    except (KubeconfigError, OSError) as error:
        raise CommandFailed(str(error), USAGE) from error
