"""Reads repository credentials from Secrets and ConfigMaps: :class:`CredentialStore`.

``assembly`` creates it from the objects of the control namespace; ``sources/git/mirrors.py`` and
``sources/remote/artifacts.py`` get a repository's access from it; ``sources/git/access.py`` and
``sources/remote/web.py`` use that. Pure. Rules: Argo CD ``util/db`` (reference argocd-app 5.8): a repository's own
Secret first, the project's before one for all; missing values come from the ``repo-creds`` with the longest prefix.
Values are :class:`Secret` and appear in no message.
"""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from syncline.base.masking import Masker
from syncline.base.secret import Secret
from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.sources.errors import Problem, SourceError, mask_credentials
from syncline.sources.remote.address import parse_address, prefix_key

SECRET_TYPE = "argocd.argoproj.io/secret-type"
KNOWN_HOSTS_MAP = "argocd-ssh-known-hosts-cm"
CERTIFICATES_MAP = "argocd-tls-certs-cm"
MAX_VALUE = 65536
"""Letters of one credential; the largest real ones are RSA keys of 16,384 bits."""
_UNSUPPORTED = ("useAzureWorkloadIdentity",)
_SPELLED_ID = ("azureServicePrincipalClientId", "azureServicePrincipalTenantId")
_ONE_LINE = ("username", "password", "bearerToken", "proxy", "noProxy")
_READING = ("repository", "repo-creds")
_PUSHING = ("repository-write", "repo-write-creds")
"""Types of Secrets: for one address, and for all that begin with it."""
_CHART_TYPES = ("helm", "oci")


@dataclass(frozen=True, slots=True)
class GitHubApp:
    """A GitHub App; ``installation`` empty: the one of the repository's owner."""

    identity: str
    key: Secret
    installation: str = ""
    base_url: str = ""
    """Of a GitHub of one's own, as ``https://git.example.com/api/v3``."""


@dataclass(frozen=True, slots=True)
class AzurePrincipal:
    """A service principal; ``login`` empty: Microsoft's public endpoint."""

    tenant: str
    client: str
    secret: Secret
    login: str = ""


@dataclass(frozen=True, slots=True)
class RepositoryAccess:
    """How to access one repository. ``name`` is the Secret's, for messages; ``project`` owns it (empty: none).

    ``kind`` is its ``type``: git, helm or oci; ``alias`` the name that charts may use for it.
    """

    url: str
    name: str = ""
    project: str = ""
    kind: str = "git"
    alias: str = ""
    username: str = ""
    password: Secret | None = None
    bearer_token: Secret | None = None
    ssh_key: Secret | None = None
    certificate_pem: str = ""
    certificate_key: Secret | None = None
    proxy: Secret | None = None
    """A Secret since its address may hold a password."""
    no_proxy: str = ""
    insecure: bool = False
    """Neither TLS certificates nor ssh host keys are checked."""
    ca_pem: str = ""
    known_hosts: str | None = None
    """Text of a known_hosts file; None: the administrator's own."""
    github_app: GitHubApp | None = None
    google_key: Secret | None = None
    """Key of a service account, as JSON."""
    azure: AzurePrincipal | None = None
    force_basic: bool = False
    """Git shows the password without being asked for it (``forceHttpBasicAuth``)."""
    lfs: bool = False
    depth: int = 0
    """How many commits of history are brought; 0: all."""
    enable_oci: bool = False
    plain_http: bool = False
    """A registry without TLS (``insecureOCIForceHttp``)."""
    anonymous: bool = False
    """As anybody may: without the credentials of this machine's own programs, too."""
    signing_key: Secret | None = None
    """With which commits are signed that are pushed here: an OpenSSH or PGP private key."""
    problem: str = ""
    """Why it cannot be used, empty if it can."""

    @property
    def has_credentials(self) -> bool:
        """True if no ``repo-creds`` fill it in, as upstream."""
        keys = (self.password, self.bearer_token, self.ssh_key, self.certificate_key)
        accounts = (self.github_app, self.google_key, self.azure)
        return bool(self.username or self.problem) or any(one is not None for one in (*keys, *accounts))

    @property
    def is_chart_repository(self) -> bool:
        """True if its credentials are for charts and artifacts, never for git."""
        return self.kind in _CHART_TYPES

    def mask(self, text: str) -> str:
        """Return ``text`` with all values of this access masked."""
        return Masker(self._values)(text)

    def _values(self) -> Iterator[str]:
        """Yield every secret value, and the header made from them."""
        secrets = (self.password, self.bearer_token, self.ssh_key, self.certificate_key, self.proxy, self.google_key)
        app, azure = self.github_app, self.azure
        for secret in (*secrets, self.signing_key, app.key if app else None, azure.secret if azure else None):
            if secret is not None and secret.reveal():
                yield secret.reveal()
        if self.password is not None:
            yield f"{self.username}:{self.password.reveal()}"


