"""Puts pinned collections and roles into a folder for Ansible: :func:`collect`.

From Git repositories at a commit, archives and Galaxy servers, by what the caller lends (:class:`Fetching`); those of
the playbook's own folder are linked, never copied. Archives are checked by their digest, versions by the collection's
own manifest, and each dependency has to be named too: ansible-galaxy would take its newest version.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urljoin

from syncline.kube.yaml import loading as yaml
from syncline.sources.ansible.requirements import COLLECTION, Origin, Requirement
from syncline.sources.archive import ArchiveLimits, unpack
from syncline.sources.errors import Problem, SourceError
from syncline.sources.revision import Version, parse_constraint
from syncline.sources.tree import EXECUTABLE_MODE, Tree
from syncline.sources.workers.scratch import write_below

MAX_ARCHIVE = 100_000_000
MAX_ANSWER = 4_000_000
"""Bytes of what a Galaxy server says of a version."""
MAX_MANIFEST = 1_000_000
LIMITS = ArchiveLimits(files=20_000, bytes=256 * 1024**2)
"""Of one collection or role."""
MANIFESTS = ("MANIFEST.json", "galaxy.yml")


class Fetching(Protocol):
    """What may be read elsewhere, with whose credentials: the project's border (``sources/remote/border.py``)."""

    def base(self, url: str, ref: str) -> tuple[Tree, str]:
        """Return a whole repository at a commit. Raises :class:`SourceError`."""
        ...

    def file(self, url: str, most: int) -> bytes:
        """Return what is at an address, at most so many bytes. Raises :class:`SourceError`."""
        ...


@dataclass(frozen=True, slots=True)
class Collected:
    """Folders for :class:`~syncline.sources.ansible.launching.Play`."""

    collections: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Content:
    """Files of a collection or role by path; ``linked``: a folder of the playbook's own, which is not copied."""

    files: Mapping[str, bytes] = field(repr=False)
    executable: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)
    linked: str = ""


@dataclass(frozen=True, slots=True)
class _Manifest:
    """What a collection says of itself."""

    name: str
    version: str
    dependencies: Mapping[str, str]


def collect(
    wanted: Iterable[Requirement], top: Path, project: Path, project_inside: str, remote: Fetching | None
) -> Collected:
    """Write to ``top``, an empty folder. ``project``: the playbook's folder, ``project_inside``: its path where the
    play runs. Raises :class:`SourceError` for what cannot be read, is not what was pinned, or lacks a dependency."""
    read = dict[str, tuple[_Manifest, Requirement]]()
    roles = set[str]()
    for each in _single(wanted, project):
        content = _content(each, project, remote)
        if each.role:
            if each.name in roles:
                raise _wrong(each, f"{each.name} is named twice", "give one of them another name")
            roles.add(each.name)
            _put(content, top / "roles" / each.name, project_inside)
            continue
        found = _manifest_of(content, each)
        if found.name in read:
            raise _wrong(each, f"{found.name} is named twice", "name it once")
        read[found.name] = found, each
        _put(content, top / "ansible_collections" / found.name.replace(".", "/"), project_inside)
    _check_dependencies(read, project)
    _readable(top)
    return Collected((str(top),) if read else (), (str(top / "roles"),) if roles else ())


def _single(wanted: Iterable[Requirement], project: Path) -> Iterable[Requirement]:
    """Replace a folder of collections by each of them."""
    for each in wanted:
        if each.origin is not Origin.FOLDERS:
            yield each
            continue
        for name in sorted(os.listdir(_inside(each, project, each.source))):
            path = posixpath.join(each.source, name)
            if any((project / path / one).is_file() for one in MANIFESTS):
                yield replace(each, origin=Origin.FOLDER, source=path)


def _content(each: Requirement, project: Path, remote: Fetching | None) -> _Content:
    if each.is_remote and remote is None:
        raise _wrong(each, f"{each.source or each.name} is elsewhere, and nothing is fetched here", "commit it")
    match each.origin:
        case Origin.FOLDER:
            folder = _inside(each, project, each.source)
            found = {one: _read(folder / one, MAX_MANIFEST) for one in MANIFESTS if (folder / one).is_file()}
            return _Content(found, linked=each.source or ".")
        case Origin.GIT:
            assert remote is not None, "it was checked"
            return _of_tree(each, remote.base(each.source, each.version)[0])
        case Origin.GALAXY:
            assert remote is not None, "it was checked"
            archive = _from_galaxy(each, remote)
        case Origin.ADDRESS:
            assert remote is not None, "it was checked"
            archive = remote.file(each.source, MAX_ARCHIVE)
        case _:
            archive = _read(_inside(each, project, each.source), MAX_ARCHIVE)
    digest = hashlib.sha256(archive).hexdigest()
    if each.sha256 and digest != each.sha256:
        raise _wrong(each, f"the archive's sha256 is {digest}, {each.sha256} was pinned", "look at what changed")
    runs = set[str]()
    files = unpack(archive, each.place, LIMITS, executable=runs)
    if each.role:  # archives of repositories have one folder that holds everything
        top = {path.partition("/")[0] for path in files}
        prefix = f"{top.pop()}/" if len(top) == 1 else ""
        files = {path.removeprefix(prefix): body for path, body in files.items()}
        runs = {path.removeprefix(prefix) for path in runs}
    return _Content(files, frozenset(runs))


