"""Hints about surprises that upstream does not report: contents in the wrong format, texts and numbers that the
MachineConfig's YAML damages. :func:`config_hints`.

They are only reported on request (``syncline butane --hints``) and as warnings of a render, since tools compare
Butane's reports. Each rule names the upstream issue it comes from.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Final

from syncline.ignition.butane.places import Finding
from syncline.ignition.dataurl import DataUrlError, decode_data_url
from syncline.ignition.jsontext import SIZE_MAX
from syncline.ignition.parsing import parse
from syncline.ignition.report import Path, Severity
from syncline.ignition.schema import Object, Schema
from syncline.kube.yaml.loading import load_all

Config = dict[str, Any]

_GZIP_BITS: Final = 31
_MAGIC: Final = b"\x1f\x8b"
_LARGE: Final = 1_000_000
_SEPARATORS: Final = ("\u2028", "\u2029")


def config_hints(schema: Schema, config: Config, prefix: Path) -> Iterator[Finding]:
    """Yield hints about a canonical config at ``prefix`` of the result."""
    for path, resource in _resources(schema, schema.root, config, prefix):
        contents = _contents(resource)
        if contents is None:
            continue
        if resource.get("compression") == "gzip" and not contents.startswith(_MAGIC):
            # coreos/butane#730, coreos/ignition#2282
            yield _hint((*path, "compression"), "compression is gzip, but the contents are not compressed")
        elif path[len(prefix) :][:2] == ("ignition", "config"):
            yield from _embedded(contents, resource, path)
    yield from _implied_parents(config, prefix)


def _embedded(contents: bytes, resource: Config, path: Path) -> Iterator[Finding]:
    """Check embedded configs, which upstream does only for ``inline`` (coreos/butane#275, coreos/butane#602)."""
    if resource.get("compression") == "gzip":
        try:
            contents = zlib.decompressobj(_GZIP_BITS).decompress(contents, SIZE_MAX)
        except zlib.error:
            yield _hint((*path, "source"), "the embedded config cannot be unpacked")
            return
    problem = parse(contents, release_2_26=True)
    if problem.error is not None:
        first = next((entry.message for entry in problem.report.entries), problem.error)
        yield _hint((*path, "source"), f"the embedded config is refused by Ignition: {first}")


def _implied_parents(config: Config, prefix: Path) -> Iterator[Finding]:
    """Report a path below a file: Ignition would create a directory in its place (coreos/ignition#1457)."""
    storage: Config = config.get("storage", {})
    files = {file["path"] for file in storage.get("files") or ()}
    for section in ("directories", "files", "links"):
        for index, node in enumerate(storage.get(section) or ()):
            parts = node["path"].split("/")
            above = ("/".join(parts[:size]) for size in range(2, len(parts)))
            wrong = next((path for path in above if path in files), None)
            if wrong is not None:
                at = (*prefix, "storage", section, index, "path")
                yield _hint(at, f"{wrong} is a file of this config and cannot hold {node['path']}")


def text_hints(value: Any, path: Path = ()) -> Iterator[Finding]:
    """Yield hints about a MachineConfig in Butane's YAML (coreos/ignition#2309, coreos/ignition#2313)."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from text_hints(part, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from text_hints(item, (*path, index))
    elif isinstance(value, str):
        if value.startswith("\n"):
            yield _hint(path, "the first line break of the text is lost in this output; --safe-yaml keeps it")
        if any(separator in value for separator in _SEPARATORS):
            yield _hint(path, "a line separator of Unicode damages the text in this output; --safe-yaml keeps it")
    elif isinstance(value, int) and abs(value) >= _LARGE:
        yield _hint(path, f"{value} is written with an exponent, and not every reader takes that for an integer")


def document_hints(source: bytes) -> Iterator[Finding]:
    """Report documents after the first, which are silently dropped."""
    more = sum(document.value is not None for document in load_all(source).documents) - 1
    if more > 0:
        message = "1 more document follows" if more == 1 else f"{more} more documents follow"
        yield Finding(Severity.INFO, f"{message}, and Butane reads the first alone; give each a file of its own", ())


def _hint(path: Path, message: str) -> Finding:
    return Finding(Severity.INFO, message, path, result=True)


def _contents(resource: Config) -> bytes | None:
    source = resource.get("source") or ""
    if not source.startswith("data:"):
        return None
    try:
        return decode_data_url(source)
    except DataUrlError:
        return None


def _resources(schema: Schema, kind: Object, value: Config, path: Path) -> Iterator[tuple[Path, Config]]:
    for name, known in kind.fields.items():
        part = value.get(name)
        if not part or known.scalar:
            continue
        inner = schema.objects[known.type]
        listed = [((*path, name, index), item) for index, item in enumerate(part)] if known.many else []
        for at, item in listed or [((*path, name), part)]:
            if inner.name == "Resource":
                yield at, item
            else:
                yield from _resources(schema, inner, item, at)
