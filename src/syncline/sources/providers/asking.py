"""Asks Git hosts what generators want to know: :func:`repositories`, :func:`pull_requests`, :func:`references`.

``assembly`` reads the Secrets that :func:`references` names, then calls one of the others in a worker thread. Rules:
upstream's ``generators/scm_provider.go`` and ``generators/pull_request.go``; what differs is in docs/compatibility.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from syncline.base.secret import Secret
from syncline.kube.objects import dig
from syncline.sources.errors import Problem
from syncline.sources.git.github_app import with_token
from syncline.sources.providers import azure, bitbucket_cloud, bitbucket_server, gitea, github, gitlab
from syncline.sources.providers.client import Client, Host
from syncline.sources.providers.codecommit import CodeCommit
from syncline.sources.providers.filters import Provider, choose, choose_pull_requests
from syncline.sources.providers.model import ProviderError, PullRequest, Repository, SecretReference
from syncline.sources.providers.reach import Reach
from syncline.sources.remote.credentials import GitHubApp, RepositoryAccess
from syncline.sources.remote.web import basic, origin_of

Spec = Mapping[str, Any]
Secrets = Mapping[SecretReference, Secret]
"""Values by reference; those of ConfigMaps as well. A reference that is optional may be missing."""
APP_KEYS = ("githubAppID", "githubAppPrivateKey")
OPTIONAL_APP_KEYS = ("githubAppInstallationID", "githubAppEnterpriseBaseUrl", "url")


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of host, as upstream's fields name it. The credentials are the first of ``tokens`` that is given."""

    name: str
    sign: Callable[[Spec, str], str]
    """Makes the value of the header from the spec and the credential."""
    header: str = "Authorization"
    tokens: tuple[tuple[str, ...], ...] = (("tokenRef",),)
    address: Callable[[str], str] = str
    """Makes the base address from ``api``."""
    headers: Mapping[str, str] | None = None
    public: str = ""
    """The key of its address in ``Reach.bases``; empty: ``api`` is required."""
    repositories: Callable[[Client, Spec, str], Provider] | None = None
    pull_requests: Callable[[Client, Spec], Any] | None = None


def _plain(_spec: Spec, token: str) -> str:
    return token


def _bearer(_spec: Spec, token: str) -> str:
    return f"Bearer {token}"


def _bearer_or_basic(spec: Spec, token: str) -> str:
    """``appPasswordRef`` belongs to ``user``, ``basicAuth`` has its own; ``bearerToken`` comes before it."""
    if spec.get("appPasswordRef") is None and spec.get("bearerToken") is not None:
        return f"Bearer {token}"
    return basic(str(spec.get("user") or dig(spec, "basicAuth", "username") or ""), token)


def _pat(_spec: Spec, token: str) -> str:
    return basic("", token)


_KINDS: Mapping[str, _Kind] = {
    "github": _Kind(
        "GitHub",
        _bearer,
        address=github.api_address,
        headers=github.HEADERS,
        public="github",
        repositories=github.GitHub,
        pull_requests=github.pull_requests,
    ),
    "gitlab": _Kind(
        "GitLab",
        _plain,
        header="Private-Token",
        address=gitlab.api_address,
        public="gitlab",
        repositories=gitlab.GitLab,
        pull_requests=gitlab.pull_requests,
    ),
    "gitea": _Kind(
        "Gitea",
        lambda _, token: f"token {token}",
        address=gitea.api_address,
        repositories=gitea.Gitea,
        pull_requests=gitea.pull_requests,
    ),
    "bitbucketServer": _Kind(
        "Bitbucket Server",
        _bearer_or_basic,
        tokens=(("bearerToken", "tokenRef"), ("basicAuth", "passwordRef")),
        address=bitbucket_server.api_address,
        headers=bitbucket_server.HEADERS,
        repositories=bitbucket_server.BitbucketServer,
        pull_requests=bitbucket_server.pull_requests,
    ),
    "azureDevOps": _Kind(
        "Azure DevOps",
        _pat,
        tokens=(("accessTokenRef",),),
        public="azureDevOps",
        repositories=azure.AzureDevOps,
    ),
    "bitbucket": _Kind(
        "Bitbucket",
        _bearer_or_basic,
        tokens=(("appPasswordRef",), ("bearerToken", "tokenRef"), ("basicAuth", "passwordRef")),
        public="bitbucket",
        repositories=bitbucket_cloud.BitbucketCloud,
        pull_requests=bitbucket_cloud.pull_requests,
    ),
    "azuredevops": _Kind("Azure DevOps", _pat, public="azureDevOps", pull_requests=azure.pull_requests),
}
"""In upstream's order: the first that a generator has is asked."""


