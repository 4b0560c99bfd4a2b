"""Content on its way to a cluster: chunks, seals, and entries that name them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.argo.content.chunks import MAX_BYTES, ContentError, cut, digest_of, joined, packed, unpacked
from syncline.argo.content.entries import (
    Prepared,
    Sealing,
    asked_for,
    chunk_names,
    is_secret,
    manifests_of,
    prepared,
)
from syncline.argo.content.sealing import (
    PrivateKey,
    Recipient,
    keyed_digest,
    public_key,
    seal,
    unseal,
)
from syncline.kube.objects import Obj

WHO = Recipient("c1", "argocd", "web")
KEY = PrivateKey(bytes(range(32)))
HOW = Sealing(b"s" * 32, b"e" * 32, KEY.public)
ASKED = asked_for([{"repoURL": "https://git.test/a", "path": "a", "targetRevision": "main"}], ["main"])


def config_map(name: str, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name: str, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def content(*manifests: Obj, who: Recipient = WHO, how: Sealing = HOW) -> Prepared:
    return prepared(manifests, ASKED, ["abc"], ["Directory"], who, how)


def read(
    made: Prepared, entry: Obj | None = None, who: Recipient = WHO, key: PrivateKey | None = KEY
) -> tuple[Obj, ...]:
    keys = {key.public.id: key} if key is not None else {}
    return manifests_of(entry or made.entry, who, made.chunks.__getitem__, keys)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40_000)), min_size=1, max_size=30))
@settings(max_examples=30, deadline=None)
def test_what_is_read_is_what_was_rendered_in_its_order(drawn: list[tuple[bool, int]]) -> None:
    make = {True: secret, False: config_map}
    manifests = [make[hidden](f"m{n}", text="x" * size) for n, (hidden, size) in enumerate(drawn)]
    made = content(*manifests)
    assert list(read(made)) == manifests
    assert all(digest_of(data) == name for name, data in made.chunks.items())
    assert set(chunk_names(made.entry)) == set(made.chunks)


def test_one_manifest_may_be_larger_than_a_chunk_and_equal_chunks_may_follow_each_other() -> None:
    large = config_map("large", text="0123456789" * (MAX_BYTES // 5))
    equal = config_map("same", text="y" * MAX_BYTES)
    made = content(large, equal, equal, large)
    assert read(made) == (large, equal, equal, large)
    assert all(len(unpacked(made.chunks[name])) <= MAX_BYTES for name in made.entry["chunks"])


def test_a_manifest_that_is_added_leaves_most_chunks_as_they_are() -> None:
    texts = [hashlib.sha256(bytes([n])).hexdigest() * 100 for n in range(200)]
    manifests = [config_map(f"m{n}", text=text) for n, text in enumerate(texts)]
    before, after = content(*manifests), content(config_map("new"), *manifests[:100], config_map("b"), *manifests[100:])
    assert len(before.chunks) > 10
    assert len(set(after.chunks) - set(before.chunks)) <= 3


def test_two_applications_share_open_chunks_and_no_sealed_one() -> None:
    manifests = config_map("a"), secret("s", password="hunter2-hunter2")
    one, other = content(*manifests), content(*manifests, who=replace(WHO, name="shop"))
    assert one.entry["chunks"] == other.entry["chunks"]
    assert one.entry["sealed"][0]["id"] != other.entry["sealed"][0]["id"]


def test_a_secret_is_sealed_again_only_when_it_changed_or_the_key_did() -> None:
    made = content(secret("s", password="hunter2-hunter2"))
    known = {one["id"]: one["name"] for one in made.entry["sealed"]}
    later = replace(HOW, seed=b"f" * 32, known=known)
    assert content(secret("s", password="hunter2-hunter2"), how=later) == replace(made, chunks={})
    assert len(content(secret("s", password="other"), how=later).chunks) == 1
    rotated = content(secret("s", password="hunter2-hunter2"), how=replace(later, key=PrivateKey(b"n" * 32).public))
    assert len(rotated.chunks) == 1


SECRETS: list[Any] = [
    secret("s"),
    {"apiVersion": "v1", "kind": "List", "items": [secret("s")]},
    {"kind": "Bundle", "metadata": {"name": "b"}, "spec": {"deep": [{"er": [secret("s")]}]}},
    {"kind": "ConfigMap", "metadata": {"name": "m", "annotations": {"syncline.dev/seal": "true"}}},
]


@pytest.mark.parametrize("manifest", SECRETS, ids=str)
def test_secrets_wherever_they_are_and_what_says_so_itself_are_sealed(manifest: Obj) -> None:
    assert is_secret(manifest)
    assert content(manifest).entry["chunks"] == []


def test_no_byte_of_a_secret_is_in_its_content() -> None:
    password = "correct-horse-battery-staple"
    made = content(config_map("a"), secret("s", password=password))
    for text in (json.dumps(made.entry).encode(), *made.chunks.values()):
        assert password.encode() not in text
    for name in made.entry["chunks"]:
        assert b"Secret" not in unpacked(made.chunks[name])
    plain = next(iter(cut([secret("s", password=password)])))
    guesses = {digest_of(plain), digest_of(packed(plain)), keyed_digest(b"", WHO, KEY.public.id, plain)}
    assert not guesses & {one["id"] for one in made.entry["sealed"]}, "an id helps nobody to guess without the key"


def test_content_of_nothing_is_not_made() -> None:
    with pytest.raises(ContentError, match="absence"):
        content()


def test_each_changed_byte_of_a_sealed_chunk_is_noticed() -> None:
    plain, ident = b"secret text", keyed_digest(HOW.secret, WHO, KEY.public.id, b"secret text")
    sealed = seal(plain, WHO, KEY.public, ident, b"r" * 32)
    assert unseal(sealed, WHO, KEY, ident) == plain
    for at in range(len(sealed)):
        changed = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        with pytest.raises(ContentError):
            unseal(changed, WHO, KEY, ident)
    for length in range(len(sealed)):
        with pytest.raises(ContentError):
            unseal(sealed[:length], WHO, KEY, ident)


@pytest.mark.parametrize(
    ("who", "key", "ident"),
    [
        (replace(WHO, cluster="c2"), KEY, "1"),
        (replace(WHO, namespace="team"), KEY, "1"),
        (replace(WHO, name="shop"), KEY, "1"),
        (Recipient("c1", "argocdw", "eb"), KEY, "1"),
        (WHO, PrivateKey(b"n" * 32), "1"),
        (WHO, KEY, "2"),
    ],
    ids=["other cluster", "other namespace", "other application", "names moved", "other key", "other content"],
)
def test_what_is_sealed_opens_for_nothing_else(who: Recipient, key: PrivateKey, ident: str) -> None:
    sealed = seal(b"text", WHO, KEY.public, "1", b"r" * 32)
    with pytest.raises(ContentError):
        unseal(sealed, who, key, ident)


def test_a_key_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(ContentError, match="is not a key"):
        seal(b"text", WHO, public_key(bytes(32)), "1", b"r" * 32)


CHANGES: list[tuple[str, Any]] = [
    ("revisions", ["def"]),
    ("sources", "0"),
    ("requested", ["dev"]),
    ("runs", [2]),
    ("chunks", []),
    ("sealed", []),
    ("types", ["Helm"]),
]


@pytest.mark.parametrize(("field", "value"), CHANGES, ids=[name for name, _ in CHANGES])
def test_a_changed_entry_is_noticed(field: str, value: Any) -> None:
    made = content(config_map("a"), secret("s"))
    assert len(read(made)) == 2
    with pytest.raises(ContentError, match="digest"):
        read(made, {**made.entry, field: value})


@pytest.mark.parametrize(
    "who", [replace(WHO, name="shop"), replace(WHO, namespace="team"), replace(WHO, cluster="c2")], ids=str
)
def test_an_entry_is_of_one_application_also_without_secrets(who: Recipient) -> None:
    with pytest.raises(ContentError, match="digest"):
        read(content(config_map("a")), who=who)


def test_a_key_that_the_cluster_does_not_have_is_named() -> None:
    with pytest.raises(ContentError, match=f"sealed for key {KEY.public.id}"):
        read(content(secret("s")), key=None)


def test_a_chunk_that_would_grow_beyond_its_bound_is_not_read() -> None:
    with pytest.raises(ContentError, match="larger"):
        unpacked(packed(b"x" * (MAX_BYTES + 1)))
    with pytest.raises(ContentError, match="cut off"):
        unpacked(packed(b"x" * 1000)[:-3])
    for text in (b"nonsense", b"[1]\n", b"[" * 100_000):
        with pytest.raises(ContentError):
            joined([text])
