"""An installation with accounts in a process of ``syncline up``, for tests that are its gRPC clients."""

from __future__ import annotations

import base64
import contextlib
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.cli.test_stopping import Served

from syncline.kube.client import PatchType, Request
from syncline.kube.objects import Obj
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig
from syncline.web.wire.api import methods, read, writer

NAMESPACE = "/api/v1/namespaces/argocd"
DENIED, INVALID = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT
MISSING, UNKNOWN = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNKNOWN


@dataclass
class Server:
    client: BlockingClient
    channel: grpc.Channel
    password: str
    token: str = ""
    service: str = "account.Account"
    """That is asked unless a call names another."""

    def ask(self, name: str, request: Obj | None = None, token: str = "", service: str = "") -> Any:
        method = methods()[f"/{service or self.service}Service/{name}"]
        raw = writer().write(method.request, request or {})
        metadata = (("token", token or self.token),)
        return read(method.response, self.channel.unary_unary(method.path)(raw, metadata=metadata, timeout=60))

    def refused(self, name: str, request: Obj, token: str = "") -> tuple[grpc.StatusCode, str]:
        with pytest.raises(grpc.RpcError) as found:
            self.ask(name, request, token)
        return found.value.code(), found.value.details()

    def login(self, name: str, password: str = "") -> str:
        asked = {"username": name, "password": password or self.password}
        return str(self.ask("Create", asked, service="session.Session")["token"])

    def user(self, token: str) -> str:
        return str(self.ask("GetUserInfo", token=token, service="session.Session").get("username", ""))

    def secret(self) -> dict[str, str]:
        found: Obj = self.client.send(Request("GET", f"{NAMESPACE}/secrets/argocd-secret")).or_raise()
        return {key: base64.b64decode(text).decode() for key, text in found["data"].items()}

    def keep(self, name: str, data: Obj) -> None:
        path, body = f"{NAMESPACE}/configmaps", {"data": data}
        meta = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        if not self.client.send(Request("POST", path, body=meta | body)).ok:
            headers = {"content-type": PatchType.MERGE.value}
            self.client.send(Request("PATCH", f"{path}/{name}", headers=headers, body=body)).or_raise()


@contextlib.contextmanager
def installation(folder: Path, rules: str, service: str = "account.Account") -> Iterator[Server]:
    """Yield a server that is asked for ``service``; the accounts ``guest``, ``keeper`` and ``bot`` have these rules."""
    kubeconfig = folder / "kubeconfig"
    options = ("--memory", "--listen", "127.0.0.1:0", "--server-listen", "127.0.0.1:0", "--server-insecure")
    up = Served(folder, "up", *options, "--kubeconfig-out", str(kubeconfig), ready="argocd-initial-admin-secret")
    try:
        found = re.search(r"API: +http://127\.0\.0\.1:(\d+)", up.said)
        assert found, up.said
        client = BlockingClient(load_kubeconfig(kubeconfig))
        secret = client.send(Request("GET", f"{NAMESPACE}/secrets/argocd-initial-admin-secret")).or_raise()
        password = base64.b64decode(secret["data"]["password"]).decode()
        with grpc.insecure_channel(f"127.0.0.1:{found[1]}") as channel:
            made = Server(client, channel, password, service=service)
            made.token = made.login("admin")
            _prepare(made, rules)
            yield made
    finally:
        up.stop(signal.SIGTERM)


def _prepare(server: Server, rules: str) -> None:
    """Make the accounts ``guest`` and ``keeper`` with the password of the administrator, and wait for both."""
    server.keep("argocd-rbac-cm", {"policy.csv": rules})
    hashed = base64.b64encode(server.secret()["admin.password"].encode()).decode()
    data = {f"accounts.{name}.password": hashed for name in ("guest", "keeper")}
    headers = {"content-type": PatchType.MERGE.value}
    server.client.send(
        Request("PATCH", f"{NAMESPACE}/secrets/argocd-secret", headers=headers, body={"data": data})
    ).or_raise()
    server.keep("argocd-cm", {"accounts.guest": "login, apiKey", "accounts.keeper": "login", "accounts.bot": "apiKey"})
    for _ in range(1000):
        if len(server.ask("ListAccounts", service="account.Account")["items"]) == 4:
            return
    raise AssertionError("the server did not see the accounts")
