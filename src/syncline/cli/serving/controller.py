"""``syncline controller``: runs controllers of chosen roles against any cluster."""

from __future__ import annotations

import asyncio
import contextlib
import platform
import signal
from pathlib import Path
from typing import Unpack
from urllib.parse import urlsplit

import click

from syncline.assembly.controller import ROLES, ControllerSettings, Replica, StartError, serve_controller
from syncline.assembly.endpoints.listening import ListenError
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.rights import Rights
from syncline.assembly.settings import HubWebhookSettings
from syncline.base.clock import SystemClock
from syncline.base.entropy import Entropy
from syncline.base.interpreter import tune_interpreter
from syncline.base.scratch import scratch
from syncline.cli.access.connection import connection_options, default_kubeconfig, state_directory
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.terminal import start_logging
from syncline.cli.serving.eventloop import event_loop_runner
from syncline.cli.serving.running import (
    ServingOptions,
    allow_local_option,
    application_namespaces_option,
    application_set_options,
    approved_users,
    checked_plugins,
    endpoint_address,
    endpoint_options,
    hub_options,
    hydrator_option,
    namespace_option,
    plugins_option,
    pull_variant_option,
    rights_option,
    with_options,
)
from syncline.control.leader import MAX_SHARDS, LeaderSettings
from syncline.fleet.spoke.klusterlet.model import Agents
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, load_kubeconfig


@click.command()
@connection_options
@click.option("--roles", default="gitops", show_default=True, help=f"Which controllers run, of {','.join(ROLES)}.")
@namespace_option
@application_namespaces_option
@rights_option
@application_set_options
@hydrator_option
@click.option("--poll", default=120.0, show_default=True, help="Seconds between polls of a repository.")
@allow_local_option
@plugins_option
@click.option("--shards", default=1, show_default=True, type=click.IntRange(1, MAX_SHARDS), help="Parts to share out.")
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True, help="Hold Leases while working.")
@click.option("--identity", default=None, help="Name in the Leases [default: host name and a random end].")
@endpoint_options
@hub_options
@click.option("--hub-webhook-listen", default=None, help="Hub: HOST:PORT of its admission webhooks, in HTTPS.")
@click.option(
    "--hub-webhook-url",
    default="",
    metavar="URL",
    help="Hub: https://HOST:PORT at which the API server finds them [default: the Service of deploy/hub.yaml].",
)
@click.option("--node-name", envvar="NODE_NAME", default="", help="Node that this process runs on [env: NODE_NAME].")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), default=None, help="Keep mirrors here.")
@pull_variant_option
@click.option("--grace", default=20.0, show_default=True, help="Seconds for passes in flight to end at a stop.")
def controller(
    kubeconfig: str | None,
    context: str | None,
    roles: str,
    namespace: str,
    application_namespaces: tuple[str, ...] | None,
    hydrator: bool | None,
    poll: float,
    allow_local_repos: bool,
    plugins: Path | None,
    shards: int,
    leader_elect: bool,
    identity: str | None,
    node_name: str,
    cache: Path | None,
    pull_variant: str | None,
    grace: float,
    hub_webhook_listen: str | None,
    hub_webhook_url: str,
    **endpoints: Unpack[ServingOptions],
) -> int:
    """Run controllers against the cluster of a kubeconfig, or of the pod that this runs in: those of GitOps unless
    --roles says otherwise. Each role has its rights in a file of deploy/.

    Start as many replicas as you like: with one shard one of them works and the others take over; with more shards they
    share the Applications. All must name the same number. One replica at a time works on each other role. SIGTERM hands
    over and ends.

    \b
    Example:  syncline controller --kubeconfig ~/.kube/config --shards 4
    """
    chosen = _roles(roles, endpoints["webhook_listen"], endpoints["rights"])
    access = _access(kubeconfig, context)
    name = identity or f"{platform.node().lower()[:30]}-{Entropy().suffix()}"
    leader = LeaderSettings(name, namespace, shards=shards, node=node_name) if leader_elect else None
    start_logging()
    with contextlib.ExitStack() as stack:
        folder = cache or stack.enter_context(scratch())
        application = AppSettings(namespace, application_namespaces, hydrator, poll_s=poll)
        gitops = with_options(
            GitOpsSettings(
                folder / "repositories",
                allow_local_repos=allow_local_repos,
                plugins=checked_plugins(plugins),
                application=application,
            ),
            endpoints,
        )
        settings = ControllerSettings(
            gitops,
            leader,
            chosen,
            grace_s=grace,
            pull_variant=pull_variant or "",
            auto_approve_users=approved_users(endpoints),
            manifest_limit=endpoints["manifest_limit"],
            hub_webhooks=_hub_webhooks(hub_webhook_listen, hub_webhook_url, chosen),
            agents=_agents(access) if "klusterlet" in chosen else None,
            patient=True,
        )
        return _run(access, settings, name)


def _agents(access: ClusterAccess) -> Agents:
    from syncline.hosts.fleet.klusterlets import KlusterletAgents

    return KlusterletAgents(state_directory(), access, SystemClock())


def _roles(text: str, webhook_listen: str | None, rights: str) -> tuple[str, ...]:
    named = {name.strip() for name in text.split(",")}
    unknown = sorted(named - set(ROLES))
    if unknown:
        listed = ", ".join(name or "''" for name in unknown)
        raise CommandFailed(f"--roles: {listed}: no such role; name some of {', '.join(ROLES)}", USAGE)
    if webhook_listen is not None and "gitops" not in named:
        raise CommandFailed("--webhook-listen: only the role gitops takes webhooks; add it to --roles", USAGE)
    if rights != Rights.CLUSTER and "gitops" not in named:
        raise CommandFailed(f"--rights {rights}: these are rights of the role gitops; add it to --roles", USAGE)
    return tuple(name for name in ROLES if name in named)


def _hub_webhooks(listen: str | None, url: str, roles: tuple[str, ...]) -> HubWebhookSettings | None:
    address = endpoint_address("--hub-webhook-listen", listen)
    if url and address is None:
        raise CommandFailed("--hub-webhook-url: nothing listens there; add --hub-webhook-listen HOST:PORT", USAGE)
    if address is None:
        return None
    if "hub" not in roles:
        raise CommandFailed("--hub-webhook-listen: these are webhooks of the role hub; add it to --roles", USAGE)
    parts = urlsplit(url)
    if url and (parts.scheme != "https" or not parts.hostname or parts.path not in ("", "/") or parts.query):
        raise CommandFailed(f"--hub-webhook-url {url!r}: write https://HOST:PORT", USAGE)
    return HubWebhookSettings(*address, url.rstrip("/"))


def _access(kubeconfig: str | None, context: str | None) -> ClusterAccess:
    try:
        return load_kubeconfig(kubeconfig or default_kubeconfig(), context)
    except (KubeconfigError, OSError) as error:
        raise CommandFailed(str(error), USAGE) from error


def _run(access: ClusterAccess, settings: ControllerSettings, name: str) -> int:
    def started(_replica: Replica) -> None:
        print(f"controllers {name} watch {access.server}; SIGTERM or Ctrl-C hands over and ends", flush=True)

    async def serve() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # no signal handlers here: Ctrl-C raises instead
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve_controller(access, settings, SystemClock(), stop, started)

    tune_interpreter()
    try:
        with event_loop_runner() as runner:
            runner.run(serve())
    except (StartError, ListenError) as error:
        raise CommandFailed(str(error)) from error
    print("handed over", flush=True)
    return 0
