"""``syncline server``: argocd's API, against any cluster."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path

import click

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.ports import HttpPort
from syncline.assembly.running import source_reader
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.clock import SystemClock
from syncline.base.interpreter import tune_interpreter
from syncline.base.scratch import scratch
from syncline.cli.access.connection import connection_options, default_kubeconfig
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.terminal import start_logging
from syncline.cli.serving.eventloop import event_loop_runner
from syncline.cli.serving.running import (
    allow_local_option,
    application_namespaces_option,
    checked_plugins,
    endpoint_address,
    namespace_option,
    plugins_option,
)
from syncline.kube.errors import ApiError
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, load_kubeconfig
from syncline.web.server import ServerSettings, serving
from syncline.web.serving.port import PortError


@click.command()
@connection_options
@click.option("--listen", default="127.0.0.1:8080", show_default=True, help="HOST:PORT; port 0 takes a free one.")
@namespace_option
@application_namespaces_option
@allow_local_option
@plugins_option
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), default=None, help="Keep mirrors here.")
@click.option("--insecure", is_flag=True, help="Without TLS: HTTP/2 and HTTP/1.1 in the clear.")
@click.option("--rootpath", default="", help="A path that stands before all others, as a proxy leaves it there.")
@click.option("--disable-auth", is_flag=True, help="Without accounts: every caller is the administrator.")
def server(
    kubeconfig: str | None,
    context: str | None,
    listen: str,
    namespace: str,
    application_namespaces: tuple[str, ...] | None,
    allow_local_repos: bool,
    plugins: Path | None,
    cache: Path | None,
    insecure: bool,
    rootpath: str,
    disable_auth: bool,
) -> int:
    """Serve argocd's API: gRPC, gRPC-Web and REST on one port, for argocd and all that speaks to argocd-server.

    Accounts and rights are those of argocd-cm, argocd-secret and argocd-rbac-cm; the server itself acts with the rights
    of its kubeconfig. The administrator's first password is in the Secret argocd-initial-admin-secret.

    \b
    Example:  syncline server --listen 127.0.0.1:8080
              argocd login 127.0.0.1:8080 --insecure --username admin
    """
    address = endpoint_address("--listen", listen)
    assert address is not None
    settings = ServerSettings(
        *address,
        insecure=insecure,
        root=rootpath,
        namespace=namespace,
        namespaces=application_namespaces or (),
        disable_auth=disable_auth,
    )
    try:
        access = load_kubeconfig(kubeconfig or default_kubeconfig(), context)
    except (KubeconfigError, OSError) as error:
        raise CommandFailed(str(error), USAGE) from error
    start_logging()
    tune_interpreter()
    programs = checked_plugins(plugins)
    try:
        with contextlib.ExitStack() as stack, event_loop_runner() as runner:
            folder = cache or stack.enter_context(scratch())
            sources = GitOpsSettings(folder / "repositories", allow_local_repos=allow_local_repos, plugins=programs)
            runner.run(_serve(access, settings, source_reader(sources)))
    except (PortError, ApiError) as error:
        raise CommandFailed(str(error)) from error
    return 0


async def _serve(access: ClusterAccess, settings: ServerSettings, reader: GitSourceReader) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # no signal handlers here: Ctrl-C raises instead
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(HttpPort(access), settings, SystemClock(), reader) as port:
        print(f"server      {address_of(settings, port.number)} serves argocd's API of {access.server}", flush=True)
        await stop.wait()


def address_of(settings: ServerSettings, port: int) -> str:
    """Return the address as a client writes it."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'http' if settings.insecure else 'https'}://{host}:{port}"
