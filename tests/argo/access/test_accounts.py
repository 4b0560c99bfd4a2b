"""Accounts as argocd-cm and argocd-secret hold them, and failed logins."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from syncline.argo.access.accounts import (
    Account,
    AccountsError,
    Capability,
    Token,
    read_accounts,
    secret_patch,
)
from syncline.argo.access.initial import Made, Missing, certificate_hosts, initial_patch, missing
from syncline.argo.access.logins import Failures, LoginLimits
from syncline.argo.access.passwords import NO_ACCOUNT, hashed, matches
from syncline.base.secret import Secret

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def config(**data: str) -> dict[str, Any]:
    return {"data": {key.replace("__", "."): value for key, value in data.items()}}


def hidden(**data: str) -> dict[str, Any]:
    return {"data": {key.replace("__", "."): base64.b64encode(value.encode()).decode() for key, value in data.items()}}


def test_without_settings_there_is_the_administrator_who_may_log_in() -> None:
    found = read_accounts(None, None)
    assert dict(found.by_name) == {"admin": Account("admin", True, (Capability.LOGIN,))}
    assert found.key is None


def test_the_administrator_has_password_tokens_and_a_switch() -> None:
    found = read_accounts(
        config(admin__enabled="false", accounts__admin="apiKey"),
        hidden(
            admin__password="$2a$10$hash",
            admin__passwordMtime="2026-01-31T12:00:00Z",
            admin__tokens='[{"id":"a","iat":5},{"id":"b","iat":6,"exp":9}]',
            server__secretkey="key",
        ),
    )
    admin = found.by_name["admin"]
    assert (admin.enabled, admin.capabilities) == (False, (Capability.LOGIN, Capability.API_KEY))
    assert admin.password == Secret("$2a$10$hash")
    assert admin.password_changed == NOW
    assert admin.tokens == (Token("a", 5), Token("b", 6, 9))
    assert found.key == Secret("key")
    assert "hash" not in repr(found)


@pytest.mark.parametrize(
    ("data", "capabilities", "enabled", "problems"),
    [
        ({"accounts__bot": "apiKey"}, "apiKey", True, 0),
        ({"accounts__bot": " login , apiKey "}, "login apiKey", True, 0),
        ({"accounts__bot": "login, fly"}, "login", True, 1),
        ({"accounts__bot": ""}, "", True, 0),
        ({"accounts__bot": "apiKey", "accounts__bot__enabled": "false"}, "apiKey", False, 0),
        ({"accounts__bot__enabled": "true"}, "", True, 0),
        ({"accounts__bot": "apiKey", "accounts__bot__x__y": "z"}, "apiKey", True, 1),
        ({"accounts__bot": "apiKey", "admin__enabled": "perhaps"}, "apiKey", True, 1),
    ],
)
def test_further_accounts_say_what_they_are_for(
    data: dict[str, str], capabilities: str, enabled: bool, problems: int
) -> None:
    found = read_accounts(config(**data), None)
    assert found.by_name["bot"] == Account("bot", enabled, tuple(Capability(one) for one in capabilities.split()))
    assert len(found.problems) == problems


@pytest.mark.parametrize(
    ("data", "secret"),
    [
        (config(accounts__bot__enabled="perhaps"), None),
        (config(accounts__bot="login"), hidden(accounts__bot__passwordMtime="yesterday")),
        (config(accounts__bot="login"), {"data": {"accounts.bot.password": "?"}}),
    ],
)
def test_a_setting_that_cannot_be_read_is_named(data: dict[str, Any], secret: dict[str, Any] | None) -> None:
    with pytest.raises(AccountsError, match=r"accounts\.bot"):
        read_accounts(data, secret)


@pytest.mark.parametrize("rows", ["{", "{}x", "7", '[{"iat": 1}]', '["a"]', "[" * 5000])
def test_without_a_list_of_tokens_no_token_is_valid(rows: str) -> None:
    found = read_accounts(config(accounts__bot="apiKey"), hidden(accounts__bot__tokens=rows))
    assert found.by_name["bot"].tokens == ()
    assert found.problems == ("Secret argocd-secret accounts.bot.tokens: it is no list of tokens, so none is valid",)


@pytest.mark.parametrize("name", ["admin", "bot"])
def test_what_is_written_is_read_again(name: str) -> None:
    account = Account(
        name, True, (Capability.LOGIN,), Secret("hash"), NOW.replace(microsecond=9), (Token("a", 5), Token("b", 6, 9))
    )
    found = read_accounts(config(**{f"accounts__{name}": ""} if name == "bot" else {}), secret_patch(account))
    again = found.by_name[name]
    assert (again.password, again.tokens) == (account.password, account.tokens)
    assert again.password_changed == NOW


def test_what_is_gone_is_removed_from_the_secret() -> None:
    data = secret_patch(Account("bot"))["data"]
    assert data == dict.fromkeys(("accounts.bot.password", "accounts.bot.passwordMtime", "accounts.bot.tokens"))


def test_a_name_is_blocked_after_five_failures_until_five_minutes_after_the_last() -> None:
    table = Failures()
    for _ in range(4):
        table = table.after("alice", NOW, failed=True)
    assert not table.blocked("alice", NOW)
    table = table.after("alice", NOW, failed=True)
    assert table.blocked("alice", NOW + timedelta(minutes=5))
    assert not table.blocked("bob", NOW)
    assert not table.blocked("alice", NOW + timedelta(minutes=5, seconds=1))
    assert not table.after("bob", NOW + timedelta(minutes=6), failed=True).blocked("alice", NOW)


def test_a_success_ends_the_row_of_failures() -> None:
    table = Failures(LoginLimits(failures=1)).after("alice", NOW, failed=True)
    assert table.blocked("alice", NOW)
    assert table.after("alice", NOW, failed=False).by_name == {}


def test_drawn_names_fill_no_memory_and_free_no_administrator() -> None:
    table = Failures(LoginLimits(failures=1, names=3)).after("admin", NOW, failed=True)
    for index in range(10):
        table = table.after(f"name-{index}", NOW + timedelta(seconds=index), failed=True)
    assert set(table.by_name) == {"admin", "name-8", "name-9"}
    assert table.blocked("admin", NOW)


def test_without_a_window_failures_are_never_forgotten() -> None:
    table = Failures(LoginLimits(failures=1, window=timedelta())).after("alice", NOW, failed=True)
    assert table.blocked("alice", NOW + timedelta(days=9))


def test_a_password_matches_its_hash_and_no_other() -> None:
    known = hashed(Secret("correct horse"), bytes(range(16)))
    assert known.reveal().startswith("$2a$10$")
    assert known == hashed(Secret("correct horse"), bytes(range(16)))
    assert known != hashed(Secret("correct horse"), bytes(16))
    assert matches(Secret("correct horse"), known)
    for other in ("correct hors", "", "x" * 200, "correct horse\0"):
        assert not matches(Secret(other), known)
    for broken in ("", "plain", "$2a$10$short", "$9z$10$" + "a" * 53, "ä"):
        assert not matches(Secret("correct horse"), Secret(broken))
    assert not matches(Secret("correct horse"), NO_ACCOUNT)


def test_argocds_own_hash_is_read() -> None:
    made_by_argocd = Secret("$2a$10$rRyBsGSHK6.uc8fntPwVIuLVHgsAhAX7TcdrqW/RADU0uh7CaChLa")  # its FAQ: "password"
    assert matches(Secret("password"), made_by_argocd)


@pytest.mark.parametrize(("password", "problem"), [("", "blank"), ("ä" * 37, "74 bytes; at most 72")])
def test_a_password_that_bcrypt_would_cut_is_refused(password: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        hashed(Secret(password), bytes(16))


MADE = Made(Secret("hash"), Secret("key"), ("certificate", Secret("tls key")))


def test_a_first_start_makes_what_is_missing_and_a_second_one_nothing() -> None:
    empty = read_accounts(None, None)
    lacking = missing(empty, None, tls=True)
    assert lacking == frozenset(Missing)
    written = initial_patch(empty, lacking, MADE, NOW)
    again = read_accounts(None, written)
    assert again.by_name["admin"].password == Secret("hash")
    assert again.by_name["admin"].password_changed == NOW
    assert again.key == Secret("key")
    assert missing(again, written, tls=True) == frozenset()
    assert initial_patch(again, frozenset(), Made(), NOW) == {}


def test_a_password_that_is_there_stays_and_gets_a_time() -> None:
    secret = hidden(admin__password="mine", server__secretkey="key")
    found = read_accounts(None, secret)
    lacking = missing(found, secret, tls=False)
    assert lacking == {Missing.PASSWORD_TIME}
    assert set(initial_patch(found, lacking, Made(), NOW)["data"]) == {"admin.password", "admin.passwordMtime"}


def test_an_administrator_who_is_disabled_gets_no_password() -> None:
    found = read_accounts(config(admin__enabled="false"), None)
    assert missing(found, None, tls=False) == {Missing.KEY}
    assert "argocd-server.argocd.svc" in certificate_hosts("argocd")
