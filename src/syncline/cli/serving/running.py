"""Shared by ``apiserver``, ``up`` and ``demo``: run until a signal, and report why a start failed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import click

from syncline.argo.parameters import patterns_of
from syncline.assembly.embedded.live import LiveCluster, kubeconfig_text, running_cluster, write_private
from syncline.assembly.endpoints.listening import ListenError
from syncline.assembly.gitops import ApplicationSetSettings, GitOpsSettings
from syncline.assembly.rights import Rights
from syncline.assembly.settings import ClusterSettings, RunCommands, SettingError, trace_settings
from syncline.base.browserguard import is_host_name
from syncline.base.secret import Secret
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.serving.eventloop import event_loop_runner
from syncline.cluster.serving.serve import ServeError
from syncline.cluster.storage.disk import DiskError
from syncline.telemetry.otlp import TraceSettings

NODES = click.IntRange(0, 5000)
"""Simulated nodes at the start, up to Kubernetes' own limit."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def host_and_port(listen: str, *, tls: bool) -> tuple[str, int]:
    """Parse ``127.0.0.1:6443``, ``:6443`` or ``[::1]:0``. Other addresses than loopback require TLS."""
    host, colon, port = listen.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not colon or not port.isdigit() or int(port) > 65535:
        raise CommandFailed(f"--listen {listen!r}: write HOST:PORT, for example 127.0.0.1:6443", USAGE)
    if host not in LOOPBACK and not tls:
        raise CommandFailed(f"--listen {listen}: an address that others reach needs TLS; leave --no-tls out", USAGE)
    return host, int(port)


def endpoint_address(option: str, listen: str | None) -> tuple[str, int] | None:
    """Parse the address of webhooks or metrics: ``127.0.0.1:8082``, ``:8082`` (loopback), ``0.0.0.0:8082``."""
    if listen is None:
        return None
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise CommandFailed(f"{option} {listen!r}: write HOST:PORT, for example 127.0.0.1:8082", USAGE)
    return host.strip("[]") or "127.0.0.1", int(port)


def _host_names(_context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not is_host_name(name):
            raise CommandFailed(f"--allowed-host {name!r}: write a name alone, for example hooks.example.com", USAGE)
    return names


allowed_host_option = click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    callback=_host_names,
    help="Name that callers may use for listeners without TLS or credentials, beside the address; repeatable.",
)


def trace_target(endpoint: str | None) -> TraceSettings | None:
    """Return where traces go, by the option or OpenTelemetry's variables; raises CommandFailed."""
    try:
        return trace_settings(endpoint, os.environ)
    except SettingError as error:
        raise CommandFailed(str(error), USAGE) from error


allow_local_option = click.option(
    "--allow-local-repos", is_flag=True, help="Allow repositories by path: they read this machine's disk."
)

plugins_option = click.option(
    "--plugins",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Folder of ConfigManagementPlugin files: programs that render, in a sandbox [default: none].",
)


def checked_plugins(folder: Path | None) -> Path | None:
    """Return ``folder`` if its plugin declarations are valid; raises CommandFailed if not."""
    from syncline.sources.rendering.plugins import PluginError, load_plugins

    try:
        if folder is not None:
            load_plugins(folder)
    except PluginError as error:
        raise CommandFailed(str(error), USAGE) from error
    return folder


def endpoint_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--webhook-listen``, ``--metrics-listen``, ``--metrics-application-labels``,
    ``--metrics-applicationset-labels``, ``--allowed-host`` and ``--otlp-endpoint``."""
    traces = "URL of an OpenTelemetry collector (OTLP over HTTP) for traces [default: $OTEL_EXPORTER_OTLP_ENDPOINT]."
    command = click.option("--otlp-endpoint", default=None, help=traces)(command)
    webhook = "HOST:PORT for push webhooks of Git hosts (POST /api/webhook)."
    metrics = "HOST:PORT of /metrics and /healthz."
    command = click.option("--metrics-listen", default=None, help=metrics)(command)
    labels = "A label of Applications that argocd_app_labels shows; repeatable."
    command = click.option("--metrics-application-labels", multiple=True, help=labels)(command)
    labels = "The same of ApplicationSets for argocd_appset_labels; repeatable."
    command = click.option("--metrics-applicationset-labels", multiple=True, help=labels)(command)
    command = allowed_host_option(command)
    return click.option("--webhook-listen", default=None, help=webhook)(command)


class EndpointOptions(TypedDict):
    """The values of :func:`endpoint_options` beside the addresses' own use."""

    webhook_listen: str | None
    metrics_listen: str | None
    metrics_application_labels: tuple[str, ...]
    metrics_applicationset_labels: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    otlp_endpoint: str | None


