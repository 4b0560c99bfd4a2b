"""Fetches charts and artifacts that are not in Git, caches them by content, and returns trees: :class:`Artifacts`.

Drivers call it in a worker thread: everything here blocks. From a repository, a chart and a version or range it returns
the version or digest and a tree. Archives are stored on disk under the hash of their content, so none is fetched twice,
and a cached chart of an exact version needs no network. One store belongs to one process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from syncline.base.entropy import Entropy
from syncline.sources.archive import unpack
from syncline.sources.errors import Problem, SourceError, mask_credentials
from syncline.sources.helm.charts import (
    MAX_INDEX,
    ChartVersion,
    archive_url,
    chart_versions,
    choose_version,
    index_url,
    is_exact,
)
from syncline.sources.remote.address import Networks
from syncline.sources.remote.border import Border, Lent
from syncline.sources.remote.credentials import CredentialStore, RepositoryAccess
from syncline.sources.remote.registry import HELM_CHART, HELM_CONFIG, Registry, is_digest, ping
from syncline.sources.remote.requests import RemoteRequests
from syncline.sources.remote.web import NOT_MODIFIED, WebAnswer, WebLimits, WebRequest, fetch, shown_url
from syncline.sources.revision import parse_constraint
from syncline.sources.tree import MemoryTree
from syncline.sources.workers.read_scope import Failing, current

MAX_ARCHIVE = 100_000_000
MAX_LAYERS = 10
MAX_VALUES = 5_000_000
"""Bytes of a values file by address."""
TREES_BYTES = 64_000_000
"""Unpacked trees that are kept in memory; the last one stays whatever its size."""
Asked = TypeVar("Asked")
REMEMBERED = 10_000
"""Remotes whose failures are remembered."""
PINS = 10_000
KEPT_ANSWERS = 64
"""Indexes and values files that are kept, to be asked for only whether they changed."""


@dataclass(frozen=True, slots=True)
class Found:
    """One archive: the resolved version, and the SHA-256 of its content in hex."""

    version: str
    digest: str


def is_registry(url: str, access: RepositoryAccess | None = None) -> bool:
    """Return True if ``url`` is an OCI registry: by its scheme, without a scheme, or because its Secret marks it so."""
    return url.startswith("oci://") or "://" not in url or (access is not None and access.enable_oci)


class Artifacts:
    """The store of one process. Thread-safe."""

    def __init__(self, folder: Path, border: Border | None = None, entropy: Entropy | None = None) -> None:
        self._folder = folder
        self._border = border or Border()
        self._lock = threading.Lock()
        self._turns: dict[str, tuple[threading.Lock, list[None]]] = {}
        self._failing: OrderedDict[str, Failing] = OrderedDict()
        self._entropy = entropy
        self._pins: OrderedDict[str, Found] = OrderedDict()
        self._trees: OrderedDict[str, MemoryTree] = OrderedDict()
        self._answers: OrderedDict[tuple[str, str], WebAnswer] = OrderedDict()
        self._requests = RemoteRequests()

    def learn(self, book: CredentialStore) -> None:
        """Use these credentials for repositories from now on."""
        self._border.learn(book)

    def requests(self) -> list[tuple[str, str, bool, int]]:
        """Return the calls so far: address without credentials, purpose, success, count."""
        return self._requests.listed()

    def connect(self, url: str, project: str = "") -> None:
        """Test the connection with these credentials. Raises :class:`SourceError` if it fails."""
        lent = self._border.judge(url, project, charts=True)
        url, access = lent.url, lent.access
        if is_registry(url, access):
            plain_http = access is not None and access.plain_http
            ping(url.removeprefix("oci://").partition("/")[0], access, plain_http=plain_http)
            return
        label = f"chart repository {shown_url(url)}"
        answer = self._asked(self._request(index_url(url), label, lent, MAX_INDEX), "index", lent.owner)
        if not answer.ok:
            raise _failed(answer, f"{label}: failed to get index: {answer.said}")

    # -- charts -------------------------------------------------------------------------------------------------

    def chart(
        self, url: str, chart: str, wanted: str, project: str = "", *, pass_credentials: bool = False
    ) -> tuple[str, MemoryTree]:
        """Return the version that ``wanted`` names now, and the files of the chart. Raises :class:`SourceError`."""
        if not wanted:
            raise SourceError(
                Problem.INVALID,
                "spec.source.targetRevision is required if the manifest source is a helm chart",
                field="spec.source.targetRevision",
            )
        lent = self._border.judge(url, project, charts=True)
        found = self._find(lent, chart, wanted, pass_credentials=pass_credentials)
        name = chart.rpartition("/")[2]
        return found.version, self._tree(found.digest, f"chart {chart} {found.version}", name)

    def dependency(self, repository: str, chart: str, wanted: str, project: str, *, pin: str) -> Found:
        """Return a dependency of a chart; ``repository`` as declared: an address, ``@name`` or ``alias:name``.

        An equal ``pin`` returns the same archive during the life of this process, so that one commit always renders
        equally. Raises :class:`SourceError`.
        """
        lent = self._dependency(repository, chart, project)
        pin = f"{project} {lent.owner} {pin}"
        with self._lock:
            pinned = self._pins.get(pin)
        if pinned is not None and self._archive(pinned.digest).exists():
            return pinned
        try:
            found = self._find(lent, chart, wanted)
        except SourceError as error:
            if lent.permitted:
                raise
            shown = mask_credentials(lent.url)
            message = f"helm repos {shown} are not permitted in project '{project}' ({error.message})"
            raise SourceError(error.problem, message, fix="add it to the project's sourceRepos") from None
        with self._lock:
            self._pins[pin] = found
            while len(self._pins) > PINS:
                self._pins.popitem(last=False)
        return found

    def _dependency(self, repository: str, chart: str, project: str) -> Lent:
        """Return the address of the dependency with its access."""
        alias = next((repository[len(mark) :] for mark in ("@", "alias:") if repository.startswith(mark)), "")
        found = self._border.named(alias, project) if alias else self._border.judge(repository, project, charts=True)
        if found is None:
            message = f"chart {chart}: no repository is declared under the name {alias!r}"
            raise SourceError(Problem.INVALID, message, fix="declare it by a repository Secret with this name")
        return self._border.registry(found) if is_registry(found.url) else found

    def content(self, digest: str) -> bytes:
        """Return the archive under ``digest`` from :meth:`dependency`. Raises :class:`SourceError`."""
        try:
            return self._archive(digest).read_bytes()
        except OSError as error:
            raise SourceError(Problem.UNREACHABLE, f"the archive {digest} is gone ({error.strerror})") from None

    def _find(self, lent: Lent, chart: str, wanted: str, *, pass_credentials: bool = False) -> Found:
        """Fetch the archive of a chart unless it is cached; an exact version is looked up in the cache first."""
        _check_chart(chart)
        url, owner = lent.url, lent.owner
        key = _key(url, chart, wanted, owner)
        with self._turn(key):
            known = self._known(key) if is_exact(wanted) else None
            if known is not None:
                return known
            if is_registry(url, lent.access):
                found = self._from_registry(lent, chart, wanted)
            else:
                found = self._from_index(lent, chart, wanted, pass_credentials=pass_credentials)
            exact = _key(url, chart, found.version, owner)
            for each in {key, exact} if is_exact(wanted) else {exact}:
                self._write(self._folder / f"{each}.json", json.dumps([found.version, found.digest]).encode())
            return found

    def _from_index(self, lent: Lent, chart: str, wanted: str, *, pass_credentials: bool) -> Found:
        url, owner = lent.url, lent.owner
        label = f"chart repository {shown_url(url)}"
        answer = self._asked(self._request(index_url(url), label, lent, MAX_INDEX), "index", owner)
        if not answer.ok:
            raise _failed(answer, f"{label}: failed to get index: {answer.said}")
        versions = chart_versions(answer.body, chart, label)
        field = "spec.source.targetRevision"
        version = choose_version(wanted, [one.version for one in versions], f"{label}: chart '{chart}'", field)
        chosen = next(one for one in versions if one.version == version)
        known = self._known(_key(url, chart, version, owner))
        if known is not None and known.digest == (chosen.digest or known.digest):
            return known
        return Found(version, self._download(lent, chart, chosen, pass_credentials=pass_credentials))

    def _download(self, lent: Lent, chart: str, chosen: ChartVersion, *, pass_credentials: bool) -> str:
        url = lent.url
        label = f"chart {chart} {chosen.version}"
        if not chosen.urls:
            raise SourceError(Problem.INVALID, f"{label}: the index of {shown_url(url)} names no archive")
        place = archive_url(url, chosen.urls[0])
        if place.startswith("oci://"):
            repository, _, tag = place.rpartition(":")
            repository, tag = (repository, tag) if "/" not in tag else (place, chosen.version)
            there = self._border.judge(repository, lent.project, charts=True)
            access = lent.access if pass_credentials and there.permitted else there.access
            digest = self._pull(there.url, tag, access)
        else:
            place, access = self._archive_access(lent, place, pass_credentials=pass_credentials)
            request = self._request(place, label, replace(lent, access=access), MAX_ARCHIVE)
            answer = self._counted(request, "archive")
            if not answer.ok:
                unlisted = "; the project does not list it, so it is asked without credentials"
                said = answer.said + (unlisted if access is not None and access.anonymous and lent.permitted else "")
                raise _failed(answer, f"{label}: {shown_url(place)}: {said}")
            digest = self._keep(answer.body)
        if chosen.digest and digest != chosen.digest:
            message = f"{label}: the archive's digest is {digest}, the index says {chosen.digest}"
            raise SourceError(Problem.INVALID, message, subject=label, fix="publish the chart again")
        return digest

    def _archive_access(self, lent: Lent, place: str, *, pass_credentials: bool) -> tuple[str, RepositoryAccess | None]:
        """Return the normal form of an archive's address, and its access.

        The repository's credentials are sent to addresses below it; to other addresses in an index, even of the same
        host, only if the project lists them: the author of an index chooses its addresses."""
        there = self._border.judge(place, lent.project, charts=True)
        own = there.address.origin == lent.address.origin
        below = own and f"{there.address.key}/".startswith(f"{lent.address.key}/")
        lends = below or ((own or pass_credentials) and there.permitted)
        return there.url, lent.access if lends else self._border.anonymous(there)

    def _from_registry(self, lent: Lent, chart: str, wanted: str) -> Found:
        url, access = lent.url, lent.access
        repository = f"{url.removeprefix('oci://').removeprefix('https://').rstrip('/')}/{chart}"
        registry = _registry(repository, access, self._border.networks)
        if is_exact(wanted):
            version = wanted
        else:
            tags = [tag.replace("_", "+") for tag in self._counted_answer(registry, "tags", registry.tags)]
            version = choose_version(wanted, tags, registry.label, "spec.source.targetRevision")
        return Found(version, self._pull(repository, version.replace("+", "_"), access, registry))

    def _pull(
        self, repository: str, tag: str, access: RepositoryAccess | None, registry: Registry | None = None
    ) -> str:
        """Return the archive of the chart with a tag."""
        asked = registry or _registry(repository, access, self._border.networks)
        digest = self._counted_answer(asked, "manifest", lambda: asked.resolve(tag))
        if digest is None:
            field = "spec.source.targetRevision"
            raise SourceError(Problem.REVISION_UNKNOWN, f"{asked.label} has no version {tag}", field=field)
        layers = [one for one in asked.manifest(digest).layers if one.media_type == HELM_CHART]
        if len(layers) != 1:
            raise SourceError(Problem.INVALID, f"{asked.label}: {tag} is not a Helm chart", subject=asked.label)
        return self._keep(self._counted_answer(asked, "archive", lambda: asked.blob(layers[0])))

    # -- artifacts ----------------------------------------------------------------------------------------------

    def artifact(self, url: str, wanted: str, project: str = "") -> tuple[str, MemoryTree]:
        """Return the digest that ``wanted`` (tag, digest, range of versions) names now, and its files.

        Raises :class:`SourceError`.
        """
        lent = self._border.judge(url, project, charts=True)
        registry = _registry(lent.url, lent.access, self._border.networks)
        digest = wanted if is_digest(wanted) else self._resolved(registry, wanted or "latest")
        key = _key(lent.url, "", digest, lent.owner)
        with self._turn(key):
            known = self._known(key)
            if known is None:
                known = Found(*self._artifact(registry, digest))
                self._write(self._folder / f"{key}.json", json.dumps([known.version, known.digest]).encode())
        return digest, self._tree(known.digest, f"{registry.label}@{digest}", strip=known.version == HELM_CONFIG)

    def _resolved(self, registry: Registry, wanted: str) -> str:
        found = self._counted_answer(registry, "manifest", lambda: registry.resolve(wanted))
        if found is None and not is_exact(wanted) and parse_constraint(wanted) is not None:
            tags = [tag.replace("_", "+") for tag in self._counted_answer(registry, "tags", registry.tags)]
            version = choose_version(wanted, tags, registry.label, "spec.source.targetRevision")
            found = registry.resolve(version.replace("+", "_"))
        if found is None:
            message = f"{registry.label}: cannot get digest for revision {wanted}: not found"
            raise SourceError(Problem.REVISION_UNKNOWN, message, field="spec.source.targetRevision")
        return found

    def _artifact(self, registry: Registry, digest: str) -> tuple[str, str]:
        """Return the media type of the configuration and the digest of the archive. Rules: Argo CD ``util/oci``."""
        manifest = registry.manifest(digest)
        if len(manifest.layers) > MAX_LAYERS:
            message = f"{registry.label}: expected no more than {MAX_LAYERS} oci layers, got {len(manifest.layers)}"
            raise SourceError(Problem.INVALID, message)
        is_chart = manifest.config == HELM_CONFIG
        endings = (HELM_CHART,) if is_chart else ("tar+gzip", "tar.gzip", "tar")
        layers = [one for one in manifest.layers if one.media_type.endswith(endings)]
        if len(layers) != 1:
            message = f"{registry.label}: expected only a single oci content layer, got {len(layers)}"
            raise SourceError(Problem.INVALID, message, subject=registry.label)
        return manifest.config, self._keep(self._counted_answer(registry, "archive", lambda: registry.blob(layers[0])))

    # -- values -------------------------------------------------------------------------------------------------

    def file(self, url: str, project: str | None = None, most: int = MAX_VALUES) -> bytes:
        """Return what is at an address: with the project's access to it, or, a values file or manifest, without
        credentials. Raises :class:`SourceError`."""
        label = f"file {shown_url(url)}"
        if project is None:
            request = WebRequest(url, label, limits=WebLimits(bytes=most), networks=self._border.networks)
            answer = self._asked(request, "values", "")
        else:
            lent = self._border.judge(url, project, charts=True)
            answer = self._counted(self._request(url, label, lent, most), "file")
        if not answer.ok:
            raise _failed(answer, f"{label}: {answer.said}")
        return answer.body

    # -- asking and keeping -------------------------------------------------------------------------------------

    def _request(self, url: str, label: str, lent: Lent, limit: int) -> WebRequest:
        return WebRequest(url, label, lent.access, limits=WebLimits(bytes=limit), networks=self._border.networks)

    def _asked(self, request: WebRequest, what: str, owner: str) -> WebAnswer:
        """Return the response, or the previous one if the server reports no change."""
        key = (request.url, repr((owner, request.access and (request.access.project, request.access.name))))
        with self._lock:
            before = self._answers.get(key)
        tag = before.headers.get("etag", "") if before is not None else ""
        headers = {"Accept-Encoding": "gzip"} | ({"If-None-Match": tag} if tag else {})
        answer = self._counted(replace(request, headers=headers), what)
        if before is not None and answer.status == NOT_MODIFIED:
            return before
        if answer.ok and answer.headers.get("etag"):
            with self._lock:
                self._answers[key] = answer
                self._answers.move_to_end(key)
                while len(self._answers) > KEPT_ANSWERS or _weight(self._answers) > MAX_INDEX:
                    self._answers.popitem(last=False)
        return answer

    def _counted(self, request: WebRequest, what: str) -> WebAnswer:
        with self._asking(shown_url(request.url), what, request.access):
            answer = fetch(request)
        self._requests.note(shown_url(request.url), what, answer.ok or answer.status == NOT_MODIFIED)
        return answer

    def _counted_answer(self, registry: Registry, what: str, ask: Callable[[], Asked]) -> Asked:
        shown = f"oci://{registry.host}/{registry.name}"
        with self._asking(shown, what, registry.credentials):
            found = ask()
        self._requests.note(shown, what, True)
        return found

    @contextlib.contextmanager
    def _asking(self, shown: str, what: str, access: RepositoryAccess | None) -> Iterator[None]:
        """Raise the previous error if the remote was unreachable a short while ago, instead of another request."""
        with self._lock:
            failing = self._failing.pop(shown, None) or Failing(self._entropy or Entropy(shown))
            self._failing[shown] = failing
            while len(self._failing) > REMEMBERED:
                self._failing.popitem(last=False)
        failing.check(access)
        began = current().time()
        try:
            yield
        except SourceError as error:
            self._requests.note(shown, what, False)
            failing.note(began, access, error)
            raise
        failing.note(began, access, None)

    @contextlib.contextmanager
    def _turn(self, key: str) -> Iterator[None]:
        """Fetch one archive at a time. Each has its own lock: one that hangs does not block others."""
        with self._lock:
            lock, users = self._turns.setdefault(key, (threading.Lock(), []))
            users.append(None)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                users.pop()
                if not users:
                    del self._turns[key]

    def _archive(self, digest: str) -> Path:
        return self._folder / f"{digest}.tgz"

    def _keep(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        if not self._archive(digest).exists():
            self._write(self._archive(digest), content)
        return digest

    def _write(self, place: Path, content: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(draft, place)

    def _known(self, key: str) -> Found | None:
        """Return the earlier result if its archive is still stored."""
        try:
            version, digest = json.loads((self._folder / f"{key}.json").read_bytes())
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        return Found(str(version), str(digest)) if self._archive(str(digest)).exists() else None

    def _tree(self, digest: str, label: str, name: str = "", *, strip: bool = False) -> MemoryTree:
        """``name``: the folder of the chart in the archive; ``strip``: use the single folder in it, whatever its
        name."""
        key = f"{digest} {name} {strip}"
        with self._lock:
            kept = self._trees.get(key)
            if kept is not None:
                self._trees.move_to_end(key)
                return kept
        files = unpack(self.content(digest), label)
        tops = {path.partition("/")[0] for path in files}
        if strip and len(tops) != 1:
            raise SourceError(Problem.INVALID, f"{label}: expected 1 directory, found {len(tops)}", subject=label)
        folder = tops.pop() if strip else name
        if folder:
            files = {path[len(folder) + 1 :]: body for path, body in files.items() if path.startswith(f"{folder}/")}
            if not files:
                raise SourceError(Problem.INVALID, f"{label}: the archive has no folder {folder}", subject=label)
        made = MemoryTree(files)
        with self._lock:
            self._trees[key] = made
            while len(self._trees) > 1 and sum(map(_size, self._trees.values())) > TREES_BYTES:
                self._trees.popitem(last=False)
        return made


def _weight(answers: OrderedDict[tuple[str, str], WebAnswer]) -> int:
    return sum(len(answer.body) for answer in answers.values())


def _size(tree: MemoryTree) -> int:
    return sum(entry.size for entry in tree.entries)


def _registry(url: str, access: RepositoryAccess | None, networks: Networks) -> Registry:
    return Registry(url, access, plain_http=access is not None and access.plain_http, networks=networks)


def _key(url: str, chart: str, version: str, owner: str) -> str:
    return hashlib.sha256("\n".join((mask_credentials(url), chart, version, owner)).encode()).hexdigest()[:40]


def _check_chart(chart: str) -> None:
    if not chart or chart.startswith("/") or ".." in chart.split("/") or any(ord(one) <= 32 for one in chart):
        message = f"chart {chart!r} is no name of a chart"
        raise SourceError(Problem.REFUSED, message, field="spec.source.chart")


def _failed(answer: WebAnswer, message: str) -> SourceError:
    if answer.status in (401, 403):
        fix = "give credentials for it in a repository Secret"
        return SourceError(Problem.DENIED, message, field="spec.source.repoURL", fix=fix)
    problem = Problem.REVISION_UNKNOWN if answer.status in (404, 410) else Problem.UNREACHABLE
    return SourceError(problem, message, field="spec.source.repoURL")
