"""``syncline admin settings``: validates the settings of argocd-cm and shows their effect on an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click

from syncline.apply.diff.model import DiffSettings
from syncline.apply.diff.normalize import normalize
from syncline.apply.health.overrides import checked_with
from syncline.argo.settings import CONFIG_MAP, parse_system
from syncline.assembly.scripts.lua import LuaWorker
from syncline.base.clock import SystemClock
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.failure import GENERAL, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents, table
from syncline.cli.views.diff import object_text
from syncline.gitops.resource_actions.available import offered_actions, parse_action_scripts, run_action
from syncline.gitops.resource_actions.model import ActionFailed
from syncline.kube import client
from syncline.kube.objects import GVK, Obj, dig, gvk_of, name_of
from syncline.kube.yaml.loading import YamlError, load
from syncline.sources.errors import SourceError
from syncline.sources.kustomize.flags import FIELD as BUILD_OPTIONS
from syncline.sources.kustomize.flags import parse_flags

Data = Mapping[str, str]
GROUPS = ("accounts", "general", "kustomize", "resource-overrides")
file_type = click.Path(exists=True, dir_okay=False, path_type=Path)


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the source of the settings."""
    for option in (
        click.option("-N", "-n", "--app-namespace", "--namespace", "namespace", default="argocd", show_default=True),
        click.option("--load-cluster-settings", "load", is_flag=True, help="Take the settings of the cluster."),
        click.option("--argocd-secret-path", type=file_type, default=None, help="Taken for compatibility; not read."),
        click.option("--argocd-cm-path", "file", type=file_type, default=None, help="A file with the ConfigMap."),
    ):
        command = option(command)
    return connection_options(command)


def _data(given: Mapping[str, Any]) -> Data:
    """Return ``data`` of argocd-cm. Raises CommandFailed."""
    if given["file"] is not None:
        found: Any = _loaded(given["file"])
    elif given["load"]:
        with Connection(given["kubeconfig"], given["context"]) as link:
            info = link.resource(GVK("", "v1", "ConfigMap"))
            found = link.ask(client.get(info, given["namespace"], CONFIG_MAP))
    else:
        raise CommandFailed("give --argocd-cm-path FILE, or --load-cluster-settings", USAGE)
    data = dig(found, "data", default={}) or {}
    wrong = next((key for key, value in data.items() if not isinstance(value, str)), None) if data else None
    if not isinstance(data, dict) or wrong is not None:
        raise CommandFailed(f"{CONFIG_MAP}: data{f'.{wrong}' if wrong else ''} must hold texts", GENERAL)
    return data


def _loaded(file: Path) -> Obj:
    try:
        found = load(file.read_bytes(), file=str(file))
    except (OSError, YamlError) as error:
        raise CommandFailed(str(error), USAGE) from error
    if not isinstance(found, dict):
        raise CommandFailed(f"{file}: one object is wanted", USAGE)
    return found


def checks(data: Data) -> dict[str, tuple[str, ...]]:
    """Return the problems by group of settings."""
    problems = list(parse_system(data).problems)
    overrides = [one for one in problems if "resource.customizations" in one]
    try:
        parse_action_scripts(data)
    except ValueError as error:
        overrides.append(f"{CONFIG_MAP}: {error}")
    kustomize: list[str] = []
    try:
        parse_flags(data.get(BUILD_OPTIONS, ""))
    except SourceError as error:
        kustomize.append(f"{CONFIG_MAP}: {error}")
    general = [one for one in problems if one not in overrides]
    found = {"general": general, "kustomize": kustomize, "resource-overrides": overrides}
    return {group: tuple(found.get(group, ())) for group in GROUPS}


