"""The config server: joining machines get their Ignition config from it over HTTP.

``syncline up --machine-config --config-server-listen`` starts it beside the machine-config controllers, whose cache it
reads. It uses TLS with the API server's certificate; without TLS it serves plain HTTP on loopback only. Like
upstream's, it has no authentication: any client that reaches it gets the pools' configs and the credential with which
machines request a certificate.
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

log = logging.getLogger("syncline.assembly")

ACCOUNT, TOKEN = "node-bootstrapper", "node-bootstrapper-token"
"""Service account of machines without a certificate, and the Secret of its token."""
ROLE = "system:node-bootstrapper"
MAX_AT_ONCE = 4
"""Configs that are rendered at once."""
MAX_KEPT = 16
"""Cached configs: a few pools in a few versions, of a few megabytes each at most."""
WAIT_S = 30.0
"""Seconds to wait for a slot; after that the client is asked to retry, as Ignition does anyway."""
MAX_REPORTED = 100
"""Limit of distinct refusals that are logged, once each, so that a client cannot fill the log."""
SECRETS = ResourceInfo("", "v1", "Secret", "secrets", namespaced=True)


def config_server_objects(namespace: str) -> list[Obj]:
    """Return the account whose token joining machines get, with its only right: to request a certificate."""
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
    """Return the kubeconfig of machines that join ``server``; empty while the token does not exist yet."""
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
    """Serve until the context ends; yields the port. ``kubeconfig``: returns that of the API server at an address
    (empty if the ControllerConfig has none); ``names``: further host names of this address. Raises ListenError."""
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
    """Look the request up in the event loop, where the cache is written."""
    if not asked.target.startswith("/config"):
        return looked_up(asked, World({}, {}, None, ""))
    before = world_of(cache, "")
    return looked_up(asked, replace(before, kubeconfig=kubeconfig(address_in_cluster(before))))


class _Makes:
    """Renders configs in threads, a few at a time, and caches the last ones, as hundreds of machines that join together
    need the same one."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._kept: dict[tuple[str | bool, ...], Answer] = {}

    async def answer(self, asked: Asked) -> Answer:
        """Return the config. Raises TimeoutError if no slot was free in time."""
        key = asked.key
        known = self._kept.get(key) if key is not None else None
        if known is not None:
            return known
        async with asyncio.timeout(WAIT_S):
            await self._slots.acquire()
        try:
            known = self._kept.get(key) if key is not None else None  # rendered while this request waited
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
