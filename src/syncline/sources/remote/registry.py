"""Accesses OCI registries of charts and artifacts: tags, digests, manifests and blobs. :class:`Registry`.

``sources/remote/artifacts.py`` uses one per repository. Content is verified against its digest; a token is requested if
the registry requires one; credentials are sent to the registry and to its token endpoint, as the protocol specifies
(OCI distribution 1.1, Docker token authentication). Blocking.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from syncline.sources.errors import Problem, SourceError
from syncline.sources.remote.address import DEFAULT_NETWORKS, Networks
from syncline.sources.remote.credentials import RepositoryAccess
from syncline.sources.remote.web import WebAnswer, WebLimits, WebRequest, basic, fetch, origin_of, shown_url

HELM_CONFIG = "application/vnd.cncf.helm.config.v1+json"
HELM_CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.artifact.manifest.v1+json",
)
MAX_MANIFEST = 4_000_000
"""As registries themselves bound it."""
MAX_TAGS = 50_000
MAX_PAGES = 500
MAX_BLOB = 100_000_000

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_HOST = re.compile(r"[A-Za-z0-9.-]+(?::\d{1,5})?|\[[0-9A-Fa-f:]+\](?::\d{1,5})?")
_PARAMETER = re.compile(r'([a-zA-Z_]+)="([^"]*)"')
_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="?next"?')
_DOCKER_HUB = {"docker.io": "registry-1.docker.io", "index.docker.io": "registry-1.docker.io"}


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def split_reference(url: str) -> tuple[str, str]:
    """Split ``oci://host/repository``, with or without scheme, into host and repository. Raises
    :class:`SourceError`."""
    host, _, name = url.removeprefix("oci://").strip("/").partition("/")
    if not _HOST.fullmatch(host) or not _NAME.fullmatch(name):
        raise SourceError(
            Problem.REFUSED,
            f"repository {shown_url(url)} is not an address of a registry",
            field="spec.source.repoURL",
            fix="give oci://HOST/REPOSITORY in lower case, without a tag",
        )
    return _DOCKER_HUB.get(host, host), name


def ping(host: str, access: RepositoryAccess | None, *, plain_http: bool = False) -> None:
    """Test the access to a registry. Raises :class:`SourceError` if it fails."""
    Registry(f"{host}/ping", access, plain_http=plain_http).check()


@dataclass(frozen=True, slots=True)
class Layer:
    media_type: str
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A parsed manifest; ``config`` is the media type of its configuration."""

    config: str
    layers: tuple[Layer, ...]


