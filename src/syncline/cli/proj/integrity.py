"""``syncline proj source-integrity git policies``: the required signatures on commits of a project's repositories."""

from __future__ import annotations

from typing import Any

import click

from syncline.cli.access.connection import Connection
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, LazyGroup
from syncline.cli.frame.output import output_option, print_documents, table
from syncline.cli.proj.entries import key_id
from syncline.cli.proj.target import change_spec, get_project, namespace_options
from syncline.kube.objects import Obj, dig

MODES = click.Choice(["strict", "head", "none"])
POLICY_VERBS: dict[str, tuple[str, str]] = {
    "add": ("proj.integrity:add", "Add a policy."),
    "delete": ("proj.integrity:delete", "Delete policies by their IDs."),
    "list": ("proj.integrity:list_policies", "List the policies of a project."),
    "update": ("proj.integrity:update", "Change a policy."),
}


@click.command(cls=LazyGroup, table={"git": ("proj.integrity:git", "Of Git repositories.")}, context_settings=CONTEXT)
def source_integrity() -> None:
    """Manage the signatures that the sources of a project need.

    \b
    Example:  syncline proj source-integrity git policies list team
    """


@click.command(
    cls=LazyGroup,
    table={"policies": ("proj.integrity:policies", "List and change policies.")},
    context_settings=CONTEXT,
)
def git() -> None:
    """Manage the signatures that commits of a project's repositories need.

    \b
    Example:  syncline proj source-integrity git policies list team
    """


@click.command(cls=LazyGroup, table=POLICY_VERBS, context_settings=CONTEXT)
def policies() -> None:
    """Manage policies; the first one that matches a repository applies.

    \b
    Example:  syncline proj source-integrity git policies add team --repo-url 'https://github.com/team/*' \\
                  --gpg-mode strict --gpg-key 4AEE18F83AFDEB23
    """


def policies_of(spec: Obj) -> list[Obj]:
    """Return the policies as written."""
    found: list[Obj] = dig(spec, "sourceIntegrity", "git", "policies", default=[]) or []
    return found


def with_policies(spec: Obj, wanted: list[Obj]) -> Obj:
    """Return ``spec`` with these policies; without any the field is removed."""
    rest = {key: value for key, value in spec.items() if key != "sourceIntegrity"}
    return rest | ({"sourceIntegrity": {"git": {"policies": wanted}}} if wanted else {})


def _at(spec: Obj, number: int) -> Obj:
    known = policies_of(spec)
    if not 0 <= number < len(known):
        raise CommandFailed(
            f"policy {number} does not exist; `syncline proj source-integrity git policies list PROJECT` shows "
            f"{len(known)} of them, counted from 0"
        )
    return known[number]


def _listed(before: list[str], wanted: tuple[str, ...], added: tuple[str, ...], gone: tuple[str, ...]) -> list[str]:
    """Return ``wanted`` if given; else ``before`` without ``gone`` and with ``added``."""
    if wanted:
        return list(dict.fromkeys(wanted))
    return list(dict.fromkeys([*(one for one in before if one not in gone), *added]))


def changed_policy(policy: Obj, given: dict[str, Any]) -> Obj:
    """Return ``policy`` changed by the flags of ``update``. Raises CommandFailed."""
    for flag in ("gpg_key", "repo_url"):
        if given[flag] and (given[f"add_{flag}"] or given[f"delete_{flag}"]):
            name = flag.replace("_", "-")
            raise CommandFailed(f"--{name} takes the place of all; give it, or --add-{name} and --delete-{name}", USAGE)
    keys, new, gone = (tuple(map(key_id, given[flag])) for flag in ("gpg_key", "add_gpg_key", "delete_gpg_key"))
    urls = [str(one.get("url") or "") for one in policy.get("repos") or []]
    urls = _listed(urls, given["repo_url"], given["add_repo_url"], given["delete_repo_url"])
    gpg = dict(policy.get("gpg") or {}) | ({"mode": given["gpg_mode"]} if given["gpg_mode"] else {})
    gpg["keys"] = _listed([str(one) for one in gpg.get("keys") or []], keys, new, gone)
    return policy | {"repos": [{"url": url} for url in urls], "gpg": gpg}


