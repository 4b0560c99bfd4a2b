"""``syncline node kubeconfig``: creates a kubeconfig for the agent of one node, with the least rights."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncline.base.entropy import Entropy
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.output import print_documents
from syncline.kube import client
from syncline.kube.client import Request
from syncline.kube.objects import Obj, ResourceInfo, dig
from syncline.kube.transport.kubeconfig import ClusterAccess

if TYPE_CHECKING:
    from syncline.base.secret import Secret

WAIT_S, LOOK_S = 30.0, 0.2
"""Seconds to wait for the signer, which usually responds within one, and between two checks."""
MAX_DAYS = 3650
ATTEMPTS = 5


@click.command("kubeconfig")
@click.argument("name", required=False)
@click.option("--server", default="", help="URL at which the machine reaches the API server [default: yours].")
@click.option("--tls-server-name", default="", help="Name in the server's certificate, if not that of the URL.")
@click.option(
    "--days", default=365, show_default=True, type=click.IntRange(1, MAX_DAYS), help="The certificate's life."
)
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it here, mode 0600.")
@click.option(
    "--keep",
    type=click.IntRange(0, MAX_DAYS),
    default=None,
    help="With -o: leave the file as it is if it is for this node and that server, and valid for so many days more.",
)
@click.option("--dry-run", is_flag=True, help="With -o: say whether it would be written; ask for nothing.")
@click.option("--json", "as_json", is_flag=True, help="With -o: print file, node, server and `written` as JSON.")
@click.option("--rights", is_flag=True, help="Print the objects that give agents their rights, and do nothing.")
@connection_options
def node_kubeconfig(
    name: str | None,
    server: str,
    tls_server_name: str,
    days: int,
    out: Path | None,
    keep: int | None,
    dry_run: bool,
    as_json: bool,
    rights: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Make a kubeconfig for the node agent of NAME.

    A certificate for the user system:node:NAME is asked for, approved with your rights, and signed by the cluster. The
    roles and the admission policy by which nodes write their own objects alone are made where they are missing.

    \b
    Examples:  syncline node kubeconfig edge-1 -o edge-1.kubeconfig
               syncline node kubeconfig edge-1 -o edge-1.kubeconfig --keep 30
               syncline node kubeconfig --rights > rights.yaml
    """
    from syncline.assembly.embedded.install import ensure_objects
    from syncline.assembly.endpoints.private import write_private
    from syncline.hosts.noderights import node_rights
    from syncline.kube.certificates import client_key

    if rights:
        print_documents({"apiVersion": "v1", "kind": "List", "items": node_rights()}, "yaml")
        return
    if not name:
        raise CommandFailed("which node? give its NAME, as `kubectl get nodes` shows it", USAGE)
    if out is None and (dry_run or as_json or keep is not None):
        raise CommandFailed("--keep, --dry-run and --json are for a file: give -o FILE", USAGE)
    with Connection(kubeconfig, context) as link:
        server_url = server or link.server

        def say(text: str, *, written: bool) -> None:
            found = {"file": str(out), "node": name, "server": server_url, "written": written, "said": text}
            print(json.dumps(found) if as_json else f"{out}: {text}")

        if out is not None and keep is not None and _serves(out, name, server_url, keep, link.now()):
            say(f"kept, as it is valid for more than {keep} days", written=False)
            return
        if dry_run:
            say(f"would be written for system:node:{name} at {server_url}", written=True)
            return
        try:
            link.run(ensure_objects(node_rights()))
        except (CommandFailed, LookupError) as error:
            raise CommandFailed(f"the rights of node agents cannot be made: {error}") from error
        key = client_key()
        certificate = _certificate(link, name, key, timedelta(days=days))
        text = _kubeconfig(link.access, server, tls_server_name, name, certificate, key)
    if out is None:
        print(text, end="")
        return
    write_private(out, text)
    say(f"system:node:{name} at {server_url}, for {days} days", written=True)


def _serves(file: Path, node: str, server: str, days: int, now: datetime) -> bool:
    """Return whether the file is a kubeconfig for this node and server that is valid for so many days more."""
    from syncline.hosts.noderenewal import node_of_certificate
    from syncline.kube.certificates import CertificateError, validity_of
    from syncline.kube.transport.kubeconfig import KubeconfigError, load_kubeconfig

    if not file.is_file():
        return False
    try:
        access = load_kubeconfig(file)
        ends = validity_of(access.certificate_pem).ends
        return (
            node_of_certificate(access.certificate_pem) == node
            and access.server.rstrip("/") == server.rstrip("/")
            and ends - now > timedelta(days=days)
        )
    except (KubeconfigError, CertificateError, OSError, ValueError):
        return False


def _certificate(link: Connection, node: str, key: Secret, lifetime: timedelta) -> str:
    from syncline.hosts.noderights import certificate_request
    from syncline.kube.certificates import CSR, approved

    kind = link.resource(CSR)
    name = f"syncline-node-agent-{Entropy().uid()[:8]}"
    made = link.ask(client.create(kind, certificate_request(node, key, name, lifetime), field_manager="syncline"))
    for _ in range(ATTEMPTS):
        if dig(made, "status", "conditions"):
            break
        answer = link.send(
            Request(
                "PUT",
                f"{kind.path()}/{name}/approval",
                body=approved(made, "NodeAgent", "asked for by an administrator"),
            )
        )
        if answer.status != 409:
            link.check(answer)
            break
        made = link.ask(client.get(kind, "", name))  # the cluster may approve it automatically, as for a kubelet
    return _signed(link, kind, name)


def _signed(link: Connection, kind: ResourceInfo, name: str) -> str:
    from syncline.kube.certificates import issued_certificate

    waited = 0.0
    while waited < WAIT_S:
        found: Obj = link.ask(client.get(kind, "", name))
        pem, refusal = issued_certificate(found)
        if refusal:
            raise CommandFailed(f"CertificateSigningRequest {name}: {refusal}")
        if pem:
            return pem
        time.sleep(LOOK_S)
        waited += LOOK_S
    raise CommandFailed(
        f"CertificateSigningRequest {name} was not signed within {WAIT_S:g} s; does kube-controller-manager run with "
        "--cluster-signing-cert-file?"
    )


def _kubeconfig(
    access: ClusterAccess, server: str, tls_server_name: str, node: str, certificate: str, key: Secret
) -> str:
    from syncline.cluster.access.pki import KeyPair, kubeconfig_for

    made = kubeconfig_for(
        server=server or access.server,
        ca_pem=access.ca_pem,
        client=KeyPair(certificate, key),
        name=f"system:node:{node}",
    )
    if tls_server_name or access.tls_server_name:
        made["clusters"][0]["cluster"]["tls-server-name"] = tls_server_name or access.tls_server_name
    return json.dumps(made, indent=1) + "\n"
