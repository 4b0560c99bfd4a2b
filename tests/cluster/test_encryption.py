"""Secrets are encrypted at rest: what they hold is found in no file, keys are exchanged by a restart, and a wrong or
missing key is told instead of used."""

from __future__ import annotations

import base64
import hashlib
import sqlite3
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from tests.cluster.datafiles import bytes_of, contents, killed, read, writing
from tests.conftest import Figure

from syncline.cluster.storage.disk import Disk, DiskError
from syncline.cluster.storage.encryption import Encryption, EncryptionError, encryption_of
from syncline.cluster.storage.store import Key

NAME = "cluster.db"
CANARY = "canary-7f3a91"
PLACE = Key("/secrets", "demo", "a")
JSON = b'{"kind":"Secret"}'


def key_text(number: int, name: str = "") -> str:
    encoded = base64.b64encode(hashlib.sha256(bytes([number])).digest()).decode()
    return f"{name}:{encoded}\n" if name else f"{encoded}\n"


def secret_of(number: int) -> str:
    return key_text(number).strip()


def configuration(*providers: str, resources: str = "[secrets]") -> str:
    lines = ["apiVersion: apiserver.config.k8s.io/v1", "kind: EncryptionConfiguration", "resources:"]
    lines += [f"- resources: {resources}", "  providers:", *(f"  - {provider}" for provider in providers)]
    return "\n".join(lines) + "\n"


def provider(kind: str, *numbers: int) -> str:
    keys = ", ".join(f"{{name: key{number}, secret: {secret_of(number)}}}" for number in numbers)
    return f"{kind}: {{keys: [{keys}]}}"


# -- key files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        (key_text(1, "mine"), b"k8s:enc:aesgcm:v1:mine:"),
        ("# made in spring\n\n" + key_text(1), b"k8s:enc:aesgcm:v1:key-"),
        (configuration(provider("aesgcm", 1, 2), "identity: {}"), b"k8s:enc:aesgcm:v1:key1:"),
        (configuration(provider("aescbc", 2)), b"k8s:enc:aescbc:v1:key2:"),
        (configuration("identity: {}", provider("aescbc", 2)), JSON),
    ],
    ids=["named key", "key", "aesgcm", "aescbc", "identity first"],
)
def test_the_first_key_writes_in_the_form_of_kubernetes_and_reads_it(text: str, prefix: bytes) -> None:
    encryption = encryption_of(text)
    sealed = encryption.seal(PLACE, JSON)
    assert sealed.startswith(prefix) and encryption.is_current(PLACE, sealed)
    assert encryption.open(PLACE, sealed) == JSON
    assert encryption.open(PLACE, JSON) == JSON, "what was written before is read"
    if prefix != JSON:
        assert JSON not in sealed and sealed != encryption.seal(PLACE, JSON), "a nonce is never used twice"


def test_a_value_is_bound_to_its_place() -> None:
    encryption = encryption_of(key_text(1))
    with pytest.raises(EncryptionError):
        encryption.open(Key("/secrets", "demo", "b"), encryption.seal(PLACE, JSON))


def test_aesgcm_is_what_its_name_says() -> None:
    sealed = encryption_of(configuration(provider("aesgcm", 1))).seal(PLACE, JSON)
    body = sealed.removeprefix(b"k8s:enc:aesgcm:v1:key1:")
    opened = AESGCM(base64.b64decode(secret_of(1))).decrypt(body[:12], body[12:], b"/secrets/demo/a")
    assert opened == JSON


@pytest.mark.parametrize(
    ("resources", "sealed"),
    [
        ("[secrets]", {"/secrets"}),
        ("[secrets, configmaps]", {"/secrets", "/configmaps"}),
        ("[deployments.apps]", {"apps/deployments"}),
        ("['*.apps']", {"apps/deployments"}),
        ("['*.']", {"/secrets", "/configmaps"}),
        ("['*.*']", {"/secrets", "/configmaps", "apps/deployments"}),
    ],
)
def test_resources_are_chosen_as_in_kubernetes(resources: str, sealed: set[str]) -> None:
    encryption = encryption_of(configuration(provider("aesgcm", 1), resources=resources))
    known = ("/secrets", "/configmaps", "apps/deployments")
    assert {each for each in known if encryption.seal(Key(each, "demo", "a"), JSON) != JSON} == sealed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no key; make a key with: head -c 32"),
        ("secret\n", "line 1: the key is not base64 of 32 bytes"),
        (base64.b64encode(bytes(16)).decode(), "line 1: the key has 16 bytes, 32 are needed"),
        (key_text(1, "a b"), "line 1: a key's name has"),
        (key_text(1, "a") + key_text(2, "a"), "two keys are called a"),
        ("kind: Secret\n", "neither lines of keys nor one EncryptionConfiguration"),
        ("kind: [\n", "not YAML"),
        (
            configuration(provider("secretbox", 1)),
            "provider secretbox is not supported; use one of",
        ),
        (configuration("kms: {name: x}"), "provider kms is not supported"),
        (configuration("aesgcm: {keys: []}"), r"providers\[0\].aesgcm.keys: write a list of 1"),
        (configuration("aescbc: {keys: [{name: a, secret: AAAA}]}"), r"aescbc.keys\[0\]: the key has 3 bytes, 32"),
        (configuration("aesgcm: {}, aescbc: {}"), "not YAML|exactly one provider"),
        ("kind: EncryptionConfiguration\napiVersion: v9\n", "apiVersion 'v9'; write apiserver.config.k8s.io/v1"),
        ("kind: EncryptionConfiguration\napiVersion: v1\nresources: []\n", "resources: write a list of 1"),
    ],
)
def test_a_key_file_that_cannot_be_used_is_refused_without_showing_a_key(text: str, said: str) -> None:
    with pytest.raises(EncryptionError, match=said) as refused:
        encryption_of(text)
    assert secret_of(1)[:12] not in str(refused.value)


