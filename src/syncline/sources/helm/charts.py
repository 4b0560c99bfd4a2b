"""Reads the index of a chart repository: the versions of a chart and the addresses of their archives. Pure.

``sources/remote/artifacts.py`` fetches the text. An index may list thousands of charts in tens of megabytes, so only
the lines of the requested chart are parsed. Rules: Helm ``pkg/repo`` and Argo CD ``util/helm`` (reference argocd-app
5.6).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec

from syncline.kube.yaml import loading as yaml
from syncline.sources.errors import Problem, SourceError
from syncline.sources.revision import Version, parse_constraint

MAX_INDEX = 200_000_000
"""Bytes of an index; the largest public ones have had 30 MB."""
MAX_ENTRY = 20_000_000
"""Bytes of one chart's lines in it."""
MAX_VERSIONS = 20_000


@dataclass(frozen=True, slots=True)
class ChartVersion:
    """One version of a chart. ``digest`` is the SHA-256 of the archive in hex, empty if the index has none."""

    version: str
    urls: tuple[str, ...]
    digest: str = ""


def index_url(repo_url: str) -> str:
    """Return ``https://host/path/index.yaml``, with the repository's query if it has one."""
    parts = urlsplit(repo_url)
    return urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/index.yaml", parts.query, ""))


def archive_url(repo_url: str, given: str) -> str:
    """Return the address of an archive in the index of ``repo_url``; relative ones start at the repository.

    Raises :class:`SourceError`."""
    parts = urlsplit(repo_url)
    try:
        urljoin(repo_url, given)
    except ValueError:
        raise SourceError(Problem.REFUSED, "the index names an archive by what is no address") from None
    base = urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/", "", ""))
    found = urljoin(base, given)
    own = not urlsplit(given).scheme and not urlsplit(given).netloc
    return f"{found}?{parts.query}" if own and parts.query and not urlsplit(found).query else found


def chart_versions(content: bytes, chart: str, label: str) -> tuple[ChartVersion, ...]:
    """Return the versions of ``chart`` in the order of the index. Raises :class:`SourceError`."""
    entries = _sliced(content, chart, label)
    if entries is None:
        entries = _listed(content, chart, label)
    if entries is None:
        raise SourceError(
            Problem.REVISION_UNKNOWN,
            f"{label}: chart '{chart}' not found in index",
            field="spec.source.chart",
        )
    if not isinstance(entries, list):
        raise SourceError(Problem.INVALID, f"{label}: the index does not list versions of chart '{chart}'")
    found = [_version(one) for one in entries[:MAX_VERSIONS] if isinstance(one, dict) and one.get("version")]
    return tuple(found)


def _version(one: dict[str, Any]) -> ChartVersion:
    urls = one.get("urls") if isinstance(one.get("urls"), list) else []
    digest = str(one.get("digest") or "").removeprefix("sha256:").lower()
    return ChartVersion(str(one["version"]), tuple(str(url) for url in urls or ()), digest)


_ENTRIES = re.compile(rb"^entries:[ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)
_TOP = re.compile(rb"^[^\s#-]", re.MULTILINE)
_FIRST_KEY = re.compile(rb"\n(?:[ \t]*(?:#[^\n]*)?\r?\n)*( +)[^\s#]")


def _sliced(content: bytes, chart: str, label: str) -> list[Any] | None:
    """Parse only the lines of the chart; None if the text is not laid out as Helm writes it."""
    start = _ENTRIES.search(content)
    first = _FIRST_KEY.match(content, start.end()) if start is not None else None
    if start is None or first is None:
        return None
    indent, name = first[1], re.escape(chart.encode())
    end = _TOP.search(content, first.end())
    stop = end.start() if end is not None else len(content)
    key = re.compile(
        rb"^" + indent + rb"(?:" + name + rb'|"' + name + rb'"|\'' + name + rb"'):[ \t]*\r?$", re.MULTILINE
    )
    here = key.search(content, first.start(), stop)
    if here is None:
        return None
    following = re.compile(rb"^" + indent + rb"[^\s#-]", re.MULTILINE).search(content, here.end(), stop)
    text = content[here.start() : following.start() if following is not None else stop]
    if len(text) > MAX_ENTRY:
        raise _too_large(label, f"about '{chart}'")
    try:
        value = yaml.load(text, file=label)
    except yaml.YamlError:
        return None
    found = value.get(chart) if isinstance(value, dict) else None
    return found if isinstance(found, list) else None


class _Index(msgspec.Struct):
    """An index in JSON; only the requested charts are decoded, to save memory."""

    entries: dict[str, msgspec.Raw] | None = None


def _listed(content: bytes, chart: str, label: str) -> Any:
    """Return the entry of ``chart`` from an index in JSON, or in YAML with another layout."""
    value: Any
    try:
        if content.lstrip()[:1] == b"{":
            found = (msgspec.json.decode(content, type=_Index).entries or {}).get(chart, msgspec.Raw(b"null"))
            if len(found) > MAX_ENTRY:
                raise _too_large(label, f"about '{chart}'")
            return msgspec.json.decode(found)
        if len(content) > MAX_ENTRY:
            raise _too_large(label, "in no order that Helm writes")
        value = yaml.load(content, file=label)
    except (yaml.YamlError, ValueError, RecursionError) as error:
        raise SourceError(Problem.INVALID, f"{label}: error decoding index: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("entries") or {}, dict):
        raise SourceError(Problem.INVALID, f"{label}: error decoding index: it is no mapping")
    return (value.get("entries") or {}).get(chart)


def _too_large(label: str, what: str) -> SourceError:
    return SourceError(Problem.TOO_LARGE, f"{label}: the index has more than {MAX_ENTRY} bytes {what}")


def is_exact(version: str) -> bool:
    """Return True for an exact version; it is used without reading the index, as upstream does."""
    return Version.parse(version) is not None


def choose_version(wanted: str, versions: Sequence[str], label: str, field: str) -> str:
    """Return the version that ``wanted`` names: an equal one, or the highest within a range.

    Raises :class:`SourceError`.
    """
    if wanted in versions:
        return wanted
    parsed = [(version, text) for text in versions if (version := Version.parse(text)) is not None]
    exact = Version.parse(wanted)
    for version, text in parsed:
        if exact is not None and version == exact:
            return text
    constraint = parse_constraint(wanted)
    if constraint is None:
        message = f"{label}: '{wanted}' is neither a version that it has nor a range of versions"
        raise SourceError(Problem.REVISION_UNKNOWN, message, field=field)
    fitting = [pair for pair in parsed if constraint(pair[0])]
    if not fitting:
        message = f"{label}: version matching constraint '{wanted}' not found in {len(versions)} versions"
        raise SourceError(Problem.REVISION_UNKNOWN, message, field=field)
    return max(fitting)[1]