def _of_tree(each: Requirement, tree: Tree) -> _Content:
    prefix = f"{each.inner}/" if each.inner else ""
    entries = [one for one in tree.whole().entries if one.path.startswith(prefix)]
    if not entries:
        raise _wrong(each, f"the repository has no folder {each.inner}", "name another after #")
    if len(entries) > LIMITS.files or sum(one.size for one in entries) > LIMITS.bytes:
        raise _wrong(each, f"more than {LIMITS.files} files or {LIMITS.bytes} bytes", "pin a smaller repository")
    contents = tree.whole().read([one for one in entries if one.is_file or one.is_symlink])
    names = {one.path: one.path.removeprefix(prefix) for one in entries}
    return _Content(
        {names[one.path]: contents[one.path] for one in entries if one.is_file},
        frozenset(names[one.path] for one in entries if one.mode == EXECUTABLE_MODE),
        {names[one.path]: contents[one.path].decode("utf-8", "replace") for one in entries if one.is_symlink},
    )


def _from_galaxy(each: Requirement, remote: Fetching) -> bytes:
    """Ask a Galaxy server (API v3) for the archive of a version."""
    top = each.source.rstrip("/") + "/"
    for api in (top, urljoin(top, "api/")):
        try:
            versions = _answer(each, remote, api).get("available_versions")
            break
        except SourceError as error:
            failed = error
    else:
        raise failed
    third = versions.get("v3") if isinstance(versions, dict) else None
    if not third:
        raise _wrong(each, f"{api} is no Galaxy server with API v3", "name the server's address as source")
    namespace, name = each.name.split(".")
    path = f"{third}/collections/{namespace}/{name}/versions/{each.version}/".replace("//", "/").lstrip("/")
    place = urljoin(api, path)
    answer = _answer(each, remote, place)
    url, artifact = str(answer.get("download_url") or ""), answer.get("artifact")
    digest = str(artifact.get("sha256") or "") if isinstance(artifact, dict) else ""
    archive = remote.file(urljoin(place, url), MAX_ARCHIVE)
    found = hashlib.sha256(archive).hexdigest()
    if found != digest:
        raise _wrong(
            each, f"the archive's sha256 is {found}, the server says {digest[:64] or 'none'}", "publish it again"
        )
    return archive


def _answer(each: Requirement, remote: Fetching, url: str) -> dict[str, Any]:
    try:
        found = json.loads(remote.file(url, MAX_ANSWER))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _wrong(each, f"{url} answers no JSON object", "name the server's address as source")
    return found


def _manifest_of(content: _Content, each: Requirement) -> _Manifest:
    manifest, galaxy = (content.files.get(one) for one in MANIFESTS)
    found: Any = None
    try:
        if manifest is not None:
            found = json.loads(manifest).get("collection_info")
        elif galaxy is not None:
            found = yaml.load(galaxy, file=f"{each.place}: galaxy.yml")
    except (ValueError, AttributeError, RecursionError, yaml.YamlError):
        found = None
    if not isinstance(found, dict):
        fix = "give the folder of one collection, in a repository after #"
        raise _wrong(each, f"{each.source or each.name} has no readable {' or '.join(MANIFESTS)}", fix)
    name, version = f"{found.get('namespace')}.{found.get('name')}", str(found.get("version") or "")
    if not COLLECTION.fullmatch(name) or name != (each.name or name):
        raise _wrong(each, f"it holds {name[:100]!r}, not {each.name or 'a collection'}", "correct name or source")
    if each.origin is not Origin.GIT and each.version and version != each.version:
        raise _wrong(each, f"it holds {name} {version}, {each.version} was pinned", "correct the version")
    given = found.get("dependencies")
    needs = {str(one): str(fits) for one, fits in given.items()} if isinstance(given, dict) else {}
    return _Manifest(name, version, needs)


def _check_dependencies(read: Mapping[str, tuple[_Manifest, Requirement]], project: Path) -> None:
    for one, each in read.values():
        for name, wanted in sorted(one.dependencies.items()):
            found = read.get(name)
            if found is None:
                beside = project / "collections" / "ansible_collections" / name.replace(".", "/")
                if COLLECTION.fullmatch(name) and beside.is_dir():
                    continue
                raise _wrong(each, f"{one.name} needs {name} {wanted}, which is not named", "add it with its version")
            fits, version = parse_constraint(wanted), Version.parse(found[0].version)
            if fits is not None and version is not None and not fits(version):
                message = f"{one.name} needs {name} {wanted}, and {found[1].place} has {found[0].version}"
                raise _wrong(each, message, "name versions that fit each other")


def _put(content: _Content, place: Path, project_inside: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if content.linked:
        place.symlink_to(posixpath.normpath(posixpath.join(project_inside, content.linked)))
        return
    place.mkdir()
    write_below(place, content.files.items(), executable=content.executable, links=content.links)


def _readable(top: Path) -> None:
    """The play runs as another user, whatever the caller's umask."""
    for folder, folders, names in os.walk(top):
        for path in (os.path.join(folder, one) for one in (*folders, *names)):
            if not os.path.islink(path):
                os.chmod(path, os.stat(path).st_mode & 0o777 | (0o755 if os.path.isdir(path) else 0o444))


def _inside(each: Requirement, project: Path, path: str) -> Path:
    """Return a path of the playbook's folder; one that leaves it by links is refused."""
    found, top = (project / path).resolve(), project.resolve()
    if not found.is_relative_to(top) or not found.exists():
        raise _wrong(each, f"there is no {path} in the playbook's folder", "give a path below it")
    return found


def _read(path: Path, most: int) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise SourceError(Problem.INVALID, f"{path.name} cannot be read ({error.strerror})") from None
    if len(content) > most:
        raise SourceError(Problem.TOO_LARGE, f"{path.name} has more than {most} bytes")
    return content


def _wrong(each: Requirement, message: str, fix: str) -> SourceError:
    return SourceError(Problem.INVALID, f"{each.place}: {message}", fix=fix)
