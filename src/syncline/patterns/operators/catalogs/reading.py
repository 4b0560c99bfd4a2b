"""Reads file-based catalogues: documents with ``schema: olm.package``, ``olm.channel``, ``olm.bundle`` and
``olm.deprecations`` become a :class:`Catalog`. Pure; ``assembly`` reads the files.

Upstream: operator-framework/operator-registry ``alpha/declcfg``. A bundle whose manifests are not in the catalogue
(``olm.bundle.object``), but whose ``olm.csv.metadata`` are, is stood in for: a Deployment of a simulated image, and
definitions that accept any object.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from syncline.kube.objects import Obj, dig
from syncline.kube.yaml.loading import load_all
from syncline.patterns.operators.catalogs.model import Bundle, Catalog, Channel, Entry, Package, Property, SourceKey
from syncline.patterns.operators.catalogs.schemas import DOCUMENTS, MANIFEST, PROPERTIES, given, shape_problem
from syncline.patterns.operators.catalogs.standins import stand_in
from syncline.patterns.operators.resolver.versions import parse_range, parse_version

MOST_DOCUMENTS: Final = 20_000
MOST_BYTES: Final = 1_000_000
"""Bytes of the manifests of one bundle, so that they fit into an InstallPlan."""
NOWHERE: Final = SourceKey("", "")


class CatalogError(ValueError):
    """A catalogue cannot be read; one sentence with the document and the fix."""


def read_catalog(documents: Sequence[Obj], digest: str = "") -> Catalog:
    """Return the catalogue of these documents. Raises :class:`CatalogError`."""
    if len(documents) > MOST_DOCUMENTS:
        raise CatalogError(f"a catalogue has at most {MOST_DOCUMENTS} documents, found {len(documents)}")
    by_schema: dict[str, list[Obj]] = {}
    for document in documents:
        one = given(document)
        kind = str(one.get("schema") or "") if isinstance(one, dict) else ""
        if kind in DOCUMENTS:
            _shaped(one, DOCUMENTS[kind], f"{kind} {one.get('name', '')}".strip())
            by_schema.setdefault(kind, []).append(one)
    bundles = {(one.package, one.name): one for one in map(_bundle, by_schema.get("olm.bundle", ()))}
    deprecations = _deprecations(by_schema.get("olm.deprecations", ()))
    packages: dict[str, Package] = {}
    for described in by_schema.get("olm.package", ()):
        name = str(described["name"])
        channels = [one for one in by_schema.get("olm.channel", ()) if one.get("package") == name]
        packages[name] = _package(name, described, channels, bundles, deprecations.get(name, {}))
    for one in by_schema.get("olm.channel", ()):
        if one.get("package") not in packages:
            raise CatalogError(f"channel {one.get('name')}: package {one.get('package')} has no olm.package document")
    return Catalog(packages, digest or _digest(documents))


def _shaped(value: Any, schema: Obj, where: str) -> None:
    if problem := shape_problem(value, schema, where):
        raise CatalogError(problem)


def _digest(documents: Sequence[Obj]) -> str:
    return hashlib.sha256(json.dumps(documents, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _deprecations(documents: Iterable[Obj]) -> dict[str, dict[tuple[str, str], str]]:
    """Return messages by package, then by schema and name of what is deprecated."""
    found: dict[str, dict[tuple[str, str], str]] = {}
    for one in documents:
        for entry in one.get("entries") or ():
            reference = entry.get("reference") or {}
            key = (str(reference.get("schema") or ""), str(reference.get("name") or ""))
            found.setdefault(str(one.get("package")), {})[key] = str(entry.get("message") or "")
    return found


def _package(
    name: str,
    described: Obj,
    channels: Sequence[Obj],
    bundles: Mapping[tuple[str, str], Bundle],
    deprecated: Mapping[tuple[str, str], str],
) -> Package:
    default = str(described.get("defaultChannel") or "")
    names = [str(one["name"]) for one in channels]
    if not default and len(names) == 1:
        (default,) = names
    if default not in names:
        raise CatalogError(f"package {name}: defaultChannel {default!r} is not one of its channels: {', '.join(names)}")
    made = {
        channel: _channel(name, channel, document, channel == default, bundles, deprecated)
        for channel, document in zip(names, channels, strict=True)
    }
    message = deprecated.get(("olm.package", ""), "")
    return Package(name, default, made, str(described.get("description") or ""), described.get("icon"), message)


def _channel(
    package: str,
    name: str,
    document: Obj,
    default: bool,
    bundles: Mapping[tuple[str, str], Bundle],
    deprecated: Mapping[tuple[str, str], str],
) -> Channel:
    entries: list[Entry] = []
    left: set[str] = set()
    for one in document.get("entries") or ():
        entry = str(one["name"])
        replaces, skips = str(one.get("replaces") or ""), tuple(one.get("skips") or ())
        left |= {replaces, *skips}
        bundle = bundles.get((package, entry))
        if bundle is None:
            continue  # An entry without a bundle only names what can be upgraded.
        try:
            ranged = parse_range(one["skipRange"]) if one.get("skipRange") else None
        except ValueError as error:
            raise CatalogError(f"entry {entry} of channel {name} of package {package}: skipRange: {error}") from None
        entries.append(Entry(bundle, name, NOWHERE, entry, default, replaces, skips, ranged))
    heads = [one.name for one in entries if one.name not in left]
    if not heads:
        raise CatalogError(f"channel {name} of package {package}: no entry that no other one replaces or skips")
    return Channel(name, tuple(entries), heads[0], deprecated.get(("olm.channel", name), ""))


def _bundle(document: Obj) -> Bundle:
    name = str(document["name"])
    where = f"bundle {name}"
    properties = [Property(str(one["type"]), one.get("value")) for one in document.get("properties") or ()]
    for one in properties:
        if one.kind in PROPERTIES:
            _shaped(one.value, PROPERTIES[one.kind], f"{where}: {one.kind}")
    package: Obj = next((one.value for one in properties if one.kind == "olm.package"), {})
    try:
        version = parse_version(package["version"]) if package.get("version") else None
    except ValueError as error:
        raise CatalogError(f"{where}: {error}") from None
    objects = _objects(where, properties)
    metadata = next((one.value for one in properties if one.kind == "olm.csv.metadata"), None)
    image = str(document.get("image") or "")
    stands_in = not objects and metadata is not None
    if not objects and metadata is not None:
        objects = stand_in(name, image, version, metadata, properties)
    kept = tuple(one for one in properties if one.kind not in ("olm.bundle.object", "olm.csv.metadata"))
    return Bundle(name, str(document["package"]), version, image, kept, objects, stands_in)


def _objects(where: str, properties: Iterable[Property]) -> tuple[Obj, ...]:
    made: list[Obj] = []
    size = 0
    for one in properties:
        if one.kind != "olm.bundle.object":
            continue
        data = one.value["data"]
        size += len(data)
        if size > MOST_BYTES:
            raise CatalogError(f"{where}: its manifests have more than {MOST_BYTES} bytes")
        try:
            text = base64.b64decode(data, validate=True).decode()
            found = load_all(text).values
        except (binascii.Error, ValueError) as error:
            raise CatalogError(f"{where}: olm.bundle.object cannot be read: {error}") from None
        for obj in found:
            _shaped(obj, MANIFEST, f"{where}: olm.bundle.object")
            made.append(obj)
    return tuple(made)


def csv_of(bundle: Bundle) -> Obj | None:
    return next((one for one in bundle.objects if one.get("kind") == "ClusterServiceVersion"), None)


def owned_kinds(bundle: Bundle) -> Sequence[Obj]:
    """Return the descriptions of the definitions that a bundle owns."""
    found: Sequence[Obj] = dig(csv_of(bundle) or {}, "spec", "customresourcedefinitions", "owned", default=None) or ()
    return found