def with_options(settings: GitOpsSettings, given: ServingOptions) -> GitOpsSettings:
    """Return the settings with what the options say; raises CommandFailed."""
    return replace(
        settings,
        rights=Rights(given["rights"]),
        webhook_listen=endpoint_address("--webhook-listen", given["webhook_listen"]),
        metrics_listen=endpoint_address("--metrics-listen", given["metrics_listen"]),
        metrics_labels=given["metrics_application_labels"],
        metrics_set_labels=given["metrics_applicationset_labels"],
        allowed_hosts=given["allowed_hosts"],
        traces=trace_target(given["otlp_endpoint"]),
        application_sets=set_settings(given),
    )


namespace_option = click.option(
    "--namespace",
    "-n",
    default="argocd",
    show_default=True,
    help="Where Argo CD's objects and our Leases live.",
)


rights_option = click.option(
    "--rights",
    type=click.Choice([str(value) for value in Rights]),
    default=str(Rights.CLUSTER),
    show_default=True,
    help="Of the GitOps controllers: cluster, all that their user may do; managed-by, as OpenShift's application "
    "controller, writing only in namespaces labelled argocd.argoproj.io/managed-by=NAMESPACE.",
)


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--server-listen`` and ``--server-insecure``."""
    listen = "HOST:PORT at which argocd's API is served, in HTTPS."
    command = click.option("--server-insecure", is_flag=True, help="With --server-listen: without TLS.")(command)
    return click.option("--server-listen", default=None, help=listen)(command)


class ServerOptions(TypedDict):
    """The values of :func:`server_options`."""

    server_listen: str | None
    server_insecure: bool


application_namespaces_option = click.option(
    "--application-namespaces",
    default=None,
    metavar="LIST",
    callback=lambda _context, _parameter, value: None if value is None else patterns_of(value),
    help="Other namespaces whose Applications are worked on, by comma: names, globs, /expressions/ "
    "[default: application.namespaces in argocd-cmd-params-cm].",
)


def application_set_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--applicationsets`` and ``--scm-root-ca-path``, ``--scm-proxy-url``, ``--scm-no-proxy``."""
    prefix = "ARGOCD_APPLICATIONSET_CONTROLLER_SCM"
    proxy = f"Proxy for requests to Git hosts of scmProvider and pullRequest [default: ${prefix}_PROXY_URL]."
    command = click.option("--scm-no-proxy", default="", help="Their hosts without it, by comma.")(command)
    command = click.option("--scm-proxy-url", envvar=f"{prefix}_PROXY_URL", help=proxy)(command)
    trusted = "Certificates that these Git hosts may be signed by, beside the system's."
    path = click.Path(exists=True, dir_okay=False, path_type=Path)
    command = click.option("--scm-root-ca-path", type=path, default=None, help=trusted)(command)
    return click.option(
        "--applicationsets/--no-applicationsets",
        default=True,
        show_default=True,
        help="Work on ApplicationSets; off where Argo CD's own controller does.",
    )(command)


class SetOptions(TypedDict):
    """The values of :func:`application_set_options`."""

    applicationsets: bool
    scm_root_ca_path: Path | None
    scm_proxy_url: str | None
    scm_no_proxy: str


