"""``syncline join``: registers a cluster at a hub, stores its credentials, and runs its agent."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from syncline.base.clock import SystemClock
from syncline.base.entropy import Entropy
from syncline.cli.access.connection import state_directory
from syncline.cli.fleet.agents import own_kubeconfig, run_until_stopped, sayer, spoke_of
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.fleet.spoke.registration.certificates import expiration_problem
from syncline.fleet.spoke.registration.controller import RegistrationSettings
from syncline.fleet.spoke.registration.invitation import MAX_LINE, Invitation, InvitationError, read_invitation
from syncline.fleet.spoke.registration.proposing import name_problem
from syncline.hosts.fleet.agent import Agent
from syncline.hosts.fleet.places import Joining, Place, PlaceError, place_of
from syncline.hosts.fleet.secrets import SECRET, pushing

ID_LENGTH: Final = 5


@click.command()
@click.argument("line")
@click.option("--name", required=True, help="Name of this cluster on the hub.")
@click.option(
    "--kubeconfig", default=None, help="Kubeconfig of this cluster [default: as other commands, or the pod's]."
)
@click.option("--context", default=None, help="Context of the kubeconfig.")
@click.option(
    "--hub-ca",
    "ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Certificates that the hub's own is signed by [default: those of the line].",
)
@click.option("--proxy-url", default="", help="Proxy (http://HOST:PORT) between this cluster and the hub.")
@click.option("--timeout", default=0.0, show_default=True, help="Seconds to wait for the hub; 0: as long as it takes.")
@click.option(
    "--certificate-seconds", default=0, show_default=True, help="Lifetime of certificates to ask for; 0: the hub's."
)
@click.option(
    "--credentials",
    type=click.Choice(["file", "secret"]),
    default="file",
    show_default=True,
    help="secret: also in Secrets of this cluster, as upstream's agents, for `syncline agent --in-cluster`.",
)
@click.option("--no-run", is_flag=True, help="End when the cluster has joined; `syncline agent` runs it then.")
@click.option("--dry-run", is_flag=True, help="Say whether it has joined already; propose nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --no-run or --dry-run: print what was there as JSON.")
def join(
    line: str,
    name: str,
    kubeconfig: str | None,
    context: str | None,
    ca: Path | None,
    proxy_url: str,
    timeout: float,
    certificate_seconds: int,
    credentials: str,
    no_run: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Join this cluster to a hub with a LINE that `syncline hub token` printed there (-: read it from standard input).

    The cluster is proposed, a certificate is asked for, and both wait for an administrator of the hub. The credentials
    go to $SYNCLINE_HOME/agents, readable by you alone. Joining again goes on where it was. Then the agent runs.

    \b
    Example:  syncline join "$(cat line)" --name cluster1
    """
    invitation = _invitation(line, ca)
    unnamed = name_problem(name)
    for problem in (
        unnamed and f"--name {name}: {unnamed}",
        expiration_problem(certificate_seconds),
        _proxy_problem(proxy_url),
    ):
        if problem:
            raise CommandFailed(problem, USAGE)
    if as_json and not (no_run or dry_run):
        raise CommandFailed("--json goes with --no-run or --dry-run", USAGE)
    joined_before = _has_joined(invitation, name)
    if dry_run:
        _report(invitation, name, joined_before, as_json=as_json, dry_run=True)
        return 0
    place, joining = registered(
        state_directory(), invitation, name, own_kubeconfig(kubeconfig), context or "", proxy_url
    )
    if credentials == SECRET:
        joining = replace(joining, keep=SECRET)
        place.keep_joining(joining)
    spoke = spoke_of(joining)
    agent = Agent(
        place,
        joining,
        spoke,
        SystemClock(),
        sayer(joining, ()),
        registration=RegistrationSettings(expiration_s=certificate_seconds),
        within_s=timeout or None,
        changed=pushing(place, joining, spoke),
    )

    async def body(stop: asyncio.Event) -> int:
        if not no_run:
            await agent.run(stop)
            return 0
        joined = asyncio.ensure_future(agent.join())
        stopped = asyncio.ensure_future(stop.wait())
        await asyncio.wait((joined, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not joined.done():
            joined.cancel()
            await asyncio.gather(joined, return_exceptions=True)
            return 1
        joined.result()
        _report(invitation, name, joined_before, as_json=as_json)
        return 0

    return run_until_stopped(body)


def _has_joined(invitation: Invitation, name: str) -> bool:
    """Return whether the agent has an access of its own to the hub. Raises CommandFailed."""
    try:
        return place_of(state_directory(), invitation.server, name).hub() is not None
    except (PlaceError, OSError) as error:
        raise CommandFailed(str(error)) from error


def _report(invitation: Invitation, name: str, before: bool, *, as_json: bool, dry_run: bool = False) -> None:
    """Print the result. ``before``: whether it had joined already."""
    if as_json:
        found = {"cluster": name, "hub": invitation.server, "joinedBefore": before, "joined": before or not dry_run}
        click.echo(json.dumps(found))
    elif dry_run:
        click.echo(f"{name} has joined {invitation.server}" if before else f"{name} would join {invitation.server}")
    else:
        click.echo("`syncline agent` runs it")


def agent_of(line: str, name: str, kubeconfig: str) -> Agent:
    """Return the agent of a cluster that joins with a line, as the command without further options. Raises
    CommandFailed."""
    problem = name_problem(name)
    if problem:
        raise CommandFailed(f"--name {name}: {problem}", USAGE)
    place, joining = registered(state_directory(), _invitation(line, None), name, kubeconfig, "")
    return Agent(place, joining, spoke_of(joining), SystemClock(), sayer(joining, ()), local_sources=True)


def registered(
    home: Path, invitation: Invitation, name: str, kubeconfig: str, context: str, proxy_url: str = ""
) -> tuple[Place, Joining]:
    """Note what is joined, with the line; the id of an agent stays when it joins again. Raises CommandFailed."""
    place = place_of(home, invitation.server, name)
    try:
        known = place.joining() or Joining(invitation.server, name, Entropy().suffix(ID_LENGTH))
        joining = replace(known, kubeconfig=kubeconfig, context=context, expires=invitation.expires)
        place.keep_invitation(invitation, name, proxy_url)
        place.keep_joining(joining)
    except (PlaceError, OSError) as error:
        raise CommandFailed(str(error)) from error
    return place, joining


def _invitation(line: str, ca: Path | None) -> Invitation:
    text = sys.stdin.read(MAX_LINE + 1) if line == "-" else line
    try:
        found = read_invitation(text)
    except InvitationError as error:
        raise CommandFailed(str(error), USAGE) from error
    return replace(found, ca_pem=ca.read_text()) if ca is not None else found


def _proxy_problem(url: str) -> str:
    return "" if not url or url.startswith("http://") else "--proxy-url: only proxies at http:// are supported"
