"""``syncline placement``: which clusters a Placement selects, why, and what a change of files would do.

Decisions are those of the hub's own functions (``fleet/hub/placement``), on what the hub holds or on exported files.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import click

from syncline.assembly.inspection.fleet import (
    SCHEDULING,
    PlacementChange,
    PlacementReport,
    offline_fleet,
    placement_changes,
    placement_report,
)
from syncline.base.clock import SystemClock
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.access.manifests import read_manifests
from syncline.cli.access.snapshots import exported
from syncline.cli.fleet.reading import all_of, everywhere_option, hub_kind, namespace_option, one_of, read_fleet
from syncline.cli.frame.failure import BLOCKED, UNSAFE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.output import output_option, print_documents, print_names, print_table
from syncline.cli.views.fleet.placement import (
    change_obj,
    describe_change,
    describe_report,
    placement_rows,
    report_obj,
)
from syncline.control.cache import Cache
from syncline.fleet.hub.admission import Refused
from syncline.kube import client
from syncline.kube.errors import Forbidden, NotFound
from syncline.kube.kinds.managedclusters import PLACEMENT
from syncline.kube.kinds.manifestworks import REPLICA_SET
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, gvk_of, meta, name_of, namespace_of
from syncline.kube.rights import missing_right

NAMESPACE = GVK("", "v1", "Namespace")
RESOURCE = f"placement.{PLACEMENT.group}"
LIST = "syncline placement list -A"
MANAGER = "syncline-plan"
DIFFERENCES = 2
"""Exit code if clusters come or go, as ``plan`` has it."""
READ: tuple[GroupKind, ...] = (*(one.group_kind for one in SCHEDULING), REPLICA_SET.group_kind)


@click.group(cls=Group, context_settings=CONTEXT)
def placement() -> None:
    """Show which clusters Placements select and why, and plan changes of them.

    \b
    Example:  syncline placement explain web -n fleet
              syncline placement plan -f placement.yaml
    """


@placement.command("list")
@everywhere_option
@namespace_option
@output_option("wide", "json", "yaml", "name")
@connection_options
def list_placements(
    everywhere: bool, namespace: str | None, output: str | None, kubeconfig: str | None, context: str | None
) -> None:
    """List Placements: satisfied or not, the reason, the number of selected clusters.

    \b
    Example:  syncline placement list -A -o wide
    """
    with Connection(kubeconfig, context) as link:
        space = "" if everywhere else namespace or link.namespace
        found, now = all_of(link, PLACEMENT, space), link.now()
    if output == "name":
        print_names(RESOURCE, map(name_of, found))
    elif output in ("json", "yaml"):
        print_documents(found, output)
    else:
        print_table(placement_rows(found, now, wide=output == "wide"), len(found), "Placements")


@placement.command()
@click.argument("name", metavar="PLACEMENT")
@namespace_option
@output_option("json", "yaml", "name")
@connection_options
def get(name: str, namespace: str | None, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show one Placement: its conditions, and its clusters as the PlacementDecisions have them.

    \b
    Example:  syncline placement get web -n fleet -o yaml
    """
    with Connection(kubeconfig, context) as link:
        space = namespace or link.namespace
        found = one_of(link, PLACEMENT, space, name, LIST)
        cache = read_fleet(link, READ)
        report, now = placement_report(cache, _ref(space, name), link.now()), link.now()
    if output == "name":
        print_names(RESOURCE, [name])
    elif output:
        print_documents(found, output)
    else:
        print(placement_rows([found], now, wide=True))
        if report is not None and report.before:
            print("\n" + "\n".join(report.before))


