"""``syncline apiserver``: the bare embedded cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from syncline.assembly.embedded.live import LiveCluster
from syncline.assembly.embedded.rotation import Rotation
from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.serving.running import (
    NODES,
    allowed_host_option,
    encrypt_option,
    host_and_port,
    run_cluster,
    run_commands_of,
    run_commands_option,
)

FILE = click.Path(dir_okay=False, path_type=Path)
COUNT = click.IntRange(0, 1_000_000)


def _chosen(text: str) -> tuple[str, ...] | None:
    """Return the chosen controllers; None: all."""
    if text in ("all", "none"):
        return None if text == "all" else ()
    # Half of the code to load, so only imported when controllers are named.
    from syncline.cluster.builtin import builtin_controllers
    from syncline.cluster.builtin.access.certificates.controller import signing_request_controllers

    every = (*builtin_controllers(), *signing_request_controllers(can_sign=True))
    known = sorted({controller.name for controller in every})
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise CommandFailed(
                f"--controllers {text}: {name!r} is none; give all, none, or of {', '.join(known)}", USAGE
            )
    return names


@click.command()
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), default=None, help="Keep the data here.")
@click.option("--memory", is_flag=True, help="Keep everything in memory (the default).")
@click.option("--listen", default="127.0.0.1:6443", show_default=True, help="HOST:PORT; port 0 takes a free one.")
@click.option("--tls/--no-tls", default=True, show_default=True, help="Plain HTTP is for the loopback only.")
@click.option("--kubeconfig-out", type=click.Path(dir_okay=False, path_type=Path), default=None, help="Write it here.")
@click.option("--nodes", type=NODES, default=0, show_default=True, help="Simulated nodes.")
@click.option("--controllers", default="all", show_default=True, help="all, none, or names with commas.")
@click.option("--audit-log", type=click.Path(dir_okay=False, path_type=Path), default=None, help="A line per request.")
@click.option("--audit-policy", type=FILE, default=None, help="Policy of audit.k8s.io/v1: what the audit log tells.")
@click.option("--audit-log-maxsize", type=COUNT, default=0, help="Megabytes of one file; 0 is 100.")
@click.option("--audit-log-maxbackup", type=COUNT, default=0, help="Old files that are kept; 0 is all.")
@click.option("--audit-log-maxage", type=COUNT, default=0, help="Days for which old files are kept; 0 is for ever.")
@click.option("--max-requests-inflight", type=click.IntRange(1, 100_000), default=400, show_default=True)
@click.option(
    "--max-mutating-requests-inflight",
    type=click.IntRange(1, 100_000),
    default=200,
    show_default=True,
    help="The sum of both is shared by the priority levels.",
)
@allowed_host_option
@encrypt_option
@run_commands_option
def apiserver(
    data: Path | None,
    memory: bool,
    listen: str,
    tls: bool,
    kubeconfig_out: Path | None,
    nodes: int,
    controllers: str,
    audit_log: Path | None,
    audit_policy: Path | None,
    audit_log_maxsize: int,
    audit_log_maxbackup: int,
    audit_log_maxage: int,
    max_requests_inflight: int,
    max_mutating_requests_inflight: int,
    allowed_hosts: tuple[str, ...],
    encryption: Path | None,
    run_commands: str | None,
) -> int:
    """Serve the bare embedded cluster until stopped.

    In memory, with TLS, on the loopback, without nodes and with all controllers, by default.
    """
    if memory and data is not None:
        raise CommandFailed("give --data or --memory, not both", USAGE)
    if encryption is not None and data is None:
        raise CommandFailed("--encrypt-secrets is for data that is kept; give --data as well", USAGE)
    host, port = host_and_port(listen, tls=tls)
    if run_commands not in (None, str(RunCommands.OFF)) and not tls:
        raise CommandFailed(
            "--run-commands needs TLS: commands inside pods speak nothing else; leave --no-tls out", USAGE
        )
    commands = run_commands_of(run_commands)
    settings = ClusterSettings(
        data=data,
        host=host,
        port=port,
        tls=tls,
        allowed_hosts=allowed_hosts,
        nodes=nodes,
        controllers=_chosen(controllers),
        run_commands=commands,
        encryption=encryption,
        audit_log=audit_log,
        audit_policy=audit_policy,
        audit_rotation=Rotation(audit_log_maxsize, audit_log_maxbackup, audit_log_maxage),
        max_requests_inflight=max_requests_inflight,
        max_mutating_requests_inflight=max_mutating_requests_inflight,
    )

    async def body(cluster: LiveCluster, stop: asyncio.Event) -> int:
        where = f"; kubeconfig {kubeconfig_out}" if kubeconfig_out else ""
        print(f"serving {cluster.url}{where}; data {data or 'in memory'}; Ctrl-C stops", flush=True)
        await stop.wait()
        print("stopping", flush=True)
        return 0

    return run_cluster(settings, body, kubeconfig_out)
