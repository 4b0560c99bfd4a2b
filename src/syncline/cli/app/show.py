"""``syncline app list`` and ``app get``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from syncline.argo.application import AppView
from syncline.assembly.inspection.resource_tree import ResourceNode
from syncline.cli.access.connection import Connection, connection_options, refused
from syncline.cli.app.spec.flags import position_of
from syncline.cli.app.target import (
    CONTROL_NAMESPACE,
    REFRESH_S,
    control_namespace,
    get_app,
    namespace_options,
    refresh,
    split,
)
from syncline.cli.fleet.asking import about, asked, cluster_of, standing_of
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.application import (
    app_rows,
    describe_app,
    parameter_rows,
    set_ref_of,
    set_text,
    windows_lines,
)
from syncline.fleet.pull.queries.model import Ask
from syncline.kube import client
from syncline.kube.errors import Forbidden
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.objects import Obj, dig, meta, name_of

ANSWER_S = 10.0
"""Seconds that the answer of a cluster is waited for: what it reported last is at hand."""


@click.command("list")
@click.option("-p", "--project", "projects", multiple=True, help="Only this project; repeatable.")
@click.option("-l", "--selector", default="", help="Label selector.")
@click.option("-r", "--repo", default=None, help="Only with a source in this repository.")
@click.option("-P", "--path", default=None, help="Only with a source at this path.")
@click.option("-c", "--cluster", default=None, help="Only for this destination: server or name.")
@output_option("wide", "name", "json", "yaml")
@click.option("-N", "--app-namespace", default="", help="Only in this namespace [default: every one you may list].")
@connection_options
def list_apps(
    projects: tuple[str, ...],
    selector: str,
    repo: str | None,
    path: str | None,
    cluster: str | None,
    output: str | None,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """List Applications.

    \b
    Example:  syncline app list -o wide -p default
    """
    with Connection(kubeconfig, context) as link:
        info = link.resource(APPLICATION)
        answer = link.send(client.list_(info, app_namespace, label_selector=selector))
        if answer.status == 403 and not app_namespace:
            click.echo(f"only namespace {CONTROL_NAMESPACE} is listed: {dig(answer.obj, 'message')}", err=True)
            answer = link.send(client.list_(info, CONTROL_NAMESPACE, label_selector=selector))
        apps = link.check(answer).get("items") or []
    wanted = {"repoURL": repo, "path": path, "cluster": cluster}
    apps = [app for app in apps if not projects or dig(app, "spec", "project", default="default") in projects]
    apps = [app for app in apps if _fits(app, {key: value for key, value in wanted.items() if value})]
    if output in ("json", "yaml"):
        print_documents(apps, output)
    elif output == "name":
        for one in apps:
            print(f"{meta(one).get('namespace')}/{name_of(one)}")
    else:
        print(app_rows(apps, wide=output == "wide"))


def _fits(app: Obj, wanted: dict[str, str]) -> bool:
    """Return whether an Application matches all filters; a filter on sources must match one of them."""
    place = dig(app, "spec", "destination", default={})
    for key, value in wanted.items():
        match key:
            case "cluster":
                fits = value in (place.get("server"), place.get("name"))
            case _:
                fits = any(source.get(key) == value for source in AppView(app).sources)
        if not fits:
            return False
    return True


@click.command()
@click.argument("name")
@click.option("--refresh", "soft", is_flag=True, help="Read the repository first.")
@click.option("--hard-refresh", "hard", is_flag=True, help="Read the repository and render again first.")
@click.option(
    "--timeout",
    type=int,
    default=0,
    help="Seconds for a refresh [default: 60], or for the answer of a cluster that pulls it [default: 10].",
)
@click.option("--show-params", is_flag=True, help="Also the Helm parameters of its source.")
@click.option("--source-position", type=int, default=0, help="Of which of several sources, from 1.")
@click.option("--source-name", default="", help="The same by its name.")
@click.option("--show-operation", is_flag=True, help="The last operation is always shown; taken for compatibility.")
@output_option("wide", "json", "yaml", "tree", "tree=detailed")
@namespace_options
def get(
    name: str,
    soft: bool,
    hard: bool,
    output: str | None,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
    **given: Any,
) -> None:
    """Show one Application, its last operation and its resources.

    \b
    Example:  syncline app get shop --refresh
              syncline app get shop -o tree=detailed
    """
    where = split(name, app_namespace)
    with Connection(kubeconfig, context) as link:
        known = get_app(link, where)
        if (soft or hard) and cluster_of(known):
            click.echo(
                f"warning: cluster {cluster_of(known)} reads the repository; nothing is refreshed here", err=True
            )
        if (soft or hard) and not cluster_of(known):
            found = refresh(link, where, "hard" if hard else "normal", given["timeout"] or REFRESH_S)
        else:
            found = known
        nodes = _pulled_tree(link, found, given["timeout"] or ANSWER_S) if cluster_of(found) else None
        if nodes:
            found = _with_live(found, nodes)
        elif nodes is not None:
            nodes = _reported(found)
        if output in ("json", "yaml"):
            print_documents(found, output)
            return
        control = control_namespace(link, where[0])
        project = _project(link, found, control)
        windows = windows_lines(project, found, link.now())
        made_by = _made_by(link, found, control)
        if output is None or output == "wide":
            print(describe_app(found, windows, made_by=made_by))
            if given["show_params"]:
                print(f"\n{parameter_rows(_source(found, given))}")
            return
        from syncline.assembly.inspection.resource_tree import resource_tree
        from syncline.cli.app.looked import looked_for
        from syncline.cli.views.tree import app_tree

        if nodes is None:
            with looked_for(link, where, found) as snapshot:
                nodes = resource_tree(snapshot.there, found)
        print(describe_app(found, windows, resources=False, made_by=made_by))
        print()
        print(app_tree(nodes, link.now(), detailed=output == "tree=detailed"))


def _pulled_tree(link: Connection, app: Obj, timeout_s: float) -> tuple[ResourceNode, ...]:
    """Return the live objects of an Application that a cluster pulls; without an answer none, and stderr says why: what
    the cluster reported last is shown then."""
    from syncline.assembly.inspection.resource_tree import tree_of

    try:
        standing = standing_of(link, cluster_of(app))
        if standing.silent or standing.doubt:
            raise CommandFailed(standing.silent or standing.doubt)
        return tree_of(asked(link, app, about(app, Ask.RESOURCES), timeout_s))
    except CommandFailed as error:
        click.echo(f"warning: resources are shown as reported last: {error}", err=True)
        return ()


def _reported(app: Obj) -> tuple[ResourceNode, ...]:
    """Return the resources of an Application as its cluster reported them last, without those that they own."""
    from syncline.assembly.inspection.resource_tree import tree_of

    rows = dig(app, "status", "resources") or ()
    return tree_of([{**row, "exists": dig(row, "health", "status") != "Missing"} for row in rows])


def _with_live(app: Obj, nodes: tuple[ResourceNode, ...]) -> Obj:
    """Return the Application with its live resources in place of those that were reported last."""
    parts = ("group", "kind", "namespace", "name")
    before = {tuple(str(row.get(part) or "") for part in parts): row for row in dig(app, "status", "resources") or ()}
    rows = []
    for node in nodes:
        known = before.get(tuple(node.ref)) or {key: value for key, value in node.ref._asdict().items() if value}
        health = {"health": {"status": str(node.health.status)}} if node.health else {}
        status = {"status": node.row["status"]} if node.row.get("status") else {}
        rows.append({**known, **status, **health})
    return {**app, "status": {**(app.get("status") or {}), "resources": rows}}


def _made_by(link: Connection, app: Obj, control: str) -> str:
    """Return the set that controls an Application, with the row where objects of the API alone say it."""
    owner = set_ref_of(app)
    if owner is None:
        return ""
    from syncline.cli.access.snapshots import looking
    from syncline.cli.appset.explaining import origin_at_hand

    with looking(link, control, tell=False) as cache:
        row = origin_at_hand(link, cache, owner, name_of(app), control)
    return f"{set_text(app)}, {row}" if row else f"{set_text(app)} (syncline explain app/{name_of(app)} names the row)"


def _source(app: Obj, given: Mapping[str, Any]) -> Obj:
    """Return the selected source; the first without a flag. Raises CommandFailed."""
    sources = AppView(app).sources
    at = position_of(app["spec"], given["source_position"], given["source_name"]) or 1
    if not 1 <= at <= len(sources):
        raise CommandFailed(f"--source-position {at}: the Application has {len(sources)} sources", USAGE)
    return sources[at - 1]


def _project(link: Connection, found: Obj, namespace: str) -> Obj | None:
    """Return the Application's project; empty if missing, None if unreadable."""
    name = str(dig(found, "spec", "project", default="default"))
    answer = link.send(client.get(link.resource(APP_PROJECT), namespace, name))
    if answer.status == Forbidden.code:
        click.echo(f"warning: its sync windows are not known: {refused(answer.refusal())}", err=True)
        return None
    project: Obj = answer.obj if answer.ok else {}
    return project