def repositories(spec: Spec, secrets: Secrets, reach: Reach) -> tuple[Repository, ...]:
    """Return the branches that an ``scmProvider`` takes. Raises :class:`SourceError`, for a host that refuses or asks
    to wait :class:`ProviderError`."""
    name, kind, given = _chosen(spec)
    protocol, filters = str(spec.get("cloneProtocol") or ""), spec.get("filters") or ()
    if kind is None and isinstance(spec.get("awsCodeCommit"), Mapping):
        with closing(CodeCommit(spec["awsCodeCommit"], protocol, reach)) as provider:
            return choose(provider, filters)
    if kind is None or kind.repositories is None:
        raise ProviderError(Problem.INVALID, "no SCM provider implementation configured", field="scmProvider")
    check_allowed(spec, reach)
    with closing(Client(_host(name, kind, given, secrets, reach), reach)) as client:
        return choose(kind.repositories(client, given, protocol), filters)


def pull_requests(spec: Spec, secrets: Secrets, reach: Reach) -> tuple[PullRequest, ...]:
    """Return the open pull requests of a ``pullRequest``, after its filters where it has any. Raises like
    :func:`repositories`; :class:`ProviderError` with ``not_found`` if the repository does not exist."""
    name, kind, given = _chosen(spec)
    if kind is None or kind.pull_requests is None:
        raise ProviderError(Problem.INVALID, "no Pull Request provider implementation configured", field="pullRequest")
    check_allowed(spec, reach)
    with closing(Client(_host(name, kind, given, secrets, reach), reach)) as client:
        return choose_pull_requests(kind.pull_requests(client, given), spec.get("filters") or ())


def check_allowed(spec: Spec, reach: Reach) -> None:
    """Raise :class:`ProviderError` if the administrator does not allow the ``api`` of the generator, which has to be
    one of the list letter by letter (upstream's ``ScmProviderAllowed``). Without ``api`` the public host is asked."""
    api = str(_chosen(spec)[2].get("api") or "")
    if api and reach.allowed and api not in reach.allowed:
        message = f'scm provider "{api}" not allowed, must use one of the following: {", ".join(reach.allowed)}'
        raise ProviderError(Problem.REFUSED, message, field="api")


def references(spec: Spec, namespace: str, control_namespace: str = "argocd") -> tuple[SecretReference, ...]:
    """Return the keys of Secrets and ConfigMaps that have to be read before the host is asked. Those of a GitHub App
    are in the control namespace, all others in ``namespace``, the one of the set."""
    _, kind, given = _chosen(spec)
    if kind is None:
        return ()
    found = []
    if app := _app_secret(given):
        keys = [(key, False) for key in APP_KEYS] + [(key, True) for key in OPTIONAL_APP_KEYS]
        found = [SecretReference(control_namespace, app, key, purpose="github-app", optional=o) for key, o in keys]
    elif token := _token_reference(kind, given):
        found = [SecretReference(namespace, *token)]
    authority = given.get("caRef") or {}
    if authority:
        place = str(authority.get("configMapName") or ""), str(authority.get("key") or "")
        found.append(SecretReference(namespace, *place, kind="ConfigMap"))
    return tuple(found)