@placement.command()
@click.argument("name", metavar="PLACEMENT")
@click.option("--cluster", "clusters", multiple=True, help="Only this cluster; repeatable.")
@namespace_option
@output_option("json", "yaml")
@connection_options
def explain(
    name: str,
    clusters: tuple[str, ...],
    namespace: str | None,
    output: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Show for each cluster which filter it passes or fails and why, its scores and rank, and whether it is selected.

    \b
    Exit codes: 0 satisfied, 3 misconfigured, or fewer clusters than asked for
    Example:    syncline placement explain web -n fleet --cluster eu-1
    """
    with Connection(kubeconfig, context) as link:
        space = namespace or link.namespace
        one_of(link, PLACEMENT, space, name, LIST)
        report = placement_report(read_fleet(link, READ), _ref(space, name), link.now())
    if report is None:
        raise CommandFailed(f"Placement {space}/{name} was deleted a moment ago")
    for one in clusters:
        if report.clusters and one not in (each.cluster for each in report.clusters):
            raise CommandFailed(f"the hub has no ManagedCluster {one}; `syncline cluster list` shows those that it has")
    if output:
        document = report_obj(report)
        kept = [one for one in document["clusters"] if not clusters or one["name"] in clusters]
        print_documents(document | {"clusters": kept}, output)
    else:
        print(describe_report(report, only=clusters))
    return BLOCKED if _is_blocked(report) else 0


def _is_blocked(report: PlacementReport) -> bool:
    found = report.found
    return found is None or report.plan.status_found.failed or found.unscheduled > 0 or not found.selected


@placement.command()
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    required=True,
    metavar="FILE|DIR|-",
    help="Placements, clusters, sets, bindings or scores as they shall be; repeatable.",
)
@click.option(
    "--against",
    default=None,
    metavar="empty|FILE|DIR",
    help="Plan without a hub: against none, or what `kubectl get -o yaml` wrote of one.",
)
@namespace_option
@output_option("json", "yaml")
@connection_options
def plan(
    files: tuple[str, ...],
    against: str | None,
    namespace: str | None,
    output: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Show which clusters would come to Placements and which would go, if the files were applied.

    Without a Placement in the files, every Placement whose decisions would change is shown.

    \b
    Exit codes: 0 nothing changes, 2 clusters come or go, 3 misconfigured, 4 unsafe (the hub would refuse a file)
    Examples:   syncline placement plan -f placement.yaml
                syncline placement plan -f placement.yaml -f clusters/ --against empty
    """
    wanted = [one for place in files for one in read_manifests(place)]
    if against is not None:
        offline = offline_fleet(exported(against))
        for problem in offline.unreadable:
            click.echo(f"warning: left out: {problem}", err=True)
        found = _planned(offline.cache, wanted, namespace or "default", SystemClock().now())
    else:
        with Connection(kubeconfig, context) as link:
            hub_kind(link, PLACEMENT)
            cache, space = read_fleet(link, READ), namespace or link.namespace
            coming = {name_of(one) for one in wanted if one["kind"] == "Namespace"}
            for one in _placed(cache, wanted, space):
                _dry_run(link, one, coming)
            found = _planned(cache, wanted, space, link.now())
    if output:
        print_documents([change_obj(one) for one in found], output)
    elif found:
        print("\n\n".join(describe_change(one) for one in found))
    else:
        print("Plan: no Placement changes")
    return max((_exit_code(one) for one in found), default=0)


def _planned(cache: Cache, wanted: list[Obj], space: str, now: datetime) -> list[PlacementChange]:
    placed = _placed(cache, wanted, space)
    for one in wanted:
        if one["kind"] != "Namespace" and cache.mapper.preferred(gvk_of(one).group_kind) is None:
            click.echo(
                f"warning: left out: {one['kind']} {name_of(one)} is no part of what a Placement reads", err=True
            )
    try:
        return placement_changes(cache, placed, now)
    except Refused as error:
        raise CommandFailed(str(error), UNSAFE) from error


def _placed(cache: Cache, wanted: list[Obj], space: str) -> list[Obj]:
    """Return the objects that scheduling reads, in ``space`` where they name no namespace."""
    found = []
    for one in wanted:
        info = cache.mapper.preferred(gvk_of(one).group_kind)
        if info is not None:
            named = {"namespace": space, **meta(one)} if info.namespaced else meta(one)
            found.append(one | {"metadata": named})
    return found


def _dry_run(link: Connection, obj: Obj, coming: Collection[str]) -> None:
    """Ask the hub whether it would take an object. Raises CommandFailed for a refusal; only that of a right is
    reported, since a person may plan what others apply. ``coming``: namespaces of the files; in one that is not there
    yet the hub takes nothing."""
    info = link.mapper.find(gvk_of(obj))
    if info is None:
        return
    space = namespace_of(obj)
    if space in coming and link.send(client.get(link.resource(NAMESPACE), "", space)).status == NotFound.code:
        return
    answer = link.send(client.server_side_apply(info, obj, field_manager=MANAGER, dry_run=True, force=True))
    if answer.status == Forbidden.code and missing_right(str(answer.refusal())) is not None:
        said = f"it was not asked whether the hub takes {info.kind} {name_of(obj)}: {answer.refusal()}"
        click.echo(f"warning: {said}", err=True)
    elif not answer.ok:
        raise CommandFailed(f"the hub would refuse {info.kind} {name_of(obj)}: {answer.refusal()}", UNSAFE)


def _exit_code(change: PlacementChange) -> int:
    if change.report.found is None or change.report.plan.status_found.failed:
        return BLOCKED
    return DIFFERENCES if change.changes else 0


def _ref(namespace: str, name: str) -> ObjectRef:
    return ObjectRef(*PLACEMENT.group_kind, namespace, name)
