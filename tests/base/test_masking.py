"""One masker: what looks like a credential, and values that are known, in every spelling; and what it leaves alone."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest

from syncline.base.masking import MAX_TEXT, Masker, credential_values, mask_credentials
from syncline.sources.rendering.disclosure import disclosed

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJlLW9m"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nDEFdef\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fatal: https://me:hunter2@host/x", "fatal: https://***@host/x"),
        ("https://ghp0123456789012345678@host/x", "https://***@host/x"),
        ("Authorization: Basic bWU6aHVudGVyMg==", "Authorization: Basic ***"),
        ('{"Authorization": "Bearer abc"}', '{"Authorization": "Bearer ***"}'),
        ("authorization=hunter2, x", "authorization=***, x"),
        ("sent bearer abc123.def-4", "sent bearer ***"),
        (f"token {JWT} expired", "token *** expired"),
        ("key AKIAIOSFODNN7EXAMPLE is unknown", "key *** is unknown"),
        ("ghp_0123456789abcdefghij0123", "***"),
        ("glpat-0123456789abcdefghij", "***"),
        ("dsn: password=hunter2 host=db", "dsn: password=*** host=db"),
        ("DB_PASSWORD='hunter two' failed", "DB_PASSWORD=*** failed"),
        ("run tool --db-password hunter2 -v", "run tool --db-password *** -v"),
        ('{"password": "hunter two", "a": 1}', '{"password": ***, "a": 1}'),
        (json.dumps('{"token": "abc"}'), r'"{\"token\": ***}"'),
        ("?access_token=abc&x=1", "?access_token=***&x=1"),
        ("password: hunter2", "password: ***"),
        (f"cannot use {KEY} here", "cannot use -----BEGIN RSA PRIVATE KEY-----*** here"),
        (f"cannot use {KEY[:50]}", "cannot use -----BEGIN RSA PRIVATE KEY-----***"),
        (json.dumps({"k": KEY}), '{"k": "-----BEGIN RSA PRIVATE KEY-----***"}'),
    ],
)
def test_what_looks_like_a_credential_is_masked_once_and_for_all(text: str, shown: str) -> None:
    assert mask_credentials(text) == shown
    assert mask_credentials(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        'Secret "db" is invalid: data[password]: Invalid value: "<secret contents redacted>": illegal base64 data',
        "spec.password: Required value",
        "password: must be set",
        "evalsymlink failure on '../etc/passwd' : no such file or directory",
        "secret: no such object; token: not found",
        'secrets "db" not found',
        "tokenreviews.authentication.k8s.io is forbidden",
        "basic authentication is off; bearer authentication too",
        "git@github.com:org/repo.git and ssh://git@host:22/x",
        "https://host:8443/a@b",
        "one or more synchronization tasks completed unsuccessfully",
        'resource mapping not found for name: "x" namespace: "" from "": no matches for kind "Token" in version "v1"',
        "-----BEGIN CERTIFICATE-----\nMIIabc\n-----END CERTIFICATE-----",
    ],
)
def test_sentences_about_credentials_stay(text: str) -> None:
    assert mask_credentials(text) == text


WORD = 'hunter2 "canary"/é&93481'
MANY = "first-line-of-five\nport: 80\nsecond-line-of-five"
LONG = base64.b64encode(bytes(range(200))).decode()


@pytest.mark.parametrize(
    "spelled",
    [
        WORD,
        json.dumps(WORD)[1:-1],
        json.dumps(WORD, ensure_ascii=False)[1:-1],
        repr(WORD)[1:-1],
        quote(WORD),
        quote(WORD, ""),
        base64.b64encode(WORD.encode()).decode(),
        base64.urlsafe_b64encode(WORD.encode()).decode().rstrip("="),
        WORD[:14],
        WORD[-14:],
        "second-line-of-five",
        base64.b64encode(MANY.encode()).decode(),
        LONG,
        "\n".join(LONG[at : at + 64] for at in range(0, len(LONG), 64)),
        "\n  ".join(LONG[at : at + 40] for at in range(0, len(LONG), 40)),
        LONG[50:90],
    ],
)
def test_a_value_is_found_in_every_spelling(spelled: str) -> None:
    mask = Masker(lambda: (WORD, MANY, LONG))
    shown = mask(f"before [{spelled}] after")
    assert shown.startswith("before [***") and shown.endswith("] after")
    for line in spelled.splitlines():
        assert line.strip() not in shown
    assert mask(shown) == shown


def test_short_values_are_masked_as_words_and_tiny_ones_not_at_all() -> None:
    mask = Masker(lambda: ("abc", "k9x2", "true"), lambda: ("web-1",))
    assert mask("abc true k9x2 k9x21 (k9x2)") == "abc true *** k9x21 (***)"


def test_names_of_objects_are_no_secrets_although_a_secret_holds_them() -> None:
    mask = Masker(lambda: ("postgres-main", "hunter2-canary"), lambda: ("postgres-main",))
    assert mask("postgres-main refuses hunter2-canary") == "postgres-main refuses ***"


def test_values_are_asked_for_when_there_is_a_text_and_never_printed() -> None:
    asked: list[int] = []

    def values() -> list[str]:
        asked.append(1)
        return [WORD]

    mask = Masker(values)
    assert WORD not in repr(mask) and not asked
    assert mask("") == "" and mask(WORD) == "***" and mask(WORD) == "***"
    assert asked == [1]


def test_a_text_has_a_bound() -> None:
    shown = Masker()("a" * 10_000_000)
    assert len(shown) <= MAX_TEXT and " … " in shown


EVIL = {
    "colons": "://" + ":" * 200_000,
    "assignments": "password=" * 20_000,
    "keys": "-----BEGIN PRIVATE KEY-----" * 5_000,
    "a word": "a" * 200_000,
    "dashes": "-" * 200_000,
    "names": "pass" * 50_000,
    "quotes": '"' * 200_000,
    "spaces": "password" + " " * 200_000,
    "schemes": "bearer " * 30_000,
    "lines": "\n" * 200_000,
}


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("end", ["", "@", "x"])
def test_hostile_texts_take_no_time(evil: str, end: str) -> None:
    text = EVIL[evil] + end
    begun = time.thread_time()
    mask_credentials(text)
    Masker(lambda: (text[:60_000], "ab" * 30_000))(text)
    list(credential_values(text))
    list(disclosed([("a.yaml", f"kind: Secret\nsecretGenerator: {{{text}}}\n{text}")]))
    assert time.thread_time() - begun < 5


def test_values_beside_names_of_credentials_are_found_in_any_format() -> None:
    text = (
        'db:\n  password: "one two"\nADMIN_TOKEN=three\n{"apiKey": "four"}\nlocal secret = \'five\';\nsecretName: six\n'
    )
    assert list(credential_values(text)) == ["one two", "three", "four", "five"]
