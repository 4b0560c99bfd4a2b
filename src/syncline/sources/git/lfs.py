"""Replaces Git LFS pointers by the content of the large files: :class:`LargeFiles`.

``sources/git/mirrors.py`` calls it for repositories with ``enableLfs``. Objects are requested with the batch API
(git-lfs ``docs/api``), verified against size and SHA-256 of their pointers, and cached by SHA-256. The git-lfs program
is not needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from syncline.sources.errors import Problem, SourceError, mask_credentials
from syncline.sources.git.access import git_environment
from syncline.sources.git.process import Bounds, child_environment, run_bounded
from syncline.sources.remote.address import DEFAULT_NETWORKS, Networks, parse_address
from syncline.sources.remote.border import Lent
from syncline.sources.remote.credentials import RepositoryAccess
from syncline.sources.remote.turns import away
from syncline.sources.remote.web import WebLimits, WebRequest, fetch, origin_of, shown_url
from syncline.sources.workers.read_scope import current

MAX_OBJECT = 100_000_000
MAX_TOGETHER = 250_000_000
"""Bytes of all objects that one read brings."""
MAX_POINTER = 1024
BATCH = 100
SSH_S = 60.0
MAX_ANSWER = 1_000_000
"""Bytes of what a host says over ssh."""
MEDIA = "application/vnd.git-lfs+json"

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-\d-\S+ \S+\n)*oid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n?"
)
_SCP = re.compile(r"(?:(?P<user>[^/:@\s]+)@)?(?P<host>[^/:@\s]+):(?P<path>.*)")


@dataclass(frozen=True, slots=True)
class Pointer:
    oid: str
    size: int


def parse_pointer(content: bytes) -> Pointer | None:
    """Return the pointer in a file's content, None for an ordinary file."""
    if len(content) > MAX_POINTER:
        return None
    match = _POINTER.fullmatch(content)
    return None if match is None else Pointer(match[1].decode(), int(match[2]))


