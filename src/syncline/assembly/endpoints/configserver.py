"""The config server's face: machines that join ask it for their Ignition config, over HTTP.

``syncline up --machine-config --config-server-listen`` opens it beside the machine-config controllers, whose cache it
reads. It speaks TLS with the API server's certificate; a cluster without TLS is served in plain HTTP and on the
loopback only. As upstream's, it asks no one who they are: a client that reaches it gets the pools' configs and the
credential with which machines ask for a certificate.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aiohttp import web

from syncline.assembly.endpoints.listening import ListenError, begun
from syncline.base.browserguard import BrowserGuard, is_loopback
from syncline.base.secret import Secret
from syncline.cluster.access.pki import kubeconfig_for
from syncline.cluster.serving.guarding import guarded, plainly
from syncline.control.cache import Snapshot
from syncline.kube import client
from syncline.kube.client import Request as ApiRequest
from syncline.kube.client import Response
from syncline.kube.objects import Obj, ResourceInfo, dig
from syncline.machineconfig.server.answering import Answer, Asked, Request, looked_up, made
from syncline.machineconfig.server.world import World, address_in_cluster, world_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["config_server", "config_server_objects", "joining_kubeconfig"]

log = logging.getLogger("syncline.assembly")

ACCOUNT, TOKEN = "node-bootstrapper", "node-bootstrapper-token"
"""Service account of machines that have no certificate yet, and the Secret of its token."""
ROLE = "system:node-bootstrapper"
MAX_AT_ONCE = 4
"""Configs that are made at the same moment."""
MAX_KEPT = 16
"""Configs that are kept: those of a few pools in a few versions, of a few megabytes each at most."""
WAIT_S = 30.0
"""For one's turn; who waited longer is asked to come again, as Ignition does by itself."""
MAX_REPORTED = 100
"""Reasons for which a machine got no config that are warned of, once each: the caller for nonsense fills no log."""
SECRETS = ResourceInfo("", "v1", "Secret", "secrets", namespaced=True)


def config_server_objects(namespace: str) -> list[Obj]:
    """The account whose token machines that join get, and its one right: to ask for a certificate."""
    rbac = "rbac.authorization.k8s.io"
    verbs = ["create", "get", "list", "watch"]
    rule = {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": verbs}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": ROLE}, "rules": [rule]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "system-bootstrap-node-bootstrapper"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": TOKEN,
                "namespace": namespace,
                "annotations": {"kubernetes.io/service-account.name": ACCOUNT},
            },
            "type": "kubernetes.io/service-account-token",
        },
    ]


def joining_kubeconfig(send: Callable[[ApiRequest], Response], namespace: str, server: str) -> str:
    """The kubeconfig of machines that join ``server``; empty while the token is not made yet."""
    answer = send(client.get(SECRETS, namespace, TOKEN))
    data: Mapping[str, str] = dig(answer.or_raise(), "data", default={}) if answer.status == 200 else {}
    try:
        token = base64.b64decode(data.get("token", "")).decode()
        authority = base64.b64decode(data.get("ca.crt", "")).decode()
    except (binascii.Error, ValueError):
        return ""
    if not token:
        return ""
    return json.dumps(kubeconfig_for(server=server, ca_pem=authority, token=Secret(token), name="kubelet")) + "\n"


@contextlib.asynccontextmanager
async def config_server(
    host: str,
    port: int,
    cache: Snapshot,
    kubeconfig: Callable[[str], str],
    tls: ssl.SSLContext | None,
    names: Sequence[str] = (),
) -> AsyncIterator[int]:
    """Serve until the context ends; yields the port. ``kubeconfig``: of the API server at an address, which is empty
    where the ControllerConfig names none; ``names``: what callers may call this address beside its own. Raises
    ListenError."""
    if tls is None and host != "localhost" and not is_loopback(host):
        raise ListenError(
            f"cannot serve machine configs on {host}:{port}: they hold credentials, and the cluster has no TLS; "
            "listen on 127.0.0.1"
        )
    makes, report = _Makes(), set[str]()

    async def handle(request: web.BaseRequest) -> web.Response:
        asked = Request(request.method, request.rel_url.raw_path_qs, request.headers.get("Accept", ""))
        found = _looked_up(asked, cache, kubeconfig)
        try:
            answer = await makes.answer(found) if isinstance(found, Asked) else found
        except TimeoutError:
            return web.Response(status=503, headers={"Retry-After": "5"})
        if answer.why:
            new = answer.status >= 500 and answer.why not in report and len(report) < MAX_REPORTED
            report.update({answer.why} if new else ())
            log.log(logging.WARNING if new else logging.INFO, "config server: %s: %.1000s", answer.status, answer.why)
        return _response(answer)

    kept = guarded(handle, BrowserGuard(host, tuple(names)), plainly)
    runner = web.ServerRunner(web.Server(kept, access_log=None), handle_signals=False, shutdown_timeout=1.0)
    async with begun(runner, host, port, tls) as taken:
        yield taken


def _looked_up(asked: Request, cache: Snapshot, kubeconfig: Callable[[str], str]) -> Answer | Asked:
    """The world is read in the event loop, where the cache is written."""
    if not asked.target.startswith("/config"):
        return looked_up(asked, World({}, {}, None, ""))
    before = world_of(cache, "")
    return looked_up(asked, replace(before, kubeconfig=kubeconfig(address_in_cluster(before))))


class _Makes:
    """Configs are made beside the event loop, a few at a time; the last ones are kept, since hundreds of machines that
    join together ask for the same one."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._kept: dict[tuple[str | bool, ...], Answer] = {}

    async def answer(self, asked: Asked) -> Answer:
        """Raises TimeoutError where it was not its turn in time."""
        key = asked.key
        known = self._kept.get(key) if key is not None else None
        if known is not None:
            return known
        async with asyncio.timeout(WAIT_S):
            await self._slots.acquire()
        try:
            known = self._kept.get(key) if key is not None else None  # made while this one waited
            answer = known if known is not None else await asyncio.to_thread(made, asked)
        finally:
            self._slots.release()
        if key is not None and answer.status == 200:
            self._kept[key] = answer
            if len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]
        return answer


def _response(answer: Answer) -> web.Response:
    headers = {"Location": answer.location} if answer.location else {}
    if answer.content_type:
        headers["Content-Type"] = answer.content_type
    response = web.Response(status=answer.status, body=answer.body.encode(), headers=headers)
    if not answer.content_type:
        response.headers.pop("Content-Type", None)
    return response