# -- the host of a generator ----------------------------------------------------------------------------------------


def _chosen(spec: Spec) -> tuple[str, _Kind | None, Spec]:
    """Return the field, the kind and the fields of the host that a generator names."""
    for name, kind in _KINDS.items():
        if isinstance(spec.get(name), Mapping):
            return name, kind, spec[name]
    return "", None, {}


def _app_secret(given: Spec) -> str:
    return str(given.get("appSecretName") or "")


def _token_reference(kind: _Kind, given: Spec) -> tuple[str, str] | None:
    for path in kind.tokens:
        found = dig(given, *path)
        if found is not None:
            return str(found.get("secretName") or ""), str(found.get("key") or "")
    return None


def _read(secrets: Secrets, name: str, key: str, kind: str = "Secret", *, optional: bool = False) -> str:
    for reference, value in secrets.items():
        if (reference.name, reference.key, reference.kind) == (name, key, kind):
            return value.reveal()
    if optional:
        return ""
    raise ProviderError(Problem.DENIED, f"{kind} {name} has no key {key!r}", fix=f"add it, or name another {kind}")


def _host(name: str, kind: _Kind, given: Spec, secrets: Secrets, reach: Reach) -> Host:
    authority = given.get("caRef") or {}
    ca_pem = (
        _read(secrets, str(authority.get("configMapName")), str(authority.get("key")), "ConfigMap") if authority else ""
    )
    token, api = "", str(given.get("api") or "")
    if _app_secret(given):
        token, api = _app_token(given, api, secrets, reach)
    elif (reference := _token_reference(kind, given)) is not None:
        token = _read(secrets, *reference).strip()
    api = api or reach.bases.get(kind.public, "")
    if not api:
        raise ProviderError(Problem.INVALID, f"{name} needs an api", field=f"{name}.api", fix="give the host's address")
    return Host(
        kind.name,
        kind.address(api),
        kind.headers or {},
        {kind.header: kind.sign(given, token)} if token else {},
        Secret(token) if token else None,
        given.get("insecure") is True,
        ca_pem,
    )


def _app_token(given: Spec, api: str, secrets: Secrets, reach: Reach) -> tuple[str, str]:
    """Return a token of the GitHub App, and the address that it is for.

    The App's key belongs to the administrator and ``api`` to the author of the set: what the key has signed goes only
    to the host of its own Secret, or to one that the administrator allows. Upstream sends it anywhere.
    """
    name = _app_secret(given)
    own = _read(secrets, name, "githubAppEnterpriseBaseUrl", optional=True).strip()
    api, public = api or own, reach.bases["github"]
    homes = {origin_of(own or public), _api_of(_read(secrets, name, "url", optional=True).strip(), public)}
    if api and origin_of(api) not in homes and api not in reach.allowed:
        message = f"the GitHub App of Secret {name} is not one of {api}"
        fix = "set githubAppEnterpriseBaseUrl in the Secret, or allow the address as an SCM provider"
        raise ProviderError(Problem.REFUSED, message, field="github.api", fix=fix)
    base = github.api_address(api or public)
    owner = str(given.get("organization") or given.get("owner") or "")
    app = GitHubApp(
        _read(secrets, name, "githubAppID").strip(),
        Secret(_read(secrets, name, "githubAppPrivateKey")),
        _read(secrets, name, "githubAppInstallationID", optional=True).strip(),
        base.rstrip("/"),
    )
    access = RepositoryAccess(
        f"https://github.com/{owner}",
        name,
        github_app=app,
        ca_pem=reach.ca_pem,
        proxy=reach.proxy,
        no_proxy=reach.no_proxy,
    )
    found = with_token(access).password
    assert found is not None, "an access with an app gets a token, or an error"
    return found.reveal(), base


def _api_of(url: str, public: str) -> str:
    """Return the origin of the API for a repository's address."""
    return origin_of(public) if urlsplit(url).hostname == "github.com" else origin_of(url) if url else ""
