"""``syncline pattern install`` and ``uninstall``: make and delete a Pattern object."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import click

from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.pattern.values import pair, read_file
from syncline.clustergroup.defaults import layered
from syncline.clustergroup.naming import too_long
from syncline.kube.client import PatchType, Request
from syncline.kube.kinds.validatedpatterns import PATTERN
from syncline.kube.objects import Obj, dig
from syncline.patterns.installing.config import LEGACY_OPERATOR_NAMESPACE
from syncline.patterns.installing.pattern import PRUNE
from syncline.sources.errors import SourceError

NAMESPACE = LEGACY_OPERATOR_NAMESPACE
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("install")
@click.argument("name", default="")
@click.option(
    "-f", "--values", "files", multiple=True, type=FILE, help="Values files of a checkout: name, group, address."
)
@click.option("--repo", default="", help="URL of the repository [default: origin of the checkout with the values].")
@click.option("--revision", default="", help="Branch, tag or commit [default: the branch of the checkout, or HEAD].")
@click.option("--group", default="", help="Cluster group [default: main.clusterGroupName of the values].")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A parameter of the pattern.")
@click.option("--extra-values", multiple=True, metavar="PATH", help="A further values file in the repository.")
@click.option(
    "--chart-repo",
    default="",
    metavar="URL",
    help="Git repository of the chart [default: charts.validatedpatterns.io].",
)
@click.option("--chart-revision", default="", help="Branch, tag or commit of the chart's repository.")
@click.option("--manual-sync", is_flag=True, help="People start syncs.")
@click.option(
    "--token-secret", default="", metavar="NAMESPACE/NAME", help="A Secret with credentials of the repository."
)
@click.option(
    "--secrets", type=FILE, default=None, help="A values-secret file of this machine; its Secrets come first."
)
@click.option("-n", "--namespace", default=NAMESPACE, show_default=True, help="Namespace of the Pattern.")
@connection_options
def install(
    name: str,
    files: tuple[Path, ...],
    repo: str,
    revision: str,
    group: str,
    given: tuple[str, ...],
    extra_values: tuple[str, ...],
    chart_repo: str,
    chart_revision: str,
    manual_sync: bool,
    token_secret: str,
    secrets: Path | None,
    namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Install a pattern: make its Pattern object, and its Secrets first.

    \b
    Example:  syncline pattern install -f values-global.yaml -f values-hub.yaml
              syncline pattern install shop --repo https://git.example.com/shop.git --group hub
    """
    values = _values(files)
    name = name or str(dig(values, "global", "pattern") or "")
    group = group or str(dig(values, "main", "clusterGroupName") or dig(values, "clusterGroup", "name") or "")
    folder = files[0].resolve().parent if files else None
    git = {
        "targetRepo": repo or _git(folder, "remote", "get-url", "origin"),
        "targetRevision": revision or _git(folder, "rev-parse", "--abbrev-ref", "HEAD") or "HEAD",
    }
    for what, found in (("NAME", name), ("--group", group), ("--repo", git["targetRepo"])):
        if not found:
            raise CommandFailed(f"{what} is missing; give it, or values files of a checkout with -f", USAGE)
    if long := too_long(name, group):
        raise CommandFailed(long)
    if token_secret:
        space, _, secret = token_secret.rpartition("/")
        git |= {"tokenSecret": secret, "tokenSecretNamespace": space or namespace}
    spec: Obj = {"clusterGroupName": group, "gitSpec": git, "gitOpsSpec": {"manualSync": manual_sync}}
    if chart_repo:
        revision_ = {"clusterGroupChartGitRevision": chart_revision} if chart_revision else {}
        spec["multiSourceConfig"] = {"clusterGroupGitRepoUrl": chart_repo} | revision_
    if given:
        spec["extraParameters"] = [dict(zip(("name", "value"), pair(one), strict=True)) for one in given]
    if extra_values:
        spec["extraValueFiles"] = list(extra_values)
    made = {"apiVersion": PATTERN.api_version, "kind": PATTERN.kind, "metadata": {"name": name, "namespace": namespace}}
    with Connection(kubeconfig, context) as link:
        path = link.resource(PATTERN).path(namespace)
        for one in _secrets(secrets):
            _put(link, one)
        link.ask(Request("POST", path, {}, {}, made | {"spec": spec}))
    print(f"pattern {name} is being installed; look with: syncline pattern get {name}")
    return 0


@click.command("uninstall")
@click.argument("name")
@click.option("--prune", is_flag=True, help="Delete what it installed, too; without it all of that stays.")
@click.option("-n", "--namespace", default=NAMESPACE, show_default=True, help="Namespace of the Pattern.")
@connection_options
def uninstall(name: str, prune: bool, namespace: str, kubeconfig: str | None, context: str | None) -> int:
    """Delete a Pattern object; what it installed stays unless --prune is given.

    \b
    Example:  syncline pattern uninstall shop --prune
    """
    with Connection(kubeconfig, context) as link:
        path = link.resource(PATTERN).path(namespace, name)
        if prune:
            body = {"metadata": {"annotations": {PRUNE: "true"}}}
            link.ask(Request("PATCH", path, {}, {"content-type": PatchType.MERGE}, body))
        link.ask(Request("DELETE", path))
    print(f"pattern {name} is being deleted" + (", and what it installed" if prune else "; what it installed stays"))
    return 0


def _values(files: tuple[Path, ...]) -> dict[str, Any]:
    try:
        return layered(read_file(path) for path in files)
    except SourceError as error:
        raise CommandFailed(str(error), USAGE) from None


def _git(folder: Path | None, *words: str) -> str:
    """Return what git says of a checkout; empty if it is none."""
    if folder is None:
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _secrets(path: Path | None) -> list[Obj]:
    if path is None:
        return []
    from syncline.cli.pattern.secretfile import secrets_of

    return secrets_of(path)


def _put(link: Connection, secret: Obj) -> None:
    space, name = secret["metadata"]["namespace"], secret["metadata"]["name"]
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
    answer = link.send(Request("POST", "/api/v1/namespaces", {}, {}, made))
    if answer.status != 409:
        link.check(answer)
    path = f"/api/v1/namespaces/{space}/secrets/{name}"
    query = {"fieldManager": "syncline-pattern", "force": "true"}
    link.ask(Request("PATCH", path, query, {"content-type": PatchType.APPLY}, secret))
    print(f"secret {space}/{name}: {len(secret['data'])} fields")