class Registry:
    """One repository in a registry. Not thread-safe: it stores its token."""

    def __init__(
        self,
        url: str,
        access: RepositoryAccess | None,
        *,
        plain_http: bool = False,
        networks: Networks = DEFAULT_NETWORKS,
    ) -> None:
        self.host, self.name = split_reference(url)
        self.label = f"repository oci://{self.host}/{self.name}"
        self.credentials = self._access = access
        self._networks = networks
        self._base = f"{'http' if plain_http else 'https'}://{self.host}"
        self._authorization = ""

    def check(self) -> None:
        """Raise :class:`SourceError` if this is no registry or access is denied."""
        self._get(f"{self._base}/v2/", limit=MAX_MANIFEST)

    def tags(self) -> list[str]:
        """Return all tags in the registry's order."""
        found: list[str] = []
        url = f"{self._base}/v2/{self.name}/tags/list"
        for _ in range(MAX_PAGES):
            answer = self._get(url, limit=MAX_MANIFEST)
            given = _decoded(answer, self.label).get("tags") or ()
            found += [str(tag) for tag in given]
            link = _NEXT.search(answer.headers.get("link", ""))
            if len(found) > MAX_TAGS:
                raise SourceError(Problem.TOO_LARGE, f"{self.label}: more than {MAX_TAGS} tags")
            if link is None:
                return found
            try:
                url = urljoin(url, link[1])
            except ValueError:
                url = ""
            if origin_of(url) != origin_of(self._base):
                raise SourceError(Problem.REFUSED, f"{self.label}: the list of tags goes on at another host")
        raise SourceError(Problem.TOO_LARGE, f"{self.label}: more than {MAX_PAGES} pages of tags")

    def resolve(self, reference: str) -> str | None:
        """Return the current digest of a tag or digest, None if the registry does not have it."""
        if not is_digest(reference) and not _TAG.fullmatch(reference):
            return None
        answer = self._get(self._manifest_url(reference), limit=MAX_MANIFEST, method="HEAD", missing=True)
        if answer.status == 404:
            return None
        said = answer.headers.get("docker-content-digest", "")
        if answer.ok and is_digest(said):
            return said
        answer = self._get(self._manifest_url(reference), limit=MAX_MANIFEST, missing=True)
        return None if answer.status == 404 else f"sha256:{hashlib.sha256(answer.body).hexdigest()}"

    def manifest(self, digest: str) -> Manifest:
        """Return a manifest. Raises :class:`SourceError` if it is missing or does not match its digest."""
        answer = self._get(self._manifest_url(digest), limit=MAX_MANIFEST)
        self._check(answer.body, digest)
        value = _decoded(answer, self.label)
        try:
            layers = tuple(
                Layer(str(one["mediaType"]), str(one["digest"]), int(one.get("size") or 0))
                for one in value.get("layers") or value.get("blobs") or ()
            )
            config = str((value.get("config") or {}).get("mediaType") or value.get("artifactType") or "")
        except (KeyError, TypeError, ValueError, AttributeError):
            raise SourceError(Problem.INVALID, f"{self.label}: the manifest {digest} is unreadable") from None
        return Manifest(config, layers)

    def blob(self, layer: Layer) -> bytes:
        """Return a layer, verified against its digest. Raises :class:`SourceError`."""
        if not is_digest(layer.digest) or layer.size > MAX_BLOB:
            what = f"has {layer.size} bytes, at most {MAX_BLOB} are read" if layer.size > MAX_BLOB else "has no digest"
            raise SourceError(Problem.TOO_LARGE, f"{self.label}: a layer {what}")
        url = f"{self._base}/v2/{self.name}/blobs/{layer.digest}"
        answer = self._get(url, limit=layer.size or MAX_BLOB)
        self._check(answer.body, layer.digest)
        return answer.body

    def _manifest_url(self, reference: str) -> str:
        return f"{self._base}/v2/{self.name}/manifests/{reference}"

    def _check(self, content: bytes, digest: str) -> None:
        found = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if found != digest:
            message = f"{self.label}: the content of {digest} is another ({found})"
            raise SourceError(Problem.INVALID, message, subject=self.label)

    # -- asking -------------------------------------------------------------------------------------------------

    def _get(self, url: str, *, limit: int, method: str = "GET", missing: bool = False) -> WebAnswer:
        answer = self._ask(url, limit, method)
        # Whom the registry redirects to asks for nothing of ours.
        here = origin_of(answer.url) == origin_of(self._base)
        if answer.status == 401 and here and self._authorize(answer.headers.get("www-authenticate", "")):
            answer = self._ask(url, limit, method)
        if answer.ok or (missing and answer.status == 404):
            return answer
        if answer.status in (401, 403):
            raise SourceError(
                Problem.DENIED,
                f"{self.label} is not reachable: {answer.said}",
                subject=self.label,
                field="spec.source.repoURL",
                fix="give credentials for it in a repository Secret",
            )
        problem = Problem.REVISION_UNKNOWN if answer.status == 404 else Problem.UNREACHABLE
        what = urlsplit(url).path.removeprefix(f"/v2/{self.name}/")
        raise SourceError(problem, f"{self.label}: {what}: {answer.said}", subject=self.label)

    def _ask(self, url: str, limit: int, method: str) -> WebAnswer:
        secret = {"Authorization": self._authorization} if self._authorization else {}
        headers = {"Accept": ", ".join(MANIFESTS)} if "/manifests/" in url else {}
        return fetch(
            WebRequest(
                url,
                self.label,
                self._access,
                signed=False,
                method=method,
                headers=headers,
                secret_headers=secret,
                limits=WebLimits(bytes=limit),
                networks=self._networks,
            )
        )

    def _authorize(self, challenge: str) -> bool:
        """Return True if there are credentials or a token that were not tried yet."""
        own = self._own_authorization()
        kind = challenge.partition(" ")[0].lower()
        if kind == "basic":
            changed = bool(own) and own != self._authorization
            self._authorization = own
            return changed
        if kind != "bearer" or self._authorization.startswith("Bearer "):
            return False
        token = self._token(dict(_PARAMETER.findall(challenge)), own)
        self._authorization = f"Bearer {token}" if token else ""
        return bool(token)

    def _own_authorization(self) -> str:
        access = self._access
        if access is None or not (access.username or access.password is not None):
            return ""
        return basic(access.username, access.password.reveal() if access.password is not None else "")

    def _token(self, given: Mapping[str, str], own: str) -> str:
        realm = given.get("realm", "")
        elsewhere = origin_of(realm) != origin_of(self._base)
        if elsewhere and not (realm.startswith("https://") and self._base.startswith("https://")):
            # Without TLS anybody on the way could name another place: then only the registry itself is believed.
            message = f"{self.label}: the place for tokens {shown_url(realm)} is another one, and TLS is missing"
            raise SourceError(Problem.REFUSED, message)
        query = {"service": given.get("service", ""), "scope": given.get("scope") or f"repository:{self.name}:pull"}
        url = f"{realm}{'&' if '?' in realm else '?'}{urlencode({k: v for k, v in query.items() if v})}"
        secret = {"Authorization": own} if own else {}
        access = self._access
        if elsewhere and access is not None:
            access = replace(access, certificate_key=None)
        asked = WebRequest(url, self.label, access, signed=False, secret_headers=secret, networks=self._networks)
        answer = fetch(asked)
        if not answer.ok:
            problem = Problem.DENIED if answer.status in (400, 401, 403) else Problem.UNREACHABLE
            message = f"{self.label}: no token from {shown_url(realm)}: {answer.said}"
            raise SourceError(problem, message, fix="give credentials for it in a repository Secret")
        value = _decoded(answer, self.label)
        return str(value.get("token") or value.get("access_token") or "")


def _decoded(answer: WebAnswer, label: str) -> dict[str, Any]:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise SourceError(Problem.INVALID, f"{label}: {shown_url(answer.url)} gives no JSON object")
    return value