@click.command("list")
@click.argument("project")
@output_option("json", "yaml")
@namespace_options
def list_policies(project: str, output: str | None, namespace: str, **given: Any) -> None:
    """List the policies of a project; the ID counts from 0.

    \b
    Example:  syncline proj source-integrity git policies list team
    """
    with Connection(given["kubeconfig"], given["context"]) as link:
        found = policies_of(dig(get_project(link, namespace, project), "spec", default={}))
    if output:
        print_documents(found, output)
        return
    rows = [
        (
            str(number),
            str(dig(one, "gpg", "mode", default="")),
            ", ".join(dig(one, "gpg", "keys", default=[]) or []),
            ", ".join(str(repo.get("url")) for repo in one.get("repos") or []),
        )
        for number, one in enumerate(found)
    ]
    print(table(("ID", "GPG-MODE", "GPG-KEYS", "REPO-URLS"), rows))


@click.command()
@click.argument("project")
@click.option("--repo-url", multiple=True, required=True, help="Glob of repositories; repeatable.")
@click.option("--gpg-mode", type=MODES, required=True, help="strict: every commit; head: the newest; none.")
@click.option("--gpg-key", multiple=True, help="Id of a key that is trusted; repeatable.")
@namespace_options
def add(project: str, **given: Any) -> None:
    """Add a policy at the end.

    \b
    Example:  syncline proj source-integrity git policies add team --repo-url '*' --gpg-mode head \\
                  --gpg-key 4AEE18F83AFDEB23
    """
    empty = dict.fromkeys(("add_gpg_key", "delete_gpg_key", "add_repo_url", "delete_repo_url"), ())
    made = changed_policy({}, given | empty)
    change_spec(given, project, lambda spec: with_policies(spec, [*policies_of(spec), made]))


@click.command()
@click.argument("project")
@click.argument("numbers", nargs=-1, required=True, type=int, metavar="POLICY_ID...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@namespace_options
def delete(project: str, numbers: tuple[int, ...], yes: bool, **given: Any) -> None:
    """Delete policies by their IDs. Without any policy no signature is needed.

    \b
    Example:  syncline proj source-integrity git policies delete team 1 --yes
    """

    def change(spec: Obj) -> Obj:
        for number in numbers:
            _at(spec, number)
        return with_policies(spec, [one for at, one in enumerate(policies_of(spec)) if at not in numbers])

    asked = f"Delete policies {', '.join(map(str, sorted(set(numbers))))} of project '{project}'?"
    if not yes and not click.confirm(asked):
        raise CommandFailed("nothing was deleted; give --yes to be asked nothing")
    change_spec(given, project, change)


@click.command()
@click.argument("project")
@click.argument("number", type=int, metavar="POLICY_ID")
@click.option("--repo-url", multiple=True, help="These globs instead of all; repeatable.")
@click.option("--add-repo-url", multiple=True, help="One glob more; repeatable.")
@click.option("--delete-repo-url", multiple=True, help="Without this glob; repeatable.")
@click.option("--gpg-mode", type=MODES, default=None, help="strict: every commit; head: the newest; none.")
@click.option("--gpg-key", multiple=True, help="These keys instead of all; repeatable.")
@click.option("--add-gpg-key", multiple=True, help="One key more; repeatable.")
@click.option("--delete-gpg-key", multiple=True, help="Without this key; repeatable.")
@click.option("-y", "--yes", is_flag=True, help="Taken for compatibility; nothing is asked.")
@namespace_options
def update(project: str, number: int, **given: Any) -> None:
    """Change a policy by its ID.

    \b
    Example:  syncline proj source-integrity git policies update team 0 --add-gpg-key 4AEE18F83AFDEB23
    """

    def change(spec: Obj) -> Obj:
        made = changed_policy(_at(spec, number), given)
        return with_policies(spec, [made if at == number else one for at, one in enumerate(policies_of(spec))])

    change_spec(given, project, change)
