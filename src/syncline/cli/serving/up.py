"""``syncline up``: runs the cluster and the GitOps controllers on this machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from syncline.assembly.embedded.live import LiveCluster
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.cli.access.connection import state_directory
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.machines.node import label_pairs
from syncline.cli.serving.operators import OperatorOptions, chosen_role, operator_options
from syncline.cli.serving.running import (
    NODES,
    HubOptions,
    ServerOptions,
    ServingOptions,
    application_namespaces_option,
    application_set_options,
    approved_users,
    checked_plugins,
    encrypt_option,
    endpoint_address,
    endpoint_options,
    host_and_port,
    hub_options,
    hydrator_option,
    namespace_option,
    plugins_option,
    pull_variant_option,
    rights_option,
    run_cluster,
    run_commands_of,
    run_commands_option,
    server_options,
    with_options,
)
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.selectors import label_value_problems

if TYPE_CHECKING:
    from syncline.assembly.roles import Role


class UpOptions(ServingOptions, OperatorOptions, ServerOptions):
    """The values of all groups of options."""


RUNNING = {
    RunCommands.OFF: "commands of containers are simulated; --run-commands runs them as local processes",
    RunCommands.SANDBOXED: "commands run as sandboxed local processes",
    RunCommands.UNSANDBOXED: "commands run as local processes WITHOUT a sandbox, with all your rights",
}
PROCESSES = (
    "containers with a command are processes in pods that end (Jobs, restartPolicy Never or OnFailure), in init "
    "containers, and where syncline.dev/run: process is set; all others are simulated, and their logs say so"
)


def _zones(text: str) -> tuple[str, ...]:
    zones = tuple(zone.strip() for zone in text.split(",")) if text else ()
    for zone in zones:
        problems = label_value_problems(zone) if zone else ["a zone has a name"]
        if problems:
            raise CommandFailed(f"--zones {text}: {problems[0]}; write a,b,c", USAGE)
    return zones


def _labels(labels: tuple[str, ...], machine_config: bool) -> dict[str, str]:
    """Return the labels of the first nodes; with pools they are workers unless a role is given."""
    given = label_pairs(labels)
    roles = any(key.startswith("node-role.kubernetes.io/") for key in given)
    return given if roles or not machine_config else given | {"node-role.kubernetes.io/worker": ""}


def _greet(
    cluster: LiveCluster,
    settings: ClusterSettings,
    kubeconfig: Path,
    namespace: str,
    *,
    machine_config: bool,
    hub: bool,
    patterns: bool,
) -> None:
    if settings.run_commands is not RunCommands.OFF:
        print(f"commands    {PROCESSES}")
    print(f"cluster     {cluster.url} (data: {settings.data or 'in memory'})")
    print(f"kubeconfig  {kubeconfig}")
    if settings.encryption is not None:
        print(f"secrets     encrypted at rest with the keys of {settings.encryption}")
    print(f"machines    {settings.nodes} simulated; {RUNNING[settings.run_commands]}")
    print(f"gitops      Applications in namespace {namespace}, project default, repositories by path allowed")
    if machine_config:
        print("pools       master and worker; kubectl get mcp, syncline mc list")
    if patterns:
        print("patterns    Pattern objects in openshift-operators; syncline pattern install, plan, get")
    if hub:
        print(
            "hub         kubectl get managedclusters,placements -A; clusters join with what syncline hub token prints"
        )
    if cluster.config_server_url:
        print(
            f"machines    that join: {cluster.config_server_url}/config/worker, unauthenticated; it holds a credential"
        )
    print()
    print("Type next:")
    print(f"  export KUBECONFIG={kubeconfig}")
    print("  kubectl get nodes")
    print("  syncline app create NAME --repo PATH-OR-URL --path FOLDER --dest-namespace default")
    print("  syncline app sync NAME\n")
    print("Ctrl-C stops.", flush=True)


async def _start_always(
    cluster: LiveCluster, gitops: GitOpsSettings, home: Path, kubeconfig: Path, *, patterns: bool
) -> None:
    """Start the controllers that every such cluster has: those of GitOps, and of Klusterlets that may come; and those
    of ``patterns``, if they are wanted."""
    from syncline.assembly.fleet.klusterlet import klusterlet_role
    from syncline.base.clock import SystemClock
    from syncline.hosts.fleet.klusterlets import KlusterletAgents
    from syncline.kube.transport.kubeconfig import load_kubeconfig

    await cluster.start_gitops(gitops)
    agents = KlusterletAgents(home, load_kubeconfig(kubeconfig), SystemClock())
    await cluster.run_role(klusterlet_role(agents))
    if patterns:
        await cluster.start_patterns(gitops)


async def _start_hub(cluster: LiveCluster, namespace: str, given: HubOptions, pull_variant: str, poll_s: float) -> None:
    from syncline.assembly.fleet.hub import HubSettings

    settings = HubSettings(namespace, approved_users(given), given["manifest_limit"])
    await cluster.start_hub(settings, pull_variant, poll_s)


async def _start_operators(cluster: LiveCluster, role: Role | None) -> None:
    if role is None:
        return
    await cluster.run_role(role)
    print("operators   Subscriptions bring them up; kubectl get packagemanifests -A, kubectl get csv -A")


async def _start_server(cluster: LiveCluster, given: ServerOptions, application: AppSettings) -> None:
    """Serve argocd's API in this process; without an address, nothing. Raises CommandFailed."""
    address = endpoint_address("--server-listen", given["server_listen"])
    if address is None:
        return
    from syncline.cli.serving.server import address_of
    from syncline.cluster.access.authz import SUPERUSERS
    from syncline.cluster.access.users import UserInfo
    from syncline.web.server import ServerSettings, serving
    from syncline.web.serving.port import PortError

    settings = ServerSettings(
        *address,
        insecure=given["server_insecure"],
        namespace=application.control_namespace,
        namespaces=application.application_namespaces or (),
    )
    assert cluster.reader is not None, "the GitOps controllers have started"
    driver = cluster.working.driver(UserInfo("system:syncline:server", groups=(SUPERUSERS,)))
    server = serving(driver.port, settings, cluster.core.clock, cluster.reader)
    try:
        port = await cluster.working.endpoints.enter_async_context(server)
    except PortError as error:
        raise CommandFailed(str(error)) from error
    print(f"argocd's    API: {address_of(settings, port.number)}; its account admin, whose first password is in")
    print(f"            kubectl -n {settings.namespace} get secret argocd-initial-admin-secret", flush=True)


