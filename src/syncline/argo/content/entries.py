"""One version of an Application's rendered manifests, as an entry of an ApplicationContent; pure.

:func:`prepared` makes it on the hub, :func:`manifests_of` reads it on the cluster. The digest of an entry covers the
Application, the sources, the revisions and the name of each chunk, which is the digest of its bytes: who knows the
digest of an entry knows the manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from syncline.argo.content.chunks import ContentError, canonical, cut, digest_of, joined, packed, unpacked
from syncline.argo.content.sealing import PrivateKey, PublicKey, Recipient, ephemeral_of, keyed_digest, seal, unseal
from syncline.kube.kinds.content import MAX_CHUNKS
from syncline.kube.objects import Obj, annotations_of, dig

SEAL: Final = "syncline.dev/seal"
"""Annotation of a manifest whose values are secret, with the value ``true``; Secrets are sealed without it."""
MAX_DEPTH: Final = 200
_COVERED: Final = ("sources", "requested", "revisions", "types", "runs", "chunks", "sealed")


@dataclass(frozen=True, slots=True)
class Asked:
    """What was rendered: the sources without their revisions as a digest, the revisions that they ask for."""

    sources: str
    requested: tuple[str, ...]


def asked_for(sources: Iterable[Obj], revisions: Sequence[str]) -> Asked:
    bare = [{key: value for key, value in one.items() if key != "targetRevision"} for one in sources]
    return Asked(digest_of(canonical(bare)), tuple(revisions))


@dataclass(frozen=True, slots=True)
class Sealing:
    """How the hub seals. ``secret``: of its keyed digests; ``seed``: 32 random bytes of this pass; ``known``: names of
    the chunks that are sealed already, by id."""

    secret: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    key: PublicKey
    known: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An entry, and the bytes of its chunks by name; of sealed chunks only those that are new."""

    entry: Obj
    chunks: Mapping[str, bytes] = field(repr=False)


def is_secret(manifest: Any, depth: int = 0) -> bool:
    """Return whether a manifest must not be readable on the hub: it is, or contains, a Secret, or says so itself."""
    if isinstance(manifest, dict):
        if manifest.get("kind") == "Secret" or (isinstance(manifest.get("metadata"), dict) and _says(manifest)):
            return True
        return depth > MAX_DEPTH or any(is_secret(one, depth + 1) for one in manifest.values())
    return isinstance(manifest, list) and (depth > MAX_DEPTH or any(is_secret(one, depth + 1) for one in manifest))


def _says(manifest: Obj) -> bool:
    return annotations_of(manifest).get(SEAL) == "true"


def prepared(
    manifests: Sequence[Obj], asked: Asked, revisions: Sequence[str], types: Sequence[str], who: Recipient, how: Sealing
) -> Prepared:
    """Return the content of an Application. Raises :class:`ContentError` where it is nothing, or too much."""
    if not manifests:
        raise ContentError("the sources make no manifest, and the absence of all of them is never sent")
    secret = [is_secret(one) for one in manifests]
    runs = [len(list(group)) for _, group in groupby(secret)]
    pieces = [packed(one) for one in cut(_only(manifests, secret, False))]
    names = [digest_of(one) for one in pieces]
    sealed, made = _sealed(cut(_only(manifests, secret, True)), who, how)
    if len(names) + len(sealed) > MAX_CHUNKS:
        raise ContentError(f"the manifests need {len(names) + len(sealed)} chunks, and {MAX_CHUNKS} are sent at most")
    entry: Obj = {
        "sources": asked.sources,
        "requested": list(asked.requested),
        "revisions": list(revisions),
        "types": list(types),
        "runs": [0, *runs] if secret[0] else runs,
        "chunks": names,
        "sealed": sealed,
    }
    return Prepared({"digest": entry_digest(entry, who), **entry}, {**dict(zip(names, pieces, strict=True)), **made})


def _only(manifests: Sequence[Obj], secret: Sequence[bool], wanted: bool) -> Iterable[Obj]:
    return (one for one, is_one in zip(manifests, secret, strict=True) if is_one is wanted)


def _sealed(plain: Iterable[bytes], who: Recipient, how: Sealing) -> tuple[list[Obj], dict[str, bytes]]:
    listed: list[Obj] = []
    made: dict[str, bytes] = {}
    for one in plain:
        content_id = keyed_digest(how.secret, who, how.key.id, one)
        name = how.known.get(content_id)
        if name is None:
            data = seal(one, who, how.key, content_id, ephemeral_of(how.seed, content_id))
            name = digest_of(data)
            made[name] = data
        listed.append({"name": name, "id": content_id, "key": how.key.id})
    return listed, made


def entry_digest(entry: Obj, who: Recipient) -> str:
    """Return the digest of an entry for an Application; what it does not cover changes nothing of the content."""
    return digest_of(canonical([who.cluster, who.namespace, who.name, {key: entry.get(key) for key in _COVERED}]))


def recipient_of(content: Obj) -> Recipient:
    """Return for whom an ApplicationContent is."""
    app = dig(content, "content", "application") or {}
    cluster = str(dig(content, "content", "cluster") or "")
    return Recipient(cluster, str(app.get("namespace") or ""), str(app.get("name") or ""))


def entries_of(content: Obj | None) -> list[Obj]:
    """Return the entries of an ApplicationContent, the current one first."""
    return [one for one in dig(content or {}, "content", "entries") or () if isinstance(one, dict)]


def chunk_names(entry: Obj) -> list[str]:
    """Return the names of all chunks of an entry."""
    return [*map(str, entry.get("chunks") or ()), *(str(one.get("name")) for one in entry.get("sealed") or ())]


def manifests_of(
    entry: Obj, who: Recipient, chunk: Callable[[str], bytes], keys: Mapping[str, PrivateKey]
) -> tuple[Obj, ...]:
    """Return the manifests of an entry. ``chunk``: returns the bytes of a name, verified; ``keys``: by id. Raises
    :class:`ContentError` unless every chunk is there, as it was made, for this Application."""
    if entry_digest(entry, who) != entry.get("digest"):
        raise ContentError("the entry was changed: its digest is another one")
    open_ones = joined(unpacked(chunk(str(name))) for name in entry.get("chunks") or ())
    plain = []
    for one in entry.get("sealed") or ():
        key = keys.get(str(one.get("key")))
        if key is None:
            raise ContentError(f"it is sealed for key {one.get('key')}, which this cluster does not have")
        plain.append(unseal(chunk(str(one.get("name"))), who, key, str(one.get("id"))))
    return _merged(open_ones, joined(plain), entry.get("runs") or ())


def _merged(open_ones: Sequence[Obj], secret: Sequence[Obj], runs: Iterable[Any]) -> tuple[Obj, ...]:
    found: list[Obj] = []
    rest = [list(open_ones), list(secret)]
    for number, count in enumerate(runs):
        part = rest[number % 2]
        found += part[:count]
        del part[:count]
    if any(rest) or len(found) != len(open_ones) + len(secret) or not found:
        raise ContentError("the entry does not say the order of its manifests, or holds none")
    return tuple(found)