@dataclass(frozen=True)
class CredentialStore:
    """All known repositories at one moment."""

    repositories: tuple[RepositoryAccess, ...] = ()
    templates: tuple[RepositoryAccess, ...] = ()
    known_hosts: str | None = None
    certificates: Mapping[str, str] = field(default_factory=dict)
    """PEM of certificate authorities by host."""
    pushing: tuple[tuple[RepositoryAccess, ...], tuple[RepositoryAccess, ...]] = ((), ())
    """Repositories and templates whose credentials may push, and are for nothing else."""

    def access(self, url: str, project: str = "", *, charts: bool = False) -> RepositoryAccess | None:
        """Return the access to ``url`` for an application of ``project``; None: nothing is configured.

        ``charts``: it holds charts or artifacts, so Secrets of these types count too. Raises :class:`SourceError` if
        the matching Secret is invalid.
        """
        own = _of_project([one for one in self._known(charts) if _same(one.url, url, charts)], project)
        found = own or RepositoryAccess(url)
        if not found.has_credentials:
            found = _filled(found, self._template(url, project, charts))
        if found.problem:
            raise SourceError(
                Problem.DENIED,
                f"repository {mask_credentials(url)}: Secret {found.name}: {found.problem}",
                subject=url,
                field="spec.source.repoURL",
            )
        found = replace(found, url=url, ca_pem=self.authority(url), known_hosts=self.known_hosts)
        return found if found != RepositoryAccess(url) else None

    def write_access(self, url: str, project: str = "") -> RepositoryAccess | None:
        """Like :meth:`access`, for pushing hydrated manifests; read credentials do not count."""
        repositories, templates = self.pushing
        return replace(self, repositories=repositories, templates=templates).access(url, project)

    def anonymous(self, url: str) -> RepositoryAccess:
        """Return the access to ``url`` without credentials, only with its trusted certificates."""
        return RepositoryAccess(url, anonymous=True, ca_pem=self.authority(url), known_hosts=self.known_hosts)

    def is_of_project(self, url: str, project: str, *, charts: bool = False) -> bool:
        """Return True if a Secret of ``project`` names ``url``: then the project may read it (upstream)."""
        return any(one.project == project and _same(one.url, url, charts) for one in self.repositories if project)

    def stamp(self, project: str) -> str:
        """Return a value that changes when the addresses of ``project``'s Secrets do."""
        return " ".join(sorted(one.url for one in self.repositories if project and one.project == project))

    def authority(self, url: str) -> str:
        """Return the PEM of the certificate authority for the host of ``url``, empty for the machine's."""
        try:
            address = parse_address(url, charts=True)
        except SourceError:
            return ""
        host = address.host or address.key.partition("/")[0]
        named = (f"{host}:{address.port}", f"[{host}]:{address.port}") if address.port else (host,)
        return next((self.certificates[one] for one in (*named, host) if one in self.certificates), "")

    def named(self, alias: str, project: str = "") -> RepositoryAccess | None:
        """Return the chart repository declared under this name."""
        return _of_project([one for one in self._known(charts=True) if alias and one.alias == alias], project)

    def registry(self, url: str, project: str = "") -> RepositoryAccess | None:
        """Return the access of another repository of the same registry, for dependencies without their own."""
        wanted = _bare(url)
        host = wanted.partition("/")[0]
        fitting = [
            one
            for one in self._known(charts=True)
            if (one.enable_oci or one.kind == "oci")
            and _bare(one.url).partition("/")[0] == host
            and (_begins(wanted, _bare(one.url)) or _begins(_bare(one.url), wanted))
        ]
        found = _of_project(fitting, project)
        return None if found is None or found.problem else replace(found, url=url, ca_pem=self.authority(url))

    def _known(self, charts: bool) -> list[RepositoryAccess]:
        return [one for one in self.repositories if charts or not one.is_chart_repository]

    def _template(self, url: str, project: str, charts: bool) -> RepositoryAccess | None:
        known = [one for one in self.templates if charts or not one.is_chart_repository]
        fitting = [one for one in known if one.project in ("", project) and _fits(url, one.url, charts)]
        longest = max((len(prefix_key(one.url, charts=charts)) for one in fitting), default=0)
        return _of_project([one for one in fitting if len(prefix_key(one.url, charts=charts)) == longest], project)


