"""``syncline hub``: what administrators of a hub type, besides the cluster's own commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from syncline.assembly.fleet.hub import BOOTSTRAP_NAMESPACE
from syncline.assembly.fleet.objects import BOOTSTRAP_ACCOUNT
from syncline.base.secret import Secret
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.fleet.spoke.registration.invitation import Invitation, server_problem
from syncline.kube.client import Request
from syncline.kube.objects import Obj
from syncline.kube.text.durations import DurationError, parse_duration

MIN_S: Final = 600
"""The shortest life of a token that Kubernetes gives."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@click.group(cls=Group, context_settings=CONTEXT)
def hub() -> None:
    """Let clusters join this hub.

    \b
    Example:  syncline hub token
    """


@hub.command()
@click.option("--ttl", default="24h", show_default=True, help="How long the line is valid: 30m, 24h; at least 10m.")
@click.option("--server", default="", help="URL at which clusters reach the hub [default: that of the kubeconfig].")
@click.option(
    "--hub-ca",
    "ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Certificates that the hub's own is signed by [default: those of the kubeconfig].",
)
@click.option("--namespace", default=BOOTSTRAP_NAMESPACE, show_default=True, help="Namespace of the account.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["line", "clusteradm", "json"]),
    default="line",
    show_default=True,
    help="What `syncline join` takes; the command that clusteradm prints, or its JSON.",
)
@connection_options
def token(
    ttl: str, server: str, ca: Path | None, namespace: str, output: str, kubeconfig: str | None, context: str | None
) -> None:
    """Print the line with which a cluster joins: address and certificate of the hub, and a token. Keep it secret.

    Its holder may propose a cluster and ask for a certificate; both count only after an administrator has accepted the
    cluster (syncline cluster accept NAME).

    \b
    Example:  syncline join "$(syncline hub token --ttl 1h)" --name cluster1
    """
    seconds = _seconds(ttl)
    problem = server_problem(server) if server else ""
    if problem:
        raise CommandFailed(f"--server {server}: {problem}", USAGE)
    with Connection(kubeconfig, context) as link:
        made = _token(link, namespace, seconds)
        access = link.access
    ca_pem = ca.read_text() if ca is not None else access.ca_pem
    if access.skip_tls_verify and not ca_pem:
        raise CommandFailed(
            "the kubeconfig does not verify the hub's certificate, so the line cannot say which one is right; give "
            "--hub-ca FILE",
            USAGE,
        )
    address = (server or access.server).rstrip("/")
    if urlsplit(address).hostname in LOOPBACK:
        print(f"note: only this machine reaches {address}; --server gives another address", file=sys.stderr)
    fields = made.get("status") or {}
    secret = Secret(str(fields.get("token") or ""))
    if output == "line":
        print(Invitation(address, secret, ca_pem, str(fields.get("expirationTimestamp") or "")).line())
    elif output == "json":
        print(json.dumps({"hub-token": secret.reveal(), "hub-apiserver": address}))
    else:
        print(f"clusteradm join --hub-token {secret.reveal()} --hub-apiserver {address} --cluster-name <cluster_name>")


def _seconds(ttl: str) -> int:
    try:
        seconds = int(parse_duration(ttl).total_seconds())
    except DurationError as error:
        raise CommandFailed(f"--ttl {ttl}: {error}; write 30m or 24h", USAGE) from error
    if seconds < MIN_S:
        raise CommandFailed(f"--ttl {ttl}: a token is valid for at least {MIN_S // 60}m", USAGE)
    return seconds


def _token(link: Connection, namespace: str, seconds: int) -> Obj:
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{BOOTSTRAP_ACCOUNT}/token"
    answer = link.send(Request("POST", path, body=body))
    if answer.status == 404:
        raise CommandFailed(
            f"{link.server} has no account {namespace}/{BOOTSTRAP_ACCOUNT}, so it is no hub yet; run "
            "`syncline up --hub` or `syncline controller --roles hub` there, or name the namespace with --namespace"
        )
    found: Obj = link.check(answer)
    return found