def hub_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--auto-approve-users`` and ``--manifest-limit``."""
    limit = "Hub: bytes of the manifests of a ManifestWork."
    command = click.option("--manifest-limit", type=click.IntRange(1), default=512_000, show_default=True, help=limit)(
        command
    )
    users = "Hub: users whose clusters are accepted and get certificates without people; by comma, repeatable."
    return click.option("--auto-approve-users", multiple=True, metavar="USER", help=users)(command)


class HubOptions(TypedDict):
    """The values of :func:`hub_options`."""

    auto_approve_users: tuple[str, ...]
    manifest_limit: int


def approved_users(given: HubOptions) -> tuple[str, ...]:
    """Return the users of ``--auto-approve-users``."""
    return tuple(user for text in given["auto_approve_users"] for user in map(str.strip, text.split(",")) if user)


class ServingOptions(EndpointOptions, SetOptions, HubOptions):
    """The values of all, and of :data:`rights_option`."""

    rights: str


def set_settings(given: SetOptions) -> ApplicationSetSettings:
    """Return what the options say; raises CommandFailed."""
    path, proxy = given["scm_root_ca_path"], given["scm_proxy_url"]
    try:
        ca_pem = path.read_text(encoding="utf-8") if path is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"--scm-root-ca-path: {error}", USAGE) from error
    return ApplicationSetSettings(
        given["applicationsets"], ca_pem, Secret(proxy) if proxy else None, given["scm_no_proxy"]
    )


hydrator_option = click.option(
    "--hydrator-enabled/--no-hydrator-enabled",
    "hydrator",
    default=None,
    help="Push what dry sources render to into branches [default: hydrator.enabled in argocd-cmd-params-cm].",
)


pull_variant_option = click.option(
    "--pull-variant",
    type=click.Choice(["basic", "acm"]),
    default=None,
    help="Whose rules Applications follow that clusters pull [default: acm where a GitOpsCluster names their "
    "namespace, else basic].",
)
run_commands_option = click.option(
    "--run-commands",
    is_flag=False,
    flag_value="sandboxed",
    default=None,
    type=click.Choice([str(value) for value in RunCommands]),
    help="Run commands of containers as local processes: in pods that end, in init containers, and where "
    "syncline.dev/run: process is set; all others stay simulated. unsandboxed: with all that you may do.",
)


encrypt_option = click.option(
    "--encrypt-secrets",
    "encryption",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    metavar="FILE",
    help="Encrypt Secrets in the data with the first key of FILE (base64 of 32 bytes a line; all are read), or as a "
    "Kubernetes EncryptionConfiguration says.",
)


def run_commands_of(value: str | None) -> RunCommands:
    """Return the value of ``--run-commands``. Raises CommandFailed if this machine cannot create a sandbox."""
    chosen = RunCommands.OFF if value is None else RunCommands(value)
    if chosen is RunCommands.SANDBOXED:
        from syncline.assembly.machines.virtual import sandbox_problem

        problem = sandbox_problem()
        if problem:
            raise CommandFailed(problem)
    return chosen


def run_cluster(
    settings: ClusterSettings,
    body: Callable[[LiveCluster, asyncio.Event], Awaitable[int]],
    kubeconfig_out: Path | None = None,
) -> int:
    """Run ``body`` beside a served cluster; SIGINT and SIGTERM set its event."""
    try:
        with event_loop_runner() as runner:
            return runner.run(_serve(settings, body, kubeconfig_out))
    except (DiskError, ListenError, ServeError) as error:
        raise CommandFailed(str(error)) from error
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the failure to report: our own refusals first."""
    leaves: list[BaseException] = []
    stack: list[BaseException] = [group]
    while stack:
        one = stack.pop()
        if isinstance(one, BaseExceptionGroup):
            stack.extend(one.exceptions)
        else:
            leaves.append(one)
    ours = [leaf for leaf in leaves if isinstance(leaf, CommandFailed | DiskError | ListenError | ServeError)]
    return CommandFailed(str(ours[0])) if ours else leaves[0]


async def _serve(
    settings: ClusterSettings,
    body: Callable[[LiveCluster, asyncio.Event], Awaitable[int]],
    kubeconfig_out: Path | None,
) -> int:
    stop = asyncio.Event()
    event_loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # no signal handlers on this platform: Ctrl-C raises instead
            event_loop.add_signal_handler(number, stop.set)
    async with running_cluster(settings) as cluster:
        if kubeconfig_out is not None:
            write_private(kubeconfig_out, kubeconfig_text(cluster))
        cluster.stopped.add_done_callback(lambda _future: stop.set())
        code = await body(cluster, stop)
        if cluster.stopped.done():
            cluster.stopped.result()
        return code
