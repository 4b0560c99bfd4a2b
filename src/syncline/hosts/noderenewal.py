"""Renews the client certificate of a node agent before it expires, as a kubelet does. Use :func:`keep_certificate`.

Runs beside the agent (``hosts/nodeagent.py``). The current certificate authenticates the request; clusters approve it
automatically (``selfnodeclient``). The kubeconfig file is replaced atomically, and the connection uses it at once.
Source: Kubernetes ``client-go/util/certificate``: at 70 to 90 % of the certificate's life.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from syncline.assembly.ports import HttpPort
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.hosts.issuing import RenewalError, held_by, issued
from syncline.hosts.noderights import NODE_PREFIX, certificate_request
from syncline.kube.certificates import client_key, identity_of, validity_of
from syncline.kube.errors import ApiError
from syncline.kube.transport.kubeconfig import ClusterAccess

log = logging.getLogger("syncline.assembly")

RENEW_AT = 0.8
"""Share of the certificate's lifetime after which it is renewed."""
LOOK_EVERY_S = 3600.0
SIGNED_WITHIN_S = 60.0


def node_of_certificate(pem: str) -> str:
    """Return the node name of a certificate; empty if it is not a node's."""
    name = identity_of(pem).user if pem else ""
    return name.removeprefix(NODE_PREFIX) if name.startswith(NODE_PREFIX) else ""


def renewal_due(pem: str, now: datetime) -> bool:
    return now >= validity_of(pem).left(1 - RENEW_AT)


async def keep_certificate(port: HttpPort, access: ClusterAccess, kubeconfig: Path, clock: Clock) -> None:
    """Renew the certificate whenever it is due, until cancelled. A failure is logged and retried after an hour."""
    node = node_of_certificate(access.certificate_pem)
    while node:
        if renewal_due(access.certificate_pem, clock.now()):
            try:
                access = await renew(port, access, kubeconfig, node)
                port.use(access)
                log.info("%s: a new certificate of %s%s", kubeconfig, NODE_PREFIX, node)
            except (RenewalError, ApiError, OSError) as error:
                log.error("%s: the certificate ends soon and is not renewed: %s", kubeconfig, error)
        await asyncio.sleep(LOOK_EVERY_S)


async def renew(port: HttpPort, access: ClusterAccess, kubeconfig: Path, node: str) -> ClusterAccess:
    """Request a certificate of equal lifetime, write it to the file. Raises RenewalError, ApiError and OSError."""
    life = validity_of(access.certificate_pem).life
    held = held_by(kubeconfig, access.context)
    key = client_key()
    name = f"syncline-node-agent-{Entropy().uid()[:8]}"
    request = certificate_request(node, key, name, life)
    pem = await issued(port, request, within_s=SIGNED_WITHIN_S, manager="syncline-node-agent")
    await asyncio.to_thread(held.replace, pem, key)
    return replace(access, certificate_pem=pem, key_pem=key)
