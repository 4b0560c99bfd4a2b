"""``syncline pattern list``, ``get`` and ``explain``."""

from __future__ import annotations

from dataclasses import replace

import click

from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.failure import BLOCKED, CommandFailed
from syncline.cli.frame.output import output_option, print_documents, print_table, table
from syncline.cli.pattern.install import NAMESPACE
from syncline.cli.views.cause import describe_cause
from syncline.cli.views.patterntimeline import describe_rows, drawn_rows
from syncline.explain.graph import cause_to_obj
from syncline.explain.view import Found
from syncline.kube.client import Request
from syncline.kube.errors import NotFound
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.validatedpatterns import ARGO_CD, PATTERN
from syncline.kube.objects import Obj, ObjectRef, dig, name_of, namespace_of
from syncline.patterns.installing.config import ARGO, LEGACY_ARGO
from syncline.patterns.installing.timeline import LISTED, Listed, rows_of
from syncline.views.texts import age


@click.command("list")
@output_option("json", "yaml", "name")
@connection_options
def list_patterns(output: str | None, kubeconfig: str | None, context: str | None) -> int:
    """List the Patterns of a cluster, and where their installation is."""
    with Connection(kubeconfig, context) as link:
        found = link.ask(Request("GET", link.resource(PATTERN).path()))["items"]
        now = link.now()
    if output == "name":
        for one in found:
            print(f"pattern/{name_of(one)}")
        return 0
    if output:
        print_documents(found, output)
        return 0
    rows = [
        (
            namespace_of(one),
            name_of(one),
            str(dig(one, "spec", "clusterGroupName") or dig(one, "spec", "variant") or ""),
            str(dig(one, "status", "lastStep") or ""),
            str(dig(one, "status", "lastError") or ""),
            age(time_or_none(dig(one, "metadata", "creationTimestamp")), now),
        )
        for one in found
    ]
    print_table(table(("NAMESPACE", "NAME", "GROUP", "STEP", "ERROR", "AGE"), rows), len(rows), "patterns")
    return 0


@click.command("get")
@click.argument("name")
@click.option("--timeline", is_flag=True, help="What was installed when, as bars; with -o svg as a picture.")
@click.option("-n", "--namespace", default=NAMESPACE, show_default=True, help="Namespace of the Pattern.")
@output_option("json", "yaml", "svg")
@connection_options
def get(
    name: str, timeline: bool, namespace: str, output: str | None, kubeconfig: str | None, context: str | None
) -> int:
    """Show a Pattern: its steps, facts of the cluster, conditions and Applications.

    \b
    Example:  syncline pattern get shop --timeline
    """
    with Connection(kubeconfig, context) as link:
        found = _pattern(link, namespace, name)
        if output in ("json", "yaml") and not timeline:
            print_documents(found, output)
            return 0
        now = link.now()
        if timeline or output == "svg":
            rows = rows_of(found, [one for kind in LISTED for one in _listed(link, kind)], now)
            if output in ("json", "yaml"):
                print_documents([row.obj for row in rows], output)
            else:
                print(drawn_rows(rows, now) if output == "svg" else describe_rows(rows, now))
            return 0
    status: Obj = found.get("status") or {}
    git: Obj = dig(found, "spec", "gitSpec") or {}
    for title, text in (
        ("Name", f"{namespace}/{name}"),
        ("Group", dig(found, "spec", "clusterGroupName") or dig(found, "spec", "variant")),
        ("Repository", f"{git.get('targetRepo')}@{git.get('targetRevision') or 'HEAD'}"),
        ("Step", status.get("lastStep")),
        ("Error", status.get("lastError")),
        ("Deletion", status.get("deletionPhase")),
        ("Cluster", " ".join(str(status[key]) for key in FACTS if status.get(key))),
    ):
        if text:
            print(f"{title + ':':<12} {text}")
    for one in status.get("conditions") or ():
        print(f"{one.get('type')}: {one.get('message')}")
    rows_ = [tuple(str(one.get(key) or "") for key in KEYS) for one in status.get("applications") or ()]
    if rows_:
        print()
        print(table(("NAMESPACE", "APPLICATION", "SYNC", "HEALTH"), rows_))
    return 0


FACTS = ("clusterName", "clusterPlatform", "clusterVersion")
KEYS = ("namespace", "name", "syncStatus", "healthStatus")


@click.command("explain")
@click.argument("name")
@click.option("-n", "--namespace", default=NAMESPACE, show_default=True, help="Namespace of the Pattern.")
@output_option("json", "yaml")
@connection_options
def explain(name: str, namespace: str, output: str | None, kubeconfig: str | None, context: str | None) -> int:
    """Show what holds the installation of a Pattern, down to the cause.

    \b
    Exit codes: 0 nothing blocks, 3 blocked
    """
    from syncline.cli.access.destinations import Elsewhere
    from syncline.cli.access.snapshots import looking
    from syncline.cli.explain import explained_application
    from syncline.gitops.application.observing.observe import AppSettings

    with Connection(kubeconfig, context) as link:
        found = _pattern(link, namespace, name)
        argo = _argo_namespace(link)
        group = str(dig(found, "spec", "variant") or dig(found, "spec", "clusterGroupName") or "")
        with looking(link, argo) as cache, Elsewhere(link, argo, cache) as others:
            parent = ObjectRef(*APPLICATION.group_kind, argo, f"{name}-{group}")
            below = None
            if cache.get(parent) is not None:
                below = explained_application(link, others, cache, parent, AppSettings(control_namespace=argo))
        now = link.now()
    step, error = (str(dig(found, "status", part) or "") for part in ("lastStep", "lastError"))
    blocked = bool(error) or (below is not None and below.blocked)
    cause = Cause(
        f"Pattern {namespace}/{name}",
        "Waiting" if blocked or _runs(below) else "Installed",
        f"{step}: {error}" if error else step,
    )
    if below is not None and (below.blocked or below.cause.because or not error):
        cause = replace(cause, because=(below.cause,))
    if output:
        print_documents(cause_to_obj(cause) | {"blocked": blocked}, output)
    else:
        print(describe_cause(cause, now))
    return BLOCKED if blocked else 0


def _runs(below: Found | None) -> bool:
    return below is not None and below.cause.state in ("Running", "Requested", "Retrying")


def _pattern(link: Connection, namespace: str, name: str) -> Obj:
    answer = link.send(Request("GET", link.resource(PATTERN).path(namespace, name)))
    if answer.status == NotFound.code:
        raise CommandFailed(f"there is no Pattern {namespace}/{name}; see syncline pattern list")
    found: Obj = link.check(answer)
    return found


def _argo_namespace(link: Connection) -> str:
    path = link.resource(ARGO_CD).path(LEGACY_ARGO, LEGACY_ARGO)
    return LEGACY_ARGO if link.send(Request("GET", path)).ok else ARGO


def _listed(link: Connection, kind: Listed) -> list[Obj]:
    answer = link.send(Request("GET", kind.path))
    return kind.items(answer.obj) if answer.ok else []
