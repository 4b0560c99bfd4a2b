"""``syncline repo``: repositories declared by Secrets in argocd's form. Secret values are never printed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from syncline.argo.stores.secrets import fields_of, repository_secret_name, secret_object
from syncline.base.scratch import scratch
from syncline.cli.access.connection import Connection
from syncline.cli.access.declared import declared, namespace_options, plain_fields, remove, write
from syncline.cli.access.snapshots import is_local
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.repository import Declared, repository_rows
from syncline.kube.objects import Obj
from syncline.sources.errors import SourceError, mask_credentials
from syncline.sources.git.mirrors import GitSettings
from syncline.sources.remote.address import parse_address
from syncline.sources.remote.credentials import credential_store
from syncline.sources.sourcing import Sources

CREDENTIALS = (
    "username",
    "password",
    "bearerToken",
    "sshPrivateKey",
    "tlsClientCertKey",
    "githubAppPrivateKey",
    "gcpServiceAccountKey",
    "azureServicePrincipalClientSecret",
)
"""Fields of which one suffices for a repository to have its own credentials."""
refresh_option = click.option("--refresh", type=click.Choice(["hard"]), default=None, help="Connect to it.")
file_type = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(cls=Group, context_settings=CONTEXT)
def repo() -> None:
    """Manage repositories and their credentials.

    \b
    Example:  syncline repo add https://github.com/org/private --username me --password-stdin < token
    """


@repo.command()
@click.argument("url")
@click.option("--name", default="", help="A name for people.")
@click.option("--type", "kind", type=click.Choice(["git", "helm", "oci"]), default="git", show_default=True)
@click.option("--project", default="", help="Only for Applications of this project.")
@click.option("--username", default="")
@click.option("--password", default="", help="Seen by others in the list of processes; better --password-stdin.")
@click.option("--password-stdin", is_flag=True, help="Read the password from the standard input.")
@click.option("--bearer-token", default="")
@click.option("--ssh-private-key-path", type=file_type, default=None)
@click.option("--tls-client-cert-path", type=file_type, default=None)
@click.option("--tls-client-cert-key-path", type=file_type, default=None)
@click.option(
    "--insecure-skip-server-verification",
    "--insecure-ignore-host-key",
    "insecure",
    is_flag=True,
    help="Check no certificates and host keys.",
)
@click.option("--enable-lfs", is_flag=True)
@click.option("--enable-oci", is_flag=True)
@click.option("--insecure-oci-force-http", is_flag=True, help="A registry without TLS.")
@click.option("--force-http-basic-auth", is_flag=True, help="Show the password without being asked for it.")
@click.option("--depth", default=0, show_default=True, help="Commits of history that are brought; 0: all.")
@click.option("--github-app-id", default="", help="Number of a GitHub App that opens it.")
@click.option("--github-app-installation-id", default="", help="[default: that of the owner]")
@click.option("--github-app-private-key-path", type=file_type, default=None)
@click.option("--github-app-enterprise-base-url", default="", help="As https://git.example.com/api/v3.")
@click.option("--gcp-service-account-key-path", type=file_type, default=None)
@click.option("--proxy", default="")
@click.option("--no-proxy", default="")
@click.option("--upsert", is_flag=True, help="Change what is declared for this URL.")
@namespace_options
def add(url: str, upsert: bool, namespace: str, kubeconfig: str | None, context: str | None, **given: Any) -> None:
    """Declare a repository, with its credentials.

    \b
    Example:  syncline repo add git@github.com:org/private.git --ssh-private-key-path ~/.ssh/deploy
    """
    fields = repository_fields(url, given)
    secret = secret_object("repository", namespace, repository_secret_name(url, given["project"]), fields)
    with Connection(kubeconfig, context) as link:
        did = write(link, secret, upsert=upsert, what="repository")
    print(f"Repository '{mask_credentials(url)}' {'added' if did == 'created' else did}")


def _check_flags(url: str, given: dict[str, Any]) -> None:
    """Refuse contradictory flags (rules: ``repo add`` of argocd and its API server). Raises CommandFailed."""
    https = url.lower().startswith("https://")
    client = (given["tls_client_cert_path"], given["tls_client_cert_key_path"])
    password = given["password"] or given["password_stdin"]
    rules = (
        (
            given["ssh_private_key_path"] and "://" in url and not url.startswith("ssh://"),
            "--ssh-private-key-path is only supported for SSH repositories.",
        ),
        (any(client) and not https, "--tls-client-cert-path is only supported for HTTPS repositories"),
        (any(client) and not all(client), "give --tls-client-cert-path and --tls-client-cert-key-path together"),
        (given["bearer_token"] and not https, "--bearer-token is only supported for HTTPS repositories"),
        (given["bearer_token"] and password, "only --bearer-token or --password is allowed, not both"),
        (given["bearer_token"] and given["username"], "give --bearer-token or --username, not both"),
        (
            given["bearer_token"] and https and given["kind"] != "git",
            "--bearer-token is only supported for Git repositories",
        ),
        (given["enable_oci"] and given["kind"] == "git", "--enable-oci is for --type helm"),
        (given["enable_lfs"] and given["kind"] != "git", "--enable-lfs is for --type git"),
        (given["depth"] < 0, f"--depth {given['depth']}: give 0 for everything, or a positive number"),
    )
    for wrong, words in rules:
        if wrong:
            raise CommandFailed(words, USAGE)


def repository_fields(url: str, given: dict[str, Any]) -> dict[str, str]:
    """Return the fields of the Secret. Reads the files and, if requested, standard input."""
    if given["kind"] == "helm" and not given["name"]:
        raise CommandFailed("a Helm repository needs --name", USAGE)
    if given["password_stdin"] and given["password"]:
        raise CommandFailed("give --password or --password-stdin, not both", USAGE)
    _check_flags(url, given)
    password = sys.stdin.read().rstrip("\n") if given["password_stdin"] else given["password"]
    files = {
        "sshPrivateKey": given["ssh_private_key_path"],
        "tlsClientCertData": given["tls_client_cert_path"],
        "tlsClientCertKey": given["tls_client_cert_key_path"],
        "githubAppPrivateKey": given["github_app_private_key_path"],
        "gcpServiceAccountKey": given["gcp_service_account_key_path"],
    }
    switches = {
        "insecure": "insecure",
        "enableLfs": "enable_lfs",
        "enableOCI": "enable_oci",
        "insecureOCIForceHttp": "insecure_oci_force_http",
        "forceHttpBasicAuth": "force_http_basic_auth",
    }
    return {
        "url": url,
        "type": given["kind"],
        "name": given["name"],
        "project": given["project"],
        "username": given["username"],
        "password": password,
        "bearerToken": given["bearer_token"],
        "proxy": given["proxy"],
        "noProxy": given["no_proxy"],
        "githubAppID": given["github_app_id"],
        "githubAppInstallationID": given["github_app_installation_id"],
        "githubAppEnterpriseBaseUrl": given["github_app_enterprise_base_url"],
        "depth": str(given["depth"]) if given["depth"] else "",
        **{key: path.read_text(encoding="utf-8") for key, path in files.items() if path is not None},
        **{key: "true" for key, flag in switches.items() if given[flag]},
    }


@repo.command("list")
@refresh_option
@output_option("url", "json", "yaml")
@namespace_options
def list_repositories(
    refresh: str | None, output: str | None, namespace: str, kubeconfig: str | None, context: str | None
) -> None:
    """List declared repositories. STATUS is Unknown unless --refresh asks each of them, from this machine.

    \b
    Example:  syncline repo list --refresh hard
    """
    with Connection(kubeconfig, context) as link:
        secrets, templates = declared(link, namespace, "repository"), declared(link, namespace, "repo-creds")
        found = declared_repositories(secrets, templates)
        if refresh:
            found = connected(secrets, templates, local=is_local(link))
    if output in ("json", "yaml"):
        print_documents([one.to_obj() for one in found], output)
    elif output == "url":
        print("\n".join(one.url for one in found))
    else:
        print(repository_rows(found))


def declared_repositories(secrets: Iterable[Obj], templates: Iterable[Obj]) -> list[Declared]:
    """Return repositories sorted by URL, from Secrets of the types ``repository`` and ``repo-creds``."""
    prefixes = _prefixes(templates)
    found = [_declared(secret, prefixes) for secret in secrets]
    return sorted(found, key=lambda one: (one.url, one.project))


def connected(secrets: list[Obj], templates: list[Obj], *, local: bool) -> list[Declared]:
    """As :func:`declared_repositories`, after a query to each for branches or charts. ``local``: paths too."""
    book = credential_store([*secrets, *templates], [])
    with scratch() as folder:
        sources = Sources(GitSettings(folder, allow_local=local))
        sources.learn(book)
        found = [(_declared(one, _prefixes(templates)), plain_fields(one).get("url", "")) for one in secrets]
        answers = [_asked(sources, one, url) for one, url in found]
    return sorted(answers, key=lambda one: (one.url, one.project))


def _asked(sources: Sources, one: Declared, url: str) -> Declared:
    try:
        if one.kind == "git":
            sources.git.repository(url, one.project).refs()
        else:
            sources.artifacts.connect(url, one.project)
    except SourceError as error:
        return replace(one, status="Failed", message=mask_credentials(str(error)))
    return replace(one, status="Successful")


def _prefixes(templates: Iterable[Obj]) -> list[str]:
    return [prefix for one in templates if (prefix := plain_fields(one).get("url"))]


def _declared(secret: Obj, prefixes: list[str]) -> Declared:
    shown, known = plain_fields(secret), fields_of(secret)
    own = any(known.get(key) for key in CREDENTIALS)
    inherited = any(shown.get("url", "").startswith(prefix) for prefix in prefixes)
    return Declared(
        url=mask_credentials(shown.get("url", "")),
        name=shown.get("name", ""),
        kind=shown.get("type") or "git",
        project=shown.get("project", ""),
        insecure="true" in (shown.get("insecure"), shown.get("insecureIgnoreHostKey")),
        oci=shown.get("enableOCI") == "true",
        lfs=shown.get("enableLfs") == "true",
        credentials="true" if own else "inherited" if inherited else "false",
    )


@repo.command()
@click.argument("url")
@click.option("--project", default="", help="The one of this project.")
@refresh_option
@output_option("url", "json", "yaml")
@namespace_options
def get(url: str, project: str, refresh: str | None, output: str | None, namespace: str, **given: Any) -> None:
    """Show one declared repository, without its credentials.

    \b
    Example:  syncline repo get https://github.com/org/private
    """
    with Connection(given["kubeconfig"], given["context"]) as link:
        secrets, templates = [_secret(link, namespace, url, project)], declared(link, namespace, "repo-creds")
        if refresh:
            found = connected(secrets, templates, local=is_local(link))[0]
        else:
            found = declared_repositories(secrets, templates)[0]
    if output in ("json", "yaml"):
        print_documents(found.to_obj(), output)
    else:
        print(found.url if output == "url" else repository_rows([found]))


@repo.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--project", default="", help="The ones of this project.")
@namespace_options
def rm(urls: tuple[str, ...], project: str, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Remove declared repositories; Applications that use them stay.

    \b
    Example:  syncline repo rm https://github.com/org/private
    """
    with Connection(kubeconfig, context) as link:
        for url in urls:
            remove(link, _secret(link, namespace, url, project))
            print(f"Repository '{url}' removed")


def _secret(link: Connection, namespace: str, url: str, project: str) -> Obj:
    """Return the Secret for this URL and ``project``; without a project, the only one of this URL."""
    every = ((secret, plain_fields(secret)) for secret in declared(link, namespace, "repository"))
    found = [(secret, shown) for secret, shown in every if _names(url, shown)]
    fitting = [secret for secret, shown in found if shown.get("project", "") == project]
    if fitting or (len(found) == 1 and not project):
        return fitting[0] if fitting else found[0][0]
    projects = ", ".join(sorted(shown.get("project") or "none" for _, shown in found))
    hint = f"it is in projects {projects}; give --project" if found else "`syncline repo list` shows those that are"
    raise CommandFailed(f"repository '{url}' is not declared{f' in project {project}' if project else ''}; {hint}")


def _names(url: str, shown: Mapping[str, str]) -> bool:
    known = shown.get("url", "")
    return url in (known, mask_credentials(known)) or _key(url) == _key(known) != ""


def _key(url: str) -> str:
    try:
        return parse_address(url).key
    except SourceError:
        return ""
