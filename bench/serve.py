"""Requests per second of the embedded server against a bare aiohttp handler, with and without TLS.

Run: ``python bench/serve.py [seconds]``. Server and client share the process and its core, so read the ratio.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from aiohttp import ClientSession, TCPConnector, web

from syncline.base.clock import SystemClock
from syncline.cluster.authn import Authenticator
from syncline.cluster.authz import Authorizer
from syncline.cluster.pki import create_keys
from syncline.cluster.serve import ApiServer, Durability
from syncline.cluster.store import Store
from syncline.cluster.users import ADMIN, UserInfo
from syncline.kube.client import Request, Response
from syncline.kube.http import tls_context
from syncline.kube.kubeconfig import ClusterAccess

BODY = b'{"kind":"ConfigMap","data":"' + b"x" * 4000 + b'"}'
CONNECTIONS = 32


class Fixed:
    def handle(self, request: Request, user: UserInfo) -> Response:
        return Response.encoded(200, BODY)


async def rate(url: str, seconds: float, ssl: Any) -> float:
    """Answers per second over keep-alive connections."""
    done = 0
    stop = time.perf_counter() + seconds
    headers = {"Authorization": "Bearer admin"}
    async with ClientSession(connector=TCPConnector(limit=CONNECTIONS, ssl=ssl)) as session:

        async def ask() -> None:
            nonlocal done
            while time.perf_counter() < stop:
                async with session.get(url, headers=headers) as answer:
                    assert answer.status == 200
                    await answer.read()
                done += 1

        await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
    return done / seconds


async def main(seconds: float) -> None:
    async def bare(request: web.BaseRequest) -> web.Response:
        return web.Response(body=BODY, content_type="application/json")

    listener = await asyncio.get_running_loop().create_server(web.Server(bare, access_log=None), "127.0.0.1", 0)
    bare_rate = await rate(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/x", seconds, True)
    print(f"bare aiohttp handler  {bare_rate:8.0f}/s")
    store, keys = Store(), create_keys(SystemClock().now())
    authenticator = Authenticator(authorize=Authorizer(store).decide, fixed_tokens={"admin": ADMIN})
    for tls in (False, True):
        server = ApiServer(Fixed(), authenticator, SystemClock(), Durability(store))
        certificate = keys.server if tls else None
        await server.start("127.0.0.1", 0, certificate=certificate, client_ca_pem=keys.ca_pem if tls else "")
        url = f"http{'s' if tls else ''}://127.0.0.1:{server.port}"
        context = tls_context(ClusterAccess(url, keys.ca_pem)) or True
        served = await rate(url + "/api/v1/namespaces/demo/configmaps/x", seconds, context)
        print(f"served, TLS {'on ' if tls else 'off'}       {served:8.0f}/s  {served / bare_rate:.0%} of bare")
        await server.stop()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0))