# -- at rest ----------------------------------------------------------------------------------------------------------


def _written(path: Path, encryption: Encryption | None, count: int = 30) -> dict[str, bytes]:
    """All bytes of the directory as a kill leaves it, and as a stop does."""
    with writing(path, encryption) as writer:
        for number in range(count):
            writer.put(f"s{number}", f"{CANARY}-{number} " * 100, resource="/secrets")
            writer.put(f"c{number}", "no secret")
        writer.delete("c0")
        assert writer.settle()
        copy = killed(path, path.parent.with_name(f"{path.parent.name}-killed"))
    return {f"killed/{k}": v for k, v in bytes_of(copy.parent).items()} | bytes_of(path.parent)


def _found(files: dict[str, bytes]) -> list[str]:
    return [name for name, content in files.items() if CANARY.encode() in content]


def test_what_secrets_hold_is_in_no_file(tmp_path: Path, figure: Figure) -> None:
    clear = _written(tmp_path / "clear" / NAME, None)
    assert _found(clear), "the canary is found where it is not encrypted"
    sealed = _written(tmp_path / "sealed" / NAME, encryption_of(key_text(1)))
    assert not _found(sealed)
    assert any(b"no secret" in content for content in sealed.values()), "only Secrets are sealed"
    size = sum(map(len, sealed.values()))
    figure("encryption at rest", f"0 canaries in {len(sealed)} files, {size / 2**20:.1f} MiB of file and log")


def test_a_restart_with_a_key_seals_what_was_in_the_clear_and_leaves_no_trace_of_it(tmp_path: Path) -> None:
    path = tmp_path / "data" / NAME
    assert _found(_written(path, None))
    before = read(path)
    encryption = encryption_of(key_text(1))
    disk = Disk(path, encryption)
    assert disk.sealed == 30
    assert not _found(bytes_of(path.parent)), "neither in unused space nor in the log"
    disk.close()
    assert read(path, encryption) == before
    assert Disk(path, encryption).sealed == 0


def test_keys_are_exchanged_by_a_restart_with_both_and_a_later_one_without_the_old(tmp_path: Path) -> None:
    path = tmp_path / "data" / NAME
    a, b = key_text(1, "a"), key_text(2, "b")
    old, both, new = encryption_of(a), encryption_of(b + a), encryption_of(b)
    _written(path, old)
    before = read(path, both)
    assert b"aesgcm:v1:a:" not in path.read_bytes()
    assert read(path, new) == before
    with pytest.raises(DiskError, match=r"s0 is encrypted with key b \(aesgcm\), which is not among aesgcm a"):
        read(path, old)


def test_identity_first_opens_the_data_for_good(tmp_path: Path) -> None:
    path = tmp_path / "data" / NAME
    _written(path, encryption_of(configuration(provider("aescbc", 1))))
    before = read(path, encryption_of(configuration("identity: {}", provider("aescbc", 1))))
    assert read(path) == before


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (None, r"secrets demo/s0 is encrypted with key mine \(aesgcm\); start with --encrypt-secrets FILE"),
        (key_text(2, "other"), r"with key mine \(aesgcm\), which is not among aesgcm other; add that key to the file"),
        (key_text(2, "mine"), "but the key of that name here is another one"),
    ],
    ids=["none", "another", "another of that name"],
)
def test_without_its_key_the_data_is_refused_and_left_alone(tmp_path: Path, keys: str | None, said: str) -> None:
    path = tmp_path / "data" / NAME
    _written(path, encryption_of(key_text(1, "mine")))
    before = bytes_of(path.parent)
    with pytest.raises(DiskError, match=said):
        Disk(path, encryption_of(keys) if keys else None)
    assert bytes_of(path.parent) == before


def test_a_changed_sealed_value_is_refused_even_with_its_checksum_made_to_fit(tmp_path: Path) -> None:
    path, encryption = tmp_path / "data" / NAME, encryption_of(key_text(1))
    with writing(path, encryption) as writer:
        writer.put("a", resource="/secrets")
        writer.put("b", resource="/secrets")
        assert writer.settle()
        assert len(contents(writer.store)) == 2
    from syncline.cluster.storage.datafile import row_checksum

    connection = sqlite3.connect(path)
    (value,) = connection.execute("SELECT raw FROM objects WHERE name = 'b'").fetchone()
    forged = (value, row_checksum(Key("/secrets", "demo", "a"), 1, value))
    connection.execute("UPDATE objects SET raw = ?, checksum = ? WHERE name = 'a'", forged)
    connection.commit()
    connection.close()
    with pytest.raises(DiskError, match="secrets demo/a is encrypted"):
        read(path, encryption)