NO_CREDENTIALS = CredentialStore()


def _of_project(found: list[RepositoryAccess], project: str) -> RepositoryAccess | None:
    """Return the project's access first, then one for all projects; of several the first by name."""
    mine = [one for one in found if project and one.project == project]
    return next(iter(mine or [one for one in found if not one.project]), None)


@functools.lru_cache(maxsize=8192)
def _key(url: str, charts: bool) -> str:
    """Return the comparison key; empty for addresses without normal form, which no credentials match."""
    try:
        return parse_address(url.strip(), charts=charts).key if url.strip() else ""
    except SourceError:
        return ""


def _bare(url: str) -> str:
    """Remove the scheme: registries are written with and without."""
    return _key(url, charts=True).removeprefix("oci://")


def _same(one: str, other: str, charts: bool) -> bool:
    wanted = _key(other, charts)
    if not wanted:
        return False
    return _key(one, charts) == wanted or (wanted.startswith("oci://") and _bare(one) == _bare(other))


def _fits(url: str, prefix: str, charts: bool) -> bool:
    wanted = _key(url, charts)
    start = prefix_key(prefix, charts=charts)
    return _begins(wanted, start) or (
        wanted.startswith("oci://") and _begins(_bare(url), prefix_key(prefix, charts=True).removeprefix("oci://"))
    )


def _begins(key: str, start: str) -> bool:
    """Compare prefixes. Unlike upstream the host must match completely, so that credentials for
    ``https://git.example.com`` never go to ``https://git.example.com.evil.org``. The path may end anywhere
    (``…/team-``), as upstream."""
    if not start or not key.startswith(start):
        return False
    rest = key[len(start) :]
    host_only = "/" not in start.split("://", 1)[-1]
    return not host_only or rest == "" or rest[0] in "/:"


def _filled(own: RepositoryAccess, template: RepositoryAccess | None) -> RepositoryAccess:
    if template is None:
        return own
    return replace(
        template,
        project=own.project or template.project,
        proxy=own.proxy or template.proxy,
        no_proxy=own.no_proxy or template.no_proxy,
        insecure=own.insecure or template.insecure,
        kind=own.kind,
        alias=own.alias,
        lfs=own.lfs,
        depth=own.depth,
        force_basic=own.force_basic or template.force_basic,
        enable_oci=own.enable_oci or template.enable_oci,
        plain_http=own.plain_http or template.plain_http,
        signing_key=own.signing_key or template.signing_key,
    )


# -- from objects ---------------------------------------------------------------------------------------------------


def credential_store(secrets: Iterable[Obj], config_maps: Iterable[Obj]) -> CredentialStore:
    """Build the store from Secrets and ConfigMaps of the control namespace; unrelated ones are ignored."""
    by_type: dict[str, list[RepositoryAccess]] = {kind: [] for kind in (*_READING, *_PUSHING)}
    for secret in sorted(secrets, key=name_of):
        kind = labels_of(secret).get(SECRET_TYPE, "")
        if kind in by_type:
            access = _parse(secret)
            if access is not None:
                by_type[kind].append(access)
    maps = {name_of(one): dig(one, "data", default={}) or {} for one in config_maps}
    hosts = maps.get(KNOWN_HOSTS_MAP, {}).get("ssh_known_hosts")
    certificates = {str(host): str(pem) for host, pem in maps.get(CERTIFICATES_MAP, {}).items()}
    repositories, templates, *pushing = (tuple(by_type[kind]) for kind in (*_READING, *_PUSHING))
    return CredentialStore(repositories, templates, hosts, certificates, (pushing[0], pushing[1]))