@click.command()
@click.option("--group", "groups", multiple=True, type=click.Choice(GROUPS), help="Only these settings; repeatable.")
@settings_options
def validate(groups: tuple[str, ...], **given: Any) -> None:
    """Check the settings of argocd-cm, group by group. Accounts and single sign-on mean nothing here.

    \b
    Exit codes: 0 all can be read, 20 some cannot
    Example:    syncline admin settings validate --argocd-cm-path argocd-cm.yaml
    """
    found = checks(_data(given))
    for group in groups or GROUPS:
        note = ["not read here: access is Kubernetes RBAC"] if group == "accounts" else []
        print("\n".join([f"{'❌' if found[group] else '✅'} {group}", *found[group], *note]) + "\n")
    wrong = [group for group in groups or GROUPS if found[group]]
    if wrong:
        raise CommandFailed(f"settings that cannot be read: {', '.join(wrong)}", GENERAL)


object_argument = click.argument("file_", metavar="RESOURCE_YAML_PATH", type=file_type)


@click.command()
@object_argument
@settings_options
def health(file_: Path, **given: Any) -> None:
    """Print the health of an object, by the scripts of argocd-cm and the rules for its kind.

    \b
    Example:  syncline admin settings resource-overrides health pod.yaml --argocd-cm-path argocd-cm.yaml
    """
    obj, system = _loaded(file_), parse_system(_data(given))
    with LuaWorker() as worker:
        found = checked_with(system.health, worker)(obj)
    if found is None:
        print(f"Health script is not configured for '{gvk_of(obj).group}/{gvk_of(obj).kind}'")
    else:
        print(f"STATUS: {found.status}\nMESSAGE: {found.message}")


@click.command()
@object_argument
@settings_options
def ignored(file_: Path, **given: Any) -> None:
    """Show the fields of an object that are not compared. Fields of managers are known for live objects only.

    \b
    Example:  syncline admin settings resource-overrides ignore-differences web.yaml --argocd-cm-path argocd-cm.yaml
    """
    obj, system = _loaded(file_), parse_system(_data(given))
    plain = normalize(obj, DiffSettings())
    left = normalize(obj, DiffSettings(overrides=system.overrides))
    if left == plain:
        print(f"No fields are ignored by ignoreDifferences settings for '{gvk_of(obj).group}/{gvk_of(obj).kind}'")
        return
    texts = (object_text(plain).splitlines(), object_text(left).splitlines())
    print("\n".join(["Following fields are ignored:", "", *unified_diff(*texts, "object", "compared", lineterm="")]))


@click.command("list-actions")
@object_argument
@output_option("json", "yaml")
@settings_options
def list_actions(file_: Path, output: str | None, **given: Any) -> None:
    """List the actions that an object offers, those of argocd-cm included.

    \b
    Example:  syncline admin settings resource-overrides list-actions web.yaml --argocd-cm-path argocd-cm.yaml
    """
    obj, data = _loaded(file_), _data(given)
    with LuaWorker() as worker:
        offers = _refusable(lambda: offered_actions(obj, parse_action_scripts(data), worker))
    if output:
        print_documents([one.to_obj() for one in offers], output)
    else:
        print(table(("NAME", "DISABLED"), [(one.name, str(one.disabled).lower()) for one in offers]))


@click.command("run-action")
@object_argument
@click.argument("action")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter; repeatable.")
@settings_options
def run(file_: Path, action: str, params: tuple[str, ...], **given: Any) -> None:
    """Show what an action would write; nothing is written.

    \b
    Example:  syncline admin settings resource-overrides run-action web.yaml restart --argocd-cm-path argocd-cm.yaml
    """
    obj, data = _loaded(file_), _data(given)
    pairs = dict(one.partition("=")[::2] for one in params)
    with LuaWorker() as worker:
        effects = _refusable(
            lambda: run_action(obj, action, pairs, parse_action_scripts(data), worker, SystemClock().now())
        )
    for effect in effects:
        before = "" if gvk_of(effect.obj) != gvk_of(obj) or name_of(effect.obj) != name_of(obj) else object_text(obj)
        lines = unified_diff(before.splitlines(), object_text(effect.obj).splitlines(), "object", "after", lineterm="")
        print("\n".join(lines))


def _refusable(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (ActionFailed, ValueError) as error:
        raise CommandFailed(str(error), GENERAL) from error
