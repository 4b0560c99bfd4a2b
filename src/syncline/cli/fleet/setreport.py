"""``syncline report``: the clusters of an ApplicationSet with the first cause of each failure."""

from __future__ import annotations

from shutil import get_terminal_size

import click

from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.access.snapshots import looking
from syncline.cli.app.target import control_namespace, split
from syncline.cli.frame.failure import BLOCKED, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.frame.suggesting import suggestion
from syncline.cli.frame.terminal import print_exact
from syncline.cli.views.fleet.page import report_page
from syncline.cli.views.fleet.setreport import report_obj, reports_text
from syncline.control.cache import Cache
from syncline.explain.fleet.setreport import SetReport, application_report, set_report
from syncline.explain.view import View
from syncline.fleet.pull.observe import APPS, CLUSTERS, DETAILS, SETS, WORKS
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GVK, ObjectRef

WIDTH = 140
"""Characters of a line where there is no terminal."""
KINDS: dict[str, GVK] = {"appset": APPLICATION_SET, "applicationset": APPLICATION_SET, "app": APPLICATION} | {
    "application": APPLICATION
}


@click.command()
@click.argument("name", metavar="APPSET | app/NAME", default="", required=False)
@click.option("--all", "every", is_flag=True, help="All ApplicationSets of the namespace.")
@click.option(
    "-N",
    "-n",
    "--app-namespace",
    "--namespace",
    "namespace",
    default="argocd",
    show_default=True,
    help="Namespace of the ApplicationSet.",
)
@output_option("wide", "json", "yaml", "html")
@connection_options
def report(
    name: str, every: bool, namespace: str, output: str | None, kubeconfig: str | None, context: str | None
) -> int:
    """Show how the Applications of an ApplicationSet fare in each cluster: sync, health, operation, revision, since
    when, and the first cause of each failure. Clusters that pull and clusters that are pushed to are in one table;
    values of a cluster that does not report are in parentheses.

    `-o wide` shows all failures, `-o json` them with whole messages, `-o html` one page that needs nothing else.

    \b
    Examples:   syncline report guestbook -N openshift-gitops
                syncline report app/shop
                syncline report --all -o html > report.html
    Exit codes: 0 nothing failed, 3 a cluster fails, does not report, or lacks its Application
    """
    if bool(name) == every:
        raise CommandFailed("write the name of an ApplicationSet, app/NAME, or --all", USAGE)
    with Connection(kubeconfig, context) as link:
        place, gvk = (namespace, ""), APPLICATION_SET
        if name:
            word, _, rest = name.partition("/")
            gvk = KINDS.get(word.lower(), APPLICATION_SET) if rest else APPLICATION_SET
            place = split(rest if rest and word.lower() in KINDS else name, namespace)
        control = control_namespace(link, place[0])
        with looking(link, control) as cache:
            found = _reports(link, cache, gvk, place, control)
    if output in ("json", "yaml"):
        documents = [report_obj(one) for one in found]
        print_documents(documents if every else documents[0], output)
    elif output == "html":
        print_exact(report_page(found))
    elif found:
        print(reports_text(found, get_terminal_size((WIDTH, 40)).columns, wide=output == "wide"))
    else:
        click.echo(f"No ApplicationSets in namespace {namespace}.", err=True)
    return BLOCKED if any(one.urgent for one in found) else 0


def _reports(link: Connection, cache: Cache, gvk: GVK, place: tuple[str, str], control: str) -> list[SetReport]:
    view = View(cache, link.now())
    if gvk == APPLICATION:
        app = cache.get(ObjectRef(*APPS, *place))
        if app is None:
            raise _missing(link, cache, gvk, place)
        return [application_report(view, app, control)]
    for kind in (WORKS, DETAILS, CLUSTERS):
        cache.objects(kind)  # one list instead of a request for each cluster
    if not place[1]:
        return [set_report(view, one, control) for one in cache.objects(SETS, place[0])]
    appset = cache.get(ObjectRef(*SETS, *place))
    if appset is None:
        raise _missing(link, cache, gvk, place)
    return [set_report(view, appset, control)]


def _missing(link: Connection, cache: Cache, gvk: GVK, place: tuple[str, str]) -> CommandFailed:
    unread = cache.unread(ObjectRef(gvk.group, gvk.kind, *place))
    if unread:
        return CommandFailed(unread)
    near = suggestion(link, link.resource(gvk), *place)
    return CommandFailed(f"{gvk.kind} {'/'.join(place)} does not exist; `-N` names its namespace{near}")