def _parse(secret: Obj) -> RepositoryAccess | None:
    """Parse a Secret; None if it names no repository. Errors become a ``problem`` that is raised when the Secret is
    used."""
    name = name_of(secret)
    raw = dig(secret, "data", default={}) or {}
    try:
        data = {str(key): base64.b64decode(str(value), validate=True).decode() for key, value in raw.items()}
    except (binascii.Error, UnicodeDecodeError):
        return None
    if not data.get("url"):
        return None
    for key in _SPELLED_ID:  # as upstream's API server writes them for many repositories
        data.setdefault(key, data.get(f"{key[:-2]}ID", ""))
    depth = data.get("depth", "").strip()
    access = RepositoryAccess(
        url=data["url"].strip(),
        name=name,
        project=data.get("project", ""),
        kind=data.get("type") or "git",
        alias=data.get("name", ""),
        username=data.get("username", ""),
        password=_secret(data, "password"),
        bearer_token=_secret(data, "bearerToken"),
        ssh_key=_secret(data, "sshPrivateKey"),
        certificate_pem=data.get("tlsClientCertData", ""),
        certificate_key=_secret(data, "tlsClientCertKey"),
        proxy=_secret(data, "proxy"),
        no_proxy=data.get("noProxy", ""),
        insecure="true" in (data.get("insecure"), data.get("insecureIgnoreHostKey")),
        github_app=_github_app(data),
        google_key=_secret(data, "gcpServiceAccountKey"),
        azure=_azure(data),
        force_basic=data.get("forceHttpBasicAuth") == "true",
        lfs=data.get("enableLfs") == "true",
        depth=int(depth) if depth.isdigit() else 0,
        enable_oci=data.get("enableOCI") == "true",
        plain_http=data.get("insecureOCIForceHttp") == "true",
        signing_key=_secret(data, "commitSigningKey"),
    )
    return replace(access, problem=_problem(data))


def _github_app(data: Mapping[str, str]) -> GitHubApp | None:
    key = _secret(data, "githubAppPrivateKey")
    if key is None:
        return None
    return GitHubApp(
        data.get("githubAppID", "").strip(),
        key,
        data.get("githubAppInstallationID", "").strip(),
        data.get("githubAppEnterpriseBaseUrl", "").strip().rstrip("/"),
    )


def _azure(data: Mapping[str, str]) -> AzurePrincipal | None:
    secret = _secret(data, "azureServicePrincipalClientSecret")
    if secret is None:
        return None
    return AzurePrincipal(
        data.get("azureServicePrincipalTenantId", "").strip(),
        data.get("azureServicePrincipalClientId", "").strip(),
        secret,
        data.get("azureActiveDirectoryEndpoint", "").strip().rstrip("/"),
    )


def _secret(data: Mapping[str, str], key: str) -> Secret | None:
    return Secret(data[key]) if data.get(key) else None


def _problem(data: Mapping[str, str]) -> str:
    for key in _UNSUPPORTED:
        if data.get(key) and data[key] != "false":
            return f"{key} is not supported; use username and password, bearerToken or sshPrivateKey"
    if data.get("githubAppPrivateKey") and not data.get("githubAppID", "").strip().isdigit():
        return "githubAppPrivateKey needs the number of its app in githubAppID"
    azure = ("azureServicePrincipalClientId", "azureServicePrincipalClientSecret", "azureServicePrincipalTenantId")
    missing = [key for key in azure if not data.get(key)]
    if 0 < len(missing) < len(azure):
        return f"a service principal needs {', '.join(missing)} too"
    if data.get("depth") and not data["depth"].strip().isdigit():
        return "depth is not a whole number"
    for key in sorted(data):
        if len(data[key]) > MAX_VALUE:
            return f"{key} is longer than {MAX_VALUE} letters"
        if key in _ONE_LINE and any(ord(letter) < 32 for letter in data[key]):
            return f"{key} contains a line break or a control character; store it without one (printf, not echo)"
    return ""