async def _start_agent(cluster: LiveCluster, line: str, name: str, kubeconfig: Path) -> None:
    """Join a hub, and run the agent of this cluster in this process; without a line, nothing. Raises CommandFailed."""
    if not line:
        return
    from syncline.cli.fleet.join import agent_of

    agent = agent_of(line, name, str(kubeconfig.resolve()))

    async def run() -> None:
        from syncline.hosts.fleet.joining import JoinError
        from syncline.hosts.fleet.places import PlaceError

        try:
            await agent.run(asyncio.Event())
        except (JoinError, PlaceError) as error:
            print(f"error: {error}", flush=True)

    cluster.working.begin(run(), "fleet agent")


async def _until_stopped(cluster: LiveCluster, file: Path | None, stop: asyncio.Event) -> int:
    """Wait for ``stop``, and meanwhile record what happens, if a file is named; return the exit code. Raises
    CommandFailed."""
    async with contextlib.AsyncExitStack() as stack:
        if file is not None:
            from syncline.cli.rehearse.record import recording_beside

            await stack.enter_async_context(recording_beside(cluster, file, stop))
        await stop.wait()
    print("stopping", flush=True)
    return 0


def _check(problems: Mapping[str, bool]) -> None:
    """Refuse options that contradict each other; raises CommandFailed."""
    for problem, found in problems.items():
        if found:
            raise CommandFailed(problem, USAGE)


