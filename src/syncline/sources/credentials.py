"""Which credentials a repository is reached with: the Secrets and ConfigMaps that people know, read into values.

``assembly`` makes a :class:`CredentialBook` from the objects of the control namespace; ``sources/git.py`` asks it for a
repository's access, and ``sources/git_access.py`` hands that to git. Pure. Rules: Argo CD ``util/db`` (reference
argocd-app 5.8): a repository's own Secret first, that of its project before one for all; what it lacks comes from the
``repo-creds`` with the longest prefix. Values stand in :class:`Secret` and in no message.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from syncline.base.secret import Secret
from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.sources.address import normalize_url
from syncline.sources.errors import Problem, SourceError, mask_credentials

__all__ = [
    "CERTIFICATES_MAP",
    "KNOWN_HOSTS_MAP",
    "NO_CREDENTIALS",
    "SECRET_TYPE",
    "CredentialBook",
    "GitAccess",
    "credential_book",
]

SECRET_TYPE = "argocd.argoproj.io/secret-type"
KNOWN_HOSTS_MAP = "argocd-ssh-known-hosts-cm"
CERTIFICATES_MAP = "argocd-tls-certs-cm"
MAX_VALUE = 65536
"""Letters of one credential; the largest real ones are RSA keys of 16,384 bits."""
_UNSUPPORTED = ("githubAppPrivateKey", "gcpServiceAccountKey", "azureServicePrincipalClientSecret")
_ONE_LINE = ("username", "password", "bearerToken", "proxy", "noProxy")
_OTHER_TYPES = ("helm", "oci")


@dataclass(frozen=True, slots=True)
class GitAccess:
    """How one repository is reached. ``name`` is the Secret's, for messages; ``project`` owns it (empty: nobody)."""

    url: str
    name: str = ""
    project: str = ""
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
    problem: str = ""
    """Why it cannot be used, empty if it can."""

    @property
    def has_credentials(self) -> bool:
        """Upstream: then no ``repo-creds`` fills it."""
        keys = (self.password, self.bearer_token, self.ssh_key, self.certificate_key)
        return bool(self.username or self.problem) or any(key is not None for key in keys)

    def mask(self, text: str) -> str:
        """``text`` without any value of this access, should a program have repeated one."""
        for secret in (self.password, self.bearer_token, self.ssh_key, self.certificate_key, self.proxy):
            if secret is not None and secret.reveal():
                text = text.replace(secret.reveal(), "***")
        return text


@dataclass(frozen=True)
class CredentialBook:
    """Everything that is known about repositories at one moment."""

    repositories: tuple[GitAccess, ...] = ()
    templates: tuple[GitAccess, ...] = ()
    known_hosts: str | None = None
    certificates: Mapping[str, str] = field(default_factory=dict)
    """PEM of certificate authorities by host."""

    def access(self, url: str, project: str = "") -> GitAccess | None:
        """How ``url`` is reached for an application of ``project``; None: without anything of ours.

        Raises :class:`SourceError` where the Secret that decides cannot be used.
        """
        own = self._own(url, project)
        found = own or GitAccess(url)
        if not found.has_credentials:
            found = _filled(found, self._template(url, project))
        if found.problem:
            raise SourceError(
                Problem.DENIED,
                f"repository {mask_credentials(url)}: Secret {found.name}: {found.problem}",
                subject=url,
                field="spec.source.repoURL",
            )
        host = urlsplit(url).hostname or ""
        found = replace(found, url=url, ca_pem=self.certificates.get(host, ""), known_hosts=self.known_hosts)
        return found if found != GitAccess(url) else None

    def _own(self, url: str, project: str) -> GitAccess | None:
        wanted = normalize_url(url)
        same = [one for one in self.repositories if wanted and normalize_url(one.url) == wanted]
        return _of_project(same, project)

    def _template(self, url: str, project: str) -> GitAccess | None:
        wanted = normalize_url(url)
        fitting = [one for one in self.templates if one.project in ("", project) and _begins(wanted, one.url)]
        longest = max((len(normalize_url(one.url)) for one in fitting), default=0)
        return _of_project([one for one in fitting if len(normalize_url(one.url)) == longest], project)


