"""``syncline repocreds``: credentials for all repositories below a URL, in argocd's form."""

from __future__ import annotations

from typing import Any

import click

from syncline.argo.stores.secrets import fields_of, repository_secret_name, secret_object
from syncline.cli.access.connection import Connection
from syncline.cli.access.declared import declared, namespace_options, plain_fields, remove, write
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.output import output_option, print_documents, table
from syncline.cli.remotes.repo import add as add_repository
from syncline.cli.remotes.repo import repository_fields
from syncline.sources.errors import mask_credentials

NOT_SHARED = ("url", "name", "project", "enable_lfs", "depth", "insecure", "no_proxy", "proxy")
KIND = "repo-creds"


@click.group(cls=Group, context_settings=CONTEXT)
def repocreds() -> None:
    """Manage credentials that repositories below a URL share.

    \b
    Example:  syncline repocreds add https://github.com/org --username me --password-stdin < token
    """


@click.command("add")
@click.argument("url")
@click.option("--proxy-url", "proxy", default="", help="Reach them by this proxy.")
def add(url: str, upsert: bool, namespace: str, kubeconfig: str | None, context: str | None, **given: Any) -> None:
    """Declare credentials for every repository whose address begins with URL.

    \b
    Example:  syncline repocreds add git@github.com:org --ssh-private-key-path ~/.ssh/deploy
    """
    none = {"name": "-", "project": "", "enable_lfs": False, "depth": 0, "insecure": False, "no_proxy": ""}
    fields = repository_fields(url, none | given) | {"name": ""}
    secret = secret_object(KIND, namespace, repository_secret_name(url, prefix="creds"), fields)
    with Connection(kubeconfig, context) as link:
        did = write(link, secret, upsert=upsert, what="repository credentials")
    print(f"Repository credentials for '{mask_credentials(url)}' {'added' if did == 'created' else did}")


add.params += [param for param in add_repository.params if param.name not in NOT_SHARED]
repocreds.add_command(add)


@repocreds.command("list")
@output_option("url", "json", "yaml")
@namespace_options
def list_credentials(output: str | None, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """List the addresses for which there are credentials; never the credentials.

    \b
    Example:  syncline repocreds list -o url
    """
    with Connection(kubeconfig, context) as link:
        rows = [
            (
                mask_credentials(plain_fields(one).get("url", "")),
                fields_of(one).get("username", ""),
                _ssh(fields_of(one)),
            )
            for one in declared(link, namespace, KIND)
        ]
    if output in ("json", "yaml"):
        print_documents([{"url": url, "username": user, "sshCreds": ssh == "true"} for url, user, ssh in rows], output)
    elif output == "url":
        print("\n".join(url for url, _, _ in rows))
    else:
        print(table(("URL PATTERN", "USERNAME", "SSH_CREDS"), [(url, user or "-", ssh) for url, user, ssh in rows]))


def _ssh(fields: dict[str, str]) -> str:
    return "true" if fields.get("sshPrivateKey") else "false"


@repocreds.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@namespace_options
def rm(urls: tuple[str, ...], namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Remove the credentials of an address.

    \b
    Example:  syncline repocreds rm https://github.com/org
    """
    with Connection(kubeconfig, context) as link:
        for url in urls:
            found = [one for one in declared(link, namespace, KIND) if plain_fields(one).get("url") == url]
            if not found:
                raise CommandFailed(f"no credentials are declared for '{url}'; `syncline repocreds list` shows them")
            remove(link, found[0])
            print(f"Repository credentials for '{url}' removed")
