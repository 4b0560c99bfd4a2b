"""``syncline agent``: runs everything that was joined from this machine."""

from __future__ import annotations

import asyncio

import click

from syncline.base.clock import SystemClock
from syncline.cli.access.connection import state_directory
from syncline.cli.fleet.agents import choosing_options, chosen, run_until_stopped, sayer, spoke_of
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.fleet.spoke.registration.invitation import server_problem
from syncline.hosts.fleet.agent import Agent
from syncline.hosts.fleet.joining import JoinError
from syncline.hosts.fleet.places import PlaceError


@click.command()
@choosing_options
@click.option("--hub-url", default="", help="Another address of the same hub, kept from now on (after a restore).")
def agent(hub: str, name: str, hub_url: str) -> int:
    """Run the agents of what was joined here: one control loop for each hub. They only connect outwards.

    \b
    Example:  syncline agent
    """
    found = chosen(state_directory(), hub, name)
    if hub_url:
        problem = server_problem(hub_url)
        if problem or len(found) > 1:
            raise CommandFailed(f"--hub-url {hub_url}: {problem or 'say which hub with --hub and --name'}", USAGE)
    everything = [joining for _, joining in found]
    agents = [
        Agent(place, joining, spoke_of(joining), SystemClock(), sayer(joining, everything), hub_url.rstrip("/"))
        for place, joining in found
    ]

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