@click.command()
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), default=None, help="Data directory.")
@click.option("--memory", is_flag=True, help="Keep nothing.")
@click.option("--listen", default="127.0.0.1:6443", show_default=True, help="HOST:PORT; port 0 takes a free one.")
@click.option("--nodes", type=NODES, default=1, show_default=True, help="Simulated nodes.")
@click.option("--zones", default="", help="a,b,c: zones of these nodes, given out in turn.")
@click.option("--label", "labels", multiple=True, help="KEY=VALUE on each of these nodes; repeatable.")
@click.option("--kubeconfig-out", type=click.Path(dir_okay=False, path_type=Path), default=None, help="Write it here.")
@namespace_option
@endpoint_options
@hub_options
@plugins_option
@application_namespaces_option
@rights_option
@application_set_options
@hydrator_option
@click.option("--poll", default=30.0, show_default=True, help="Seconds between polls of a repository.")
@click.option(
    "--sync-timeout", default=0.0, show_default=True, help="Seconds that a sync may take; 0: as long as it likes."
)
@click.option(
    "--machine-config", is_flag=True, help="Pools master and worker, and the controllers that keep their machines."
)
@click.option(
    "--config-server-listen",
    default=None,
    help="HOST:PORT at which machines that join get their Ignition config (upstream: 22623); with --machine-config.",
)
@click.option("--hub", is_flag=True, help="A hub: clusters join it, Placements choose among them, works go to them.")
@click.option("--patterns", is_flag=True, help="Install Pattern objects; ArgoCD objects make control namespaces.")
@click.option("--join", "join_line", default="", metavar="LINE", help="Join the hub of `syncline hub token`, too.")
@click.option("--name", "cluster_name", default="", help="With --join: name of this cluster on the hub.")
@server_options
@click.option("--record", "record_file", type=click.Path(path_type=Path), default=None, help="Record all, as `record`.")
@operator_options
@pull_variant_option
@encrypt_option
@run_commands_option
def up(
    data: Path | None,
    memory: bool,
    listen: str,
    nodes: int,
    zones: str,
    labels: tuple[str, ...],
    kubeconfig_out: Path | None,
    namespace: str,
    application_namespaces: tuple[str, ...] | None,
    hydrator: bool | None,
    poll: float,
    plugins: Path | None,
    sync_timeout: float,
    machine_config: bool,
    config_server_listen: str | None,
    hub: bool,
    patterns: bool,
    join_line: str,
    cluster_name: str,
    record_file: Path | None,
    pull_variant: str | None,
    encryption: Path | None,
    run_commands: str | None,
    **endpoints: Unpack[UpOptions],
) -> int:
    """Run the embedded cluster and the GitOps controllers until Ctrl-C.

    Data is kept under $SYNCLINE_HOME (or the user's state folder); a second `up` on the same data refuses to start.
    """
    _check(
        {
            "give --data or --memory, not both": memory and data is not None,
            "--encrypt-secrets is for data that is kept; leave --memory out": encryption is not None and memory,
            "--join LINE needs --name NAME, and the other way round": bool(join_line) != bool(cluster_name),
            "--config-server-listen serves the configs of pools; add --machine-config": (
                config_server_listen is not None and not machine_config
            ),
            "--server-insecure needs --server-listen": endpoints["server_insecure"] and not endpoints["server_listen"],
        }
    )
    home, config_server = state_directory(), endpoint_address("--config-server-listen", config_server_listen)
    commands, operators = run_commands_of(run_commands), chosen_role(endpoints)
    (host, port), where = host_and_port(listen, tls=True), None if memory else (data or home / "data")
    settings = ClusterSettings(
        data=where,
        host=host,
        port=port,
        nodes=nodes,
        zones=_zones(zones),
        node_labels=_labels(labels, machine_config),
        simulated_storage=True,
        allowed_hosts=endpoints["allowed_hosts"],
        run_commands=commands,
        encryption=encryption,
    )
    config, cache = kubeconfig_out or home / "kubeconfig", (where or home) / "repositories"
    application = AppSettings(namespace, application_namespaces, hydrator, poll_s=poll, sync_timeout_s=sync_timeout)
    sources = GitOpsSettings(cache, allow_local_repos=True, plugins=checked_plugins(plugins), application=application)
    gitops = with_options(sources, endpoints)

    async def body(cluster: LiveCluster, stop: asyncio.Event) -> int:
        await _start_always(cluster, gitops, home, config, patterns=patterns)
        if machine_config:
            await cluster.start_machine_config(application.control_namespace, config_server)
        if hub:
            await _start_hub(cluster, namespace, endpoints, pull_variant or "", poll)
        await _start_operators(cluster, operators)
        _greet(cluster, settings, config, namespace, machine_config=machine_config, hub=hub, patterns=patterns)
        await _start_server(cluster, endpoints, application)
        await _start_agent(cluster, join_line, cluster_name, config)
        return await _until_stopped(cluster, record_file, stop)

    return run_cluster(settings, body, config)
