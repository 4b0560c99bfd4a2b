"""Connects to a repository with the credentials that a Secret would hold, before it is declared: :func:`probe`.

Called by the server and by ``syncline repo list --refresh``. Blocking. The question goes through the clients that read
sources, with their bounds and forbidden networks; nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import urlsplit

from syncline.argo.stores.secrets import fields_of
from syncline.base.scratch import scratch
from syncline.kube.objects import Obj
from syncline.sources.errors import Problem, SourceError, mask_credentials
from syncline.sources.git.mirrors import GitSettings
from syncline.sources.remote.address import Networks, is_forbidden
from syncline.sources.remote.credentials import credential_store
from syncline.sources.sourcing import Sources

BESIDE = ("proxy", "githubAppEnterpriseBaseUrl", "azureActiveDirectoryEndpoint")
"""Fields with further addresses that are connected to."""
CHARTS = ("helm", "oci")


def probe(settings: GitSettings, secret: Obj, config_maps: Iterable[Obj], networks: Networks) -> None:
    """Ask the repository of a Secret for its branches, or for its index. Raises :class:`SourceError`."""
    fields = fields_of(secret)
    check_beside(fields, networks)
    url, project, kind = fields.get("url", ""), fields.get("project", ""), fields.get("type") or "git"
    if kind not in ("git", *CHARTS):
        raise SourceError(Problem.INVALID, f'unsupported repository type "{kind}"')
    with scratch() as folder:
        sources = Sources(replace(settings, cache_directory=folder))
        sources.learn(credential_store([secret], config_maps))
        sources.learn_rules(replace(sources.rules, networks=networks))
        if kind in CHARTS:
            sources.artifacts.connect(url, project)
        else:
            sources.git.repository(url, project).refs()


def check_beside(fields: dict[str, str], networks: Networks) -> None:
    """Raise :class:`SourceError` if a proxy or an endpoint for tokens lies in a network that is forbidden."""
    for key in BESIDE:
        text = fields.get(key, "")
        try:
            host = urlsplit(text if "://" in text else f"//{text}").hostname or ""
        except ValueError:
            raise SourceError(Problem.INVALID, f"{key} is no address") from None
        if is_forbidden(host, networks):
            shown = mask_credentials(text)
            raise SourceError(Problem.REFUSED, f"{key} {shown} lies in a network that repositories may not name")
