"""``syncline agent``: runs everything that was joined from this machine."""

from __future__ import annotations

import asyncio

import click

from syncline.assembly.ports import HttpPort
from syncline.base.clock import SystemClock
from syncline.cli.access.connection import state_directory
from syncline.cli.fleet.agents import choosing_options, chosen, run_until_stopped, sayer, spoke_of
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.fleet.spoke.registration.invitation import server_problem
from syncline.hosts.fleet.agent import Agent
from syncline.hosts.fleet.joining import JoinError, Say
from syncline.hosts.fleet.places import Joining, Place, PlaceError
from syncline.hosts.fleet.secrets import SecretKeep, pushing
from syncline.kube.errors import ApiError
from syncline.kube.transport.kubeconfig import KubeconfigError
from syncline.kube.transport.kubeconfig import in_cluster as load_in_cluster


@click.command()
@choosing_options
@click.option("--hub-url", default="", help="Another address of the same hub, kept from now on (after a restore).")
@click.option(
    "--in-cluster", is_flag=True, help="In a pod: the line and the credentials are in Secrets, as upstream's."
)
def agent(hub: str, name: str, hub_url: str, in_cluster: bool) -> int:
    """Run the agents of what was joined here: one control loop for each hub. They only connect outwards.

    With --in-cluster it joins by Secret bootstrap-hub-kubeconfig in namespace open-cluster-management-agent, and keeps
    its identity in hub-kubeconfig-secret there.

    \b
    Example:  syncline agent
    """
    if in_cluster:
        _pull(name)
    found = chosen(state_directory(), hub, name)
    if hub_url:
        problem = server_problem(hub_url)
        if problem or len(found) > 1:
            raise CommandFailed(f"--hub-url {hub_url}: {problem or 'say which hub with --hub and --name'}", USAGE)
    everything = [joining for _, joining in found]
    agents = [_agent(place, joining, sayer(joining, everything), hub_url.rstrip("/")) for place, joining in found]

    async def one(each: Agent, stop: asyncio.Event) -> bool:
        try:
            await each.run(stop)
        except (JoinError, PlaceError) as error:
            each.say(f"error: {error}")
            return False
        return True

    async def body(stop: asyncio.Event) -> int:
        ended = await asyncio.gather(*(one(each, stop) for each in agents))
        return 0 if any(ended) else 1

    return run_until_stopped(body)


def _agent(place: Place, joining: Joining, say: Say, hub_url: str) -> Agent:
    spoke = spoke_of(joining)
    return Agent(place, joining, spoke, SystemClock(), say, hub_url, changed=pushing(place, joining, spoke))


def _pull(name: str) -> None:
    """Write what the Secrets of the pod's cluster have where agents look. Raises CommandFailed."""
    try:
        access = load_in_cluster()
    except KubeconfigError as error:
        raise CommandFailed(f"--in-cluster: {error}", USAGE) from error

    async def pull() -> None:
        port = HttpPort(access)
        try:
            await SecretKeep(port).pull(state_directory(), name)
        finally:
            await port.close()

    try:
        asyncio.run(pull())
    except (ApiError, PlaceError) as error:
        raise CommandFailed(f"the agent's Secrets: {error}") from error