@dataclass(frozen=True, slots=True)
class _Endpoint:
    url: str
    access: RepositoryAccess | None = None
    """What its own origin is asked with."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class LargeFiles:
    """The large files of one repository; ``folder`` caches them by content, ``configured`` is ``lfs.url``."""

    url: str
    access: RepositoryAccess | None
    folder: Path
    configured: str = ""
    local: bool = False
    """The repository lies on this machine and may be read there."""
    lend: Callable[[str], Lent] | None = None
    """Judges the address that ``configured`` names; None: nothing is lent for it."""
    networks: Networks = DEFAULT_NETWORKS

    @property
    def label(self) -> str:
        return f"large files of {mask_credentials(self.url)}"

    def smudged(self, contents: dict[str, bytes]) -> dict[str, bytes]:
        """Return ``contents`` with pointers replaced by their files. Raises :class:`SourceError`."""
        pointers = {path: found for path, body in contents.items() if (found := parse_pointer(body)) is not None}
        if not pointers:
            return contents
        wanted = sorted(set(pointers.values()), key=lambda one: one.oid)
        for path, pointer in pointers.items():
            if pointer.size > MAX_OBJECT:
                raise _too_large(f"{self.label}: {path} has {pointer.size} bytes, at most {MAX_OBJECT} are read")
        if sum(one.size for one in wanted) > MAX_TOGETHER:
            raise _too_large(f"{self.label}: more than {MAX_TOGETHER} bytes at once")
        missing = [one for one in wanted if not self._place(one).exists()]
        for start in range(0, len(missing), BATCH):
            self._bring(missing[start : start + BATCH])
        objects = {one: self._place(one).read_bytes() for one in wanted}
        return {path: objects[pointers[path]] if path in pointers else body for path, body in contents.items()}

    def _place(self, pointer: Pointer) -> Path:
        return self.folder / pointer.oid[:2] / pointer.oid

    def _keep(self, pointer: Pointer, content: bytes) -> None:
        if hashlib.sha256(content).hexdigest() != pointer.oid or len(content) != pointer.size:
            raise SourceError(Problem.INVALID, f"{self.label}: the content of {pointer.oid} is another")
        place = self._place(pointer)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(draft, place)

    def _bring(self, wanted: Sequence[Pointer]) -> None:
        if self.local:
            root = Path(self.url.removeprefix("file://"))
            for one in wanted:
                inside = f"lfs/objects/{one.oid[:2]}/{one.oid[2:4]}/{one.oid}"
                place = next((p for p in (root / inside, root / ".git" / inside) if p.is_file()), None)
                if place is None:
                    raise SourceError(Problem.INVALID, f"{self.label}: the object {one.oid} is not there")
                self._keep(one, place.read_bytes())
            return
        endpoint = self._endpoint()
        for pointer, action in self._batch(endpoint, wanted):
            self._keep(pointer, self._download(endpoint, pointer, action))

    def _endpoint(self) -> _Endpoint:
        """Rules: git-lfs ``docs/api/server-discovery``."""
        if self.configured.lower().startswith(("http://", "https://")):
            return self._configured()
        if urlsplit(self.url).scheme in ("http", "https"):
            plain = self.url.rstrip("/")
            return _Endpoint(f"{plain if plain.endswith('.git') else plain + '.git'}/info/lfs", self.access)
        return self._over_ssh()

    def _configured(self) -> _Endpoint:
        """Return the endpoint that the repository names, with credentials only if its project may read it."""
        address = parse_address(self.configured.rstrip("/"))
        repository = parse_address(address.dial.removesuffix("/info/lfs"))
        own = parse_address(self.url)
        if repository.origin == own.origin and repository.key == own.key:
            return _Endpoint(address.dial, self.access)
        return _Endpoint(address.dial, self.lend(repository.dial).access if self.lend is not None else None)

    def _over_ssh(self) -> _Endpoint:
        """Request endpoint and password from the host over ssh."""
        parts, scp = urlsplit(self.url), _SCP.fullmatch(self.url)
        if parts.scheme == "ssh":
            user, host, path = parts.username, parts.hostname or "", parts.path.lstrip("/")
            more = ["-p", str(parts.port)] if parts.port else []
        elif scp is not None:
            user, host, path, more = scp["user"], scp["host"], scp["path"], []
        else:
            raise SourceError(Problem.UNSUPPORTED, f"{self.label}: its address tells no place for large files")
        with git_environment(self.access) as given:
            command = shlex.split(given.get("GIT_SSH_COMMAND") or child_environment()["GIT_SSH_COMMAND"])
            where = f"{user}@{host}" if user else host
            asked = [*command, *more, "--", where, f"git-lfs-authenticate {shlex.quote(path)} download"]
            bounds = Bounds(min(SSH_S, current().left_s), output_bytes=MAX_ANSWER)
            with away():
                code, output, _ = run_bounded(asked, child_environment(), bounds, f"{self.label}: {host} over ssh")
        if code != 0:
            return _Endpoint(f"https://{host}/{path.removesuffix('.git')}.git/info/lfs")
        value = _decoded(output, self.label)
        headers = value.get("header")
        return _Endpoint(str(value.get("href") or "").rstrip("/"), headers=headers if isinstance(headers, dict) else {})

    def _batch(self, endpoint: _Endpoint, wanted: Sequence[Pointer]) -> Iterator[tuple[Pointer, dict[str, Any]]]:
        url = f"{endpoint.url}/objects/batch"
        body = {
            "operation": "download",
            "transfers": ["basic"],
            "objects": [{"oid": one.oid, "size": one.size} for one in wanted],
            "hash_algo": "sha256",
        }
        answer = fetch(
            WebRequest(
                url,
                self.label,
                endpoint.access,
                method="POST",
                headers={"Accept": MEDIA, "Content-Type": MEDIA},
                secret_headers={str(name): str(value) for name, value in endpoint.headers.items()},
                body=json.dumps(body).encode(),
                networks=self.networks,
            )
        )
        if not answer.ok:
            problem = Problem.DENIED if answer.status in (401, 403) else Problem.UNREACHABLE
            fix = "give credentials for it in a repository Secret" if problem is Problem.DENIED else ""
            raise SourceError(problem, f"{self.label}: {shown_url(url)}: {answer.said}", fix=fix)
        given = _decoded(answer.body, self.label).get("objects")
        objects = {str(one.get("oid")): one for one in given or () if isinstance(one, dict)}
        for one in wanted:
            found = objects.get(one.oid, {})
            action = (found.get("actions") or {}).get("download")
            if not isinstance(action, dict) or not action.get("href"):
                said = (found.get("error") or {}).get("message") or "the host does not have it"
                raise SourceError(Problem.INVALID, f"{self.label}: the object {one.oid}: {said}")
            yield one, action

    def _download(self, endpoint: _Endpoint, pointer: Pointer, action: Mapping[str, Any]) -> bytes:
        url = str(action["href"])
        given = action.get("header") if isinstance(action.get("header"), dict) else {}
        headers = {str(name): str(value) for name, value in (given or {}).items()}
        signed = not any(name.lower() == "authorization" for name in headers)
        access = endpoint.access if origin_of(url) == origin_of(endpoint.url) else None
        answer = fetch(
            WebRequest(
                url,
                self.label,
                access,
                signed=signed,
                secret_headers=headers,
                limits=WebLimits(bytes=max(pointer.size, 1)),
                networks=self.networks,
            )
        )
        if not answer.ok:
            raise SourceError(Problem.UNREACHABLE, f"{self.label}: {shown_url(url)}: {answer.said}")
        return answer.body


def _decoded(content: bytes, label: str) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise SourceError(Problem.INVALID, f"{label}: the host gives no JSON object")
    return value


def _too_large(message: str) -> SourceError:
    return SourceError(Problem.TOO_LARGE, message, fix="keep manifests small; a render reads only what it needs")
