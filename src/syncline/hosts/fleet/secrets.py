"""Keeps an agent's credentials in Secrets of its own cluster, by upstream's names and keys, for agents in pods.

``bootstrap-hub-kubeconfig`` has the kubeconfig of the line, ``hub-kubeconfig-secret`` the agent's identity; both in the
namespace ``open-cluster-management-agent``. The agent works on its directory: Secrets are read before it starts and
written after each change. Rules: ``pkg/registration/register/secret_controller.go`` of upstream.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from syncline.assembly.ports import HttpPort
from syncline.base.entropy import Entropy
from syncline.control.manager import Port
from syncline.hosts.fleet.places import Joining, Place, PlaceError, place_of
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.objects import Obj, ResourceInfo, dig
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.kube.yaml.loading import YamlError, load

NAMESPACE: Final = "open-cluster-management-agent"
BOOTSTRAP, HUB = "bootstrap-hub-kubeconfig", "hub-kubeconfig-secret"
KUBECONFIG, CERTIFICATE, KEY = "kubeconfig", "tls.crt", "tls.key"
CLUSTER, AGENT = "cluster-name", "agent-name"
ID_LENGTH: Final = 5
SECRET: Final = "secret"
"""Value of ``keep`` in what was joined."""
SECRETS: Final = ResourceInfo("", "v1", "Secret", "secrets", namespaced=True)
NAMESPACES: Final = ResourceInfo("", "v1", "Namespace", "namespaces", namespaced=False)


def pushing(place: Place, joining: Joining, spoke: ClusterAccess) -> Callable[[], Awaitable[None]] | None:
    """Return what writes the Secrets of an agent; None: it has none."""
    if joining.keep != SECRET:
        return None

    async def push() -> None:
        port = HttpPort(spoke)
        try:
            await SecretKeep(port).push(place, joining)
        finally:
            await port.close()

    return push


@dataclass(frozen=True, slots=True)
class SecretKeep:
    """The Secrets of one agent. ``port``: to its own cluster."""

    port: Port
    namespace: str = NAMESPACE

    async def pull(self, home: Path, name: str = "") -> tuple[Place, Joining]:
        """Write what the Secrets have into a directory below ``home``. ``name``: of the cluster, if no Secret says it.
        Raises PlaceError and ApiError."""
        bootstrap, hub = await self._read(BOOTSTRAP), await self._read(HUB)
        kubeconfig = bootstrap.get(KUBECONFIG) or hub.get(KUBECONFIG) or ""
        cluster = name or hub.get(CLUSTER, "")
        if not kubeconfig:
            raise PlaceError(f"Secret {self.namespace}/{BOOTSTRAP} has no key {KUBECONFIG}: where is the hub?")
        if not cluster:
            raise PlaceError(f"Secret {self.namespace}/{HUB} has no key {CLUSTER}; name the cluster with --name")
        place = place_of(home, _server(kubeconfig, BOOTSTRAP), cluster)
        known = place.joining()
        agent = hub.get(AGENT) or (known.agent if known is not None else Entropy().suffix(ID_LENGTH))
        own = cluster == hub.get(CLUSTER)
        joining = Joining(_server(kubeconfig, BOOTSTRAP), cluster, agent, keep=SECRET, accepted="yes" if own else "")
        place.keep_joining(joining)
        if bootstrap.get(KUBECONFIG):
            place.keep_text("bootstrap.kubeconfig", bootstrap[KUBECONFIG])
        if own and all(hub.get(key) for key in (KUBECONFIG, CERTIFICATE, KEY)):
            place.keep_text("hub.kubeconfig", _with_certificate(hub[KUBECONFIG], hub[CERTIFICATE], hub[KEY]))
        return place, joining

    async def push(self, place: Place, joining: Joining) -> None:
        """Write the directory's credentials into the Secrets. Raises PlaceError and ApiError."""
        await self._namespace()
        if place.bootstrap_file.exists():
            await self._write(BOOTSTRAP, {KUBECONFIG: place.bootstrap_file.read_text()})
        access = place.hub()
        fields = {CLUSTER: joining.cluster, AGENT: joining.agent}
        if access is not None and access.key_pem is not None:
            fields |= {CERTIFICATE: access.certificate_pem, KEY: access.key_pem.reveal()}
            fields[KUBECONFIG] = json.dumps(beside_its_files(access), indent=1)
        await self._write(HUB, fields)

    async def remove(self) -> None:
        """Delete both Secrets. Raises ApiError."""
        for name in (HUB, BOOTSTRAP):
            answer = await self.port.send(client.delete(SECRETS, self.namespace, name))
            if answer.status != 404:
                answer.or_raise()

    async def _namespace(self) -> None:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        if (await self.port.send(client.get(NAMESPACES, "", self.namespace))).status == 404:
            answer = await self.port.send(client.create(NAMESPACES, made))
            if answer.status != 409:
                answer.or_raise()

    async def _read(self, name: str) -> dict[str, str]:
        answer = await self.port.send(client.get(SECRETS, self.namespace, name))
        if answer.status == 404:
            return {}
        found = answer.or_raise()
        try:
            return {key: base64.b64decode(text).decode() for key, text in (dig(found, "data") or {}).items()}
        except (binascii.Error, UnicodeDecodeError) as error:
            raise PlaceError(f"Secret {self.namespace}/{name} has data that is no text in base64") from error

    async def _write(self, name: str, fields: dict[str, str]) -> None:
        data = {key: base64.b64encode(text.encode()).decode() for key, text in fields.items()}
        made: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": self.namespace}}
        answer = await self.port.send(
            client.patch(
                SECRETS, self.namespace, name, PatchType.MERGE, {"data": data}, field_manager="registration-agent"
            )
        )
        if answer.status == 404:
            created = {**made, "type": "Opaque", "data": data}
            answer = await self.port.send(client.create(SECRETS, created, field_manager="registration-agent"))
        answer.or_raise()


