"""AccountService over the port of ``syncline up``: accounts, passwords, tokens; and attempts at those of others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import grpc
import pytest
from tests.web.installed import DENIED, INVALID, MISSING, UNKNOWN, Server, installation

RULES = "p, keeper, accounts, get, guest, allow\np, keeper, accounts, update, guest, allow"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with installation(tmp_path_factory.mktemp("accounts"), RULES) as made:
        yield made


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