NO_CREDENTIALS = CredentialBook()


def _of_project(found: list[GitAccess], project: str) -> GitAccess | None:
    """That of the project first, else one that is everybody's; of several the first by name."""
    mine = [one for one in found if project and one.project == project]
    return next(iter(mine or [one for one in found if not one.project]), None)


def _begins(url: str, prefix: str) -> bool:
    """Upstream compares letters; here the host must be whole, so that credentials for ``https://git.example.com`` never
    go to ``https://git.example.com.evil.org``. The path may be cut anywhere (``…/team-``), as upstream."""
    start = normalize_url(prefix)
    if not start or not url.startswith(start):
        return False
    rest = url[len(start) :]
    host_only = "/" not in start.split("://", 1)[-1]
    return not host_only or rest == "" or rest[0] in "/:"


def _filled(own: GitAccess, template: GitAccess | None) -> GitAccess:
    if template is None:
        return own
    return replace(
        template,
        project=own.project or template.project,
        proxy=own.proxy or template.proxy,
        no_proxy=own.no_proxy or template.no_proxy,
        insecure=own.insecure or template.insecure,
    )


# -- from objects ---------------------------------------------------------------------------------------------------


def credential_book(secrets: Iterable[Obj], config_maps: Iterable[Obj]) -> CredentialBook:
    """From the Secrets and ConfigMaps of the control namespace; others among them are passed over."""
    by_type: dict[str, list[GitAccess]] = {"repository": [], "repo-creds": []}
    for secret in sorted(secrets, key=name_of):
        kind = labels_of(secret).get(SECRET_TYPE, "")
        if kind in by_type:
            access = _parse(secret)
            if access is not None:
                by_type[kind].append(access)
    maps = {name_of(one): dig(one, "data", default={}) or {} for one in config_maps}
    hosts = maps.get(KNOWN_HOSTS_MAP, {}).get("ssh_known_hosts")
    certificates = {str(host): str(pem) for host, pem in maps.get(CERTIFICATES_MAP, {}).items()}
    return CredentialBook(tuple(by_type["repository"]), tuple(by_type["repo-creds"]), hosts, certificates)


def _parse(secret: Obj) -> GitAccess | None:
    """None: it is not about git. What cannot be used becomes a ``problem`` that is told when it would decide."""
    name = name_of(secret)
    raw = dig(secret, "data", default={}) or {}
    try:
        data = {str(key): base64.b64decode(str(value), validate=True).decode() for key, value in raw.items()}
    except (binascii.Error, UnicodeDecodeError):
        return None
    if data.get("type") in _OTHER_TYPES or not data.get("url"):
        return None
    access = GitAccess(
        url=data["url"].strip(),
        name=name,
        project=data.get("project", ""),
        username=data.get("username", ""),
        password=_secret(data, "password"),
        bearer_token=_secret(data, "bearerToken"),
        ssh_key=_secret(data, "sshPrivateKey"),
        certificate_pem=data.get("tlsClientCertData", ""),
        certificate_key=_secret(data, "tlsClientCertKey"),
        proxy=_secret(data, "proxy"),
        no_proxy=data.get("noProxy", ""),
        insecure="true" in (data.get("insecure"), data.get("insecureIgnoreHostKey")),
    )
    return replace(access, problem=_problem(data))


def _secret(data: Mapping[str, str], key: str) -> Secret | None:
    return Secret(data[key]) if data.get(key) else None


def _problem(data: Mapping[str, str]) -> str:
    for key in _UNSUPPORTED:
        if data.get(key):
            return f"{key} is not supported; use username and password, bearerToken or sshPrivateKey"
    for key in sorted(data):
        if len(data[key]) > MAX_VALUE:
            return f"{key} is longer than {MAX_VALUE} letters"
        if key in _ONE_LINE and any(ord(letter) < 32 for letter in data[key]):
            return f"{key} contains a line break or a control character; store it without one (printf, not echo)"
    return ""
