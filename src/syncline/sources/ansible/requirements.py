"""Reads a ``requirements.yml``: which collections and roles a playbook needs, each pinned; pure: :func:`requirements`.

The file is Ansible's (``ansible-galaxy install -r``), its forms and defaults are those of ansible-core 2.19
(``Requirement.from_requirement_dict``). What could be another content tomorrow is refused: ranges, branches and tags,
archives by address without ``sha256``, a key of ours that ansible-galaxy passes over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urldefrag

from syncline.kube.yaml import loading as yaml
from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import join
from syncline.sources.revision import is_full_sha

GALAXY = "https://galaxy.ansible.com"
MAX_REQUIREMENTS = 100
MAX_BYTES = 256 * 1024
COLLECTION = re.compile(r"[a-z_][a-z0-9_]{0,63}\.[a-z_][a-z0-9_]{0,63}")
ROLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_EXACT = re.compile(r"(?:==)?([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}(?:[-+][0-9A-Za-z.+-]{1,100})?)")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Origin(StrEnum):
    """Where a requirement comes from, by Ansible's names."""

    GALAXY = "galaxy"
    GIT = "git"
    ADDRESS = "url"
    FILE = "file"
    FOLDER = "dir"
    FOLDERS = "subdirs"


@dataclass(frozen=True, slots=True)
class Requirement:
    """``source``: an address, or a path from the playbook's folder; ``inner``: a folder in a repository."""

    origin: Origin
    place: str
    """``requirements.yml: collections[0]``."""
    name: str
    """Of a collection, ``namespace.name``, empty if it is only in its own files; of a role."""
    source: str = ""
    version: str = ""
    """The commit of a repository, else the version."""
    inner: str = ""
    sha256: str = ""
    role: bool = False

    @property
    def is_remote(self) -> bool:
        return self.origin in (Origin.GALAXY, Origin.GIT, Origin.ADDRESS)


def requirements(content: bytes, file: str) -> tuple[Requirement, ...]:
    """Return what the file names. Raises :class:`SourceError` with everything that is not pinned, each with its fix."""
    if len(content) > MAX_BYTES:
        raise SourceError(Problem.TOO_LARGE, f"{file} has more than {MAX_BYTES} bytes", subject=file)
    try:
        value = yaml.load(content, file=file)
    except yaml.YamlError as error:
        raise SourceError(Problem.INVALID, f"{file}: {error}", subject=file) from None
    found, wrong = list[Requirement](), list[str]()
    for place, given, role in _entries(value, file):
        try:
            found.append(_role(given, place) if role else _collection(given, place))
        except ValueError as error:
            wrong.append(f"{place}: {error}")
    if len(found) + len(wrong) > MAX_REQUIREMENTS:
        raise SourceError(Problem.TOO_LARGE, f"{file} names more than {MAX_REQUIREMENTS} requirements", subject=file)
    if wrong:
        more = f" (and {len(wrong) - 5} more)" if len(wrong) > 5 else ""
        raise SourceError(Problem.INVALID, "; ".join(wrong[:5]) + more, subject=file)
    return tuple(found)


