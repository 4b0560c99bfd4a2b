"""Renews the client certificate of a node agent before it expires, as a kubelet does. Use :func:`keep_certificate`.

Runs beside the agent (``hosts/nodeagent.py``). The current certificate authenticates the request; clusters approve it
automatically (``selfnodeclient``). The kubeconfig file is replaced atomically, and the connection uses it at once.
Source: Kubernetes ``client-go/util/certificate``: at 70 to 90 % of the certificate's life.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509

from syncline.assembly.endpoints.private import write_private
from syncline.assembly.ports import HttpPort
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.base.secret import Secret
from syncline.control.manager import drive
from syncline.hosts.noderights import CSR, NODE_PREFIX, certificate_request, client_key, issued_certificate
from syncline.kube import client
from syncline.kube.errors import ApiError
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.kube.yaml.loading import load

log = logging.getLogger("syncline.assembly")

RENEW_AT = 0.8
"""Share of the certificate's lifetime after which it is renewed."""
LOOK_EVERY_S = 3600.0
SIGNED_WITHIN_S, POLL_S = 60.0, 1.0


class RenewalError(Exception):
    """The certificate was not renewed, and the current one is unchanged; the message says why."""


def node_of_certificate(pem: str) -> str:
    """Return the node name of a certificate; empty if it is not a node's."""
    if not pem:
        return ""
    names = x509.load_pem_x509_certificate(pem.encode()).subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    name = str(names[-1].value) if names else ""
    return name.removeprefix(NODE_PREFIX) if name.startswith(NODE_PREFIX) else ""


def renewal_due(pem: str, now: datetime) -> bool:
    found = x509.load_pem_x509_certificate(pem.encode())
    life = found.not_valid_after_utc - found.not_valid_before_utc
    return now >= found.not_valid_before_utc + life * RENEW_AT


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
    old = x509.load_pem_x509_certificate(access.certificate_pem.encode())
    life = old.not_valid_after_utc - old.not_valid_before_utc
    held = _user_of(kubeconfig, access.context)
    key = client_key()
    pem = await _signed(port, node, key, life)
    document, user = held
    user.pop("client-certificate", None)
    user.pop("client-key", None)
    user["client-certificate-data"] = base64.b64encode(pem.encode()).decode()
    user["client-key-data"] = base64.b64encode(key.reveal().encode()).decode()
    await asyncio.to_thread(write_private, kubeconfig, json.dumps(document, indent=1) + "\n")
    return replace(access, certificate_pem=pem, key_pem=key)


def _user_of(kubeconfig: Path, context: str) -> tuple[Obj, Obj]:
    """Return the kubeconfig document and the user entry of a context in it."""
    document: Obj = load(kubeconfig.read_bytes(), file=str(kubeconfig)) or {}
    named = {str(one.get("name")): one.get("context") or {} for one in document.get("contexts") or ()}
    name = str(named.get(context, {}).get("user", ""))
    for one in document.get("users") or ():
        if one.get("name") == name and isinstance(one.get("user"), dict):
            return document, one["user"]
    raise RenewalError(f'there is no user "{name}" in it')


async def _signed(port: HttpPort, node: str, key: Secret, life: timedelta) -> str:
    kind = Mapper(await drive(discover(), port)).find(CSR)
    if kind is None:
        raise RenewalError(f"the cluster serves no {CSR.kind}")
    name = f"syncline-node-agent-{Entropy().uid()[:8]}"
    made = certificate_request(node, key, name, life)
    (await port.send(client.create(kind, made, field_manager="syncline-node-agent"))).or_raise()
    waited = 0.0
    while waited < SIGNED_WITHIN_S:
        pem, refusal = issued_certificate((await port.send(client.get(kind, "", name))).or_raise())
        if refusal:
            raise RenewalError(f"{CSR.kind} {name}: {refusal}")
        if pem:
            return pem
        await asyncio.sleep(POLL_S)
        waited += POLL_S
    raise RenewalError(f"{CSR.kind} {name} was neither approved nor signed; `kubectl certificate approve {name}`")
