"""AccountService over the port of ``syncline up``: accounts, passwords, tokens; and attempts at those of others."""

from __future__ import annotations

import base64
import json
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
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
RULES = "p, keeper, accounts, get, guest, allow\np, keeper, accounts, update, guest, allow"


@dataclass
class Server:
    client: BlockingClient
    channel: grpc.Channel
    password: str
    token: str = ""

    def ask(self, name: str, request: Obj | None = None, token: str = "", service: str = "account.Account") -> Any:
        method = methods()[f"/{service}Service/{name}"]
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("accounts")
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
            made = Server(client, channel, password)
            made.token = made.login("admin")
            _prepare(made)
            yield made
    finally:
        up.stop(signal.SIGTERM)


def _prepare(server: Server) -> None:
    """Make the accounts ``guest`` and ``keeper`` with the password of the administrator, and wait for both."""
    server.keep("argocd-rbac-cm", {"policy.csv": RULES})
    hashed = base64.b64encode(server.secret()["admin.password"].encode()).decode()
    data = {f"accounts.{name}.password": hashed for name in ("guest", "keeper")}
    headers = {"content-type": PatchType.MERGE.value}
    server.client.send(
        Request("PATCH", f"{NAMESPACE}/secrets/argocd-secret", headers=headers, body={"data": data})
    ).or_raise()
    server.keep("argocd-cm", {"accounts.guest": "login, apiKey", "accounts.keeper": "login", "accounts.bot": "apiKey"})
    for _ in range(1000):
        if len(server.ask("ListAccounts")["items"]) == 4:
            return
    raise AssertionError("the server did not see the accounts")


def test_accounts_are_listed_to_who_may_get_them_and_always_to_their_owner(server: Server) -> None:
    assert [one["name"] for one in server.ask("ListAccounts")["items"]] == ["admin", "bot", "guest", "keeper"]
    guest = server.login("guest")
    assert [one["name"] for one in server.ask("ListAccounts", token=guest)["items"]] == ["guest"]
    found = server.ask("GetAccount", {"name": "guest"}, guest)
    assert (found["enabled"], found["capabilities"]) == (True, ["login", "apiKey"])
    code, text = server.refused("GetAccount", {"name": "admin"}, guest)
    assert code is DENIED
    assert text.startswith(
        "permission denied to get account admin: rpc error: code = PermissionDenied desc = "
        "permission denied for account admin with action get: rpc error: code = PermissionDenied desc = "
        "permission denied: accounts, get, admin, sub: guest, iat: "
    )
    assert server.refused("GetAccount", {"name": "nope"}) == (
        MISSING,
        "failed to get account nope: rpc error: code = NotFound desc = account 'nope' does not exist",
    )


def test_a_token_works_until_it_is_deleted_and_is_kept_nowhere(server: Server) -> None:
    token = server.ask("CreateToken", {"name": "bot", "id": "ci", "expiresIn": 3600})["token"]
    assert server.user(token) == "bot"
    (shown,) = server.ask("GetAccount", {"name": "bot"})["tokens"]
    assert (shown["id"], int(shown["expiresAt"]) - int(shown["issuedAt"])) == ("ci", 3600)
    assert json.loads(server.secret()["accounts.bot.tokens"])[0]["id"] == "ci"
    assert token not in json.dumps(server.secret())
    code, text = server.refused("CreateToken", {"name": "bot", "id": "ci"})
    assert (code, text) == (
        UNKNOWN,
        "failed to update account with new token: account already has token with id 'ci'",
    )
    server.ask("DeleteToken", {"name": "bot", "id": "ci"})
    assert server.user(token) == ""
    with pytest.raises(grpc.RpcError) as ended:
        server.ask("ListAccounts", token=token)
    assert ended.value.details() == "invalid session: account bot does not have token with id ci"
    code, text = server.refused("DeleteToken", {"name": "bot", "id": "ci"})
    assert code is MISSING
    assert text.endswith("desc = token with id 'ci' does not exist")


@pytest.mark.parametrize("seconds", [-1, 2**62])
def test_a_token_lasts_no_impossible_time(server: Server, seconds: int) -> None:
    code, text = server.refused("CreateToken", {"name": "bot", "expiresIn": seconds})
    assert code is INVALID
    assert f"found {seconds} seconds" in text


def test_an_account_without_the_capability_gets_no_token(server: Server) -> None:
    code, text = server.refused("CreateToken", {"name": "keeper"})
    assert code is UNKNOWN
    assert text.endswith("account 'keeper' does not have apiKey capability")


def test_tokens_of_others_need_the_right_to_update_them(server: Server) -> None:
    guest, keeper = server.login("guest"), server.login("keeper")
    assert server.refused("CreateToken", {"name": "bot"}, guest)[0] is DENIED
    assert server.refused("DeleteToken", {"name": "bot", "id": "x"}, guest)[0] is DENIED
    assert server.user(server.ask("CreateToken", {"name": "guest"}, keeper)["token"]) == "guest"


def test_a_changed_password_ends_the_sessions_before_it(server: Server) -> None:
    before = server.login("guest")
    assert server.refused("UpdatePassword", {"currentPassword": "wrong", "newPassword": "longer-than-8"}, before) == (
        INVALID,
        "current password does not match",
    )
    asked = {"currentPassword": server.password, "newPassword": "short"}
    code, text = server.refused("UpdatePassword", asked, before)
    assert (code, text) == (UNKNOWN, "new password does not match the following expression: ^.{8,32}$")
    server.ask("UpdatePassword", asked | {"newPassword": "a-good-password"}, before)
    changed = server.secret()["accounts.guest.passwordMtime"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", changed)
    assert server.user(server.login("guest", "a-good-password")) == "guest"
    with pytest.raises(grpc.RpcError) as refused:
        server.login("guest")
    assert refused.value.details() == "Invalid username or password"


def test_the_password_of_another_needs_the_right_and_the_own_password(server: Server) -> None:
    keeper = server.login("keeper")
    asked = {"name": "admin", "currentPassword": server.password, "newPassword": "taken-over"}
    code, text = server.refused("UpdatePassword", asked, keeper)
    assert code is DENIED
    assert text.startswith(
        "permission denied: rpc error: code = PermissionDenied desc = permission denied: accounts, update, admin, "
    )
    assert server.refused("UpdatePassword", asked | {"name": "guest", "currentPassword": "wrong"}, keeper)[0] is INVALID
    server.ask("UpdatePassword", asked | {"name": "guest"}, keeper)
    assert server.user(server.login("guest", "taken-over")) == "guest"


def test_a_caller_learns_what_the_rules_permit_it(server: Server) -> None:
    keeper = server.login("keeper")

    def can(resource: str, action: str, name: str, token: str = "") -> str:
        asked = {"resource": resource, "action": action, "subresource": name}
        return str(server.ask("CanI", asked, token)["value"])

    assert can("accounts", "update", "guest", keeper) == "yes"
    assert can("accounts", "update", "admin", keeper) == "no"
    assert can("applications", "rollback", "default/argocd/demo") == "yes"
    code, text = server.refused("CanI", {"resource": "accounts", "action": "own"})
    assert code is INVALID
    assert text == "[get create update delete sync rollback override action invoke] does not contain own"
