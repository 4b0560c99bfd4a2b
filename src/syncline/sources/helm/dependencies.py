"""Resolves chart dependencies that are not in ``charts/``, as ``helm dependency build`` does.

``sources/helm/rendering.py`` calls it before a render with the files of the chart; it returns folders of the repository
(``file://``) and archives by their digest. A lock file decides the versions if there is one. Rules: Helm
``internal/resolver``, ``pkg/downloader``; Argo CD ``reposerver`` runHelmBuild (reference argocd-app 5.3).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from syncline.kube.yaml import loading as yaml
from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import Lookup, join
from syncline.sources.tree import Entry, Tree

MAX_DEPENDENCIES = 100


class Remote(Protocol):
    """What a render may fetch for one Application; implemented in ``sources/sourcing.py``."""

    @property
    def viewer(self) -> str:
        """The owner of the access: results for one are not cached for another."""
        ...

    @property
    def schemes(self) -> Sequence[str]:
        """The permitted URL schemes of values files."""
        ...

    def dependency(self, repository: str, chart: str, wanted: str, pin: str) -> tuple[str, str]:
        """Return version and digest of the archive, equal ones for an equal ``pin``. Raises :class:`SourceError`."""
        ...

    def archive(self, digest: str) -> bytes:
        """Return the archive that :meth:`dependency` found. Raises :class:`SourceError`."""
        ...

    def text(self, url: str) -> bytes:
        """Return a values file or manifest at an address. Raises :class:`SourceError`."""
        ...

    def file(self, url: str, most: int) -> bytes:
        """Return what is at an address, with the project's access to it. Raises :class:`SourceError`."""
        ...

    def base(self, url: str, ref: str) -> tuple[Tree, str]:
        """Return a whole repository that a kustomization names, and its commit. Raises :class:`SourceError`."""
        ...


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared dependencies of a chart that are not in its ``charts/``; ``locked``: their versions by index."""

    place: str
    missing: tuple[Mapping[str, Any], ...] = ()
    locked: Mapping[tuple[str, str], str] | None = None


def declared_dependencies(lookup: Lookup, folder: str, chart: Sequence[Entry]) -> Declared:
    """Read ``Chart.yaml`` or ``requirements.yaml`` with its lock. Raises :class:`SourceError`."""
    prefix = f"{folder}/" if folder else ""
    names = {entry.path.removeprefix(prefix): entry for entry in chart}
    wanted = [name for name in ("Chart.yaml", "requirements.yaml") if name in names]
    if not wanted:
        return Declared(folder)
    contents = lookup.read([names[name] for name in wanted])
    for name in wanted:
        place = names[name].path
        given = _listed(contents[place], place)
        missing = [one for one in given if one.get("name") and not _vendored(str(one["name"]), names)]
        if len(missing) > MAX_DEPENDENCIES:
            message = f"{place}: a chart may have {MAX_DEPENDENCIES} dependencies"
            raise SourceError(Problem.TOO_LARGE, message, subject=place)
        if missing:
            lock = names.get("Chart.lock" if name == "Chart.yaml" else "requirements.lock")
            return Declared(place, tuple(missing), _locked(lookup, lock, given, strict=name == "Chart.yaml"))
    return Declared(folder)


def _vendored(name: str, names: Mapping[str, Entry]) -> bool:
    packed = re.compile(rf"charts/{re.escape(name)}-v?\d[^/]*\.tgz")
    return any(one.startswith(f"charts/{name}/") or packed.fullmatch(one) for one in names)


def _listed(content: bytes, name: str) -> list[dict[str, Any]]:
    loaded = yaml.load_all(content, file=name)
    value = next((document.value for document in loaded.documents), None)
    given = value.get("dependencies") if isinstance(value, dict) else None
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _locked(
    lookup: Lookup, lock: Entry | None, given: Sequence[Mapping[str, Any]], *, strict: bool
) -> dict[tuple[str, str], str] | None:
    if lock is None:
        return None
    text = lookup.read([lock])[lock.path]
    loaded = yaml.load_all(text, file=lock.path)
    value = next((document.value for document in loaded.documents), None)
    pinned = _listed(text, lock.path)
    if strict and isinstance(value, dict) and str(value.get("digest") or "") != _digest(given, pinned):
        raise SourceError(
            Problem.INVALID,
            "the lock file (Chart.lock) is out of sync with the dependencies file (Chart.yaml). "
            "Please update the dependencies",
            subject=lock.path,
            fix="run helm dependency update and commit Chart.lock",
        )
    return {
        (str(one.get("name") or ""), str(one.get("repository") or "")): str(one.get("version") or "") for one in pinned
    }


_FIELDS = ("version", "repository", "condition", "tags", "enabled", "import-values", "alias")


def _digest(given: Sequence[Mapping[str, Any]], pinned: Sequence[Mapping[str, Any]]) -> str:
    """Return Helm's hash of both lists, with the order and escapes of Go's JSON."""
    text = json.dumps([[_plain(one) for one in given], [_plain(one) for one in pinned]], separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return f"sha256:{hashlib.sha256(_unescaped(text).encode()).hexdigest()}"


def _unescaped(text: str) -> str:
    """Unescape as Go does: letters beyond ASCII are literal, except two line separators."""
    return re.sub(
        r"((?:\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|\\u(?!2028|2029)[0-9a-f]{4})",
        lambda found: (
            found[0]
            if found[0] in ("\\u003c", "\\u003e", "\\u0026") or int(found[0][2:6], 16) < 32
            else json.loads(f'"{found[0]}"')
        ),
        text,
    )


def _plain(one: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": str(one.get("name") or "")}
    for name in _FIELDS:
        value = one.get(name)
        if value or name == "repository":
            plain[name] = str(value or "") if name in ("version", "repository", "condition", "alias") else value
    return plain


def local_dependencies(lookup: Lookup, folder: str, declared: Declared) -> list[tuple[str, str, tuple[Entry, ...]]]:
    """Return name, folder and files of ``file://`` dependencies, which Helm would pack. Raises :class:`SourceError`."""
    found: list[tuple[str, str, tuple[Entry, ...]]] = []
    for one in declared.missing:
        name, place = str(one["name"]), str(one.get("repository") or "")
        if not place.startswith("file://") or join("", name) != name:
            continue
        target = join(folder, place.removeprefix("file://").lstrip("/"))
        if target is None:
            message = f"{declared.place}: dependency {name}: {place} resolved to outside repository root"
            raise SourceError(Problem.REFUSED, message, subject=declared.place)
        found.append((name, target, tuple(lookup.below(target))))
    return found


def fetched_dependencies(declared: Declared, remote: Remote | None, pin: str) -> list[tuple[str, str]]:
    """Return the path in the chart and the digest of each archive. ``pin`` identifies the chart's content.

    Raises :class:`SourceError`.
    """
    found: list[tuple[str, str]] = []
    for one in declared.missing:
        name, place = str(one["name"]), str(one.get("repository") or "")
        if remote is None or not place or place.startswith("file://") or join("", name) != name or "/" in name:
            continue
        wanted = str(one.get("version") or "*")
        if declared.locked is not None:
            wanted = declared.locked.get((name, place), wanted)
        version, digest = remote.dependency(place, name, wanted, f"{pin} {name} {place} {wanted}")
        found.append((f"charts/{name}-{version.replace('/', '_')}.tgz", digest))
    return found