def _read_kubeconfig(text: str, name: str) -> Obj:
    try:
        found = load(text, file=name)
    except YamlError as error:
        raise PlaceError(f"Secret {name}: its kubeconfig is no YAML: {error}") from error
    if not isinstance(found, dict):
        raise PlaceError(f"Secret {name}: its kubeconfig is no object")
    return found


def _server(kubeconfig: str, name: str) -> str:
    """Return the server of the current context."""
    document = _read_kubeconfig(kubeconfig, name)
    named = {str(one.get("name")): one.get("context") or {} for one in document.get("contexts") or ()}
    cluster = named.get(str(document.get("current-context")), {}).get("cluster")
    for one in document.get("clusters") or ():
        server = dig(one, "cluster", "server")
        if one.get("name") == cluster and isinstance(server, str):
            return server.rstrip("/")
    raise PlaceError(f"Secret {name}: the current context of its kubeconfig names no server")


def _with_certificate(kubeconfig: str, certificate: str, key: str) -> str:
    """Return a kubeconfig that holds what it referred to as files beside it."""
    document = _read_kubeconfig(kubeconfig, HUB)
    for one in document.get("users") or ():
        user: Obj = one.get("user") or {}
        if user.pop("client-certificate", None) is not None or "client-certificate-data" in user:
            user.pop("client-key", None)
            user["client-certificate-data"] = base64.b64encode(certificate.encode()).decode()
            user["client-key-data"] = base64.b64encode(key.encode()).decode()
    return json.dumps(document, indent=1) + "\n"


def beside_its_files(access: ClusterAccess) -> Obj:
    """Return the kubeconfig that upstream's agents read, beside ``tls.crt`` and ``tls.key``."""
    cluster: Obj = {"server": access.server}
    if access.ca_pem:
        cluster["certificate-authority-data"] = base64.b64encode(access.ca_pem.encode()).decode()
    for field, value in (("proxy-url", access.proxy_url), ("tls-server-name", access.tls_server_name)):
        if value:
            cluster[field] = value
    context = {"cluster": "hub", "user": "default-auth", "namespace": "configuration"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "hub", "cluster": cluster}],
        "users": [{"name": "default-auth", "user": {"client-certificate": CERTIFICATE, "client-key": KEY}}],
        "contexts": [{"name": "default-context", "context": context}],
        "current-context": "default-context",
    }
