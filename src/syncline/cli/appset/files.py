"""ApplicationSets in files and at URLs, for ``appset create``, ``generate``, ``diff`` and ``plan``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click

from syncline.cli.frame.failure import CommandFailed
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.objects import Obj, meta, name_of
from syncline.kube.yaml.loading import Budget, YamlError, load_all

MAX_BYTES = 4_000_000
"""Limit of a file or an answer; an API server accepts 3 MB at once."""
STDIN = "-"


def read_sets(place: str, namespace: str) -> list[Obj]:
    """Return the ApplicationSets of a file, a URL (http, https) or the standard input (``-``), in ``namespace`` unless
    they name one. Other objects are left out, with a line on stderr. Raises CommandFailed."""
    found = [one for one in _documents(place) if _is_set(one, place)]
    if not found:
        raise CommandFailed(f"{place}: No ApplicationSets found while parsing the input file", 1)
    for one in found:
        if not name_of(one):
            raise CommandFailed(f"Error creating ApplicationSet: {place}: ApplicationSet does not have Name field set")
    return [_placed(one, namespace) for one in found]


def _placed(found: Obj, namespace: str) -> Obj:
    return found | {"metadata": {"namespace": namespace} | {key: value for key, value in meta(found).items() if value}}


def _documents(place: str) -> Iterator[Obj]:
    try:
        loaded = load_all(_bytes(place), file=place, budget=Budget(bytes=MAX_BYTES))
    except (YamlError, OSError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandFailed(f"error reading applicationset from file {place}: {said}") from error
    if loaded.report.errors:
        raise CommandFailed(f"error reading applicationset from file {place}: {loaded.report.errors[0]}")
    for document in loaded.documents:
        value = document.value
        listed = isinstance(value, dict) and str(value.get("kind", "")).endswith("List")
        for one in (value.get("items") or ()) if listed else () if value is None else (value,):
            if not isinstance(one, dict):
                raise CommandFailed(f"error reading applicationset from file {place}: a document is no object")
            yield one


def _bytes(place: str) -> bytes:
    if place == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    if urlsplit(place).scheme in ("http", "https"):
        return _fetched(place)
    with open(Path(place), "rb") as stream:
        return stream.read(MAX_BYTES + 1)


def _fetched(url: str) -> bytes:
    from syncline.sources.errors import SourceError
    from syncline.sources.remote.web import WebLimits, WebRequest, fetch, shown_url

    try:
        answer = fetch(WebRequest(url, "ApplicationSet", limits=WebLimits(bytes=MAX_BYTES, wall_s=60.0)))
    except SourceError as error:
        raise CommandFailed(f"error reading applicationset from file {shown_url(url)}: {error}") from error
    if not answer.ok:
        raise CommandFailed(f"error reading applicationset from file {shown_url(url)}: it answers {answer.said}")
    return answer.body


def _is_set(found: Obj, place: str) -> bool:
    kind = found.get("kind")
    if kind == APPLICATION_SET.kind and str(found.get("apiVersion")).startswith(f"{APPLICATION_SET.group}/"):
        return True
    click.echo(f"left out: {place}: {kind or 'an object without kind'} {name_of(found)}".rstrip(), err=True)
    return False
