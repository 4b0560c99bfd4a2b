"""From a request to a certificate, and from there into a kubeconfig file; for agents of nodes and of clusters."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass
from pathlib import Path

from syncline.assembly.endpoints.private import write_private
from syncline.base.secret import Secret
from syncline.control.manager import Port, drive
from syncline.kube import client
from syncline.kube.certificates import CSR, issued_certificate
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, name_of
from syncline.kube.yaml.loading import load

POLL_S = 1.0


class RenewalError(Exception):
    """There is no new certificate, and the current one is unchanged; the message says why."""


@dataclass(frozen=True, slots=True)
class Held:
    """A user of a kubeconfig file, whose certificate can be replaced."""

    file: Path
    document: Obj
    user: Obj
    """A part of ``document``."""

    def replace(self, pem: str, key: Secret) -> None:
        """Write the file with another certificate, in it; atomically, mode 0600. Blocks. Raises OSError."""
        self.user.pop("client-certificate", None)
        self.user.pop("client-key", None)
        self.user["client-certificate-data"] = base64.b64encode(pem.encode()).decode()
        self.user["client-key-data"] = base64.b64encode(key.reveal().encode()).decode()
        write_private(self.file, json.dumps(self.document, indent=1) + "\n")


def held_by(kubeconfig: Path, context: str) -> Held:
    """Return the user of a context of a file. Raises RenewalError if there is none, OSError and YamlError."""
    document: Obj = load(kubeconfig.read_bytes(), file=str(kubeconfig)) or {}
    named = {str(one.get("name")): one.get("context") or {} for one in document.get("contexts") or ()}
    name = str(named.get(context, {}).get("user", ""))
    for one in document.get("users") or ():
        if one.get("name") == name and isinstance(one.get("user"), dict):
            return Held(kubeconfig, document, one["user"])
    raise RenewalError(f'there is no user "{name}" in it')


async def issued(port: Port, request: Obj, *, within_s: float, manager: str) -> str:
    """Send a certificate request and return what was signed. Raises RenewalError and ApiError."""
    kind = Mapper(await drive(discover(), port)).find(CSR)
    if kind is None:
        raise RenewalError(f"the cluster serves no {CSR.kind}")
    made: Obj = (await port.send(client.create(kind, request, field_manager=manager))).or_raise()
    name, waited = name_of(made), 0.0
    while waited < within_s:
        pem, refusal = issued_certificate((await port.send(client.get(kind, "", name))).or_raise())
        if refusal:
            raise RenewalError(f"{CSR.kind} {name}: {refusal}")
        if pem:
            return pem
        await asyncio.sleep(POLL_S)
        waited += POLL_S
    raise RenewalError(f"{CSR.kind} {name} was neither approved nor signed; `kubectl certificate approve {name}`")