def _entries(value: object, file: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield place, entry, and whether it is a role; a list alone holds roles, as in Ansible's first form."""
    lists = {"roles": value} if isinstance(value, list) else value
    if not isinstance(lists, dict) or set(lists) - {"collections", "roles"}:
        message = f"{file}: a mapping with collections and roles, each a list"
        raise SourceError(Problem.INVALID, message, subject=file)
    for kind, entries in lists.items():
        if not isinstance(entries or [], list):
            raise SourceError(Problem.INVALID, f"{file}: {kind} is no list", subject=file)
        for at, each in enumerate(entries or []):
            short = "src" if kind == "roles" else "name"
            if not isinstance(each, dict):
                each = {short: str(each)}
            yield f"{file}: {kind}[{at}]", each, kind == "roles"


def _text(given: dict[str, Any], key: str) -> str:
    value = given.get(key)
    if value is not None and not isinstance(value, (str, int, float)):
        raise ValueError(f"{key} is no text")
    return str(value) if value is not None else ""


def _collection(given: dict[str, Any], place: str) -> Requirement:
    name, source, version = (_text(given, key) for key in ("name", "source", "version"))
    origin = _origin(_text(given, "type"), name, source)
    if origin is not Origin.GALAXY and not source:
        name, source = "", name
    if name and not COLLECTION.fullmatch(name):
        raise ValueError(f"{name[:100]!r} is no name of a collection: write namespace.name")
    if origin is Origin.GIT:
        return _git(place, name, source, version, role=False)
    sha256 = _text(given, "sha256").lower().removeprefix("sha256:")
    if origin is Origin.GALAXY:
        exact = _exact(name, version)
        return Requirement(origin, place, name, source or GALAXY, exact, sha256=_checked(sha256))
    if origin is Origin.ADDRESS:
        return Requirement(origin, place, name, source, version.replace("*", ""), sha256=_hash(source, sha256))
    path = join("", source)
    if source.startswith(("/", "~")) or path is None:
        raise ValueError(f"{source[:200]!r} is not below the playbook's folder: give other folders by --collections")
    return Requirement(origin, place, name, path, version.replace("*", ""), sha256=_checked(sha256))


def _origin(kind: str, name: str, source: str) -> Origin:
    if kind:
        if kind not in set(Origin):
            raise ValueError(f"type {kind[:50]!r} is none of {', '.join(Origin)}")
        return Origin(kind)
    pointer = source if source and not source.startswith(("http:", "https:")) else name
    if COLLECTION.fullmatch(pointer):
        return Origin.GALAXY
    if pointer.startswith(("git+", "git@")):
        return Origin.GIT
    if pointer.startswith(("http:", "https:")):
        return Origin.ADDRESS
    return Origin.FILE if pointer.endswith((".tar.gz", ".tgz")) else Origin.FOLDER


def _exact(name: str, version: str) -> str:
    if not name:
        raise ValueError("a collection of a Galaxy server needs its name")
    exact = _EXACT.fullmatch(version)
    if exact is None:
        found = f"with version {version[:100]!r} is not pinned" if version else "has no version"
        raise ValueError(f"{name} {found}: name one, as version: 1.2.3")
    return exact[1]


def _git(place: str, name: str, source: str, version: str, *, role: bool) -> Requirement:
    source, comma, last = source.partition(",")
    version = last if comma and not version else version
    url, fragment = urldefrag(source.removeprefix("git+"))
    inner = join("", fragment)
    if inner is None or not url:
        raise ValueError(f"{source[:200]!r} is no address of a repository")
    if not is_full_sha(version):
        found = f"version {version[:100]!r} can move" if version and version != "*" else "it names no version"
        raise ValueError(f"{found}: name the commit, 40 digits (`git ls-remote {url}` shows it)")
    return Requirement(Origin.GIT, place, name, url, version.lower(), inner, role=role)


def _role(given: dict[str, Any], place: str) -> Requirement:
    source = _text(given, "src") or _text(given, "name")
    name, version, scm = _text(given, "name"), _text(given, "version"), _text(given, "scm")
    if "include" in given:
        raise ValueError("include is not followed: name the roles here")
    parts = source.split(",")  # the old form: src,version,name
    if len(parts) > 1:
        source, version, name = (*parts, "", "")[0], version or parts[1], (*parts, "", "")[2] or name
    if not name or name == source:
        name = re.sub(r"(\.git|\.tar\.gz|\.tgz)$", "", source.rstrip("/").rpartition("/")[2])
    if not ROLE.fullmatch(name) or ".." in name:
        raise ValueError(f"{name[:100]!r} is no name of a role: give it by name")
    address = "://" in source or source.startswith("git@")
    if scm == "git" or source.startswith(("git+", "git@")) or source.endswith(".git"):
        return _git(place, name, source, version, role=True)
    if scm or not address:
        raise ValueError(f"{source[:100]!r} is not from Git: write src: its repository, scm: git, version: the commit")
    sha256 = _text(given, "sha256").lower().removeprefix("sha256:")
    return Requirement(Origin.ADDRESS, place, name, source, version, sha256=_hash(source, sha256), role=True)


def _checked(sha256: str) -> str:
    if sha256 and not _SHA256.fullmatch(sha256):
        raise ValueError("sha256 has 64 hexadecimal digits")
    return sha256


def _hash(source: str, sha256: str) -> str:
    if not sha256:
        raise ValueError(f"the archive at {source[:200]} can change: add sha256: and what `sha256sum` says of it")
    return _checked(sha256)
